// What the parts say and where they put their marks; run by test/run.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readReport } from "../src/data";
import { amount, change, moment, plain, scaleForAll, scaled } from "../src/parts/format";
import { isCovered, layOut } from "../src/parts/gantt_rows";
import { assignLanes, piecesOf } from "../src/parts/lanes";
import { besidesOf } from "../src/parts/sharing";
import { clock, even, logNumbers, logTimes } from "../src/parts/ticks";
import { intervalOf } from "../src/parts/what_if";
import { Window } from "../src/parts/window";

test("amounts are in the unit people would use", () => {
  assert.equal(amount(738, "s"), "12.3 min");
  assert.equal(amount(14760, "s"), "4.10 h");
  assert.equal(amount(0.0042, "s"), "4.20 ms");
  assert.equal(amount(0.871, "fraction"), "87.1 %");
  assert.equal(amount(1234, "us"), "1234 µs");
  assert.equal(amount(9.5, "x"), "9.50×");
  assert.equal(amount(7200, "gpu_s"), "2.00 GPU h");
  assert.equal(amount(42, "gpu_s"), "42.0 GPU s");
  assert.equal(amount(12345, "count"), "12\u202f345");
  assert.equal(amount(NaN, "s"), "–");
  assert.equal(plain(-3), "−3");
});

test("numbers that are compared share a unit", () => {
  const scale = scaleForAll("s", [260000, 16760]);
  assert.equal(scaled(260000, scale), "72.2 h");
  assert.equal(scaled(16760, scale), "4.66 h");
  assert.equal(scaled(0, scaleForAll("s", [0, 0])), "0 s");
});

test("moments have at most the parts that matter", () => {
  assert.equal(moment(45), "45 s");
  assert.equal(moment(3600), "1 h");
  assert.equal(moment(187500), "2 d 4 h");
  assert.equal(moment(187500, 3), "2 d 4 h 5 min");
});

test("changes are percentages until they are multiples", () => {
  assert.equal(change(100, 77), "−23 %");
  assert.equal(change(100, 104.1), "+4.1 %");
  assert.equal(change(10, 120), "×12");
  assert.equal(change(300, 10), "÷30");
  assert.equal(change(0, 10), "");
});

