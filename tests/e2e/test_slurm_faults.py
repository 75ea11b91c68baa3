"""Everything that can die dies, on a real Slurm: nobody is lost, nobody runs twice."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from injected import survived
from slurm_lab import NOBODY, Lab, missing
from test_slurm import Slurmed, state

SOAK = os.environ.get("BERTH_SOAK")
LONG = "takes minutes; BERTH_SOAK is not set"
WAIT = 90  # seconds, for what takes one: the machine may be busy with other things

# Saves itself when told to.  Says so if another run of it is there.
SAVES = """#SBATCH --signal=B:USR1@30
[ -s {log}.pid ] && kill -0 $(cat {log}.pid) 2>/dev/null && echo twice >> {log}
echo $$ > {log}.pid
trap 'echo saving >> {log}; sleep {save}; echo saved >> {log}; exit 85' USR1
echo start ${{SLURM_RESTART_COUNT:-0}} >> {log}
for i in $(seq 6000); do sleep 0.1; done
"""


def wait_for(what, seconds=WAIT, words=lambda: ""):
    """Until it is so; what it returned."""
    end = time.monotonic() + seconds
    while not (result := what()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain: {words()}")
        time.sleep(0.03)
    return result


class OnLab(unittest.TestCase):
    """One Slurm for all tests of a class; a berthd each."""

    nodes = 1
    lab_env = {}
    driver = None
    mended = 0  # times that Slurm had to be helped
    forgot = 0  # starts that Slurm made again, as it forgot them when it was killed

    @classmethod
    def setUpClass(cls):
        if missing():
            raise unittest.SkipTest(missing())
        cls.lab = Lab(cls.nodes, env=cls.lab_env)
        cls.addClassCleanup(cls.lab.down)

    def setUp(self):
        self.daemon = None
        self.addCleanup(self.clear)

    def clear(self):
        if self.daemon and self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.stop()
        self.lab.run("scancel", "-u", "nobody")
        self.lab.run("scancel", "-u", "daemon")
        wait_for(lambda: not self.lab.run("squeue", "-h", "-a").stdout.strip())
        if self.daemon:
            words = self.daemon.words()
            self.daemon.wipe()
            self.assertNotIn("nothing was changed", words)
            for fault in ("Assertion", "Sanitizer", "runtime error"):
                self.assertNotIn(fault, words)

    def begin(self, *flags, policy="fitgpp,max_preemptions=0"):
        self.daemon = Slurmed(self.lab, *flags, policy=policy)
        if self.driver:
            with open(self.daemon.config, "a", encoding="ascii") as file:
                file.write(f"slurm_driver: {self.driver}\n")
        self.daemon.start()
        return self.daemon

    def log(self, name):
        path = os.path.join(self.lab.work, name)
        for old in (path, path + ".pid"):
            if os.path.exists(old):
                os.remove(old)
        return path

    def lines(self, name):
        return self.lab.output(os.path.basename(name)).split("\n")[:-1]

    def starts(self, log):
        """Starts of the job, by their numbers.  Slurm 22.05 writes what it knows every few
        seconds: killed in between, it starts a job again under the number it had, after it has
        ended the run that it forgot."""
        return {line for line in self.lines(log) if line.startswith("start")}

    def wait_line(self, log, line, count=1):
        wait_for(lambda: self.lines(log).count(line) >= count,
                 words=lambda: f"no {count} {line} in {self.lines(log)}\n{self.daemon.words()}")

    def wait_state(self, ident, *states):
        wait_for(lambda: state(self.lab, ident) in states,
                 words=lambda: f"{ident} is {state(self.lab, ident)}, not {states}\n"
                               f"{self.daemon.words()}")

    def until(self, ident, states):
        return self.daemon.until(ident, states, WAIT)

    def victim(self, log, save=0.2, gpus=4):
        ident = self.lab.submit(f"--gres=gpu:{gpus}", script=SAVES.format(log=log, save=save))
        self.until(ident, "RUNNING")
        self.wait_line(log, "start 0")
        return ident

    def trial(self, script="sleep 0.3", gpus=4):
        return self.lab.submit(f"--gres=gpu:{gpus}", "--comment=berth:class=te", script=script)

    def entries(self):
        return self.daemon.ask("GET", "/v1/ledger")[1]["entries"]

    # --- those who die

    def bridge(self):
        """The process of berth-slurm; None: there is none."""
        done = subprocess.run(["pgrep", "-P", str(self.daemon.process.pid), "berth-slurm"],
                              stdout=subprocess.PIPE, text=True, check=False)
        pids = done.stdout.split()
        return int(pids[0]) if pids else None

    def start_munged(self):
        run = os.path.join(self.lab.dir, "run")
        self.lab.start("munged", "--force", f"--key-file={self.lab.dir}/munge.key",
                       f"--socket={run}/munge.socket", f"--pid-file={run}/munged.pid",
                       f"--seed-file={run}/munge.seed",
                       f"--log-file={self.lab.dir}/log/munged.log")

    def start_slurmctld(self):
        self.lab.start("slurmctld", "-f", self.lab.env["SLURM_CONF"])

    def wait_kept(self, ident):
        """Slurm forgets in a crash what it has not written yet."""
        path = os.path.join(self.lab.dir, "state", f"hash.{ident % 10}", f"job.{ident}")
        since = os.stat(path).st_mtime
        wait_for(lambda: os.stat(f"{self.lab.dir}/state/job_state").st_mtime > since + 0.5)

    def mend_slurm(self):
        """Slurm 22.05 can go on counting the GPUs of a job that left around its crash: the
        node is idle, its GPUs are in use, and nobody can start there until slurmctld is
        started anew.  That is not ours to mend; so it is mended here."""
        node = self.lab.run("scontrol", "show", "-d", "node", "n1").stdout
        if "CPUAlloc=0 " in node and "State=IDLE " in node and "(IDX:0-" in node:
            self.mended += 1
            pid = self.lab.pid("slurmctld")
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
            self.start_slurmctld()

    def kill_slurmctld(self):
        pid = self.lab.pid("slurmctld")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"))

    def kill(self, who, away=0.3):
        """With signal 9, and back again after a while."""
        if who == "berthd":
            self.daemon.kill(signal.SIGKILL)
            time.sleep(away)
            self.daemon.start()
        elif who == "berth-slurm":
            os.kill(wait_for(self.bridge), signal.SIGKILL)  # berthd starts it again
        elif who == "slurmctld":
            self.kill_slurmctld()
            time.sleep(away)
            self.start_slurmctld()
        elif who == "munged":
            os.kill(self.lab.pid("munged"), signal.SIGKILL)
            time.sleep(away)
            self.start_munged()
        else:
            os.kill(self.lab.pid("slurmd.n1"), signal.SIGKILL)
            time.sleep(away)
            self.lab.start("slurmd", "-f", self.lab.env["SLURM_CONF"], "-N", "n1")


class Kills(OnLab):
    """Somebody dies in the middle of an eviction."""

    def one(self, who, step, victim, log, turn):
        """A trial job comes, somebody dies; all is as it should be in the end."""
        began = len(self.starts(log))
        saved = self.lines(log).count("saved")
        saving = self.lines(log).count("saving")
        trial = self.trial()
        if step == "grace":
            self.wait_line(log, "saving", saving + 1)
        elif step == "saved":
            self.wait_line(log, "saved", saved + 1)
        elif step == "left":
            self.wait_line(log, "saved", saved + 1)
            self.wait_state(victim, "PENDING", "FAILED", "COMPLETING")
        elif step == "recalled":
            self.until(victim, "STOPPING PENDING")
        if who == "slurmctld":
            self.wait_kept(trial)
        self.kill(who)
        self.until(trial, "COMPLETED")
        self.wait_state(trial, "COMPLETED")
        if who == "slurmctld":
            end = time.monotonic() + WAIT
            while self.daemon.job(victim)["state"] != "RUNNING" and time.monotonic() < end:
                time.sleep(2)
                self.mend_slurm()
        self.until(victim, "RUNNING")
        wait_for(lambda: len(self.starts(log)) > began,
                 words=lambda: f"{self.lines(log)}\n{self.daemon.words()}")
        lines = self.lines(log)
        self.assertNotIn("twice", lines)
        self.assertEqual(len(self.starts(log)), began + 1, lines)
        again = sum(l.startswith("start") for l in lines) - began - 1 - self.forgot
        self.assertTrue(again == 0 or who == "slurmctld", lines)
        self.forgot += again
        self.assertEqual(state(self.lab, victim), "RUNNING")
        job = self.daemon.job(victim)
        self.assertEqual(job["preemptions"], turn)
        entries = [e for e in self.entries() if e["for"] == trial]
        self.assertEqual([e["victim"] for e in entries], [victim])
        kinds = [e["kind"] for e in self.daemon.events(trial)]
        self.assertEqual(kinds.count("started"), 1, kinds)
        self.assertEqual(kinds.count("finished"), 1, kinds)

    def each(self, pairs):
        self.begin()
        log = self.log("victim")
        victim = self.victim(log, save=0.7)
        for turn, (who, step) in enumerate(pairs, 1):
            try:
                self.one(who, step, victim, log, turn)
            except AssertionError as fault:
                raise AssertionError(f"{who} killed at {step}: {fault}\n" + "\n".join(
                    map(str, self.daemon.events()[-25:])) + self.lab.run(
                        "squeue", "-a", "-t", "all").stdout + self.lab.run(
                            "scontrol", "show", "-d", "node").stdout + str(self.lines(log))
                ) from fault
        asked = "by commands" if self.driver == "commands" else "through its library"
        for who in dict(pairs):
            steps = sum(each == who for each, _ in pairs)
            survived(f"{who} killed with signal 9 while a job is evicted, Slurm asked {asked}",
                     steps, "the trial job runs once and to its end, its victim is started again "
                     "once and never runs beside itself, and the ledger has the eviction once",
                     evictions=steps, **(self.help_of_slurm() if who == "slurmctld" else {}))

    def help_of_slurm(self):
        counts = {"slurmctld_started_anew_as_it_lost_GPUs": self.mended,
                  "starts_that_slurmctld_forgot_and_made_again": self.forgot}
        return {name: count for name, count in counts.items() if count}

    def test_the_most_telling(self):
        self.each([("berthd", "recalled"), ("berth-slurm", "grace"), ("slurmctld", "saved")])

    @unittest.skipUnless(SOAK, LONG)
    def test_everybody_at_every_step(self):
        self.each([(who, step) for who in ("berthd", "berth-slurm", "slurmctld", "munged",
                                           "slurmd")
                   for step in ("submitted", "recalled", "grace", "saved", "left")])


class OneNode(OnLab):
    """Four GPUs for which somebody has to go."""

    def test_four_ways_to_leave(self):
        daemon = self.begin()
        log = self.log("ways")
        say = "echo {0} ${{SLURM_RESTART_COUNT:-0}} >> " + log + "\n"
        loop = "for i in $(seq 6000); do sleep 0.1; done\n"
        usr1 = "#SBATCH --signal=B:USR1@20\n"
        deaf = self.lab.submit("--gres=gpu:1", script="trap '' TERM\n" + say.format("deaf") + loop)
        dies = self.lab.submit("--gres=gpu:1", script=usr1 + say.format("dies") + loop)
        done = self.lab.submit("--gres=gpu:1", script=usr1 + "trap 'exit 0' USR1\n"
                               + say.format("done") + loop)
        back = self.lab.submit("--gres=gpu:1", script=usr1 + "trap 'exit 85' USR1\n"
                               + say.format("back") + loop)
        for name, ident in (("deaf", deaf), ("dies", dies), ("done", done), ("back", back)):
            self.until(ident, "RUNNING")
            self.wait_line(log, name + " 0")
        trial = self.trial()
        self.until(trial, "COMPLETED")
        self.until(done, "COMPLETED")
        for name, ident in (("deaf", deaf), ("dies", dies), ("back", back)):
            self.until(ident, "RUNNING")
            self.wait_line(log, name + " 1")
        # Only those who saved themselves keep what they did.
        clean = {e["job"]: e["clean"] for e in daemon.events() if e["kind"] == "stopped"}
        self.assertEqual(clean, {deaf: False, dies: False, back: True})
        self.assertEqual(sorted(self.lines(log)), ["back 0", "back 1", "deaf 0", "deaf 1",
                                                   "dies 0", "dies 1", "done 0"])

    def test_ends_of_their_own(self):
        self.begin()
        log = self.log("own")
        again = self.lab.submit("--gres=gpu:1", script=f"""
