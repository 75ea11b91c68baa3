// pages.mjs - the dashboard in a real browser, against a real berthd with real short jobs.
//
//   node pages.mjs [PART]     only tests whose name contains this
//
// One browser and one berthd for all of them; every request that the browser makes is noted, and
// at the end none of them may have left loopback.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { BUILD, Daemon, findChromium, openBrowser, sleep, until } from "./scene.mjs";

if (!findChromium()) {
  console.log("SKIP: no Chromium here (Debian: chromium)");
  process.exit(77);
}

const only = process.argv[2] ?? "";
const EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>";
const KEEP = 'i=0; [ -f "$BERTH_CKPT_DIR/i" ] && i=$(cat "$BERTH_CKPT_DIR/i"); trap \'echo $i > "$BERTH_CKPT_DIR/i"; exit 85\' TERM; ' +
  'while [ $i -lt 40 ]; do i=$((i+1)); echo "step $i loss 0.$((99-i))"; sleep 0.1; done';

let daemon, browser, context, page;
const requests = [];
const origins = []; // of berthds besides the one of all tests
const wrong = []; // errors of scripts, dialogs, what the policy refused

function watch(opened) {
  opened.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  opened.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  opened.on("console", (message) => {
    if (/Content Security Policy|TrustedHTML/.test(message.text())) wrong.push(message.text());
  });
}

async function newContext(options = {}) {
  const made = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  made.on("request", (request) => requests.push(request.url()));
  made.on("page", watch);
  made.setDefaultTimeout(10000);
  return made;
}

const rowOf = (id) => `.list-row[data-key="${id}"]`;
const row = (id) => page.locator(rowOf(id));
const words = (text) => text.replace(/\s+/g, " ").trim();

/** What stands there now; "" if there is no such thing: nothing is waited for. */
async function textOf(selector) {
  return words(await page.evaluate((where) => document.querySelector(where)?.innerText ?? "", selector));
}

async function is(id, state) {
  await until(`job ${id} ${state}`, async () => (await textOf(`${rowOf(id)} .chip`)).includes(state));
}

async function go(hash) {
  await page.evaluate((to) => (location.hash = to), hash);
}

function check(name, body, seconds = 30) {
  test(name, { skip: !name.includes(only), timeout: 1000 * seconds }, body);
}

daemon = await new Daemon("--fake-gpus", "v100:2", "--policy", "fitgpp").start();
browser = await openBrowser();
context = await newContext();
page = await context.newPage();
await page.goto(daemon.url());
await page.locator(".link.open").waitFor();

check("a job from the command line appears, runs, is preempted, resumes and ends", async () => {
  const long = daemon.submit("-G2", "-J", "long", "--grace", "5", "--steps", "40", "--pattern", "step ([0-9]+) loss ([0-9.]+)", "--", "bash", "-c", KEEP);
  await is(long, "runs");
  await until("its name", async () => (await textOf(`${rowOf(long)} .name`)) === "long");
  assert.equal(await page.locator(".gpu.held").count(), 2);
  const short = daemon.submit("-G1", "-J", "short", "--class", "te", "--", "sleep", "1.5");
  await is(short, "runs");
  await is(long, "waits");
  await is(long, "runs");
  await until("it has yielded once", async () => (await textOf(`${rowOf(long)} .preempted`)) === "1×");
  await page.getByRole("radio", { name: "Ended" }).click();
  await is(short, "done");
  await is(long, "done");
  await page.getByRole("radio", { name: "All" }).click();
  await go("#/ledger");
  await until("the ledger has it", async () => (await page.locator(".ledger-page .list-row").count()) === 1);
  const entry = words(await page.locator(".ledger-page .list-row").innerText());
  assert.ok(entry.includes(` ${long} ${short} trial 2 `), entry);
  await go(`#/job/${long}`);
  await page.locator(".attempts tbody tr").nth(1).waitFor();
  const attempts = words(await page.locator(".attempts tbody").innerText());
  assert.ok(attempts.includes("made room for job") && attempts.includes("done"), attempts);
  await page.locator(".uplot").first().waitFor(); // its loss
  await go("#/now");
});

