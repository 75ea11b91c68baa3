// What the page of a reproduced study says, and the ledger's sums; run by test/run.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readReport } from "../src/data";
import { numberAxis } from "../src/parts/axes";
import { mark, wrap } from "../src/parts/format";
import { seedsInWords } from "../src/parts/frame";
import { cumulative, preempts, priceOf, sparedPerHour } from "../src/parts/price";
import { inUnit, tally } from "../src/parts/results";
import { labelOf, places, subject, withSpread } from "../src/parts/series";
import { apart } from "../src/parts/ticks";
import { inOrder, inWords, shadeOf, worstOf } from "../src/parts/regret";
import { readReproduction, type Row } from "../src/reproduction";

function shown(unit: string, ...values: number[]): string[] {
  const { texts, suffix } = inUnit(unit, values);
  return texts.map((text) => text + suffix);
}

test("a row's numbers are alike, and changes have a sign", () => {
  assert.deepEqual(shown("change", -0.966, 0.18, 0.00001, 12.4), ["−96.6 %", "+18.0 %", "±0.0 %", "+1240 %"]);
  assert.deepEqual(shown("ratio", 1.64, 1.7), ["1.64×", "1.70×"]);
  assert.deepEqual(shown("share", 0.057, 0.0613), ["5.70 %", "6.13 %"]);
  assert.deepEqual(shown("s", 7200, 5400), ["2.00 h", "1.50 h"]);
  assert.deepEqual(shown("h", 9.82, 10.6), ["9.8 h", "10.6 h"]);
  assert.deepEqual(shown("", 18231, 17890), ["18\u202f231", "17\u202f890"]);
  assert.deepEqual(shown("", 3, 3.25), ["3.00", "3.25"]);
});

test("a study lacks what it lacks, and another shape is refused", () => {
  const study = readReproduction({
    rows: [
      { id: "a", measured: 1, verdict: "splendid", fidelity: "perfect", spread: [2], price: { what: "nothing" } },
      { id: "b", published: 0, measured: 0, fidelity: "tuned", compared_seed: 0, price: { what: "time", unit: "s", measured: 3 } },
    ],
    charts: [{ kind: "pie" }, { kind: "lines", series: [{ name: "p", x: [3, 1, 2], y: [30, 10, null] }] }],
    setup: [{ what: "moonlight", origin: "elsewhere" }],
  });
  const [a, b] = study.rows;
  assert.deepEqual([a?.verdict, a?.spread, a?.published, b?.published], [undefined, undefined, undefined, 0]);
  assert.deepEqual([a?.fidelity, a?.price, a?.comparedSeed, a?.setting], [undefined, undefined, undefined, ""]);
  assert.deepEqual([b?.fidelity, b?.price, b?.comparedSeed], ["tuned", { what: "time", unit: "s", measured: 3 }, 0]);
  assert.equal(study.setup[0]?.origin, undefined);
  assert.equal(study.charts.length, 1);
  const [line] = study.charts[0]?.series ?? [];
  assert.deepEqual(line && "x" in line && [line.x, line.y, line.low], [[1, 3], [10, 30], [10, 30]]);
  assert.throws(() => readReproduction({ kind: "reproduce" }), /no result/);
});

test("regret is read by study, and what did not run is a hole", () => {
  const series = [{ name: "berth", x: [0, 1, 2], y: [0.01, -0.12, 0.2] }, { name: "slaq", x: [2, 7], y: [3.5, 1] }, { name: "las", x: [0, 1, 2], y: [0.5, 0.5, 0.5] }];
  const { regret, charts } = readReproduction({ rows: [{ id: "a", measured: 1 }], charts: [{ kind: "regret", groups: ["xion", "gavel", "lab"], series }] });
  assert.equal(charts.length, 0);
  assert.deepEqual(regret?.policies[1], { name: "slaq", regrets: [NaN, NaN, 3.5] });
  assert.deepEqual(inOrder(regret?.policies ?? []).map(({ name }) => name), ["berth", "las", "slaq"]);
  assert.equal(worstOf([NaN, -0.1, 0.2]), 0.2);
  assert.deepEqual([-0.1, 0.02, 0.05, 0.2, 0.9, 4].map(shadeOf), [0, 0, 1, 2, 3, 4]);
  assert.deepEqual([-0.117, 0.001, 0.034, 1.25, 40, NaN].map(inWords), ["−12 %", "0 %", "+3 %", "×2.3", "×41", ""]);
});

