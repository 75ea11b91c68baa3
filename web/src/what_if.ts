// what_if.ts - what was played again, beside what happened and beside other cases: reading it from the page.

import { fields, list, number, text } from "./json";

/** A figure as it happened, and as the replay of it has it. */
export interface Trusted {
  label: string;
  happened: number;
  replayed: number;
}

/** A figure of a case beside that of the replay; NaN where there is no interval. */
export interface Difference {
  label: string;
  unit: string;
  was: number;
  value: number;
  low: number; // of the change, as a part of 'was'
  high: number;
}

export interface Variant {
  name: string;
  jobs: number;
  rejected: number;
  unfinished: number;
  differences: Difference[];
}

export interface WhatIf {
  changed: string;
  notes: string[];
  jobs: number; // that trust is about
  trust: Trusted[];
  intervals: string; // how they were made
  variants: Variant[];
}

interface Label {
  id: string;
  label: string;
  unit: string;
}

function readLabels(value: unknown): Label[] {
  return list(value).map((row) => {
    const from = fields(row);
    return { id: text(from["id"]), label: text(from["label"]), unit: text(from["unit"]) };
  });
}

function readTrust(value: unknown, labels: readonly Label[]): Trusted[] {
  const figures = fields(value);
  return labels.flatMap(({ id, label }) => {
    const from = fields(figures[id]);
    const trusted = { label, happened: number(from["happened"], NaN), replayed: number(from["replayed"], NaN) };
    return Number.isFinite(trusted.happened) ? [trusted] : [];
  });
}

function readVariant(value: unknown, labels: readonly Label[]): Variant {
  const from = fields(value);
  const figures = fields(from["figures"]);
  return {
    name: text(from["name"]),
    jobs: number(from["jobs"]),
    rejected: number(from["rejected"]),
    unfinished: number(from["unfinished"]),
    differences: labels.flatMap(({ id, label, unit }) => {
      if (!(id in figures)) return [];
      const row = fields(figures[id]);
      return [
        {
          label,
          unit,
          was: number(row["was"], NaN),
          value: number(row["value"], NaN),
          low: number(row["change_low"], NaN),
          high: number(row["change_high"], NaN),
        },
      ];
    }),
  };
}

function intervalsInWords(value: unknown): string {
  const from = fields(value);
  const block = number(from["block_s"]);
  if (!(block > 0)) return "There are no intervals: jobs were submitted on too few days, and in too few hours.";
  const what = block >= 86400 ? "days" : "hours";
  return `Intervals hold 95 % of ${number(from["draws"])} draws of the ${number(from["blocks"])} ${what} in which jobs were submitted (block bootstrap).`;
}

/** Undefined where the page is not about that. */
export function readWhatIf(value: unknown): WhatIf | undefined {
  if (value === undefined) return undefined;
  const from = fields(value);
  const labels = readLabels(from["labels"]);
  const trust = fields(from["trust"]);
  return {
    changed: text(from["changed"]),
    notes: list(from["notes"]).map(text),
    jobs: number(trust["jobs"]),
    trust: readTrust(trust["figures"], labels),
    intervals: intervalsInWords(from["intervals"]),
    variants: list(from["variants"]).map((row) => readVariant(row, labels)),
  };
}
