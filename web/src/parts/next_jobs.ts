// next_jobs.ts - jobs that wait for GPUs and have a forecast; and how far ahead forecasts go.

import type { Seen, State } from "../state";
import { timeOf } from "./expected";

export interface Next {
  jobs: Seen[]; // the next ones first
  count: number; // of all that wait and have a forecast
}

/** Jobs that wait for GPUs and have a forecast, so many at most: of ten thousand nothing is sorted. */
export function nextOf(state: State, most: number): Next {
  const first: { job: Seen; at: number }[] = [];
  let count = 0;
  for (const job of state.jobs.values()) {
    const start = job.expected_start;
    const earliest = timeOf(start?.p10);
    if (earliest === undefined || (job.state !== "PENDING" && job.state !== "HELD") || state.occupancy.pending.has(job.id)) continue;
    count++;
    const at = timeOf(start?.p50) ?? earliest;
    if (first.length === most && at >= (first[most - 1]?.at ?? Infinity)) continue;
    const place = first.findIndex((other) => at < other.at);
    first.splice(place < 0 ? first.length : place, 0, { job, at });
    if (first.length > most) first.pop();
  }
  return { jobs: first.map(({ job }) => job), count };
}

/** The end of the last interval that is drawn; undefined: there is no forecast. */
export function lastExpected(state: State, next: readonly Seen[]): number | undefined {
  const ends = [...state.occupancy.held.keys()].map((id) => state.jobs.get(id)?.expected_end?.p90);
  const starts = next.flatMap(({ expected_start: start, expected_end: end }) => [start?.p10, start?.p90, end?.p90]);
  const times = [...ends, ...starts].map(timeOf).filter((time) => time !== undefined);
  return times.length > 0 ? Math.max(...times) : undefined;
}
