// scene.mjs - a made-up cluster on a made-up afternoon, for pictures: the same for the same seed.
//
// A small queue is played through (first come, first served; trials push best-effort jobs out),
// and what came of it is told in the words of the API.

const NOW = Date.UTC(2026, 0, 15, 14, 30) / 1000;
const NODES = [["gpu-a1", "a100"], ["gpu-a2", "a100"], ["gpu-v1", "v100"], ["gpu-v2", "v100"]];
const NAMES = ["resnet50-imagenet", "bert-large-wiki", "vit-b16", "gpt-small-c4", "diffusion-lr3e4", "whisper-ft", "dlrm-criteo", "unet-seg", "mae-pretrain", "t5-base"];
const TRIALS = ["debug-nan", "try-new-loss", "profile-io", "overfit-10", "check-ckpt"];
const PEOPLE = [["ada", "vision"], ["grace", "speech"], ["alan", "language"], ["emmy", "vision"]];

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const round = (value) => Math.round(value * 1e6) / 1e6;

export function makeScene(seed = 19) {
  const draw = random(seed);
  const pick = (list) => list[Math.floor(draw() * list.length)];
  const free = NODES.map(() => Array.from({ length: 8 }, () => true));
  const from = NOW - 3600;
  const jobs = [], spans = [], entries = [], series = [];
  const waiting = [], running = [];

  function arrive(at) {
    const trial = draw() < 0.25;
    const [user, entity] = pick(PEOPLE);
    const length = trial ? 60 + 200 * draw() : 500 * Math.exp(1.6 * draw());
    jobs.push({ id: jobs.length + 1, name: pick(trial ? TRIALS : NAMES), user, entity, class: trial ? "te" : "be", gpus: trial ? pick([1, 1, 2]) : pick([1, 2, 4, 4, 8, 8]), submit: at, left: length, length, waited: 0, preemptions: 0, attempt: -1 });
    waiting.push(jobs[jobs.length - 1]);
  }

  function room(gpus) {
    const counts = free.map((node) => node.filter(Boolean).length);
    const fitting = counts.map((count, i) => [count, i]).filter(([count]) => count >= gpus).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return fitting[0]?.[1];
  }

  function begin(job, node, at) {
    const gpus = free[node].flatMap((is, gpu) => (is ? [gpu] : [])).slice(0, job.gpus);
    for (const gpu of gpus) free[node][gpu] = false;
    Object.assign(job, { node, held: gpus, since: at, start: job.start ?? at, attempt: job.attempt + 1, state: "RUNNING" });
    running.push(job);
    waiting.splice(waiting.indexOf(job), 1);
  }

  function end(job, at, how) {
    for (const gpu of job.held) free[job.node][gpu] = true;
    spans.push({ job: job.id, attempt: job.attempt, class: job.class, node: job.node, gpus: job.held, start: round(job.since), end: round(at), how });
    job.left -= at - job.since;
    running.splice(running.indexOf(job), 1);
  }

  /** A trial pushes out who has the most GPUs to give and the least to lose. */
  function pushOut(trial, at) {
    const victim = running.filter((job) => job.class === "be" && job.gpus >= trial.gpus && at - job.since > 120).sort((a, b) => a.gpus - b.gpus || b.since - a.since)[0];
    if (!victim) return;
    end(victim, at, "preempted");
    victim.preemptions++;
    victim.state = "PENDING";
    waiting.unshift(victim);
    const predicted = victim.gpus * (8 + 30 * draw());
    const parts = { pause_gpu_s: predicted * 0.2, load_gpu_s: predicted * (0.3 + 0.3 * draw()), redo_gpu_s: predicted * 0.6 * draw() };
    entries.unshift({ at, victim: victim.id, for: trial.id, rule: "trial", gpus: victim.gpus, predicted_cost_gpu_s: predicted, actual_cost_gpu_s: parts.pause_gpu_s + parts.load_gpu_s + parts.redo_gpu_s, ...parts, wait_saved_s: 60 + 500 * draw(), open: false });
    begin(trial, victim.node, at);
  }

  for (let at = from; at < NOW; at += 5) {
    if (draw() < 0.085) arrive(at);
    for (const job of [...running])
      if (at - job.since >= job.left) {
        end(job, at, draw() < 0.06 ? "failed" : "finished");
        Object.assign(job, { state: spans[spans.length - 1].how === "failed" ? "FAILED" : "COMPLETED", end: at, exit_code: spans[spans.length - 1].how === "failed" ? 1 : 0 });
      }
    for (const job of [...waiting].sort((a, b) => (a.class < b.class ? 1 : -1) * (a.class === b.class ? 0 : 1) || a.submit - b.submit)) {
      const node = room(job.gpus);
      if (node !== undefined) begin(job, node, at);
      else if (job.class === "te") pushOut(job, at);
    }
    for (const job of waiting) job.waited += 5;
    if (Math.round(at - from) % 30 === 0) series.push(sample(at));
  }

  function sample(at) {
    const held = free.flat().filter((is) => !is).length;
    const by = (entity) => running.filter((job) => job.entity === entity).reduce((sum, job) => sum + job.gpus, 0);
    const want = (entity) => by(entity) + waiting.filter((job) => job.entity === entity).reduce((sum, job) => sum + job.gpus, 0);
    return { at, held, waiting: waiting.length, short: waiting.filter((job, i) => i < 3 || job.gpus > 2).length, got: ["vision", "speech", "language"].map(by), want: ["vision", "speech", "language"].map(want), running: running.length };
  }

  for (const job of running) spans.push({ job: job.id, attempt: job.attempt, class: job.class, node: job.node, gpus: job.held, start: round(job.since) });
  return { NOW, NODES, jobs, running, waiting, spans, entries, series, free };
}

