// gantt_paint.ts - spans of jobs on GPUs, painted on a canvas; and which one is at a point.
//
// Two jobs that share a GPU have half of its row each.  A span narrower than a pixel is painted
// as one, so that busy stretches look busy at any zoom.

import type { Span } from "../data";
import { moment } from "./format";
import { isCovered, nodeOf, type Rows } from "./gantt_rows";
import type { Piece } from "./lanes";
import { jobColour } from "./palette";
import { colour } from "./theme";
import { clock } from "./ticks";
import type { Window } from "./window";

export const AXIS = 26; // height of the time axis below the rows
const FONT = "11px system-ui, sans-serif";
const SMALL_FONT = "9px system-ui, sans-serif"; // in the half of a row
const NARROW = 4; // pixels; a span below this has no room for a mark at its end
const PREEMPTED = 1;
const LOST = 2;
const RUNNING = 3;
const PLANNED = 4;
const FAILED = 5;
const FOREIGN = 6;
const PERHAPS = 7;
const FAINT = 0.12; // where it is least certain

/** Everything a repaint needs: the same numbers turn a point back into a span. */
export class Painter {
  private readonly colours = new Map<number, string>();

  constructor(
    private readonly context: CanvasRenderingContext2D,
    public rows: Rows,
    private readonly window: Window,
    private readonly width: number,
  ) {}

  private x(time: number): number {
    const { gutter } = this.rows;
    return gutter + ((time - this.window.from) / this.window.length) * (this.width - gutter);
  }

  private colourOf(span: Span): string {
    const key = 2 * span.job + span.class;
    let value = this.colours.get(key);
    if (value === undefined) {
      value = jobColour(span.job, span.class);
      this.colours.set(key, value);
    }
    return value;
  }

  private piecesOf(span: Span): Piece[] {
    const whole = { from: span.start, to: span.end, lane: undefined, beside: undefined };
    return this.rows.shared.get(span) ?? [whole];
  }

  spanAt(x: number, y: number): Span | undefined {
    const { rows, window } = this;
    const row = rows.tops.findIndex((top) => y >= top && y < top + rows.height);
    if (row < 0 || x < rows.gutter) return undefined;
    const perPixel = window.length / (this.width - rows.gutter);
    const time = window.from + (x - rows.gutter) * perPixel;
    const lane = y < (rows.tops[row] ?? 0) + rows.height / 2 ? 0 : 1;
    let nearest: Span | undefined;
    for (const span of rows.byGpu[row] ?? []) {
      if (span.start > time + perPixel) break;
      const near = this.piecesOf(span).some(
        (piece) => piece.from <= time + perPixel && piece.to >= time - perPixel && (piece.lane ?? lane) === lane,
      );
      if (near) nearest = span;
    }
    return nearest;
  }

  paint(marked: Span | undefined): void {
    const { context, rows, width } = this;
    context.clearRect(0, 0, width, rows.bottom + AXIS);
    context.font = FONT;
    this.paintGrid();
    context.save();
    context.beginPath();
    context.rect(rows.gutter, 0, width - rows.gutter, rows.bottom);
    context.clip();
    rows.byGpu.forEach((spans, row) => this.paintRow(spans, rows.tops[row] ?? 0, marked));
    if (rows.live) this.paintNow(rows.live.at);
    context.restore();
    this.paintNames();
  }

  private paintNow(at: number): void {
    const { context, rows } = this;
    const x = Math.round(this.x(at));
    context.fillStyle = colour("accent");
    context.fillRect(x - 0.5, 0, 1.5, rows.bottom);
  }

  private paintGrid(): void {
    const { context, rows, width, window } = this;
    const marks = clock(window.from, window.to, Math.max(2, Math.floor((width - rows.gutter) / 90)));
    context.fillStyle = colour("row");
    // Idle is grey; past the end of a run that is drawn in part nothing is known.
    const known = rows.gantt.complete ? width : Math.min(width, Math.max(rows.gutter, this.x(rows.gantt.to)));
    const held = rows.tops.slice(0, rows.gantt.waiting);
    for (const top of held) context.fillRect(rows.gutter, top, known - rows.gutter, rows.height - 1);
    context.textBaseline = "top";
    for (const mark of marks) {
      const x = Math.round(this.x(mark));
      context.fillStyle = colour("grid");
      context.fillRect(x, 0, 1, rows.bottom + 4);
      const text = rows.live?.clock(mark, (marks[1] ?? 0) - (marks[0] ?? 0)) ?? (mark === 0 ? "0" : moment(mark));
      const half = context.measureText(text).width / 2;
      context.fillStyle = colour("soft");
      context.fillText(text, Math.max(rows.gutter, Math.min(x - half, width - 2 * half)), rows.bottom + 8);
    }
  }

  private paintRow(spans: readonly Span[], top: number, marked: Span | undefined): void {
    const { context, window } = this;
    const painted = [-Infinity, -Infinity]; // by lane, so that what is narrower than a pixel is seen once per pixel
    for (const span of spans) {
      if (span.start > window.to) break;
      if (span.end < window.from) continue;
      context.globalAlpha = marked && marked.job !== span.job ? 0.35 : 1;
      for (const piece of this.piecesOf(span)) this.paintPiece(span, piece, top, painted, span === marked);
    }
    context.globalAlpha = 1;
  }

