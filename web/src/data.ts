// data.ts - what a comparison is about: its types, and reading them from the page.

import { fields, list, number, numbers, text } from "./json";
import { readWhatIf, type WhatIf } from "./what_if";

export type Better = "less" | "more" | "none";

export interface Figure {
  id: string;
  label: string;
  unit: string;
  better: Better;
  mean: number;
  low: number;
  high: number;
  n: number;
}

export interface Curve {
  x: number[];
  y: number[];
}

export type Kind = "all" | "te" | "be";
export type Metric = "jct_s" | "slowdown" | "wait_s";
export type Curves = Partial<Record<Metric, Partial<Record<Kind, Curve>>>>;

export interface Series {
  t_s: number[];
  gpus_held: number[];
  jobs_waiting: number[];
  jobs_running: number[];
}

export interface Span {
  gpu: number;
  start: number;
  end: number;
  job: number;
  class: number; // 0 best effort, 1 trial
  ended: number; // 0 finished, 1 preempted, 2 lost, 3 still running; on the dashboard also 4 planned, 5 failed, 6 foreign, 7 perhaps
  lane: number; // 1: came to a GPU that somebody had already
}

/** What a job kept of its speed alone beside another, from then on. */
export interface Kept {
  job: number;
  beside: number;
  from: number;
  kept: number;
}

export interface Gantt {
  from: number;
  to: number;
  gpus: string[];
  waiting?: number; // from this row on they are jobs that hold no GPU yet
  spans: Span[];
  kept?: Kept[]; // by the start
  complete: boolean;
}

/** What preemptions cost, by stretches of time; what a stretch cost, not all until then. */
export interface Ledger {
  t_s: number[]; // where each begins, since the first submission
  preemptions: number[];
  predicted_gpu_s: number[];
  actual_gpu_s: number[];
}

/** How far the models of running jobs are, by stretches of time. */
export interface Quality {
  t_s: number[]; // where each begins, since the first submission
  loss: number[]; // mean over jobs: 1 at their first step, 0 at their last
}

export interface Run {
  policy: string;
  brief: string;
  figures: Figure[];
  cdf: Curves;
  series: Series | undefined;
  gantt: Gantt | undefined;
  ledger: Ledger | undefined;
  quality: Quality | undefined;
}

export interface Report {
  title: string;
  version: string;
  command: string;
  cluster: { name: string; nodes: number; gpus: number; types: { name: string; gpus: number }[] };
  workload: { name: string; jobs: number };
  seeds: number[];
  runs: Run[];
  whatIf: WhatIf | undefined;
}

export const METRICS: readonly Metric[] = ["jct_s", "slowdown", "wait_s"];
export const KINDS: readonly Kind[] = ["all", "te", "be"];

function readFigure(value: unknown): Figure {
  const from = fields(value);
  const mean = number(from["mean"], NaN);
  const better = from["better"];
  return {
    id: text(from["id"]),
    label: text(from["label"]) || text(from["id"]),
    unit: text(from["unit"]),
    better: better === "less" || better === "more" ? better : "none",
    mean,
    low: number(from["low"], mean),
    high: number(from["high"], mean),
    n: number(from["n"], 1),
  };
}

function readCurve(value: unknown): Curve | undefined {
  const from = fields(value);
  const x = numbers(from["x"]);
  const y = numbers(from["y"]);
  return x.length > 0 && x.length === y.length ? { x, y } : undefined;
}

function readCurves(value: unknown): Curves {
  const from = fields(value);
  const curves: Curves = {};
  for (const metric of METRICS) {
    for (const kind of KINDS) {
      const curve = readCurve(fields(from[metric])[kind]);
      if (curve) (curves[metric] ??= {})[kind] = curve;
    }
  }
  return curves;
}

/** As many values as there are moments, or none. */
function aligned(value: unknown, count: number): number[] {
  const values = numbers(value);
  return values.length === count ? values : [];
}

function readSeries(value: unknown): Series | undefined {
  const from = fields(value);
  const t_s = numbers(from["t_s"]);
  if (t_s.length === 0) return undefined;
  return {
    t_s,
    gpus_held: aligned(from["gpus_held"], t_s.length),
    jobs_waiting: aligned(from["jobs_waiting"], t_s.length),
    jobs_running: aligned(from["jobs_running"], t_s.length),
  };
}

function readLedger(value: unknown): Ledger | undefined {
  const from = fields(value);
  const t_s = numbers(from["t_s"]);
  if (t_s.length === 0) return undefined;
  return {
    t_s,
    preemptions: aligned(from["preemptions"], t_s.length),
    predicted_gpu_s: aligned(from["predicted_gpu_s"], t_s.length),
    actual_gpu_s: aligned(from["actual_gpu_s"], t_s.length),
  };
}

function readQuality(value: unknown): Quality | undefined {
  const from = fields(value);
  const t_s = numbers(from["t_s"]);
  const loss = aligned(from["loss"], t_s.length);
  return loss.length > 0 ? { t_s, loss } : undefined;
}

function readSpan(value: unknown): Span {
  const [gpu = 0, start = 0, end = 0, job = 0, kind = 0, ended = 0, lane = 0] = numbers(value);
  return { gpu, start, end, job, class: kind, ended, lane };
}

/** A pair is two of them: one for each job. */
function readPairs(value: unknown): Kept[] {
  return list(value).flatMap((row) => {
    const [one = 0, other = 0, from = 0, kept = 0, otherKept = 0] = numbers(row);
    return [{ job: one, beside: other, from, kept }, { job: other, beside: one, from, kept: otherKept }];
  });
}

function readGantt(value: unknown): Gantt | undefined {
  const from = fields(value);
  const gpus = list(from["gpus"]).map(text);
  const spans = list(from["spans"]).map(readSpan);
  if (gpus.length === 0 || spans.length === 0) return undefined;
  return {
    from: number(from["from_s"]),
    to: number(from["to_s"]),
    gpus,
    spans: spans.filter((span) => span.gpu >= 0 && span.gpu < gpus.length),
    kept: readPairs(from["pairs"]),
    complete: from["complete"] !== false,
  };
}

function readRun(value: unknown): Run {
  const from = fields(value);
  return {
    policy: text(from["policy"]),
    brief: text(from["brief"]),
    figures: list(from["figures"]).map(readFigure),
    cdf: readCurves(from["cdf"]),
    series: readSeries(from["series"]),
    gantt: readGantt(from["gantt"]),
    ledger: readLedger(from["ledger"]),
    quality: readQuality(from["quality"]),
  };
}

/** A comparison from what the page holds; throws where that holds no run. */
export function readReport(value: unknown): Report {
  const from = fields(value);
  const cluster = fields(from["cluster"]);
  const workload = fields(from["workload"]);
  const runs = list(from["runs"]).map(readRun);
  if (runs.length === 0) throw new Error("there is no run in it");
  return {
    title: text(from["title"]) || "Berth report",
    version: text(from["version"]),
    command: text(from["command"]),
    cluster: {
      name: text(cluster["name"]),
      nodes: number(cluster["nodes"]),
      gpus: number(cluster["gpus"]),
      types: list(cluster["types"]).map((type) => ({
        name: text(fields(type)["name"]),
        gpus: number(fields(type)["gpus"]),
      })),
    },
    workload: { name: text(workload["name"]), jobs: number(workload["jobs"]) },
    seeds: numbers(from["seeds"]),
    runs,
    whatIf: readWhatIf(from["what_if"]),
  };
}
