// expected_bars.ts - a forecast as stretches of a chart: sure ones, and those that fade in or out.
//
// From p10 to p90 it is uncertain whether a job has started or ended: the stretch fades, and has a
// mark where half of the possible futures have.

import { timeOf, type Expected } from "./expected";

export interface Stretch {
  from: number;
  to: number;
  fade: "none" | "in" | "out";
  middle: number | undefined; // p50, where it lies in the stretch
}

function stretch(from: number, to: number, fade: Stretch["fade"] = "none", middle?: number): Stretch[] {
  if (!(to > from)) return [];
  return [{ from, to, fade, middle: middle !== undefined && middle > from && middle < to ? middle : undefined }];
}

/** From 'from', when the job runs for certain, to its end. */
export function endStretches(end: Expected, from: number): Stretch[] {
  const horizon = timeOf(end.horizon) ?? from;
  const sure = Math.max(from, timeOf(end.p10) ?? horizon);
  const last = Math.max(sure, timeOf(end.p90) ?? horizon);
  return [...stretch(from, sure), ...stretch(sure, last, "out", timeOf(end.p50))];
}

/** Of a job that waits; none if its start lies beyond the horizon. */
export function startStretches(start: Expected, end: Expected | undefined, now: number): Stretch[] {
  const p10 = timeOf(start.p10);
  const p90 = timeOf(start.p90);
  if (p10 === undefined) return [];
  const first = Math.max(now, p10);
  const last = Math.max(first, p90 ?? timeOf(start.horizon) ?? first);
  const begins = stretch(first, last, "in", timeOf(start.p50));
  return end === undefined || p90 === undefined ? begins : [...begins, ...endStretches(end, last)];
}
