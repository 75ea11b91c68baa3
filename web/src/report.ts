// report.ts - the static report: read the data in the page, draw what they are about.

import { readReport } from "./data";
import { fields } from "./json";
import { h } from "./parts/dom";
import { lastLine } from "./parts/frame";
import { readReproduction } from "./reproduction";
import { comparison } from "./views/comparison";
import { reproduction } from "./views/reproduction";

interface Drawn {
  title: string;
  version: string;
  parts: HTMLElement[];
}

function compare(value: unknown): Drawn {
  const report = readReport(value);
  return { title: report.title, version: report.version, parts: comparison(report) };
}

function reproduce(value: unknown): Drawn {
  const study = readReproduction(value);
  return { title: study.title, version: study.version, parts: reproduction(study) };
}

function draw(json: string): Drawn {
  const value = JSON.parse(json) as unknown;
  const kind = fields(value)["kind"];
  if (kind === "reproduce") return reproduce(value);
  if (kind === undefined || kind === "compare") return compare(value);
  throw new Error("this page knows nothing of its kind");
}

const page = document.getElementById("page") ?? document.body;
try {
  const { title, version, parts } = draw(document.getElementById("data")?.textContent ?? "");
  document.title = `${title} – Berth`;
  page.replaceChildren(...parts, lastLine(version));
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  page.replaceChildren(h("p", { class: "failed" }, `This report cannot be shown: ${reason}.`));
}
