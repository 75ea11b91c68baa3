// chart.ts - one chart of a study on its card: title, legend, picture, and the numbers in it.

import type { Chart, Drawn } from "../reproduction";
import { bars, leastWidth } from "./bars";
import type { Cell } from "./cell";
import { curves } from "./curves";
import { h, styled } from "./dom";
import { legendOf, type Entry, type Hidden } from "./legend";
import { numbersOf } from "./numbers";
import { barSwatch, diamond, swatch } from "./palette";
import { Plot } from "./plot";
import { labelOf, subject } from "./series";

const HEIGHT = 300;

/** From here on, a chart gets the page's whole width. */
const WIDE = 540;

function entryOf(chart: Chart, series: Drawn, policy: number): Entry {
  const mark = series.published ? diamond(policy) : chart.kind === "bars" ? barSwatch(policy) : swatch(policy);
  return { policy, name: labelOf(series), mark };
}

export function chartCard(chart: Chart, colours: ReadonlyMap<string, number>, hidden: Cell<Hidden>): HTMLElement {
  const plot = new Plot(HEIGHT);
  const policies = chart.series.map((series) => colours.get(subject(series.name)) ?? 0);
  const entries = chart.series.map((series, i) => entryOf(chart, series, policies[i] ?? 0));
  const least = chart.kind === "bars" ? leastWidth(chart) : 0;
  hidden.watch((set) => plot.draw(chart.kind === "bars" ? bars(chart, policies, set) : curves(chart, policies, set)));
  styled(plot.element, { "min-width": `${least}px` });
  return h(
    "figure",
    { class: least > WIDE ? "card wide" : "card" },
    h("figcaption", {}, h("h3", {}, chart.title)),
    entries.length > 1 || chart.series.some((series) => series.published) ? legendOf(entries, hidden) : undefined,
    h("div", { class: "across" }, plot.element),
    numbersOf(chart),
  );
}
