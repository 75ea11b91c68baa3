// series.ts - the series of a study's charts: their names, their colours, their values in words.

import type { Drawn } from "../reproduction";
import { plain } from "./format";

/** Whom a series is about: its name without "(published)" behind it. */
export function subject(name: string): string {
  return name.replace(/[\s,(–-]*published\)?$/i, "").trim() || name;
}

/** A name for the legend that says so if the values are the paper's. */
export function labelOf(series: Drawn): string {
  return series.published ? `${subject(series.name)}, published` : series.name;
}

/** From … to, where a value has a spread. */
export function spreadOf(series: Drawn, at: number): string {
  const [low = NaN, high = NaN] = [series.low[at], series.high[at]];
  return high > low ? `${plain(low)} … ${plain(high)}` : "";
}

/** A value with its spread behind it. */
export function withSpread(series: Drawn, at: number): string {
  const value = plain(series.y[at] ?? NaN);
  const spread = spreadOf(series, at);
  return spread === "" ? value : `${value} (${spread})`;
}

/**
 * Which place in the palette belongs to which name: the same in all charts of a page.  Names
 * that share a chart get different colours as far as there are enough.
 */
export function places(charts: readonly (readonly string[])[], colours: number): Map<string, number> {
  const subjects = charts.map((names) => [...new Set(names.map(subject))]);
  const result = new Map<string, number>();
  const taken = new Set<number>();
  for (const name of new Set(subjects.flat())) {
    const beside = subjects.filter((names) => names.includes(name)).flat();
    const near = new Set(beside.map((other) => (result.get(other) ?? NaN) % colours));
    const free = Array.from({ length: taken.size + colours }, (_, i) => i).filter((place) => !taken.has(place));
    const place = free.find((one) => !near.has(one % colours)) ?? free[0] ?? 0;
    taken.add(place);
    result.set(name, place);
  }
  return result;
}
