// chip.ts - a job's state, class and progress in a word: a colour, and a shape beside it.

import type { Job } from "../schema";
import { leftNow, stepNow, type Seen } from "../state";
import { h, styled } from "./dom";
import { plain, span } from "./format";
import { jobColour } from "./palette";

const STATES: Record<Job["state"], { word: string; mark: string }> = {
  PENDING: { word: "waits", mark: "○" },
  RUNNING: { word: "runs", mark: "▶" },
  STOPPING: { word: "leaves", mark: "◨" },
  HELD: { word: "held", mark: "‖" },
  COMPLETED: { word: "done", mark: "✓" },
  FAILED: { word: "failed", mark: "✕" },
  CANCELLED: { word: "cancelled", mark: "⊘" },
  REJECTED: { word: "rejected", mark: "⊗" },
};

export function stateWord(state: Job["state"]): string {
  return STATES[state].word;
}

export function stateChip(state: Job["state"]): HTMLElement {
  const { word, mark } = STATES[state];
  return h("span", { class: `chip ${state.toLowerCase()}` }, h("i", { "aria-hidden": "true" }, mark), word);
}

export function className(name: string): string {
  return name === "te" ? "trial" : "best effort";
}

/** The colour it has in the chart, as a small square; trials are round. */
export function jobMark(job: { id: number; class: string }): HTMLElement {
  const trial = job.class === "te";
  const mark = h("i", { class: trial ? "job-mark trial" : "job-mark", "aria-hidden": "true" });
  return styled(mark, { background: jobColour(job.id, trial ? 1 : 0) });
}

export function nameOf(job: Job): string {
  return job.name ?? (job.array_index === undefined ? "" : `[${job.array_index}]`);
}

/** How far it is: a bar where that is known, else the step. */
export function progressOf(job: Seen, now: number): HTMLElement | string {
  const step = stepNow(job, now);
  const steps = job.progress?.steps;
  if (step === undefined) return "";
  if (steps === undefined || steps <= 0) return `step ${plain(Math.floor(step))}`;
  const part = Math.max(0, Math.min(1, step / steps));
  const left = leftNow(job, now);
  const percent = Math.min(Math.floor(100 * part), job.state === "COMPLETED" ? 100 : 99); // it has not ended
  const unknown = job.state === "RUNNING" ? " · –" : "";
  const words = `${percent} %${left === undefined ? unknown : ` · ${span(left)}`}`;
  return h(
    "span",
    { class: "meter" },
    h("span", { class: "track", "aria-hidden": "true" }, styled(h("span", { class: "done" }), { width: `${100 * part}%` })),
    h("span", {}, words),
  );
}
