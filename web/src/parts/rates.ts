// rates.ts - how fast a job runs, or would run, on each type of accelerator, and what that rests on.

import type { Rate } from "../schema";
import { h } from "./dom";
import { plain } from "./format";

/** What is expected, and between which bounds four jobs in five lie. */
function expected({ steps_per_s, low, high }: Rate): string {
  if (steps_per_s === undefined) return "–";
  const range = low === undefined || high === undefined ? "" : ` (${plain(low)} to ${plain(high)})`;
  return `${plain(steps_per_s)} steps/s${range}`;
}

export function ratesOf(rates: readonly Rate[]): HTMLElement {
  const rows = rates.map((rate) => h("tr", {}, h("th", { scope: "row" }, rate.type), h("td", {}, expected(rate)), h("td", {}, rate.basis)));
  return h("table", { class: "rates" }, h("tbody", {}, ...rows));
}
