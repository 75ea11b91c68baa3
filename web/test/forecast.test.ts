// What the dashboard says of forecasts, and where it draws them; run by test/run.mjs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { calibrationWords } from "../src/parts/calibration";
import { expectedSentences, expectedWords, nextWords, type Expected, type Verb } from "../src/parts/expected";
import { endStretches, startStretches, type Stretch } from "../src/parts/expected_bars";
import { lastExpected, nextOf } from "../src/parts/next_jobs";
import type { Event, ExpectedTime, Job, Snapshot } from "../src/schema";
import { begin, fold, foldForecast } from "../src/state";

interface Case {
  case: string;
  zone: string;
  now: number;
  verb: Verb;
  expected: Expected;
  words: string;
  sentence: string;
}

const cases = JSON.parse(readFileSync(`${process.env["BERTH_WEB"] ?? ""}/../tests/support/expected_times.json`, "utf8")) as Case[];

const expected = (more: Expected): ExpectedTime => ({ horizon: 9999, basis: "size", made: 90, policy: "fifo", method: "played", ...more });

/** As if this machine stood there. */
function inZone(zone: string, body: () => void): void {
  const before = process.env["TZ"];
  process.env["TZ"] = zone;
  try {
    body();
  } finally {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  }
}

test("a forecast has the words of the command line", () => {
  assert.ok(cases.length > 20);
  for (const one of cases)
    inZone(one.zone, () => {
      assert.equal(expectedWords(one.verb, one.expected, one.now), one.words, one.case);
      assert.equal(expectedSentences(one.verb, one.expected, one.now), one.sentence, one.case);
    });
});

test("of a job the next thing is said: its start, then its end", () =>
  inZone("UTC", () => {
    const [start, end] = [expected({ p10: 39600, p90: 43200 }), expected({ p10: 50400, p90: 54000 })];
    assert.equal(nextWords({ expected_start: start, expected_end: end }, 36000), "starts 11:00–12:00");
    assert.equal(nextWords({ expected_end: end }, 36000), "ends 14:00–15:00");
    assert.equal(nextWords({}, 36000), "");
  }));

const stretchesOf = (stretches: readonly Stretch[]): unknown[] => stretches.map(({ from, to, fade, middle }) => [from, to, fade, middle]);

test("a running job is drawn until p10 and fades until p90, with its middle marked", () => {
  const end = { p10: 120, p50: 150, p90: 200, horizon: 1000 };
  assert.deepEqual(stretchesOf(endStretches(end, 100)), [[100, 120, "none", undefined], [120, 200, "out", 150]]);
  assert.deepEqual(stretchesOf(endStretches(end, 130)), [[130, 200, "out", 150]]);
  assert.deepEqual(stretchesOf(endStretches(end, 160)), [[160, 200, "out", undefined]]);
  assert.deepEqual(stretchesOf(endStretches(end, 200)), []);
  assert.deepEqual(stretchesOf(endStretches({ p10: 120, p50: 500, horizon: 1000, later: 0.3 }, 100)), [[100, 120, "none", undefined], [120, 1000, "out", 500]]);
  assert.deepEqual(stretchesOf(endStretches({ horizon: 1000, later: 1 }, 100)), [[100, 1000, "none", undefined]]);
  assert.deepEqual(stretchesOf(endStretches({ p10: 120, p50: 120, p90: 120 }, 100)), [[100, 120, "none", undefined]]);
});

test("a waiting job fades in from p10 to p90; what is behind its horizon is not drawn", () => {
  const start = { p10: 120, p50: 150, p90: 200, horizon: 1000 };
  const end = { p10: 300, p50: 350, p90: 400, horizon: 1000 };
  assert.deepEqual(stretchesOf(startStretches(start, end, 100)), [[120, 200, "in", 150], [200, 300, "none", undefined], [300, 400, "out", 350]]);
  assert.deepEqual(stretchesOf(startStretches(start, { ...end, p10: 160 }, 100)), [[120, 200, "in", 150], [200, 400, "out", 350]]);
  assert.deepEqual(stretchesOf(startStretches(start, undefined, 100)), [[120, 200, "in", 150]]);
  assert.deepEqual(stretchesOf(startStretches(start, end, 250)), [[250, 300, "none", undefined], [300, 400, "out", 350]]);
  assert.deepEqual(stretchesOf(startStretches({ p10: 120, horizon: 1000 }, end, 100)), [[120, 1000, "in", undefined]]);
  assert.deepEqual(startStretches({ horizon: 1000, later: 1 }, end, 100), []);
});

