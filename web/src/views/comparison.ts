// comparison.ts - the runs of several policies side by side: the whole report.

import type { Kind, Metric, Report } from "../data";
import { available, cdf } from "../parts/cdf";
import { Cell } from "../parts/cell";
import { h } from "../parts/dom";
import { section } from "../parts/frame";
import { gantt } from "../parts/gantt";
import { headline } from "../parts/headline";
import { highlights } from "../parts/highlights";
import { ledger } from "../parts/ledger";
import { legend, type Hidden } from "../parts/legend";
import { preempts } from "../parts/price";
import { learns, quality } from "../parts/quality";
import { table } from "../parts/table";
import { usage } from "../parts/usage";
import { whatIf } from "../parts/what_if";

function distributions(report: Report, hidden: Cell<Hidden>): HTMLElement | undefined {
  const { metrics, kinds } = available(report.runs);
  const [first] = metrics;
  const [widest] = kinds;
  if (first === undefined || widest === undefined) return undefined;
  const second: Metric | undefined = metrics[1];
  const narrow: Kind = kinds.includes("te") ? "te" : widest;
  return section(
    "Distribution over jobs",
    "How many jobs get at most so much: the further left and up a line, the better.",
    h(
      "div",
      { class: "grid two" },
      cdf(report.runs, hidden, { metric: first, kind: widest }),
      second && cdf(report.runs, hidden, { metric: second, kind: narrow }),
    ),
  );
}

function ofSeed(report: Report): string {
  return report.seeds.length > 1 ? `Seed ${report.seeds[0] ?? ""} of ${report.seeds.length}.` : "";
}

function priceNote(report: Report): string {
  const what = "A preemption costs the GPU time of pausing, loading again and work done twice.";
  const seeds = report.seeds.length;
  return seeds > 1 ? `${what} The chart shows seed ${report.seeds[0] ?? ""}, the table the mean of ${seeds} seeds.` : what;
}

function qualityNote(report: Report): string {
  const what = "Loss is 1 at a job's first step and 0 at its last.";
  const seeds = report.seeds.length;
  return seeds > 1 ? `${what} Losses over time are of seed ${report.seeds[0] ?? ""}, times the mean of ${seeds} seeds.` : what;
}

export function comparison(report: Report): HTMLElement[] {
  const { runs } = report;
  const hidden = new Cell<Hidden>(new Set());
  const names = runs.map((run) => run.policy);
  const parts: (HTMLElement | undefined)[] = [
    headline(report),
    ...(report.whatIf ? whatIf(report.whatIf) : []),
    section("At a glance", "", highlights(runs)),
    h(
      "div",
      {}, // the legend stays in sight as far as this goes
      runs.length > 1 && legend(names, hidden),
      distributions(report, hidden),
      runs.some(learns) && section("How soon models are good", qualityNote(report), quality(runs, hidden)),
      runs.some((run) => run.series) &&
        section("Over time", ofSeed(report), usage(runs, report.cluster.gpus, hidden)),
      runs.some(preempts) && section("Preemptions and their price", priceNote(report), ledger(runs, hidden)),
    ),
    runs.some((run) => run.gantt) ? section("Who held which GPU", ofSeed(report), gantt(runs)) : undefined,
    section("All figures", "", table(runs)),
  ];
  return parts.filter((part): part is HTMLElement => part !== undefined);
}
