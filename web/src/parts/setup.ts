// setup.ts - what of a study's set-up the paper says, what was worked out, what was chosen here.

import { ORIGINS, type Origin, type Reproduction } from "../reproduction";
import { h } from "./dom";

const HEADS: Record<Origin, [string, string]> = {
  published: ["Published", "as the paper states it"],
  reconstructed: ["Reconstructed", "worked out from what the paper does state"],
  tuned: ["Tuned", "chosen so that figures come near the published ones"],
  ours: ["Ours", "chosen for this study"],
};

function group([head, meaning]: [string, string], items: readonly string[]): HTMLElement | undefined {
  if (items.length === 0) return undefined;
  return h(
    "div",
    { class: "card origin" },
    h("h3", {}, head),
    h("p", { class: "note" }, meaning),
    h("ul", {}, ...items.map((item) => h("li", {}, item))),
  );
}

export function setup(items: Reproduction["setup"]): HTMLElement {
  const of = (origin: Origin | undefined): string[] =>
    items.filter((item) => item.origin === origin).map((item) => item.what);
  return h(
    "div",
    { class: "grid three" },
    ...ORIGINS.map((origin) => group(HEADS[origin], of(origin))),
    group(["Other", "of unknown origin"], of(undefined)),
  );
}
