// legend.ts - the policies with their lines; a click hides one in every chart, or shows it again.

import type { Cell } from "./cell";
import { h } from "./dom";
import { swatch } from "./palette";

export type Hidden = ReadonlySet<number>;

export function legend(names: readonly string[], hidden: Cell<Hidden>): HTMLElement {
  const items = names.map((name, index) => {
    const toggle = (): void => {
      const next = new Set(hidden.get());
      if (!next.delete(index)) next.add(index);
      hidden.set(next.size === names.length ? new Set() : next);
    };
    const button = h("button", { type: "button", click: toggle }, swatch(index), h("span", {}, name));
    hidden.watch((set) => button.setAttribute("aria-pressed", String(!set.has(index))));
    return button;
  });
  return h("div", { class: "legend", role: "group", "aria-label": "Policies shown in the charts" }, ...items);
}
