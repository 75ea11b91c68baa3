"""Everything that can die dies, on a real Slurm: nobody is lost, nobody runs twice."""
import os
import shutil
import signal
import subprocess
import threading
import time
import unittest

from live import BUILD
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
            self.assertNotIn("Assertion", words)

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
        began = sum(line.startswith("start") for line in self.lines(log))
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
        self.until(victim, "RUNNING")
        wait_for(lambda: sum(l.startswith("start") for l in self.lines(log)) > began,
                 words=lambda: f"{self.lines(log)}\n{self.daemon.words()}")
        lines = self.lines(log)
        self.assertNotIn("twice", lines)
        self.assertEqual(sum(l.startswith("start") for l in lines), began + 1, lines)
        self.assertEqual(state(self.lab, victim), "RUNNING")
        job = self.daemon.job(victim)
        self.assertEqual(job["preemptions"], turn)
        entries = [e for e in self.entries() if e["for"] == trial]
        self.assertEqual([e["victim"] for e in entries], [victim])
        kinds = [e["kind"] for e in self.daemon.events(trial)]
        self.assertEqual(kinds.count("started"), 1, kinds)
        self.assertEqual(kinds.count("finished"), 1, kinds)

    def wait_kept(self, ident):
        """Slurm forgets in a crash what it has not written yet."""
        path = os.path.join(self.lab.dir, "state", f"hash.{ident % 10}", f"job.{ident}")
        since = os.stat(path).st_mtime
        wait_for(lambda: os.stat(f"{self.lab.dir}/state/job_state").st_mtime > since + 0.5)

    def each(self, pairs):
        self.begin()
        log = self.log("victim")
        victim = self.victim(log, save=0.7)
        for turn, (who, step) in enumerate(pairs, 1):
            with self.subTest(who=who, step=step):
                self.one(who, step, victim, log, turn)

    def test_the_most_telling(self):
        self.each([("berthd", "recalled"), ("berthd", "saved"), ("berth-slurm", "grace"),
                   ("slurmctld", "grace")])

    @unittest.skipUnless(SOAK, LONG)
    def test_everybody_at_every_step(self):
        self.each([(who, step) for who in ("berthd", "berth-slurm", "slurmctld", "munged",
                                           "slurmd")
                   for step in ("submitted", "recalled", "grace", "saved", "left")])


if __name__ == "__main__":
    unittest.main()
