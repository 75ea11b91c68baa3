"""curves - what a run costs by number of jobs, GPUs and active jobs: measured, and drawn."""
import json
import os
import resource
import subprocess
import tempfile

import plot
import words

# One axis grows, the others stay.  Jobs of 'active' come within a hundredth of the time that the
# cluster needs for them, so that nearly all are active at once.
AXES = {
    "jobs": ("number of jobs, on 1,000 GPUs at a load of 1",
             [300, 1000, 3000, 10000, 30000, 100000],
             lambda n: (1000, f"synthetic:jobs={n},load=1.0")),
    "gpus": ("number of GPUs, for 3,000 jobs at a load of 1",
             [64, 256, 1000, 4000, 16000, 64000],
             lambda n: (n, "synthetic:jobs=3000,load=1.0,max_gpus=16")),
    "active": ("number of active jobs, on 64 GPUs",
               [100, 300, 1000, 3000, 10000],
               lambda n: (64, f"synthetic:jobs={n},load=100,max_gpus=8")),
}
# Nodes of eight GPUs, with the price that some policies decide by.
CLUSTER = """\
types: [{{ name: v100, usd_per_hour: 0.74, speed: 1 }}]
nodes: [{{ count: {nodes}, type: v100, gpus: 8 }}]
"""
STOP_S = 4 # by default: a size that would take longer, as far as the last two tell, is not run
CPU_MAX_S = 20

# Measured once with the programs that their authors published, on a machine like this one, and
# not in the same run: CPU time and jobs.
PEERS = [
    {"name": "Gavel's simulator, max-min", "jobs": 5516, "gpus": 108, "cpu_s": 84.0},
]
# The same of simulators whose runs were of several sizes: jobs simulated per CPU second.
RATES = [
    ("Tiresias", 290, 470), ("Blox", 50, 50), ("Gavel, finish-time fairness", 17, 17),
    ("Gavel, water filling", 10, 10), ("Pollux", 9, 9), ("Gandiva in Gavel", 5, 5), ("Sia", 4, 4),
]
# Seconds of one solution by the released policies, by active jobs.
SOLUTIONS = {
    "las": {32: 0.006, 128: 0.011, 512: 0.047, 2048: 0.066},
    "ftf": {32: 0.07, 128: 0.5, 512: 1.2, 2048: 7.8},
}


