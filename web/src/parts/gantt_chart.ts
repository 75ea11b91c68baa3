// gantt_chart.ts - stretches of jobs on GPUs; drag or the arrow keys move, the wheel or + and - zoom.

import type { Span } from "../data";
import { h, onWidth, styled, type Child } from "./dom";
import { AXIS, Painter } from "./gantt_paint";
import type { Rows } from "./gantt_rows";
import { isPrinting, onThemeChange, PAPER_WIDTH } from "./theme";
import { Tooltip } from "./tooltip";
import type { Window } from "./window";

/** What differs between the report and the dashboard. */
export interface Words {
  describe(rows: Rows, span: Span): Child[]; // the tooltip
  shown(window: Window): string; // which part of it is seen
  label(rows: Rows): string; // for screen readers
  pick?(span: Span): void; // it was clicked
}

export class GanttChart {
  readonly canvas = h("canvas", { tabindex: "0", role: "img" });
  readonly element = h("div", { class: "gantt" }, this.canvas);
  readonly shown = h("span", { class: "note", role: "status" });
  private readonly tooltip = new Tooltip(this.element);
  private readonly pointers = new Map<number, number>();
  private marked: Span | undefined;
  private painter: Painter | undefined;
  private width = 0;
  private waiting = false;
  private pressed: { x: number; y: number } | undefined; // to tell a click from a drag

  constructor(
    private rows: Rows,
    readonly window: Window,
    private readonly words: Words,
  ) {
    onWidth(this.element, (width) => this.resize(width));
    onThemeChange(() => this.resize(this.width));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    for (const name of ["pointerup", "pointercancel"] as const)
      this.canvas.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    this.canvas.addEventListener("pointerleave", () => this.mark(undefined));
    this.canvas.addEventListener("dblclick", () => this.change(() => this.window.reset()));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(rows: Rows): void {
    this.rows = rows;
    this.marked = undefined;
    this.tooltip.hide();
    this.canvas.setAttribute("aria-label", this.words.label(rows));
    this.resize(this.width);
  }

  /** The same a moment later: what is pointed at stays so. */
  follow(rows: Rows): void {
    const { marked } = this;
    const same = (span: Span): boolean => span.job === marked?.job && span.gpu === marked.gpu && span.start === marked.start;
    const grown = rows.bottom !== this.rows.bottom || rows.gutter !== this.rows.gutter;
    this.rows = rows;
    this.marked = marked && rows.byGpu[marked.gpu]?.find(same);
    this.canvas.setAttribute("aria-label", this.words.label(rows));
    if (grown || !this.painter) return this.resize(this.width);
    this.painter.rows = rows;
    this.repaint();
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
    this.shown.textContent = this.words.shown(this.window);
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
    this.pressed = { x: event.offsetX, y: event.offsetY };
    this.pointers.set(event.pointerId, this.part(event.clientX));
  }

  private release({ offsetX: x, offsetY: y }: PointerEvent): void {
    const { pressed } = this;
    const still = pressed && Math.abs(pressed.x - x) < 4 && Math.abs(pressed.y - y) < 4;
    const span = still ? this.painter?.spanAt(x, y) : undefined;
    if (span) this.words.pick?.(span);
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
    if (span) this.tooltip.show(event.offsetX, event.offsetY, ...this.words.describe(this.rows, span));
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
