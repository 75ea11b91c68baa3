"""The output of every policy is what it was: hashes of whole runs, of solutions and of cases.

A change of names, files or data structures leaves every hash as it is.  A change that is meant to alter
a decision alters some of them: look at which, then write the list anew and commit it with the change.

    python3 tests/e2e/test_same_output.py --write
"""
import concurrent.futures
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from support import BERTH, DATA, ROOT, Case

LIST = os.path.join(ROOT, "tests", "golden", "outputs.txt")
SEEDS = (1, 2, 3)

# A workload of each preset that every policy finishes soon.
PRESETS = {
    "synthetic": "4xv100:8 synthetic:jobs=250,load=1.1",
    "types": "2xv100:4,2xp100:4,2xk80:4 synthetic:jobs=120,load=1.0,max_gpus=4,fail_share=0.1",
    "fitgpp": "fitgpp-84 fitgpp:jobs=400",
    "xion": "16xv100:1 xion:jobs=150",
    "gavel": "gavel-36 gavel:lam=60,jobs=100,multi=true,slos=true",
    "jpas": "jpas-13 jpas:jobs=12",
    "slaq": "slaq-20 slaq:jobs=20",
    "mixed": "mixed-112 mixed:jobs=120",
}

# What a plain run does not reach: settings, faults, wrong estimates, packets.
VARIANTS = {
    "srtf-worth": ("synthetic", "srtf,worth=xion", ""),
    "las-worth": ("types", "las,worth=xion", ""),
    "fitgpp-worth": ("fitgpp", "fitgpp,worth=xion", ""),
    "srtf-faults": ("synthetic", "srtf", "--faults mtbf=2d,mttr=2h"),
    "gavel-las-faults": ("types", "gavel-las", "--faults mtbf=2d,mttr=2h"),
    "srtf-errors": ("synthetic", "srtf", "--estimate-error 0.8 --cost-error 0.8"),
    "xion-errors": ("xion", "xion", "--estimate-error 0.5 --cost-error 0.5"),
    "gavel-las-sharing": ("gavel", "gavel-las,sharing=true", ""),
    "gavel-las-estimated": ("gavel", "gavel-las,sharing=true,rates=estimated", ""),
    "gavel-las-blind": ("gavel", "gavel-las,aware=false", ""),
    "gavel-las-levels": ("gavel", "gavel-las,water_filling=true", ""),
    "gavel-las-released": ("gavel", "gavel-las,compat=released", ""),
    "gavel-ftf-sharing": ("gavel", "gavel-ftf,sharing=true", ""),
    "gavel-ftf-released": ("gavel", "gavel-ftf,compat=released", ""),
    "gavel-cost-released": ("gavel", "gavel-cost,form=released", ""),
    "jpas-exact": ("jpas", "fifo", "--flow jpas --network exact"),
    "jpas-mean": ("jpas", "fifo", "--flow jpas --network mean"),
    "crux": ("jpas", "fifo", "--flow crux"),
    "smallest-first": ("jpas", "fifo", "--flow smallest-first"),
    "las-flow": ("jpas", "fifo", "--flow las-flow"),
    "declared-curves": ("slaq", "slaq", "--declare-curves"),
}

# As 'berth solve' knows them, each with the engines that can answer it.
PROGRAMMES = ("gavel-las", "gavel-las,aware=false", "gavel-las,water_filling=true", "gavel-ftf",
              "gavel-makespan", "gavel-throughput", "gavel-cost", "gavel-cost-slo",
              "gavel-las,sharing=true", "gavel-hierarchical", "gavel-fifo", "isolated",
              "proportional")


