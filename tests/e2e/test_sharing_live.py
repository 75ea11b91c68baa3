"""Jobs that share a GPU on one machine: who may, what is learned of them, how a pair ends."""
import os
import signal
import re
import subprocess
import sys
import unittest

from live import BUILD, Daemon, Wire, until

HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = ("--policy", "gavel-las,sharing=true,round=1")


class Scene(unittest.TestCase):
    def start(self, *flags, gpus="v100:1"):
        self.daemon = Daemon(*flags, gpus=gpus).start()
        self.addCleanup(self.daemon.wipe)

    def submit(self, steps, program, *words, **request):
        return self.daemon.submit(sys.executable, "-I", "-S", os.path.join(HERE, program),
                                  str(steps), *words, steps=steps, grace_s=20, **request)

    def train(self, steps=100000, **request):
        """A job that makes 50 steps a second, whoever is beside it."""
        return self.submit(steps, "typed_job.py", "50", "1", **request)

    def crowd(self, steps):
        """One that makes 20 steps a second alone, and a third of that beside another like it."""
        return self.submit(steps, "device_job.py", "20", os.path.join(self.daemon.dir, "device"),
                           shared=True, kind="heavy")

    def beside(self, job):
        return self.daemon.job(job).get("beside")

    def paired(self, one, other):
        until(lambda: self.beside(one) == other and self.beside(other) == one)
        for job in (one, other):
            shown = self.daemon.wait(job, {"RUNNING"})
            self.assertEqual(shown["placement"][0]["gpus"], [0])

    def end(self, *jobs):
        for job in jobs:
            self.daemon.ask("DELETE", f"/v1/jobs/{job}")
            self.daemon.wait(job)

    def pairs(self):
        return {(row["kind"], row["beside"]): row
                for row in self.daemon.ask("GET", "/v1/rates")[1]["pairs"]}

    def measured(self, kind):
        """A report of a job that ran alone."""
        until(lambda: any(row["kind"] == kind and row["basis"] == "measured"
                          for row in self.daemon.ask("GET", "/v1/rates")[1]["rates"]))

    def never_beside(self, jobs):
        """They take turns to their end."""
        seen = set()
        def watch():
            seen.update(self.beside(job) for job in jobs)
            return all(self.daemon.job(job)["state"] == "COMPLETED" for job in jobs)
        until(watch)
        self.assertEqual(seen, {None})