const SNAPSHOT: Snapshot = { seq: 1, now: 100, me: { all: true }, server: {}, nodes: [{ name: "a", type: "v100", gpus: 2 }], jobs: [], ended: [], spans: [], entries: [] };
const job = (id: number, more: Partial<Job> = {}): Job => ({ id, state: "PENDING", class: "be", gpus: 1, submit: 1, ...more });
const start = (p50: number): ExpectedTime => expected({ p10: p50 - 10, p50, p90: p50 + 10 });

test("a forecast of the stream replaces the one before, and leaves alone what it does not list", () => {
  const jobs = [job(1, { expected_start: start(200) }), job(2, { expected_start: start(300), expected_end: start(400) }), job(3, { state: "RUNNING" })];
  const state = begin({ ...SNAPSHOT, jobs });
  const starts = (): unknown[] => [...state.jobs.values()].map(({ expected_start: one }) => one?.p50);
  foldForecast(state, { jobs: [{ id: 1, expected_start: start(250) }, { id: 3, expected_start: start(260), expected_end: start(270) }], more: true });
  assert.deepEqual(starts(), [250, 300, undefined], "a job that has started since has no start to come");
  assert.equal(state.jobs.get(3)?.expected_end?.p50, 270);
  foldForecast(state, { jobs: [{ id: 1, expected_start: start(280) }, { id: 77, expected_start: start(1) }] });
  assert.deepEqual(starts(), [280, undefined, undefined]);
  assert.deepEqual([state.jobs.get(2)?.expected_end, state.jobs.get(3)?.expected_end, state.jobs.size], [undefined, undefined, 3]);
});

test("what has happened is no longer expected", () => {
  const state = begin({ ...SNAPSHOT, jobs: [job(1, { expected_start: start(200), expected_end: start(400) })] });
  let seq = 1;
  const happens = (kind: string, more: Partial<Event> = {}): void => fold(state, { seq: ++seq, at: 100 + seq, kind, job: 1, ...more });
  happens("placed", { seats: [{ node: 0, gpus: [0] }] });
  happens("started");
  assert.deepEqual([state.jobs.get(1)?.expected_start, state.jobs.get(1)?.expected_end?.p50], [undefined, 400]);
  happens("recalled");
  happens("stopped");
  assert.equal(state.jobs.get(1)?.expected_end, undefined);
  foldForecast(state, { jobs: [{ id: 1, expected_start: start(500), expected_end: start(600) }] });
  happens("cancelled");
  assert.deepEqual([state.ended[0]?.expected_start, state.ended[0]?.expected_end], [undefined, undefined]);
});

test("the next jobs have rows, and the last interval is in sight", () => {
  const jobs = [job(1, { expected_start: start(900) }), job(2, { expected_start: start(200), expected_end: start(400) }), job(3), job(4, { expected_start: expected({}) }), job(5, { state: "HELD", expected_start: start(200) })];
  const state = begin({ ...SNAPSHOT, jobs });
  const ids = (most: number): unknown[] => [nextOf(state, most).jobs.map(({ id }) => id), nextOf(state, most).count];
  assert.deepEqual([ids(8), ids(2), ids(1)], [[[2, 5, 1], 3], [[2, 5], 3], [[2], 3]]);
  assert.equal(lastExpected(state, nextOf(state, 2).jobs), 410);
  assert.equal(lastExpected(begin(SNAPSHOT), []), undefined);
});

test("how well forecasts held is a sentence, also where it is not known", () => {
  const words = calibrationWords({ days: 14, kinds: [], n: 232, coverage_80: 0.794, median_abs_error_s: 214 });
  assert.equal(words, "Of 232 forecasts of starts in the last 14 days, 79 % held; the median error was 4 min. An interval is to hold four times in five.");
  assert.match(calibrationWords({ days: 14, kinds: [] }), /^How well forecasts hold is not known yet/);
  assert.match(calibrationWords({ days: 14, kinds: [], n: 3 }), /3 forecasts of starts were compared .* too few/);
});
