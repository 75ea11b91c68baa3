// jobs_list.ts - jobs in a table, as all pages show them: found by words, sorted by any column.

import { ENDED_STATES, type Seen } from "../state";
import { jobMark, nameOf, progressOf, stateChip, stateWord } from "./chip";
import { h } from "./dom";
import { nextWords } from "./expected";
import { dayTime, span } from "./format";
import { List, type Column } from "./list";
import { besideWords } from "./sharing";

/** Without a time zone's worth of work: what a job is found by. */
export function matches(job: Seen, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = `${job.id} ${job.name ?? ""} ${job.user ?? ""} ${job.class === "te" ? "trial te" : "best effort be"} ${job.state} ${stateWord(job.state)} ${job.reason ?? ""} ${job.entity ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function where(job: Seen): string {
  return (job.placement ?? []).map(({ node, gpus }) => `${node ?? ""}:${(gpus ?? []).join(",")}`).join(" ");
}

/** Why it waits, where it runs, or how it ended. */
function place(job: Seen): string {
  if (job.state === "RUNNING" || job.state === "STOPPING") return `${where(job)}${job.beside === undefined ? "" : `, beside ${besideWords(job) ?? ""}`}`;
  if (job.state === "FAILED" && job.reason === undefined) return `exit code ${job.exit_code ?? "unknown"}`;
  return job.reason ?? "";
}

/** The same, behind the time at which it is expected to start or to end. */
function about(job: Seen, now: number): string {
  return [nextWords(job, now), place(job)].filter((words) => words !== "").join("; ");
}

function waited(job: Seen, now: number): number {
  if (ENDED_STATES.has(job.state) || job.state === "RUNNING" || job.state === "STOPPING") return job.waited_s ?? 0;
  return (job.waited_s ?? 0) + Math.max(0, now - (job.seen ?? now));
}

function ran(job: Seen, now: number): number {
  const gpus = Math.max(1, job.gpus);
  const more = job.state === "RUNNING" || job.state === "STOPPING" ? Math.max(0, now - (job.seen ?? now)) : 0;
  return (job.served_gpu_s ?? 0) / gpus + more;
}

export function jobsList(clock: () => number, open: (job: number) => void, empty: HTMLElement): List<Seen> {
  const columns: Column<Seen>[] = [
    { name: "id", head: "Job", number: true, cell: (job) => String(job.id), order: (job) => job.id },
    {
      name: "name",
      head: "Name",
      cell: (job) => h("span", { class: "job-name" }, jobMark(job), h("span", {}, nameOf(job) || "–")),
      title: nameOf,
      order: (job) => nameOf(job),
    },
    { name: "state", head: "State", cell: (job) => stateChip(job.state), order: (job) => job.state },
    { name: "gpus", head: "GPUs", number: true, cell: (job) => String(job.gpus), order: (job) => job.gpus },
    { name: "user", head: "User", cell: (job) => job.user ?? "", title: (job) => job.user ?? "", order: (job) => job.user ?? "" },
    { name: "progress", head: "Progress", cell: (job) => progressOf(job, clock()), order: (job) => (job.progress?.step ?? -1) / (job.progress?.steps ?? 1) },
    { name: "about", head: "When and why, or where", cell: (job) => about(job, clock()), title: (job) => about(job, clock()), order: (job) => job.expected_start?.p50 ?? job.expected_end?.p50 ?? Infinity },
    { name: "waited", head: "Waited", number: true, cell: (job) => span(waited(job, clock())), order: (job) => waited(job, clock()) },
    { name: "ran", head: "Ran", number: true, cell: (job) => (job.start === undefined ? "" : span(ran(job, clock()))), order: (job) => ran(job, clock()) },
    { name: "preempted", head: "Yielded", number: true, cell: (job) => (job.preemptions ? `${job.preemptions}×` : ""), order: (job) => job.preemptions ?? 0 },
    { name: "submit", head: "Submitted", number: true, cell: (job) => dayTime(job.submit, clock()), order: (job) => job.submit },
  ];
  return new List<Seen>({
    label: "Jobs",
    columns,
    key: (job) => job.id,
    open: (job) => open(job.id),
    class: (job) => (ENDED_STATES.has(job.state) ? "ended" : ""),
    empty,
  });
}