class Rounds(Scene):
    """A policy that makes pairs by shares of time."""

    def start(self, *flags):
        super().start(*PAIRS, *flags)

    def test_jobs_that_say_so_share_and_what_they_keep_is_learned(self):
        self.start()
        jobs = [self.train(shared=True, kind=kind) for kind in ("a", "b")]
        self.paired(*jobs)
        until(lambda: all(self.pairs().get(key, {"n": 0})["n"] >= 3
                          for key in (("a", "b"), ("b", "a"))))
        for (kind, beside), row in self.pairs().items():
            self.assertEqual((row["type"], row["basis"]),
                             ("v100", "estimated" if kind == beside else "measured"))
            self.assertGreater(row["kept"], 0.5) # they only sleep
            self.assertTrue(kind != beside or row["low"] < row["kept"] < row["high"])
        shown = self.says("rates")
        self.assertRegex(shown, r"\na +b +v100 +\d+ % +measured +\d+\n")
        self.assertRegex(shown, r"\na +a +v100 +\d+ % +\d+ % +\d+ % +estimated\n")

        # All of it is there after a restart.
        self.end(*jobs)
        before = self.pairs()
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.pairs(), before)

    def test_the_end_of_one_leaves_the_other_in_place(self):
        self.start()
        one, other = [self.train(shared=True, kind=kind) for kind in ("a", "b")]
        self.paired(one, other)
        attempt = self.daemon.job(other)["attempt"]
        self.end(one)
        until(lambda: self.beside(other) is None)
        shown = self.daemon.job(other)
        self.assertEqual((shown["state"], shown["attempt"]), ("RUNNING", attempt))

    def says(self, *words):
        """What the command line prints into a pipe."""
        return subprocess.run([os.path.join(BUILD, "berth"), *words, "--socket",
                               self.daemon.socket], stdout=subprocess.PIPE, check=True,
                              text=True).stdout

    def test_the_command_line_says_who_shares_with_whom(self):
        self.start()
        one, other = [self.train(shared=True, kind=kind) for kind in ("a", "b")]
        self.paired(one, other)
        until(lambda: self.daemon.job(one).get("kept", 0) > 0.5)
        self.assertRegex(self.says("queue"), rf"\n *{one} .* {other}, \d+ %")
        self.assertRegex(self.says("nodes"), rf" 0:{one}\+{other}\n")
        kept = rf"\d+ % of its speed \(job {other}: \d+ %\)"
        shown = self.says("show", str(one))
        self.assertRegex(shown, rf"\nbeside +job {other}, keeps {kept}\n")
        self.assertRegex(shown, rf"\nshared +.* beside job {other}, kept {kept}, gained ")
        self.assertRegex(self.says("ledger"), r"(?m)^Sharing: 1 pair, .* gained, .* by stops\.$")
        self.end(one)
        until(lambda: self.beside(other) is None)
        self.assertNotIn("BESIDE", self.says("queue"))
        self.assertRegex(self.says("show", str(one)), rf"\nshared +.* beside job {other}, kept ")

    def figures(self):
        return self.daemon.ask("GET", "/v1/ledger")[1].get("sharing", {"pairs": 0})

    def metric(self, name):
        wire = Wire(self.daemon.socket)
        wire.request("GET", "/metrics")
        text = wire.getresponse().read().decode()
        wire.close()
        return float(re.search(rf"^{name} (\S+)$", text, re.M).group(1))

    def test_what_sharing_brought_is_booked_across_a_restart(self):
        self.start()
        one, other = [self.train(shared=True, kind=kind) for kind in ("a", "b")]
        self.paired(one, other)
        until(lambda: self.daemon.job(one).get("kept", 0) > 0.5) # they only sleep
        self.assertEqual(self.metric("berth_pairs"), 1)
        [pair] = self.daemon.job(one)["sharing"]
        self.assertEqual(pair["beside"], other)
        before = self.figures()
        self.assertEqual((before["pairs"], before["running"]), (1, 1))

        self.daemon.kill()
        self.daemon.start()
        [again] = self.daemon.job(one)["sharing"]
        self.assertEqual(again["from"], pair["from"])
        self.assertGreaterEqual(again["shared_s"], pair["shared_s"])
        self.end(other)
        until(lambda: self.beside(one) is None)
        [ended] = self.daemon.job(other)["sharing"]
        self.assertEqual((ended["beside"], ended["from"]), (one, pair["from"]))
        self.assertGreater(ended["to"], ended["from"])
        self.assertGreater(ended["kept"] + ended["beside_kept"], 1)
        self.assertAlmostEqual(ended["gained_gpu_s"], ended["shared_s"]
                               * (ended["kept"] + ended["beside_kept"] - 1), places=6)
        after = self.figures()
        self.assertEqual((after["pairs"], after["running"]), (1, 0))
        self.assertAlmostEqual(after["gained_gpu_s"], ended["gained_gpu_s"], places=6)
        self.assertAlmostEqual(self.metric("berth_shared_gpu_seconds_total"),
                               ended["shared_s"], places=6)

    def test_jobs_that_do_not_say_so_never_share(self):
        self.start()
        self.never_beside([self.train(250, kind="a", shared=True), self.train(250, kind="b")])

    def configure(self, text):
        """The same berthd, started with this in its configuration."""
        self.start()
        self.daemon.kill()
        config = os.path.join(self.daemon.dir, "berthd.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        self.daemon.flags += ["--config", config]
        self.daemon.start()

    def test_jobs_that_share_are_told_of_mps(self):
        self.configure("sharing: {mps: /run/nvidia-mps}\n")
        said = {}
        for shared in (True, False):
            job = self.daemon.sh("env | grep ^CUDA_MPS; true", shared=shared,
                                 gpu_memory_bytes=6 << 30, env={"PATH": os.environ["PATH"],
                                                                "CUDA_MPS_PIPE_DIRECTORY": "/x"})
            self.daemon.wait(job)
            with open(f"{self.daemon.state}/log/{job}.out", encoding="utf-8") as file:
                said[shared] = sorted(file.read().split())
        self.assertEqual(said[True], ["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=6144M",
                                      "CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps"])
        self.assertEqual(said[False], ["CUDA_MPS_PIPE_DIRECTORY=/x"]) # its own

    def test_the_administrator_may_forbid_it(self):
        self.configure("sharing: {allow: false}\n")
        self.never_beside([self.train(200, kind=kind, shared=True) for kind in ("a", "b")])


class ByDefault(Scene):
    """The policy that berthd has unless it is told another."""

    def pair(self):
        """Two jobs of a new kind: the first is measured alone, the second joins it in its place."""
        one = self.train(shared=True, kind="a")
        self.measured("a")
        other = self.train(shared=True, kind="a")
        self.paired(one, other)
        self.assertEqual(self.daemon.job(one)["attempt"], 0)
        return one, other

    def test_a_pair_of_a_new_kind_is_tried(self):
        self.start()
        one, other = self.pair()
        until(lambda: self.pairs().get(("a", "a"), {"n": 0})["n"] >= 3)
        self.assertEqual((self.beside(one), self.beside(other)), (other, one)) # it is worth it

    def test_jobs_that_do_not_say_so_wait(self):
        self.start()
        first = self.train(150, kind="a")
        self.measured("a")
        self.never_beside([first, self.train(50, kind="a", shared=True),
                           self.train(50, kind="a")])

    def test_a_pair_that_does_harm_is_parted_and_not_formed_again(self):
        self.start()
        jobs = [self.crowd(300)]
        self.measured("heavy")
        jobs.append(self.crowd(200))
        self.paired(*jobs)
        until(lambda: [self.beside(job) for job in jobs] == [None, None])
        self.assertGreaterEqual(self.pairs()["heavy", "heavy"]["n"], 2)
        self.never_beside(jobs)

    def test_light_jobs_share_a_processor(self):
        """Really: each GPU is a processor, and each job wants a fifth of it."""
        self.start(gpus="v100:1@cpu")
        jobs = []
        for _ in range(2):
            jobs.append(self.daemon.submit(
                sys.executable, os.path.join(HERE, "..", "..", "examples", "busy.py"), "--steps",
                "100000", "--busy", "0.2", steps=100000, grace_s=20, shared=True, kind="light"))
            self.measured("light")
        self.paired(*jobs)
        until(lambda: self.pairs().get(("light", "light"), {"n": 0})["n"] >= 2)

    def test_a_pair_outlives_berthd(self):
        self.start()
        jobs = self.pair()
        attempts = [self.daemon.job(job)["attempt"] for job in jobs]
        self.daemon.kill()
        self.daemon.start()
        self.paired(*jobs)
        self.assertEqual([self.daemon.job(job)["attempt"] for job in jobs], attempts)
        reports = self.pairs().get(("a", "a"), {"n": 0})["n"]
        until(lambda: self.pairs().get(("a", "a"), {"n": 0})["n"] > reports) # it is measured on

    def test_the_crash_of_one_leaves_the_other_in_place(self):
        self.start()
        other = self.train(shared=True, kind="a")
        self.measured("a")
        program = os.path.join(HERE, "typed_job.py")
        one = self.daemon.sh(f"echo $$ > pid.new; mv pid.new pid; exec {sys.executable} -I -S "
                             f"{program} 100000 50 1", steps=100000, shared=True, kind="a")
        self.paired(one, other)
        with open(os.path.join(self.daemon.dir, "pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.assertEqual(self.daemon.wait(one)["state"], "FAILED")
        until(lambda: self.beside(other) is None)
        shown = self.daemon.job(other)
        self.assertEqual((shown["state"], shown["attempt"]), ("RUNNING", 0))

    def test_a_trial_job_takes_the_gpus_of_both(self):
        self.start()
        one, other = self.pair()
        trial = self.train(50, **{"class": "te"})
        self.daemon.wait(trial, {"RUNNING"})
        self.assertEqual([self.beside(job) for job in (one, other)], [None, None])
        self.assertNotIn("RUNNING", {self.daemon.job(job)["state"] for job in (one, other)})
        self.daemon.wait(trial)
        self.paired(one, other)


if __name__ == "__main__":
    unittest.main()
