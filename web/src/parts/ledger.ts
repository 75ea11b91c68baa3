// ledger.ts - what preemptions cost and brought: expected and measured, by policy.

import type { Ledger, Run } from "../data";
import { timeAxis } from "./axes";
import { Cell } from "./cell";
import { h } from "./dom";
import { inScale, mark, moment, scaled, scaleFor, type Scale } from "./format";
import { ledgerTable } from "./ledger_table";
import type { Hidden } from "./legend";
import { swatch } from "./palette";
import { Plot, valueAt, type Line } from "./plot";
import { cumulative, preempts } from "./price";
import { even } from "./ticks";

const EXPECTED: readonly number[] = [5, 4];
const MEASURED: readonly number[] = [];

interface Pair {
  expected: Line;
  measured: Line;
}

function pairOf(run: Run, ledger: Ledger, policy: number): Pair {
  const line = (values: number[], dash: readonly number[]): Line => ({
    policy,
    name: run.policy,
    dash,
    ...cumulative(ledger.t_s, values),
  });
  return { expected: line(ledger.predicted_gpu_s, EXPECTED), measured: line(ledger.actual_gpu_s, MEASURED) };
}

function pairsOf(runs: readonly Run[], hidden: Hidden): Pair[] {
  const pairs: Pair[] = [];
  runs.forEach((run, policy) => {
    if (run.ledger && preempts(run) && !hidden.has(policy)) pairs.push(pairOf(run, run.ledger, policy));
  });
  return pairs;
}

function says({ expected, measured }: Pair, x: number, scale: Scale): string {
  const value = (line: Line): number => valueAt(line, x, false) ?? line.y[line.y.length - 1] ?? 0;
  return `${scaled(value(measured), scale)} (predicted ${inScale(value(expected), scale)})`;
}

function draw(plot: Plot, runs: readonly Run[], hidden: Hidden): void {
  const pairs = pairsOf(runs, hidden);
  const lines = pairs.flatMap(({ expected, measured }) => [expected, measured]);
  const most = Math.max(0, ...lines.map((line) => line.y[line.y.length - 1] ?? 0));
  const scale = scaleFor("gpu_s", most);
  const x = timeAxis(runs);
  const end = Math.max(x.range[1], ...lines.map((line) => line.x[line.x.length - 1] ?? 0));
  plot.draw({
    title: "GPU time lost to preemptions until each moment, predicted and measured, by policy",
    lines,
    x: { ...x, range: [0, end] },
    y: {
      label: `Lost so far,${scale.suffix}`,
      range: [0, most > 0 ? most * 1.08 : 1],
      ticks: (min, max, count) => even(min / scale.divisor, max / scale.divisor, count).map((mark) => mark * scale.divisor),
      tick: (value) => mark(value / scale.divisor),
    },
    stepped: false,
    named: pairs.map((pair) => pair.measured),
    at: (value) => `Lost by ${moment(value)}`,
    value: (value) => scaled(value, scale),
    rows: (value) =>
      pairs.map((pair) => ({
        mark: swatch(pair.measured.policy, MEASURED),
        name: pair.measured.name,
        value: says(pair, value, scale),
      })),
  });
}

export function ledger(runs: readonly Run[], hidden: Cell<Hidden>): HTMLElement {
  const plot = new Plot(300);
  hidden.watch((set) => draw(plot, runs, set));
  const key = h(
    "div",
    { class: "key", "aria-hidden": "true" },
    h("span", {}, h("i", { class: "solid" }), "measured"),
    h("span", {}, h("i", { class: "dashed" }), "predicted when it was decided"),
  );
  return h(
    "div",
    { class: "grid ledger" },
    h("div", { class: "card" }, plot.element, key),
    ledgerTable(runs),
  );
}
