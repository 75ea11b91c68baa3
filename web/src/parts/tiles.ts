// tiles.ts - a tile per node: who holds each of its GPUs, what is free, what others use.

import type { Node } from "../schema";
import { holdersOf, type State } from "../state";
import { h, styled } from "./dom";
import { jobColour } from "./palette";
import { besideWords } from "./sharing";

const TILES_MAX = 400;

const classOf = (state: State, id: number): number => (state.jobs.get(id)?.class === "te" ? 1 : 0);

function wordsOf(state: State, id: number): string {
  const job = state.jobs.get(id);
  const beside = job && besideWords(job);
  return `${id}${job?.name === undefined ? "" : ` ${job.name}`}${beside === undefined ? "" : `, beside ${beside}`}`;
}

/** Two jobs on one GPU have half of its mark each. */
function pairMark(state: State, jobs: readonly number[], open: (job: number) => void): HTMLElement {
  const halves = jobs.slice(0, 2).map((id) => {
    const words = wordsOf(state, id);
    return styled(h("button", { type: "button", title: words, "aria-label": `job ${words}`, click: () => open(id) }), { background: jobColour(id, classOf(state, id)) });
  });
  return h("span", { class: "gpu held pair" }, ...halves);
}

function gpuMark(state: State, jobs: readonly number[], foreign: boolean, open: (job: number) => void): HTMLElement {
  const [first] = jobs;
  const job = first === undefined ? undefined : state.jobs.get(first);
  if (first === undefined || !job)
    return h("span", { class: foreign ? "gpu foreign" : "gpu free", title: foreign ? "in use by others" : "free" });
  if (jobs.length > 1) return pairMark(state, jobs, open);
  const trial = job.class === "te";
  const words = wordsOf(state, first);
  const mark = h("button", {
    type: "button",
    class: `gpu held${trial ? " trial" : ""}${job.state === "STOPPING" ? " leaving" : ""}`,
    title: words,
    "aria-label": `job ${words}`,
    click: () => open(first),
  });
  return styled(mark, { background: jobColour(first, trial ? 1 : 0) });
}

/** How busy each GPU is, below it: who holds one need not use it. */
function busyRow(busy: readonly number[]): HTMLElement {
  const mean = busy.reduce((sum, part) => sum + part, 0) / Math.max(1, busy.length);
  const bars = busy.map((part) => h("span", { class: "track", title: `${Math.round(100 * part)} % busy` }, styled(h("span", { class: "done" }), { width: `${100 * part}%` })));
  return h("div", { class: "busy", "aria-label": `${Math.round(100 * mean)} % busy` }, h("div", { class: "gpu-row" }, ...bars), h("small", {}, `${Math.round(100 * mean)} % busy`));
}

/** What was drawn the last time: equal nodes are not drawn again. */
type Drawn = { of: string; tile: HTMLElement };

export class Tiles {
  readonly element = h("div", { class: "tiles" });
  private drawn: Drawn[] = [];
  private theme = "";

  constructor(private readonly open: (job: number) => void) {}

  update(state: State): void {
    const holders = holdersOf(state);
    const theme = document.documentElement.dataset["theme"] ?? "";
    if (theme !== this.theme) this.drawn = [];
    this.theme = theme;
    const next = state.nodes.slice(0, TILES_MAX).map((node, i): Drawn => {
      const foreign = state.foreign.get(i)?.gpus ?? [];
      const own = holders[i] ?? [];
      const states = own.map((jobs) => jobs.map((id) => [state.jobs.get(id)?.state === "STOPPING", jobs.length > 1 && wordsOf(state, id)]));
      const of = JSON.stringify([node.name, node.up, node.reason, own, states, foreign, node.busy]);
      const before = this.drawn[i];
      return before?.of === of ? before : { of, tile: this.tile(state, node, own, foreign) };
    });
    if (next.length !== this.drawn.length || next.some((one, i) => one !== this.drawn[i]))
      this.element.replaceChildren(...next.map(({ tile }) => tile), ...this.rest(state));
    this.drawn = next;
  }

  private rest(state: State): HTMLElement[] {
    const more = state.nodes.length - TILES_MAX;
    return more > 0 ? [h("p", { class: "note" }, `and ${more} more nodes`)] : [];
  }

  private tile(state: State, node: Node, holders: readonly number[][], foreign: readonly number[]): HTMLElement {
    const total = node.gpus ?? 0;
    const held = holders.filter((jobs) => jobs.length > 0).length;
    const down = node.up === false;
    const words = down ? "down" : total === 0 ? "no GPU" : `${held}/${total}`;
    return h(
      "div",
      { class: down ? "tile down" : "tile", "data-node": node.name ?? "" },
      h(
        "div",
        { class: "tile-head" },
        h("strong", { title: node.name ?? "" }, node.name ?? ""),
        h("span", { class: "soft" }, node.type ?? ""),
        h("span", { class: "use" }, words),
      ),
      h("div", { class: "gpu-row" }, ...holders.map((jobs, gpu) => gpuMark(state, jobs, foreign.includes(gpu), this.open))),
      node.busy && busyRow(node.busy),
      down && node.reason !== undefined && h("small", {}, node.reason),
    );
  }
}
