// json.ts - reading values whose shape nobody promised.
//
// What is absent stays absent (one class only, no Gantt); what is of another shape is
// treated as absent, so that a page from a newer berth still shows what it can.

export type Fields = Record<string, unknown>;

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown, fallback = 0): number {
  return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}

export function numbers(value: unknown): number[] {
  return list(value).map((item) => number(item));
}

/** The same, with NaN for what is no number: a hole instead of a zero. */
export function numbersOrHoles(value: unknown): number[] {
  return list(value).map((item) => number(item, NaN));
}
