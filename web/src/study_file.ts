// study_file.ts - a result of berth compare or reproduce, from a file: what --json printed, or
// the page that --report wrote, which has the distributions and the Gantt chart as well.

import { readReport, type Report } from "./data";
import { fields, list, number, text, type Fields } from "./json";
import { readReproduction, type Reproduction } from "./reproduction";

export type Study = { kind: "compare"; report: Report } | { kind: "reproduce"; studies: Reproduction[] };

const OPENING = '<script type="application/json" id="data">';

/** What a report's page was filled with; undefined: it is none. */
function dataOfPage(content: string): unknown {
  const from = content.indexOf(OPENING);
  if (from < 0) return undefined;
  const to = content.indexOf("</script", from);
  return JSON.parse(content.slice(from + OPENING.length, to < 0 ? undefined : to)) as unknown;
}

const UNITS: [RegExp, string][] = [
  [/^gpu_utilization$/, "fraction"],
  [/gpu_s(\.|$)/, "gpu_s"],
  [/(^|[._])(jct_s|wait_s|makespan_s|wait_saved_s|time_to[._a-z]*)(\.|$)/, "s"],
  [/^slowdown\.|^finish_time_fairness/, "x"],
  [/cost_usd/, "usd"],
];

const MORE_IS_BETTER = /gpu_utilization|completed|wait_saved/;
const NEITHER = /^jobs\.|^preemptions$|^resizes$|^ledger\./;

/** "slowdown.te.p95" as people say it. */
function labelOf(id: string): string {
  return id.replace(/_s\b|_gpu_s\b/g, "").replace(/[._]/g, " ").replace(/\bte\b/, "trial").replace(/\bbe\b/, "best effort").replace(/\bjct\b/, "completion time");
}

function figure([id, value]: [string, unknown]): Fields {
  const unit = UNITS.find(([pattern]) => pattern.test(id))?.[1] ?? "";
  const better = NEITHER.test(id) ? "none" : MORE_IS_BETTER.test(id) ? "more" : "less";
  return { ...fields(value), id, label: labelOf(id), unit, better };
}

/** The figures of compare --json, in the shape of a report. */
function fromComparison(from: Fields): Report {
  const policies = list(from["policies"]).map(fields);
  const total = fields(fields(fields(policies[0]?.["figures"])["jobs.total"]));
  return readReport({
    title: policies.map((one) => text(one["policy"])).join(", "),
    cluster: { name: text(from["cluster"]) },
    workload: { name: text(from["workload"]), jobs: number(total["mean"]) },
    seeds: from["seeds"],
    runs: policies.map((one) => ({ policy: one["policy"], figures: Object.entries(fields(one["figures"])).map(figure) })),
  });
}

function fromReproduction(value: unknown): Reproduction {
  const from = fields(value);
  return readReproduction({ ...from, title: text(from["title"]) || `Reproduced: ${text(from["paper"])}`, seeds: list(from["seeds"]) });
}

/** One object, or one per line as 'reproduce all --json' prints them. */
function parse(content: string): unknown[] {
  try {
    return [JSON.parse(content) as unknown];
  } catch (error) {
    const lines = content.split("\n").filter((line) => line.trim() !== "");
    if (lines.length < 2 || !lines.every((line) => line.startsWith("{"))) throw error;
    return lines.map((line) => JSON.parse(line) as unknown);
  }
}

/** Throws with a sentence where it is nothing of the kind. */
export function readStudy(content: string): Study {
  let values: unknown[];
  try {
    const page = dataOfPage(content);
    values = page === undefined ? parse(content) : [page];
  } catch {
    throw new Error("this is neither JSON nor a page of berth");
  }
  const first = fields(values[0]);
  if (first["kind"] === "reproduce" || first["rows"] !== undefined) return { kind: "reproduce", studies: values.map(fromReproduction) };
  if (first["policies"] !== undefined) return { kind: "compare", report: fromComparison(first) };
  if (first["runs"] !== undefined && first["kind"] !== "sim") return { kind: "compare", report: readReport(first) };
  throw new Error("there is no comparison and no reproduction in it");
}
