// live.ts - the state kept up to date: a snapshot, then the event stream, for as long as it takes.
//
// Nothing is polled.  Events are folded as they come; whoever draws is told a few times a second
// at most, however many there are.  What events do not carry is asked for together, after them.

import { enter, events, forget, get, Refused, waitForTabs } from "./api";
import type { Entry, Event, Job, Node, SharingTotals, Snapshot } from "./schema";
import { begin, fold, foldForecast, learn, type ForecastEvent, type State } from "./state";

const DRAW_MS = 250;
const ASK_MS = 400;
const NODES_MS = 5000; // berthd looks no more often
const OTHERS_MS = 3000; // between two snapshots, for those who may not see all
const ASK_MAX = 400; // jobs in one question
const LONG_MS = 60_000; // away for longer, a new snapshot is quicker than what was missed
const SLEEP_MS = 30_000; // a tab that nobody looks at lets go of its connection
const TRY_MS = [500, 1000, 2000, 4000];

export type Link = "open" | "broken" | "shut"; // shut: we are not let in

export class Live {
  state: State | undefined;
  link: Link = "broken";
  refusal = "";
  eventCount = 0;
  private ahead = 0; // berthd's clock, seconds before ours
  private readonly watchers = new Set<() => void>();
  private drawing = false;
  private asking = false;
  private looking = false;
  private nodesAsked = 0;
  private meanwhile: Event[] = []; // what came while a snapshot was on its way
  private drawn = 0;
  private connection = new AbortController();
  private asleep = false;
  private lost = 0; // when the connection ended

