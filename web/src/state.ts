// state.ts - what the dashboard knows: a snapshot, and every event since folded into it.
//
// fold() is the only function that changes it because of an event.  What an event does not
// carry (a job's name, the reason why it waits, a price) is put on a list of things to ask for.

import { Occupancy, type End } from "./occupancy";
import type { Entry, Event, Job, Node, Server, SharingTotals, Snapshot } from "./schema";

/** A job, and when its progress was seen. */
export interface Seen extends Job {
  seen?: number;
  leaving?: boolean; // its owner wants it gone
  level?: number; // of its packets: 0 goes first
  touched?: number; // the last event that changed it
}

/** Accelerators that others use, and since when we know. */
export interface Foreign {
  gpus: number[];
  since: number;
}

/** Of the event stream: what is expected of jobs; 'more': of others it is not said here. */
export interface ForecastEvent {
  jobs: Pick<Job, "id" | "expected_start" | "expected_end">[];
  more?: boolean;
}

export interface State {
  seq: number;
  me: Snapshot["me"];
  server: Server;
  nodes: Node[];
  foreign: Map<number, Foreign>; // by node
  jobs: Map<number, Seen>; // those that have not ended
  ended: Seen[]; // newest last
  occupancy: Occupancy;
  entries: Entry[]; // of the ledger, newest first
  sharing: SharingTotals | undefined; // what sharing GPUs brought; undefined: no job has
  ask: Set<number>; // jobs to be asked for anew
  askLedger: boolean;
}

const ENDED_MAX = 2000;
export const ENDED_STATES: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "CANCELLED", "REJECTED"]);

function foreignOf(nodes: readonly Node[], since: number): Map<number, Foreign> {
  const map = new Map<number, Foreign>();
  nodes.forEach((node, i) => {
    const gpus = (node.held ?? []).filter((one) => one.foreign).map((one) => one.gpu ?? 0);
    if (gpus.length > 0) map.set(i, { gpus, since });
  });
  return map;
}

export function begin(snapshot: Snapshot): State {
  const { seq, me, server, nodes, jobs, ended, spans, entries, now } = snapshot;
  return {
    seq,
    me,
    server,
    nodes,
    foreign: foreignOf(nodes, now),
    jobs: new Map(jobs.map((job) => [job.id, { ...job, seen: now }])),
    ended: [...ended].sort((a, b) => (a.end ?? 0) - (b.end ?? 0) || a.id - b.id),
    occupancy: new Occupancy(spans),
    entries,
    sharing: snapshot.sharing,
    ask: new Set(),
    askLedger: false,
  };
}

// ---- what events mean ----

function end(state: State, job: Seen, event: Event, how: Job["state"]): void {
  job.state = how;
  job.end = event.at;
  delete job.expected_start;
  delete job.expected_end;
  delete job.reason;
  if (event.exit_code !== undefined) job.exit_code = event.exit_code;
  state.occupancy.dropPending(job.id);
  state.jobs.delete(job.id);
  state.ended.push(job);
  if (state.ended.length > ENDED_MAX) state.ended.splice(0, ENDED_MAX / 10);
  state.ask.add(job.id);
}

function wait(state: State, job: Seen): void {
  job.state = "PENDING";
  delete job.placement;
  delete job.reason;
  delete job.expected_end; // it was that of a run without a stop
  state.ask.add(job.id);
}

function place(state: State, job: Seen, event: Event): void {
  state.occupancy.place(job.id, job.class, event);
}

/** Two jobs on the same GPUs; how much of its speed each keeps is asked for. */
function join(state: State, job: Seen): void {
  const partner = state.jobs.get(state.occupancy.partnerOf(job.id) ?? -1);
  if (!partner) return;
  job.beside = partner.id;
  partner.beside = job.id;
  for (const one of [job, partner]) {
    delete one.kept;
    state.ask.add(one.id);
  }
  state.askLedger = true;
}

function leave(state: State, job: Seen, at: number, how: End): void {
  const partner = state.jobs.get(job.beside ?? -1);
  state.occupancy.close(job.id, at, how);
  for (const one of partner ? [job, partner] : [job]) {
    delete one.beside;
    delete one.kept;
  }
  if (!partner) return;
  state.ask.add(partner.id);
  state.askLedger = true;
}

