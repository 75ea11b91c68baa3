"""berth-slurm on a Slurm of our own, through the library and through the commands."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import slurm_lab
from slurm_lab import BERTH_SLURM, NOBODY, PATIENCE, Driver, Lab

SOAK = os.environ.get("BERTH_SOAK")
lab = None


def setUpModule():
    global lab
    why = slurm_lab.missing()
    if why:
        raise unittest.SkipTest(why)
    if not os.access(BERTH_SLURM, os.X_OK):
        raise unittest.SkipTest("berth-slurm is not built")
    # Slurm looks for fulfilled dependencies once a minute otherwise.
    lab = Lab(env={"BERTH_LAB_SCHEDULER": "batch_sched_delay=0,sched_interval=2",
                   "BERTH_LAB_KILL_WAIT": "1"})


def tearDownModule():
    if lab:
        lab.down()


class Cases:
    """What holds for every driver."""
    name = ""

    def run(self, result=None):
        begun = time.monotonic()
        answer = super().run(result)
        if os.environ.get("BERTH_TIMES"):
            print(f"# {self.id().split('.')[-1]}: {time.monotonic() - begun:.1f} s")
        return answer

    @classmethod
    def setUpClass(cls):
        if cls.name == "libslurm":
            tried = subprocess.run([BERTH_SLURM, "--driver", "libslurm", "--check"],
                                   env=lab.env, capture_output=True, text=True)
            if "without libslurm" in tried.stderr:
                raise unittest.SkipTest("built without libslurm")
        cls.driver = Driver(lab, "--driver", cls.name, "--partition", "gpu", "--bell", lab.bell)
        cls.driver.until(lambda: cls.driver.heard("synced"))

    @classmethod
    def tearDownClass(cls):
        lab.run("scancel", "--user", "nobody")
        lab.run("scancel", "--user", "root")
        cls.driver.close()

    def setUp(self):
        self.mine = []
        self.addCleanup(self.clean)

    def clean(self):
        if self.mine:
            lab.run("scancel", *map(str, self.mine))

    def submit(self, *flags, script="sleep 1000"):
        job = lab.submit(*flags, script=script)
        self.mine.append(job)
        return job

    def ok(self, verb, job=None, **more):
        done = self.driver.order(verb, job, **more)
        self.assertTrue(done["ok"], done)
        return done

    def refused(self, verb, job=None, **more):
        done = self.driver.order(verb, job, **more)
        self.assertFalse(done["ok"], done)
        self.assertTrue(done["error"])
        return done

    def started(self, job, *nodes):
        self.ok("start", job, nodes=list(nodes))
        return self.driver.runs(job, *nodes)

    def evicted(self, job, **more):
        return self.driver.state(job, "PENDING", held=True, completing=False, **more)

    def test_it_says_hello_and_names_the_nodes(self):
        hello = self.driver.said[0][1]
        self.assertEqual((hello["hello"], hello["cluster"], hello["driver"]),
                         (1, "lab", self.name))
        self.assertRegex(hello["slurm"], r"^\d\d\.\d\d")
        nodes = self.driver.nodes
        self.assertEqual({n: nodes[n]["type"] for n in nodes},
                         {"n1": "v100", "n2": "p100", "n3": "k80", "n4": "v100"})
        for node in nodes.values():
            self.assertEqual((node["gpus"], node["shards"], node["cpus"], node["mem_mib"],
                              node["up"]), (4, 8, 64, 1000000, True))

    def test_every_way_to_ask_for_gpus(self):
        ways = {
            ("--gres=gpu:2",): (2, 2, None, 0),
            ("--gres=gpu",): (1, 1, None, 0),
            ("--gres=gpu:v100:3", "-N2"): (6, 3, "v100", 0),
            ("--gpus-per-node=2", "-N4"): (8, 2, None, 0),
            ("--gpus=6", "-N2"): (6, None, None, 0),
            ("--gpus=k80:4",): (4, None, "k80", 0),
            ("--gpus-per-task=1", "-n4"): (4, None, None, 0),
            ("--gpus-per-task=1", "-N2", "--ntasks-per-node=3"): (6, 3, None, 0),
            ("--gpus-per-socket=2", "--sockets-per-node=2"): (4, None, None, 0),
            ("--gres=shard:2",): (0, None, None, 2),
            ("--gres=shard:k80:1",): (0, None, "k80", 1),
            (): (0, None, None, 0),
        }
        jobs = {way: self.submit(*way) for way in ways}
        self.driver.look()
        for way, (gpus, per_node, kind, shards) in ways.items():
            job = self.driver.jobs[jobs[way]]
            with self.subTest(way=way):
                self.assertEqual((job["gpus"], job.get("gpus_per_node"), job.get("gpu_type"),
                                  job.get("shards", 0)), (gpus, per_node, kind, shards))
                self.assertTrue(job["held"])

    def test_what_else_a_job_says(self):
        job = self.submit("-N1-3", "-w", "n2", "-x", "n[3-4]", "-C", "p100", "-t", "10",
                          "--mem=5G", "--no-requeue", "-J", "na me=x", "-n4",
                          "--comment=berth:class=te;grace=60")
        other = self.submit("--partition=other")
        self.driver.look()
        seen = self.driver.jobs[job]
        self.assertEqual(
            {key: seen.get(key) for key in (
                "name", "user", "uid", "partition", "state", "reason", "held", "requeue",
                "batch", "restarts", "time_limit_s", "min_nodes", "max_nodes", "tasks", "cpus",
                "mem_mib", "req_nodes", "exc_nodes", "features", "comment")},
            {"name": "na me=x", "user": "nobody", "uid": NOBODY, "partition": "gpu",
             "state": "PENDING", "reason": "JobHeldUser", "held": True, "requeue": False,
             "batch": True, "restarts": 0, "time_limit_s": 600, "min_nodes": 1,
             "max_nodes": 3, "tasks": 4, "cpus": 4, "mem_mib": 5120, "req_nodes": ["n2"],
             "exc_nodes": ["n3", "n4"], "features": "p100",
             "comment": "berth:class=te;grace=60"})
        self.assertNotIn(other, self.driver.jobs) # not in our partition

    def test_gangs_start_on_exactly_these_nodes_and_nobody_else_starts(self):
        one, two, four, held = (self.submit(f"-N{n}", "--gres=gpu:1") for n in (1, 2, 4, 1))
        begun = len(self.driver.said)
        self.ok("start", one, nodes=["n3"])
        self.ok("start", two, nodes=["n4", "n2"])
        self.ok("start", four, nodes=["n1", "n2", "n3", "n4"])
        self.driver.runs(one, "n3")
        pair = self.driver.runs(two, "n2", "n4")
        self.driver.runs(four, "n1", "n2", "n3", "n4")
        self.assertEqual(sorted(pair["gpu_index"]), ["n2", "n4"])
        self.assertTrue(all(len(own) == 1 for own in pair["gpu_index"].values()))
        self.driver.look()
        self.assertTrue(self.driver.jobs[held]["held"])
        self.assertEqual(len(self.driver.nodes["n2"]["used"]), 2)
        self.assertFalse([job for job in self.driver.heard("job", begun)
                          if job["id"] == held and job["state"] != "PENDING"])
        self.ok("start", two, nodes=["n2", "n4"]) # said twice
        self.refused("start", two, nodes=["n1", "n3"])
        self.ok("release", one)

    def test_a_job_is_warned_evicted_and_goes_on_elsewhere(self):
        job = self.submit("--gres=gpu:1", script="""
            trap 'echo saved' USR1
            trap 'exit 143' TERM
            echo run ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES
            while :; do sleep 0.05; done""")
        self.started(job, "n2")
        self.await_output(job, "run 0")
        self.ok("signal", job, signal="USR1", to="batch")
        self.await_output(job, "saved")
        self.ok("evict", job)
        self.evicted(job, restarts=1)
        self.ok("evict", job) # said twice
        self.ok("hold", job)
        self.ok("hold", job)
        self.started(job, "n3")
        self.await_output(job, "run 1 on n3")
        self.ok("cancel", job)
        self.driver.state(job, "CANCELLED", completing=False)
        self.ok("cancel", job)
        self.ok("evict", job) # does not bring it back
        self.driver.look()
        self.assertEqual(self.driver.jobs[job]["state"], "CANCELLED")
        self.refused("start", job, nodes=["n1"])
        self.refused("release", job)

    def await_output(self, job, text, times=1):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if lab.output(f"{job}.out").count(text) >= times:
                return
            time.sleep(0.05)
        self.fail(f"job {job} did not say '{text}': {lab.output(f'{job}.out')}")

    def test_a_successor_that_is_started_first_takes_over_at_once(self):
        script = "trap 'exit 0' TERM\nsleep 1000 & wait"
        old, new = (self.submit("--gres=gpu:4", script=script) for _ in range(2))
        self.started(old, "n1")
        self.ok("start", new, nodes=["n1"])
        time.sleep(1.1) # until Slurm has found that it has to wait
        begun = time.monotonic()
        self.driver.send("evict", old)
        self.driver.runs(new, "n1")
        when = next(when for when, word in reversed(self.driver.said)
                    if word.get("job", {}).get("id") == new)
        print(f"# {self.name}: from the eviction to RUNNING: {when - begun:.3f} s")
        self.evicted(old, restarts=1)

    def test_a_requeue_of_its_own_is_seen_and_can_be_held(self):
        job = self.submit("--gres=gpu:1", script="""
            trap 'scontrol requeue $SLURM_JOB_ID; sleep 10' USR1
            echo ready
            while :; do sleep 0.05; done""")
        self.started(job, "n4")
        self.await_output(job, "ready")
        self.ok("signal", job, signal="USR1", to="batch")
        seen = self.driver.state(job, "PENDING", held=False, completing=False)
        self.assertEqual((seen["reason"], seen["restarts"]), ("BeginTime", 1))
        self.assertGreater(seen["begin"], time.time() + 60)
        self.ok("hold", job)
        self.evicted(job)
        self.started(job, "n1") # at once, not in two minutes

    def test_a_job_that_is_held_while_it_runs_comes_back_held(self):
        job = self.submit("--gres=gpu:1", script="trap 'exit 1' TERM; sleep 1000 & wait")
        self.started(job, "n3")
        self.ok("hold", job)
        self.driver.look()
        self.assertEqual(self.driver.jobs[job]["state"], "RUNNING")
        done = lab.run("scontrol", "requeue", str(job), user=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.evicted(job, restarts=1)

    def test_tasks_of_an_array_one_by_one(self):
        array = self.submit("--array=1-5%2", "--gres=gpu:1")
        self.driver.look()
        rest = self.driver.jobs[array]
        self.assertEqual((rest["array_id"], rest["array_tasks"], rest["array_limit"]),
                         (array, "1-5", 2))
        self.ok("start", f"{array}_3", nodes=["n2"])
        task = self.driver.until(lambda: next(
            (job for job in self.driver.jobs.values() if job.get("array_id") == array and
             job.get("array_task") == 3 and job["state"] == "RUNNING"), None))
        self.assertEqual(task["nodes"], ["n2"])
        self.driver.until(lambda: self.driver.jobs[array]["array_tasks"] == "1-2,4-5")
        self.assertTrue(self.driver.jobs[array]["held"])
        self.ok("evict", f"{array}_3")
        self.evicted(task["id"], restarts=1)
        self.ok("cancel", f"{array}_4")
        self.ok("hold", f"{array}_5")
        self.driver.until(lambda: self.driver.jobs[array].get("array_tasks") == "1-2")
        self.ok("cancel", array)

    def test_a_parked_job_notices_its_dependency(self):
        first = self.submit("--gres=gpu:1", script="true")
        second = self.submit("--gres=gpu:1", f"--dependency=afterok:{first}")
        self.ok("park", second)
        self.ok("park", second)
        seen = self.driver.state(second, "PENDING", held=False)
        self.assertIn(f"afterok:{first}", seen["dependency"])
        self.ok("start", first, nodes=["n2"])
        self.driver.until(lambda: "dependency" not in self.driver.jobs[second])
        self.assertEqual(self.driver.jobs[second]["state"], "PENDING")
        self.started(second, "n3")

    def test_signals_reach_whom_they_are_for(self):
        job = self.submit("-n1", "--gres=gpu:1", script="""
            trap 'echo shell heard' USR1
            srun bash -c 'trap "echo step heard" USR1; echo ready; while :; do sleep 0.05; done' &
            while :; do sleep 0.05; done""")
        self.refused("signal", job, signal="USR1", to="batch") # it does not run
        self.started(job, "n2")
        self.await_output(job, "ready")
        self.ok("signal", job, signal="USR1", to="steps")
        self.await_output(job, "step heard")
        self.assertNotIn("shell heard", lab.output(f"{job}.out"))
        self.ok("signal", job, signal="USR1", to="batch")
        self.await_output(job, "shell heard")
        self.assertEqual(lab.output(f"{job}.out").count("step heard"), 1)
        self.ok("signal", job, signal="SIGUSR1", to="all")
        self.await_output(job, "step heard", times=2)
        self.assertEqual(lab.output(f"{job}.out").count("step heard"), 2)

    def test_comments_and_scripts(self):
        job = self.submit("--gres=gpu:1", script="#SBATCH --signal=B:USR1@90\necho caf\u00e9")
        self.ok("comment", job, text="berth: waits for n1, 'as it is'")
        self.driver.look()
        self.assertEqual(self.driver.jobs[job]["admin_comment"],
                         "berth: waits for n1, 'as it is'")
        self.assertTrue(self.driver.jobs[job]["held"])
        self.assertIn("#SBATCH --signal=B:USR1@90\n", self.ok("script", job)["text"])
        self.refused("script", 4000000)

    def test_another_shape(self):
        job = self.submit("--gres=gpu:1")
        self.ok("start", job, nodes=["n2", "n4"], gpus_per_node=2, tasks=2, cpus=2)
        seen = self.driver.runs(job, "n2", "n4")
        self.assertEqual((seen["gpus"], {n: len(own) for n, own in seen["gpu_index"].items()}),
                         (4, {"n2": 2, "n4": 2}))

    def test_what_cannot_be_is_refused_with_a_sentence(self):
        self.assertFalse(self.refused("hold", 4000000)["transient"])
        self.refused("start", 4000000, nodes=["n1"])
        job = self.submit("--gres=gpu:1")
        self.refused("start", job, nodes=["nowhere"])
        fixed = self.submit("--gres=gpu:1", "--no-requeue")
        self.started(fixed, "n3")
        self.assertFalse(self.refused("evict", fixed)["transient"])

    def test_jobs_of_other_partitions_are_refused(self):
        other = self.submit("--partition=other", "-H", "-J", "x Partition=gpu")
        tasks = self.submit("--partition=other", "-H", "--array=1-2")
        for job in (other, tasks, f"{tasks}_1"):
            for verb in ("hold", "release", "script", "cancel"):
                done = self.refused(verb, job)
                self.assertFalse(done["transient"])
                self.assertIn("Berth manages", done["error"])
        shown = lab.run("squeue", "-h", "-r", "-o", "%r", "-j", f"{other},{tasks}").stdout.split()
        self.assertEqual(shown, ["JobHeldUser"] * 3)

    def test_rubbish_is_answered_and_survived(self):
        before = len(self.driver.said)
        for line in (b"x\n", b"[]\n", b"{}\n", b"\n", b"\xff\xfe\x00{\n", b"{" * 5000 + b"\n",
                     b'{"seq":-1,"verb":"poll"}\n', b"y" * (1 << 21) + b"\n"):
            self.driver.write(line)
        for words in ({"verb": "dance"}, {"verb": "start", "job": 1},
                      {"verb": "start", "job": 1, "nodes": []},
                      {"verb": "start", "job": 1, "nodes": ["n1,n2"]},
                      {"verb": "start", "job": 1, "nodes": ["n[1-4]"]},
                      {"verb": "start", "job": 1, "nodes": ["n1 Priority=9"]},
                      {"verb": "hold", "job": "1 2"}, {"verb": "hold", "job": "_1"},
                      {"verb": "hold", "job": 0}, {"verb": "hold"},
                      {"verb": "signal", "job": 1, "signal": "STOP", "to": "batch"},
                      {"verb": "signal", "job": 1, "signal": "USR1", "to": "me"},
                      {"verb": "comment", "job": 1, "text": "a\nb"}):
            self.assertEqual(self.refused(**words)["transient"], False)
        self.driver.look()
        self.assertEqual(len(self.driver.heard("wrong", before)), 7)


class ThroughTheLibrary(Cases, unittest.TestCase):
    name = "libslurm"

    def test_a_job_that_ignores_term_is_killed_after_killwait(self):
        job = self.submit("--gres=gpu:1", script="trap '' TERM\nwhile :; do sleep 0.05; done")
        self.started(job, "n4")
        self.ok("evict", job)
        leaving = self.driver.until(lambda: self.driver.jobs[job]["completing"]
                                    and self.driver.jobs[job])
        self.assertEqual(leaving["nodes"], ["n4"])
        done = self.refused("start", job, nodes=["n1"]) # not before it has left
        self.assertTrue(done["transient"])
        self.ok("evict", job)
        self.evicted(job, restarts=1)

    def test_a_cancellation_wins_over_an_eviction(self):
        job = self.submit("--gres=gpu:1", script="trap '' TERM\nwhile :; do sleep 0.05; done")
        self.started(job, "n3")
        self.ok("evict", job)
        self.ok("cancel", job)
        self.driver.state(job, "CANCELLED", completing=False)

    def test_people_cannot_jump_the_queue(self):
        job = self.submit("--gres=gpu:1")
        for words in (("release", job), ("update", f"JobId={job}", "Nice=-5"),
                      ("update", f"JobId={job}", "Nice=5"),
                      ("update", f"JobId={job}", "Priority=9999"),
                      ("update", f"JobId={job}", "Partition=other"),
                      ("update", f"JobId={job}", "Partition=gpu,other")):
            with self.subTest(words=words):
                done = lab.run("scontrol", *map(str, words), user=NOBODY)
                self.assertIn("denied", done.stdout + done.stderr)
        both = lab.run("sbatch", "--partition=gpu,other", "--wrap", "true", user=NOBODY)
        self.assertNotEqual(both.returncode, 0)
        self.assertIn("partition", both.stderr)
        elsewhere = lab.submit("--partition=other", "--hold")
        self.mine.append(elsewhere)
        done = lab.run("scontrol", "update", f"JobId={elsewhere}", "Nice=5", user=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr) # not ours
        time.sleep(1.2)
        self.driver.look()
        self.assertTrue(self.driver.jobs[job]["held"])
        mine = lab.run("scontrol", "update", f"JobId={job}", "TimeLimit=5", user=NOBODY)
        self.assertEqual(mine.returncode, 0, mine.stderr) # the rest is the owner's own

    def test_the_bell_is_rung_when_a_job_ends(self):
        job = self.submit("--gres=gpu:1", script="sleep 0.5")
        self.started(job, "n2")
        seen = self.driver.state(job, "COMPLETED", completing=False)
        self.assertEqual((seen["exit_code"], seen.get("signal")), (0, None))
        late = self.driver.said[-1][0] - time.monotonic() + time.time() - seen["end"]
        print(f"# heard of an end {late:.2f} s after it, at most (Slurm tells whole seconds)")

    def test_a_job_that_has_just_ended_is_not_requeued(self):
        """slurmctld hears of an end some milliseconds later, and takes a requeue until then."""
        for seconds in (0.3, 0.3, 0.3, 3.3, 3.3, 3.3, 3.3): # stopped from three seconds on
            path = os.path.join(lab.work, "ends.pid")
            if os.path.exists(path):
                os.remove(path)
            job = self.submit("--gres=gpu:1", script=f"echo $$ > {path}; sleep {seconds}")
            self.driver.look()
            self.ok("start", job, nodes=["n1"])
            end = time.monotonic() + PATIENCE
            while not (pid := lab.output("ends.pid")).endswith("\n"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.001)
            while os.path.exists(f"/proc/{pid.strip()}"):
                self.assertLess(time.monotonic(), end)
            done = self.driver.order("evict", job)
            self.assertTrue(done["ok"] or done["transient"], done)
            self.driver.state(job, "COMPLETED", restarts=0, completing=False)

    def test_slurmctld_is_killed_and_comes_back(self):
        job = self.submit("--gres=gpu:1")
        self.started(job, "n1")
        waiting = self.submit("--gres=gpu:1")
        self.driver.look()
        begun = time.time() # Slurm acknowledges first, and writes down later
        saved = os.path.join(lab.dir, "state", "job_state")
        while not os.path.exists(saved) or os.stat(saved).st_mtime < begun:
            lab.run("scontrol", "update", f"JobId={waiting}", "Comment=x")
            time.sleep(0.3)
        since = len(self.driver.said)
        os.kill(lab.pid("slurmctld"), signal.SIGKILL)
        self.driver.until(lambda: self.driver.heard("away", since))
        self.assertTrue(self.refused("hold", waiting)["transient"])
        lab.start("slurmctld", "-f", lab.env["SLURM_CONF"])
        self.driver.until(lambda: self.driver.heard("synced", since))
        self.assertTrue(self.driver.heard("back", since))
        again = {word["id"]: word for word in self.driver.heard("job", since)}
        self.assertEqual((again[job]["state"], again[waiting]["held"]), ("RUNNING", True))
        self.assertEqual(len(self.driver.heard("node", since)) >= 4, True)
        self.ok("hold", waiting)

    def test_munge_is_killed_and_comes_back(self):
        self.driver.look()
        since = len(self.driver.said)
        os.kill(lab.pid("munged"), signal.SIGKILL)
        self.driver.until(lambda: self.driver.heard("away", since))
        run = os.path.join(lab.dir, "run")
        lab.start("munged", "--force", f"--key-file={lab.dir}/munge.key",
                  f"--socket={run}/munge.socket", f"--pid-file={run}/munged.pid",
                  f"--seed-file={run}/munge.seed", f"--log-file={lab.dir}/log/munged.log")
        self.driver.until(lambda: self.driver.heard("synced", since))

    @unittest.skipUnless(SOAK, "waits for Slurm's own time-outs; BERTH_SOAK is not set")
    def test_a_node_whose_slurmd_is_killed_is_down(self):
        job = self.submit("--gres=gpu:1")
        self.started(job, "n4")
        os.kill(lab.pid("slurmd.n4"), signal.SIGKILL)
        self.driver.until(lambda: not self.driver.nodes["n4"]["up"], timeout=90)
        seen = self.driver.until(
            lambda: self.driver.jobs[job]["state"] == "PENDING" and self.driver.jobs[job],
            timeout=90)
        self.assertFalse(seen["held"]) # a requeue that is not ours
        self.ok("hold", job)
        lab.start("slurmd", "-f", lab.env["SLURM_CONF"], "-N", "n4")
        self.driver.until(lambda: self.driver.nodes["n4"]["up"], timeout=90)

    @unittest.skipUnless(SOAK, "takes ten seconds of nothing; BERTH_SOAK is not set")
    def test_two_hundred_held_jobs_stay_held(self):
        jobs = [self.submit("--gres=gpu:1") for _ in range(200)]
        time.sleep(10)
        self.driver.look()
        self.assertTrue(all(self.driver.jobs[job]["held"] for job in jobs))


class ThroughTheCommands(Cases, unittest.TestCase):
    name = "commands"

    def test_a_name_that_forges_records_fools_nobody(self):
        victim = int(lab.run("sbatch", "--parsable", "--gres=gpu:1", "--wrap", "sleep 9")
                     .stdout) # root's
        self.mine.append(victim)
        forger = self.submit("--gres=gpu:1", "-J", f"x\nJobId={victim} JobName=y")
        liar = self.submit("--gres=gpu:1", "--comment=a JobState=RUNNING b")
        self.driver.look()
        self.assertEqual((self.driver.jobs[victim]["uid"], self.driver.jobs[victim]["held"]),
                         (0, True))
        self.assertNotIn(liar, self.driver.jobs)
        self.assertNotIn(forger, self.driver.jobs)
        wrong = " ".join(self.driver.heard("wrong"))
        self.assertIn(f"job {liar}:", wrong)
        self.assertIn(f"job {forger}:", wrong)
        self.ok("cancel", victim)

    def test_a_name_that_cannot_be_read_keeps_no_job_out_of_reach(self):
        job = self.submit("--gres=gpu:1")
        self.started(job, "n1")
        before = len(self.driver.said)
        done = lab.run("scontrol", "update", f"JobId={job}", "JobName=x JobState=RUNNING",
                       user=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.driver.until(lambda: f"job {job}:" in " ".join(self.driver.heard("wrong", before)))
        self.ok("evict", job)
        self.ok("cancel", job)


class Program(unittest.TestCase):
    """The program itself."""

    def run_it(self, *words, text="", env=None):
        return subprocess.run([BERTH_SLURM, *words], input=text, text=True, env=env or lab.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE)

    def test_wrong_words_are_refused(self):
        for words in (["--driver", "x"], ["x"], ["--driver"], ["--partition"]):
            done = self.run_it(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Aberth-slurm: [^\n]+\n\Z")

    def test_it_needs_a_configuration(self):
        for driver in ("auto", "commands"):
            done = self.run_it("--driver", driver,
                               env={**lab.env, "SLURM_CONF": "/nowhere/slurm.conf"})
            self.assertEqual(done.returncode, 1)
            self.assertIn("/nowhere/slurm.conf", done.stderr)

    def test_settings_that_end_the_library_are_named(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
            conf.write("Nonsense=1\n")
            conf.flush()
            done = self.run_it("--check", env={**lab.env, "SLURM_CONF": conf.name})
        self.assertEqual(done.returncode, 1)
        self.assertIn("no settings it can use: is there a slurm.conf", done.stderr)

    def test_the_bell_does_not_take_the_place_of_a_file(self):
        done = self.run_it("--bell", lab.env["SLURM_CONF"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("no named pipe", done.stderr)
        self.assertTrue(os.path.getsize(lab.env["SLURM_CONF"]))

    def test_it_ends_with_its_input_and_does_what_it_was_asked(self):
        job = lab.submit("--gres=gpu:1")
        done = self.run_it("--driver", "commands",
                           text=json.dumps({"seq": 7, "verb": "cancel", "job": job}) + "\n")
        self.assertEqual(done.returncode, 0)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertIn({"done": {"seq": 7, "ok": True}}, answers)

    def test_check_says_what_a_site_lacks(self):
        for driver in ("auto", "commands"):
            good = self.run_it("--driver", driver, "--check", "--partition", "gpu")
            self.assertEqual(good.returncode, 0, good)
            self.assertIn("ok   jobs of partition gpu arrive held", good.stdout)
            # What is advice: this lab's job_submit.lua has no heartbeat.
            lacks = [line for line in good.stdout.splitlines() if line.startswith("NO")]
            self.assertEqual([line for line in lacks if "while berthd is away" not in line], [])
            bad = self.run_it("--driver", driver, "--check", "--partition", "moon")
            self.assertEqual(bad.returncode, 1)
            self.assertRegex(bad.stdout, "NO   partition moon")


if __name__ == "__main__":
    unittest.main()
