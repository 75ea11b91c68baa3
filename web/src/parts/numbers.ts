// numbers.ts - the numbers behind a chart, folded away below it: for readers without the picture.

import type { Chart, Drawn } from "../reproduction";
import { h } from "./dom";
import { mark, plain } from "./format";
import { labelOf, spreadOf } from "./series";

/** The rows of the table: the groups, or every x that any series has. */
function places(chart: Chart): { name: string; of(series: Drawn): number }[] {
  if (chart.kind === "bars") return chart.groups.map((name, i) => ({ name, of: () => i }));
  const xs = [...new Set(chart.series.flatMap((series) => series.x))].sort((a, b) => a - b);
  const indexes = new Map<Drawn, Map<number, number>>(
    chart.series.map((series) => [series, new Map(series.x.map((x, i) => [x, i]))]),
  );
  return xs.map((x) => ({ name: mark(x), of: (series) => indexes.get(series)?.get(x) ?? -1 }));
}

function cell(series: Drawn, at: number): HTMLElement {
  return h("td", {}, plain(series.y[at] ?? NaN), h("small", {}, spreadOf(series, at)));
}

function table(chart: Chart): HTMLElement {
  const corner = chart.kind === "bars" ? "" : chart.x_label;
  const heads = chart.series.map((series) => h("th", { scope: "col" }, labelOf(series)));
  const rows = places(chart).map(({ name, of }) => {
    const cells = chart.series.map((series) => cell(series, of(series)));
    return h("tr", {}, h("th", { scope: "row" }, name), ...cells);
  });
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `${chart.title}: numbers` },
    h(
      "table",
      { class: "figures numbers" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, corner), ...heads)),
      h("tbody", {}, ...rows),
    ),
  );
}

/** Made when first opened: a page of twelve charts need not hold twelve tables. */
export function numbersOf(chart: Chart): HTMLElement {
  const details = h("details", {}, h("summary", {}, "Numbers"));
  details.addEventListener("toggle", () => details.append(table(chart)), { once: true });
  return details;
}
