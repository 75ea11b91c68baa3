"""Completion times under event-driven policies are those of a naive simulator (tests/judge/naive.py).

    python3 tests/e2e/test_judge.py --policy las --seed 17         one workload: what happens, what differs
    python3 tests/e2e/test_judge.py [--policy las] [--seeds 5000] [--from 1]
"""
import argparse
import collections
import csv
import json
import os
import random
import subprocess
import sys
import tempfile

from support import BERTH, ROOT, Case

sys.path.insert(0, os.path.join(ROOT, "tests", "judge"))
from naive import NS, Job, Node, RandomChoice, Sim  # noqa: E402

POLICIES = ("fifo", "fifo-backfill", "sjf", "srtf", "las", "lrtp", "fitgpp")
WORKLOADS = 1000 if os.environ.get("BERTH_SOAK") else 43  # of each policy


class Workload:
    """A cluster, jobs and settings of a policy, drawn from a seed.  Times are on a coarse grid, so that jobs
    arrive together, end as others arrive, and have equal keys; all of them are exact in binary."""

    def __init__(self, policy, seed):
        self.policy, self.seed = policy, seed
        rng = random.Random(f"{policy} {seed}")
        self.draw_cluster(rng)
        self.settings = self.draw_settings(rng)
        self.draw_jobs(rng)
        self.faults = None  # seed, mean time between failures and until a node is back
        if rng.random() < 0.2:
            self.faults = rng.randint(1, 12), rng.choice((100, 400, 2000)), rng.choice((10, 60))

    def draw_cluster(self, rng):
        count = rng.randint(1, 6)
        sizes = rng.choice(((1,), (2,), (4,), (8,), (1, 2, 4), (2, 4, 8), (3, 5), (1, 8)))
        self.speeds = {"v100": 1.0}
        if count > 1 and rng.random() < 0.2:
            self.speeds["k80"] = rng.choice((0.5, 0.25, 1.0))
        kinds = list(self.speeds)
        self.scarce = rng.random() < 0.3  # CPUs and memory
        cpus, mem = (8, 64) if self.scarce else (64, 512)
        self.nodes = []
        for n in range(count):
            gpus = rng.choice(sizes)
            kind = kinds[n] if n < len(kinds) else rng.choice(kinds)
            self.nodes.append((gpus, cpus * gpus, mem * gpus, kind))

    def draw_settings(self, rng):
        choices = {
            "las": (("quantum", 0.8, (1, 5, 20, 60, 100, 1000)), ("growth", 0.5, (1.5, 2, 3, 10)),
                    ("queues", 0.6, (1, 2, 3, 5)), ("promote", 0.4, (0.5, 1, 2, 8))),
            "lrtp": (("max_preemptions", 0.4, (1, 2, 3)), ("spare", 0.4, (True,))),
            "fitgpp": (("max_preemptions", 0.5, (0, 2, 3)), ("s", 0.5, (0.0, 0.5, 1.0, 20.0))),
        }
        return {name: rng.choice(values) for name, share, values in choices.get(self.policy, ())
                if rng.random() < share}

    def draw_jobs(self, rng):
        count = min(60, 1 + int(rng.expovariate(1 / 14)))
        grid = rng.choice((0.5, 1, 10, 10))
        works = [rng.randint(1, 60) * grid for _ in range(rng.choice((1, 2, 5, 60)))]
        if rng.random() < 0.1:
            works.append(2 ** -9)
        span = int(sum(works) / len(works) / grid * rng.choice((0, 1, count / 8, count / 3, count))) + 1
        submits = [rng.randrange(span) * grid for _ in range(rng.choice((1, 3, count)))]
        costs = rng.choice(("none", "small", "large", "mixed"))
        ckpts = rng.choice(((0,), (0, 1, 7), (5, 20)))
        trials = rng.choice((0.1, 0.3, 0.6)) if self.policy in ("lrtp", "fitgpp") else 0.2
        self.jobs = [self.draw_job(rng, submit, rng.choice(works), grid, costs, trials, rng.choice(ckpts))
                     for submit in sorted(rng.choice(submits) for _ in range(count))]

    def draw_job(self, rng, submit, work, grid, costs, trials, ckpt):
        most = max(gpus for gpus, *_ in self.nodes)
        if rng.random() < 0.15:  # a gang over nodes, sometimes one that never fits
            most = sum(gpus for gpus, *_ in self.nodes) + 1
        gpus = rng.randint(1, most) if rng.random() < 0.6 else rng.randint(1, min(2, most))
        job = {"submit": submit, "gpus": gpus, "work": work, "trial": rng.random() < trials, "grace": 0, "pause": 0,
               "load": 0, "ckpt": ckpt, "cpus": 0, "mem": 0, "types": None}
        if costs == "small" or costs == "mixed" and rng.random() < 0.5:
            job.update(grace=2 * grid, pause=rng.choice((0, 1, 2)) * grid, load=rng.choice((0, 1)) * grid)
        elif costs != "none":
            job.update(grace=rng.randint(0, 20) * grid, pause=rng.choice((0, 1, 5, 20, 40)) * grid,
                       load=rng.choice((0, 1, 10, 30)) * grid)
        if self.scarce:
            job.update(cpus=rng.randint(1, 16 * gpus), mem=rng.choice((1, 32 * gpus, 64 * gpus, 100 * gpus)))
        if len(self.speeds) > 1 and rng.random() < 0.4:
            job["types"] = [rng.choice(list(self.speeds))]
        return job

    def write(self, folder):
        with open(os.path.join(folder, "cluster.yaml"), "w", encoding="utf-8") as out:
            out.write("name: judged\ntypes:\n")
            for name, speed in self.speeds.items():
                out.write(f"  - {{name: {name}, speed: {speed}}}\n")
            out.write("nodes:\n")
            for gpus, cpus, mem, kind in self.nodes:
                out.write(f"  - {{type: {kind}, gpus: {gpus}, cpus: {cpus}, mem_gib: {mem}}}\n")
        with open(os.path.join(folder, "jobs.csv"), "w", encoding="utf-8") as out:
            out.write("#berth-jobs 1\nsubmit_s,gpus,work_s,class,grace_s,pause_s,load_s,ckpt_s,cpus,mem_gib,types\n")
            for j in self.jobs:
                out.write(f"{j['submit']},{j['gpus']},{j['work']},{'te' if j['trial'] else 'be'},{j['grace']},"
                          f"{j['pause']},{j['load']},{j['ckpt']},{j['cpus']},{j['mem']},{'|'.join(j['types'] or ())}\n")

    def command(self):
        policy = self.policy
        for name, value in self.settings.items():
            policy += f",{name}={str(value).lower()}{'s' if name == 'quantum' else ''}"
        words = ["sim", "-c", "cluster.yaml", "-w", "jobs.csv", "-p", policy, "--jobs-out", "out.csv"]
        if self.faults:
            words += ["--seed", str(self.faults[0]), "--faults", f"mtbf={self.faults[1]}s,mttr={self.faults[2]}s"]
        return words

    def naive(self, faults):
        jobs = []
        for number, drawn in enumerate(self.jobs, 1):
            given = dict(drawn, cpus=drawn["cpus"] * 1000, mem=drawn["mem"] * 1024)
            for name in ("submit", "work", "grace", "pause", "load", "ckpt"):
                given[name] = round(drawn[name] * NS)
            jobs.append(Job(number, **given))
        settings = dict(self.settings)
        if "quantum" in settings:
            settings["quantum"] *= NS
        return Sim([Node(*node) for node in self.nodes], jobs, self.policy, settings, self.speeds, faults)


