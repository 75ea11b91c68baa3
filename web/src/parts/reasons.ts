// reasons.ts - what holds a job back, in full.

import type { Why } from "../schema";
import { h } from "./dom";

function jobs(ids: readonly number[], more: number): HTMLElement {
  const links = ids.flatMap((id, i) => [i > 0 ? ", " : "", h("a", { href: `#/job/${id}` }, String(id))]);
  return h("p", {}, "Ahead of it: ", ...links, more > 0 && ` and ${more} more`, ".");
}

export function reasonsOf(why: Why): HTMLElement {
  return h(
    "div",
    { class: "why" },
    !why.can_ever_run && h("p", { class: "never" }, "As things are, it can never run."),
    h("ul", {}, ...why.reasons.map(({ token, text }) => h("li", {}, h("code", {}, token), " ", text))),
    why.ahead.length > 0 && jobs(why.ahead, why.ahead_more ?? 0),
    why.smallest_change !== undefined && h("p", {}, "What would start it now: ", h("strong", {}, why.smallest_change)),
  );
}
