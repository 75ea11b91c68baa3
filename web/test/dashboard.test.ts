// What events mean to the dashboard, and how it reads what it is given; run by test/run.mjs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { plainText } from "../src/parts/ansi";
import { gpuTime, span } from "../src/parts/format";
import { Lines } from "../src/parts/sse";
import { besideWords, sharingWords } from "../src/parts/sharing";
import type { Event, Job, Snapshot, Span } from "../src/schema";
import { begin, count, fold, holdersOf, learn, leftNow, stepNow, type State } from "../src/state";
import { readStudy } from "../src/study_file";

const SNAPSHOT: Snapshot = {
  seq: 10,
  now: 1000,
  me: { all: true },
  server: { policy: "fifo" },
  nodes: [
    { name: "a", type: "v100", gpus: 4, up: true, held: [] },
    { name: "b", type: "p100", gpus: 2, up: true, held: [{ gpu: 1, jobs: [], foreign: true }] },
  ],
  jobs: [],
  ended: [],
  spans: [],
  entries: [],
};

function world(): { state: State; happens(kind: string, more?: Partial<Event>): void } {
  const state = begin(structuredClone(SNAPSHOT));
  let seq = 10;
  const happens = (kind: string, more: Partial<Event> = {}): void => {
    seq++;
    fold(state, { seq, at: 1000 + seq, kind, ...more });
  };
  return { state, happens };
}

function startJob({ happens }: ReturnType<typeof world>, job = 1): void {
  happens("submitted", { job, class: "be", gpus: 2 });
  happens("placed", { job, attempt: 0, seats: [{ node: 0, gpus: [1, 2] }] });
  happens("started", { job, attempt: 0 });
}

test("a job comes, is placed, runs and ends", () => {
  const scene = world();
  startJob(scene);
  const { state, happens } = scene;
  assert.equal(state.jobs.get(1)?.state, "RUNNING");
  assert.deepEqual(state.jobs.get(1)?.placement, [{ node: "a", type: "v100", gpus: [1, 2] }]);
  assert.deepEqual(holdersOf(state), [[[], [1], [1], []], [[], []]]);
  assert.ok(state.ask.has(1));
  happens("finished", { job: 1, exit_code: 0 });
  assert.equal(state.jobs.size, 0);
  assert.deepEqual([state.ended[0]?.state, state.ended[0]?.exit_code], ["COMPLETED", 0]);
  assert.deepEqual([state.occupancy.closed[0]?.start, state.occupancy.closed[0]?.end, state.occupancy.closed[0]?.how], [1013, 1014, "finished"]);
  assert.equal(count(state).gpusHeld, 0);
});

test("who is told to leave waits again, and its price is asked for; who is cancelled is gone", () => {
  const scene = world();
  startJob(scene);
  scene.happens("recalled", { job: 1, rule: "trial", for: 2 });
  assert.equal(scene.state.jobs.get(1)?.state, "STOPPING");
  assert.ok(scene.state.askLedger);
  scene.happens("stopped", { job: 1 });
  assert.deepEqual([scene.state.jobs.get(1)?.state, scene.state.jobs.get(1)?.preemptions], ["PENDING", 1]);
  assert.equal(scene.state.occupancy.closed[0]?.how, "preempted");
  startJob(scene, 2);
  scene.happens("cancelled", { job: 2 });
  scene.happens("stopped", { job: 2 });
  assert.deepEqual([scene.state.ended[0]?.state, scene.state.occupancy.closed[1]?.how], ["CANCELLED", "cancelled"]);
});

test("two jobs on the same GPUs know each other, until one leaves", () => {
  const scene = world();
  startJob(scene);
  startJob(scene, 2);
  const { state, happens } = scene;
  const [one, other] = [state.jobs.get(1)!, state.jobs.get(2)!];
  assert.deepEqual([one.beside, other.beside], [2, 1]);
  assert.deepEqual(holdersOf(state)[0], [[], [1, 2], [1, 2], []]);
  assert.deepEqual([count(state).gpusHeld, count(state).pairs], [2, 1]);
  assert.ok(state.ask.has(1) && state.ask.has(2) && state.askLedger);
  learn(state, [{ ...one, beside: 2, kept: 0.8 }], state.seq, 1);
  assert.equal(besideWords(state.jobs.get(1)!), "job 2, keeps 80 % of its speed");

  happens("finished", { job: 2 });
  assert.deepEqual([state.jobs.get(1)?.beside, state.jobs.get(1)?.kept, state.ended[0]?.beside], [undefined, undefined, undefined]);
  startJob(scene, 3);
  assert.equal(state.jobs.get(1)?.beside, 3);
  happens("placed", { job: 3, seats: [{ node: 0, gpus: [3] }] });
  happens("resized", { job: 3 });
  assert.deepEqual([state.jobs.get(1)?.beside, state.jobs.get(3)?.beside], [undefined, undefined]);
});

test("a snapshot brings the jobs that share, and what all pairs brought", () => {
  const job = (id: number, beside: number): Job => ({ id, state: "RUNNING", class: "be", gpus: 1, submit: 1, beside, kept: 0.7 });
  const span = (id: number): Span => ({ job: id, attempt: 0, class: "be", node: 0, gpus: [0], start: 900 + id });
  const totals = { pairs: 1, running: 1, shared_gpu_s: 60, gained_gpu_s: 24, lost_gpu_s: 0 };
  const state = begin({ ...structuredClone(SNAPSHOT), jobs: [job(1, 2), job(2, 1)], spans: [span(1), span(2)], sharing: totals });
  assert.equal(state.sharing?.pairs, 1);
  assert.match(sharingWords(totals), /^1 pair of jobs has shared GPUs, 1 of them now, .* gained 24 GPU s;/);
  fold(state, { seq: 11, at: 1011, kind: "stopped", job: 1 });
  assert.equal(state.jobs.get(2)?.beside, undefined);
});