class Judge:
    """Runs both simulators on a workload, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.known_faults = {}

    def berth(self, *words):
        return subprocess.run([BERTH, *words], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def path(self, name):
        return os.path.join(self.folder, name)

    def find_faults(self, workload):
        """When nodes fail and are back, and until when that is known.  It does not depend on the jobs, so jobs
        that keep one node busy each show it: they are lost when it fails and start again when it is back."""
        key = len(workload.nodes), *workload.faults
        if key in self.known_faults:
            return self.known_faults[key]
        count, seed, mean, repair = key
        with open(self.path("probe.csv"), "w", encoding="utf-8") as out:
            out.write("#berth-jobs 1\nsubmit_s,gpus,work_s,ckpt_s,nodelist\n")
            for n in range(count):
                out.write(f"0,1,{10 * mean + 4000},0.001,n{n}\n")
        done = self.berth("sim", "-c", f"{count}xv100:1", "-w", "probe.csv", "-p", "sjf", "--seed", str(seed),
                          "--faults", f"mtbf={mean}s,mttr={repair}s", "--trace-out", "probe.json")
        assert done.returncode == 0, done
        with open(self.path("probe.json"), encoding="utf-8") as file:
            found = json.load(file)
        faults, known_until = [], []
        for span in found if isinstance(found, list) else found["traceEvents"]:
            if span["ph"] != "X":
                continue
            begin, end = round(span["ts"] * 1000), round((span["ts"] + span["dur"]) * 1000)
            if begin:
                faults.append((begin, span["pid"] - 1, True))
            if span["args"]["end"] == "lost":
                faults.append((end, span["pid"] - 1, False))
            else:
                known_until.append(end)
        self.known_faults[key] = [f for f in faults if f[0] < min(known_until)], min(known_until)
        return self.known_faults[key]

    def compare(self, workload, trace=None):
        """'same', why it cannot be compared, or what differs."""
        faults, known_until = self.find_faults(workload) if workload.faults else ((), None)
        sim = workload.naive(faults)
        sim.trace = trace
        try:
            sim.run()
        except RandomChoice:
            return "draws at random"
        if known_until is not None and (sim.is_stuck() or max(job.end or 0 for job in sim.jobs) >= known_until):
            return "takes too long"
        workload.write(self.folder)
        done = self.berth(*workload.command())
        if done.returncode:
            return f"different: status {done.returncode}: {done.stderr}"
        with open(self.path("out.csv"), encoding="utf-8") as file:
            rows = {int(row["id"]): row for row in csv.DictReader(file)}
        # Times of failures, and of queues that end after a third of something, are no multiples of the grid: at
        # each preemption both simulators round, and not always alike.
        off_ns = 1000 if workload.faults or workload.policy == "las" else 1
        for job in sim.jobs:
            row = rows.get(job.id)
            if row is None or job.end is None:
                if row is not None and row["state"] == "completed" or job.end is not None:
                    return f"different: job {job.id} is rejected by one of the two"
                continue
            for name, value, off in (("first_start_s", job.first_start, off_ns), ("end_s", job.end, off_ns),
                                     ("preemptions", job.preemptions, 0), ("failures", job.failures, 0)):
                theirs = round(float(row[name]) * NS) if name.endswith("_s") else int(row[name])
                if abs(theirs - value) > off:
                    return f"different: job {job.id}: {name} is {theirs}, by the naive simulator {value}"
        return "same"


class EventDrivenPolicies(Case):
    def judge(self, policy):
        judge = Judge(self.scratch)
        verdicts = collections.Counter()
        for seed in range(1, WORKLOADS + 1):
            verdict = judge.compare(Workload(policy, seed))
            verdicts[verdict] += 1
            self.assertFalse(verdict.startswith("different"), f"{verdict}\nagain: BERTH={BERTH} python3 "
                             f"tests/e2e/test_judge.py --policy {policy} --seed {seed}")
        self.assertGreater(verdicts["same"], 0.8 * WORKLOADS, verdicts)

    def test_a_defect_is_found(self):
        """The judge can tell policies apart: under another policy's name it objects."""
        judge = Judge(self.scratch)
        for seed in range(1, 200):
            workload = Workload("srtf", seed)
            workload.policy = "sjf"
            sim = workload.naive
            workload.naive = lambda faults: (setattr(workload, "policy", "srtf"), sim(faults),
                                             setattr(workload, "policy", "sjf"))[1]
            if judge.compare(workload).startswith("different"):
                return
        self.fail("sjf passes for srtf")


