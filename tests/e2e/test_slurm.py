"""berthd on a real Slurm: jobs by sbatch, decisions by Berth."""
import json
import os
import signal
import subprocess
import time
import unittest

from live import BUILD, Daemon
from slurm_lab import Lab, missing

TRAPS = """trap 'echo saved >> {log}; exit 85' USR1
echo start $SLURM_RESTART_COUNT >> {log}
for i in $(seq 1000); do sleep 0.1; done
"""


class Slurmed(Daemon):
    """A berthd that looks after the partition gpu of a lab."""

    def __init__(self, lab, *flags, policy="fitgpp", more=""):
        self.lab = lab
        self.config = os.path.join(lab.dir, f"berthd.{time.monotonic_ns()}.yaml")
        with open(self.config, "w", encoding="ascii") as file:
            file.write(f"slurm_bell: {lab.bell}\nfence_s: 3\n" + more)
        super().__init__("--executor", "slurm:partition=gpu", "--policy", policy,
                         "--config", self.config, *flags, gpus=None)

    def start(self, **kwargs):
        return super().start(env=self.lab.env, **kwargs)

    def nodes_of(self, ident):
        return sorted(seat["node"] for seat in self.job(ident).get("placement", []))

    def seen(self, ident, seconds=30):
        """The job, once Berth has heard of it."""
        end = time.monotonic() + seconds
        while self.ask("GET", f"/v1/jobs/{ident}")[0] != 200:
            if time.monotonic() > end:
                raise AssertionError(f"no job {ident}: {self.words()}")
            time.sleep(0.05)
        return self.job(ident)

    def until(self, ident, states, seconds=60):
        self.seen(ident)
        return self.wait(ident, set(states.split()), seconds)


def state(lab, ident):
    return lab.run("squeue", "-h", "-a", "-t", "all", "-o", "%T", "-j", str(ident)).stdout.strip()


def reason(lab, ident):
    return lab.run("squeue", "-h", "-a", "-t", "all", "-o", "%r", "-j", str(ident)).stdout.strip()


