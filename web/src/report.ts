// report.ts - the static report: read the data in the page, draw the comparison.

import { readReport } from "./data";
import { h } from "./parts/dom";
import { comparison } from "./views/comparison";

const page = document.getElementById("page") ?? document.body;
try {
  const report = readReport(document.getElementById("data")?.textContent ?? "");
  document.title = `${report.title} – Berth`;
  page.replaceChildren(...comparison(report));
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  page.replaceChildren(h("p", { class: "failed" }, `This report cannot be shown: ${reason}.`));
}
