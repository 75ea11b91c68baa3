"""Shards of GPUs (gres/shard) on a real Slurm: what counts, who shares, what is learned."""
import re
import unittest

from live import until
from slurm_lab import Lab, missing
from test_slurm import Slurmed, state

PAIRS = "gavel-las,sharing=true,round=3"
# Ten steps a second, saved at USR1; and which GPU it has, each time it starts.
TRAINS = """#SBATCH --signal=B:USR1@10
trap 'exit 85' USR1
f={work}/$SLURM_JOB_ID.progress
echo $CUDA_VISIBLE_DEVICES >> {work}/$SLURM_JOB_ID.gpu
touch $f
step=$(tail -n 1 $f | cut -d' ' -f1)
while sleep 0.1; do step=$((step + 1)); echo $step - >> $f; done
"""


@unittest.skipIf(missing(), missing())
class Shards(unittest.TestCase):
    """One node of four GPUs with two shards each."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(nodes=1)
        cls.addClassCleanup(cls.lab.down)

    def setUp(self):
        self.daemon = None
        self.addCleanup(self.clear)

    def clear(self):
        def none_left(): # one that has just left with 85 is put back into the queue
            self.lab.run("scancel", "-u", "nobody")
            return not self.lab.run("squeue", "-h", "-a").stdout.strip()
        until(none_left)
        if self.daemon:
            self.daemon.wipe()

    def begin(self, policy="fitgpp", more=""):
        self.daemon = Slurmed(self.lab, policy=policy, more=more)
        self.daemon.start()
        return self.daemon

    def foreign(self, *flags):
        """A job of a partition that Berth does not look after, once it runs."""
        ident = self.lab.submit("-p", "other", *flags)
        until(lambda: state(self.lab, ident) == "RUNNING")
        return ident

    def train(self, kind, shards=1):
        progress = f"{self.lab.work}/%j.progress"
        return self.lab.submit(
            f"--gres=shard:{shards}", f"--comment=berth:kind={kind};steps=100000;progress={progress}",
            script=TRAINS.format(work=self.lab.work))

    def gpu(self, ident):
        """By Slurm's number."""
        shown = self.lab.run("scontrol", "-d", "show", "job", str(ident)).stdout
        return int(re.search(r"IDX:(\d+)\)", shown).group(1))

    def running(self, *jobs):
        return [job for job in jobs if state(self.lab, job) == "RUNNING"]

    def beside(self, ident):
        return self.daemon.job(ident).get("beside")

    def pairs(self):
        return {(row["kind"], row["beside"]): row
                for row in self.daemon.ask("GET", "/v1/rates")[1]["pairs"]}

    def fill(self, count):
        """Jobs that stay where they are, on whole GPUs."""
        for _ in range(count):
            self.daemon.until(self.lab.submit("--gres=gpu:1", "--no-requeue"), "RUNNING")

    def test_a_policy_that_shares_makes_pairs_of_them(self):
        daemon = self.begin(PAIRS)
        self.fill(3)
        one, other = [self.train(kind) for kind in ("a", "b")]
        daemon.seen(one)
        daemon.seen(other)
        until(lambda: self.beside(one) == other and self.beside(other) == one
              and self.running(one, other) == [one, other])
        self.assertEqual(self.gpu(one), self.gpu(other))
        until(lambda: all(self.pairs().get(key, {"n": 0})["n"] >= 3
                          for key in (("a", "b"), ("b", "a"))))
        for row in self.pairs().values():
            self.assertEqual(row["type"], "v100")
            self.assertGreater(row["kept"], 0.5) # they only sleep

        # The end of one leaves the other where it is, and its GPU is not free.
        attempt = daemon.job(other)["attempt"]
        self.lab.run("scancel", str(one))
        daemon.until(one, "CANCELLED")
        until(lambda: self.beside(other) is None)
        self.assertEqual((daemon.job(other)["state"], daemon.job(other)["attempt"]),
                         ("RUNNING", attempt))

    def test_the_default_policy_makes_pairs_while_many_jobs_wait(self):
        daemon = self.begin("berth")
        self.fill(3)
        one = self.train("a")
        daemon.until(one, "RUNNING")
        until(lambda: any(row["n"] >= 3 for row in daemon.ask("GET", "/v1/rates")[1]["rates"]))
        others = [self.train("a") for _ in range(8)]
        for job in others:
            daemon.seen(job)
        until(lambda: self.beside(one) in others)
        other = self.beside(one)
        until(lambda: self.running(one, other) == [one, other])
        self.assertEqual(self.gpu(one), self.gpu(other))
        until(lambda: self.pairs().get(("a", "a"), {"n": 0})["n"] >= 3)
        self.assertEqual(daemon.job(one)["attempt"], 0)

    def test_those_that_do_not_fit_take_turns(self):
        daemon = self.begin(PAIRS)
        self.fill(3)
        jobs = [self.train("a"), self.train("b", shards=2)]
        for job in jobs:
            daemon.seen(job)
        seen = set()
        def watch():
            seen.update(self.beside(job) for job in jobs)
            return all(daemon.job(job)["attempt"] >= 1 for job in jobs)
        until(watch)
        self.assertEqual(seen, {None})

    def test_without_such_a_policy_each_counts_as_a_gpu(self):
        daemon = self.begin()
        jobs = [self.lab.submit("--gres=shard:1") for _ in range(4)]
        for job in jobs:
            shown = daemon.until(job, "RUNNING")
            self.assertEqual((shown["gpus"], shown.get("beside")), (1, None))
        self.assertEqual(self.gpu(jobs[0]), self.gpu(jobs[1])) # as Slurm has it
        more, whole = [self.lab.submit(flag) for flag in ("--gres=shard:1", "--gres=gpu:1")]
        for job in (more, whole):
            self.assertEqual(daemon.seen(job)["state"], "PENDING")
        # Slurm would give the whole one the GPU of which a shard has been given back.
        self.lab.run("scancel", str(jobs[0]))
        daemon.until(more, "RUNNING")
        self.assertEqual((daemon.job(whole)["state"], state(self.lab, whole)),
                         ("PENDING", "PENDING"))

    def test_those_of_others_count(self):
        daemon = self.begin()
        others = [self.foreign("--gres=shard:1"), self.foreign("--gres=shard:2")]
        self.assertEqual([self.gpu(job) for job in others], [0, 1])
        until(lambda: daemon.ask("GET", "/v1/server")[1]["gpus"]["foreign"] == 2)
        # Slurm puts ours beside the first of theirs, which is one GPU, not two.
        mine = self.lab.submit("--gres=shard:1")
        daemon.until(mine, "RUNNING")
        self.assertEqual(self.gpu(mine), 0)
        until(lambda: daemon.ask("GET", "/v1/server")[1]["gpus"] ==
              {"total": 4, "held": 1, "foreign": 1})
        whole = self.lab.submit("--gres=gpu:3")
        self.assertEqual(daemon.seen(whole)["state"], "PENDING")
        self.lab.run("scancel", *map(str, others), str(mine))
        daemon.until(whole, "RUNNING")

    def test_what_was_there_before_is_adopted(self):
        jobs = [self.lab.submit("--gres=shard:1") for _ in range(8)]
        for job in jobs:
            self.lab.run("scontrol", "release", str(job))
        until(lambda: self.running(*jobs) == jobs)
        daemon = self.begin()
        for job in jobs:
            self.assertEqual(daemon.until(job, "RUNNING")["attempt"], 0)
        for job in jobs:
            self.assertEqual(self.gpu(self.beside(job)), self.gpu(job))
        whole = self.lab.submit("--gres=gpu:1")
        self.assertEqual(daemon.seen(whole)["state"], "PENDING")

    def test_more_than_a_gpu_has(self):
        daemon = self.begin()
        three = self.lab.submit("--gres=shard:3")
        until(lambda: "no GPU has more than 2" in
              self.lab.run("scontrol", "show", "job", str(three)).stdout)
        typed = self.lab.submit("--gres=shard:v100:2")
        self.assertEqual(daemon.until(typed, "RUNNING")["gpus"], 1)
        self.assertEqual(state(self.lab, three), "PENDING")


if __name__ == "__main__":
    unittest.main()
