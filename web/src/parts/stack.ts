// stack.ts - counts over time on top of each other; colours and stripes tell the layers apart.

import { clockTime, dayTime, mark, plain } from "./format";
import { barSwatch, policyColour, policyStripes, swatch } from "./palette";
import { Plot, valueAt, type Axis, type Line } from "./plot";
import type { Brush } from "./plot_paint";
import { colour } from "./theme";
import { clock, even } from "./ticks";

export interface Layer {
  name: string;
  place: number; // in the palette
  y: number[];
}

/** Local midnight: marks are whole hours of the clock on the wall. */
export function wallAxis(from: number, to: number): Axis {
  const base = new Date(to * 1000).setHours(0, 0, 0, 0) / 1000;
  let step = 60;
  return {
    label: "",
    range: [from, Math.max(to, from + 1)],
    ticks: (min, max, count) => {
      const marks = clock(min - base, max - base, count).map((mark) => mark + base);
      step = (marks[1] ?? 60) - (marks[0] ?? 0) || 60;
      return marks;
    },
    tick: (value) => clockTime(value, step),
  };
}

/** Tiles of stripes, by colour and angle; made once. */
const patterns = new Map<string, CanvasPattern | string>();

function striped(ink: string, angle: number | undefined): CanvasPattern | string {
  const key = `${ink} ${angle ?? ""} ${colour("card")}`;
  const known = patterns.get(key);
  if (known !== undefined || angle === undefined) return known ?? ink;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const ctx = tile.getContext("2d");
  if (!ctx) return ink;
  ctx.fillStyle = ink;
  ctx.fillRect(0, 0, 8, 8);
  ctx.strokeStyle = colour("card");
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = 2;
  ctx.beginPath();
  if (angle === 0) ctx.moveTo(0, 4), ctx.lineTo(8, 4);
  else if (angle === 90) ctx.moveTo(4, 0), ctx.lineTo(4, 8);
  else
    for (const shift of [-8, 0, 8]) {
      ctx.moveTo(shift - 1, angle === 45 ? 9 : -1);
      ctx.lineTo(shift + 9, angle === 45 ? -1 : 9);
    }
  ctx.stroke();
  const pattern = ctx.createPattern(tile, "repeat") ?? ink;
  patterns.set(key, pattern);
  return pattern;
}

function paintLayer({ ctx, x, y }: Brush, t: readonly number[], low: readonly number[], high: readonly number[], place: number): void {
  ctx.beginPath();
  t.forEach((at, i) => {
    if (i > 0) ctx.lineTo(x(at), y(high[i - 1] ?? 0));
    ctx.lineTo(x(at), y(high[i] ?? 0));
  });
  for (let i = t.length - 1; i >= 0; i--) {
    ctx.lineTo(x(t[i] ?? 0), y(low[i] ?? 0));
    if (i > 0) ctx.lineTo(x(t[i] ?? 0), y(low[i - 1] ?? 0));
  }
  ctx.closePath();
  ctx.globalAlpha = 0.8;
  ctx.fillStyle = striped(policyColour(place), policyStripes(place));
  ctx.fill();
  ctx.globalAlpha = 1;
}

export interface Stack {
  title: string;
  label: string;
  t: readonly number[]; // a value holds until the next
  now: number;
  layers: readonly Layer[];
  most?: number; // at least so high
  over?: readonly Line[]; // drawn on top
}

export function drawStack(plot: Plot, { title, label, t, now, layers, most, over = [] }: Stack): void {
  const times = [...t, now];
  const held = (values: readonly number[]): number[] => [...values, values[values.length - 1] ?? 0];
  let floor = times.map(() => 0);
  const tops = layers.map((layer) => {
    const low = floor;
    floor = held(layer.y).map((value, i) => value + (low[i] ?? 0));
    return { low, high: floor };
  });
  const highest = Math.max(most ?? 1, 1, ...floor);
  const lines = layers.map((layer) => ({ policy: layer.place, name: layer.name, x: times, y: held(layer.y) }));
  plot.draw({
    title,
    lines: [{ policy: 6, name: "all", x: times, y: floor, dash: [] }, ...over],
    x: wallAxis(times[0] ?? now - 1, now),
    y: { label, range: [0, highest * 1.06], ticks: even, tick: mark },
    stepped: true,
    at: (time) => dayTime(time, now),
    value: plain,
    rows: (time) =>
      [
        ...over.map((line) => ({ mark: swatch(line.policy, line.dash), name: line.name, value: plain(valueAt(line, time, true) ?? 0) })),
        ...[...lines].reverse().map((line) => ({ mark: barSwatch(line.policy), name: line.name, value: plain(valueAt(line, time, true) ?? 0) })),
      ],
    under: (brush) => layers.forEach((layer, i) => paintLayer(brush, times, tops[i]?.low ?? [], tops[i]?.high ?? [], layer.place)),
  });
}
