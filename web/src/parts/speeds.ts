// speeds.ts - how fast a job was on which accelerators: a bar each, with its range.

import type { Story } from "../schema";
import { h, styled } from "./dom";
import { plain } from "./format";
import { policyVariable } from "./palette";

export function speedsOf(speeds: Story["speeds"]): HTMLElement {
  const most = Math.max(...speeds.map(({ high }) => high), 1e-12);
  const part = (value: number): string => `${(100 * value) / most}%`;
  const rows = speeds.map(({ type, gpus, steps_per_s, low, high, reports }, i) =>
    h(
      "div",
      { class: "row", title: `${plain(low)} to ${plain(high)}, ${reports} reports` },
      h("span", { class: "name" }, `${gpus} × ${type}`),
      h(
        "span",
        { class: "bar" },
        styled(h("span", { class: "fill" }), { width: part(steps_per_s), background: policyVariable(i) }),
        high > low && styled(h("span", { class: "whisker" }), { left: part(low), width: part(high - low) }),
      ),
      h("span", { class: "value" }, `${plain(steps_per_s)} steps/s`),
    ),
  );
  return h("div", { class: "highlight" }, h("div", { class: "rows" }, ...rows));
}
