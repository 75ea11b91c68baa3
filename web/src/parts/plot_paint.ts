// plot_paint.ts - what a plot shows beside its lines: spreads, points, names at their ends.

import { policyColour } from "./palette";
import type { Line } from "./plot";
import { colour } from "./theme";
import { apart } from "./ticks";

/** A canvas and where values lie on it, in its own pixels. */
export interface Brush {
  ctx: CanvasRenderingContext2D;
  left: number;
  right: number;
  top: number;
  bottom: number;
  ratio: number; // of its pixels to those of the page
  x(value: number): number;
  y(value: number): number;
}

const NAME_HEIGHT = 14;
const NAME_LENGTH = 24;

/** Inside the axes only, and whatever it sets is undone. */
export function within(brush: Brush, paint: (brush: Brush) => void): void {
  const { ctx, left, right, top, bottom, ratio } = brush;
  const edge = 6 * ratio; // a point on the border is still whole
  ctx.save();
  ctx.beginPath();
  ctx.rect(left - edge, top - edge, right - left + 2 * edge, bottom - top + 2 * edge);
  ctx.clip();
  paint(brush);
  ctx.restore();
}

/** The area between low and high. */
export function paintBand({ ctx, x, y }: Brush, line: Line): void {
  const { low, high } = line;
  if (!low || !high || line.x.length < 2) return;
  ctx.beginPath();
  line.x.forEach((at, i) => ctx.lineTo(x(at), y(high[i] ?? 0)));
  for (let i = line.x.length - 1; i >= 0; i--) ctx.lineTo(x(line.x[i] ?? 0), y(low[i] ?? 0));
  ctx.closePath();
  ctx.globalAlpha = 0.16;
  ctx.fillStyle = policyColour(line.policy);
  ctx.fill();
  ctx.globalAlpha = 1;
}

/** From low to high with a short bar at either end; nothing where they are the same. */
export function paintWhisker({ ctx, ratio }: Brush, x: number, low: number, high: number, half: number): void {
  if (!(Math.abs(high - low) > ratio)) return;
  ctx.beginPath();
  ctx.moveTo(x, low);
  ctx.lineTo(x, high);
  for (const end of [low, high]) {
    ctx.moveTo(x - half, end);
    ctx.lineTo(x + half, end);
  }
  ctx.strokeStyle = colour("ink");
  ctx.lineWidth = 1.25 * ratio;
  ctx.stroke();
}

/** A published value: a diamond with a rim, which no measured one has. */
export function paintDiamond({ ctx, ratio }: Brush, x: number, y: number, policy: number): void {
  const r = 5.5 * ratio;
  ctx.beginPath();
  ctx.moveTo(x, y - r);
  ctx.lineTo(x + r, y);
  ctx.lineTo(x, y + r);
  ctx.lineTo(x - r, y);
  ctx.closePath();
  ctx.fillStyle = policyColour(policy);
  ctx.fill();
  ctx.strokeStyle = colour("ink");
  ctx.lineWidth = 1.5 * ratio;
  ctx.stroke();
}

export function paintPoints(brush: Brush, line: Line): void {
  const { ctx, ratio } = brush;
  line.x.forEach((at, i) => {
    const x = brush.x(at);
    const y = brush.y(line.y[i] ?? 0);
    if (line.points === "published") return paintDiamond(brush, x, y, line.policy);
    ctx.beginPath();
    ctx.arc(x, y, 3 * ratio, 0, 2 * Math.PI);
    ctx.fillStyle = policyColour(line.policy);
    ctx.fill();
  });
}

/** Each line's name above its end. */
export function paintNames({ ctx, x, y, ratio, top, bottom }: Brush, lines: readonly Line[]): void {
  const gap = NAME_HEIGHT * ratio;
  const ends = lines.map((line) => y(line.y[line.y.length - 1] ?? 0) - 6 * ratio);
  const places = apart(ends, gap, top + gap, bottom);
  ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "alphabetic";
  ctx.lineJoin = "round";
  ctx.lineWidth = 4 * ratio;
  ctx.strokeStyle = colour("card");
  lines.forEach((line, i) => {
    const name = line.name.length > NAME_LENGTH ? `${line.name.slice(0, NAME_LENGTH - 1)}…` : line.name;
    const at = x(line.x[line.x.length - 1] ?? 0);
    ctx.strokeText(name, at, places[i] ?? 0);
    ctx.fillStyle = policyColour(line.policy);
    ctx.fillText(name, at, places[i] ?? 0);
  });
}
