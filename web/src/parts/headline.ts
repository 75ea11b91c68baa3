// headline.ts - what was compared, what came of it in a sentence, and how to make it again.

import type { Figure, Report, Run } from "../data";
import { h } from "./dom";
import { plain, scaleForAll, scaled } from "./format";
import { opening, seedsInWords } from "./frame";

function figureOf(run: Run, id: string): Figure | undefined {
  return run.figures.find((figure) => figure.id === id);
}

/** The best mean completion time against that of the first policy. */
function finding(report: Report): string {
  const [first, ...others] = report.runs;
  const base = first && figureOf(first, "jct_s.mean");
  if (!first || !base || others.length === 0 || !(base.mean > 0)) return "";
  let best = first;
  let least = base;
  for (const run of others) {
    const figure = figureOf(run, "jct_s.mean");
    if (figure && figure.mean < least.mean) [best, least] = [run, figure];
  }
  const scale = scaleForAll("s", [base.mean, least.mean]);
  const overlap = least.n > 1 && least.high >= base.low ? ", but the intervals over seeds overlap" : "";
  if (best === first) return `Jobs complete soonest under ${first.policy}: after ${scaled(base.mean, scale)} on average.`;
  const ratio = plain(base.mean / least.mean);
  return `Jobs complete soonest under ${best.policy}: after ${scaled(least.mean, scale)} on average, against ${scaled(base.mean, scale)} under ${first.policy} (${ratio} times less${overlap}).`;
}

function counted(count: number, one: string, many: string): string {
  return `${plain(count)} ${count === 1 ? one : many}`;
}

function facts(report: Report): [string, string][] {
  const { cluster, workload, seeds } = report;
  const types = cluster.types.map((type) => `${plain(type.gpus)} ${type.name}`).join(", ");
  const size = `${counted(cluster.nodes, "node", "nodes")}, ${counted(cluster.gpus, "GPU", "GPUs")}`;
  const rows: [string, string][] = [
    ["Cluster", `${cluster.name} · ${size}${cluster.types.length > 1 ? ` (${types})` : ""}`],
    ["Workload", `${workload.name} · ${counted(workload.jobs, "job", "jobs")}`],
    ["Policies", report.runs.map((run) => run.policy).join(", ")],
  ];
  if (seeds.length > 0) rows.push([seeds.length === 1 ? "Seed" : "Seeds", seedsInWords(seeds)]);
  return rows;
}

export function headline(report: Report): HTMLElement {
  const sentence = report.whatIf ? "" : finding(report); // its tables say it by job
  return opening({
    title: report.title,
    under: sentence !== "" && h("p", { class: "finding" }, sentence),
    facts: facts(report),
    command: report.command,
  });
}