echo run ${{SLURM_RESTART_COUNT:-0}} >> {log}
[ -n "$SLURM_RESTART_COUNT" ] && exit 0
exit 85""")
        never = self.lab.submit("--gres=gpu:1", "--no-requeue", script="exit 85")
        bad = self.lab.submit("--gres=gpu:1", "--output=/no/such/place/%j", script="true")
        killed = self.lab.submit("--gres=gpu:1", script="kill -9 $$")
        self.assertEqual(self.until(bad, "FAILED")["state"], "FAILED")
        self.assertEqual(self.until(never, "FAILED")["exit_code"], 85)
        self.assertEqual(self.until(killed, "FAILED")["exit_code"], 137)
        self.until(again, "COMPLETED")
        self.assertEqual(self.lines(log), ["run 0", "run 1"])
        odd = self.lab.submit("--gres=gpu:1", "--comment=berth:class=te;colour=blue;;=;x",
                                "--job-name=a \"b\" 'c'\nJobId=1 JobState=RUNNING", script="true")
        self.assertEqual(self.until(odd, "COMPLETED")["class"], "te")

    def test_cancelled_in_the_middle(self):
        daemon = self.begin()
        log = self.log("middle")
        victim = self.victim(log, save=1.5)
        # The successor goes: the victim leaves all the same, and comes back.
        trial = self.trial("sleep 1000")
        self.wait_line(log, "saving")
        self.lab.run("scancel", str(trial))
        self.assertEqual(self.until(trial, "CANCELLED")["state"], "CANCELLED")
        self.wait_line(log, "start 1")
        self.until(victim, "RUNNING")
        # The victim goes: the successor runs.
        trial = self.trial("sleep 1000")
        self.wait_line(log, "saving", 2)
        self.lab.run("scancel", str(victim))
        self.assertEqual(self.until(victim, "CANCELLED")["state"], "CANCELLED")
        self.until(trial, "RUNNING")
        # Nobody makes himself immovable once he runs.
        self.assertNotEqual(self.lab.run("scontrol", "update", f"JobId={trial}", "Requeue=0",
                                         user=NOBODY).returncode, 0)
        self.assertEqual(self.lab.run("scontrol", "update", f"JobId={trial}", "TimeLimit=5",
                                      user=NOBODY).returncode, 0)
        # By Berth, one that runs and one that waits for it to go.
        other = self.lab.submit("--gres=gpu:4")
        daemon.seen(other)
        for ident in (other, trial):
            self.assertEqual(daemon.ask("DELETE", f"/v1/jobs/{ident}")[0], 200)
            self.until(ident, "CANCELLED")
            self.wait_state(ident, "CANCELLED")
        self.assertNotIn("twice", self.lines(log))

    def test_a_drained_node_starts_nothing(self):
        daemon = self.begin()
        runs = self.lab.submit("--gres=gpu:1")
        self.until(runs, "RUNNING")
        self.lab.run("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=dust")
        self.addCleanup(self.lab.run, "scontrol", "update", "NodeName=n1", "State=RESUME")
        wait_for(lambda: [e for e in daemon.events() if e["kind"] == "foreign"])
        waits = self.lab.submit("--gres=gpu:1", script="true")
        daemon.seen(waits)
        time.sleep(1.5)
        self.assertEqual(daemon.job(waits)["state"], "PENDING")
        self.assertEqual(state(self.lab, runs), "RUNNING")
        self.lab.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        self.until(waits, "COMPLETED")

    @unittest.skipUnless(SOAK, LONG)
    def test_a_number_that_is_given_out_again(self):
        daemon = self.begin()
        runs = self.lab.submit("--gres=gpu:1")
        self.until(runs, "RUNNING")
        # What slurmctld had written before its crash, to be sure that it is old enough.
        pid = self.lab.pid("slurmctld")
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
        kept = os.path.join(self.lab.dir, "state.kept")
        shutil.copytree(os.path.join(self.lab.dir, "state"), kept)
        self.start_slurmctld()
        lost = self.lab.submit("--gres=gpu:4", script="true")
        daemon.seen(lost)
        self.kill_slurmctld()
        shutil.rmtree(os.path.join(self.lab.dir, "state"))
        os.rename(kept, os.path.join(self.lab.dir, "state"))
        self.start_slurmctld()
        wait_for(lambda: self.lab.run("sinfo").returncode == 0)
        again = self.lab.submit("--gres=gpu:1", "-J", "heir", script="exit 7")
        self.assertEqual(again, lost)
        job = wait_for(lambda: (j := daemon.job(again)).get("name") == "heir" and j,
                       words=lambda: f"{daemon.job(again)}\n{daemon.words()}")
        self.assertEqual(self.until(again, "FAILED")["exit_code"], 7, job)
        self.assertEqual(daemon.job(runs)["state"], "RUNNING")
        ends = [e["kind"] for e in daemon.events(again)]
        self.assertEqual(ends.count("cancelled"), 1, ends)

    @unittest.skipUnless(SOAK, LONG)
    def test_slurmctld_is_away_when_berthd_starts(self):
        daemon = self.begin()
        runs = self.lab.submit("--gres=gpu:2")
        self.until(runs, "RUNNING")
        waits = self.lab.submit("--gres=gpu:4", script="true")
        daemon.seen(waits)
        self.wait_kept(waits)
        daemon.stop()
        self.kill_slurmctld()
        daemon.start()  # from what it knows of the nodes
        self.assertEqual(daemon.job(waits)["state"], "PENDING")
        self.assertEqual(daemon.job(runs)["state"], "RUNNING")
        self.start_slurmctld()
        self.lab.run("scancel", str(runs))
        self.until(runs, "CANCELLED")
        self.until(waits, "COMPLETED")

    def test_what_slurm_starts_by_itself_is_adopted(self):
        """Twice as much memory as there is: Slurm does not count it here, the books do."""
        daemon = self.begin()
        mine = [self.lab.submit("--gres=gpu:1", "--mem=700G", "--begin=now+3600")
                for _ in range(2)]
        for ident in mine:
            daemon.seen(ident)
        daemon.stop()
        for ident in mine:
            self.lab.run("scontrol", "update", f"JobId={ident}", "StartTime=now")
            self.lab.run("scontrol", "release", str(ident))
        for ident in mine:
            self.wait_state(ident, "RUNNING")
        daemon.start()
        for ident in mine:
            self.until(ident, "RUNNING")
        free = self.lab.submit("--gres=gpu:2", script="true")
        self.until(free, "COMPLETED")
        for ident in mine:
            self.assertEqual(state(self.lab, ident), "RUNNING")

    @unittest.skipUnless(SOAK, LONG)
    def test_those_that_cannot_be_told_to_go(self):
        daemon = self.begin()
        sits = subprocess.Popen(["salloc", "-p", "gpu", "--gres=gpu:4", "sleep", "4"],
                                env=self.lab.env, cwd=self.lab.work, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, user=NOBODY, group=NOBODY,
                                extra_groups=[], text=True)
        self.addCleanup(sits.stderr.close)
        self.addCleanup(sits.kill)
        ident = wait_for(lambda: self.lab.run("squeue", "-h", "-o", "%i").stdout.strip())
        self.until(int(ident), "RUNNING")
        trial = self.trial()
        daemon.seen(trial)
        time.sleep(1)
        self.assertEqual(daemon.job(trial)["state"], "PENDING")
        self.until(trial, "COMPLETED")
        self.assertEqual(daemon.job(int(ident))["state"], "COMPLETED")
        self.assertEqual(sits.wait(timeout=30), 0)


class FourNodes(OnLab):
    """n1 and n4 have v100, n2 p100, n3 k80; the partition 'other' has n1 as well."""

    nodes = 4

    def test_starts_in_vain_end_with_the_owner(self):
        """Berth does not hear of a change after it has come: Slurm says so, again and again."""
        daemon = self.begin()
        full = self.lab.submit("--gres=gpu:p100:4")
        self.until(full, "RUNNING")
        ident = self.lab.submit("--gres=gpu:p100:1", script="true")
        daemon.seen(ident)
        self.lab.run("scontrol", "update", f"JobId={ident}", "ExcNodeList=n2")
        self.lab.run("scancel", str(full))
        job = self.until(ident, "HELD COMPLETED")
        self.assertEqual(job["state"], "HELD")
        wait_for(lambda: "starts in vain" in self.lab.run("scontrol", "show", "job",
                                                          str(ident)).stdout)
        self.assertEqual(state(self.lab, ident), "PENDING")
        self.lab.run("scontrol", "update", f"JobId={ident}", "ExcNodeList=")
        self.assertEqual(daemon.ask("PATCH", f"/v1/jobs/{ident}", {"hold": False})[0], 200)
        self.until(ident, "COMPLETED")

    def test_a_place_that_somebody_else_has_taken(self):
        daemon = self.begin()
        daemon.ask("GET", "/v1/nodes")
        bridge = wait_for(self.bridge)
        time.sleep(0.5)
        os.kill(bridge, signal.SIGSTOP)
        try:
            taken = self.lab.submit("-p", "other", "--gres=gpu:4")
            self.wait_state(taken, "RUNNING")
            ident = self.lab.submit("-N2", "--gres=gpu:v100:4", script="true")
            free = self.lab.submit("--gres=gpu:p100:1", script="true")
        finally:
            os.kill(bridge, signal.SIGCONT)
        self.until(free, "COMPLETED")
        if SOAK:  # and not before ten seconds are over
            lost = wait_for(lambda: [e for e in daemon.events(ident) if e["kind"] == "lost"])
            self.assertIn("has not started it", lost[0]["why"])
        self.lab.run("scancel", str(taken))
        self.until(ident, "COMPLETED")

    def test_scripts_from_outside(self):
        """torchrun on two nodes, submitit, Lightning, a signal to steps."""
        daemon = self.begin()
        log = self.log("outside")
        gang = self.lab.submit("-N2", "--gres=gpu:v100:4", "--ntasks-per-node=1", script=f"""
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)
export MASTER_ADDR MASTER_PORT=29500
srun bash -c 'echo rank $SLURM_PROCID of $SLURM_NNODES on $SLURMD_NODENAME of $MASTER_ADDR >> {log}'
""")
        self.assertEqual(self.until(gang, "COMPLETED REJECTED FAILED")["state"], "COMPLETED")
        self.assertEqual(sorted(self.lines(log)), ["rank 0 of 2 on n1 of n1",
                                                   "rank 1 of 2 on n4 of n1"])
        log = self.log("frames")
        lightning = self.lab.submit("--gres=gpu:k80:4", script=f"""#SBATCH --signal=SIGUSR1@90
