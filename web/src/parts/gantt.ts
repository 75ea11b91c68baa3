// gantt.ts - who held which GPU when, by policy.

import type { Run, Span } from "../data";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { h, styled, type Child } from "./dom";
import { amount, moment } from "./format";
import { GanttChart, type Words } from "./gantt_chart";
import { layOut, type Rows } from "./gantt_rows";
import { jobColour } from "./palette";
import { besidesOf } from "./sharing";
import { Window } from "./window";

const CLASSES = ["best effort", "trial"];
const ENDS = ["finished", "preempted", "lost with its node", "still running"];

/** All policies on the same axis, so that switching between them compares. */
function wholeOf(runs: readonly Run[]): Window {
  let from = Infinity;
  let to = -Infinity;
  for (const { gantt } of runs) {
    if (!gantt) continue;
    from = Math.min(from, gantt.from);
    to = Math.max(to, gantt.to);
    for (const span of gantt.spans) to = Math.max(to, span.end);
  }
  return new Window({ from, to: to > from ? to : from + 1 });
}

function describe(rows: Rows, span: Span): Child[] {
  const gang = new Set(
    rows.gantt.spans.filter((s) => s.job === span.job && s.start <= span.start && s.end > span.start).map((s) => s.gpu),
  );
  const line = (name: string, value: string): HTMLElement => h("tr", {}, h("th", {}, name), h("td", {}, value));
  return [
    h("p", {}, `Job ${span.job} · ${CLASSES[span.class] ?? ""}`),
    h(
      "table",
      {},
      line("on", `${rows.gantt.gpus[span.gpu] ?? ""}${gang.size > 1 ? ` and ${gang.size - 1} more shown` : ""}`),
      line("from", moment(span.start, 3)),
      line("to", moment(span.end, 3)),
      line("for", amount(span.end - span.start, "s")),
      ...besidesOf(rows, span).map((words, i) => line(i === 0 ? "beside" : "", words)),
      line("then", ENDS[span.ended] ?? ""),
    ),
  ];
}

function key(): { element: HTMLElement; pairs: HTMLElement } {
  const families = CLASSES.map((name, kind) => {
    const colours = [3, 7, 11, 4].map((job) => jobColour(job, kind));
    const stops = colours.map((c, i) => `${c} ${i * 25}% ${i * 25 + 25}%`).join(", ");
    return h("span", {}, styled(h("i", {}), { background: `linear-gradient(90deg, ${stops})` }), name);
  });
  const ends = ["preempted", "lost", "running"].map((name, i) => h("span", {}, h("i", { class: name }), ENDS[i + 1]));
  const pairs = h("span", { hidden: true }, h("i", { class: "shared" }), "two jobs share it");
  return { element: h("div", { class: "key" }, ...families, pairs, ...ends), pairs };
}

export function gantt(runs: readonly Run[]): HTMLElement {
  const there = runs.flatMap((run) => (run.gantt ? [{ policy: run.policy, rows: layOut(run.gantt) }] : []));
  const [first] = there;
  if (!first) return h("div");
  const chosen = new Cell(0);
  const words: Words = {
    describe,
    shown: ({ from, to, isWhole }) => (isWhole ? `All of it: ${moment(to - from)}` : `${moment(from)} to ${moment(to)}`),
    label: ({ gantt: { gpus, spans } }) =>
      `${there[chosen.get()]?.policy ?? ""}: ${spans.length} stretches of jobs on ${gpus.length} GPUs`,
  };
  const chart = new GanttChart(first.rows, wholeOf(runs), words);
  const partial = h("p", { class: "note" });
  const marks = key();
  chosen.watch((index) => {
    const run = there[index] ?? first;
    chart.show(run.rows);
    marks.pairs.hidden = run.rows.shared.size === 0;
    partial.textContent = run.rows.gantt.complete ? "" : "Only a part of this run is drawn: some GPUs or some of the time.";
  });
  const button = (text: string, label: string, step: () => void): HTMLElement =>
    h("button", { type: "button", class: "plain", "aria-label": label, title: label, click: () => chart.change(step) }, text);
  const { window } = chart;
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "controls" },
      chooser("Policy", there.map((run, value) => ({ value, label: run.policy })), chosen),
      h(
        "div",
        { class: "buttons" },
        button("−", "See more", () => window.zoom(1.5, 0.5)),
        button("+", "Come closer", () => window.zoom(1 / 1.5, 0.5)),
        button("All", "See all of it", () => window.reset()),
      ),
      chart.shown,
    ),
    chart.element,
    marks.element,
    partial,
    h("p", { class: "note hint" }, "Drag or arrow keys: move. Wheel (after a click, or with Ctrl), pinch, + and −: zoom. Double-click or 0: all."),
  );
}
