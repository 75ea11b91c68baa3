// study.ts - a comparison or a reproduced study from a file, drawn by the parts of the report.

import { h, type Child } from "../parts/dom";
import { readStudy, type Study } from "../study_file";
import { comparison } from "./comparison";
import { reproduction } from "./reproduction";
import type { Site, View } from "./view";

const BYTES_MAX = 200e6;

/** Stays while one goes to another page and back. */
let shown: { name: string; study: Study } | undefined;

function draw(study: Study): HTMLElement[] {
  return study.kind === "compare" ? comparison(study.report) : study.studies.flatMap((one) => reproduction(one));
}

export function studyView(site: Site): View {
  const input = h("input", { type: "file", accept: ".json,.html", "aria-label": "A result of berth compare or reproduce" });
  const name = h("span", { class: "note" });
  const place = h("div", { class: "study" });

  function hint(): Child[] {
    return [
      h("p", {}, "A result is opened here, in this browser; it is sent nowhere."),
      h("pre", {}, "berth compare --cluster 4xv100:8 --workload jobs.csv --policy fifo --policy las --report result.html\nberth reproduce fitgpp --json > result.json"),
      h("p", { class: "note" }, "A page of --report has distributions and the Gantt chart as well, --json the figures alone. Drop the file anywhere on this page."),
    ];
  }

  function show(): void {
    name.textContent = shown?.name ?? "";
    if (!shown) return place.replaceChildren(h("div", { class: "card hint-box" }, ...hint().filter((child): child is HTMLElement => child instanceof HTMLElement)));
    place.replaceChildren(...draw(shown.study));
  }

  async function take(file: File | undefined): Promise<void> {
    if (!file) return;
    try {
      if (file.size > BYTES_MAX) throw new Error("the file is too large to be shown");
      shown = { name: file.name, study: readStudy(await file.text()) };
      show();
    } catch (error) {
      site.say(`${file.name}: ${error instanceof Error ? error.message : String(error)}.`, true);
    }
  }

  input.addEventListener("change", () => void take(input.files?.[0]));
  const element = h("div", { class: "page study-page" }, h("div", { class: "card open-card" }, h("label", { class: "file" }, "Open a result ", input), name), place);
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    void take(event.dataTransfer?.files[0]);
  });
  show();
  return { title: "Study", element, update: () => undefined, find: () => input.focus() };
}
