// lanes.ts - two jobs on one GPU at the same time: each has half of the row while it lasts.

import type { Span } from "../data";

/** A stretch of a span: alone on the GPU, or in one of its two lanes. */
export interface Piece {
  from: number;
  to: number;
  lane: number | undefined;
  beside: number | undefined; // the other job
}

function cut(span: Span, others: readonly Span[]): Piece[] {
  const pieces: Piece[] = [];
  const add = (from: number, to: number, other?: Span): void => {
    if (to > from) pieces.push({ from, to, lane: other && span.lane, beside: other?.job });
  };
  let at = span.start;
  for (const other of others) {
    add(at, other.start);
    const to = Math.min(span.end, other.end);
    add(Math.max(at, other.start), to, other);
    at = Math.max(at, to);
  }
  add(at, span.end);
  return pieces;
}

/** Pieces of the spans of one GPU that share it; who is always alone has none. */
export function piecesOf(spans: readonly Span[]): Map<Span, Piece[]> {
  const pieces = new Map<Span, Piece[]>();
  const lanes = [0, 1].map((lane) => spans.filter((span) => span.lane === lane).sort((a, b) => a.start - b.start));
  lanes.forEach((own, lane) => {
    const others = lanes[1 - lane] ?? [];
    let first = 0; // of the others that may still be there
    for (const span of own) {
      while ((others[first]?.end ?? Infinity) <= span.start) first++;
      let last = first;
      while ((others[last]?.start ?? Infinity) < span.end) last++;
      if (last > first) pieces.set(span, cut(span, others.slice(first, last)));
    }
  });
  return pieces;
}

const PERHAPS = 7;

/**
 * The second of two jobs that share a GPU gets the other half of its row.  Spans are by start; what is
 * planned of a job stays in the lane of what it did.
 */
export function assignLanes(spans: readonly Span[], planned: number): void {
  const last = new Map<number, [Span?, Span?]>(); // by GPU: the newest of each lane
  for (const span of spans) {
    const lanes = last.get(span.gpu) ?? [];
    last.set(span.gpu, lanes);
    const [first, second] = lanes;
    const isTaken = first !== undefined && span.start < first.end - 1e-6;
    const goesOn = (span.ended === planned || span.ended === PERHAPS) && second?.job === span.job && Math.abs(span.start - second.end) < 1e-6;
    span.lane = isTaken || goesOn ? 1 : 0;
    lanes[span.lane] = span;
  }
}
