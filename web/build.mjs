// build.mjs - from src/ to one page that needs nothing else: node build.mjs OUT.html
//
// Checks the types, bundles script and style, and puts both into the page.  The policy
// in its head names the hashes of exactly these two, so that nothing else runs and no
// request is made, whatever the data say.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const find = createRequire(import.meta.url).resolve;

function checkTypes() {
  try {
    execFileSync(process.execPath, [find("typescript/lib/tsc.js"), "--noEmit", "-p", here], {
      stdio: ["ignore", "pipe", "inherit"],
    });
  } catch (error) {
    process.stderr.write(error.stdout ?? String(error));
    process.exit(1);
  }
}

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2021"],
    charset: "utf8",
    legalComments: "none", // the licence stands in the page once, in full
    logLevel: "warning",
  });
  // An end tag inside a string would end the element that holds it.
  return result.outputFiles[0].text.trim().replace(/<\/(script|style)/gi, "<\\/$1");
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const out = process.argv[2];
if (!out) {
  process.stderr.write("usage: node build.mjs OUT.html\n");
  process.exit(2);
}
checkTypes();
const script = await bundle("report.ts");
const style = await bundle("report.css");
const licence = readFileSync(find("uplot/package.json").replace(/package\.json$/, "LICENSE"), "utf8");
const parts = {
  "@POLICY@": `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`,
  "@LICENCE@": licence.trim(),
  "@STYLE@": style,
  "@SCRIPT@": script,
};
const page = readFileSync(join(here, "src", "report.html"), "utf8").replace(
  /@(POLICY|LICENCE|STYLE|SCRIPT)@/g,
  (marker) => parts[marker],
);
if (page.split("@DATA@").length !== 2) {
  process.stderr.write("the marker for the data must stand in the page exactly once\n");
  process.exit(1);
}
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