test("marks are few, round and within", () => {
  assert.deepEqual(even(0, 1, 5), [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
  assert.deepEqual(clock(0, 86400, 5), [0, 21600, 43200, 64800, 86400]);
  assert.deepEqual(logNumbers(1, 2000, 6), [1, 10, 100, 1000]);
  assert.deepEqual(logNumbers(4, 400, 5), [10, 30, 100, 300]);
  assert.deepEqual(logNumbers(0.4, 9, 3), [1, 3]);
  assert.deepEqual(logTimes(50, 100000, 6), [60, 600, 3600, 21600, 86400]);
  for (const [min, max] of [[1, 1.3], [59, 61], [0.001, 1e9]] as const)
    for (const marks of [even, clock, logNumbers, logTimes].map((f) => f(min, max, 6)))
      assert.ok(marks.length >= 1 && marks.every((m) => m >= min * 0.99 - 1e-6 * (max - min) && m <= max * 1.01), `${min} ${max} ${marks}`);
});

test("a window never leaves the whole, and a zoom keeps its point", () => {
  const window = new Window({ from: 0, to: 1000 });
  window.zoom(0.5, 0.25);
  assert.deepEqual([window.from, window.to], [125, 625]);
  window.move(10);
  assert.deepEqual([window.from, window.to], [500, 1000]);
  window.zoom(100, 0.5);
  assert.ok(window.isWhole);
  for (let i = 0; i < 100; i++) window.zoom(0.5, 0);
  assert.ok(window.length >= 0.1);
});

test("a report lacks what it lacks, and another shape is refused", () => {
  const report = readReport({ runs: [{ policy: "fifo", cdf: { jct_s: { all: { x: [1], y: [] } } }, gantt: 7 }] });
  assert.equal(report.runs[0]?.gantt, undefined);
  assert.deepEqual(report.runs[0]?.cdf, {});
  assert.throws(() => readReport({ runs: [] }), /no run/);
  assert.throws(() => readReport("@DATA@"));
});

test("who shares a GPU has half of its row while it lasts", () => {
  const span = (job: number, start: number, end: number, lane: number) => ({ gpu: 0, start, end, job, class: 0, ended: 0, lane });
  const host = span(1, 0, 30, 0);
  const guests = [span(2, 5, 10, 1), span(3, 10, 20, 1)];
  const later = span(4, 30, 40, 0);
  const pieces = piecesOf([host, ...guests, later]);
  assert.deepEqual(
    pieces.get(host)?.map((piece) => [piece.from, piece.to, piece.lane, piece.beside]),
    [
      [0, 5, undefined, undefined],
      [5, 10, 0, 2],
      [10, 20, 0, 3],
      [20, 30, undefined, undefined],
    ],
  );
  assert.deepEqual(pieces.get(guests[1]!), [{ from: 10, to: 20, lane: 1, beside: 1 }]);
  assert.equal(pieces.get(later), undefined);
});

test("what is expected of a job stays in its half, and one that is left alone has the row", () => {
  const span = (job: number, start: number, end: number, ended: number) => ({ gpu: 0, start, end, job, class: 0, ended, lane: 0 });
  const lanesOf = (spans: ReturnType<typeof span>[]): number[][] => {
    assignLanes(spans, 4);
    return spans.map(({ job, lane }) => [job, lane]);
  };
  const shared = [span(9, 0, 10, 3), span(5, 2, 10, 3), span(5, 10, 20, 4), span(9, 10, 30, 4)];
  assert.deepEqual(lanesOf(shared), [[9, 0], [5, 1], [5, 1], [9, 0]]);
  assert.deepEqual(piecesOf(shared).get(shared[3]!)?.map((piece) => piece.lane), [0, undefined]);
  const next = [span(1, 0, 10, 0), span(2, 5, 20, 0), span(3, 12, 20, 0), span(4, 20, 30, 0)];
  assert.deepEqual(lanesOf(next), [[1, 0], [2, 1], [3, 0], [4, 0]]);
});

test("a report says beside whom a job was, and what it kept where that is known", () => {
  const spans = [
    [0, 0, 30, 1, 0, 0],
    [0, 5, 10, 2, 0, 0, 1],
    [0, 10, 20, 3, 0, 0, 1],
  ];
  const report = readReport({ runs: [{ policy: "x", gantt: { from_s: 0, to_s: 30, gpus: ["n/0"], spans, pairs: [[1, 2, 5.5, 0.8, 0.456]] } }] });
  const rows = layOut(report.runs[0]!.gantt!);
  const [host, guest] = rows.byGpu[0]!;
  assert.deepEqual(besidesOf(rows, host!), ["job 2, keeps 80 % of its speed", "job 3"]);
  assert.deepEqual(besidesOf(rows, guest!), ["job 1, keeps 46 % of its speed"]);
});

test("what is narrower than a pixel is painted once, and a job beside one that stayed longer always", () => {
  assert.ok(isCovered(10.2, 10.6, [0, 1], [11, 11]));
  assert.ok(!isCovered(10.2, 10.6, [0, 1], [11, 10]));
  assert.ok(!isCovered(10, 50, [1], [90, 90])); // its host has gone on alone up to 90
});

test("rows that jobs share are tall enough for two numbers", () => {
  const span = (job: number, gpu: number, lane: number) => ({ gpu, start: 0, end: 10, job, class: 0, ended: 0, lane });
  const gpus = Array.from({ length: 64 }, (_, i) => `n/${i}`);
  const chart = { from: 0, to: 10, gpus, complete: true };
  const apart = layOut({ ...chart, spans: [span(1, 0, 0), span(2, 1, 0)] });
  const shared = layOut({ ...chart, spans: [span(1, 0, 0), span(2, 0, 1)] });
  assert.ok(apart.height < 14 && shared.height / 2 > 8, `${apart.height} ${shared.height}`);
  assert.deepEqual(shared.byGpu[0]?.map((one) => shared.shared.get(one)?.map((piece) => [piece.lane, piece.beside])), [[[0, 2]], [[1, 1]]]);
});

test("a page of what-if has its figures and their ranges", () => {
  const labels = [{ id: "jct_s.mean", label: "completion time, mean", unit: "s" }];
  const figure = { was: 100, value: 50, difference: -50, change: -0.5, change_low: -0.6, change_high: -0.4 };
  const report = readReport({
    runs: [{ policy: "fifo" }],
    what_if: {
      labels,
      trust: { jobs: 3, figures: { "jct_s.mean": { happened: 99, replayed: 100 } } },
      intervals: { block_s: 86400, blocks: 7, draws: 1000 },
      variants: [{ name: "las", jobs: 3, figures: { "jct_s.mean": figure, other: figure } }, { name: "x", figures: {} }],
    },
  });
  const study = report.whatIf;
  assert.deepEqual(study?.trust, [{ label: "completion time, mean", happened: 99, replayed: 100 }]);
  assert.match(study?.intervals ?? "", /1000 draws of the 7 days/);
  const [difference] = study?.variants[0]?.differences ?? [];
  assert.ok(difference);
  assert.equal(intervalOf(difference), "−60 % to −40 %");
  assert.equal(intervalOf({ ...difference, low: NaN }), "");
  assert.equal(study?.variants[1]?.differences.length, 0);
  assert.equal(readReport({ runs: [{ policy: "fifo" }] }).whatIf, undefined);
});