def digest(*parts):
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def run(*words):
    done = subprocess.run([BERTH, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)
    if done.returncode not in (0, 2):
        raise AssertionError(f"berth {' '.join(words)}: {done.returncode} {done.stderr}")
    return done.stdout or b"null"  # refused: this policy is not for this workload


def read(path):
    with open(path, "rb") as file:
        return file.read()


def simulate(preset, policy, seed, more=""):
    """One run: its figures without how long it took, and the three files that it writes."""
    cluster, workload = PRESETS[preset].split()
    with tempfile.TemporaryDirectory(prefix="berth-same-") as folder:
        files = [os.path.join(folder, name) for name in ("jobs.csv", "ledger.csv", "trace.json")]
        said = json.loads(run("sim", "--cluster", cluster, "--workload", workload, "--policy", policy,
                              "--seed", str(seed), "--json", "--jobs-out", files[0], "--ledger",
                              files[1], "--trace-out", files[2], *more.split()))
        if said is None:
            return "refused"
        del said["sim"]
        return digest(json.dumps(said).encode(), *map(read, files))


def policies():
    return [p["name"] for p in json.loads(run("policies", "--json"))["policies"]]


def instances(seed):
    """Problems of our own for 'berth solve', drawn from a seed."""
    rng = random.Random(seed)
    drawn = []
    for number in range(8):
        jobs = [{"id": i, "throughputs": [round(rng.uniform(0.1, 2), 3) * f for f in (1, 2.5, 6)],
                 "scale_factor": rng.choice((1, 1, 2, 4)), "priority_weight": rng.choice((1, 1, 5)),
                 "num_steps_remaining": rng.randrange(1000, 100000),
                 "time_since_start": rng.randrange(0, 10000),
                 "SLO_seconds_left": rng.randrange(50000, 5000000)} for i in range(6 + 5 * number)]
        pairs = [{"ids": [i, i + 1], "throughputs": [
            [0.6 * t, 0.6 * u] for t, u in zip(jobs[i]["throughputs"], jobs[i + 1]["throughputs"])]}
            for i in range(len(jobs) - 1) if jobs[i]["scale_factor"] == jobs[i + 1]["scale_factor"]]
        half = len(jobs) // 2
        drawn.append({"id": str(number), "worker_types": ["k80", "p100", "v100"],
                      "num_workers": [8, 6, 4], "jobs": jobs, "pairs": pairs,
                      "instance_costs_per_hour": {"k80": 0.45, "p100": 1.46, "v100": 2.48},
                      "entities": [{"weight": 1, "inside": "fifo", "jobs": list(range(half))},
                                   {"weight": 2, "inside": "fairness",
                                    "jobs": list(range(half, len(jobs)))}]})
    return {"instances": drawn}


def solution(policy, path):
    said = json.loads(run("solve", policy, path, "--json"))
    if said is None:
        return "refused"
    for instance in said["instances"]:
        instance.pop("seconds", None)
    return digest(json.dumps(said).encode())


def solve(policy, seed):
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="berth-same-") as file:
        json.dump(instances(seed), file)
        file.flush()
        return solution(policy, file.name)


def published(name):
    return solution(name, os.path.join(DATA, "gavel-golden", "policies", name + ".json"))


def case_of(name):
    return digest(read(os.path.join(ROOT, "tests", "golden", name)).split(b"\nexpect", 1)[1])


def everything():
    """Name and what makes its hash, of all that is compared here."""
    wanted = {}
    for policy in policies():
        for preset in PRESETS:
            for seed in SEEDS:
                wanted[f"sim {preset} {policy} {seed}"] = (simulate, preset, policy, seed)
    for name, (preset, policy, more) in VARIANTS.items():
        wanted[f"sim {preset} {name} 1"] = (simulate, preset, policy, 1, more)
    for policy in PROGRAMMES:
        for seed in SEEDS:
            wanted[f"solve drawn {policy} {seed}"] = (solve, policy, seed)
    for name in sorted(os.listdir(os.path.join(ROOT, "tests", "golden"))):
        if name.endswith(".case"):
            wanted[f"case {name}"] = (case_of, name)
    folder = DATA and os.path.join(DATA, "gavel-golden", "policies")
    for name in sorted(os.listdir(folder)) if folder and os.path.isdir(folder) else ():
        if name != "edge_behaviour.json":
            wanted[f"solve published {name[:-5]}"] = (published, name[:-5])
    return wanted


def hashes():
    wanted = everything()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = {name: pool.submit(*call) for name, call in wanted.items()}
        return {name: answer.result() for name, answer in found.items()}


def listed():
    with open(LIST, encoding="utf-8") as file:
        return dict(line.rsplit(" ", 1) for line in file.read().splitlines()
                    if line and not line.startswith("#"))


class SameOutput(Case):
    def test_every_run_comes_out_as_before(self):
        before, now = listed(), hashes()
        if not DATA:
            before = {n: h for n, h in before.items() if not n.startswith("solve published")}
        self.assertEqual(sorted(before), sorted(now), "what is compared is not what is listed")
        differ = [name for name in now if now[name] != before[name]]
        self.assertEqual(differ, [], f"{len(differ)} of {len(now)} came out differently")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        if not DATA:
            sys.exit("BERTH_DATA is not set: the published instances would be left out")
        with open(LIST, "w", encoding="utf-8") as file:
            print("# Written by tests/e2e/test_same_output.py --write.", file=file)
            for name, value in hashes().items():
                print(name, value, file=file)
    else:
        unittest.main()
