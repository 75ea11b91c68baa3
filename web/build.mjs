// build.mjs - from src/ to what is embedded in the programs: node build.mjs OUT_DIR [DEPFILE]
//
//   report.html                 the static report: one page that needs nothing else
//   app.html, app.js, app.css   the dashboard, served by berthd
//
// Checks the types once and bundles script and style of both.  The policy in the report's
// head names the hashes of exactly these two, so that nothing else runs and no request is
// made, whatever the data say; berthd sends the dashboard's policy with its files.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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

const [out, depfile] = process.argv.slice(2);
if (!out) {
  process.stderr.write("usage: node build.mjs OUT_DIR [DEPFILE]\n");
  process.exit(2);
}
const source = (name) => join(here, "src", name);
const licence = readFileSync(find("uplot/package.json").replace(/package\.json$/, "LICENSE"), "utf8").trim();

async function report() {
  const script = await bundle("report.ts");
  const style = await bundle("report.css");
  const parts = {
    "@POLICY@": `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`,
    "@LICENCE@": licence,
    "@STYLE@": style,
    "@SCRIPT@": script,
  };
  const page = readFileSync(source("report.html"), "utf8").replace(
    /@(POLICY|LICENCE|STYLE|SCRIPT)@/g,
    (marker) => parts[marker],
  );
  if (page.split("@DATA@").length !== 2) {
    process.stderr.write("the marker for the data must stand in the page exactly once\n");
    process.exit(1);
  }
  writeFileSync(join(out, "report.html"), page);
}

async function dashboard() {
  const script = await bundle("app.ts");
  writeFileSync(join(out, "app.js"), `/* The charts are drawn by uPlot:\n\n${licence}\n*/\n${script}\n`);
  writeFileSync(join(out, "app.css"), (await bundle("app.css")) + "\n");
  for (const name of ["app.html", "icon.svg"]) copyFileSync(source(name), join(out, name));
}

/** Every file that may matter, for whoever decides whether to build again. */
function sources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sources(path) : [path];
  });
}

checkTypes();
mkdirSync(out, { recursive: true });
await report();
await dashboard();
if (depfile) {
  const names = [...sources(join(here, "src")), join(here, "package-lock.json"), join(here, "tsconfig.json")];
  writeFileSync(depfile, `report.html: ${names.map((name) => name.replace(/ /g, "\\ ")).join(" ")}\n`);
}
