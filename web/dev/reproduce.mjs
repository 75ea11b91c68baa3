// reproduce.mjs - a page of a reproduced study with made-up data, to look at while working on it:
//     node dev/reproduce.mjs REPORT.html OUT.html [ROWS] [CHARTS]
//
// More rows and charts than the first few are made up by number.  One name holds markup.

import { readFileSync, writeFileSync } from "node:fs";

const wave = (n) => 0.5 + 0.5 * Math.sin(n * 12.9898);
const around = (y, part = 0.06) => ({ y, low: y.map((v) => v - Math.abs(v) * part), high: y.map((v) => v + Math.abs(v) * part) });

const ROWS = [
  { id: "te_p95_change", what: "trial p95 slowdown against FIFO", unit: "change", published: -0.966, measured: -0.9712, spread: [-0.981, -0.953], seeds: 8, verdict: "reproduced", fidelity: "reconstructed" },
  { id: "be_p50_change", what: "best-effort median slowdown against FIFO", unit: "change", published: 0.18, measured: 0.2214, spread: [0.061, 0.318], seeds: 8, verdict: "inconclusive", fidelity: "reconstructed", note: "varies much between workloads: the median lies where the distribution is flat" },
  { id: "be_p95_change", what: "best-effort p95 slowdown against FIFO", unit: "change", published: 0.239, measured: 0.412, spread: [0.33, 0.49], seeds: 8, verdict: "differs", fidelity: "tuned" },
  { id: "wait_ratio", what: "waiting under SRTF over waiting here", unit: "ratio", published: 1.64, measured: 1.71, spread: [1.62, 1.83], seeds: 8, verdict: "reproduced", fidelity: "reconstructed" },
  { id: "preempted_share", what: "share of best-effort jobs preempted", unit: "share", published: 0.057, measured: 0.0613, spread: [0.058, 0.066], seeds: 8, verdict: "inconclusive", fidelity: "reconstructed" },
  { id: "grace", what: "mean time until a trial job starts", unit: "s", measured: 71.4, spread: [66, 80.2], seeds: 8, verdict: "no figure published" },
  { id: "jct", what: "mean completion time, <b>best effort</b>", unit: "h", measured: 9.82, spread: [9.1, 10.6], seeds: 8, verdict: "no figure published" },
  { id: "preemptions", what: "preemptions", unit: "", measured: 18231, spread: [17890, 18702], seeds: 8, verdict: "no figure published" },
];

const SETUP = [
  ["84 nodes of 32 CPU, 256 GB, 8 GPUs", "published"],
  ["65 536 jobs, 30 % of them trial", "published"],
  ["s = 4.0, P = 1", "published"],
  ["grace periods: normal with mean 3 min, cut at 0 and 20 min", "reconstructed"],
  ["arrivals from a closed-loop FIFO run at load 2.0", "reconstructed"],
  ["8 workloads from seeds 1–8 instead of one", "ours"],
  ["ties go to the job submitted first", "ours"],
];

const POLICIES = ["fifo", "lrtp", "rand", "fitgpp"];
const CHARTS = [
  {
    title: "Slowdown by class", kind: "bars", y_label: "slowdown", log_y: true,
    groups: ["trial p50", "trial p95", "trial p99", "best effort p50", "best effort p95", "best effort p99"],
    series: [
      ...POLICIES.map((name, i) => ({ name, ...around([9, 120, 410, 2.1, 14, 40].map((v, g) => (g < 3 && i > 0 ? 1 + i * 0.3 + g : v * (1.5 - 0.12 * i))), 0.12) })),
      { name: "fitgpp (published)", published: true, y: [1.1, 4.1, null, 2.0, 15, null] },
    ],
  },
  {
    title: "Completion time over the cost of a swap", kind: "lines", x_label: "cost factor", y_label: "mean completion time, h",
    series: [
      ...["srtf", "sjf", "fifo", "xion"].map((name, i) => ({ name, x: [0, 0.5, 1, 1.5, 2, 2.5, 3], ...around([0, 0.5, 1, 1.5, 2, 2.5, 3].map((x) => [4 + 1.1 * x, 5.9, 9.5, 4 + 0.55 * x][i]), 0.05) })),
      { name: "srtf", published: true, x: [0, 1, 2, 3], y: [4.2, 5.0, 6.4, 7.1] },
      { name: "xion", published: true, x: [0, 1, 2, 3], y: [4.1, 4.5, 5.2, 5.8] },
    ],
  },
  {
    title: "Change against FIFO", kind: "bars", y_label: "change, %", groups: ["p50", "p90", "p95"],
    series: [{ name: "fitgpp", ...around([-12, -80, -96]) }, { name: "lrtp", ...around([4, -60, -90]) }],
  },
  {
    title: "Completion time over load", kind: "lines", x_label: "jobs per hour", y_label: "mean completion time, h", log_x: true, log_y: true,
    series: ["fifo", "gavel", "gandiva", "<i>las</i>"].map((name, i) => ({ name, x: [0.5, 1, 2, 4, 8], ...around([0.5, 1, 2, 4, 8].map((x) => (3 + i) * (1 + x ** (2.4 - 0.3 * i)))) })),
  },
];

function moreRows(count) {
  const verdicts = ["reproduced", "inconclusive", "differs", "no figure published"];
  return Array.from({ length: Math.max(0, count - ROWS.length) }, (_, n) => {
    const published = 1 + 2 * wave(n);
    const verdict = verdicts[Math.floor(4 * wave(n + 0.3)) % 4];
    const measured = published * (0.9 + 0.2 * wave(n + 0.7));
    const row = { id: `cell.${n}`, what: `policy ${n % 9}, ${1 + (n % 7)} jobs per hour, trace ${Math.floor(n / 63)}`, unit: "ratio", measured, spread: [measured * 0.95, measured * 1.06], seeds: 3, verdict };
    return verdict === "no figure published" ? row : { ...row, published };
  });
}

function moreCharts(count) {
  return Array.from({ length: Math.max(0, count - CHARTS.length) }, (_, n) => ({
    title: `Normalised throughput, trace ${n}`, kind: "bars", y_label: "of the best", groups: Array.from({ length: 4 + 5 * (n % 3) }, (_, g) => `load ${g + 1}`),
    series: Array.from({ length: 3 + (n % 6) }, (_, s) => ({ name: `policy ${s}`, ...around(Array.from({ length: 4 + 5 * (n % 3) }, (_, g) => 0.3 + 0.7 * wave(n + s * 7 + g))) })),
  }));
}

const [page, out, rows = "8", charts = "4"] = process.argv.slice(2);
const data = {
  kind: "reproduce",
  title: "FitGpp: trial jobs start at once",
  paper: "Yabuuchi et al., OpML 2019",
  version: "0.0.0-example",
  command: "berth reproduce fitgpp --seeds 8 --report fitgpp.html",
  quick: true,
  seeds: [1, 2, 3, 4, 5, 6, 7, 8],
  setup: SETUP.map(([what, origin]) => ({ what, origin })),
  rows: [...ROWS, ...moreRows(Number(rows))].slice(0, Number(rows)),
  charts: [...CHARTS, ...moreCharts(Number(charts))].slice(0, Number(charts)),
  notes: [
    "The paper prints its figures for one workload; the spread here says how much one workload can tell.",
    "Percentiles are over jobs of one run, then averaged over seeds.",
  ],
};
const json = JSON.stringify(data).replaceAll("<", "\\u003c");
writeFileSync(out, readFileSync(page, "utf8").replace("@DATA@", () => json));
