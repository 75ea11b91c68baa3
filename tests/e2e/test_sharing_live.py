"""Jobs that share a GPU on one machine: who may, what is learned of them, how a pair ends."""
import os
import subprocess
import sys
import unittest

from live import BUILD, Daemon, until

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "typed_job.py")
PAIRS = "gavel-las,sharing=true,round=1"


class Sharing(unittest.TestCase):
    def start(self, *flags):
        self.daemon = Daemon("--policy", PAIRS, *flags, gpus="v100:1").start()
        self.addCleanup(self.daemon.wipe)

    def train(self, steps=100000, **request):
        """A job that makes 50 steps a second, whoever is beside it."""
        return self.daemon.submit(sys.executable, "-I", "-S", JOB, str(steps), "50", "1",
                                  steps=steps, grace_s=20, **request)

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

    def test_jobs_that_say_so_share_and_what_they_keep_is_learned(self):
        self.start()
        jobs = [self.train(shared=True, kind=kind) for kind in ("a", "b")]
        self.paired(*jobs)
        until(lambda: all(self.pairs().get(key, {"n": 0})["n"] >= 3
                          for key in (("a", "b"), ("b", "a"))))
        for row in self.pairs().values():
            self.assertEqual(row["type"], "v100")
            self.assertGreater(row["kept"], 0.5) # they only sleep
        shown = subprocess.run([os.path.join(BUILD, "berth"), "rates", "--socket",
                                self.daemon.socket], stdout=subprocess.PIPE, check=True,
                               text=True).stdout
        self.assertRegex(shown, r"\na +b +v100 +\d+ % +\d+\n")

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

    def never_beside(self, jobs):
        """They take turns to their end."""
        seen = set()
        def watch():
            seen.update(self.beside(job) for job in jobs)
            return all(self.daemon.job(job)["state"] == "COMPLETED" for job in jobs)
        until(watch)
        self.assertEqual(seen, {None})

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


if __name__ == "__main__":
    unittest.main()
