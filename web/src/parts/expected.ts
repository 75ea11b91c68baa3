// expected.ts - when a job is expected to start or to end, in words.
//
// The same words as on the command line (src/cmd/berth/expected_times.c), by this machine's clock:
// tests/support/expected_times.json lists cases for both.

import type { ExpectedTime, Job } from "../schema";

const SOON_S = 60; // sooner than this is "any moment"
const LATEST_S = 1e11; // times beyond it are mistakes
const WEEKDAYS_MAX = 6; // in so many days a weekday is unambiguous
const DAY_S = 86400;
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export type Expected = Partial<ExpectedTime>;
export type Verb = "start" | "end";

/** A time that is one; undefined: it lies beyond the horizon, or is not said. */
export function timeOf(value: unknown): number | undefined {
  return typeof value === "number" && Math.abs(value) < LATEST_S ? value : undefined;
}

const two = (value: number): string => String(value).padStart(2, "0");
const clockOf = (at: Date): string => `${two(at.getHours())}:${two(at.getMinutes())}`;
const dateOf = (time: number): Date => new Date(Math.floor(time) * 1000);

/** Calendar days from one to another; those on which clocks change have as many seconds here. */
function daysBetween(from: Date, to: Date): number {
  const day = (at: Date): number => Date.UTC(at.getFullYear(), at.getMonth(), at.getDate());
  return (day(to) - day(from)) / (1000 * DAY_S);
}

