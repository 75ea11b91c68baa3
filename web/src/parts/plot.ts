// plot.ts - lines over one axis, one per policy; the only file that knows uPlot.

import uPlot from "uplot";
import { h, onWidth, type Child } from "./dom";
import { policyColour, policyDash, swatch } from "./palette";
import { paintBand, paintNames, paintPoints, within, type Brush } from "./plot_paint";
import { colour, isPrinting, onThemeChange, PAPER_WIDTH } from "./theme";
import { Tooltip } from "./tooltip";

export interface Line {
  policy: number; // its place among the policies: colour and dash
  name: string;
  x: number[]; // ascending
  y: number[];
  dash?: readonly number[]; // instead of the policy's own
  low?: number[]; // with 'high', what is shaded around the line
  high?: number[];
  points?: "measured" | "published"; // each value marked; published ones stand alone, without a line
}

export interface Axis {
  label: string;
  range: [number, number];
  log?: boolean;
  grid?: boolean; // lines across from its marks; true if absent
  ticks(min: number, max: number, count: number): number[];
  tick(value: number, room: number): string; // room: so many pixels from mark to mark
}

/** A line of the tooltip. */
export interface Row {
  mark: HTMLElement;
  name: string;
  value: string;
}

export interface Picture {
  title: string; // what a screen reader says
  lines: Line[];
  x: Axis;
  y: Axis;
  stepped: boolean; // a value holds until the next one, instead of sloping towards it
  at(x: number): string; // the tooltip's first line
  value(y: number): string; // and what it says of each policy
  rows?(x: number): Row[]; // instead of one per line
  snap?(x: number): number; // the x that is meant when pointing there
  under?(brush: Brush): void; // painted before the lines
  named?: readonly Line[]; // these have their names at their ends
  fixed?: boolean; // cannot be zoomed
}

const FONT = "12px system-ui, sans-serif";
const LETTER = 6.7; // about so many pixels wide

/** The value of a line at x; undefined outside of it. */
export function valueAt(line: Line, x: number, stepped: boolean): number | undefined {
  const { x: xs, y: ys } = line;
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) <= x) low = middle + 1;
    else high = middle;
  }
  const before = ys[low - 1];
  if (before === undefined) return undefined;
  const after = ys[low];
  if (after === undefined) return stepped && x > (xs[low - 1] ?? 0) ? undefined : before;
  if (stepped) return before;
  const x0 = xs[low - 1] ?? 0;
  const x1 = xs[low] ?? x0;
  return x1 > x0 ? before + ((after - before) * (x - x0)) / (x1 - x0) : after;
}

/** As much room as the longest mark takes beside the axis, or the one with most lines below it. */
function axisSize(marks: readonly string[] | null, vertical: boolean): number {
  if (vertical) return Math.max(52, ...(marks ?? []).map((mark) => 14 + LETTER * mark.length));
  return 12 + 18 * Math.max(1, ...(marks ?? []).map((mark) => mark.split("\n").length));
}

