// quality.ts - how soon models are good: losses over time, and the time to so much of a model.

import type { Run } from "../data";
import { timeAxis } from "./axes";
import { Cell } from "./cell";
import { h } from "./dom";
import { amount, fixed, mark, moment, plain } from "./format";
import type { Hidden } from "./legend";
import { swatch } from "./palette";
import { Plot, type Axis, type Line } from "./plot";
import { logNumbers, logTimes } from "./ticks";
import { smooth } from "./usage";

/** Shares of a job's whole loss reduction, in percent. */
const LEVELS = [25, 50, 80, 90, 95, 99] as const;

/** Below this, what is left to learn is nothing. */
const LEAST = 1e-3;

export function learns(run: Run): boolean {
  return run.quality !== undefined;
}

function lossLines(runs: readonly Run[], hidden: Hidden): Line[] {
  const lines: Line[] = [];
  runs.forEach((run, policy) => {
    if (!run.quality || hidden.has(policy)) return;
    const { t_s, loss } = run.quality;
    lines.push({ policy, name: run.policy, x: t_s, y: loss.map((value) => Math.max(value, LEAST)) });
  });
  return lines;
}

function drawLosses(plot: Plot, runs: readonly Run[], hidden: Hidden): void {
  const x = timeAxis(runs);
  const lines = lossLines(runs, hidden).map((line) => smooth(line, x.range[1]));
  plot.draw({
    title: "Mean loss of running jobs over time, by policy",
    lines,
    x,
    y: { label: "Mean loss of running jobs", range: [LEAST, 1.1], log: true, ticks: logNumbers, tick: mark },
    stepped: false,
    at: (value) => `Mean loss after ${moment(value)}`,
    value: (loss) => (loss > LEAST ? plain(loss) : `at most ${plain(LEAST)}`),
  });
}

/** From 90 to 99 % is as far as from nothing to 90 %. */
function place(level: number): number {
  return -Math.log10(1 - level / 100);
}

function timeLine(run: Run, policy: number): Line {
  const line = { policy, name: run.policy, x: [] as number[], y: [] as number[], low: [] as number[], high: [] as number[] };
  for (const level of LEVELS) {
    const figure = run.figures.find(({ id }) => id === `quality.time_to.${level}`);
    if (!figure || !(figure.mean > 0)) continue;
    line.x.push(place(level));
    line.y.push(figure.mean);
    line.low.push(Math.max(figure.low, figure.mean / 10));
    line.high.push(figure.high);
  }
  return { ...line, points: "measured" };
}

function levelAt(x: number): number {
  return LEVELS.reduce((best, level) => (Math.abs(place(level) - x) < Math.abs(place(best) - x) ? level : best));
}

function timesAxis(lines: readonly Line[]): Axis {
  const all = lines.flatMap(({ y, low = [], high = [] }) => [...y, ...low, ...high]);
  const [min, max] = all.length > 0 ? [Math.min(...all), Math.max(...all)] : [1, 10];
  return { label: "Mean time from submission", range: [min / 1.2, max * 1.2], log: true, ticks: logTimes, tick: (value) => moment(value) };
}

function drawTimes(plot: Plot, runs: readonly Run[], hidden: Hidden): void {
  const all = runs.map(timeLine);
  const lines = all.filter(({ policy }) => !hidden.has(policy));
  plot.draw({
    title: "Mean time until so much of a model is learnt, by policy",
    lines,
    x: {
      label: "Of its whole loss reduction",
      range: [place(LEVELS[0]) - 0.06, place(LEVELS[LEVELS.length - 1] ?? 99) + 0.06],
      ticks: () => LEVELS.map(place),
      tick: (value) => `${fixed(levelAt(value), 0)} %`,
    },
    y: timesAxis(all),
    stepped: false,
    fixed: true,
    snap: (x) => place(levelAt(x)),
    at: (x) => `Time to ${levelAt(x)} %`,
    value: (time) => amount(time, "s"),
    rows: (x) =>
      lines.map((line) => {
        const time = line.y[line.x.indexOf(place(levelAt(x)))];
        return { mark: swatch(line.policy), name: line.name, value: time === undefined ? "–" : amount(time, "s") };
      }),
  });
}

export function quality(runs: readonly Run[], hidden: Cell<Hidden>): HTMLElement {
  const losses = new Plot(300);
  const times = new Plot(300);
  hidden.watch((set) => {
    drawLosses(losses, runs, set);
    drawTimes(times, runs, set);
  });
  return h(
    "div",
    { class: "grid two" },
    h("div", { class: "card" }, losses.element),
    h("div", { class: "card" }, times.element),
  );
}
