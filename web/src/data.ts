// data.ts - what a report is about: its types, and reading them from the page.
//
// What is absent stays undefined (one class only, no Gantt); what is of another shape is
// treated as absent, so that a page from a newer berth still shows what it can.

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
  ended: number; // 0 finished, 1 preempted, 2 lost, 3 still running
}

export interface Gantt {
  from: number;
  to: number;
  gpus: string[];
  spans: Span[];
  complete: boolean;
}

export interface Run {
  policy: string;
  brief: string;
  figures: Figure[];
  cdf: Curves;
  series: Series | undefined;
  gantt: Gantt | undefined;
}

export interface Report {
  title: string;
  version: string;
  command: string;
  cluster: { name: string; nodes: number; gpus: number; types: { name: string; gpus: number }[] };
  workload: { name: string; jobs: number };
  seeds: number[];
  runs: Run[];
}

export const METRICS: readonly Metric[] = ["jct_s", "slowdown", "wait_s"];
export const KINDS: readonly Kind[] = ["all", "te", "be"];

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown, fallback = 0): number {
  return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}

function numbers(value: unknown): number[] {
  return list(value).map((item) => number(item));
}

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

function readSeries(value: unknown): Series | undefined {
  const from = fields(value);
  const t_s = numbers(from["t_s"]);
  if (t_s.length === 0) return undefined;
  const aligned = (key: string): number[] => {
    const values = numbers(from[key]);
    return values.length === t_s.length ? values : [];
  };
  return {
    t_s,
    gpus_held: aligned("gpus_held"),
    jobs_waiting: aligned("jobs_waiting"),
    jobs_running: aligned("jobs_running"),
  };
}

function readSpan(value: unknown): Span {
  const [gpu = 0, start = 0, end = 0, job = 0, kind = 0, ended = 0] = numbers(value);
  return { gpu, start, end, job, class: kind, ended };
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
  };
}

/** A report from JSON text; throws where that is no JSON or holds no run. */
export function readReport(json: string): Report {
  const from = fields(JSON.parse(json) as unknown);
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
  };
}
