// legend.ts - the policies with their marks; a click hides one in every chart, or shows it again.

import type { Cell } from "./cell";
import { h } from "./dom";
import { swatch } from "./palette";

export type Hidden = ReadonlySet<number>;

export interface Entry {
  policy: number;
  name: string;
  mark: HTMLElement;
}

/** One for these entries; the last that is hidden brings all of them back. */
export function legendOf(entries: readonly Entry[], hidden: Cell<Hidden>): HTMLElement {
  const policies = new Set(entries.map((entry) => entry.policy));
  const items = entries.map(({ policy, name, mark }) => {
    const toggle = (): void => {
      const next = new Set(hidden.get());
      if (!next.delete(policy)) next.add(policy);
      if ([...policies].every((one) => next.has(one))) policies.forEach((one) => next.delete(one));
      hidden.set(next);
    };
    const button = h("button", { type: "button", click: toggle }, mark, h("span", {}, name));
    hidden.watch((set) => button.setAttribute("aria-pressed", String(!set.has(policy))));
    return button;
  });
  return h("div", { class: "legend", role: "group", "aria-label": "What the charts show" }, ...items);
}

/** The policies of a comparison, in their order. */
export function legend(names: readonly string[], hidden: Cell<Hidden>): HTMLElement {
  return legendOf(names.map((name, policy) => ({ policy, name, mark: swatch(policy) })), hidden);
}
