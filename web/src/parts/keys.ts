// keys.ts - the page by keyboard: which keys there are, and a dialog that says so.

import type { View } from "../views/view";
import { h } from "./dom";

const PAGES: Record<string, string> = { n: "now", c: "cluster", l: "ledger", s: "study" };

const HELP: [string, string][] = [
  ["n  c  l  s", "Now, Cluster, Ledger, Study"],
  ["/", "find jobs"],
  ["j  k", "next job, the one before"],
  ["Enter", "open it"],
  ["Esc", "back"],
  ["←  →  +  −  0", "move and zoom the chart that has the focus"],
  ["?", "this"],
];

export function helpDialog(): HTMLDialogElement {
  const rows = HELP.map(([keys, words]) =>
    h("tr", {}, h("th", {}, ...keys.split(/\s+/).flatMap((key) => [h("kbd", {}, key), " "])), h("td", {}, words)),
  );
  const dialog = h("dialog", { class: "card", "aria-label": "Keys" }, h("h2", {}, "Keys"), h("table", {}, ...rows));
  dialog.append(h("button", { type: "button", click: () => dialog.close() }, "Close"));
  return dialog;
}

export interface Keyboard {
  view(): View | undefined;
  help: HTMLDialogElement;
  go(page: string): void;
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function listen({ view, help, go }: Keyboard): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || help.open) return;
    if (isWriting(event.target)) {
      if (event.key === "Escape" || event.key === "Enter") (event.target as HTMLElement).blur();
      return;
    }
    const onControl = event.target instanceof HTMLElement && event.target.closest("button, a, summary, canvas") !== null;
    const keys: Record<string, (() => void) | undefined> = {
      "/": () => view()?.find?.(),
      j: () => view()?.step?.(1),
      k: () => view()?.step?.(-1),
      "?": () => help.showModal(),
      Escape: () => location.hash.startsWith("#/job/") && go("now"),
      Enter: onControl ? undefined : () => view()?.enter?.(),
    };
    const page = PAGES[event.key];
    const step = page === undefined ? keys[event.key] : (): void => go(page);
    if (!step) return;
    event.preventDefault();
    step();
  });
}
