// price.ts - what a run's preemptions cost and brought, from its figures and its ledger.

import type { Run } from "../data";

export interface Price {
  preemptions: number;
  predicted: number; // GPU-seconds
  measured: number;
  spared: number; // seconds of waiting
}

function total(values: readonly number[] = []): number {
  return values.reduce((sum, value) => sum + value, 0);
}

export function preempts(run: Run): boolean {
  return total(run.ledger?.preemptions) > 0;
}

/** Means over seeds where the run has them, else what its ledger adds up to. */
export function priceOf(run: Run): Price {
  const figure = (name: string): number | undefined => run.figures.find(({ id }) => id === `ledger.${name}`)?.mean;
  return {
    preemptions: figure("preemptions") ?? total(run.ledger?.preemptions),
    predicted: figure("predicted_cost_gpu_s") ?? total(run.ledger?.predicted_gpu_s),
    measured: figure("actual_cost_gpu_s") ?? total(run.ledger?.actual_gpu_s),
    spared: figure("wait_saved_s") ?? NaN,
  };
}

/** Seconds of waiting spared for each GPU-hour lost; NaN where nothing was lost. */
export function sparedPerHour({ spared, measured }: Pick<Price, "spared" | "measured">): number {
  return measured > 0 ? spared / (measured / 3600) : NaN;
}

/** What had come together by each moment: nothing at the first, all at the end of the last stretch. */
export function cumulative(t_s: readonly number[], values: readonly number[]): { x: number[]; y: number[] } {
  const last = t_s[t_s.length - 1] ?? 0;
  const length = t_s.length > 1 ? last - (t_s[t_s.length - 2] ?? 0) : last || 1;
  let sum = 0;
  const y = [0, ...t_s.map((_, i) => (sum += values[i] ?? 0))];
  return { x: [...t_s, last + length], y };
}
