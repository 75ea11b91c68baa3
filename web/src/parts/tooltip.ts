// tooltip.ts - a few lines beside the pointer, at the element they belong to.

import { h, styled, type Child } from "./dom";

const GAP = 14;
const EDGE = 4; // of the window

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
    // By the window, so that a low chart in a box that scrolls does not cut it off.
    const host = this.host.getBoundingClientRect();
    const lowest = window.innerHeight - this.box.offsetHeight - EDGE;
    styled(this.box, { left: `${host.left + left}px`, top: `${Math.max(EDGE, Math.min(host.top + top, lowest))}px` });
  }

  hide(): void {
    this.box.hidden = true;
  }
}
