// results.ts - published against measured: a row per figure, with a verdict and what it rests on.

import { VERDICTS, type Fidelity, type Related, type Row, type Verdict } from "../reproduction";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { h } from "./dom";
import { fixed, inScale, plain, scaleForAll } from "./format";

/** With fewer rows there is nothing to pick out. */
const MANY = 12;

const MARKS: Record<Verdict, string> = {
  reproduced: "✓",
  inconclusive: "≈",
  better: "↑",
  worse: "↓",
  differs: "✗",
  faster: "»",
  "no figure published": "○",
};
const CLASSES: Record<Verdict, string> = {
  reproduced: "good",
  inconclusive: "near",
  better: "near",
  worse: "bad",
  differs: "bad",
  faster: "near",
  "no figure published": "none",
};
const FIDELITY_NAMES: Record<Fidelity, string> = {
  "released-code": "released code",
  paper: "paper's text",
  reconstructed: "reconstructed",
  tuned: "tuned to match",
};

/** The numbers of one row, all alike, and what stands behind each: −96.6 %, 1.64×, 4.10 h. */
export function inUnit(unit: string, values: readonly number[]): { texts: string[]; suffix: string } {
  if (unit === "change") return { texts: values.map(asChange), suffix: " %" };
  const known = values.filter(Number.isFinite);
  const scale = unit === "ratio" ? { divisor: 1, suffix: "×" } : scaleForAll(unit, known);
  if (scale.counts && known.every(Number.isInteger)) return { texts: values.map(plain), suffix: "" };
  const largest = Math.max(...known.map(Math.abs));
  return { texts: values.map((value) => inScale(value, scale, largest)), suffix: scale.suffix };
}

function asChange(value: number): string {
  const percent = Math.abs(100 * value);
  const sign = Number(percent.toFixed(1)) === 0 ? "±" : value < 0 ? "−" : "+";
  return sign + fixed(percent, percent >= 1000 ? 0 : 1);
}

function verdictOf(row: Row): HTMLElement {
  const { verdict } = row;
  if (!verdict) return h("td", { class: "verdict" }, "–");
  const mark = h("span", { class: "mark", "aria-hidden": "true" }, MARKS[verdict]);
  const seed = row.comparedSeed !== undefined && h("small", {}, `with seed ${row.comparedSeed}, as published`);
  return h("td", { class: `verdict ${CLASSES[verdict]}` }, mark, h("span", {}, verdict), seed);
}

/** "price: +363.4 %, time to the end". */
function related(name: string, row: Related | undefined): HTMLElement | undefined {
  if (!row) return undefined;
  const { texts, suffix } = inUnit(row.unit, [row.measured]);
  return h("small", {}, `${name}: ${texts[0] ?? ""}${suffix}, ${row.what}`);
}

function line(row: Row): HTMLElement {
  const [low, high] = row.spread ?? [NaN, NaN];
  const { texts, suffix } = inUnit(row.unit, [row.published ?? NaN, row.measured, low, high]);
  const [published, measured, from, to] = texts;
  const spread = high > low && `${from} … ${to}${suffix}`;
  return h(
    "tr",
    { "data-row": row.id },
    h(
      "th",
      { scope: "row" },
      row.what,
      row.setting !== "" && h("small", {}, `setting: ${row.setting}`),
      related("price", row.price),
      related("beside", row.beside),
      row.note !== "" && h("small", {}, row.note),
    ),
    row.published === undefined ? h("td", { class: "absent" }, "–") : h("td", {}, `${published}${suffix}`),
    h("td", {}, h("span", { class: "mean" }, Number.isNaN(row.measured) ? "–" : `${measured}${suffix}`), h("small", {}, spread)),
    verdictOf(row),
    h("td", { class: "fidelity" }, row.fidelity ? FIDELITY_NAMES[row.fidelity] : "–"),
  );
}

function count(rows: readonly Row[], verdict: Verdict): number {
  return rows.filter((row) => row.verdict === verdict).length;
}

/** How many of the published figures came out: 3 reproduced, 1 differs. */
export function tally(rows: readonly Row[]): string {
  const compared = rows.filter((row) => row.verdict !== undefined && row.verdict !== "no figure published").length;
  if (compared === 0) return "";
  const there = VERDICTS.filter((verdict) => verdict !== "no figure published" && count(rows, verdict) > 0);
  const parts = there.map((verdict) => {
    const n = count(rows, verdict);
    return `${n} ${verdict === "differs" && n > 1 ? "differ" : verdict}`;
  });
  return `Of ${compared} published ${compared === 1 ? "figure" : "figures"}: ${parts.join(", ")}.`;
}

function picker(rows: readonly Row[], chosen: Cell<Verdict | undefined>): HTMLElement | undefined {
  if (rows.length <= MANY) return undefined;
  const there = VERDICTS.filter((verdict) => count(rows, verdict) > 0);
  const options = there.map((value) => ({ value, label: `${MARKS[value]} ${value} (${count(rows, value)})` }));
  return chooser<Verdict | undefined>("Rows shown", [{ value: undefined, label: `all (${rows.length})` }, ...options], chosen);
}

export function results(rows: readonly Row[]): HTMLElement {
  const chosen = new Cell<Verdict | undefined>(undefined);
  const lines = rows.map(line);
  chosen.watch((verdict) => {
    rows.forEach((row, i) => lines[i]?.toggleAttribute("hidden", verdict !== undefined && row.verdict !== verdict));
  });
  const head = (name: string, below = ""): HTMLElement => h("th", { scope: "col" }, name, below !== "" && h("small", {}, below));
  const spread = rows.some((row) => row.spread && row.seeds > 1) ? "spread over seeds" : "";
  const heads = [head("Figure"), head("Published"), head("Measured", spread), head("Verdict"), head("Fidelity")];
  const pick = picker(rows, chosen);
  return h(
    "div",
    { class: "card" },
    pick && h("div", { class: "controls" }, pick),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Published and measured" },
      h("table", { class: "figures results" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...lines)),
    ),
  );
}
