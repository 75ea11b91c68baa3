// stats.ts - a few figures side by side, large enough to be read from across the room.

import { h, styled } from "./dom";

export class Stats {
  readonly element = h("div", { class: "stats" });
  private readonly boxes = new Map<string, { value: HTMLElement; more: HTMLElement; fill: HTMLElement; bar: HTMLElement }>();

  /** 'part' (0..1) draws a bar below it. */
  set(name: string, value: string, more = "", part?: number): void {
    let box = this.boxes.get(name);
    if (!box) {
      const fill = h("span", { class: "done" });
      box = {
        value: h("strong", {}),
        more: h("span", { class: "soft" }),
        fill,
        bar: h("span", { class: "track", "aria-hidden": "true" }, fill),
      };
      this.boxes.set(name, box);
      this.element.append(h("div", { class: "stat" }, h("span", { class: "stat-name" }, name), h("div", {}, box.value, " ", box.more), box.bar));
    }
    if (box.value.textContent !== value) box.value.textContent = value;
    if (box.more.textContent !== more) box.more.textContent = more;
    box.bar.hidden = part === undefined;
    styled(box.fill, { width: `${100 * Math.max(0, Math.min(1, part ?? 0))}%` });
  }
}
