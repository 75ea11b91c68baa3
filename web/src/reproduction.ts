// reproduction.ts - what a reproduced study is about: its types, and reading them from the page.

import { fields, list, number, numbers, numbersOrHoles, text } from "./json";

export type Verdict = "reproduced" | "inconclusive" | "better" | "worse" | "differs" | "faster" | "no figure published";
export type Fidelity = "released-code" | "paper" | "reconstructed" | "tuned";
export type Origin = "published" | "reconstructed" | "tuned" | "ours";

/** A figure that belongs to a row: what its gain costs, or a simpler policy's. */
export interface Related {
  what: string;
  unit: string;
  measured: number;
}

export interface Row {
  id: string;
  what: string;
  unit: string;
  published: number | undefined;
  measured: number;
  spread: [number, number] | undefined; // over seeds
  seeds: number;
  comparedSeed: number | undefined; // the seed that was published; undefined: the mean is compared
  verdict: Verdict | undefined;
  fidelity: Fidelity | undefined;
  setting: string;
  price: Related | undefined;
  beside: Related | undefined;
  note: string;
}

/** What both kinds of chart draw; holes are NaN, and low and high are y where not known. */
export interface Drawn {
  name: string;
  y: number[];
  low: number[];
  high: number[];
  published: boolean;
}

export interface Traced extends Drawn {
  x: number[]; // ascending
}

export interface BarChart {
  kind: "bars";
  title: string;
  y_label: string;
  log_y: boolean;
  groups: string[];
  series: Drawn[]; // a value per group
}

export interface LineChart {
  kind: "lines";
  title: string;
  x_label: string;
  y_label: string;
  log_x: boolean;
  log_y: boolean;
  series: Traced[];
}

export type Chart = BarChart | LineChart;

/** How much worse than the best each policy is in each study; holes, where it did not run, are NaN. */
export interface Regret {
  title: string;
  y_label: string;
  studies: string[];
  policies: { name: string; regrets: number[] }[]; // the policy that the page is about comes first
}

export interface Reproduction {
  title: string;
  paper: string;
  version: string;
  command: string;
  quick: boolean;
  seeds: number[];
  setup: { what: string; origin: Origin | undefined }[];
  rows: Row[];
  charts: Chart[];
  regret: Regret | undefined;
  notes: string[];
}

export const VERDICTS: readonly Verdict[] = ["reproduced", "inconclusive", "better", "worse", "differs", "faster", "no figure published"];
export const FIDELITIES: readonly Fidelity[] = ["released-code", "paper", "reconstructed", "tuned"];
export const ORIGINS: readonly Origin[] = ["published", "reconstructed", "tuned", "ours"];

function readRelated(value: unknown): Related | undefined {
  const from = fields(value);
  const measured = number(from["measured"], NaN);
  return Number.isNaN(measured) ? undefined : { what: text(from["what"]), unit: text(from["unit"]), measured };
}

function readRow(value: unknown): Row {
  const from = fields(value);
  const published = number(from["published"], NaN);
  const [low = NaN, high = NaN] = numbersOrHoles(from["spread"]);
  return {
    id: text(from["id"]),
    what: text(from["what"]) || text(from["id"]),
    unit: text(from["unit"]),
    published: Number.isNaN(published) ? undefined : published,
    measured: number(from["measured"], NaN),
    spread: high >= low ? [low, high] : undefined,
    seeds: number(from["seeds"], 1),
    comparedSeed: typeof from["compared_seed"] === "number" ? from["compared_seed"] : undefined,
    verdict: VERDICTS.find((verdict) => verdict === from["verdict"]),
    fidelity: FIDELITIES.find((fidelity) => fidelity === from["fidelity"]),
    setting: text(from["setting"]),
    price: readRelated(from["price"]),
    beside: readRelated(from["beside"]),
    note: text(from["note"]),
  };
}

/** Exactly 'count' values, holes where there are fewer. */
function column(value: unknown, count: number): number[] {
  const values = numbersOrHoles(value);
  return Array.from({ length: count }, (_, i) => values[i] ?? NaN);
}

function readDrawn(value: unknown, count: number): Drawn {
  const from = fields(value);
  const y = column(from["y"], count);
  const known = (bounds: number[]): number[] => bounds.map((bound, i) => (Number.isNaN(bound) ? (y[i] ?? NaN) : bound));
  return {
    name: text(from["name"]),
    y,
    low: known(column(from["low"], count)),
    high: known(column(from["high"], count)),
    published: from["published"] === true,
  };
}

/** In the order of x, without the points that lack one of the two. */
function readTraced(value: unknown): Traced {
  const x = numbersOrHoles(fields(value)["x"]);
  const drawn = readDrawn(value, x.length);
  const kept = x
    .map((_, i) => i)
    .filter((i) => !Number.isNaN(x[i]) && !Number.isNaN(drawn.y[i]))
    .sort((a, b) => (x[a] ?? 0) - (x[b] ?? 0));
  const pick = (values: number[]): number[] => kept.map((i) => values[i] ?? NaN);
  return { ...drawn, x: pick(x), y: pick(drawn.y), low: pick(drawn.low), high: pick(drawn.high) };
}

function readChart(value: unknown): Chart | undefined {
  const from = fields(value);
  const common = { title: text(from["title"]), y_label: text(from["y_label"]), log_y: from["log_y"] === true };
  if (from["kind"] === "bars") {
    const groups = list(from["groups"]).map(text);
    const series = list(from["series"]).map((one) => readDrawn(one, groups.length));
    return groups.length > 0 && series.length > 0 ? { kind: "bars", ...common, groups, series } : undefined;
  }
  if (from["kind"] !== "lines") return undefined;
  const series = list(from["series"]).map(readTraced).filter((one) => one.x.length > 0);
  const x = { x_label: text(from["x_label"]), log_x: from["log_x"] === true };
  return series.length > 0 ? { kind: "lines", ...common, ...x, series } : undefined;
}

function readRegret(value: unknown): Regret | undefined {
  const from = fields(value);
  if (from["kind"] !== "regret") return undefined;
  const studies = list(from["groups"]).map(text);
  const policies = list(from["series"]).map((one) => {
    const { name, x, y } = fields(one);
    const regrets = studies.map(() => NaN);
    const values = numbersOrHoles(y);
    numbersOrHoles(x).forEach((at, i) => {
      if (at in regrets) regrets[at] = values[i] ?? NaN;
    });
    return { name: text(name), regrets };
  });
  return policies.length > 0 ? { title: text(from["title"]), y_label: text(from["y_label"]), studies, policies } : undefined;
}

/** A reproduced study from what the page holds; throws where that holds neither row nor chart. */
export function readReproduction(value: unknown): Reproduction {
  const from = fields(value);
  const rows = list(from["rows"]).map(readRow);
  const charts = list(from["charts"]).map(readChart).filter((chart): chart is Chart => chart !== undefined);
  if (rows.length === 0 && charts.length === 0) throw new Error("there is no result in it");
  return {
    title: text(from["title"]) || "Berth reproduction",
    paper: text(from["paper"]),
    version: text(from["version"]),
    command: text(from["command"]),
    quick: from["quick"] === true,
    seeds: numbers(from["seeds"]),
    setup: list(from["setup"]).map((item) => ({
      what: text(fields(item)["what"]),
      origin: ORIGINS.find((origin) => origin === fields(item)["origin"]),
    })),
    rows,
    charts,
    regret: list(from["charts"]).map(readRegret).find((one) => one !== undefined),
    notes: list(from["notes"]).map(text).filter((note) => note !== ""),
  };
}
