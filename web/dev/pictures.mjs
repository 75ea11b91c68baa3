// pictures.mjs - the pictures in docs/pictures, from a made-up cluster: node dev/pictures.mjs OUT_DIR
//
// The same seed, clock and size: the same pictures.  Serves the page's built files and the
// scene's words to a real browser; no berthd is needed.

import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findChromium, openBrowser } from "../test/browser/scene.mjs";
import { forecastWords, makeScene, snapshotOf, storyOf, trendsOf } from "./scene.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "..", "docs", "pictures");
const built = process.argv[3] ?? join(here, "..", "..", "build", "web");
if (!findChromium()) {
  console.log("SKIP: no Chromium here (Debian: chromium)");
  process.exit(77);
}

const scene = makeScene();
const told = storyOf(scene);
const snapshot = snapshotOf(scene);
const FILES = { "/": ["app.html", "text/html"], "/app.js": ["app.js", "text/javascript"], "/app.css": ["app.css", "text/css"], "/icon.svg": ["icon.svg", "image/svg+xml"] };
const id = told.job.id;
const WORDS = {
  "/v1/session": { session: "x", until: 0 },
  "/v1/snapshot": snapshot,
  "/v1/trends": trendsOf(scene),
  "/v1/forecast": forecastWords(),
  "/v1/ledger": { entries: scene.entries },
  "/v1/jobs": { jobs: snapshot.jobs },
  [`/v1/jobs/${id}`]: told.job,
  [`/v1/jobs/${id}/story`]: told.story,
  [`/v1/jobs/${id}/why`]: told.why,
};

const server = createServer((request, reply) => {
  const path = request.url.split("?")[0];
  if (FILES[path]) return reply.writeHead(200, { "Content-Type": FILES[path][1] }).end(readFileSync(join(built, FILES[path][0])));
  if (path === "/v1/events") return reply.writeHead(200, { "Content-Type": "text/event-stream" }).write(":\n\n");
  if (path.endsWith("/log")) return reply.writeHead(200).write(told.log);
  const words = WORDS[path];
  reply.writeHead(words ? 200 : 404, { "Content-Type": "application/json" }).end(JSON.stringify(words ?? { error: "no" }));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await openBrowser();
mkdirSync(out, { recursive: true });

const SHOTS = [
  ["now", "now", "light", 1280, 860],
  ["now-dark", "now", "dark", 1280, 860],
  ["job", `job/${id}`, "light", 1280, 900],
  ["cluster", "cluster", "light", 1280, 980],
  ["ledger", "ledger", "light", 1280, 700],
  ["phone", "now", "light", 390, 780],
];
for (const [name, hash, colorScheme, width, height] of SHOTS) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, timezoneId: "UTC", locale: "en-GB" });
  const page = await context.newPage();
  await page.clock.install({ time: scene.NOW * 1000 - 1000 });
  await page.clock.pauseAt(scene.NOW * 1000); // from here on it goes when it is told to
  const looked = page.waitForResponse(/snapshot/);
  await page.goto(`${origin}/#token=00`);
  await page.locator(".top-bar").waitFor();
  await (await looked).finished();
  await new Promise((resolve) => setTimeout(resolve, 200));
  await page.evaluate((to) => (location.hash = `#/${to}`), hash);
  if (hash === "now") await page.getByRole("radio", { name: "1 h" }).click();
  for (let i = 0; i < 12; i++) {
    await page.clock.runFor(250);
    await new Promise((resolve) => setTimeout(resolve, 80));
  }
  await page.screenshot({ path: join(out, `${name}.png`) });
  await context.close();
}
await browser.close();
server.closeAllConnections();
server.close();
