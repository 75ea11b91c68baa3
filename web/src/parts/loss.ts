// loss.ts - how a job's loss falls: its reports attempt by attempt, and where the curve leads.

import type { Story } from "../schema";
import { numberAxis } from "./axes";
import { h } from "./dom";
import { plain } from "./format";
import { Plot, type Line } from "./plot";
import { even } from "./ticks";

const LAST = 0; // places in the palette
const BEFORE = 6;
const FIT = 1;

function reports(story: Story): Line[] {
  const byAttempt = new Map<number, { x: number[]; y: number[] }>();
  for (const { step, loss, attempt } of story.loss.points) {
    let line = byAttempt.get(attempt);
    if (!line) byAttempt.set(attempt, (line = { x: [], y: [] }));
    if (step <= (line.x[line.x.length - 1] ?? -Infinity)) continue;
    line.x.push(step);
    line.y.push(loss);
  }
  const last = Math.max(...byAttempt.keys());
  return [...byAttempt].map(([attempt, line]) => ({
    policy: attempt === last ? LAST : BEFORE,
    name: byAttempt.size > 1 ? `attempt ${attempt}` : "reported",
    dash: [],
    ...line,
  }));
}

function fitted(story: Story): Line[] {
  const ahead = story.loss.fit?.ahead ?? [];
  if (ahead.length < 2) return [];
  return [
    {
      policy: FIT,
      name: "expected",
      dash: [6, 4],
      x: ahead.map(({ step }) => step),
      y: ahead.map(({ value }) => value),
      low: ahead.map(({ low }) => low),
      high: ahead.map(({ high }) => high),
    },
  ];
}

export class LossChart {
  private readonly plot = new Plot(260);
  private readonly note = h("p", { class: "note" });
  private drawn = "";
  readonly element = h("div", {}, this.plot.element, this.note);

  draw(story: Story): boolean {
    const lines = [...reports(story), ...fitted(story)];
    const has = story.loss.points.length > 1;
    const of = JSON.stringify([story.loss.points.length, story.loss.points[story.loss.points.length - 1]]);
    if (!has || of === this.drawn) return has;
    this.drawn = of;
    const xs = lines.flatMap(({ x }) => [x[0] ?? 0, x[x.length - 1] ?? 0]);
    const values = lines.flatMap(({ y, low, high }) => [...y, ...(low ?? []), ...(high ?? [])]);
    this.plot.draw({
      title: "Loss by step, as reported and as expected",
      lines,
      x: { label: "Step", range: [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)], ticks: even, tick: plain },
      y: numberAxis({ label: "Loss", values, log: false, zero: false }),
      stepped: false,
      at: (step) => `Step ${plain(Math.round(step))}`,
      value: plain,
    });
    const { fit } = story.loss;
    this.note.textContent = !fit
      ? "Too few reports so far to say where this leads."
      : fit.predictable
        ? "Dashed: where the curve leads, with the range that holds the truth four times in five."
        : "Dashed: where the curve may lead; it does not follow its reports well, so expect surprises.";
    return has;
  }
}
