// now.ts - what goes on: GPUs and who holds them, nodes, the queue.

import { count, type Seen } from "../state";
import { Cell } from "../parts/cell";
import { chooser } from "../parts/chooser";
import { h } from "../parts/dom";
import { gpuTime, plain } from "../parts/format";
import { jobsList, matches } from "../parts/jobs_list";
import { LiveGantt, priceOf } from "../parts/live_gantt";
import { Stats } from "../parts/stats";
import { Tiles } from "../parts/tiles";
import type { Site, View } from "./view";

type Which = "live" | "running" | "waiting" | "ended";
const REFRESH_S = 1;

const WHICH: { value: Which; label: string }[] = [
  { value: "live", label: "All" },
  { value: "running", label: "Running" },
  { value: "waiting", label: "Waiting" },
  { value: "ended", label: "Ended" },
];

/** Those that run first, then those that wait, in the order in which they came: nothing is sorted. */
function inOrder(jobs: Iterable<Seen>, which: Which): Seen[] {
  const [run, wait, held]: [Seen[], Seen[], Seen[]] = [[], [], []];
  for (const job of jobs) (job.state === "PENDING" ? wait : job.state === "HELD" ? held : run).push(job);
  if (which === "running") return run;
  return which === "waiting" ? wait.concat(held) : run.concat(wait, held);
}

function hint(): HTMLElement {
  return h(
    "div",
    { class: "hint-box" },
    h("p", {}, h("strong", {}, "Nothing here.")),
    h("p", {}, "Jobs appear as they are submitted:"),
    h("pre", {}, "berth submit -G1 -- python3 train.py"),
  );
}

export function nowView(site: Site): View {
  const { live } = site;
  const clock = (): number => live.now();
  const stats = new Stats();
  const gantt = new LiveGantt(clock, (id) => site.openJob(id));
  const tiles = new Tiles((id) => site.openJob(id));
  const list = jobsList(clock, (id) => site.openJob(id), hint());
  const which = new Cell<Which>("live");
  const search = h("input", { type: "search", placeholder: "Find jobs", "aria-label": "Find jobs", spellcheck: "false", input: () => show() });
  const shown = h("span", { class: "note", role: "status" });
  let refreshed = 0;
  let events = -1;

  function chosen(): Seen[] {
    const { state } = live;
    if (!state) return [];
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const jobs = which.get() === "ended" ? [...state.ended].reverse() : inOrder(state.jobs.values(), which.get());
    return words.length === 0 ? jobs : jobs.filter((job) => matches(job, words));
  }

  function show(): void {
    const jobs = chosen();
    list.show(jobs);
    shown.textContent = jobs.length === 1 ? "1 job" : `${plain(jobs.length)} jobs`;
  }

  function showStats(): void {
    const { state } = live;
    if (!state) return;
    const counts = count(state);
    const lost = state.entries.reduce((sum, entry) => sum + priceOf(entry), 0);
    const others = counts.gpusForeign > 0 ? `, ${counts.gpusForeign} used by others` : "";
    stats.set("GPUs held", `${counts.gpusHeld}`, `of ${counts.gpus}${others}`, counts.gpus > 0 ? counts.gpusHeld / counts.gpus : 0);
    stats.set("Running", plain(counts.running), counts.pairs > 0 ? `${plain(counts.pairs)} ${counts.pairs === 1 ? "pair shares" : "pairs share"} GPUs` : "");
    stats.set("Waiting", plain(counts.waiting), counts.held > 0 ? `and ${counts.held} held` : "");
    stats.set("Preemptions", plain(state.entries.length), state.entries.length > 0 ? `cost ${gpuTime(lost)}` : "so far");
    stats.set("Policy", state.server.policy ?? "");
  }

  /** Why a job waits, and what it keeps beside another, depends on others: those in sight are asked for anew, not too often. */
  function refresh(): void {
    if (events === live.eventCount || clock() - refreshed < REFRESH_S) return;
    refreshed = clock();
    events = live.eventCount;
    const changes = ({ state, beside }: Seen): boolean => state === "PENDING" || state === "HELD" || beside !== undefined;
    live.refresh(list.visible().filter(changes).map((job) => job.id));
  }

  function update(): void {
    const { state } = live;
    if (!state) return;
    showStats();
    gantt.update(state);
    tiles.update(state);
    show();
    refresh();
  }

  which.watch(show);
  return {
    title: "Now",
    element: h(
      "div",
      { class: "page now" },
      stats.element,
      gantt.element,
      h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "Nodes")), tiles.element),
      h(
        "section",
        { class: "card queue" },
        h("div", { class: "card-head" }, h("h2", {}, "Jobs"), chooser("Which jobs", WHICH, which), search, shown),
        list.element,
      ),
    ),
    update,
    tick: () => {
      if (live.state) gantt.update(live.state);
      show();
      refresh();
    },
    find: () => {
      search.focus();
      search.select();
    },
    step: (by) => list.move(by),
    enter: () => list.openSelected(),
  };
}
