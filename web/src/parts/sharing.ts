// sharing.ts - jobs that share GPUs: who is beside whom, what each keeps of its speed, what that brought.

import type { Span } from "../data";
import type { Job, Shared, SharingTotals } from "../schema";
import { h, type Child } from "./dom";
import { dayTime, gpuTime, plain, span } from "./format";
import type { Rows } from "./gantt_rows";

export function percent(part: number): string {
  return `${Math.round(100 * part)} %`;
}

/** "job 7, keeps 83 % of its speed"; undefined: it has its GPUs alone. */
export function besideWords({ beside, kept }: Pick<Job, "beside" | "kept">): string | undefined {
  if (beside === undefined) return undefined;
  return `job ${beside}${kept === undefined ? "" : `, keeps ${percent(kept)} of its speed`}`;
}

/** The jobs beside it, and how much of its speed it kept beside each, where that is known. */
export function besidesOf({ gantt, shared }: Rows, bar: Span): string[] {
  const words = new Map<number, string>();
  for (const { beside, from, to } of shared.get(bar) ?? []) {
    if (beside === undefined || words.has(beside)) continue;
    const kept = gantt.kept?.find((one) => one.job === bar.job && one.beside === beside && one.from >= from - 1e-6 && one.from < to)?.kept;
    words.set(beside, besideWords({ beside, ...(kept === undefined ? {} : { kept }) }) ?? "");
  }
  return [...words.values()];
}

const linkTo = (job: number): HTMLElement => h("a", { href: `#/job/${job}` }, String(job));

/** Whom it shares with now, with what both keep. */
export function partnerOf({ beside, kept, sharing }: Job): Child[] {
  if (beside === undefined) return [];
  const now = sharing?.find((one) => one.beside === beside && one.to === undefined);
  const other = now?.beside_kept;
  return [
    "job ",
    linkTo(beside),
    kept === undefined ? ", not long enough to tell what each keeps" : `: this job keeps ${percent(kept)} of its speed alone`,
    ...(kept !== undefined && other !== undefined ? [`, job ${beside} keeps ${percent(other)}`] : []),
  ];
}

function row(one: Shared, now: number): HTMLElement {
  const cells: Child[] = [
    linkTo(one.beside),
    span(one.shared_s),
    one.kept === undefined ? "–" : percent(one.kept),
    one.beside_kept === undefined ? "–" : percent(one.beside_kept),
    gpuTime(one.gained_gpu_s),
    gpuTime(one.lost_gpu_s),
    one.to === undefined ? "goes on" : `until ${dayTime(one.to, now)}`,
  ];
  return h("tr", {}, h("th", { scope: "row" }, dayTime(one.from, now)), ...cells.map((cell) => h("td", {}, cell)));
}

/** Each time that a job shared GPUs; undefined: it never did. */
export function sharingOf({ sharing = [] }: Job, now: number): HTMLElement | undefined {
  if (sharing.length === 0) return undefined;
  const heads = ["Since", "Beside job", "Together", "It kept", "The other kept", "Gained", "Lost by stops", ""];
  return h(
    "div",
    {},
    h("div", { class: "across" }, h("table", { class: "figures sharing" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...sharing.map((one) => row(one, now))))),
    h("p", { class: "note" }, "Gained is the GPU time that the steps of both would have taken in addition, had each run alone."),
  );
}

/** What all pairs brought, in a sentence. */
export function sharingWords({ pairs, running, shared_gpu_s, gained_gpu_s, lost_gpu_s }: SharingTotals): string {
  const now = running > 0 ? `, ${plain(running)} of them now` : "";
  const gained = gained_gpu_s < 0 ? `made ${gpuTime(-gained_gpu_s)} less than one job alone` : `gained ${gpuTime(gained_gpu_s)}`;
  return `${plain(pairs)} ${pairs === 1 ? "pair of jobs has" : "pairs of jobs have"} shared GPUs${now}, for ${gpuTime(shared_gpu_s)} in all. That ${gained}; stops to form and part pairs lost ${gpuTime(lost_gpu_s)}.`;
}
