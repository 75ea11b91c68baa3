// axes.ts - the axes that several charts have in common.

import type { Run } from "../data";
import { mark, moment } from "./format";
import type { Axis } from "./plot";
import { clock, even, logNumbers } from "./ticks";

/** Above this part of the highest value, an axis of lines need not begin at zero. */
const CLOSE = 0.6;

function lastOf(values: readonly number[] | undefined): number {
  return values?.[values.length - 1] ?? 0;
}

/** One time axis for all policies, shown or hidden, so that it does not jump. */
export function timeAxis(runs: readonly Run[]): Axis {
  const ends = runs.map((run) => Math.max(lastOf(run.series?.t_s), lastOf(run.ledger?.t_s)));
  return {
    label: "Time since the first submission",
    range: [0, Math.max(1, ...ends)],
    ticks: clock,
    tick: (value) => (value === 0 ? "0" : moment(value)),
  };
}

/** Room beyond the outermost values, zero included unless they are all far from it. */
function linear(min: number, max: number, zero: boolean): [number, number] {
  const from = zero || min < CLOSE * max ? Math.min(0, min) : min;
  const to = zero || max > CLOSE * min ? Math.max(0, max) : max;
  const margin = 0.06 * (to - from) || Math.abs(to) || 1;
  return [from === 0 ? 0 : from - margin, to === 0 && from < 0 ? 0 : to + margin];
}

/** The next below of 1, 2 and 5 times a power of ten. */
function roundBelow(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([5, 2].find((factor) => factor * power <= value) ?? 1);
}

export interface Wanted {
  label: string;
  values: readonly number[];
  log: boolean; // if the values allow it
  zero: boolean; // bars begin there, lines need not
}

/** For numbers that bring no unit of their own. */
export function numberAxis({ label, values, log, zero }: Wanted): Axis {
  const known = values.filter(Number.isFinite);
  const positive = known.filter((value) => value > 0);
  const common = { label, tick: mark };
  const none = positive.length === 0 || known.some((value) => value < 0 || (value === 0 && !zero));
  if (log && !none) {
    const [min, max] = [Math.min(...positive), Math.max(...positive)];
    const range: [number, number] = zero ? [roundBelow(min * 0.8), max * 1.25] : [min / 1.15, max * 1.15];
    return { ...common, range, log: true, ticks: logNumbers };
  }
  const [min, max] = known.length > 0 ? [Math.min(...known), Math.max(...known)] : [0, 1];
  return { ...common, range: linear(min, max, zero), ticks: even };
}
