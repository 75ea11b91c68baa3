// bench.mjs - how the dashboard does under load: node bench.mjs   (needs Chromium; minutes)
//
//   first paint with 10,000 jobs waiting, as the browser measures it
//   1,000 events a second: the longest task on the page's thread, and the longest frame
//   20 open dashboards: how long decisions take, and submissions, with and without them
//
// Figures depend on the machine and on what else it does; nothing here is a test.

import { readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { BUILD, Daemon, openBrowser, sleep } from "./test/browser/scene.mjs";

const say = (name, value, unit) => console.log(`${name.padEnd(58)} ${String(Math.round(value * 100) / 100).padStart(10)} ${unit}`);
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
const held = (count) => ({ jobs: Array.from({ length: count }, (_, i) => ({ command: ["true"], cwd: "/", gpus: 1, hold: true, name: `job-${i}`, env: {} })) });

async function session(daemon) {
  const url = new URL(daemon.url());
  const answer = await fetch(`${url.origin}/v1/session`, { method: "POST", body: JSON.stringify({ token: url.hash.split("=")[1] }) });
  return { origin: url.origin, headers: { Authorization: `Bearer ${(await answer.json()).session}` } };
}

async function firstPaint(browser, daemon) {
  for (let i = 0; i < 4; i++) await daemon.ask("POST", "/v1/jobs", held(2500));
  const { origin, headers } = await session(daemon);
  const asked = performance.now();
  const text = await (await fetch(`${origin}/v1/snapshot`, { headers })).text();
  say("snapshot of 10,000 jobs", performance.now() - asked, "ms");
  say("its size", text.length / 1e6, "MB");
  const paints = [], rows = [];
  for (let i = 0; i < 5; i++) {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    await page.goto(daemon.url());
    await page.locator(".list-row").first().waitFor();
    rows.push(await page.evaluate(() => performance.now()));
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
    await page.context().close();
  }
  say("first paint with 10,000 jobs, median of 5", median(paints), "ms");
  say("the table filled (as seen by the driver), median of 5", median(rows), "ms");
}

async function manyEvents(browser, daemon) {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  await page.goto(daemon.url());
  await page.locator(".list-row").first().waitFor();
  await sleep(2);
  await page.evaluate(() => {
    const seen = (window.seen = { tasks: [], frame: 0, frames: 0 });
    new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ["longtask"] });
    let last = performance.now();
    const step = (now) => {
      seen.frame = Math.max(seen.frame, now - last);
      seen.frames++;
      last = now;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  const before = (await daemon.ask("GET", "/v1/snapshot")).seq;
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline"] });
  const from = performance.now();
  for (let i = 0; i < 40; i++) {
    const next = from + 250 * (i + 1);
    await daemon.ask("POST", "/v1/jobs", held(250));
    await sleep(Math.max(0, next - performance.now()) / 1000);
  }
  const seconds = (performance.now() - from) / 1000;
  const events = (await daemon.ask("GET", "/v1/snapshot")).seq - before;
  await sleep(1);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const main = traceEvents.find((event) => event.name === "thread_name" && event.args.name === "CrRendererMain" && traceEvents.some((one) => one.pid === event.pid && one.name === "TimerFire"));
  const tasks = traceEvents.filter((event) => /RunTask$/.test(event.name) && event.tid === main?.tid && event.pid === main?.pid);
  const seen = await page.evaluate(() => window.seen);
  say("events per second, for 10 s, 10,000 jobs there before", events / seconds, "1/s");
  say("tasks of more than 50 ms on the page", seen.tasks.length, "");
  say("the longest of them, by the clock", Math.max(0, ...seen.tasks), "ms");
  say("the longest task, in processor time", Math.max(0, ...tasks.map((task) => (task.tdur ?? 0) / 1000)), "ms");
  say("frames per second meanwhile", seen.frames / (seconds + 1), "1/s");
  await page.context().close();
}

/** Somebody who looks at the dashboard, as far as berthd is concerned. */
async function dashboard(daemon) {
  const { origin, headers } = await session(daemon);
  const { seq } = await (await fetch(`${origin}/v1/snapshot`, { headers })).json();
  return new Promise((resolve) => {
    const call = get(`${origin}/v1/events`, { headers: { ...headers, "Last-Event-ID": String(seq) } }, (answer) => {
      answer.resume();
      resolve(() => call.destroy());
    });
    call.on("error", () => undefined);
  });
}

async function decisions(daemon) {
  const times = [];
  for (let i = 0; i < 150; i++) {
    const asked = performance.now();
    await daemon.ask("POST", "/v1/jobs", { command: ["true"], cwd: "/", gpus: 1, env: {} });
    times.push(performance.now() - asked);
    await sleep(0.01);
  }
  return median(times);
}

async function manyDashboards() {
  const figures = { with: [], without: [] };
  for (let round = 0; round < 6; round++) {
    const daemon = await new Daemon("--fake-gpus", "v100:4").start();
    const many = round % 2 === 0;
    const ends = many ? await Promise.all(Array.from({ length: 20 }, () => dashboard(daemon))) : [];
    const time = await decisions(daemon);
    const metrics = await daemon.ask("GET", "/metrics");
    const decide = (share) => 1e6 * Number(new RegExp(`berth_decision_seconds\\{share="${share}"\\} (\\S+)`).exec(metrics)?.[1]);
    figures[many ? "with" : "without"].push({ time, half: decide("0.5"), most: decide("0.99") });
    ends.forEach((end) => end());
    await daemon.wipe();
  }
  for (const [who, words] of [["without", "no dashboard"], ["with", "20 dashboards"]]) {
    say(`a submission with ${words} open, median`, median(figures[who].map(({ time }) => time)), "ms");
    say(`a decision with ${words} open, median`, median(figures[who].map(({ half }) => half)), "us");
    say(`a decision with ${words} open, 99 of 100`, median(figures[who].map(({ most }) => most)), "us");
  }
}

const script = readFileSync(join(BUILD, "web", "app.js"));
say("script, compressed", gzipSync(script).length / 1000, "kB");
say("script", script.length / 1000, "kB");
const browser = await openBrowser();
const daemon = await new Daemon("--fake-gpus", "v100:4").start();
try {
  await firstPaint(browser, daemon);
  await manyEvents(browser, daemon);
} finally {
  await browser.close();
  await daemon.wipe();
}
await manyDashboards();
