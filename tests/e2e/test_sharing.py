"""Jobs that share, end to end: published runs with pairs, and what sharing brings."""
import csv
import json
import os
import unittest

import support

CASES = ["medium-fifo_packed", "medium-max_min_fairness_packed",
         "medium-finish_time_fairness_packed", "medium-max_min_fairness_water_filling_packed",
         "medium-min_total_duration_packed", "small-fifo_packed"]


class Published(support.Case):
    """The recorded shares of pairs lead to the recorded completion times."""

    def test_every_job_ends_when_it_did(self):
        if not support.DATA:
            self.skipTest("BERTH_DATA not set")
        gavel = os.path.join(support.DATA, "gavel")
        for case in CASES:
            with self.subTest(case=case):
                golden = os.path.join(support.DATA, "gavel-golden", "sim", case)
                trace = f"{case.split('-')[0]}_test.trace"
                done = self.berth(
                    "sim", "--cluster", "v100:2,p100:2,k80:2",
                    "--workload", os.path.join(gavel, "traces", "physical_cluster", trace),
                    "--throughputs", os.path.join(gavel, "simulation_throughputs.json"),
                    "--policy", "gavel-fifo,compat=released,sharing=true,allocations="
                    + os.path.join(golden, "allocations.jsonl.gz"),
                    "--jobs-out", self.path("jobs.csv"))
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(os.path.join(golden, "jobs.csv"), encoding="ascii") as file:
                    published = {int(row["job_id"]) + 1: float(row["jct_s"])
                                 for row in csv.DictReader(file)}
                with open(self.path("jobs.csv"), encoding="ascii") as file:
                    measured = {int(row["id"]): float(row["jct_s"])
                                for row in csv.DictReader(file)}
                self.assertEqual(measured.keys(), published.keys())
                for job, jct_s in published.items():
                    self.assertLess(abs(measured[job] - jct_s), 1e-9 * jct_s + 1e-9)


class Ours(support.Case):
    """Under load jobs that share are done earlier; the cluster is not used twice."""

    def run_las(self, settings, *flags):
        done = self.berth("sim", "--cluster", "v100:4,p100:4,k80:4",
                          "--workload", "gavel:lam=4000", "--window", "0:60",
                          "--policy", f"gavel-las{settings}", "--json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_sharing_pays(self):
        alone = self.run_las("")
        shared = self.run_las(",sharing=true")
        self.assertLess(shared["jct_s"]["mean"], alone["jct_s"]["mean"])
        self.assertLessEqual(shared["gpu_utilization"], 1 + 1e-9)
        self.assertNotIn("sharing", alone)
        figures = shared["sharing"]
        self.assertGreater(figures["pairs"], 0)
        self.assertGreater(figures["gained_gpu_s"], 0)
        self.assertLessEqual(figures["gained_gpu_s"], figures["shared_gpu_s"]) # both keep all

    def test_in_the_trace_no_track_has_two_jobs_at_a_time(self):
        self.run_las(",sharing=true", "--trace-out", self.path("trace.json"))
        with open(self.path("trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        tracks, names = {}, {}
        for event in events:
            track = (event["pid"], event.get("tid"))
            if event["ph"] == "X":
                tracks.setdefault(track, []).append((event["ts"], event["ts"] + event["dur"]))
            elif event["name"] == "thread_name":
                self.assertNotIn(track, names)
                names[track] = event["args"]["name"]
        for track, spans in tracks.items():
            self.assertIn(track, names)
            spans.sort()
            for (_, end), (start, _) in zip(spans, spans[1:]):
                self.assertLessEqual(end, start + 0.001) # microseconds
        self.assertTrue(any("second job" in names[track] for track in tracks))


if __name__ == "__main__":
    unittest.main()
