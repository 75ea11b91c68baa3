// tooltip.ts - a few lines beside the pointer, inside the element they belong to.

import { h, styled, type Child } from "./dom";

const GAP = 14;

export class Tooltip {
  private readonly box = h("div", { class: "tooltip", role: "status", hidden: true });

  constructor(private readonly host: HTMLElement) {
    host.append(this.box);
  }

  /** Shows it beside the point (x, y) of the host, on the side with more room. */
  show(x: number, y: number, ...children: Child[]): void {
    this.box.replaceChildren(...children.filter((c): c is Node | string => c !== undefined && c !== false));
    this.box.hidden = false;
    const width = this.box.offsetWidth;
    const right = x + GAP + width <= this.host.clientWidth;
    const left = right ? x + GAP : Math.max(0, x - GAP - width);
    const top = Math.max(0, Math.min(y - GAP, this.host.clientHeight - this.box.offsetHeight));
    styled(this.box, { left: `${left}px`, top: `${top}px` });
  }

  hide(): void {
    this.box.hidden = true;
  }
}
