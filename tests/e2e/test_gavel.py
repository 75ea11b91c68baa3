"""Runs of the system that was released with Gavel, set beside ours: job by job, round by round.

The reference runs are in gavel-golden below BERTH_DATA.  A few take part in every check; all of
them do with BERTH_SOAK=1.
"""
import bisect
import csv
import gzip
import json
import os
import unittest

from support import DATA, Case

GOLDEN = os.path.join(DATA or "", "gavel-golden", "sim")
TABLES = os.path.join(DATA or "", "gavel")
ALL = bool(os.environ.get("BERTH_SOAK"))
TYPES = ("v100", "p100", "k80")

# Policies that need no solver, by the names they have there.
EXACT = {
    "isolated": "isolated",
    "fifo": "gavel-fifo,aware=false",
    "fifo_perf": "gavel-fifo",
    "fifo_packed": "gavel-fifo,sharing=true",
    "allox": "allox",
    "gandiva": "gandiva",
}
SOME_EXACT = ["gen-w60-multi-isolated", "medium-fifo", "gen-w100-single-fifo_perf",
              "static-multi-100-fifo_perf-seed1", "physical-mmf-gandiva", "medium-allox",
              "medium-fifo_packed"]
SOME_RECORDED = ["small-max_min_fairness", "physical-mmf-globalqueue-max_min_fairness_perf",
                 "medium-max_min_fairness_packed", "physical-makespan-min_total_duration",
                 "physical-mmf-servers-max_min_fairness_perf",
                 "gen-w60-multi-finish_time_fairness_perf"]


def golden(name, *parts):
    return os.path.join(GOLDEN, name, *parts)


def arguments(name):
    with open(golden(name, "result.json"), encoding="utf-8") as file:
        return json.load(file)["args"]


def cases(some, wanted):
    if not os.path.isdir(GOLDEN):
        return []
    return [name for name in (sorted(os.listdir(GOLDEN)) if ALL else some)
            if wanted(name, arguments(name))]


def has_log(name, _):
    return os.path.exists(golden(name, "allocations.jsonl.gz"))


def cluster(args):
    """One accelerator per node: places made no difference there."""
    return ",".join(f"{type}:{count}" for type, count in zip(TYPES, args["cluster"].split(":"))
                    if count != "0")


def workload(name, args):
    if args.get("steady"):
        return ["--workload", golden(name, "jobs.csv"), "--window", f"{args['ws']}:{args['we']}"]
    if "msr" in args.get("trace", ""):
        return ["--workload", os.path.join(TABLES, "traces", "msr_philly", "ed69ec.csv")]
    if "trace" in args:
        return ["--workload", os.path.join(TABLES, args["trace"])]
    text = f"gavel:lam={args['lam']!r}" if args["lam"] else f"gavel:static={args['num_total_jobs']}"
    text += ",multi=true" if args.get("multi") else ""
    text += ",priorities=true" if args.get("prio") else ""
    window = ["--window", f"{args['ws']}:{args['we']}"] if "we" in args else []
    return ["--workload", text, *window]


def replayer(args):
    """A policy of ours with the mechanism's switches as they were; its shares are not asked for."""
    policy = args["policy"]
    sharing = "packed" in policy or policy == "gandiva"
    aware = sharing or "perf" in policy or policy == "allox"
    name = "gavel-fifo" if policy.startswith("fifo") else "gavel-las"
    queue = ",global_queue=true" if args.get("gq") else ""
    return f"{name},aware={str(aware).lower()},sharing={str(sharing).lower()}{queue}"


@unittest.skipUnless(DATA, "BERTH_DATA not set")
class Released(Case):
    def play(self, name, policy, *more):
        args = arguments(name)
        done = self.berth("sim", "--cluster", cluster(args), *workload(name, args),
                          "--seed", str(args["seed"]), "--policy", policy + ",compat=released",
                          "--throughputs", os.path.join(TABLES, "simulation_throughputs.json"),
                          "--jobs-out", "jobs.csv", "--json", *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def assert_same_jobs(self, name):
        with open(golden(name, "jobs.csv"), encoding="utf-8") as file:
            theirs = list(csv.DictReader(file))
        with open(self.path("jobs.csv"), encoding="utf-8") as file:
            ours = {int(job["id"]) - 1: job for job in csv.DictReader(file)}
        for number, job in enumerate(theirs):
            if job["jct_s"]:
                self.assertTrue(ours[number]["jct_s"], f"job {number} has not finished")
                want = float(job["jct_s"])
                self.assertLessEqual(abs(float(ours[number]["jct_s"]) - want), 1e-9 * want,
                                     f"job {number}")

    def test_policies_without_a_solver_finish_every_job_when_they_did(self):
        for name in cases(SOME_EXACT, lambda _, args: args["policy"] in EXACT):
            with self.subTest(case=name):
                self.play(name, EXACT[arguments(name)["policy"]])
                self.assert_same_jobs(name)

    def test_recorded_shares_finish_every_job_when_they_did(self):
        for name in cases(SOME_RECORDED, has_log):
            with self.subTest(case=name):
                self.play(name, replayer(arguments(name)), "--allocations",
                          golden(name, "allocations.jsonl.gz"))
                self.assert_same_jobs(name)

    def test_every_round_has_the_jobs_on_the_types_it_had(self):
        for name in cases(SOME_RECORDED, has_log):
            with self.subTest(case=name):
                self.play(name, replayer(arguments(name)), "--allocations",
                          golden(name, "allocations.jsonl.gz"), "--trace-out", "trace.json")
                self.assert_same_rounds(name)

    def assert_same_rounds(self, name):
        held = self.held(arguments(name))
        with gzip.open(golden(name, "rounds.jsonl.gz"), "rt") as file:
            rounds = [json.loads(line) for line in file][:-1]  # the last was not run
        for entry in rounds:
            if not entry["assign"]:
                continue  # shares were made again in the same moment
            ours = at_work(held, entry["t"] + 0.001)
            theirs = sorted((int(job), kind) for unit, kind, _ in entry["assign"]
                            for job in unit.split(","))
            self.assertEqual(ours, theirs, f"round {entry['round']}")

    def held(self, args):
        """{(number of the job, type): [(from, to)]}"""
        nodes = [kind for kind, count in zip(TYPES, args["cluster"].split(":"))
                 for _ in range(int(count))]
        with open(self.path("trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        held = {}
        for event in events:
            if event["ph"] == "X":
                job = int(event["name"].split()[1]) - 1
                times = (event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6)
                held.setdefault((job, nodes[event["pid"] - 1]), []).append(times)
        return {key: sorted(times) for key, times in held.items()}


def at_work(held, moment):
    """Who holds what at that moment."""
    found = []
    for key, times in held.items():
        last = bisect.bisect_right(times, (moment, float("inf"))) - 1
        if last >= 0 and moment < times[last][1]:
            found.append(key)
    return sorted(found)


if __name__ == "__main__":
    unittest.main()
