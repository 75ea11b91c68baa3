// example.mjs - a page with made-up data, to look at while working on it:
//     node dev/example.mjs REPORT.html OUT.html [POLICIES] [JOBS]
//
// The data come from a toy scheduler below, so that the shapes are those of real runs.  The
// names are chosen to hurt: one holds markup.

import { readFileSync, writeFileSync } from "node:fs";

const NODES = 8;
const PER_NODE = 8;
const GPUS = NODES * PER_NODE;

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function makeJobs(count, seed) {
  const next = random(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  let at = 0;
  return Array.from({ length: count }, (_, id) => {
    at += -Math.log(1 - next()) * 330;
    const te = next() < 0.3;
    const gpus = te ? [1, 1, 2][Math.floor(next() * 3)] : [1, 1, 2, 4, 8, 16][Math.floor(next() * 6)];
    const work = Math.max(5, Math.exp((te ? 5.2 : 8.2) + (te ? 0.8 : 1.3) * normal()));
    return { id, te, gpus, work, left: work, submit: at, held: 0, seats: null, since: 0, end: 0 };
  });
}

const POLICIES = [
  ["fifo", "first come, first served", (job) => job.submit, { strict: true }],
  ["srtf", "shortest remaining time first", (job) => job.left, { preempt: true }],
  ["las", "least attained service first", (job) => Math.floor(Math.log2(1 + (job.held * job.gpus) / 1800)), { preempt: true }],
  ["sjf", "shortest first, never preempting", (job) => job.work, {}],
  ["fifo-backfill", "first come, holes filled", (job) => job.submit, {}],
  ["<script>alert(1)</script>", "a name with <b>markup</b> & \"quotes\"", (job) => job.gpus, {}],
];

/** Rounds of a minute: order all jobs, seat them while there is room. */
function simulate(jobs, key, options) {
  const seats = new Array(GPUS).fill(null);
  const spans = [];
  const series = { t_s: [], gpus_held: [], jobs_waiting: [], jobs_running: [] };
  const live = [];
  let coming = 0;
  const leave = (job, now, how) => {
    for (const gpu of job.seats) {
      seats[gpu] = null;
      spans.push([gpu, job.since, now, job.id, job.te ? 1 : 0, how]);
    }
    job.seats = null;
  };
  for (let now = 0; coming < jobs.length || live.length > 0; now += 60) {
    for (const job of live.filter((j) => j.seats)) {
      job.held += 60;
      job.left -= 60;
      if (job.left > 0) continue;
      job.end = now + job.left;
      leave(job, job.end, 0);
      live.splice(live.indexOf(job), 1);
    }
    while (coming < jobs.length && jobs[coming].submit <= now) live.push(jobs[coming++]);
    live.sort((a, b) => key(a) - key(b) || a.id - b.id);
    let room = options.preempt ? GPUS : seats.filter((s) => s === null).length;
    const chosen = [];
    for (const job of live) {
      if (!options.preempt && job.seats) continue;
      if (job.gpus <= room) {
        room -= job.gpus;
        chosen.push(job);
      } else if (options.strict) break;
    }
    if (options.preempt) for (const job of live) if (job.seats && !chosen.includes(job)) leave(job, now, job.id % 37 === 0 ? 2 : 1);
    for (const job of chosen) {
      if (job.seats) continue;
      job.seats = [];
      job.since = now;
      for (let gpu = 0; gpu < GPUS && job.seats.length < job.gpus; gpu++)
        if (seats[gpu] === null) (seats[gpu] = job), job.seats.push(gpu);
    }
    series.t_s.push(now);
    series.gpus_held.push(seats.filter((s) => s !== null).length);
    series.jobs_waiting.push(live.filter((j) => !j.seats).length);
    series.jobs_running.push(live.filter((j) => j.seats).length);
  }
  return { spans, series };
}

/** What the preemptions would have cost with pauses of a minute or so, and what was expected. */
function ledgerOf(run, seed) {
  const BINS = 120;
  const next = random(seed + 99);
  const end = run.series.t_s[run.series.t_s.length - 1];
  const zeros = () => new Array(BINS).fill(0);
  const ledger = { t_s: zeros().map((_, i) => (i * end) / BINS), preemptions: zeros(), predicted_gpu_s: zeros(), actual_gpu_s: zeros() };
  for (const [, , to, , , how] of run.spans) {
    if (how !== 1) continue;
    const bin = Math.min(BINS - 1, Math.floor((to * BINS) / end));
    ledger.preemptions[bin]++;
    ledger.predicted_gpu_s[bin] += 60;
    ledger.actual_gpu_s[bin] += 40 + 60 * next();
  }
  return ledger;
}

function cdf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const points = Math.min(200, sorted.length);
  const x = [];
  const y = [];
  for (let i = 1; i <= points; i++) {
    const at = Math.ceil((i * sorted.length) / points);
    x.push(sorted[at - 1]);
    y.push(at / sorted.length);
  }
  return { x, y };
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(q * values.length) - 1)];

const sum = (values) => values.reduce((a, b) => a + b, 0);