@unittest.skipIf(missing(), missing())
class OnSlurm(unittest.TestCase):
    """One Slurm for all; a berthd each."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.addClassCleanup(cls.lab.down)

    def setUp(self):
        self.daemon = None
        self.addCleanup(self.clear)

    def clear(self):
        self.lab.run("scancel", "-u", "nobody")
        end = time.monotonic() + 30
        while self.lab.run("squeue", "-h", "-a").stdout.strip():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        if self.daemon:
            words = self.daemon.words()
            self.daemon.wipe()
            self.assertNotIn("nothing was changed", words)

    def begin(self, *flags, policy="fitgpp", more=""):
        self.daemon = Slurmed(self.lab, *flags, policy=policy, more=more)
        self.daemon.start()
        return self.daemon

    def wait_for(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end, self.daemon.words())
            time.sleep(0.05)

    def log(self, name):
        path = os.path.join(self.lab.work, name)
        if os.path.exists(path):
            os.remove(path)
        return path

    def test_a_script_that_knows_nothing_of_berth(self):
        daemon = self.begin()
        ident = self.lab.submit("--gres=gpu:2", script="echo $CUDA_VISIBLE_DEVICES; exit 3")
        job = daemon.until(ident, "FAILED")
        self.assertEqual(job["exit_code"], 3)
        self.assertEqual(job["user"], "nobody")
        good = self.lab.submit("--gpus=1", "-J", "fine", script="hostname")
        self.assertEqual(daemon.until(good, "COMPLETED")["name"], "fine")
        self.assertEqual(len(self.lab.output(f"{ident}.out").strip().split(",")), 2)

    def test_a_gang_gets_whole_nodes_of_its_type(self):
        daemon = self.begin()
        gang = self.lab.submit("-N2", "--gres=gpu:v100:4")
        daemon.until(gang, "RUNNING")
        self.assertEqual(daemon.nodes_of(gang), ["n1", "n4"])
        nodes = self.lab.run("squeue", "-h", "-o", "%N", "-j", str(gang)).stdout.strip()
        self.assertEqual(nodes, "n[1,4]")

    def test_nodes_by_name_and_by_feature(self):
        daemon = self.begin()
        for flags, nodes in ((["-w", "n3"], ["n3"]), (["-x", "n[1-3]"], ["n4"]),
                             (["-C", "p100"], ["n2"]), (["-C", "p100|k80", "-x", "n2"], ["n3"]),
                             (["-N2", "-w", "n4"], ["n1", "n4"])):
            ident = self.lab.submit("--gres=gpu:1", *flags)
            daemon.until(ident, "RUNNING")
            self.assertEqual(daemon.nodes_of(ident), nodes, flags)
            self.lab.run("scancel", str(ident))

    def updates(self, ident):
        """How often Slurm was asked to change this job."""
        with open(os.path.join(self.lab.dir, "log", "slurmctld.log"), encoding="utf-8") as file:
            return sum(f"update_job: complete JobId={ident} " in line for line in file)

    def test_a_job_that_nobody_can_start_is_left_alone(self):
        """It asks for two types of GPU on one node: Slurm holds it whenever it is released."""
        self.begin()
        ident = self.lab.submit("--gres=gpu:v100:1,gpu:p100:1")
        self.wait_for(lambda: reason(self.lab, ident) == "BadConstraints")
        before = self.updates(ident)
        time.sleep(3)
        self.assertLessEqual(before, 2)
        self.assertEqual(self.updates(ident), before)

    def test_a_job_that_waits_for_another_costs_nothing(self):
        daemon = self.begin()
        first = self.lab.submit("--gres=gpu:1")
        daemon.until(first, "RUNNING")
        second = self.lab.submit("--gres=gpu:1", f"--dependency=afterok:{first}", script="true")
        daemon.seen(second)
        time.sleep(3) # it is parked, and Slurm has looked at it once more
        before = self.updates(second)
        self.assertGreaterEqual(before, 1)
        time.sleep(4)
        self.assertLessEqual(self.updates(second) - before, 1)

    def test_shards_of_a_gpu(self):
        daemon = self.begin()
        two = [self.lab.submit("--gres=shard:1", "-w", "n2",
                               script="echo $CUDA_VISIBLE_DEVICES; sleep 100") for _ in range(2)]
        for ident in two:
            self.assertEqual(daemon.until(ident, "RUNNING")["gpus"], 1)
        whole = self.lab.submit("--gres=gpu:2", "-w", "n2")
        daemon.until(whole, "RUNNING")

    def test_another_size_for_those_who_want_it(self):
        daemon = self.begin(policy="fair,epoch=2s")
        log = self.log("sizes")
        ident = self.lab.submit("--gres=gpu:1", "-w", "n1",
                                "--comment=berth:min_gpus=1;max_gpus=4;sig=USR1;grace=20",
                                script=f"""
trap 'exit 85' USR1
echo $CUDA_VISIBLE_DEVICES >> {log}
for i in $(seq 1000); do sleep 0.1; done""")
        self.wide(daemon, ident, log)

    def wide(self, daemon, ident, log):
        end = time.monotonic() + 60
        while True:
            daemon.seen(ident)
            lines = self.lab.output(os.path.basename(log)).split()
            if lines and lines[-1].count(",") == 3:
                return
            self.assertLess(time.monotonic(), end, (lines, daemon.job(ident), daemon.words()))
            time.sleep(0.1)

    def test_a_trial_job_takes_the_place_of_one_that_saves_itself(self):
        daemon = self.begin()
        log = self.log("yields")
        script = "#SBATCH --signal=B:USR1@30\n" + TRAPS.format(log=log)
        victims = [self.lab.submit("--gres=gpu:4", script=script) for _ in range(4)]
        for victim in victims:
            daemon.until(victim, "RUNNING")
        self.wait_for(lambda: self.lab.output("yields").count("start") == 4)
        trial = self.lab.submit("--gres=gpu:4", "--comment=berth:class=te", script="sleep 2")
        daemon.until(trial, "RUNNING COMPLETED")
        evicted = [v for v in victims if daemon.job(v)["preemptions"] == 1]
        self.assertEqual(len(evicted), 1)
        daemon.until(trial, "COMPLETED")
        daemon.until(evicted[0], "RUNNING")
        self.wait_for(lambda: "start 1" in self.lab.output("yields"))
        self.assertIn("saved", self.lab.output("yields"))
        entries = daemon.ask("GET", "/v1/ledger")[1]["entries"]
        self.assertEqual([e["victim"] for e in entries], evicted)

    def test_one_that_requeues_itself_comes_back_held(self):
        daemon = self.begin()
        log = self.log("again")
        ident = self.lab.submit("--gres=gpu:4", script=f"""
