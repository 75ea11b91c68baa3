// table.ts - every figure of every policy, with its interval and the change against the first.

import type { Figure, Run } from "../data";
import { h } from "./dom";
import { change, inScale, scaleForAll, type Scale } from "./format";
import { unitOf } from "./highlights";
import { swatch } from "./palette";

interface Row {
  id: string;
  label: string;
  better: Figure["better"];
  unit: string;
  cells: (Figure | undefined)[];
}

/** One row per figure, in the order in which the runs name them. */
function rowsOf(runs: readonly Run[]): Row[] {
  const rows = new Map<string, Row>();
  runs.forEach((run, policy) => {
    for (const figure of run.figures) {
      let row = rows.get(figure.id);
      if (!row) {
        const cells = runs.map(() => undefined);
        row = { id: figure.id, label: figure.label, better: figure.better, unit: unitOf(figure), cells };
        rows.set(figure.id, row);
      }
      row.cells[policy] = figure;
    }
  });
  return [...rows.values()];
}

/** Mean ± half width where the interval is even, mean and (low–high) where it is not. */
function interval(figure: Figure, scale: Scale): string {
  const { mean, low, high } = figure;
  if (!(high > low)) return "";
  const below = mean - low;
  const above = high - mean;
  const text = (value: number): string => inScale(value, scale, mean);
  if (Math.abs(above - below) <= 0.05 * (high - low)) return `± ${text((high - low) / 2)}`;
  return `(${text(low)}–${text(high)})`;
}

function bestOf(row: Row): Figure | undefined {
  if (row.better === "none") return undefined;
  const sign = row.better === "less" ? 1 : -1;
  const there = row.cells.filter((cell): cell is Figure => cell !== undefined && Number.isFinite(cell.mean));
  if (there.length < 2 || there.every((cell) => cell.mean === there[0]?.mean)) return undefined;
  return there.reduce((best, cell) => (sign * cell.mean < sign * best.mean ? cell : best));
}

/** Not to be told from the best: the intervals over seeds overlap. */
function ties(figure: Figure, best: Figure): boolean {
  return figure.mean === best.mean || (figure.n > 1 && figure.low <= best.high && figure.high >= best.low);
}

function changeCell(row: Row, figure: Figure, first: Figure | undefined): HTMLElement | undefined {
  if (!first || figure === first) return undefined;
  const text = change(first.mean, figure.mean);
  const gain = (figure.mean - first.mean) * (row.better === "less" ? -1 : 1);
  const judged = row.better === "none" || Math.abs(gain) < 5e-4 * Math.abs(first.mean);
  return h("span", { class: `change ${judged ? "" : gain > 0 ? "good" : "bad"}` }, text);
}

function cell(row: Row, figure: Figure | undefined, best: Figure | undefined, scale: Scale): HTMLElement {
  if (!figure) return h("td", { class: "absent" }, "–");
  const isBest = figure === best;
  const near = !isBest && best !== undefined && ties(figure, best);
  const mark = isBest ? "★" : near ? "☆" : "";
  const note = isBest ? "best" : near ? "not to be told from the best" : "";
  return h(
    "td",
    { class: isBest ? "best" : near ? "near" : "", title: note },
    h("span", { class: "mean" }, inScale(figure.mean, scale)),
    " ",
    h("span", { class: "interval" }, interval(figure, scale)),
    " ",
    h("span", { class: "mark" }, mark),
    " ",
    changeCell(row, figure, row.cells[0]),
  );
}

function line(row: Row): HTMLElement {
  const scale = scaleForAll(row.unit, row.cells.map((figure) => figure?.mean ?? 0));
  const best = bestOf(row);
  return h(
    "tr",
    { "data-figure": row.id },
    h("th", { scope: "row" }, row.label, " ", h("small", {}, scale.suffix.trim())),
    ...row.cells.map((figure) => cell(row, figure, best, scale)),
  );
}

/** The plain values with tabs between, for a spreadsheet. */
function asText(runs: readonly Run[], rows: readonly Row[]): string {
  const head = ["figure", "unit", ...runs.flatMap((run) => [run.policy, `${run.policy} low`, `${run.policy} high`])];
  const lines = rows.map((row) => [
    row.id,
    row.unit,
    ...row.cells.flatMap((f) => (f ? [f.mean, f.low, f.high].map(String) : ["", "", ""])),
  ]);
  return [head, ...lines].map((cells) => cells.join("\t")).join("\n") + "\n";
}

function copyButton(runs: readonly Run[], rows: readonly Row[]): HTMLElement | undefined {
  if (!("clipboard" in navigator)) return undefined;
  const button = h("button", { type: "button", class: "plain" }, "Copy for a spreadsheet");
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(asText(runs, rows)).then(() => (button.textContent = "Copied"));
  });
  return button;
}

export function table(runs: readonly Run[]): HTMLElement {
  const rows = rowsOf(runs);
  const several = runs.length > 1;
  const seeds = runs.some((run) => run.figures.some((figure) => figure.n > 1));
  const head = runs.map((run, policy) =>
    h("th", { scope: "col" }, swatch(policy), " ", run.policy, h("small", {}, run.brief)),
  );
  const words = [
    several && "★ best.",
    several && seeds && "☆ its interval overlaps the best’s.",
    several && `Percentages: change against ${runs[0]?.policy ?? ""}.`,
    seeds && "± or (low–high): interval over seeds.",
  ];
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "All figures" },
      h(
        "table",
        { class: "figures" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Figure"), ...head)),
        h("tbody", {}, ...rows.map(line)),
      ),
    ),
    h("div", { class: "controls" }, h("p", { class: "note" }, words.filter(Boolean).join(" ")), copyButton(runs, rows)),
  );
}
