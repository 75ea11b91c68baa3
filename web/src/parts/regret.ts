// regret.ts - one row per policy, one column per study: how much worse it is there than the best.

import type { Regret } from "../reproduction";
import { h } from "./dom";
import { fixed } from "./format";

/** From which regret on a cell has the next shade: green is at the top, red is more than twice as bad. */
export const SHADES: readonly number[] = [0.02, 0.1, 0.3, 1];

export function shadeOf(regret: number): number {
  return SHADES.filter((limit) => regret > limit).length;
}

/** +3 %, −12 %, and ×4.5 from where percentages are hard to read. */
export function inWords(regret: number): string {
  if (Number.isNaN(regret)) return "";
  if (regret >= 1) return `×${fixed(1 + regret, regret >= 9 ? 0 : 1)}`;
  const percent = Math.round(100 * regret);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : ""}${Math.abs(percent)} %`;
}

export function worstOf(regrets: readonly number[]): number {
  return Math.max(...regrets.filter((regret) => !Number.isNaN(regret)));
}

/** The first policy stays first; of the others the one that is bad in the fewest studies comes next. */
export function inOrder(policies: Regret["policies"]): Regret["policies"] {
  const [first, ...others] = policies;
  const typical = ({ regrets }: { regrets: number[] }): number => {
    const known = regrets.filter((regret) => !Number.isNaN(regret));
    return known.reduce((sum, regret) => sum + Math.log1p(Math.max(0, regret)), 0) / Math.max(1, known.length);
  };
  const everywhere = Math.max(...others.map(({ regrets }) => regrets.filter((regret) => !Number.isNaN(regret)).length));
  const runs = ({ regrets }: { regrets: number[] }): boolean => 2 * regrets.filter((regret) => !Number.isNaN(regret)).length >= everywhere;
  others.sort((a, b) => Number(runs(b)) - Number(runs(a)) || typical(a) - typical(b));
  return first ? [first, ...others] : [];
}

function cell(regret: number, kind: string): HTMLElement {
  if (Number.isNaN(regret)) return h("td", { class: "absent", title: "not run in this study" }, "");
  return h("td", { class: `shade-${shadeOf(regret)} ${kind}` }, inWords(regret));
}

export function regretTable(regret: Regret): HTMLElement {
  const heads = ["policy", ...regret.studies, "worst"].map((name) => h("th", { scope: "col" }, name.replace(/[_@]/g, " ")));
  const rows = inOrder(regret.policies).map(({ name, regrets }, i) =>
    h(
      "tr",
      { class: i === 0 ? "subject" : "" },
      h("th", { scope: "row" }, name),
      ...regrets.map((one) => cell(one, "")),
      cell(worstOf(regrets), "total"),
    ),
  );
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": regret.title },
      h("table", { class: "figures regret" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
    ),
  );
}