echo run ${{SLURM_RESTART_COUNT:-0}} >> {log}
[ -n "$SLURM_RESTART_COUNT" ] && exit 0
scontrol requeue $SLURM_JOB_ID
sleep 100""")
        job = daemon.until(ident, "COMPLETED")
        self.assertEqual(job["preemptions"], 0)
        with open(log, encoding="ascii") as file:
            self.assertEqual(file.read(), "run 0\nrun 1\n")

    def test_cancelled_by_either_side(self):
        daemon = self.begin()
        runs = self.lab.submit("--gres=gpu:4")
        daemon.until(runs, "RUNNING")
        self.lab.run("scancel", str(runs))
        self.assertEqual(daemon.until(runs, "CANCELLED FAILED")["state"], "CANCELLED")
        other = self.lab.submit("--gres=gpu:4")
        daemon.until(other, "RUNNING")
        waits = self.lab.submit("-N2", "--gres=gpu:v100:4")
        daemon.seen(waits)
        for ident in (waits, other):
            self.assertEqual(daemon.ask("DELETE", f"/v1/jobs/{ident}")[0], 200)
            self.assertEqual(daemon.until(ident, "CANCELLED")["state"], "CANCELLED")
        end = time.monotonic() + 20
        while {state(self.lab, waits), state(self.lab, other)} != {"CANCELLED"}:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_what_was_there_before_is_adopted(self):
        running = self.lab.submit("--gres=gpu:4")
        self.lab.run("scontrol", "release", str(running))
        end = time.monotonic() + 30
        while state(self.lab, running) != "RUNNING":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        pending = self.lab.submit("--gres=gpu:4", "--begin=now+1000")
        daemon = self.begin()
        self.assertEqual(daemon.until(running, "RUNNING")["attempt"], 0)
        node = self.lab.run("squeue", "-h", "-o", "%N", "-j", str(running)).stdout.strip()
        self.assertEqual(daemon.nodes_of(running), [node])
        daemon.seen(pending)
        full = [self.lab.submit("--gres=gpu:4") for _ in range(4)]
        for ident in full[:3]:
            daemon.until(ident, "RUNNING")
        self.assertEqual(daemon.seen(full[3])["state"], "PENDING")

    def test_its_death_frees_nobody_and_kills_nobody(self):
        daemon = self.begin()
        runs = [self.lab.submit("--gres=gpu:4") for _ in range(4)]
        waits = self.lab.submit("--gres=gpu:4")
        for ident in runs:
            daemon.until(ident, "RUNNING")
        daemon.seen(waits)
        daemon.kill(signal.SIGKILL)
        self.lab.run("scancel", str(runs[0]))
        time.sleep(1.5)
        self.assertEqual(state(self.lab, waits), "PENDING")
        self.assertEqual({state(self.lab, ident) for ident in runs[1:]}, {"RUNNING"})
        daemon.start()
        daemon.until(waits, "RUNNING")
        self.assertEqual(daemon.until(runs[0], "CANCELLED")["state"], "CANCELLED")
        for ident in runs[1:]:
            job = daemon.job(ident)
            self.assertEqual((job["state"], job["attempt"]), ("RUNNING", 0))

    def test_an_array_and_its_limit(self):
        daemon = self.begin()
        first = self.lab.submit("--array=1-6%2", "--gres=gpu:1", script="sleep 0.5")
        end = time.monotonic() + 60
        most = 0
        while True:
            jobs = daemon.ask("GET", "/v1/jobs?history=true")[1]["jobs"]
            mine = [j for j in jobs if j.get("array_id") == first]
            most = max(most, sum(j["state"] == "RUNNING" for j in mine))
            if len(mine) == 6 and all(j["state"] == "COMPLETED" for j in mine):
                break
            self.assertLess(time.monotonic(), end, jobs)
            time.sleep(0.02)
        self.assertLessEqual(most, 2)
        self.assertEqual(sorted(j["array_index"] for j in mine), [1, 2, 3, 4, 5, 6])

    def test_every_policy_runs_here(self):
        """One after the other, on jobs that are there already."""
        daemon = self.begin(more="prices: {v100: 3, p100: 1.5, k80: 0.5}\n")
        picked = ["gavel-las", "srtf", "xion"]
        if os.environ.get("BERTH_SOAK"):
            listed = subprocess.run([os.path.join(BUILD, "berth"), "policies", "--json"],
                                    stdout=subprocess.PIPE, check=True).stdout
            picked = [policy["name"] for policy in json.loads(listed)["policies"]]
        long = [self.lab.submit("--gres=gpu:2") for _ in range(6)]
        for name in picked:
            status, answer = daemon.ask("PATCH", "/v1/server", {"policy": name})
            self.assertEqual(status, 200, answer)
            short = self.lab.submit("--gres=gpu:1", "--comment=berth:class=te", script="sleep 0.2")
            with self.subTest(policy=name):
                self.assertEqual(daemon.until(short, "COMPLETED FAILED CANCELLED")["state"],
                                 "COMPLETED")
        for ident in long:
            self.assertIn(daemon.seen(ident)["state"], ("RUNNING", "PENDING", "STOPPING"))

    def test_the_task_with_the_number_of_its_array_is_one_of_them(self):
        daemon = self.begin()
        first = self.lab.submit("--array=1-3", "--gres=gpu:4")
        daemon.until(first, "RUNNING")
        jobs = daemon.ask("GET", "/v1/jobs")[1]["jobs"]
        others = [j["id"] for j in jobs if j.get("array_id") == first and j["id"] != first]
        self.assertEqual(len(others), 2)
        for ident in others:
            daemon.until(ident, "RUNNING")
        self.assertEqual(daemon.ask("DELETE", f"/v1/jobs/{first}")[0], 200)
        daemon.until(first, "CANCELLED")
        for ident in others:
            self.assertEqual(daemon.job(ident)["state"], "RUNNING")
        states = self.lab.run("squeue", "-h", "-a", "-t", "R", "-o", "%A").stdout.split()
        self.assertEqual(sorted(map(int, states)), sorted(others))

    def test_a_chain(self):
        daemon = self.begin()
        one = self.lab.submit("--gres=gpu:1", script="sleep 1")
        two = self.lab.submit(f"--dependency=afterok:{one}", "--gres=gpu:1", script="true")
        self.assertEqual(daemon.until(two, "HELD")["state"], "HELD")
        why = daemon.ask("GET", f"/v1/jobs/{two}/why")[1]
        self.assertIn(f"afterok:{one}", why["reasons"][0]["text"])
        daemon.until(two, "COMPLETED")
        self.assertEqual(daemon.job(one)["state"], "COMPLETED")

    def test_a_user_cannot_jump_the_queue(self):
        daemon = self.begin()
        runs = [self.lab.submit("--gres=gpu:4") for _ in range(4)]
        for ident in runs:
            daemon.until(ident, "RUNNING")
        waits = self.lab.submit("--gres=gpu:1")
        daemon.seen(waits)
        for words in (["release", str(waits)], ["update", f"JobId={waits}", "Nice=-5"],
                      ["update", f"JobId={waits}", "Partition=other"],
                      ["update", f"JobId={waits}", "Priority=100"]):
            self.assertNotEqual(self.lab.run("scontrol", *words, user=65534).returncode, 0)
        # One that is requeued by its owner waits for Berth again, where it stood.
        self.lab.run("scontrol", "requeue", str(runs[0]), user=65534)
        end = time.monotonic() + 30
        while daemon.until(runs[0], "RUNNING")["attempt"] == 0:
            self.assertLess(time.monotonic(), end)
        self.assertEqual(daemon.job(waits)["state"], "PENDING")

    def test_one_that_can_never_run_says_so(self):
        daemon = self.begin()
        ident = self.lab.submit("-N4", "--gres=gpu:4")
        job = daemon.until(ident, "REJECTED")
        self.assertIn("16 accelerators", job["reason"])
        end = time.monotonic() + 30
        while "berth: " not in self.lab.run("scontrol", "show", "job", str(ident)).stdout:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        self.assertIn("JobHeld", reason(self.lab, ident))


if __name__ == "__main__":
    unittest.main()
