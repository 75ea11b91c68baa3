// occupancy.ts - which job held which GPUs: the server's spans, kept up to date by events.
//
// A snapshot brings the spans that berthd worked out (src/metrics/occupancy.c); the events that
// follow it are applied by the same rules, so that nothing has to be asked for again.

import type { Event, Span } from "./schema";

const CLOSED_MAX = 20000;

/** Why a job no longer holds the GPUs of a span. */
export type End = NonNullable<Span["how"]>;

function byJob(spans: Span[]): Map<number, Span[]> {
  const map = new Map<number, Span[]>();
  for (const span of spans) map.set(span.job, [...(map.get(span.job) ?? []), span]);
  return map;
}

export class Occupancy {
  readonly closed: Span[]; // in order of their end
  readonly held: Map<number, Span[]>; // by job
  readonly pending: Map<number, Span[]>; // by job: placed and not yet started
  private readonly users = new Map<string, number[]>(); // by node and GPU: the jobs that hold it

  constructor(spans: Span[]) {
    this.closed = spans.filter((span) => span.end !== undefined).sort((a, b) => (a.end ?? 0) - (b.end ?? 0));
    this.held = byJob(spans.filter((span) => span.end === undefined && span.start !== undefined));
    this.pending = byJob(spans.filter((span) => span.end === undefined && span.start === undefined));
    for (const job of this.held.keys()) this.enter(job);
  }

  private eachGpu(job: number, visit: (key: string, users: number[]) => void): void {
    for (const { node, gpus } of this.held.get(job) ?? [])
      for (const gpu of gpus) visit(`${node}:${gpu}`, this.users.get(`${node}:${gpu}`) ?? []);
  }

  private enter(job: number): void {
    this.eachGpu(job, (key, users) => this.users.set(key, [...users, job]));
  }

  /** The job that holds the same GPUs. */
  partnerOf(job: number): number | undefined {
    let partner: number | undefined;
    this.eachGpu(job, (_key, users) => (partner ??= users.find((user) => user !== job)));
    return partner;
  }

  place(job: number, kind: Span["class"], event: Event): void {
    const seats = event.seats ?? [];
    this.pending.set(job, seats.map(({ node, gpus }) => ({ job, attempt: event.attempt ?? 0, class: kind, node, gpus })));
  }

  /** What was pending is held from now on, instead of what the job held before. */
  start(job: number, event: Event): Span[] {
    const spans = this.pending.get(job) ?? [];
    this.close(job, event.at, "resized");
    for (const span of spans) {
      span.start = event.at;
      if (event.attempt !== undefined) span.attempt = event.attempt;
    }
    this.pending.delete(job);
    this.held.set(job, spans);
    this.enter(job);
    return spans;
  }

  close(job: number, at: number, how: End): void {
    this.eachGpu(job, (key, users) => {
      const others = users.filter((user) => user !== job);
      if (others.length > 0) this.users.set(key, others);
      else this.users.delete(key);
    });
    for (const span of this.held.get(job) ?? []) {
      span.end = at;
      span.how = how;
      this.closed.push(span);
    }
    this.held.delete(job);
    if (this.closed.length > CLOSED_MAX) this.closed.splice(0, CLOSED_MAX / 10);
  }

  dropPending(job: number): void {
    this.pending.delete(job);
  }
}
