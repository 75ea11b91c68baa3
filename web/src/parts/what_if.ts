// what_if.ts - how far a replay is to be trusted, and what would have been otherwise.

import type { Difference, Trusted, Variant, WhatIf } from "../what_if";
import { h } from "./dom";
import { change, fixed, scaleForAll, scaled } from "./format";
import { section } from "./frame";

function tableOf(title: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    h(
      "table",
      { class: "figures" },
      h("thead", {}, h("tr", {}, ...[title, ...heads].map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, ...rows),
    ),
  );
}

function row(label: string, cells: readonly string[]): HTMLElement {
  return h("tr", {}, h("th", { scope: "row" }, label), ...cells.map((cell) => h("td", {}, cell)));
}

function trustRow({ label, happened, replayed }: Trusted): HTMLElement {
  const scale = scaleForAll("s", [happened, replayed]);
  return row(label, [scaled(happened, scale), scaled(replayed, scale), change(happened, replayed)]);
}

function percent(part: number): string {
  const value = 100 * part;
  return `${value > 0 ? "+" : ""}${fixed(value, Math.abs(value) < 10 ? 1 : 0)} %`;
}

/** The interval of a change: −40 % to −12 %; nothing where there is none. */
export function intervalOf({ low, high }: Difference): string {
  return Number.isFinite(low) && Number.isFinite(high) ? `${percent(low)} to ${percent(high)}` : "";
}

function differenceRow(difference: Difference, ranges: boolean): HTMLElement {
  const { label, unit, was, value } = difference;
  const scale = scaleForAll(unit, [was, value]);
  const cells = [scaled(was, scale), scaled(value, scale), change(was, value)];
  return row(label, ranges ? [...cells, intervalOf(difference)] : cells);
}

function about({ jobs, rejected, unfinished }: Variant): string {
  const rest = [
    `${jobs} ${jobs === 1 ? "job ends" : "jobs end"} well in both`,
    rejected > 0 && `${rejected} could never run`,
    unfinished > 0 && `${unfinished} never end`,
  ];
  return `${rest.filter((part) => part !== false).join("; ")}.`;
}

function variantTable(variant: Variant): HTMLElement {
  const ranges = variant.differences.some((difference) => intervalOf(difference) !== "");
  const heads = ["As it was", "Then", "Change", ...(ranges ? ["95 % of changes"] : [])];
  return h(
    "div",
    { class: "variant" },
    tableOf(variant.name, heads, variant.differences.map((difference) => differenceRow(difference, ranges))),
    h("p", { class: "lead" }, about(variant)),
  );
}

/** Both sections; what the whole runs look like comes after them. */
export function whatIf(study: WhatIf): HTMLElement[] {
  const parts = study.notes.map((note) => h("p", { class: "lead" }, note));
  const trust =
    study.trust.length === 0
      ? h("p", {}, "Not known: the history does not tell when its jobs ended.")
      : tableOf(`${study.jobs} jobs`, ["Happened", "Replayed", "Change"], study.trust.map(trustRow));
  const sections = [
    section("How far to trust it", "What happened beside its replay under the policy that was in charge.", ...parts, trust),
  ];
  if (study.variants.length > 0) {
    const changed = study.changed === "" ? "" : `With ${study.changed}. `;
    const note = `${changed}Differences to the replay, over the same jobs. ${study.intervals}`;
    sections.push(section("What if", note, ...study.variants.map(variantTable)));
  }
  return sections;
}
