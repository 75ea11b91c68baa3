// calibration.ts - how many of the past forecasts held, by kind: a table with a bar for each.

import type { Forecast, ForecastQuality } from "../schema";
import { h, styled } from "./dom";
import { fixed, plain, span } from "./format";
import { percent } from "./sharing";

const WANTED = 0.8; // an interval is to hold so often

const METHODS = { played: "played forward", baseline: "from earlier waits" };

/** How much of it held, beside how much should. */
function coverageCell(coverage: number | undefined): HTMLElement {
  if (coverage === undefined) return h("td", { class: "absent" }, "–");
  const fill = styled(h("span", { class: "fill" }), { width: `${100 * coverage}%` });
  const wanted = styled(h("span", { class: "wanted" }), { left: `${100 * WANTED}%` });
  return h("td", {}, h("span", { class: "bar", "aria-hidden": "true" }, fill, wanted), percent(coverage));
}

function row({ policy, target, shown = "played", n = 0, coverage_80, median_abs_error_s, loss_ratio }: ForecastQuality): HTMLElement {
  const absent = h("td", { class: "absent" }, "–");
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, `${target === "start" ? "Starts" : "Ends"} under ${policy ?? ""} `, h("small", {}, METHODS[shown])),
    h("td", {}, plain(n)),
    coverageCell(coverage_80),
    median_abs_error_s === undefined ? absent : h("td", {}, span(median_abs_error_s)),
    loss_ratio === undefined ? absent.cloneNode(true) : h("td", {}, fixed(loss_ratio, 2)),
  );
}

/** In a sentence; also where there are too few. */
export function calibrationWords({ n = 0, coverage_80, median_abs_error_s, days = 14 }: Forecast["calibration"]): string {
  if (n < 1) return `How well forecasts hold is not known yet: of the last ${days} days none of a start could be compared with what happened.`;
  if (coverage_80 === undefined) return `In the last ${days} days ${plain(n)} forecasts of starts were compared with what happened, too few to tell how well they hold.`;
  const error = median_abs_error_s === undefined ? "" : `; the median error was ${span(median_abs_error_s)}`;
  return `Of ${plain(n)} forecasts of starts in the last ${days} days, ${percent(coverage_80)} held${error}. An interval is to hold four times in five.`;
}

/** Why there is no forecast, if there is none, and how earlier ones turned out. */
export function calibrationOf({ reason, calibration }: Forecast): HTMLElement {
  const kinds = calibration.kinds ?? [];
  const heads = ["Forecasts of", "Compared", "Held", "Median error", "Loss beside the baseline"].map((head) => h("th", { scope: "col" }, head));
  return h(
    "div",
    {},
    reason !== undefined && h("p", {}, `There is no forecast now: ${reason}.`),
    h("p", { class: "note" }, calibrationWords(calibration)),
    kinds.length > 0 && h("p", { class: "note" }, "A loss below 1: playing the policy forward told more than the last waits of jobs of the same size."),
    kinds.length > 0 && h("div", { class: "across" }, h("table", { class: "figures calibration" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...kinds.map(row)))),
  );
}
