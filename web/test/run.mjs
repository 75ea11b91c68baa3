// run.mjs - the tests of the parts, which are TypeScript: bundled, then run by Node.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "berth-web-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const tests = readdirSync(here).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => join(here, name)),
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: scratch,
  outExtension: { ".js": ".mjs" },
  logLevel: "warning",
});
process.env.BERTH_WEB = dirname(here);
for (const name of tests) await import(pathToFileURL(join(scratch, name.replace(/ts$/, "mjs"))).href);
