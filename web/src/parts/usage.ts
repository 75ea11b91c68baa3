// usage.ts - the cluster over time: GPUs held, jobs waiting and running.

import type { Run, Series } from "../data";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { h } from "./dom";
import { fixed, moment, plain } from "./format";
import type { Hidden } from "./legend";
import { Plot, type Axis, type Line } from "./plot";
import { clock, even } from "./ticks";

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

function highest(lines: readonly Line[]): number {
  let max = 1;
  for (const line of lines) for (const y of line.y) max = Math.max(max, y);
  return max;
}

/** One time axis for all policies, shown or hidden, so that it does not jump. */
function timeAxis(runs: readonly Run[]): Axis {
  const ends = runs.map((run) => run.series?.t_s[run.series.t_s.length - 1] ?? 0);
  return {
    label: "Time since the first submission",
    range: [0, Math.max(1, ...ends)],
    ticks: clock,
    tick: (value) => (value === 0 ? "0" : moment(value)),
  };
}

function draw(plot: Plot, runs: readonly Run[], column: Column, gpus: number, hidden: Hidden): void {
  const lines = linesOf(runs, column, hidden);
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
    x: timeAxis(runs),
    y,
    stepped: true,
    at: (value) => `${LABELS[column]} after ${moment(value)}`,
    value: (count) => plain(count) + (ofAll ? ` (${fixed((100 * count) / gpus, 0)} %)` : ""),
  });
}

/** Two plots, one above the other, that zoom together. */
export function usage(runs: readonly Run[], gpus: number, hidden: Cell<Hidden>): HTMLElement {
  const held = new Plot(230, "usage");
  const jobs = new Plot(230, "usage");
  const column = new Cell<Column>("jobs_waiting");
  hidden.watch((set) => draw(held, runs, "gpus_held", gpus, set));
  const redraw = (): void => draw(jobs, runs, column.get(), gpus, hidden.get());
  column.watch(redraw);
  hidden.watch(redraw);
  const options = (["jobs_waiting", "jobs_running"] as const).map((value) => ({ value, label: LABELS[value] }));
  return h(
    "div",
    { class: "card" },
    held.element,
    h("div", { class: "controls" }, chooser<Column>("Jobs", options, column)),
    jobs.element,
    h("p", { class: "note" }, "Drag over a part to see it larger; double-click to see all again."),
  );
}
