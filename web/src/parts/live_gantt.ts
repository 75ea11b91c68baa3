// live_gantt.ts - who holds which GPU: the last hours solid, what is expected hatched.

import type { Gantt, Span as Bar } from "../data";
import type { Entry, Span } from "../schema";
import { leftNow, type Seen, type State } from "../state";
import { Cell } from "./cell";
import { chooser } from "./chooser";
import { className } from "./chip";
import { h, styled, type Child } from "./dom";
import { basisWords, intervalWords } from "./expected";
import { endStretches, startStretches, type Stretch } from "./expected_bars";
import { clockTime, gpuTime, span as howLong } from "./format";
import { GanttChart } from "./gantt_chart";
import { layOut, type Fade, type Rows } from "./gantt_rows";
import { assignLanes } from "./lanes";
import { lastExpected, nextOf } from "./next_jobs";
import { jobColour } from "./palette";
import { besideWords } from "./sharing";
import { Window } from "./window";

const GPUS_MAX = 128; // rows
const ROWS_TALL = 400; // pixels, together
const BARS_MAX = 12000;
const WAITING_MAX = 8; // jobs without a GPU that have a row
const AHEAD = 0.25; // as much of the future is shown as of the past; with forecasts, more
const PAST_S = 6 * 3600;
const FUTURE_S = 4 * 86400; // no more of it is shown
const RECENT_S = 60; // no less of the past is shown
const ENDS: Record<string, number> = { finished: 0, preempted: 1, lost: 2, failed: 5, cancelled: 0, resized: 0 };
const ENDED = ["finished", "preempted", "lost", "goes on", "expected", "failed", "in use by others", "expected"];
const RUNNING = 3;
const PLANNED = 4;
const FOREIGN = 6;
const PERHAPS = 7;

/** A job that was told to leave, and what that cost: the entry in the ledger. */
function priceAt(entries: ReadonlyMap<number, Entry[]>, job: number, end: number): Entry | undefined {
  let best: Entry | undefined;
  for (const entry of entries.get(job) ?? [])
    if ((entry.at ?? 0) <= end + 0.001 && (entry.at ?? 0) > (best?.at ?? -Infinity)) best = entry;
  return best;
}

function byVictim(entries: readonly Entry[]): Map<number, Entry[]> {
  const map = new Map<number, Entry[]>();
  for (const entry of entries) {
    const of = map.get(entry.victim ?? 0);
    if (of) of.push(entry);
    else map.set(entry.victim ?? 0, [entry]);
  }
  return map;
}

export function priceOf(entry: Entry): number {
  return entry.actual_cost_gpu_s ?? entry.predicted_cost_gpu_s ?? 0;
}

/** The chart's rows from the state; times are seconds since 'base'. */
class Layout {
  private readonly first: number[] = []; // by node: its first row
  private readonly gpus: string[] = [];
  private readonly bars: Bar[] = [];
  readonly notes = new Map<Bar, string>();
  readonly entries = new Map<Bar, Entry>();
  private readonly fades = new Map<Bar, Fade>();
  private waiting: number | undefined;

  constructor(
    private readonly state: State,
    private readonly now: number,
    private readonly base: number,
    private readonly from: number,
    private readonly next: readonly Seen[],
  ) {
    for (const node of state.nodes) {
      this.first.push(this.gpus.length);
      for (let gpu = 0; gpu < (node.gpus ?? 0) && this.gpus.length < GPUS_MAX; gpu++)
        this.gpus.push(`${node.name ?? ""}/${gpu}`);
    }
  }

  private add(span: Span, start: number, end: number, ended: number): Bar[] {
    const added: Bar[] = [];
    const first = this.first[span.node];
    if (first === undefined || this.bars.length > BARS_MAX) return added;
    for (const gpu of span.gpus) {
      const row = first + gpu;
      if (row >= this.gpus.length) continue;
      const kind = span.class === "te" ? 1 : 0;
      const bar = { gpu: row, start: start - this.base, end: end - this.base, job: span.job, class: kind, ended, lane: 0 };
      this.bars.push(bar);
      added.push(bar);
    }
    return added;
  }

