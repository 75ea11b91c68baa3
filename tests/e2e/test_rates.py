"""Rates that berthd learns from what jobs report: by type, across jobs and restarts; and what is
believed of jobs that report little or nothing."""
import json
import os
import subprocess
import sys
import time
import unittest

from live import BUILD, Daemon, until

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "typed_job.py")


class Rates(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon("--policy", "fifo", gpus="v100:1,k80:1").start()
        self.addCleanup(self.daemon.wipe)

    def train(self, steps, speeds=(100, 25), **request):
        """A job that makes so many steps a second on each type."""
        return self.daemon.submit(sys.executable, "-I", "-S", JOB, str(steps),
                                  ",".join(map(str, speeds)), "1,1",
                                  steps=steps, grace_s=20, **request)

    def berth(self, *words):
        done = subprocess.run([os.path.join(BUILD, "berth"), *words, "--socket",
                               self.daemon.socket], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def rates(self, kind):
        rows = self.daemon.ask("GET", f"/v1/rates?kind={kind}")[1]["rates"]
        return {row["type"]: row for row in rows}

    def near(self, rate, truth):
        self.assertGreater(rate, 0.7 * truth)
        self.assertLess(rate, 1.4 * truth)

    def test_each_type_has_the_rate_that_jobs_had_there(self):
        both = [self.train(steps, kind="net", types=name)
                for name, steps in (("v100", 200), ("k80", 60))]
        for job in both:
            self.assertEqual(self.daemon.wait(job)["state"], "COMPLETED")
        rates = self.rates("net")
        self.assertEqual({row["basis"] for row in rates.values()}, {"measured"})
        self.near(rates["v100"]["steps_per_s"], 100)
        self.near(rates["k80"]["steps_per_s"], 25)
        self.assertGreaterEqual(rates["k80"]["n"], 1)

        # Another kind that was seen on one type gains on the other as this one does.
        self.daemon.wait(self.train(300, kind="other", types="v100", speeds=(200, 50)))
        other = self.rates("other")
        self.assertEqual(other["k80"]["basis"], "estimated")
        self.assertLess(other["k80"]["low"], other["k80"]["steps_per_s"])
        self.assertLess(other["k80"]["steps_per_s"], 0.6 * other["v100"]["steps_per_s"])
        self.assertIn("estimated", self.berth("rates", "other"))

        # All of it is there after a restart, and the next job starts with it.
        before = self.rates("net")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.rates("net"), before)
        job = self.train(100000, kind="net")
        shown = self.daemon.wait(job, {"RUNNING"})
        self.assertEqual(shown["placement"][0]["type"], "v100") # the faster one is free
        self.assertEqual({rate["type"]: rate["basis"] for rate in shown["rates"]},
                         {"v100": "measured", "k80": "measured"})
        self.assertRegex(self.berth("show", str(job)), r" v100 +[\d.]+ steps/s .*measured")
        self.near(shown["progress"]["eta_s"], 1000)
        self.daemon.ask("DELETE", f"/v1/jobs/{job}")

    def test_history_becomes_a_table_for_simulations(self):
        for name, steps in (("v100", 150), ("k80", 50)):
            self.daemon.wait(self.train(steps, kind="net, 1", types=name))
        table = os.path.join(self.daemon.dir, "rates.csv")
        jobs = os.path.join(self.daemon.dir, "jobs.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write(self.berth("rates", "--csv"))
        with open(jobs, "w", encoding="utf-8") as file:
            file.write('#berth-jobs 1\nsubmit_s,kind,gpus,steps\n0,"net, 1",1,1000\n')
        answer = subprocess.run([os.path.join(BUILD, "berth"), "sim", "--cluster", "v100:1,k80:1",
                                 "--workload", jobs, "--throughputs", table, "--policy", "fifo",
                                 "--json"], stdout=subprocess.PIPE, check=True, text=True)
        self.near(json.loads(answer.stdout)["makespan_s"], 10)

    def test_jobs_of_one_name_and_program_are_one_kind(self):
        for seed in (7, 12):
            self.daemon.wait(self.train(150, name=f"seed-{seed}", types="v100"))
        kinds = {row["kind"] for row in self.daemon.ask("GET", "/v1/rates")[1]["rates"]}
        self.assertEqual(len(kinds), 1, kinds)
        self.assertRegex(kinds.pop(), r"^seed-#:typed_job\.py:[^:]+:1$")

    def test_nothing_is_invented_for_a_job_that_reports_nothing(self):
        job = self.daemon.sh("sleep 1000", steps=3)
        progress = self.daemon.wait(job, {"RUNNING"})["progress"]
        self.assertNotIn("eta_s", progress)
        self.assertEqual(progress["step"], 0)
        self.assertIn("0 % · –", self.berth("queue"))
        self.daemon.ask("DELETE", f"/v1/jobs/{job}")
        told = self.daemon.sh("sleep 1000", steps=3, step_time_s=0.1)
        self.daemon.wait(told, {"RUNNING"})
        until(lambda: self.daemon.job(told)["progress"]["step"] == 3)
        self.assertNotIn("eta_s", self.daemon.job(told)["progress"])
        self.assertIn("99 % · –", self.berth("queue"))

    def test_remaining_times_are_right_after_a_tenth_of_the_run(self):
        jobs = [self.train(steps, speeds=speeds, kind=str(steps))
                for steps, speeds in ((300, (80, 30)), (110, (90, 40)), (250, (70, 50)))]
        samples = []
        def sample():
            now = time.time()
            live = self.daemon.ask("GET", "/v1/jobs")[1]["jobs"]
            samples.extend((job["id"], now, job["progress"].get("eta_s"))
                           for job in live if job["state"] == "RUNNING")
            return not live
        until(sample)
        ends = {job: self.daemon.job(job) for job in jobs}
        judged = []
        for job, now, expected in samples:
            left, run = ends[job]["end"] - now, ends[job]["end"] - ends[job]["start"]
            if left < 0.9 * run:
                judged.append(expected is not None and abs(expected - left) <= 0.2 * left)
        self.assertGreater(len(judged), 100)
        self.assertGreaterEqual(sum(judged), 0.9 * len(judged))

    def test_a_silent_job_that_saved_keeps_what_it_should_have_made(self):
        job = self.daemon.sh('[ "$BERTH_ATTEMPT" = 0 ] || exec sleep 1000; sleep 2; exit 85',
                             steps=1000, step_time_s=0.01, grace_s=20)
        shown = until(lambda: (self.daemon.job(job)["attempt"] == 1 and
                               self.daemon.job(job)))
        self.assertGreaterEqual(shown["progress"]["step"], 150)


if __name__ == "__main__":
    unittest.main()