check("cancel, hold, release and another class from the page", async () => {
  const runs = daemon.submit("-G2", "-J", "runs", "--grace", "1", "--", "sleep", "60");
  const waits = daemon.submit("-G1", "-J", "waits", "--", "sleep", "60");
  await is(runs, "runs");
  await is(waits, "waits");
  await row(waits).click();
  await page.getByRole("button", { name: "Hold" }).click();
  await page.getByRole("button", { name: "Release" }).click();
  await page.getByRole("button", { name: "Hold" }).click();
  await page.getByRole("button", { name: "Make it a trial" }).click();
  await page.getByRole("button", { name: "Make it best effort" }).waitFor();
  assert.deepEqual(await daemon.ask("GET", `/v1/jobs/${waits}`).then((job) => [job.state, job.class]), ["HELD", "te"]);
  for (const id of [waits, runs]) {
    await go(`#/job/${id}`);
    await page.locator(".job-id", { hasText: String(id) }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Really cancel?" }).click();
    await until("it is cancelled", async () => (await daemon.ask("GET", `/v1/jobs/${id}`)).state === "CANCELLED");
    await page.locator(".job-head .chip.cancelled").waitFor();
  }
  await go("#/now");
});

check("a name and an output full of markup and colours are text", async () => {
  const script = `printf '\\033[31mred\\033[0m <b>bold</b> ${EVIL.replace(/'/g, "")}\\033]0;owned\\007\\n'; sleep 30`;
  const evil = daemon.submit("-G1", "-J", EVIL, "--", "sh", "-c", script);
  await is(evil, "runs");
  await until("its name", async () => (await textOf(`${rowOf(evil)} .name`)) === EVIL);
  await row(evil).click();
  await until("its output", async () => (await textOf(".output")).includes("bold"));
  assert.equal(words(await page.locator(".output").innerText()), `red <b>bold</b> ${EVIL}`);
  assert.equal(await page.locator(".output b, main script, main img").count(), 0);
  daemon.berth("cancel", String(evil));
  await page.locator(".job-head .chip.cancelled").waitFor();
  await go("#/now");
});

check("a reload, and another tab, need no new address; a used one opens nothing", async () => {
  const url = daemon.url();
  const other = await newContext();
  const first = await other.newPage();
  await first.goto(url);
  await first.locator(".link.open").waitFor();
  assert.ok(!first.url().includes("token"), first.url());
  await first.reload();
  await first.locator(".link.open").waitFor();
  const second = await other.newPage();
  await second.goto(`${new URL(url).origin}/#/cluster`);
  await second.locator(".link.open").waitFor();
  await first.getByRole("button", { name: "Leave" }).click();
  await first.locator(".door").waitFor();
  await other.close();
  const stranger = await newContext();
  const shut = await stranger.newPage();
  await shut.goto(url);
  await shut.locator(".door").waitFor();
  assert.match(await shut.locator(".door").innerText(), /used already/);
  await stranger.close();
});

check("a wrong or missing token shows nothing", async () => {
  const secret = daemon.submit("-G1", "-J", "top-secret", "--", "sleep", "30");
  const { origin } = new URL(daemon.url());
  const stranger = await newContext();
  for (const hash of ["", "#token=0123", `#token=${"0".repeat(64)}`, "#/now", `#/job/${secret}`]) {
    const shut = await stranger.newPage();
    const answers = [];
    shut.on("response", (response) => answers.push([new URL(response.url()).pathname, response.status()]));
    await shut.goto(`${origin}/${hash}`);
    await shut.locator(".door").waitFor();
    const text = await shut.locator("body").innerText();
    assert.ok(/berth ui/.test(text) && !/top-secret|v100|Ledger/.test(text), text);
    for (const [path, status] of answers) if (path.startsWith("/v1")) assert.equal(status, 401, path);
    await shut.close();
  }
  await stranger.close();
  daemon.berth("cancel", String(secret));
});

check("the stream goes on after berthd was killed and started again", async () => {
  const stays = daemon.submit("-G1", "-J", "stays", "--", "sleep", "60");
  await is(stays, "runs");
  await daemon.stop("SIGKILL");
  await page.locator(".link.broken").waitFor();
  await daemon.start();
  await page.locator(".link.open").waitFor();
  await is(stays, "runs");
  const after = daemon.submit("-G1", "-J", "after", "--", "sleep", "60");
  await is(after, "runs");
  daemon.berth("cancel", String(stays), String(after));
  await until("both are gone", async () => (await row(stays).count()) + (await row(after).count()) === 0);
});

check("ten thousand jobs are a few rows, found by words and by keys", async () => {
  await go("#/now");
  const jobs = Array.from({ length: 2500 }, (_, i) => ({ command: ["true"], cwd: "/", gpus: 2, hold: true, name: `many-${i}`, env: {} }));
  for (let i = 0; i < 4; i++) await daemon.ask("POST", "/v1/jobs", { jobs });
  await until("all are there", async () => Number((await textOf(".queue .note")).replace(/\D/g, "")) >= 10000, 20);
  assert.ok((await page.locator(".list-row").count()) < 60);
  await page.keyboard.press("/");
  await page.keyboard.type("many-2499 held");
  await until("four are left", async () => (await page.locator(".list-row").count()) === 4);
  await page.keyboard.press("Enter");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.locator(".job-head", { hasText: "many-2499" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".page.now").waitFor();
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  for (const [key, title] of [["c", "Cluster"], ["l", "Ledger"], ["s", "Study"], ["n", "Now"]]) {
    await page.keyboard.press(key);
    await until(title, async () => (await page.title()).startsWith(title));
  }
});

check("two jobs that share a GPU are seen side by side, and what each keeps", async () => {
  const job = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "examples", "busy.py");
  const pairs = await new Daemon("--fake-gpus", "v100:1", "--policy", "gavel-las,sharing=true,round=2").start();
  try {
    const submit = (kind) => pairs.submit("-G1", "-J", kind, "--shared", "--kind", kind, "--grace", "5", "--", "python3", job, "--busy", "0.1", "--steps", "100000");
    const [one, other] = [submit("one"), submit("other")];
    const seen = await context.newPage();
    const url = pairs.url();
    origins.push(new URL(url).origin);
    await seen.goto(url);
    const half = (id) => seen.locator(`.tile .gpu.pair button[aria-label^="job ${id} "]`);
    await half(one).waitFor({ timeout: 60000 }); // each has to run alone first
    assert.equal(await half(other).count(), 1);
    const about = () => seen.locator(`${rowOf(one)} .about`).innerText();
    await until("what it keeps", async () => new RegExp(`beside job ${other}, keeps \\d+ % of its speed`).test(await about()));
    // Both halves of its row in the chart: the pointer finds one above and one below.
    const canvas = seen.locator(".live-gantt canvas");
    const tip = seen.locator(".live-gantt .tooltip");
    const box = await canvas.boundingBox();
    const found = new Set();
    await until("both in the chart", async () => {
      for (const y of [8, 19]) {
        await seen.mouse.move(box.x + 0.76 * box.width + 4 * Math.random(), box.y + y);
        const text = words(await tip.innerText());
        if (/beside job \d+, keeps \d+ % of its speed/.test(text)) found.add(Number(text.split(" ")[0]));
      }
      return found.size === 2;
    });
    await half(one).click();
    await seen.locator(".facts", { hasText: `this job keeps` }).waitFor();
    const rows = words(await seen.locator("table.sharing tbody").innerText());
    assert.match(rows, new RegExp(` ${other} .* goes on$`));
    await seen.setViewportSize({ width: 360, height: 740 });
    await sleep(0.3);
    const [wide, room] = await seen.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} pixels wide`);
    await seen.evaluate(() => (location.hash = "#/ledger"));
    await seen.locator(".sharing", { hasText: "1 pair of jobs has shared GPUs, 1 of them now" }).waitFor();
    await seen.close();
  } finally {
    await pairs.wipe();
  }
}, 90);

check("a running job says when it will end, a waiting one when it will start, and the chart draws both", async () => {
  const foretold = await new Daemon("--fake-gpus", "v100:2", "--policy", "fifo").start();
  try {
    const seen = await context.newPage();
    const url = foretold.url();
    origins.push(new URL(url).origin);
    await seen.goto(url);
    await seen.locator(".link.open").waitFor();
    const train = 'i=0; while [ $i -lt $0 ]; do i=$((i+1)); sleep 0.1; echo step $i; done';
    const submit = (name, steps, time, ...command) => foretold.submit("-J", name, "-G2", "--steps", String(steps), "--step-time", time, "--pattern", "step ([0-9]+)", "--", ...command);
    for (let steps = 1; steps <= 6; steps++) submit(`learn-${steps}`, 6, "0.1s", "sh", "-c", train, String(steps));
    await until("all have ended", async () => (await foretold.ask("GET", "/v1/jobs")).jobs.length === 0, 60);
    const [long, late] = [submit("long", 600, "1s", "sleep", "600"), submit("late", 300, "1s", "sleep", "300")];
    // A job that runs is not asked for again: this comes with the stream.
    const about = (id) => seen.locator(`${rowOf(id)} .about`).innerText();
    const time = "([A-Z][a-z]{2} )?\\d\\d:\\d\\d";
    await until("when it ends", async () => new RegExp(`^ends ${time}–${time}; .*:0,1$`).test(await about(long)));
    await until("when it starts", async () => new RegExp(`^starts ${time}–${time}; needs 2 GPUs`).test(await about(late)));
    // Below the two GPUs the next job has a row, to the right of now.
    const canvas = seen.locator(".live-gantt canvas");
    const tip = seen.locator(".live-gantt .tooltip");
    const box = await canvas.boundingBox();
    const pointAt = async (part, y) => {
      await seen.mouse.move(box.x + part * box.width + 3 * Math.random(), box.y + y);
      return words(await tip.innerText());
    };
    await until("its end in the chart", async () => new RegExp(`^${long} long .*ends ${time}–${time} basis its declared run time`).test(await pointAt(0.6, 8)));
    await until("its row in the chart", async () => new RegExp(`^${late} late .*starts ${time}–${time} ends `).test(await pointAt(0.97, box.height - 34)));
    if (process.env.BERTH_SHOTS) await seen.screenshot({ path: `${process.env.BERTH_SHOTS}/forecast-live.png`, fullPage: true });
    await seen.evaluate((to) => (location.hash = to), `#/job/${late}`);
    await seen.locator(".facts", { hasText: new RegExp(`Expected to start between ${time} and ${time} \\(80 % likely\\)`) }).waitFor();
    await seen.evaluate(() => (location.hash = "#/cluster"));
    await seen.locator("section", { hasText: "How well forecasts held" }).locator("p.note", { hasText: /forecasts/ }).waitFor();
    await seen.setViewportSize({ width: 360, height: 740 });
    for (const hash of ["#/now", `#/job/${late}`, "#/cluster"]) {
      await seen.evaluate((to) => (location.hash = to), hash);
      await sleep(0.3);
      const [wide, room] = await seen.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= room, `${hash}: ${wide} pixels wide`);
      if (process.env.BERTH_SHOTS) await seen.screenshot({ path: `${process.env.BERTH_SHOTS}/phone${hash.replace(/\W+/g, "-")}.png` });
    }
    await seen.close();
  } finally {
    await foretold.wipe();
  }
}, 120);