#SBATCH --open-mode=append
echo lightning ${{SLURM_RESTART_COUNT:-0}} >> {log}
srun bash -c 'trap "echo hpc >> {log}; scontrol requeue $SLURM_JOB_ID; sleep 100" USR1
for i in $(seq 6000); do sleep 0.1; done'
""")
        submitit = self.lab.submit("--gres=gpu:p100:4", script=f"""#SBATCH --signal=USR2@90
#SBATCH --open-mode=append
#SBATCH --wckey=submitit
echo submitit ${{SLURM_RESTART_COUNT:-0}} >> {log}
srun --unbuffered bash -c 'trap "" TERM
trap "echo checkpoint >> {log}; scontrol requeue $SLURM_JOB_ID; exit 0" USR2
for i in $(seq 6000); do sleep 0.1; done'
""")
        for name, ident in (("lightning", lightning), ("submitit", submitit)):
            self.until(ident, "RUNNING")
            self.wait_line(log, name + " 0")
        time.sleep(2)  # until the steps have set their traps
        trials = [self.lab.submit(f"--gres=gpu:{kind}:4", "--comment=berth:class=te",
                                  script="sleep 0.3") for kind in ("k80", "p100")]
        for ident in trials:
            self.until(ident, "COMPLETED")
        for name, ident in (("lightning", lightning), ("submitit", submitit)):
            self.until(ident, "RUNNING")
            self.wait_line(log, name + " 1")
            self.assertEqual(daemon.job(ident)["preemptions"], 1)
        self.assertEqual(sorted(self.lines(log)),
                         ["checkpoint", "hpc", "lightning 0", "lightning 1", "submitit 0",
                          "submitit 1"])

    def test_an_array_and_two_users(self):
        daemon = self.begin()
        count = 50 if SOAK else 12
        full = [self.lab.submit("--gres=gpu:4") for _ in range(4)]
        for ident in full:
            self.until(ident, "RUNNING")
        first = self.lab.submit(f"--array=1-{count}", "--gres=gpu:1", script="true")
        done = self.lab.run("sbatch", "--parsable", "-o", "/dev/null", "--gres=gpu:1",
                            "--wrap=true", user=1)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = int(done.stdout)
        self.assertEqual(daemon.seen(theirs, 60)["user"], "daemon")

        def mine():
            jobs = daemon.ask("GET", "/v1/jobs?history=true&limit=1000")[1]["jobs"]
            return [j for j in jobs if j.get("array_id") == first]
        wait_for(lambda: len(mine()) == count)
        self.lab.run("scancel", f"{first}_3")
        # The last task has the array's own number: it alone is meant by that.
        self.assertEqual(daemon.ask("DELETE", f"/v1/jobs/{first}")[0], 200)
        self.lab.run("scancel", *map(str, full))
        wait_for(lambda: all(j["state"] in ("COMPLETED", "CANCELLED") for j in mine()), 240,
                 words=lambda: [(j["id"], j["state"]) for j in mine()])
        gone = {j["array_index"]: j.get("reason") for j in mine() if j["state"] == "CANCELLED"}
        self.assertEqual(sorted(gone), [3, count], gone)
        self.until(theirs, "COMPLETED")

    @unittest.skipUnless(SOAK, "waits for backfill, which comes every 30 s; BERTH_SOAK is not set")
    def test_a_het_job_is_left_to_slurm(self):
        daemon = self.begin()
        done = self.lab.run("sbatch", "--parsable", "-o", "/dev/null", "--gres=gpu:1", "-N1", ":",
                            "--gres=gpu:1", "-N1", user=NOBODY, text="#!/bin/sh\nsleep 1\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_state(int(done.stdout.split(";")[0]), "COMPLETED", "COMPLETED\nCOMPLETED")
        self.assertEqual(daemon.ask("GET", "/v1/jobs")[1]["jobs"], [])

    def test_a_node_leaves_the_partition(self):
        daemon = self.begin()
        self.lab.run("scontrol", "update", "PartitionName=gpu", "Nodes=n1")
        self.addCleanup(self.lab.run, "scontrol", "update", "PartitionName=gpu", "Nodes=ALL")
        wait_for(lambda: [n for n in daemon.ask("GET", "/v1/nodes")[1]["nodes"]
                          if n["name"] == "n2" and not n.get("up", True)],
                 words=lambda: daemon.ask("GET", "/v1/nodes"))
        idents = [self.lab.submit("--gres=gpu:3", script="true") for _ in range(3)]
        for ident in idents:
            self.until(ident, "COMPLETED")


@unittest.skipUnless(SOAK, "waits for Slurm's own time-outs; BERTH_SOAK is not set")
class LostNodes(OnLab):
    """A slurmd that does not come back: Slurm takes half a minute to notice."""

    nodes = 2

    def test_a_lost_node(self):
        daemon = self.begin()
        log = self.log("lost")
        here = self.lab.submit("--gres=gpu:2", script=f"""