const HELD = { start: 0.79, end: 0.82 };

/** Wider, the further away. */
function expected(scene, after, target, job) {
  const basis = job.class === "te" ? ["user", 14] : ["name", 20 + (job.id % 60)];
  return { p10: scene.NOW + 0.6 * after, p50: scene.NOW + after, p90: scene.NOW + 1.7 * after, horizon: scene.NOW + 4 * 86400, made: scene.NOW - 8, basis: basis[0], basis_jobs: basis[1], policy: "fitgpp", method: "played", coverage_80: HELD[target], coverage_n: 200 + job.id };
}

/** A job that runs goes on as long as it does; one that waits takes the place of the next that ends. */
function forecastOf(scene, job) {
  const left = ({ left, since }) => Math.max(30, left - (scene.NOW - since));
  if (job.end !== undefined) return {};
  if (scene.running.includes(job)) return { expected_end: expected(scene, left(job), "end", job) };
  const ends = scene.running.map(left).sort((a, b) => a - b);
  const start = ends[Math.min(ends.length - 1, 2 * scene.waiting.indexOf(job) + 1)];
  return { expected_start: expected(scene, start, "start", job), expected_end: expected(scene, start + job.left, "end", job) };
}

/** How well forecasts held. */
export function forecastWords() {
  const kind = (target, n, coverage_80, median_abs_error_s, loss_ratio) => ({ policy: "fitgpp", target, shown: "played", n, coverage_80, median_abs_error_s, loss_ratio });
  return { policy: "fitgpp", jobs: [], calibration: { n: 232, coverage_80: HELD.start, median_abs_error_s: 214, days: 14, kinds: [kind("start", 232, HELD.start, 214, 0.58), kind("end", 301, HELD.end, 388, 0.71)] } };
}

function jobWords(scene, job) {
  const seated = scene.running.includes(job);
  const rate = 2 + (job.id % 7);
  const steps = Math.round(job.length * rate);
  const done = seated ? job.length - job.left + (scene.NOW - job.since) : job.length - Math.max(0, job.left);
  const needs = `needs ${job.gpus} GPU${job.gpus === 1 ? "" : "s"}, ${Math.min(job.gpus - 1, 1)} ${job.gpus === 2 ? "is" : "are"} free`;
  return {
    id: job.id, name: job.name, user: job.user, entity: job.entity, class: job.class, gpus: job.gpus, submit: job.submit, preemptions: job.preemptions,
    state: job.state ?? "PENDING", waited_s: job.waited, served_gpu_s: done * job.gpus,
    ...(job.start === undefined ? {} : { start: job.start, attempt: job.attempt }),
    ...(job.end === undefined ? {} : { end: job.end, exit_code: job.exit_code }),
    ...(seated ? { placement: [{ node: scene.NODES[job.node][0], type: scene.NODES[job.node][1], gpus: job.held }] } : {}),
    ...(seated || job.end !== undefined ? {} : { reason: needs }),
    ...forecastOf(scene, job),
    ...(job.class === "be" ? { progress: { step: Math.min(steps, done * rate), steps, ...(seated ? { steps_per_s: rate, eta_s: Math.max(0, steps - done * rate) / rate } : {}), loss: 0.3 + 2 / (1 + (done * rate) / 900) } } : {}),
  };
}

