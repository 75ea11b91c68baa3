// scene.mjs - a real berthd in a scratch folder and a real browser, for the tests of the pages.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
export const BUILD = process.env.BERTH_BUILD || join(root, "build");
export const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** Debian's Chromium, or undefined. */
export function findChromium() {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const folders = (process.env.PATH ?? "").split(":");
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

export function openBrowser() {
  return chromium.launch({
    executablePath: findChromium(),
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--disable-background-networking", "--force-color-profile=srgb"],
  });
}

/** Asks until it holds, for so many seconds. */
export async function until(what, holds, seconds = 15) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const answer = await holds();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(0.05);
  }
}

export class Daemon {
  constructor(...flags) {
    this.dir = mkdtempSync(join(tmpdir(), "berth-web-"));
    this.flags = flags.length > 0 ? flags : ["--fake-gpus", "v100:4"];
  }

  async start() {
    this.process = spawn(join(BUILD, "berthd"), ["--state", join(this.dir, "s"), ...this.flags], { stdio: ["ignore", "pipe", openSync(join(this.dir, "berthd.log"), "a")] });
    this.process.once("exit", (status, signal) => {
      if (status || (signal && signal !== "SIGKILL" && signal !== "SIGTERM"))
        console.error(`# berthd ended: ${status ?? signal}\n${readFileSync(join(this.dir, "berthd.log"), "utf8")}`);
    });
    const lines = createInterface({ input: this.process.stdout });
    const line = await new Promise((resolve) => lines.once("line", resolve));
    this.socket = line.split(" ready on ")[1];
    return this;
  }

  /** It stops; jobs go on. */
  async stop(signal = "SIGTERM") {
    const over = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await over;
  }

  async wipe() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const over = new Promise((resolve) => this.process.once("exit", resolve));
      await this.ask("DELETE", "/v1/server?kill=true").catch(() => this.process.kill("SIGKILL"));
      await over;
    }
    rmSync(this.dir, { recursive: true, force: true });
  }

  ask(method, path, body) {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socket, method, path, headers: { Host: "berth" } }, (answer) => {
        let text = "";
        answer.on("data", (bytes) => (text += bytes));
        answer.on("end", () => resolve((answer.headers["content-type"] ?? "").includes("json") ? JSON.parse(text) : text));
      });
      call.on("error", reject);
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** As people do it: the command line. */
  berth(...words) {
    const done = spawnSync(join(BUILD, "berth"), words, { env: { ...process.env, BERTH_ADDR: this.socket }, cwd: this.dir, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`berth ${words.join(" ")}: ${done.stderr}`);
    return done.stdout.trim();
  }

  submit(...words) {
    return Number(this.berth("submit", "--parsable", ...words));
  }

  url() {
    return this.berth("ui", "--print-url");
  }
}