  private paintPiece(span: Span, piece: Piece, rowTop: number, painted: number[], always: boolean): void {
    const { context, window } = this;
    if (piece.from > window.to || piece.to < window.from) return;
    const lanes = piece.lane === undefined ? [0, 1] : [piece.lane];
    const left = Math.max(-10, this.x(piece.from));
    const right = Math.min(this.width + 10, this.x(piece.to));
    if (!always && isCovered(left, right, lanes, painted)) return;
    for (const lane of lanes) painted[lane] = Math.max(painted[lane] ?? 0, left + 1);
    const full = this.rows.height - 1;
    const height = piece.lane === undefined ? full : full / 2 - 0.5;
    const top = rowTop + (piece.lane === 1 ? full / 2 + 0.5 : 0);
    const last = piece.to === span.end;
    const wide = Math.max(1, right - left - (last && right - left > 4 ? 1 : 0));
    if ([PLANNED, FOREIGN, PERHAPS].includes(span.ended)) return this.paintHatched(span, left, top, wide, height);
    context.fillStyle = this.colourOf(span);
    context.fillRect(left, top, wide, height);
    if (last && right - left >= NARROW) this.paintEnd(span, left, right, top, height);
    if (right - left > 44 && height >= 7) this.paintNumber(span, left, top, height);
    const note = this.rows.live?.notes.get(span);
    if (last && note !== undefined && height >= 10) this.paintNote(note, left, right, top, height);
  }

  /** Not yet so: an outline with stripes.  Somebody else's: grey, striped the other way. */
  private paintHatched(span: Span, left: number, top: number, wide: number, height: number): void {
    const { context } = this;
    const foreign = span.ended === FOREIGN;
    context.save();
    context.beginPath();
    context.rect(left, top, wide, height);
    context.clip();
    context.strokeStyle = context.fillStyle = foreign ? colour("soft") : (this.fadeOf(span) ?? this.colourOf(span));
    const before = context.globalAlpha;
    context.globalAlpha = before * (foreign ? 0.25 : 0.18);
    context.fillRect(left, top, wide, height);
    context.globalAlpha = before * (foreign ? 0.6 : 0.75);
    context.lineWidth = 1.5;
    context.beginPath();
    const lean = foreign ? -height : height;
    for (let x = left - height - ((left + height) % 7); x < left + wide + height; x += 7) {
      context.moveTo(x, top + height);
      context.lineTo(x + lean, top);
    }
    context.stroke();
    context.restore();
    const fade = this.rows.live?.fades.get(span);
    if (fade?.middle !== undefined) this.paintMiddle(fade.middle, left, wide, top, height);
    const named = fade?.fade === "out" || span.gpu >= (this.rows.gantt.waiting ?? Infinity);
    if (!foreign && !named && wide > 44 && height >= 7) this.paintNumber(span, left, top, height);
  }

  /** The less certain, the fainter. */
  private fadeOf(span: Span): CanvasGradient | undefined {
    const fade = this.rows.live?.fades.get(span)?.fade;
    if (fade === undefined) return undefined;
    const gradient = this.context.createLinearGradient(this.x(span.start), 0, this.x(span.end), 0);
    const full = this.colourOf(span);
    const faint = full.replace(")", ` / ${FAINT})`);
    gradient.addColorStop(0, fade === "in" ? faint : full);
    gradient.addColorStop(1, fade === "in" ? full : faint);
    return gradient;
  }

  /** As many futures start or end before it as after. */
  private paintMiddle(middle: number, left: number, wide: number, top: number, height: number): void {
    const x = Math.round(this.x(middle));
    if (x < left || x > left + wide) return;
    this.context.fillStyle = colour("ink");
    this.context.fillRect(x - 1, top, 2, height);
  }

  /** What it cost, before its end. */
  private paintNote(note: string, left: number, right: number, top: number, height: number): void {
    const { context } = this;
    const wide = context.measureText(note).width;
    if (right - left < wide + 52) return;
    context.fillStyle = "rgb(0 0 0 / 80%)";
    context.textBaseline = "middle";
    context.fillText(note, right - wide - 10, top + height / 2 + 0.5);
  }

  /** Preempted: a dark wedge and edge; lost: the same in red; still running: fades out. */
  private paintEnd(span: Span, left: number, right: number, top: number, height: number): void {
    const marked = [PREEMPTED, LOST, RUNNING, FAILED];
    if (!marked.includes(span.ended) || (span.ended === RUNNING && this.rows.live)) return;
    const { context } = this;
    if (span.ended === RUNNING) {
      context.fillStyle = colour("card");
      for (let x = Math.max(left, right - 12); x < right; x += 4) context.fillRect(x, top, 2, height);
      return;
    }
    context.fillStyle = colour(span.ended === LOST || span.ended === FAILED ? "lost" : "ink");
    const edge = right - left < 2 * NARROW ? 1 : 2;
    context.fillRect(right - edge, top, edge, height);
    if (right - left < 3 * NARROW) return;
    context.beginPath();
    context.moveTo(right, top);
    context.lineTo(right - 6, top);
    context.lineTo(right, top + Math.min(7, height));
    context.fill();
  }

  private paintNumber(span: Span, left: number, top: number, height: number): void {
    const { context, rows } = this;
    context.fillStyle = span.ended === PLANNED || span.ended === PERHAPS ? colour("ink") : "rgb(0 0 0 / 80%)";
    context.textBaseline = "middle";
    context.font = height < 10 ? SMALL_FONT : FONT;
    context.fillText(String(span.job), Math.max(left, rows.gutter) + 4, top + height / 2 + 0.5);
    context.font = FONT;
  }

  private paintNames(): void {
    const { context, rows } = this;
    context.fillStyle = colour("soft");
    context.textBaseline = "middle";
    let last = "";
    rows.gantt.gpus.forEach((gpu, row) => {
      const node = nodeOf(gpu);
      const middle = (rows.tops[row] ?? 0) + rows.height / 2;
      if (rows.height >= 11 || row >= (rows.gantt.waiting ?? Infinity)) context.fillText(gpu.slice(0, 14), 0, middle);
      else if (node !== last) context.fillText(node.slice(0, 14), 0, middle + 1);
      last = node;
    });
  }
}
