// frame.ts - what every page has: an opening, sections, a last line.

import { h, type Child } from "./dom";

export interface Opening {
  title: string;
  under: Child; // one line below the title
  facts: [string, string][];
  command: string;
}

export function opening({ title, under, facts, command }: Opening): HTMLElement {
  const rows = facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h(
    "header",
    {},
    h("h1", {}, title),
    under,
    rows.length > 0 && h("dl", {}, ...rows),
    command !== "" &&
      h("div", { class: "again" }, h("span", {}, "Make it again"), h("pre", { tabindex: "0" }, h("code", {}, command))),
  );
}

export function section(title: string, note: string, ...children: Child[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), note !== "" && h("p", { class: "lead" }, note), ...children);
}

export function lastLine(version: string): HTMLElement {
  return h("footer", {}, `Made by berth ${version}. This page is complete: it makes no request.`);
}

/** 1–8, 11, 14: neighbours together where there are several. */
export function seedsInWords(seeds: readonly number[]): string {
  const words: string[] = [];
  for (let i = 0; i < seeds.length; ) {
    let end = i;
    while (seeds[end + 1] === (seeds[end] ?? 0) + 1) end++;
    if (end - i >= 3) words.push(`${seeds[i] ?? ""}–${seeds[end] ?? ""}`);
    else words.push(...seeds.slice(i, end + 1).map(String));
    i = end + 1;
  }
  return words.join(", ");
}