for name in POLICIES:
    def judged(self, policy=name):
        self.judge(policy)
    setattr(EventDrivenPolicies, f"test_{name.replace('-', '_')}_decides_as_its_page_says", judged)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy", choices=POLICIES)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--folder", help="keep the files of a workload there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="berth judge ") as scratch:
        judge = Judge(args.folder or scratch)
        if args.seed is not None:
            trace = []
            workload = Workload(args.policy, args.seed)
            workload.write(judge.folder)
            verdict = judge.compare(workload, trace)
            for file in ("cluster.yaml", "jobs.csv"):
                with open(judge.path(file), encoding="utf-8") as text:
                    print(text.read())
            print("\n".join(trace), "berth " + " ".join(workload.command()), verdict, sep="\n")
            return 1 if verdict.startswith("different") else 0
        failed = 0
        for policy in [args.policy] if args.policy else POLICIES:
            verdicts = collections.Counter()
            for seed in range(args.first, args.first + args.seeds):
                verdict = judge.compare(Workload(policy, seed))
                verdicts[verdict.split(":")[0]] += 1
                if verdict.startswith("different"):
                    print(f"{policy}, seed {seed}: {verdict}", flush=True)
                    failed = 1
            print(policy, dict(verdicts), flush=True)
        return failed


if __name__ == "__main__":
    sys.exit(main())
