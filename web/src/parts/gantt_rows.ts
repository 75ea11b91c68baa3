// gantt_rows.ts - the rows of a Gantt chart: a row is a GPU; a node's rows stand together.

import type { Gantt, Span } from "../data";
import { piecesOf, type Piece } from "./lanes";

const ROWS_TALL = 704;
const ROW_LEAST = 8;
const SHARED_ROW_LEAST = 17; // both halves have room for a number

const NAMED_ROW_LEAST = 13; // each has a name of its own

export interface Rows {
  gantt: Gantt;
  byGpu: Span[][]; // by start
  shared: Map<Span, Piece[]>; // of those who are not always alone
  tops: number[]; // of each row, in pixels
  height: number; // of a row
  bottom: number; // of all rows
  gutter: number; // width of the names on the left
  live?: Now; // of the dashboard; a report has none
}

/** A chart that goes on: where the present is, clock times, words at the ends of spans, spans that are not certain. */
export interface Now {
  at: number;
  clock(time: number, step: number): string;
  notes: ReadonlyMap<Span, string>;
  fades: ReadonlyMap<Span, Fade>;
}

/** It fades in or out; in half of the possible futures it has started or ended at 'middle'. */
export interface Fade {
  fade: "in" | "out";
  middle: number | undefined;
}

export function nodeOf(gpu: string): string {
  const slash = gpu.lastIndexOf("/");
  return slash < 0 ? gpu : gpu.slice(0, slash);
}

/** Rows that are about so tall together. */
export function layOut(gantt: Gantt, tall = ROWS_TALL): Rows {
  const byGpu: Span[][] = gantt.gpus.map(() => []);
  for (const span of gantt.spans) byGpu[span.gpu]?.push(span);
  const shared = new Map<Span, Piece[]>();
  for (const spans of byGpu) {
    spans.sort((a, b) => a.start - b.start || a.job - b.job);
    for (const [span, pieces] of piecesOf(spans)) shared.set(span, pieces);
  }
  const least = shared.size > 0 ? SHARED_ROW_LEAST : ROW_LEAST;
  const height = Math.max(least, Math.min(24, Math.floor(tall / gantt.gpus.length)));
  const tops: number[] = [];
  const waiting = gantt.waiting ?? Infinity;
  let y = 2;
  gantt.gpus.forEach((gpu, i) => {
    if (i === waiting) y += 9;
    else if (i > 0 && i < waiting && nodeOf(gpu) !== nodeOf(gantt.gpus[i - 1] ?? "")) y += 5;
    tops.push(y);
    y += i >= waiting ? Math.max(height, NAMED_ROW_LEAST) : height;
  });
  const longest = Math.max(...gantt.gpus.map((gpu) => Math.min(gpu.length, 14)));
  return { gantt, byGpu, shared, tops, height, bottom: y + 2, gutter: Math.max(30, 10 + longest * 6.2) };
}

/**
 * A piece narrower than a pixel, where another was painted already: up to 'painted' in each lane.
 * A wider one is always painted, as the job beside it may have been painted further on.
 */
export function isCovered(left: number, right: number, lanes: readonly number[], painted: readonly number[]): boolean {
  return right - left < 1 && lanes.every((lane) => right < (painted[lane] ?? 0));
}