function ledgerFigures({ preemptions, predicted_gpu_s, actual_gpu_s }) {
  return [
    ["ledger.preemptions", "preemptions in the ledger", "count", "none", sum(preemptions)],
    ["ledger.predicted_cost_gpu_s", "predicted cost of preemptions", "gpu_s", "none", sum(predicted_gpu_s)],
    ["ledger.actual_cost_gpu_s", "measured cost of preemptions", "gpu_s", "less", sum(actual_gpu_s)],
    ["ledger.wait_saved_s", "waiting spared by preemptions", "s", "more", sum(preemptions) * 900],
  ];
}

function measure(jobs, run) {
  const jct = (list) => list.map((job) => job.end - job.submit);
  const slow = (list) => list.map((job) => Math.max(1, (job.end - job.submit) / job.work));
  const wait = (list) => list.map((job) => Math.max(0, job.end - job.submit - job.work));
  const kinds = { all: jobs, te: jobs.filter((job) => job.te), be: jobs.filter((job) => !job.te) };
  const makespan = Math.max(...jobs.map((job) => job.end));
  const figures = [
    ["jct_s.mean", "mean completion time", "s", "less", mean(jct(jobs))],
    ["jct_s.p50", "median completion time", "s", "less", quantile(jct(jobs), 0.5)],
    ["jct_s.p95", "95th percentile of completion time", "s", "less", quantile(jct(jobs), 0.95)],
    ["wait_s.mean", "mean waiting time", "s", "less", mean(wait(jobs))],
    ["slowdown.te.p95", "95th percentile of slowdown, trial", "x", "less", quantile(slow(kinds.te), 0.95)],
    ["slowdown.be.p95", "95th percentile of slowdown, best effort", "x", "less", quantile(slow(kinds.be), 0.95)],
    ["makespan_s", "makespan", "s", "less", makespan],
    ["gpu_utilization", "GPU utilisation", "fraction", "more", mean(run.series.gpus_held) / GPUS],
    ["preemptions", "preemptions", "count", "none", run.spans.filter((span) => span[5] === 1).length],
    ["overhead_gpu_s.pause", "GPU time spent pausing", "gpu_s", "less", run.spans.filter((span) => span[5] === 1).length * 20],
    ...ledgerFigures(run.ledger),
    ["sim.decide_us.p99", "99th percentile of a decision", "us", "less", 3 + Math.random()],
  ];
  const by = (of) => Object.fromEntries(Object.entries(kinds).map(([kind, list]) => [kind, cdf(of(list))]));
  return { figures, cdf: { jct_s: by(jct), slowdown: by(slow), wait_s: by(wait) } };
}

function compare(index, count) {
  const [name, brief, key, options] = POLICIES[index % POLICIES.length];
  const runs = [1, 2, 3].map((seed) => {
    const jobs = makeJobs(count, seed);
    const run = simulate(jobs, key, options);
    run.ledger = ledgerOf(run, seed);
    return { ...measure(jobs, run), run };
  });
  const [first] = runs;
  const figures = first.figures.map(([id, label, unit, better], i) => {
    const values = runs.map((run) => run.figures[i][4]);
    const middle = mean(values);
    const half = (4.3 * Math.sqrt(mean(values.map((v) => (v - middle) ** 2)) * 1.5)) / Math.sqrt(3);
    return { id, label, unit, better, mean: middle, low: Math.max(0, middle - half), high: middle + half, n: 3 };
  });
  const spans = first.run.spans.slice(0, 20000);
  const to = spans.reduce((last, span) => Math.max(last, span[2]), 0);
  const gpus = Array.from({ length: GPUS }, (_, i) => `n${Math.floor(i / PER_NODE)}/${i % PER_NODE}`);
  return {
    policy: name + (index >= POLICIES.length ? `-${index}` : ""),
    brief,
    figures,
    cdf: first.cdf,
    series: first.run.series,
    ledger: first.run.ledger,
    gantt: { from_s: 0, to_s: to, gpus, spans, complete: spans.length === first.run.spans.length },
  };
}

const [page, out, policies = "3", count = "800"] = process.argv.slice(2);
const runs = Array.from({ length: Number(policies) }, (_, i) => compare(i, Number(count)));
const data = {
  title: `${runs.map((run) => run.policy).slice(0, 3).join(", ")} on synthetic`,
  version: "0.0.0-example",
  cluster: { name: `${NODES}xv100:${PER_NODE}`, nodes: NODES, gpus: GPUS, types: [{ name: "v100", gpus: GPUS }] },
  workload: { name: `synthetic:jobs=${count},load=0.9`, jobs: Number(count) },
  seeds: [1, 2, 3],
  command: `berth compare --cluster ${NODES}xv100:${PER_NODE} --workload synthetic:jobs=${count},load=0.9 ${runs.map((run) => `--policy ${run.policy}`).join(" ")} --seeds 3 --report berth-report.html`,
  runs,
};
const json = JSON.stringify(data).replaceAll("<", "\\u003c");
writeFileSync(out, readFileSync(page, "utf8").replace("@DATA@", () => json));
