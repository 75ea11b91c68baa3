// cdf.ts - which share of the jobs is done within …: one line per policy.

import { KINDS, METRICS, type Curve, type Kind, type Metric, type Run } from "../data";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { h } from "./dom";
import { amount, fixed, moment, plain } from "./format";
import type { Hidden } from "./legend";
import { Plot, type Axis, type Line } from "./plot";
import { even, logNumbers, logTimes } from "./ticks";

const METRIC_LABELS: Record<Metric, string> = {
  jct_s: "Completion time",
  slowdown: "Slowdown",
  wait_s: "Waiting time",
};
export const KIND_LABELS: Record<Kind, string> = { all: "All jobs", te: "Trial", be: "Best effort" };
const KIND_PHRASES: Record<Kind, string> = { all: "jobs", te: "trial jobs", be: "best-effort jobs" };

/** Left of this, a logarithmic axis would show noise: a second, or a slowdown of one. */
const FLOOR = 1;
const TAIL = 0.9995;

function unitOf(metric: Metric): string {
  return metric === "slowdown" ? "x" : "s";
}

/** The part right of 'floor', starting there with the share that lies left of it. */
function clip(curve: Curve, floor: number): Curve {
  const first = curve.x.findIndex((x) => x > floor);
  if (first < 0) return { x: [floor, floor * 1.0001], y: [curve.y[curve.y.length - 1] ?? 1, 1] };
  const before = first > 0 ? (curve.y[first - 1] ?? 0) : 0;
  const start = first > 0 ? floor : (curve.x[first] ?? floor) * 0.9999;
  return { x: [start, ...curve.x.slice(first)], y: [before, ...curve.y.slice(first)] };
}

function reach(lines: readonly Line[]): [number, number] {
  let min = Infinity;
  let max = -Infinity;
  for (const line of lines) {
    min = Math.min(min, line.x[0] ?? min);
    const end = line.y.findIndex((y) => y >= TAIL);
    max = Math.max(max, line.x[end < 0 ? line.x.length - 1 : end] ?? max);
  }
  if (!(max > min)) return [FLOOR, 10 * FLOOR];
  return [min < 2 * FLOOR ? FLOOR : min, max * 1.05];
}

function linesOf(runs: readonly Run[], metric: Metric, kind: Kind, hidden: Hidden): Line[] {
  const lines: Line[] = [];
  runs.forEach((run, policy) => {
    const curve = run.cdf[metric]?.[kind];
    if (curve && !hidden.has(policy)) lines.push({ policy, name: run.policy, ...clip(curve, FLOOR) });
  });
  return lines;
}

function draw(plot: Plot, runs: readonly Run[], metric: Metric, kind: Kind, hidden: Hidden): void {
  const lines = linesOf(runs, metric, kind, hidden);
  const unit = unitOf(metric);
  const x: Axis = {
    label: `${METRIC_LABELS[metric]}${metric === "slowdown" ? ", times the job alone" : ""}`,
    range: reach(lines),
    log: true,
    ticks: metric === "slowdown" ? logNumbers : logTimes,
    tick: metric === "slowdown" ? plain : moment,
  };
  const y: Axis = {
    label: `Share of ${KIND_PHRASES[kind]}`,
    range: [0, 1],
    ticks: even,
    tick: (value) => `${fixed(value * 100, 0)} %`,
  };
  plot.draw({
    title: `${METRIC_LABELS[metric]} of ${KIND_PHRASES[kind]}: cumulative share by policy`,
    lines,
    x,
    y,
    stepped: false,
    at: (value) => `${METRIC_LABELS[metric]} up to ${amount(value, unit)}`,
    value: (share) => `${fixed(share * 100, 1)} %`,
  });
}

export interface CdfStart {
  metric: Metric;
  kind: Kind;
}

/** The metrics and classes that any run has a curve of. */
export function available(runs: readonly Run[]): { metrics: Metric[]; kinds: Kind[] } {
  const has = (metric: Metric, kind: Kind): boolean => runs.some((run) => run.cdf[metric]?.[kind]);
  return {
    metrics: METRICS.filter((metric) => KINDS.some((kind) => has(metric, kind))),
    kinds: KINDS.filter((kind) => METRICS.some((metric) => has(metric, kind))),
  };
}

export function cdf(runs: readonly Run[], hidden: Cell<Hidden>, start: CdfStart): HTMLElement {
  const { metrics, kinds } = available(runs);
  const metric = new Cell(start.metric);
  const kind = new Cell(start.kind);
  const plot = new Plot(330);
  const redraw = (): void => draw(plot, runs, metric.get(), kind.get(), hidden.get());
  metric.watch(redraw);
  kind.watch(redraw);
  hidden.watch(redraw);
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "controls" },
      chooser("Metric", metrics.map((value) => ({ value, label: METRIC_LABELS[value] })), metric),
      chooser("Class of jobs", kinds.map((value) => ({ value, label: KIND_LABELS[value] })), kind),
    ),
    plot.element,
  );
}