export function snapshotOf(scene) {
  const words = (job) => jobWords(scene, job);
  const held = scene.free.map((node) => node.flatMap((is, gpu) => (is ? [] : [{ gpu, jobs: [] }])));
  return {
    seq: 1, now: scene.NOW, me: { user: "ada", all: true },
    server: { version: "0.1.0", policy: "fitgpp,worth=xion", executor: "local" },
    nodes: scene.NODES.map(([name, type], i) => ({ name, type, gpus: 8, up: true, busy: scene.free[i].map((is, gpu) => (is ? 0 : 0.35 + 0.6 * Math.abs(Math.sin(7 * i + gpu)))), held: i === 3 ? [...held[i], { gpu: 7, jobs: [], foreign: scene.free[3][7] }] : held[i] })),
    jobs: scene.jobs.filter((job) => job.end === undefined).map(words),
    ended: scene.jobs.filter((job) => job.end !== undefined).map(words).reverse(),
    spans: scene.spans, entries: scene.entries,
  };
}

export function trendsOf({ series }) {
  const column = (of) => series.map(of);
  const due = (wants) => {
    const share = 32 / Math.max(1, wants.filter((want) => want > 0).length);
    return wants.map((want) => Math.min(want, share));
  };
  return {
    t: column(({ at }) => at), gpus: column(() => 32), held: column(({ held }) => held), foreign: column(() => 0), running: column(({ running }) => running), waiting: column(({ waiting }) => waiting),
    reasons: [{ token: "resources", jobs: column(({ short }) => short) }, { token: "order", jobs: column(({ waiting, short }) => waiting - short) }],
    entities: ["vision", "speech", "language"].map((name, i) => ({ name, due: column(({ want }) => due(want)[i]), got: column(({ got }) => got[i]) })),
  };
}

/** The job with the most to tell: it runs, and had to yield before. */
export function storyOf(scene) {
  const job = [...scene.running].filter(({ class: kind }) => kind === "be").sort((a, b) => b.preemptions - a.preemptions || b.length - a.length)[0];
  const words = jobWords(scene, job);
  const own = scene.spans.filter((span) => span.job === job.id);
  const { step, steps, steps_per_s } = words.progress;
  const curve = (at) => 0.3 + 2 / (1 + at / (steps / 9));
  const points = Array.from({ length: 120 }, (_, i) => ({ step: Math.round((step * (i + 1)) / 120), loss: curve((step * (i + 1)) / 120) * (1 + 0.02 * Math.sin(i * 2.3) * Math.cos(i)), attempt: own.length - 1, at: job.submit + i }));
  const ahead = Array.from({ length: 40 }, (_, i) => {
    const at = step + ((steps - step) * i) / 39;
    return { step: at, value: curve(at), low: curve(at) - 0.004 - 0.0025 * i, high: curve(at) + 0.004 + 0.0025 * i };
  });
  const taken = scene.entries.filter((entry) => entry.victim === job.id);
  const attempts = own.map((span, i) => ({
    attempt: i, placed: span.start, start: span.start, loaded: span.start + 12, gpus: job.gpus, type: scene.NODES[span.node][1], seats: [{ node: span.node, gpus: span.gpus }],
    step_from: Math.round((step * i) / own.length), step_to: Math.round((step * (i + 1)) / own.length),
    ...(span.end === undefined ? {} : { recalled: span.end - 9, end: span.end, how: span.how, rule: "trial", for: taken[taken.length - 1 - i]?.for ?? 1, clean: true }),
  }));
  const types = [...new Set(attempts.map(({ type }) => type))];
  return {
    job: { ...words, command: ["python3", "train.py", "--model", job.name], cwd: "/data/ada/train", preempted_by: taken.map((entry) => ({ ...entry, job: entry.for })) },
    story: { id: job.id, complete: true, attempts, speeds: types.map((type, i) => ({ type, gpus: job.gpus, steps_per_s: steps_per_s * (1 - 0.4 * i), low: steps_per_s * (0.92 - 0.4 * i), high: steps_per_s * (1.06 - 0.4 * i), reports: 60 })), loss: { points, fit: { family: "inv", predictable: true, ahead } } },
    why: { id: job.id, state: "RUNNING", can_ever_run: true, ahead: [], reasons: [{ token: "running", text: `it has run for ${Math.round((scene.NOW - job.since) / 60)} min on ${scene.NODES[job.node][0]}` }] },
    log: points.slice(-30).map(({ step: at, loss }) => `step ${at} loss ${loss.toFixed(4)}`).join("\n"),
  };
}