test("verdicts are counted among what was published", () => {
  const verdicts = ["reproduced", "reproduced", "differs", "worse", "inconclusive", "differs", "no figure published"];
  const rows = verdicts.map((verdict) => ({ verdict }) as Row);
  assert.equal(tally(rows), "Of 6 published figures: 2 reproduced, 1 inconclusive, 1 worse, 2 differ.");
  assert.equal(tally(rows.slice(6)), "");
});

test("a name has one colour, and another than its neighbours", () => {
  const found = places([["a", "b", "c"], ["d", "a (published)", "a"]], 3);
  assert.deepEqual([...found], [["a", 0], ["b", 1], ["c", 2], ["d", 4]]);
  assert.equal(subject("xion (published)"), "xion");
  assert.equal(subject("published"), "published");
  const series = { name: "xion", y: [1.5, NaN], low: [1.25, NaN], high: [2, NaN], published: true };
  assert.equal(labelOf(series), "xion, published");
  assert.equal(withSpread(series, 0), "1.50 (1.25 … 2)");
  assert.equal(withSpread(series, 1), "–");
});

test("axes hold their values, logarithmic only where those have logarithms", () => {
  const axis = (values: number[], log: boolean, zero: boolean): ReturnType<typeof numberAxis> =>
    numberAxis({ label: "", values, log, zero });
  assert.deepEqual(axis([10, 50], false, true).range, [0, 53]);
  assert.ok((axis([90, 100], false, false).range[0] ?? 0) > 80);
  assert.deepEqual(axis([-96, 4], false, true).range, [-102, 10]);
  assert.equal(axis([0, 5], true, false).log, undefined);
  assert.equal(axis([0, 5], true, true).log, true);
  assert.equal(axis([-1, 5], true, true).log, undefined);
  assert.deepEqual(axis([NaN], false, true).range, [0, 1.06]);
  assert.deepEqual([0.5, 50, 12000, 0.6000000000000001, -20].map(mark), ["0.5", "50", "12\u202f000", "0.6", "−20"]);
});

test("names are wrapped, kept apart, and neighbours among seeds joined", () => {
  assert.equal(wrap("best effort p95", 8, 3), "best\neffort\np95");
  assert.equal(wrap("best effort p95", 20, 3), "best effort p95");
  assert.equal(wrap("unpronounceable", 6, 3), "unpro…");
  assert.deepEqual(apart([50, 52, 10], 10, 0, 100), [42, 52, 10]);
  assert.deepEqual(apart([99, 99, 99], 10, 0, 100).sort(), [79, 89, 99]);
  assert.equal(seedsInWords([1, 2, 3]), "1, 2, 3");
  assert.equal(seedsInWords([1, 2, 3, 4, 9]), "1–4, 9");
});

test("the ledger adds up, and its figures go before its sums", () => {
  assert.deepEqual(cumulative([0, 10, 20], [1, 0, 2]), { x: [0, 10, 20, 30], y: [0, 1, 1, 3] });
  const ledger = { t_s: [0, 60], preemptions: [1, 2], predicted_gpu_s: [30, 60], actual_gpu_s: [40, 80] };
  const figures = [{ id: "ledger.actual_cost_gpu_s", mean: 7200 }, { id: "ledger.wait_saved_s", mean: 3600 }];
  const [run, idle] = readReport({ runs: [{ policy: "srtf", ledger, figures }, { policy: "fifo" }] }).runs;
  assert.ok(run && idle && preempts(run) && !preempts(idle));
  assert.deepEqual(priceOf(run), { preemptions: 3, predicted: 90, measured: 7200, spared: 3600 });
  assert.equal(sparedPerHour(priceOf(run)), 1800);
  assert.ok(Number.isNaN(sparedPerHour(priceOf(idle))));
});
