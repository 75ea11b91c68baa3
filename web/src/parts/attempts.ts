// attempts.ts - one job's life on a line: waiting, loading, running, leaving, attempt by attempt.

import type { Attempt, Job, Story } from "../schema";
import { h, styled } from "./dom";
import { clockTime, dayTime, gpuTime, plain, span } from "./format";
import { clock } from "./ticks";

interface Piece {
  kind: "waits" | "loads" | "runs" | "leaves";
  from: number;
  to: number;
  words: string;
}

function piecesOf(job: Job, attempts: readonly Attempt[], now: number): Piece[] {
  const pieces: Piece[] = [];
  const add = (kind: Piece["kind"], from: number | undefined, to: number | undefined, words: string): void => {
    if (from !== undefined && to !== undefined && to > from) pieces.push({ kind, from, to, words: `${words}: ${span(to - from)}` });
  };
  let free = job.submit;
  for (const { attempt, start, loaded, recalled, end } of attempts) {
    if (start === undefined) continue;
    const out = end ?? now;
    const told = Math.min(out, recalled ?? out);
    const ready = Math.min(told, loaded ?? told);
    add("waits", free, start, "waits");
    add("loads", start, ready, `attempt ${attempt}, loading`);
    add("runs", ready, told, `attempt ${attempt}, running`);
    add("leaves", told, out, `attempt ${attempt}, leaving`);
    free = out;
  }
  if (job.end === undefined) {
    const last = attempts[attempts.length - 1];
    if (last?.start === undefined || last.end !== undefined) add("waits", free, now, "waits");
  } else add("waits", free, job.end, "waits");
  return pieces;
}

function bar(job: Job, attempts: readonly Attempt[], now: number): HTMLElement {
  const end = job.end ?? now;
  const length = Math.max(1e-3, end - job.submit);
  const at = (time: number): string => `${(100 * (time - job.submit)) / length}%`;
  const pieces = piecesOf(job, attempts, now).map((piece) =>
    styled(h("span", { class: `piece ${piece.kind}`, title: piece.words }), { left: at(piece.from), width: `${(100 * (piece.to - piece.from)) / length}%` }),
  );
  const cuts = attempts
    .filter(({ how, end: left }) => how === "preempted" && left !== undefined)
    .map((one) => styled(h("span", { class: "cut", title: "preempted" }), { left: at(one.end ?? 0) }));
  const zone = new Date(job.submit * 1000).getTimezoneOffset() * 60;
  const marks = clock(job.submit - zone, end - zone, 6).map((local) => {
    const time = local + zone;
    return styled(h("span", { class: "time-mark" }, clockTime(time, length < 600 ? 1 : 60)), { left: at(time) });
  });
  return h("div", { class: "life", role: "img", "aria-label": `${attempts.length} attempts` }, h("div", { class: "life-bar" }, ...pieces, ...cuts), h("div", { class: "life-axis" }, ...marks));
}

const HOW: Record<string, string> = { finished: "done", preempted: "made room", failed: "failed", lost: "was lost", cancelled: "was cancelled" };

function outcome({ how, rule, for: whom, exit_code, clean, end }: Attempt): string {
  if (how === undefined) return end === undefined ? "goes on" : "";
  const parts = [HOW[how] ?? how];
  if (how === "preempted" && whom !== undefined) parts.push(`for job ${whom}`);
  if (how === "preempted" && rule !== undefined) parts.push(`(rule: ${rule})`);
  if (how === "preempted" && clean === false) parts.push("without saving");
  if (how === "failed" && exit_code !== undefined) parts.push(`with code ${exit_code}`);
  return parts.join(" ");
}

function row(attempt: Attempt, now: number): HTMLElement {
  const { start, end, step_from, step_to } = attempt;
  const ran = start === undefined ? "–" : span((end ?? now) - start);
  const steps = step_to === undefined ? "" : `${plain(step_from ?? 0)} → ${plain(step_to)}`;
  const cells = [
    start === undefined ? "–" : dayTime(start, now),
    ran,
    attempt.gpus > 0 ? `${attempt.gpus} × ${attempt.type ?? "GPU"}` : "–",
    steps,
    outcome(attempt),
  ];
  return h("tr", {}, h("th", { scope: "row" }, String(attempt.attempt)), ...cells.map((cell) => h("td", {}, cell)));
}

export function attemptsOf(job: Job, story: Story, now: number): HTMLElement {
  const heads = ["Attempt", "Started", "Ran", "On", "Steps", "Then"];
  if (story.attempts.length === 0) return h("p", { class: "note" }, "It has not been started yet.");
  return h(
    "div",
    {},
    bar(job, story.attempts, now),
    h(
      "div",
      { class: "key" },
      ...(["waits", "loads", "runs", "leaves"] as const).map((kind) => h("span", {}, h("i", { class: `piece ${kind}` }), { waits: "waiting", loads: "loading", runs: "running", leaves: "leaving" }[kind])),
    ),
    h("div", { class: "across" }, h("table", { class: "figures attempts" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...[...story.attempts].reverse().map((attempt) => row(attempt, now))))),
    !story.complete && h("p", { class: "note" }, "Its story is longer than what is told here: the beginning is left out."),
  );
}

/** What its preemptions cost: predicted and measured. */
export function pricesOf(job: Job, now: number): HTMLElement | undefined {
  const list = job.preempted_by ?? [];
  if (list.length === 0) return undefined;
  const rows = list.map((one) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, dayTime(one.at ?? 0, now)),
      h("td", {}, one.job === undefined ? "–" : h("a", { href: `#/job/${one.job}` }, String(one.job))),
      h("td", {}, one.rule ?? ""),
      h("td", {}, gpuTime(one.predicted_cost_gpu_s ?? 0)),
      h("td", {}, gpuTime(one.actual_cost_gpu_s ?? 0)),
    ),
  );
  const heads = ["When", "For job", "Rule", "Cost, predicted", "measured"];
  return h("div", { class: "across" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...rows)));
}