  constructor() {
    let timer: ReturnType<typeof setTimeout> | undefined;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => this.sleep(), SLEEP_MS);
    });
  }

  /** A browser has six connections to one host for all of its tabs: those in sight need them. */
  private sleep(): void {
    this.asleep = true;
    this.connection.abort();
  }

  private async wake(): Promise<void> {
    if (!this.asleep) return;
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (document.hidden) return;
        document.removeEventListener("visibilitychange", look);
        resolve();
      };
      document.addEventListener("visibilitychange", look);
      look();
    });
    this.asleep = false;
  }

  /** By berthd's clock. */
  now(): number {
    return Date.now() / 1000 + this.ahead;
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => void this.watchers.delete(watcher);
  }

  /** Soon, and at most a few times a second. */
  changed(): void {
    if (this.drawing) return;
    this.drawing = true;
    const wait = Math.max(0, this.drawn + DRAW_MS - performance.now());
    setTimeout(() => requestAnimationFrame(() => this.draw()), wait);
  }

  private draw(): void {
    this.drawing = false;
    this.drawn = performance.now();
    for (const watcher of [...this.watchers]) watcher();
  }

  async run(): Promise<void> {
    for (let tries = 0; this.link !== "shut"; tries++) {
      try {
        await this.wake();
        if (this.lost > 0 && Date.now() - this.lost > LONG_MS) this.state = undefined;
        if (!this.state) await this.look();
        this.connection = new AbortController();
        await events(this.state?.seq ?? 0, this.connection.signal, {
          open: () => {
            tries = 0;
            this.become("open");
          },
          events: (batch) => this.take(batch),
          lagged: () => (this.state = undefined),
          others: (seq) => this.lookAgain(seq),
          forecast: (forecast) => this.foresee(forecast),
        });
      } catch (error) {
        this.fail(error);
      }
      if (this.isShut()) return;
      if (this.link === "open" || this.lost === 0) this.lost = Date.now();
      this.become("broken");
      if (this.asleep) continue;
      await new Promise((resolve) => setTimeout(resolve, TRY_MS[Math.min(tries, TRY_MS.length - 1)]));
    }
  }

  /** Not narrowed: it changes while we wait. */
  private isShut(): boolean {
    return this.link === "shut";
  }

  private become(link: Link): void {
    if (this.link === link) return;
    this.link = link;
    this.changed();
  }

  private fail(error: unknown): void {
    if (!(error instanceof Refused) || error.status !== 401) return;
    forget();
    this.refusal = "Your session has ended.";
    this.become("shut");
  }

  private async look(): Promise<void> {
    this.meanwhile = [];
    const snapshot = await get<Snapshot>("/v1/snapshot");
    this.ahead = snapshot.now - Date.now() / 1000;
    this.state = begin(snapshot);
    for (const event of this.meanwhile) fold(this.state, event); // what is in it already is passed over
    this.meanwhile = [];
    this.changed();
  }

  /** Of others we hear only that something happened: how things stand then is in a snapshot. */
  private lookAgain(seq: number): void {
    if (this.state && seq > this.state.seq) this.state.seq = seq;
    this.eventCount++;
    if (this.looking) return;
    this.looking = true;
    setTimeout(() => void this.look().catch((error: unknown) => this.fail(error)).finally(() => (this.looking = false)), OTHERS_MS);
  }

  private foresee(forecast: ForecastEvent): void {
    if (this.state) foldForecast(this.state, forecast);
    this.eventCount++;
    this.changed();
  }

  private take(batch: Event[]): void {
    const { state } = this;
    if (!state) return;
    this.eventCount += batch.length;
    for (const event of batch) fold(state, event);
    if (this.looking) this.meanwhile.push(...batch);
    this.changed();
    this.ask();
  }

  /** These are on the screen: the reasons why they wait may have changed. */
  refresh(ids: Iterable<number>): void {
    for (const id of ids) this.state?.ask.add(id);
    this.ask();
  }

  /** How busy GPUs are is no event: looked at when something happens, and not too often. */
  private async askNodes(state: State): Promise<void> {
    this.nodesAsked = performance.now();
    const { nodes } = await get<{ nodes: Node[] }>("/v1/nodes");
    nodes.forEach((node, i) => {
      const known = state.nodes[i];
      if (known && node.busy) known.busy = node.busy;
    });
    this.changed();
  }

  private ask(): void {
    const { state } = this;
    if (state?.nodes.some(({ busy }) => busy) && performance.now() - this.nodesAsked > NODES_MS)
      void this.askNodes(state).catch((error: unknown) => this.fail(error));
    if (this.asking || !state || (state.ask.size === 0 && !state.askLedger)) return;
    this.asking = true;
    setTimeout(() => void this.askNow().finally(() => (this.asking = false)), ASK_MS);
  }

  private async askNow(): Promise<void> {
    const { state } = this;
    while (state && state === this.state && (state.ask.size > 0 || state.askLedger)) {
      try {
        if (state.askLedger) await this.askLedger(state);
        else await this.askJobs(state);
        this.changed();
      } catch (error) {
        this.fail(error);
        return; // the stream breaks as well; what is on the list stays on it
      }
    }
  }

  private async askLedger(state: State): Promise<void> {
    state.askLedger = false;
    const { entries, sharing } = await get<{ entries: Entry[]; sharing?: SharingTotals }>("/v1/ledger?limit=1000");
    state.entries = entries;
    state.sharing = sharing;
  }

  private async askJobs(state: State): Promise<void> {
    const ids = [...state.ask].slice(0, ASK_MAX);
    const asked = state.seq;
    for (const id of ids) state.ask.delete(id);
    try {
      const { jobs } = await get<{ jobs: Job[] }>(`/v1/jobs?ids=${ids.join(",")}`);
      learn(state, jobs, asked, this.now());
    } catch (error) {
      for (const id of ids) state.ask.add(id);
      throw error;
    }
  }
}

/** Let in, or the reason why not. */
export async function open(): Promise<Live> {
  const live = new Live();
  try {
    if (await enter()) return live;
    live.refusal = "This page needs an address of its own.";
    waitForTabs();
  } catch (error) {
    live.refusal = error instanceof Error ? error.message : String(error);
  }
  live.link = "shut";
  return live;
}
