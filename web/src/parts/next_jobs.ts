// next_jobs.ts - jobs that wait for GPUs and have a forecast; and how far ahead forecasts go.

import type { Seen, State } from "../state";
import { timeOf } from "./expected";

/** Jobs that wait for GPUs and have a forecast, the next ones first. */
export function nextOf(state: State): Seen[] {
  const when = ({ expected_start: start }: Seen): number => timeOf(start?.p50) ?? timeOf(start?.p10) ?? Infinity;
  const isNext = (job: Seen): boolean => (job.state === "PENDING" || job.state === "HELD") && timeOf(job.expected_start?.p10) !== undefined && !state.occupancy.pending.has(job.id);
  return [...state.jobs.values()].filter(isNext).sort((a, b) => when(a) - when(b) || a.id - b.id);
}

/** The end of the last interval that is drawn; undefined: there is no forecast. */
export function lastExpected(state: State, next: readonly Seen[]): number | undefined {
  const ends = [...state.occupancy.held.keys()].map((id) => state.jobs.get(id)?.expected_end?.p90);
  const starts = next.flatMap(({ expected_start: start, expected_end: end }) => [start?.p10, start?.p90, end?.p90]);
  const times = [...ends, ...starts].map(timeOf).filter((time) => time !== undefined);
  return times.length > 0 ? Math.max(...times) : undefined;
}
