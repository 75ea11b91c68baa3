// bars.ts - groups of bars, one per series, with their spreads; published values as diamonds.

import type { BarChart, Drawn } from "../reproduction";
import { numberAxis } from "./axes";
import { plain, wrap } from "./format";
import type { Hidden } from "./legend";
import { barSwatch, diamond, policyColour, policyStripes } from "./palette";
import type { Axis, Picture, Row } from "./plot";
import { paintDiamond, paintWhisker, type Brush } from "./plot_paint";
import { labelOf, subject, withSpread } from "./series";
import { colour } from "./theme";

/** The part of a group's width that its bars take. */
const FILLED = 0.8;
const LETTER = 6.7;
const LINES = 3; // of a group's name

interface Placed {
  series: Drawn;
  policy: number;
  slot: number; // its place within each group
}

/** A published series stands on the bars of the measured one of the same name, if there is one. */
function place(chart: BarChart, policies: readonly number[], hidden: Hidden): Placed[] {
  const shown = chart.series
    .map((series, i) => ({ series, policy: policies[i] ?? 0 }))
    .filter(({ policy }) => !hidden.has(policy));
  const slots = new Map<string, number>();
  for (const published of [false, true])
    for (const { series } of shown)
      if (series.published === published && !slots.has(subject(series.name))) slots.set(subject(series.name), slots.size);
  return shown.map((one) => ({ ...one, slot: slots.get(subject(one.series.name)) ?? 0 }));
}

/** Below this, bars or names would be too thin to read. */
export function leastWidth(chart: BarChart): number {
  const slots = new Set(chart.series.map((series) => subject(series.name))).size;
  return 90 + chart.groups.length * Math.max(46, 8 * slots + 10);
}

/** Group n lies from n to n + 1, its name in the middle. */
function groupAxis(groups: readonly string[]): Axis {
  return {
    label: "",
    range: [0, groups.length],
    grid: false,
    ticks: () => groups.map((_, i) => i + 0.5),
    tick: (value, room) => wrap(groups[Math.floor(value)] ?? "", Math.max(3, Math.floor((room - 4) / LETTER)), LINES),
  };
}

function stripe({ ctx, ratio }: Brush, left: number, top: number, width: number, height: number, angle: number): void {
  const reach = width + height;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.translate(left, top + height); // the same for every bar, whatever its height
  ctx.rotate((-angle * Math.PI) / 180);
  ctx.globalAlpha = 0.55;
  ctx.strokeStyle = colour("card");
  ctx.lineWidth = 2 * ratio;
  ctx.beginPath();
  for (let at = -reach; at <= reach; at += 6 * ratio) {
    ctx.moveTo(-reach, at);
    ctx.lineTo(reach, at);
  }
  ctx.stroke();
  ctx.restore();
}

/** Where a value ends on the canvas; zero, which has no logarithm, at the bottom. */
function ending(brush: Brush, value: number): number {
  const y = brush.y(value);
  return Number.isFinite(y) ? Math.min(brush.bottom, y) : brush.bottom;
}

interface Foot {
  left: number;
  width: number;
  base: number; // where bars begin
}

function paintBar(brush: Brush, { series, policy }: Placed, group: number, { left, width, base }: Foot): void {
  const value = series.y[group] ?? NaN;
  if (Number.isNaN(value)) return;
  const middle = left + width / 2;
  const end = ending(brush, value);
  if (series.published) return paintDiamond(brush, middle, end, policy);
  const top = Math.min(end, base);
  const height = Math.abs(base - end);
  brush.ctx.fillStyle = policyColour(policy);
  brush.ctx.fillRect(left, top, width, height);
  const angle = policyStripes(policy);
  if (angle !== undefined) stripe(brush, left, top, width, height, angle);
  const [low = value, high = value] = [series.low[group], series.high[group]];
  paintWhisker(brush, middle, ending(brush, low), ending(brush, high), Math.min(4 * brush.ratio, width / 3));
}

function paint(brush: Brush, chart: BarChart, placed: readonly Placed[], log: boolean): void {
  const slots = 1 + Math.max(0, ...placed.map((one) => one.slot));
  const whole = ((brush.right - brush.left) / chart.groups.length) * FILLED;
  const width = Math.min(whole / slots, 44 * brush.ratio);
  const base = log ? brush.bottom : brush.y(0);
  const ordered = [...placed].sort((a, b) => Number(a.series.published) - Number(b.series.published));
  chart.groups.forEach((_, group) => {
    const start = brush.x(group + 0.5) - (width * slots) / 2;
    for (const one of ordered) paintBar(brush, one, group, { left: start + one.slot * width, width: width * 0.92, base });
  });
}

function rowOf({ series, policy }: Placed, group: number): Row {
  const mark = series.published ? diamond(policy) : barSwatch(policy);
  return { mark, name: labelOf(series), value: withSpread(series, group) };
}

export function bars(chart: BarChart, policies: readonly number[], hidden: Hidden): Picture {
  const placed = place(chart, policies, hidden);
  const values = chart.series.flatMap((series) => [...series.y, ...series.low, ...series.high]);
  const y = numberAxis({ label: chart.y_label, values, log: chart.log_y, zero: true });
  const groupAt = (x: number): number => Math.max(0, Math.min(chart.groups.length - 1, Math.floor(x)));
  return {
    title: `${chart.title}: ${chart.y_label} by ${chart.groups.join(", ")}`,
    lines: [],
    x: groupAxis(chart.groups),
    y,
    stepped: false,
    fixed: true,
    under: (brush) => paint(brush, chart, placed, y.log === true),
    at: (x) => chart.groups[groupAt(x)] ?? "",
    value: plain,
    rows: (x) => placed.map((one) => rowOf(one, groupAt(x))),
  };
}