function start(state: State, job: Seen, event: Event): void {
  if (job.beside !== undefined) leave(state, job, event.at, "resized");
  const spans = state.occupancy.start(job.id, event);
  job.state = "RUNNING";
  job.start ??= event.at;
  delete job.expected_start;
  if (event.attempt !== undefined) job.attempt = event.attempt;
  delete job.reason;
  job.placement = spans.map((span) => {
    const node = state.nodes[span.node];
    return { node: node?.name ?? String(span.node), ...(node?.type ? { type: node.type } : {}), gpus: span.gpus };
  });
  join(state, job);
}

function progress(job: Seen, event: Event): void {
  const next = { ...job.progress };
  if (event.step !== undefined && next.steps !== undefined) next.step = event.step;
  if (event.loss !== undefined) next.loss = event.loss;
  if (event.steps_per_s !== undefined) next.steps_per_s = event.steps_per_s;
  delete next.eta_s;
  if (next.steps !== undefined && next.step !== undefined && next.steps_per_s !== undefined && next.steps > next.step)
    next.eta_s = (next.steps - next.step) / next.steps_per_s;
  job.progress = next;
  job.seen = event.at;
}

type Deed = (state: State, job: Seen, event: Event) => void;

/** Of a job that is known. */
const DEEDS: Record<string, Deed> = {
  held: (state, job) => {
    job.state = "HELD";
    state.ask.add(job.id);
  },
  released: wait,
  changed: (state, job, event) => {
    if (event.class !== undefined) job.class = event.class;
    state.ask.add(job.id);
  },
  placed: place,
  resizing: place,
  started: start,
  resized: start,
  loaded: (_state, job, event) => void (job.seen = event.at),
  progress: (state, job, event) => {
    const first = job.progress === undefined;
    progress(job, event);
    if (first) state.ask.add(job.id); // how many steps there are in all
  },
  recalled: (state, job) => {
    job.state = "STOPPING";
    state.askLedger = true;
  },
  stopped: (state, job, event) => {
    const wanted = job.leaving === true;
    leave(state, job, event.at, wanted ? "cancelled" : "preempted");
    if (wanted) return end(state, job, event, "CANCELLED");
    job.preemptions = (job.preemptions ?? 0) + 1;
    state.askLedger = true;
    wait(state, job);
  },
  lost: (state, job, event) => {
    leave(state, job, event.at, "lost");
    state.occupancy.dropPending(job.id);
    wait(state, job);
  },
  finished: (state, job, event) => {
    leave(state, job, event.at, "finished");
    end(state, job, event, "COMPLETED");
  },
  failed: (state, job, event) => {
    leave(state, job, event.at, "failed");
    end(state, job, event, "FAILED");
  },
  dropped: (state, job, event) => {
    leave(state, job, event.at, "lost");
    end(state, job, event, "FAILED");
  },
  cancelled: (state, job, event) => {
    if (state.occupancy.held.has(job.id) || job.state === "RUNNING" || job.state === "STOPPING") {
      job.leaving = true;
      job.state = "STOPPING";
    } else end(state, job, event, "CANCELLED");
  },
  levelled: (_state, job, event) => {
    if (event.level !== undefined) job.level = event.level;
  },
};

function arrive(state: State, event: Event, id: number): void {
  const gpus = typeof event.gpus === "number" ? event.gpus : 0;
  const job: Seen = { id, state: "PENDING", class: event.class ?? "be", gpus, submit: event.at, preemptions: 0 };
  if (event.kind === "rejected") return end(state, job, event, "REJECTED");
  state.jobs.set(id, job);
  state.ask.add(id);
}

/** Of a node, or of nobody. */
function foldNode(state: State, event: Event): void {
  const node = event.node === undefined ? undefined : state.nodes[event.node];
  if (!node || event.node === undefined) return;
  if (event.kind === "node_down" || event.kind === "node_up") node.up = event.kind === "node_up";
  if (event.kind === "foreign" && Array.isArray(event.gpus)) state.foreign.set(event.node, { gpus: event.gpus, since: event.at });
}

export function fold(state: State, event: Event): void {
  if (event.seq <= state.seq) return;
  state.seq = event.seq;
  if (event.job === undefined) return foldNode(state, event);
  if (event.kind === "submitted" || event.kind === "rejected") return arrive(state, event, event.job);
  const job = state.jobs.get(event.job);
  if (!job) return;
  if (event.kind !== "progress") job.touched = event.seq;
  DEEDS[event.kind]?.(state, job, event);
}

