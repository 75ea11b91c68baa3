// gantt.ts - who held which GPU when; drag or the arrow keys move, the wheel or + and - zoom.

import type { Run, Span } from "../data";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { h, onWidth, styled, type Child } from "./dom";
import { amount, moment } from "./format";
import { AXIS, layOut, Painter, type Rows } from "./gantt_paint";
import { jobColour } from "./palette";
import { isPrinting, onThemeChange, PAPER_WIDTH } from "./theme";
import { Tooltip } from "./tooltip";
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
  const others = new Set(rows.shared.get(span)?.flatMap((piece) => piece.beside ?? []));
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
      ...(others.size > 0 ? [line("shared with", [...others].map((job) => `job ${job}`).join(", "))] : []),
      line("then", ENDS[span.ended] ?? ""),
    ),
  ];
}

class Chart {
  readonly canvas = h("canvas", { tabindex: "0", role: "img" });
  readonly element = h("div", { class: "gantt" }, this.canvas);
  readonly shown = h("span", { class: "note", role: "status" });
  private readonly tooltip = new Tooltip(this.element);
  private readonly pointers = new Map<number, number>();
  private marked: Span | undefined;
  private painter: Painter | undefined;
  private width = 0;
  private waiting = false;

  constructor(
    private rows: Rows,
    readonly window: Window,
  ) {
    onWidth(this.element, (width) => this.resize(width));
    onThemeChange(() => this.resize(this.width));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"] as const)
      this.canvas.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    this.canvas.addEventListener("pointerleave", () => this.mark(undefined));
    this.canvas.addEventListener("dblclick", () => this.change(() => this.window.reset()));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(rows: Rows, policy: string): void {
    this.rows = rows;
    this.marked = undefined;
    this.tooltip.hide();
    const { gpus, spans } = rows.gantt;
    this.canvas.setAttribute("aria-label", `${policy}: ${spans.length} stretches of jobs on ${gpus.length} GPUs`);
    this.resize(this.width);
  }

  change(step: () => void): void {
    step();
    this.tooltip.hide();
    this.repaint();
  }

  private resize(given: number): void {
    this.width = given;
    if (given === 0) return;
    const width = isPrinting() ? PAPER_WIDTH : given;
    const height = this.rows.bottom + AXIS;
    const ratio = window.devicePixelRatio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    styled(this.canvas, { width: `${width}px`, height: `${height}px` });
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.painter = new Painter(context, this.rows, this.window, width);
    this.paint();
  }

  /** At most once a frame, however many events there are. */
  private repaint(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  private paint(): void {
    this.painter?.paint(this.marked);
    const { from, to, isWhole } = this.window;
    this.shown.textContent = isWhole ? `All of it: ${moment(to - from)}` : `${moment(from)} to ${moment(to)}`;
  }

  private part(clientX: number): number {
    const box = this.canvas.getBoundingClientRect();
    return (clientX - box.left - this.rows.gutter) / (box.width - this.rows.gutter);
  }

  /** The page keeps its scrolling until the chart was clicked, or with Ctrl. */
  private wheel(event: WheelEvent): void {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    const mine = sideways || event.ctrlKey || event.metaKey || document.activeElement === this.canvas;
    if (!mine) return;
    event.preventDefault();
    const delta = sideways ? event.deltaX || event.deltaY : event.deltaY;
    const at = Math.max(0, Math.min(1, this.part(event.clientX)));
    this.change(() => (sideways ? this.window.move(delta / 800) : this.window.zoom(1.0015 ** delta, at)));
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.part(event.clientX));
  }

  private move(event: PointerEvent): void {
    const now = this.part(event.clientX);
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) return this.hover(event);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (other === undefined) return this.change(() => this.window.move(before - now));
    const factor = Math.abs(before - other) / Math.max(0.01, Math.abs(now - other));
    this.change(() => this.window.zoom(factor, Math.max(0, Math.min(1, other))));
  }

  private hover(event: PointerEvent): void {
    const span = this.painter?.spanAt(event.offsetX, event.offsetY);
    this.mark(span);
    if (span) this.tooltip.show(event.offsetX, event.offsetY, ...describe(this.rows, span));
  }

  private mark(span: Span | undefined): void {
    if (!span) this.tooltip.hide();
    if (span === this.marked) return;
    this.marked = span;
    this.repaint();
  }

  private key(event: KeyboardEvent): void {
    const { window } = this;
    const keys: Record<string, () => void> = {
      "+": () => window.zoom(1 / 1.5, 0.5),
      "=": () => window.zoom(1 / 1.5, 0.5),
      "-": () => window.zoom(1.5, 0.5),
      ArrowLeft: () => window.move(-0.2),
      ArrowRight: () => window.move(0.2),
      "0": () => window.reset(),
      Home: () => window.reset(),
    };
    const step = keys[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.change(step);
  }
}

function key(): HTMLElement {
  const families = CLASSES.map((name, kind) => {
    const colours = [3, 7, 11, 4].map((job) => jobColour(job, kind));
    const stops = colours.map((c, i) => `${c} ${i * 25}% ${i * 25 + 25}%`).join(", ");
    return h("span", {}, styled(h("i", {}), { background: `linear-gradient(90deg, ${stops})` }), name);
  });
  const ends = ["preempted", "lost", "running"].map((name, i) => h("span", {}, h("i", { class: name }), ENDS[i + 1]));
  return h("div", { class: "key" }, ...families, ...ends);
}

export function gantt(runs: readonly Run[]): HTMLElement {
  const there = runs.flatMap((run) => (run.gantt ? [{ policy: run.policy, rows: layOut(run.gantt) }] : []));
  const [first] = there;
  if (!first) return h("div");
  const chart = new Chart(first.rows, wholeOf(runs));
  const chosen = new Cell(0);
  const partial = h("p", { class: "note" });
  chosen.watch((index) => {
    const run = there[index] ?? first;
    chart.show(run.rows, run.policy);
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
    key(),
    partial,
    h("p", { class: "note hint" }, "Drag or arrow keys: move. Wheel (after a click, or with Ctrl), pinch, + and −: zoom. Double-click or 0: all."),
  );
}
