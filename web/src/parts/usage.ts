// usage.ts - the cluster over time: GPUs held, jobs waiting and running.

import type { Run, Series } from "../data";
import { timeAxis } from "./axes";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { h } from "./dom";
import { fixed, moment, plain } from "./format";
import type { Hidden } from "./legend";
import { Plot, type Axis, type Line } from "./plot";
import { even } from "./ticks";

/** So many stretches of time are shown as one mean each. */
const STRETCHES = 150;

type Column = "gpus_held" | "jobs_waiting" | "jobs_running";

const LABELS: Record<Column, string> = {
  gpus_held: "GPUs held",
  jobs_waiting: "Jobs waiting",
  jobs_running: "Jobs running",
};

function linesOf(runs: readonly Run[], column: Column, hidden: Hidden): Line[] {
  const lines: Line[] = [];
  runs.forEach((run, policy) => {
    const series: Series | undefined = run.series;
    if (!series || hidden.has(policy) || series[column].length === 0) return;
    lines.push({ policy, name: run.policy, x: series.t_s, y: series[column] });
  });
  return lines;
}

/**
 * Means over equal stretches of time, so that one can see past every start and stop; a line
 * that is coarser than that already stays as it is.
 */
export function smooth(line: Line, end: number): Line {
  if (line.x.length <= 2 * STRETCHES) return line;
  const length = end / STRETCHES;
  const x: number[] = [];
  const y: number[] = [];
  let i = 0;
  for (let n = 0; n < STRETCHES; n++) {
    let sum = 0;
    let at = n * length;
    const until = at + length;
    while (at < until) {
      while (i + 1 < line.x.length && (line.x[i + 1] ?? 0) <= at) i++;
      const last = i + 1 >= line.x.length;
      const next = last ? until : Math.min(until, line.x[i + 1] ?? until);
      if ((line.x[i] ?? 0) <= at) sum += (line.y[i] ?? 0) * (next - at);
      at = next;
    }
    x.push((n + 0.5) * length);
    y.push(sum / length);
    if (i + 1 >= line.x.length) break;
  }
  return { ...line, x, y };
}

function highest(lines: readonly Line[]): number {
  let max = 1;
  for (const line of lines) for (const y of line.y) max = Math.max(max, y);
  return max;
}

interface View {
  column: Column;
  exact: boolean;
  hidden: Hidden;
}

function draw(plot: Plot, runs: readonly Run[], gpus: number, { column, exact, hidden }: View): void {
  const x = timeAxis(runs);
  const all = linesOf(runs, column, hidden);
  const lines = exact ? all : all.map((line) => smooth(line, x.range[1]));
  const ofAll = column === "gpus_held" && gpus > 0;
  const y: Axis = {
    label: LABELS[column],
    range: [0, (ofAll ? gpus : highest(lines)) * 1.05],
    ticks: even,
    tick: plain,
  };
  plot.draw({
    title: `${LABELS[column]} over time, by policy`,
    lines,
    x,
    y,
    stepped: exact,
    at: (value) => `${LABELS[column]} after ${moment(value)}`,
    value: (count) => plain(exact ? count : Math.round(10 * count) / 10) + (ofAll ? ` (${fixed((100 * count) / gpus, 0)} %)` : ""),
  });
}

/** Two plots, one above the other, that zoom together. */
export function usage(runs: readonly Run[], gpus: number, hidden: Cell<Hidden>): HTMLElement {
  const held = new Plot(230, "usage");
  const jobs = new Plot(230, "usage");
  const column = new Cell<Column>("jobs_waiting");
  const exact = new Cell(false);
  const redraw = (): void => {
    const view = { exact: exact.get(), hidden: hidden.get() };
    draw(held, runs, gpus, { ...view, column: "gpus_held" });
    draw(jobs, runs, gpus, { ...view, column: column.get() });
  };
  column.watch(redraw);
  exact.watch(redraw);
  hidden.watch(redraw);
  const dense = runs.some((run) => (run.series?.t_s.length ?? 0) > 2 * STRETCHES);
  const finenesses = [{ value: false, label: "Smoothed" }, { value: true, label: "Every change" }];
  const options = (["jobs_waiting", "jobs_running"] as const).map((value) => ({ value, label: LABELS[value] }));
  return h(
    "div",
    { class: "card" },
    dense && h("div", { class: "controls" }, chooser("Fineness", finenesses, exact)),
    held.element,
    h("div", { class: "controls" }, chooser<Column>("Jobs", options, column)),
    jobs.element,
    h("p", { class: "note hint" }, "Drag over a part to see it larger; double-click to see all again."),
  );
}