/** "14:20", or with its day where that is not today. */
function momentOf(time: number, now: number): string {
  const [at, today] = [dateOf(time), dateOf(now)];
  const days = daysBetween(today, at);
  if (days === 0) return clockOf(at);
  if (days > 0 && days <= WEEKDAYS_MAX) return `${WEEKDAYS[at.getDay()] ?? ""} ${clockOf(at)}`;
  if (at.getFullYear() === today.getFullYear()) return `${at.getDate()} ${MONTHS[at.getMonth()] ?? ""} ${clockOf(at)}`;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockOf(at)}`;
}

/** " (UTC+2)" */
function zoneOf(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const rest = Math.abs(minutes) % 60;
  return ` (UTC${minutes < 0 ? "-" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest === 0 ? "" : `:${two(rest)}`})`;
}

/** Both ends of an interval: the day stands once; where the clocks change between them each has its zone. */
function endsOf(from: number, to: number, now: number): [string, string] {
  const [first, last] = [dateOf(from), dateOf(to)];
  if (daysBetween(first, last) !== 0) return [momentOf(from, now), momentOf(to, now)];
  const same = first.getTimezoneOffset() === last.getTimezoneOffset();
  return [momentOf(from, now) + (same ? "" : zoneOf(first)), clockOf(last) + (same ? "" : zoneOf(last))];
}

const sameMinute = (a: number, b: number): boolean => Math.floor(a / 60) === Math.floor(b / 60);

/** How far the forecast looked: "4 d". */
function horizonOf(expected: Expected, now: number): string {
  const length = (timeOf(expected.horizon) ?? now) - (timeOf(expected.made) ?? now);
  if (length >= 2 * DAY_S) return `${Math.floor(length / DAY_S)} d`;
  if (length >= 7200) return `${Math.floor(length / 3600)} h`;
  return `${length >= 120 ? Math.floor(length / 60) : 1} min`;
}

function isSaid(expected: Expected | undefined): expected is Expected {
  return expected !== undefined && (timeOf(expected.p10) ?? timeOf(expected.horizon)) !== undefined;
}

/** "14:20–14:45", "by 14:45", "any moment", "later than 4 d"; "" where nothing is expected. */
export function intervalWords(expected: Expected | undefined, now: number): string {
  if (!isSaid(expected)) return "";
  const [p10, p90] = [timeOf(expected.p10), timeOf(expected.p90)];
  const far = horizonOf(expected, now);
  if (p10 === undefined) return `later than ${far}`;
  if (p90 === undefined) return `${p10 <= now ? "any moment" : `from ${momentOf(p10, now)}`}, perhaps later than ${far}`;
  if (p90 < now + SOON_S) return "any moment";
  if (p10 <= now) return `by ${momentOf(p90, now)}`;
  return sameMinute(p10, p90) ? momentOf(p10, now) : endsOf(p10, p90, now).join("–");
}

/** "starts 14:20–14:45" */
export function expectedWords(verb: Verb, expected: Expected | undefined, now: number): string {
  const interval = intervalWords(expected, now);
  return interval === "" ? "" : `${verb}s ${interval}`;
}

/** What is expected of a job next: its start if it waits, its end if it runs. */
export function nextWords(job: Pick<Job, "expected_start" | "expected_end">, now: number): string {
  return job.expected_start ? expectedWords("start", job.expected_start, now) : expectedWords("end", job.expected_end, now);
}

// ---- in sentences ----

const percent = (share: number): string => `${Math.round(100 * share)} %`;

function medianWords(p50: number | undefined, now: number): string {
  return p50 !== undefined && p50 > now ? `, as likely before as after ${momentOf(p50, now)}` : "";
}

function intervalSentence(expected: Expected, now: number): string {
  const [p10, p50, p90] = [timeOf(expected.p10), timeOf(expected.p50), timeOf(expected.p90)];
  const far = horizonOf(expected, now);
  const { later } = expected;
  if (p10 === undefined) return `later than ${far}${later === undefined ? "" : ` (${percent(later)} likely)`}`;
  if (p90 === undefined) {
    const first = p10 <= now ? "any moment" : `from ${momentOf(p10, now)} on`;
    return `${first}${medianWords(p50, now)}, ${later === undefined ? "perhaps" : `${percent(later)} likely`} later than ${far}`;
  }
  if (p90 < now + SOON_S) return "any moment";
  if (sameMinute(p10, p90)) return `about ${momentOf(p10, now)} (80 % likely)`;
  const words = p10 <= now ? `by ${momentOf(p90, now)} (90 % likely)` : `between ${endsOf(p10, p90, now).join(" and ")} (80 % likely)`;
  return words + medianWords(p50, now);
}

/** What stands before and after "57 finished jobs". */
const BASES: Record<string, [string, string]> = {
  name: ["", " of the same name and user"],
  user: ["", " of the same user and size"],
  size: ["", " of the same size"],
  all: ["", " of all kinds"],
  estimate: ["its declared run time, as those of ", " turned out"],
  waits: ["waits of ", " of the same size"],
};

/** "57 finished jobs of the same name and user"; "" if that is not said. */
export function basisWords({ basis, basis_jobs: jobs = 0 }: Expected): string {
  const words = BASES[basis ?? ""];
  return words && jobs >= 1 ? `${words[0]}${jobs} finished job${jobs === 1 ? "" : "s"}${words[1]}` : "";
}

function originWords(expected: Expected): string {
  const policy = expected.policy ?? "its policy";
  const basis = basisWords(expected);
  if (expected.method === "baseline") return `from ${basis || "earlier waits"}: lately nearer to the truth than playing ${policy} forward`;
  return `by playing ${policy} forward${basis === "" ? "" : `, with ${expected.basis === "estimate" ? "" : "run times of "}${basis}`}`;
}

function coverageWords({ coverage_80: coverage, coverage_n: count }: Expected): string {
  if (coverage === undefined) return "How well such forecasts hold is not known yet.";
  return count === undefined ? `Of such forecasts ${percent(coverage)} held lately.` : `Of the last ${count} such forecasts ${percent(coverage)} held.`;
}

/** The interval with its probabilities, what it was made from and when, and how well such forecasts held. */
export function expectedSentences(verb: Verb, expected: Expected | undefined, now: number): string {
  if (!isSaid(expected)) return "";
  const made = timeOf(expected.made);
  const at = made === undefined ? "" : ` at ${momentOf(made, now)}`;
  return `Expected to ${verb} ${intervalSentence(expected, now)}. Forecast${at} ${originWords(expected)}. ${coverageWords(expected)}`;
}