  /** What is expected on those GPUs, or in the row of a job that has none. */
  private addExpected(stretches: readonly Stretch[], addBars: (from: number, to: number, ended: number) => Bar[]): void {
    for (const { from, to, fade, middle } of stretches) {
      const bars = addBars(from, to, fade === "none" ? PLANNED : PERHAPS);
      if (fade === "none") continue;
      for (const bar of bars) this.fades.set(bar, { fade, middle: middle === undefined ? undefined : middle - this.base });
    }
  }

  private addPast(): void {
    const entries = byVictim(this.state.entries);
    for (let i = this.state.occupancy.closed.length - 1; i >= 0; i--) {
      const span = this.state.occupancy.closed[i];
      if (!span || (span.end ?? 0) < this.from) break; // they are in order of their end
      const bars = this.add(span, span.start ?? 0, span.end ?? 0, ENDS[span.how ?? ""] ?? 0);
      const entry = span.how === "preempted" ? priceAt(entries, span.job, span.end ?? 0) : undefined;
      const [top] = bars;
      if (!entry || !top) continue;
      this.notes.set(top, `−${gpuTime(priceOf(entry))}`);
      for (const bar of bars) this.entries.set(bar, entry);
    }
  }

  private addPresent(): void {
    for (const [id, spans] of this.state.occupancy.held) {
      const job = this.state.jobs.get(id);
      const stretches = job ? this.expectedOf(job) : [];
      for (const span of spans) {
        this.add(span, span.start ?? this.now, this.now, RUNNING);
        this.addExpected(stretches, (from, to, ended) => this.add(span, from, to, ended));
      }
    }
  }

  /** Until when it runs: by the forecast, else by its own reports. */
  private expectedOf(job: Seen): Stretch[] {
    if (job.state === "RUNNING" && job.expected_end) return endStretches(job.expected_end, this.now);
    const left = leftNow(job, this.now);
    return left === undefined ? [] : [{ from: this.now, to: this.now + left, fade: "none", middle: undefined }];
  }

  /** Nobody knows on which GPUs: a row for each job. */
  private addNext(): void {
    this.waiting = this.gpus.length;
    for (const { id, class: kind, expected_start: start, expected_end: end } of this.next) {
      const row = this.gpus.push(`job ${id}`) - 1;
      this.addExpected(start ? startStretches(start, end, this.now) : [], (from, to, ended) => {
        const bar = { gpu: row, start: from - this.base, end: to - this.base, job: id, class: kind === "te" ? 1 : 0, ended, lane: 0 };
        this.bars.push(bar);
        return [bar];
      });
    }
  }

  /** Pending allocations: they start as soon as the jobs on their GPUs have left. */
  private addPending(ahead: number): void {
    for (const spans of this.state.occupancy.pending.values())
      for (const span of spans) this.add(span, this.now, this.now + ahead, PLANNED);
  }

  private addForeign(): void {
    for (const [node, { gpus, since }] of this.state.foreign)
      this.add({ job: 0, attempt: 0, class: "be", node, gpus }, since, this.now, FOREIGN);
  }

  make(ahead: number): Rows {
    this.addPast();
    this.addPresent();
    this.addPending(ahead);
    this.addForeign();
    this.addNext();
    this.bars.sort((a, b) => a.start - b.start || a.job - b.job);
    assignLanes(this.bars, PLANNED);
    const { gpus, bars: spans, waiting = gpus.length } = this;
    const gantt: Gantt = { from: this.from - this.base, to: this.now - this.base, gpus, waiting, spans, complete: true };
    const clock = (time: number, step: number): string => clockTime(this.base + time, step);
    return { ...layOut(gantt, ROWS_TALL), live: { at: this.now - this.base, clock, notes: this.notes, fades: this.fades } };
  }
}

