// curves.ts - lines over a number, with the band of their spread; published ones as diamonds.

import type { LineChart, Traced } from "../reproduction";
import { numberAxis } from "./axes";
import { mark, plain } from "./format";
import type { Hidden } from "./legend";
import { diamond, swatch } from "./palette";
import type { Line, Picture } from "./plot";
import { labelOf, withSpread } from "./series";

/** With more, points would hide their line. */
const POINTS_MAX = 40;

function lineOf(series: Traced, policy: number): Line {
  const { x, y } = series;
  if (series.published) return { policy, name: labelOf(series), x, y, points: "published" };
  const line: Line = { policy, name: labelOf(series), x, y, low: series.low, high: series.high };
  return x.length <= POINTS_MAX ? { ...line, points: "measured" } : line;
}

function nearest(values: readonly number[], x: number): number {
  return values.reduce((best, value) => (Math.abs(value - x) < Math.abs(best - x) ? value : best), values[0] ?? x);
}

/** The published ones last, so that their diamonds lie on top. */
export function curves(chart: LineChart, policies: readonly number[], hidden: Hidden): Picture {
  const shown = chart.series
    .map((series, i) => ({ series, policy: policies[i] ?? 0 }))
    .filter(({ policy }) => !hidden.has(policy))
    .sort((a, b) => Number(a.series.published) - Number(b.series.published));
  const all = chart.series;
  const known = [...new Set(all.flatMap((series) => series.x))];
  const values = all.flatMap((series) => [...series.y, ...series.low, ...series.high]);
  const x = numberAxis({ label: chart.x_label, values: known, log: chart.log_x, zero: false });
  const y = numberAxis({ label: chart.y_label, values, log: chart.log_y, zero: false });
  if (!x.log) x.range = [Math.min(...known), Math.max(...known, Math.min(...known) + 1e-9)];
  return {
    title: `${chart.title}: ${chart.y_label} over ${chart.x_label}`,
    lines: shown.map(({ series, policy }) => lineOf(series, policy)),
    x,
    y,
    stepped: false,
    at: (at) => `${chart.x_label} ${mark(at)}`,
    value: plain,
    snap: (at) => nearest(known, at),
    rows: (at) =>
      shown.map(({ series, policy }) => ({
        mark: series.published ? diamond(policy) : swatch(policy),
        name: labelOf(series),
        value: series.x.includes(at) ? withSpread(series, series.x.indexOf(at)) : "–",
      })),
  };
}