function axisOptions(axis: Axis, vertical: boolean): uPlot.Axis {
  const length = (u: uPlot): number => (vertical ? u.bbox.height : u.bbox.width) / devicePixelRatio;
  return {
    scale: vertical ? "y" : "x",
    label: axis.label,
    labelSize: axis.label === "" ? 0 : 22,
    labelFont: FONT,
    font: FONT,
    size: (_u, marks) => axisSize(marks, vertical),
    gap: 4,
    stroke: () => colour("soft"),
    grid: { show: axis.grid ?? true, stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    splits: (u, _axis, min, max) => axis.ticks(min, max, Math.max(2, Math.floor(length(u) / (vertical ? 42 : 66)))),
    values: (u, splits) => splits.map((split) => axis.tick(split, length(u) / splits.length)),
    filter: (_u, splits) => splits,
  };
}

function pathsOf(line: Line, stepped: boolean): uPlot.Series.PathBuilder | undefined {
  if (line.points === "published") return () => null;
  return stepped ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
}

function seriesOptions(line: Line, stepped: boolean): uPlot.Series {
  const paths = pathsOf(line, stepped);
  return {
    label: line.name,
    stroke: () => policyColour(line.policy),
    width: 2,
    dash: [...(line.dash ?? policyDash(line.policy))],
    spanGaps: true,
    points: { show: false },
    ...(paths ? { paths } : {}),
  };
}

function brushOf(u: uPlot): Brush {
  const { left, top, width, height } = u.bbox;
  return {
    ctx: u.ctx,
    left,
    right: left + width,
    top,
    bottom: top + height,
    ratio: devicePixelRatio,
    x: (value) => u.valToPos(value, "x", true),
    y: (value) => u.valToPos(value, "y", true),
  };
}

function paintUnder(brush: Brush, picture: Picture): void {
  for (const line of picture.lines) paintBand(brush, line);
  picture.under?.(brush);
}

function paintOver(brush: Brush, picture: Picture): void {
  for (const line of picture.lines) if (line.points) paintPoints(brush, line);
  if (picture.named) paintNames(brush, picture.named);
}

function rowsAt(picture: Picture, x: number): Row[] {
  return picture.lines.map((line) => {
    const y = valueAt(line, x, picture.stepped);
    const value = y === undefined ? "–" : picture.value(y);
    return { mark: swatch(line.policy, line.dash), name: line.name, value };
  });
}

export class Plot {
  readonly element: HTMLElement;
  private readonly host: HTMLElement;
  private readonly tooltip: Tooltip;
  private chart: uPlot | undefined;
  private picture: Picture | undefined;
  private width = 0;

  /** Plots with the same 'group' zoom and point together. */
  constructor(
    private readonly height: number,
    private readonly group?: string,
  ) {
    this.host = h("div", { class: "plot-host", role: "img" });
    this.element = h("div", { class: "plot" }, this.host);
    this.tooltip = new Tooltip(this.element);
    onWidth(this.element, (width) => {
      this.width = width;
      if (this.chart) this.chart.setSize({ width, height: this.height });
      else this.build();
    });
    onThemeChange(() => {
      const width = isPrinting() ? PAPER_WIDTH : this.width;
      this.chart?.setSize({ width, height: this.height });
      this.chart?.redraw(false, true);
    });
  }

  draw(picture: Picture): void {
    this.picture = picture;
    this.host.setAttribute("aria-label", picture.title);
    if (this.width > 0) this.build();
  }

  private build(): void {
    const picture = this.picture;
    if (!picture) return;
    this.chart?.destroy();
    this.tooltip.hide();
    this.chart = new uPlot(this.options(picture), this.aligned(picture), this.host);
  }

  /** uPlot wants one x for all: the union of all, with holes. */
  private aligned(picture: Picture): uPlot.AlignedData {
    if (picture.lines.length === 0) return [picture.x.range];
    return uPlot.join(picture.lines.map((line) => [line.x, line.y] as uPlot.AlignedData));
  }

  private options(picture: Picture): uPlot.Options {
    return {
      width: this.width,
      height: this.height,
      padding: [10, 26, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, distr: picture.x.log ? 3 : 1, range: () => picture.x.range },
        y: { distr: picture.y.log ? 3 : 1, range: () => picture.y.range },
      },
      series: [{}, ...picture.lines.map((line) => seriesOptions(line, picture.stepped))],
      axes: [axisOptions(picture.x, false), axisOptions(picture.y, true)],
      cursor: {
        points: { show: false },
        y: false,
        drag: { x: !picture.fixed, y: false },
        ...(this.group ? { sync: { key: this.group } } : {}),
      },
      hooks: {
        setCursor: [(u) => this.point(u, picture)],
        drawAxes: [(u) => within(brushOf(u), (brush) => paintUnder(brush, picture))],
        draw: [(u) => within(brushOf(u), (brush) => paintOver(brush, picture))],
      },
    };
  }

  private point(u: uPlot, picture: Picture): void {
    const { left, top, event } = u.cursor;
    if (left === undefined || top === undefined || left < 0 || !event) return this.tooltip.hide();
    const pointed = u.posToVal(left, "x");
    const x = picture.snap?.(pointed) ?? pointed;
    const rows = (picture.rows?.(x) ?? rowsAt(picture, x)).map(
      ({ mark, name, value }): Child => h("tr", {}, h("td", {}, mark), h("th", {}, name), h("td", {}, value)),
    );
    const shift = u.over.offsetLeft;
    this.tooltip.show(left + shift, top + u.over.offsetTop, h("p", {}, picture.at(x)), h("table", {}, ...rows));
  }
}
