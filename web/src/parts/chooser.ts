// chooser.ts - one of a few: buttons side by side, a list where they would be too many.

import type { Cell } from "./cell";
import { h, uniqueName } from "./dom";

export interface Option<T> {
  value: T;
  label: string;
}

const BUTTONS_MAX = 5;

function buttons<T>(label: string, options: readonly Option<T>[], cell: Cell<T>): HTMLElement {
  const name = uniqueName();
  const items = options.map((option) => {
    const input = h("input", { type: "radio", name, change: () => cell.set(option.value) });
    cell.watch((value) => (input.checked = value === option.value));
    return h("label", {}, input, h("span", {}, option.label));
  });
  return h("div", { class: "chooser", role: "radiogroup", "aria-label": label }, ...items);
}

function dropdown<T>(label: string, options: readonly Option<T>[], cell: Cell<T>): HTMLElement {
  const select = h("select", {
    "aria-label": label,
    change: () => {
      const option = options[select.selectedIndex];
      if (option) cell.set(option.value);
    },
  });
  select.append(...options.map((option) => h("option", {}, option.label)));
  cell.watch((value) => (select.selectedIndex = options.findIndex((option) => option.value === value)));
  return select;
}

/** Nothing to choose among fewer than two. */
export function chooser<T>(label: string, options: readonly Option<T>[], cell: Cell<T>): HTMLElement | undefined {
  if (options.length < 2) return undefined;
  return options.length <= BUTTONS_MAX ? buttons(label, options, cell) : dropdown(label, options, cell);
}
