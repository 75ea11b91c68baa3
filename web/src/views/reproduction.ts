// reproduction.ts - a published study done again: what was printed, what came out, how it was done.

import type { Reproduction } from "../reproduction";
import { Cell } from "../parts/cell";
import { chartCard } from "../parts/chart";
import { h } from "../parts/dom";
import { opening, section, seedsInWords } from "../parts/frame";
import type { Hidden } from "../parts/legend";
import { COLOURS } from "../parts/palette";
import { regretTable } from "../parts/regret";
import { results, tally } from "../parts/results";
import { places } from "../parts/series";
import { setup } from "../parts/setup";

function facts(study: Reproduction): [string, string][] {
  const rows: [string, string][] = [];
  const count = study.seeds.length;
  if (study.paper !== "") rows.push(["Paper", study.paper]);
  if (count > 0) rows.push([count === 1 ? "Seed" : "Seeds", seedsInWords(study.seeds) + (count > 3 ? ` (${count})` : "")]);
  if (study.quick) rows.push(["Extent", "quick: smaller than the full study, so expect rougher figures"]);
  return rows;
}

function charts(study: Reproduction): HTMLElement {
  const hidden = new Cell<Hidden>(new Set());
  const colours = places(study.charts.map((chart) => chart.series.map((series) => series.name)), COLOURS);
  return h("div", { class: "grid two" }, ...study.charts.map((chart) => chartCard(chart, colours, hidden)));
}

export function reproduction(study: Reproduction): HTMLElement[] {
  const finding = tally(study.rows);
  const parts: (HTMLElement | false)[] = [
    opening({
      title: study.title,
      under: finding !== "" && h("p", { class: "finding" }, finding),
      facts: facts(study),
      command: study.command,
    }),
    study.regret !== undefined && section(study.regret.title, study.regret.y_label, regretTable(study.regret)),
    study.rows.length > 0 && section("Published and measured", "", results(study.rows)),
    study.setup.length > 0 && section("The set-up and where it comes from", "", setup(study.setup)),
    study.charts.length > 0 && section("Charts", "", charts(study)),
    study.notes.length > 0 &&
      section("Notes", "", h("ul", { class: "notes" }, ...study.notes.map((note) => h("li", {}, note)))),
  ];
  return parts.filter((part): part is HTMLElement => part !== false);
}