check("a phone has room for every page, and the theme can be chosen", async () => {
  const phone = await newContext({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  const small = await phone.newPage();
  await small.goto(daemon.url());
  await small.locator(".list-row").first().waitFor();
  for (const hash of ["#/now", "#/job/1", "#/cluster", "#/ledger", "#/study"]) {
    await small.evaluate((to) => (location.hash = to), hash);
    await sleep(0.3);
    const [wide, seen] = await small.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= seen, `${hash}: ${wide} pixels wide`);
  }
  const theme = () => small.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), "dark");
  await small.locator("#theme").click();
  assert.equal(await theme(), "light");
  await small.reload();
  await small.locator(".link.open").waitFor();
  assert.equal(await theme(), "light");
  await phone.close();
});

check("a result of compare is drawn as its report draws it", async () => {
  const report = join(daemon.dir, "result.html");
  const flags = ["compare", "--cluster", "2xv100:4", "--workload", "synthetic:jobs=60,load=0.9", "--policy", "fifo", "--policy", "las", "--seeds", "1"];
  const done = spawnSync(join(BUILD, "berth"), [...flags, "--report", report, "--json"], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  const json = join(daemon.dir, "result.json");
  writeFileSync(json, done.stdout);
  writeFileSync(join(daemon.dir, "other.json"), "{}");
  await go("#/study");
  const input = page.locator("input[type=file]");
  await input.setInputFiles(join(daemon.dir, "other.json"));
  await page.locator(".toast.bad").waitFor();
  await input.setInputFiles(json);
  await page.locator(".study .figures").first().waitFor();
  await input.setInputFiles(report);
  await page.locator(".study .gantt canvas").waitFor();
  const heads = (opened) => opened.locator("main h2").allInnerTexts();
  const alone = await context.newPage();
  await alone.goto(`file://${report}`);
  await alone.locator(".gantt canvas").waitFor();
  assert.deepEqual(await heads(page), await heads(alone));
  await alone.close();
});

check("nothing left loopback, no script failed, and the script is small", async () => {
  const own = [...origins, new URL(daemon.url()).origin];
  const foreign = requests.filter((url) => !own.some((origin) => url.startsWith(`${origin}/`)) && !url.startsWith("file://") && !url.startsWith("data:"));
  assert.deepEqual(foreign, []);
  assert.deepEqual(wrong, []);
  const bytes = gzipSync(readFileSync(join(BUILD, "web", "app.js"))).length;
  assert.ok(bytes < 300_000, `${bytes} bytes, compressed`);
});

test("the pictures in the docs can be drawn again", { skip: process.env.BERTH_SOAK ? !"pictures".includes(only) : "slow; make soak" }, () => {
  const script = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "dev", "pictures.mjs");
  const out = join(daemon.dir, "pictures");
  const done = spawnSync(process.execPath, [script, out, join(BUILD, "web")], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  for (const name of ["now", "now-dark", "job", "cluster", "ledger", "phone"]) assert.ok(statSync(join(out, `${name}.png`)).size > 20_000, name);
});

// Whatever came before: nobody is left behind.
test("all is put away", async () => {
  await browser.close();
  await daemon.wipe();
});