/** When the first job began that is seen after 'from': before that there is nothing to see. */
function firstStart(state: State, from: number): number {
  let first = Infinity;
  for (let i = state.occupancy.closed.length - 1; i >= 0; i--) {
    const span = state.occupancy.closed[i];
    if (!span || (span.end ?? 0) < from) break;
    first = Math.min(first, span.start ?? first);
  }
  for (const spans of state.occupancy.held.values()) for (const span of spans) first = Math.min(first, span.start ?? first);
  return first;
}

/** Midnight before: marks on the axis are whole hours of the local clock. */
function midnight(now: number): number {
  return new Date(now * 1000).setHours(0, 0, 0, 0) / 1000;
}

const RANGES = [
  { value: 600, label: "10 min" },
  { value: 3600, label: "1 h" },
  { value: PAST_S, label: "6 h" },
];

export class LiveGantt {
  readonly element: HTMLElement;
  private readonly chart: GanttChart;
  private readonly range = new Cell(RANGES[0]?.value ?? 600);
  private readonly window = new Window({ from: 0, to: 1 });
  private set = { from: NaN, to: NaN }; // as we put it: anything else is somebody's choice
  private state: State | undefined;
  private layout: Layout | undefined;
  private base = 0;
  private readonly note = h("p", { class: "note" });
  private readonly follow: HTMLButtonElement;

  constructor(
    private readonly clock: () => number,
    open: (job: number) => void,
  ) {
    const nothing = { ...layOut({ from: 0, to: 1, gpus: [""], spans: [], complete: true }) };
    this.chart = new GanttChart(nothing, this.window, {
      describe: (rows, bar) => this.describe(rows, bar),
      shown: ({ from, to }) => (this.base ? `${clockTime(this.base + from, 1)} – ${clockTime(this.base + to, 1)}` : ""),
      label: ({ gantt: { gpus, waiting, spans } }) => `${spans.length} stretches of jobs on ${waiting ?? gpus.length} GPUs`,
      pick: (bar) => bar.job > 0 && open(bar.job),
    });
    this.range.watch(() => this.goOn());
    this.follow = h("button", { type: "button", click: () => this.goOn() }, "Back to now");
    this.element = h(
      "div",
      { class: "card live-gantt" },
      h("div", { class: "card-head" }, h("h2", {}, "GPUs"), chooser("How much of the past", RANGES, this.range), this.follow, this.chart.shown),
      h("div", { class: "gantt-scroll" }, this.chart.element),
      key(),
      this.note,
    );
  }

  /** The present comes back into sight, and stays there. */
  private goOn(): void {
    this.set = { from: this.window.from, to: this.window.to };
    if (this.state) this.update(this.state);
  }

  private isFollowing(): boolean {
    return Number.isNaN(this.set.from) || (this.set.from === this.window.from && this.set.to === this.window.to);
  }

  update(state: State): void {
    this.state = state;
    const now = this.clock();
    const range = this.range.get();
    const following = this.isFollowing();
    const base = this.base || midnight(now);
    this.base = base;
    const { jobs: next, count: waiting } = nextOf(state, WAITING_MAX);
    const last = Math.min(FUTURE_S, (lastExpected(state, next) ?? 0) - now); // negative: there is no forecast
    const whole = { from: now - PAST_S - base, to: now + Math.max(PAST_S * AHEAD, 1.05 * last) - base };
    const past = Math.min(range, Math.max(RECENT_S, now - firstStart(state, now - range) + 5));
    const ahead = Math.max(past * AHEAD, Math.min(range, 1.05 * last));
    if (following) this.window.see(whole, { from: now - past - base, to: now + ahead - base });
    else this.window.within(whole);
    if (following) this.set = { from: this.window.from, to: this.window.to };
    this.follow.hidden = following;
    this.layout = new Layout(state, now, base, base + this.window.from, next);
    const rows = this.layout.make(past * AHEAD * 0.4);
    if (rows.gantt.gpus.length === 0) return;
    this.chart.follow(rows);
    this.note.textContent = notesOf(state, waiting).join(" ");
  }

