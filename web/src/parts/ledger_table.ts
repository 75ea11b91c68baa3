// ledger_table.ts - the price of preemptions in numbers, by policy.

import type { Run } from "../data";
import { h } from "./dom";
import { inScale, plain, scaleForAll, type Scale } from "./format";
import { swatch } from "./palette";
import { priceOf, sparedPerHour, type Price } from "./price";

interface Quantity {
  name: string;
  unit: string; // "" for a count
  of(price: Price): number;
}

const QUANTITIES: readonly Quantity[] = [
  { name: "Preemptions", unit: "", of: (price) => price.preemptions },
  { name: "Cost, predicted", unit: "gpu_s", of: (price) => price.predicted },
  { name: "Cost, measured", unit: "gpu_s", of: (price) => price.measured },
  { name: "Waiting spared", unit: "s", of: (price) => price.spared },
  { name: "Spared per GPU hour lost", unit: "s", of: sparedPerHour },
];

function show(quantity: Quantity, price: Price, scale: Scale): HTMLElement {
  const value = quantity.of(price);
  if (!Number.isFinite(value)) return h("td", { class: "absent" }, "–");
  return h("td", {}, quantity.unit === "" ? plain(Math.round(value)) : inScale(value, scale));
}

function line(quantity: Quantity, prices: readonly Price[]): HTMLElement {
  const scale = scaleForAll(quantity.unit, prices.map(quantity.of));
  const unit = quantity.unit === "" ? "" : scale.suffix.trim();
  const cells = prices.map((price) => show(quantity, price, scale));
  return h("tr", {}, h("th", { scope: "row" }, quantity.name, " ", h("small", {}, unit)), ...cells);
}

function idleOnes(names: readonly string[]): string {
  return names.length === 0 ? "" : `No preemption under ${names.join(", ")}.`;
}

/** The policies that preempted; the others are named below. */
export function ledgerTable(runs: readonly Run[]): HTMLElement {
  const all = runs.map((run, policy) => ({ name: run.policy, policy, price: priceOf(run) }));
  const active = all.filter(({ price }) => price.preemptions > 0);
  const heads = active.map(({ name, policy }) => h("th", { scope: "col", "data-ledger": name }, swatch(policy, []), " ", name));
  const rows = QUANTITIES.map((quantity) => line(quantity, active.map(({ price }) => price)));
  const idle = idleOnes(all.filter(({ price }) => price.preemptions === 0).map(({ name }) => name));
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "The price of preemptions" },
      h(
        "table",
        { class: "figures prices" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Price"), ...heads)),
        h("tbody", {}, ...rows),
      ),
    ),
    idle !== "" && h("p", { class: "note" }, idle),
  );
}
