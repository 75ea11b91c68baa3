// plot.ts - lines over one axis, one per policy; the only file that knows uPlot.

import uPlot from "uplot";
import { h, onWidth, type Child } from "./dom";
import { policyColour, policyDash, swatch } from "./palette";
import { colour, isPrinting, onThemeChange, PAPER_WIDTH } from "./theme";
import { Tooltip } from "./tooltip";

export interface Line {
  policy: number; // its place among the policies: colour and dash
  name: string;
  x: number[]; // ascending
  y: number[];
}

export interface Axis {
  label: string;
  range: [number, number];
  log?: boolean;
  ticks(min: number, max: number, count: number): number[];
  tick(value: number): string;
}

export interface Picture {
  title: string; // what a screen reader says
  lines: Line[];
  x: Axis;
  y: Axis;
  stepped: boolean; // a value holds until the next one, instead of sloping towards it
  at(x: number): string; // the tooltip's first line
  value(y: number): string; // and what it says of each policy
}

const FONT = "12px system-ui, sans-serif";

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

function axisOptions(axis: Axis, vertical: boolean): uPlot.Axis {
  const room = (u: uPlot): number =>
    vertical ? u.bbox.height / devicePixelRatio / 42 : u.bbox.width / devicePixelRatio / 66;
  return {
    scale: vertical ? "y" : "x",
    label: axis.label,
    labelSize: 22,
    labelFont: FONT,
    font: FONT,
    size: vertical ? 52 : 30,
    gap: 4,
    stroke: () => colour("soft"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    splits: (u, _axis, min, max) => axis.ticks(min, max, Math.max(2, Math.floor(room(u)))),
    values: (_u, splits) => splits.map((split) => axis.tick(split)),
    filter: (_u, splits) => splits,
  };
}

function seriesOptions(line: Line, stepped: boolean): uPlot.Series {
  const paths = stepped ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
  return {
    label: line.name,
    stroke: () => policyColour(line.policy),
    width: 2,
    dash: [...policyDash(line.policy)],
    spanGaps: true,
    points: { show: false },
    ...(paths ? { paths } : {}),
  };
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
    if (picture.lines.length === 0) return [[]];
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
        y: { distr: 1, range: () => picture.y.range },
      },
      series: [{}, ...picture.lines.map((line) => seriesOptions(line, picture.stepped))],
      axes: [axisOptions(picture.x, false), axisOptions(picture.y, true)],
      cursor: {
        points: { show: false },
        y: false,
        drag: { x: true, y: false },
        ...(this.group ? { sync: { key: this.group } } : {}),
      },
      hooks: { setCursor: [(u) => this.point(u, picture)] },
    };
  }

  private point(u: uPlot, picture: Picture): void {
    const { left, top, event } = u.cursor;
    if (left === undefined || top === undefined || left < 0 || !event) return this.tooltip.hide();
    const x = u.posToVal(left, "x");
    const rows = picture.lines.map((line): Child => {
      const y = valueAt(line, x, picture.stepped);
      const value = y === undefined ? "–" : picture.value(y);
      return h("tr", {}, h("td", {}, swatch(line.policy)), h("th", {}, line.name), h("td", {}, value));
    });
    const shift = u.over.offsetLeft;
    this.tooltip.show(left + shift, top + u.over.offsetTop, h("p", {}, picture.at(x)), h("table", {}, ...rows));
  }
}
