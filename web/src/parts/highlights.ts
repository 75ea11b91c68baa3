// highlights.ts - a few figures at a glance: a bar per policy, with its interval over seeds.

import type { Figure, Run } from "../data";
import { h, styled } from "./dom";
import { scaleForAll, scaled } from "./format";
import { policyVariable } from "./palette";

/** The first that is there of each row is shown. */
const WANTED: readonly (readonly string[])[] = [
  ["jct_s.mean", "jct_s.p50"],
  ["slowdown.te.p95", "slowdown.all.p95", "slowdown.p95", "jct_s.p95"],
  ["quality.time_to.90", "gpu_utilization", "makespan_s"],
];

const HINTS: Record<Figure["better"], string> = {
  less: "less is better",
  more: "more is better",
  none: "",
};

export function unitOf(figure: Figure): string {
  return figure.id.includes("utilization") && figure.unit === "" ? "fraction" : figure.unit;
}

function percent(part: number): string {
  return `${(100 * Math.max(0, Math.min(1, part))).toFixed(2)}%`;
}

function bar(figure: Figure, policy: number, top: number): HTMLElement {
  const fill = styled(h("span", { class: "fill" }), {
    width: percent(figure.mean / top),
    background: policyVariable(policy),
  });
  const spread = figure.high > figure.low;
  const whisker = styled(h("span", { class: "whisker", hidden: !spread }), {
    left: percent(figure.low / top),
    width: percent((figure.high - figure.low) / top),
  });
  return h("span", { class: "bar", "aria-hidden": "true" }, fill, whisker);
}

function card(runs: readonly Run[], id: string): HTMLElement | undefined {
  const found = runs.map((run) => run.figures.find((figure) => figure.id === id));
  const first = found.find((figure) => figure);
  if (!first) return undefined;
  const unit = unitOf(first);
  const highest = Math.max(...found.map((figure) => Math.max(figure?.mean ?? 0, figure?.high ?? 0)));
  const top = unit === "fraction" ? Math.max(1, highest) : highest > 0 ? highest : 1;
  const scale = scaleForAll(unit, found.map((figure) => figure?.mean ?? 0));
  const rows = runs.map((run, policy) => {
    const figure = found[policy];
    return h(
      "div",
      { class: "row" },
      h("span", { class: "name", title: run.policy }, run.policy),
      figure ? bar(figure, policy, top) : h("span", { class: "bar" }),
      h("span", { class: "value" }, figure ? scaled(figure.mean, scale) : "–"),
    );
  });
  return h(
    "div",
    { class: "card highlight" },
    h("h3", {}, first.label),
    h("p", { class: "note" }, HINTS[first.better]),
    h("div", { class: "rows" }, ...rows),
  );
}

export function highlights(runs: readonly Run[]): HTMLElement {
  const has = (id: string): boolean => runs.some((run) => run.figures.some((figure) => figure.id === id));
  const ids = WANTED.map((row) => row.find(has)).filter((id): id is string => id !== undefined);
  for (const figure of runs[0]?.figures ?? []) {
    if (ids.length >= WANTED.length) break;
    if (!ids.includes(figure.id) && figure.better !== "none") ids.push(figure.id);
  }
  return h("div", { class: "grid three" }, ...ids.map((id) => card(runs, id)));
}