test("an event that was seen, of a job that is not known, or of a new kind changes nothing", () => {
  const { state, happens } = world();
  fold(state, { seq: 10, at: 1, kind: "submitted", job: 5 });
  happens("finished", { job: 77 });
  happens("transmogrified", { job: 77 });
  happens("foreign", { node: 99, gpus: [1] });
  assert.deepEqual([state.jobs.size, state.ended.length, state.foreign.size], [0, 0, 1]);
});

test("others on a GPU, and nodes that are down", () => {
  const { state, happens } = world();
  assert.equal(count(state).gpusForeign, 1);
  happens("foreign", { node: 1, gpus: [] });
  happens("node_down", { node: 0 });
  assert.equal(count(state).gpusForeign, 0);
  assert.equal(state.nodes[0]?.up, false);
});

test("progress goes on between reports, and not beyond the end", () => {
  const scene = world();
  startJob(scene);
  const job = scene.state.jobs.get(1)!;
  job.progress = { step: 0, steps: 100 };
  scene.happens("progress", { job: 1, step: 50, steps_per_s: 5, loss: 0.5 });
  assert.equal(job.seen, 1014);
  assert.equal(stepNow(job, 1016), 60);
  assert.equal(leftNow(job, 1016), 8);
  assert.equal(stepNow(job, 9999), 100);
});

test("an answer that is older than an event does not undo it", () => {
  const scene = world();
  scene.happens("submitted", { job: 1, class: "be", gpus: 2 });
  const asked = scene.state.seq;
  scene.happens("placed", { job: 1, seats: [{ node: 0, gpus: [0, 1] }] });
  scene.happens("started", { job: 1, attempt: 0 });
  scene.state.ask.clear();
  learn(scene.state, [{ id: 1, name: "x", state: "PENDING", class: "be", gpus: 2, submit: 1 }], asked, 1);
  assert.deepEqual([scene.state.jobs.get(1)?.state, scene.state.jobs.get(1)?.name], ["RUNNING", "x"]);
  assert.ok(scene.state.ask.has(1));
});

test("a stream is taken apart however it is cut", () => {
  const text = "retry: 2000\n\nid: 1\ndata: {\"seq\":1}\n\n:\n\nevent: lagged\ndata: {\"after\":1}\n\nid: 2\ndata: {\"s";
  for (let size = 1; size < text.length; size++) {
    const got: string[] = [];
    const lines = new Lines((name, data) => got.push(`${name}|${data}`));
    for (let at = 0; at < text.length; at += size) lines.take(text.slice(at, at + size));
    assert.deepEqual(got, ['|{"seq":1}', 'lagged|{"after":1}']);
  }
});

test("output is text: no colours, no titles, no movements, markup as it is", () => {
  assert.equal(plainText("\u001b[1;31mred\u001b[0m <b>&amp;</b>"), "red <b>&amp;</b>");
  assert.equal(plainText("\u001b]0;title\u0007a\u001b]8;;http://x\u001b\\b"), "ab");
  assert.equal(plainText("10 %\r20 %\r\nnext\r\n"), "20 %\nnext\n");
  assert.equal(plainText("a\u0000b\u0008\u001b(Bc\u009b2Jd\ttab"), "abcd\ttab");
  assert.equal(plainText("\u001b[2J\u001b[H\u001b[38;5;196mx\u001b[?25l"), "x");
});

test("times and prices are short", () => {
  assert.deepEqual([0, 5, 99, 100, 4000, 7200, 200000].map(span), ["0 s", "5 s", "99 s", "2 min", "67 min", "2.0 h", "2.3 d"]);
  assert.deepEqual([0, 0.25, 3, 89, 90, 5400].map(gpuTime), ["0 GPU s", "0.3 GPU s", "3 GPU s", "89 GPU s", "1.5 GPU min", "1.5 GPU h"]);
});

test("a study is a report's page, a comparison or reproductions; nothing else", () => {
  const figures = { "jct_s.mean": { mean: 5, low: 4, high: 6, n: 2 }, gpu_utilization: { mean: 0.5, low: 0.5, high: 0.5, n: 2 } };
  const compared = readStudy(JSON.stringify({ cluster: "c", workload: "w", seeds: [1, 2], policies: [{ policy: "fifo", figures }] }));
  assert.ok(compared.kind === "compare");
  assert.deepEqual(compared.report.runs[0]?.figures.map(({ unit, better, mean }) => [unit, better, mean]), [["s", "less", 5], ["fraction", "more", 0.5]]);
  const line = JSON.stringify({ paper: "x", rows: [{ id: "a", measured: 1 }] });
  const reproduced = readStudy(`${line}\n${line}\n`);
  assert.ok(reproduced.kind === "reproduce" && reproduced.studies.length === 2);
  const page = readStudy(`<html><script type="application/json" id="data">${JSON.stringify({ runs: [{ policy: "las" }] })}</script>`);
  assert.ok(page.kind === "compare" && page.report.runs[0]?.policy === "las");
  for (const wrong of ["", "{}", "[1]", "<html></html>", '{"kind":"sim","runs":[]}', "{\n{"]) assert.throws(() => readStudy(wrong), /neither|no comparison|no run/);
});

test("the API's types are what docs/api/openapi.yaml says", () => {
  execFileSync(process.execPath, [process.env["BERTH_WEB"] + "/types.mjs", "--check"]);
});