  /** The job that it shares the GPU with now, or those that it did share it with. */
  private besideOf({ shared }: Rows, bar: Bar): string | undefined {
    const others = new Set(shared.get(bar)?.flatMap((piece) => piece.beside ?? []));
    if (others.size === 0) return undefined;
    const now = bar.ended === RUNNING ? this.state?.jobs.get(bar.job) : undefined;
    return (now && besideWords(now)) ?? [...others].map((job) => `job ${job}`).join(", ");
  }

  private heldLines(bar: Bar, line: (name: string, value: string) => HTMLElement): HTMLElement[] {
    const from = line("from", clockTime(this.base + bar.start, 1));
    const to = bar.ended === RUNNING ? [] : [line("to", clockTime(this.base + bar.end, 1))];
    return [from, ...to, line("for", howLong(bar.end - bar.start))];
  }

  private expectedLines(job: Seen | undefined, line: (name: string, value: string) => HTMLElement): HTMLElement[] {
    const now = this.clock();
    const [start, end] = [intervalWords(job?.expected_start, now), intervalWords(job?.expected_end, now)];
    const said = job?.expected_start ?? job?.expected_end;
    return [...(start === "" ? [] : [line("starts", start)]), ...(end === "" ? [] : [line("ends", end)]), ...(said ? [line("basis", basisWords(said))] : [])];
  }

  private describe(rows: Rows, bar: Bar): Child[] {
    const line = (name: string, value: string): HTMLElement => h("tr", {}, h("th", {}, name), h("td", {}, value));
    if (bar.ended === FOREIGN) return [h("p", {}, "In use by others")];
    const job = this.state?.jobs.get(bar.job) ?? this.state?.ended.find((one) => one.id === bar.job);
    const entry = this.layout?.entries.get(bar);
    const planned = bar.ended === PLANNED;
    const beside = this.besideOf(rows, bar);
    const expected = planned || bar.ended === PERHAPS ? this.expectedLines(job, line) : [];
    return [
      h("p", {}, `${bar.job}${job?.name === undefined ? "" : ` ${job.name}`}`),
      h(
        "table",
        {},
        line("class", className(bar.class === 1 ? "te" : "be")),
        ...(expected.length > 0 ? expected : this.heldLines(bar, line)),
        ...(beside === undefined ? [] : [line("beside", beside)]),
        ...(expected.length > 0 ? [] : [line("then", planned ? "this is expected" : (ENDED[bar.ended] ?? ""))]),
        ...(entry ? [line("for job", String(entry.for ?? "–")), line("rule", entry.rule ?? ""), line("cost", gpuTime(priceOf(entry)))] : []),
      ),
    ];
  }
}

function notesOf(state: State, next: number): string[] {
  const all = state.nodes.reduce((sum, node) => sum + (node.gpus ?? 0), 0);
  return [
    ...(all > GPUS_MAX ? [`The first ${GPUS_MAX} of ${all} GPUs.`] : []),
    ...(next > WAITING_MAX ? [`The next ${WAITING_MAX} of ${next} jobs that wait and have a forecast.`] : []),
  ];
}

function key(): HTMLElement {
  const families = ["best effort", "trial"].map((name, kind) => {
    const stops = [3, 7, 11, 4].map((job, i) => `${jobColour(job, kind)} ${i * 25}% ${i * 25 + 25}%`).join(", ");
    return h("span", {}, styled(h("i", {}), { background: `linear-gradient(90deg, ${stops})` }), name);
  });
  const others = [["shared", "two jobs share it"], ["planned", "expected"], ["perhaps", "uncertain, with its middle"], ["preempted", "preempted, with its price"], ["lost", "failed or lost"], ["foreign", "used by others"]] as const;
  return h("div", { class: "key" }, ...families, ...others.map(([name, words]) => h("span", {}, h("i", { class: name }), words)));
}