def policies(berth):
    """All names, as the program lists them; flow policies stand apart."""
    listed = subprocess.run([berth, "policies"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in listed.stdout.split("\n\n")[0].splitlines()]


def run_once(berth, policy, gpus, workload):
    """CPU seconds, events and what a decision takes; or a text: why it came to nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as cluster:
        cluster.write(CLUSTER.format(nodes=gpus // 8))
        cluster.flush()
        return run_on(berth, policy, cluster.name, workload)


def run_on(berth, policy, cluster, workload):
    """The same on the cluster of this file."""
    child = subprocess.Popen(
        [berth, "sim", "--cluster", cluster, "--workload", workload, "--policy", policy, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S)))
    said, wrong = child.stdout.read(), child.stderr.read().strip() # a line, or none
    child.stdout.close()
    child.stderr.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        return wrong.splitlines()[-1] if wrong else f"took more than {CPU_MAX_S} s"
    sim = json.loads(said)["sim"]
    return {"cpu_s": round(usage.ru_utime + usage.ru_stime, 4), "events": sim["events"],
            "decide_us": sim["decide_us"], "peak_rss_bytes": sim["peak_rss_bytes"]}


def expected_s(points, size):
    """By the growth from the point before the last to the last, at least in proportion."""
    last = points[-1]
    factor = size / last["n"]
    if len(points) > 1 and points[-2]["cpu_s"] > 0.05:
        before = points[-2]
        factor = max(factor, (last["cpu_s"] / before["cpu_s"])
                     * (size / last["n"]) / (last["n"] / before["n"]))
    return last["cpu_s"] * factor


def measure(berth, stop_s=STOP_S):
    """Every policy along every axis, as far as it goes: [{axis, policy, points}]."""
    curves, failed = [], []
    for axis, (_, sizes, setting) in AXES.items():
        for policy in policies(berth):
            points, ended = [], None
            for n in sizes:
                if points and expected_s(points, n) > stop_s:
                    ended = n
                    break
                figures = run_once(berth, policy, *setting(n))
                if isinstance(figures, str):
                    ended = n
                    failed.append({"axis": axis, "policy": policy, "n": n, "why": figures})
                    break
                points.append({"n": n, **figures})
            if points:
                curves.append({"axis": axis, "policy": policy, "points": points,
                               **({"ended_before": ended} if ended else {})})
    return {"stop_s": stop_s, "curves": curves, "failed": failed, "peers": PEERS, "solutions": SOLUTIONS,
            "rates": [{"name": name, "low": low, "high": high} for name, low, high in RATES]}


# --- the page -----------------------------------------------------------------------------

GROUPS = {
    "event": ("policies that decide at events", lambda name: not is_of_rounds(name)),
    "round": ("policies that work in rounds", lambda name: is_of_rounds(name)),
}


def is_of_rounds(name):
    return name.startswith("gavel-") or name in ("isolated", "proportional", "allox", "gandiva",
                                                 "slaq", "fair")


def series_of(name, xs, ys):
    return {"name": name, "x": xs, "y": ys, "low": ys, "high": ys}


def per_event_us(point):
    return point["cpu_s"] / point["events"] * 1e6


def draw(record, benches):
    """{file name: (title, svg)}: a picture for each axis and group, and solutions."""
    output, drawn = record["output"], {}
    for axis, (label, _, _) in AXES.items():
        for group, (who, belongs) in GROUPS.items():
            series = [series_of(curve["policy"], [p["n"] for p in curve["points"]],
                                [per_event_us(p) for p in curve["points"]])
                      for curve in output["curves"]
                      if curve["axis"] == axis and belongs(curve["policy"])
                      and len(curve["points"]) > 1]
            if not series:
                continue
            title = f"CPU time per event, {who}"
            drawn[f"curves-{axis}-{group}.svg"] = (title, plot.lines(
                title, label, "µs per event", series))
    per_job = [series_of(curve["policy"], [p["n"] for p in curve["points"]],
                         [p["cpu_s"] / p["n"] * 1e3 for p in curve["points"]])
               for curve in output["curves"] if curve["axis"] == "jobs" and curve["policy"] in
               ("fifo", "las", "gavel-las", "gavel-ftf")]
    per_job += [series_of(f"{peer['name']}, published", [peer["jobs"]],
                          [peer["cpu_s"] / peer["jobs"] * 1e3]) for peer in output["peers"]]
    title = "CPU time per job, and the released simulator of Gavel"
    drawn["curves-peers.svg"] = (title, plot.lines(title, "number of jobs", "ms per job",
                                                   per_job))
    gavel = next((bench for bench in benches if bench["name"] == "gavel"), None)
    if gavel:
        title = "One solution: by prices, by CLP, by the released policies"
        drawn["curves-solutions.svg"] = (title, plot.lines(
            title, "active jobs", "ms", solutions(gavel, output["solutions"])))
    return drawn


def solutions(gavel, released):
    series = []
    for goal in ("las", "ftf"):
        for name, prefix in ((f"{goal}, prices", "solve_"), (f"{goal}, CLP", "solve_clp_")):
            rows = sorted(((row["n"], row["value"]) for row in gavel["output"]["rows"]
                           if row["id"] == f"{prefix}{goal}_{row['n']}"))
            if rows:
                series.append(series_of(name, [n for n, _ in rows], [ms for _, ms in rows]))
        sizes = sorted(released[goal], key=int)
        series.append(series_of(f"{goal}, released policy", [int(n) for n in sizes],
                                [released[goal][n] * 1e3 for n in sizes]))
    return series


TEXT = """\
## What it costs, by jobs, GPUs and active jobs

CPU time of whole runs of `berth sim`, with drawing the jobs and all figures, divided by the
events of the run. A curve that does not grow says that a decision costs what changed and not
what exists. Where a larger size would have taken more than {stop} s the curve ends, and the table
says where. Axes with a wide span are logarithmic.
"""

PEERS_TEXT = """\
Other simulators were run once with what their authors published, on a machine like this one and
not in the same run, on workloads of their own: jobs that each simulates per CPU second.
"""


def table_of(output, axis):
    """By policy: the smallest size and the largest, and where it ended."""
    rows = []
    for curve in output["curves"]:
        if curve["axis"] != axis:
            continue
        first, last = curve["points"][0], curve["points"][-1]
        rows.append((f"`{curve['policy']}`", words.count(first["n"]),
                     words.figure("us", per_event_us(first)), words.count(last["n"]),
                     words.figure("us", per_event_us(last)), words.figure("s", last["cpu_s"]),
                     words.figure("us", last["decide_us"]["p99"]),
                     words.count(curve["ended_before"]) if "ended_before" in curve
                     else words.BLANK))
    return words.table(("policy", "smallest", "per event", "largest", "per event", "whole run",
                        "decision, 99 %", "not run from"), rows, range(1, 8))


def section(record, pictures):
    output = record["output"]
    text = TEXT.format(stop=words.digits(output["stop_s"])) + "\n"
    for axis, (label, _, _) in AXES.items():
        text += f"### By {label}\n\n"
        for group in GROUPS:
            name = f"curves-{axis}-{group}.svg"
            if name in pictures:
                text += f"![{pictures[name][0]}](plots/{name})\n\n"
        text += not_measured(output, axis)
        text += ("<details><summary>Figures</summary>\n\n" + table_of(output, axis)
                 + "\n</details>\n\n")
    text += "### Beside others\n\n"
    for name in ("curves-peers.svg", "curves-solutions.svg"):
        if name in pictures:
            text += f"![{pictures[name][0]}](plots/{name})\n\n"
    text += PEERS_TEXT + "\n" + words.table(
        ("simulator", "jobs per s"),
        [(rate["name"], words.count(rate["low"]) if rate["low"] == rate["high"] else
          f"{words.count(rate['low'])} to {words.count(rate['high'])}")
         for rate in output["rates"]] + own_rates(output), (1,))
    return text + "\n<details><summary>How they came about</summary>\n\n" + words.made(record) \
        + "\n</details>\n\n"


def not_measured(output, axis):
    """What failed is told, with the reason."""
    rows = [f"- `{one['policy']}` at {words.count(one['n'])}: {one['why']}\n"
            for one in output.get("failed", []) if one["axis"] == axis]
    return "Not measured:\n\n" + "".join(rows) + "\n" if rows else ""


def own_rates(output):
    """Of this run, at the largest number of jobs."""
    last = {curve["policy"]: curve["points"][-1] for curve in output["curves"]
            if curve["axis"] == "jobs"}
    return [(f"Berth, `{name}`, {words.count(last[name]['n'])} jobs",
             words.digits(last[name]["n"] / last[name]["cpu_s"]))
            for name in ("fifo", "las", "gavel-las", "gavel-ftf") if name in last]