/** A new forecast, of all jobs or, where there are more, of the first ones. */
export function foldForecast(state: State, { jobs, more }: ForecastEvent): void {
  const said = new Map(jobs.map((job) => [job.id, job]));
  for (const job of state.jobs.values()) {
    const one = said.get(job.id);
    if (!one && more) continue;
    delete job.expected_start;
    delete job.expected_end;
    const waits = job.state === "PENDING" || job.state === "HELD"; // it may have started since
    if (one?.expected_start && waits) job.expected_start = one.expected_start;
    if (one?.expected_end) job.expected_end = one.expected_end;
  }
}

function learnOne(state: State, job: Job, asked: number, now: number): void {
  const known = state.jobs.get(job.id);
  if (known && (known.touched ?? 0) > asked) {
    // Something happened to it meanwhile: keep what cannot have changed, and ask again.
    for (const key of ["name", "user", "entity", "types", "array_id", "array_index"] as const)
      if (job[key] !== undefined) Object.assign(known, { [key]: job[key] });
    state.ask.add(job.id);
  } else if (known && !ENDED_STATES.has(job.state)) {
    const { leaving, level, touched } = known;
    const kept = { ...(leaving ? { leaving } : {}), ...(level ? { level } : {}), ...(touched ? { touched } : {}) };
    state.jobs.set(job.id, { ...job, ...kept, seen: now });
  } else if (!known && ENDED_STATES.has(job.state)) {
    const place = state.ended.findIndex((one) => one.id === job.id);
    if (place >= 0) state.ended[place] = job;
  }
}

/** What berthd said of jobs that were asked for when event 'asked' was the newest. */
export function learn(state: State, jobs: readonly Job[], asked: number, now: number): void {
  for (const job of jobs) learnOne(state, job, asked, now);
}

// ---- what follows from it ----

/** Steps made by now, between two reports: as fast as the last one said. */
export function stepNow(job: Seen, now: number): number | undefined {
  const { step, steps, steps_per_s } = job.progress ?? {};
  if (step === undefined) return undefined;
  if (job.state !== "RUNNING" || steps_per_s === undefined || job.seen === undefined) return step;
  return Math.min(steps ?? Infinity, step + Math.max(0, now - job.seen) * steps_per_s);
}

/** Seconds until it will be done; undefined: nobody knows. */
export function leftNow(job: Seen, now: number): number | undefined {
  const { steps, steps_per_s } = job.progress ?? {};
  const step = stepNow(job, now);
  if (step === undefined || steps === undefined || !steps_per_s || job.state !== "RUNNING") return undefined;
  return step < steps ? (steps - step) / steps_per_s : undefined; // beyond its steps it may end any time
}

export interface Counts {
  running: number;
  waiting: number;
  held: number;
  gpus: number;
  gpusHeld: number;
  gpusForeign: number;
  pairs: number; // of jobs that share GPUs
}

export function count(state: State): Counts {
  const counts = { running: 0, waiting: 0, held: 0, gpus: 0, gpusHeld: 0, gpusForeign: 0, pairs: 0 };
  for (const job of state.jobs.values()) {
    if (job.state === "PENDING") counts.waiting++;
    else if (job.state === "HELD") counts.held++;
    else counts.running++;
    if (job.beside !== undefined) counts.pairs += 0.5;
  }
  for (const node of state.nodes) counts.gpus += node.gpus ?? 0;
  for (const node of holdersOf(state)) for (const jobs of node) counts.gpusHeld += jobs.length > 0 ? 1 : 0;
  for (const { gpus } of state.foreign.values()) counts.gpusForeign += gpus.length;
  return counts;
}

/** By node and accelerator: the jobs that hold it. */
export function holdersOf(state: State): number[][][] {
  const places = new Map(state.nodes.map((node, i) => [node.name ?? "", i]));
  const holders = state.nodes.map((node) => Array.from({ length: node.gpus ?? 0 }, (): number[] => []));
  for (const job of state.jobs.values()) {
    if (job.state !== "RUNNING" && job.state !== "STOPPING") continue;
    for (const { node, gpus } of job.placement ?? [])
      for (const gpu of gpus ?? []) holders[places.get(node ?? "") ?? -1]?.[gpu]?.push(job.id);
  }
  return holders;
}