echo $SLURMD_NODENAME >> {log}
for i in $(seq 6000); do sleep 0.1; done""")
        self.until(here, "RUNNING")
        node = daemon.nodes_of(here)[0]
        kind = {"n1": "v100", "n2": "p100"}[node]
        stays = self.lab.submit(f"--gres=gpu:{kind}:2", "--no-requeue")
        self.until(stays, "RUNNING")
        os.kill(self.lab.pid(f"slurmd.{node}"), signal.SIGKILL)
        self.addCleanup(self.lab.start, "slurmd", "-f", self.lab.env["SLURM_CONF"], "-N", node)
        job = wait_for(lambda: (j := daemon.job(stays))["state"] == "FAILED" and j, 180)
        self.assertIn("NODE_FAIL", job["reason"])
        wait_for(lambda: daemon.job(here)["state"] == "RUNNING" and
                 daemon.nodes_of(here) != [node], 180, words=daemon.words)
        events = daemon.events(here)
        lost = [e for e in events if e["kind"] == "lost"]
        self.assertEqual([e["why"] for e in lost], ["its node was lost"], events)
        again = [e for e in events if e["kind"] == "started"][-1]
        self.assertGreaterEqual(again["at"] - lost[0]["at"], 3)  # its ghost may still run
        wait_for(lambda: len(set(self.lines(log))) == 2)
        survived("a node's slurmd killed for good", 1, "a job that may runs again elsewhere, after "
                 "its ghost must be gone; one that may not has failed and says why", jobs=2)

    def test_a_restart_forgets_no_fence(self):
        daemon = self.begin()
        here = self.lab.submit("--gres=gpu:2")
        self.until(here, "RUNNING")
        node = daemon.nodes_of(here)[0]
        os.kill(self.lab.pid(f"slurmd.{node}"), signal.SIGKILL)
        self.addCleanup(self.lab.start, "slurmd", "-f", self.lab.env["SLURM_CONF"], "-N", node)
        wait_for(lambda: [e for e in daemon.events(here) if e["kind"] == "lost"], 180)
        daemon.kill(signal.SIGKILL)
        back = time.time()
        daemon.start()
        self.until(here, "RUNNING")
        self.assertGreaterEqual([e for e in daemon.events(here)
                                 if e["kind"] == "started"][-1]["at"], back + 3)
        survived("a node's slurmd killed for good, then berthd", 1, "the wait for the ghost of its "
                 "job begins anew", jobs=1)

    def test_a_new_node(self):
        daemon = self.begin()
        runs = self.lab.submit("--gres=gpu:v100:4")
        self.until(runs, "RUNNING")
        conf = self.lab.env["SLURM_CONF"]
        with open(conf, encoding="ascii") as file:
            text = file.read()
        line = [l for l in text.split("\n") if l.startswith("NodeName=n2")][0]
        port = int(line.split("Port=")[1].split()[0])
        new = line.replace("n2", "n3").replace("p100", "a100").replace(f"Port={port}",
                                                                       f"Port={port + 1}")
        with open(conf, "w", encoding="ascii") as file:
            file.write(text.replace(line, line + "\n" + new))
        with open(os.path.join(self.lab.dir, "gres.conf"), "a", encoding="ascii") as file:
            file.write(f"NodeName=n3 Name=gpu Type=a100 File={self.lab.dir}/dev/gpu[0-3]\n"
                       "NodeName=n3 Name=shard Count=8\n")
        os.mkdir(os.path.join(self.lab.dir, "spool", "n3"))
        pid = self.lab.pid("slurmctld")
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
        self.start_slurmctld()
        self.lab.start("slurmd", "-f", conf, "-N", "n3")
        self.lab.run("scontrol", "reconfigure")
        wait_for(lambda: [n for n in daemon.ask("GET", "/v1/nodes")[1].get("nodes", [])
                          if n["name"] == "n3" and n["up"]], words=daemon.words)
        ident = self.lab.submit("--gres=gpu:a100:4", script="true")
        self.until(ident, "COMPLETED")
        self.assertEqual(daemon.job(runs)["state"], "RUNNING")
        self.assertEqual(daemon.job(runs)["attempt"], 0)


@unittest.skipUnless(SOAK, LONG)
class WithCommands(Kills):
    """The same through scontrol, squeue and scancel."""

    driver = "commands"

    test_the_most_telling = None

    def test_everybody_at_every_step(self):
        self.each([(who, step) for who in ("berthd", "berth-slurm", "slurmctld")
                   for step in ("recalled", "grace", "saved", "left")])


if __name__ == "__main__":
    unittest.main()
