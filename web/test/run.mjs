// run.mjs - the tests of the parts, which are TypeScript: bundled, then run by Node.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "berth-web-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const outfile = join(scratch, "parts.test.mjs");
await build({
  entryPoints: [join(here, "parts.test.ts")],
  bundle: true,
  platform: "node",
  format: "esm",
  outfile,
  logLevel: "warning",
});
await import(pathToFileURL(outfile).href);
