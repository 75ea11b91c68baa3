"""A Slurm whose berthd has gone: new jobs are not held, those that wait are let go, and when it is
back it takes up what waits and leaves alone what runs.  The rights are those of a site: berthd has
none, berth-slurm and the watchdog are SlurmUser's."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from slurm_lab import NOBODY, Lab, missing
from support import BUILD, ROOT
from test_slurm import Slurmed, reason, state

SLURM = "slurm"  # SlurmUser
LIMIT_S = 6
LEFT = "berth: left to Slurm, as berthd was away"
WATCHDOG = os.path.join(ROOT, "contrib", "slurm", "watchdog")


@unittest.skipIf(missing(), missing())
class Away(unittest.TestCase):
    """One Slurm for all; a berthd each."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(env={"BERTH_LAB_SLURM_USER": SLURM, "BERTH_LAB_FAIL_OPEN": "1"})
        cls.addClassCleanup(cls.lab.down)
        cls.heartbeat = os.path.join(cls.lab.dir, "bells", "heartbeat")
        cls.stamp = os.path.join(cls.lab.dir, "bells", "watchdog")
        cls.log = os.path.join(cls.lab.work, "runs")
        # As installed: SlurmUser may not get at where they were built.
        programs = os.path.join(cls.lab.dir, "bin")
        os.mkdir(programs)
        for path in (WATCHDOG, os.path.join(BUILD, "berth"), os.path.join(BUILD, "berth-slurm")):
            shutil.copy(path, programs)
        cls.watchdog = os.path.join(programs, "watchdog")
        cls.lab.env.update(BERTH_HEARTBEAT=cls.heartbeat, BERTH_WATCHDOG_DIR=cls.stamp,
                           PATH=programs + ":" + cls.lab.env["PATH"])

    def setUp(self):
        self.daemon = None
        self.addCleanup(self.clear)
        with open(self.log, "w", encoding="ascii"):
            os.chmod(self.log, 0o666)

    def clear(self):
        self.lab.run("scancel", "-u", str(NOBODY))
        self.until(lambda: not self.lab.run("squeue", "-h", "-a").stdout.strip())
        if self.daemon:
            words = self.daemon.words()
            self.daemon.wipe()
            self.assertNotIn("nothing was changed", words)
        if os.path.isdir(self.heartbeat):
            os.rmdir(self.heartbeat)
        elif os.path.exists(self.heartbeat):
            os.remove(self.heartbeat)

    def begin(self):
        munge = os.path.join(self.lab.dir, "run", "munge.socket")
        self.daemon = Slurmed(self.lab, "--system", more=f"""
slurm_user: {SLURM}
munge_socket: {munge}
slurm_heartbeat: {self.heartbeat}
fail_open_s: {LIMIT_S}
""")
        self.daemon.start()
        self.until(lambda: os.path.exists(self.heartbeat) and self.silence() < LIMIT_S)
        return self.daemon

    def until(self, there, seconds=60):
        """What 'there' brings, once it brings something."""
        end = time.monotonic() + seconds
        while not (found := there()):
            if time.monotonic() > end:
                self.fail((self.daemon.words() if self.daemon else "") +
                          self.lab.run("scontrol", "show", "job").stdout)
            time.sleep(0.05)
        return found

    def submit(self, *flags, seconds=1000):
        return self.lab.submit(*flags, script=f"echo $SLURM_JOB_ID >> {self.log}; sleep {seconds}")

    def runs(self, ident):
        """How often its script has begun."""
        return self.lab.output("runs").split().count(str(ident))

    def write_heartbeat(self, text):
        with open(self.heartbeat, "w", encoding="ascii") as file:
            file.write(text)

    def silence(self):
        """Seconds since the last heartbeat."""
        with open(self.heartbeat, encoding="ascii") as file:
            return time.time() - int(file.read().split()[0])

    def watch(self):
        done = self.lab.run(self.watchdog, "--partition", "gpu", user=SLURM)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def shown(self, ident, field):
        text = self.lab.run("scontrol", "show", "job", str(ident)).stdout
        found = re.search(rf"(?m)(?:^|\s){field}=(.*?)(?:\s\w+=|$)", text)
        return found.group(1).strip() if found else ""

    def test_berthd_is_killed_and_comes_back(self):
        daemon = self.begin()
        full = [self.submit("-N1", "--gres=gpu:4") for _ in range(4)]
        for ident in full:
            daemon.until(ident, "RUNNING")
        waits = [self.submit("-N1", "--gres=gpu:1", seconds=1) for _ in range(4)]
        chain = self.submit(f"--dependency=afterok:{waits[0]}", "--gres=gpu:1", seconds=0)
        own = self.submit("-H", "--gres=gpu:1")
        for ident in (*waits, own):
            daemon.seen(ident)
        daemon.until(chain, "HELD")
        self.assertEqual(self.watch(), "")
        daemon.kill(signal.SIGKILL)

        # It may come back at any moment: nothing is different yet.
        early = self.submit("--gres=gpu:1", seconds=0)
        self.assertEqual(self.watch(), "")
        for ident in (early, *waits):
            self.assertIn("JobHeld", reason(self.lab, ident))
        self.until(lambda: self.silence() > LIMIT_S + 1)

        # What comes now is Slurm's, sbatch and srun alike.
        gone, stay = full[:2], full[2:]
        for ident in gone: # room for all that waits: how fast Slurm fills a node is not the question
            self.lab.run("scancel", str(ident))
        late = self.submit("-N1", "--gres=gpu:1")
        self.until(lambda: state(self.lab, late) == "RUNNING")
        self.assertEqual(self.shown(late, "AdminComment"), LEFT)
        began = time.monotonic()
        done = self.lab.run("timeout", "30", "srun", "--gres=gpu:1", "-Q", "echo", "at once",
                            user=NOBODY)
        self.assertEqual((done.returncode, done.stdout), (0, "at once\n"), done)
        self.assertLess(time.monotonic() - began, 10)
        # An owner may let a waiting one go, and hold one as ever.
        self.assertEqual(self.lab.run("scontrol", "release", str(early),
                                      user=NOBODY).returncode, 0)
        self.until(lambda: state(self.lab, early) == "COMPLETED")
        held = self.submit("-H", "--gres=gpu:1", seconds=0)
        self.assertEqual(reason(self.lab, held), "JobHeldUser")
        self.assertEqual(self.lab.run("scontrol", "release", str(held), user=NOBODY).returncode, 0)
        self.until(lambda: state(self.lab, held) == "COMPLETED")
        self.assertEqual({state(self.lab, ident) for ident in waits}, {"PENDING"})

        # What waits is let go by the watchdog.
        self.assertRegex(self.watch(), r"^5 jobs released; 1 stays held, as the owner wants it\n$")
        self.until(lambda: {state(self.lab, ident) for ident in (*waits, chain)} == {"COMPLETED"})
        self.assertEqual(reason(self.lab, own), "JobHeldUser")
        self.assertEqual(self.watch(), "")

        # It comes back: what runs runs on, what waits is its own.
        big = self.submit("-N2", "--gres=gpu:4", seconds=0)
        self.assertEqual(self.shown(big, "AdminComment"), LEFT)
        began = {ident: (self.shown(ident, "StartTime"), self.shown(ident, "NodeList"))
                 for ident in (late, *stay)}
        daemon.start()
        for ident, place in began.items():
            job = daemon.until(ident, "RUNNING")
            self.assertEqual((job["attempt"], job.get("preemptions", 0)), (0, 0))
            self.assertEqual(daemon.nodes_of(ident), [place[1]])
        self.assertIn(f"job {late} came while berthd was away: it runs on", daemon.words())
        daemon.seen(big)
        self.until(lambda: self.shown(big, "Priority") == "0")
        self.until(lambda: "back" in self.shown(big, "AdminComment"))
        self.until(lambda: self.silence() < LIMIT_S)
        self.assertEqual(self.watch(), "")
        new = self.submit("--gres=gpu:1", "--comment=berth:class=te", seconds=0)
        self.assertEqual(self.shown(new, "AdminComment"), "")
        daemon.until(new, "COMPLETED")
        self.assertNotEqual(self.lab.run("scontrol", "release", str(big),
                                         user=NOBODY).returncode, 0)
        time.sleep(3) # longer than it takes to hold what comes back
        for ident, place in began.items():
            self.assertEqual(state(self.lab, ident), "RUNNING")
            self.assertEqual((self.shown(ident, "StartTime"), self.shown(ident, "NodeList")), place)
            self.assertEqual(self.shown(ident, "Restarts"), "0")
        for ident in (late, *stay): # two whole nodes of one type come free
            self.lab.run("scancel", str(ident))
        daemon.until(big, "COMPLETED")
        for ident in (*full, *waits, chain, early, late, held, big, new):
            self.assertEqual(self.runs(ident), 1, ident)

    def test_a_heartbeat_of_any_kind_fails_no_submission(self):
        now = int(time.time())
        for text, is_held in ((f"{now} 60\n", True), (f"{now - 3600} 60\n", False),
                              (f"{now + 3600} 60\n", False), (f"{now - 3600} 0\n", True),
                              ("", False), ("nonsense\n", False), (f"{now}", False),
                              ("9" * 5000, False), (f"-{now} 60\n", False), (None, False),
                              ("folder", False)):
            with self.subTest(text=text and text[:40]):
                if os.path.exists(self.heartbeat):
                    os.remove(self.heartbeat)
                if text == "folder":
                    os.mkdir(self.heartbeat)
                elif text is not None:
                    self.write_heartbeat(text)
                    os.chmod(self.heartbeat, 0o644)
                ident = self.lab.submit("--gres=gpu:1", "--begin=now+1000")
                self.assertEqual(self.shown(ident, "Priority") == "0", is_held)
                self.assertEqual(self.shown(ident, "AdminComment"), "" if is_held else LEFT)
        # Other partitions know nothing of it.
        ident = self.lab.submit("-p", "other", "--gres=gpu:1", "--begin=now+1000")
        self.assertEqual(self.shown(ident, "AdminComment"), "")

    def test_what_no_node_can_give_is_refused_at_once(self):
        self.begin()
        for flags, wrong in ((["--gres=gpu:5"], "asks for 1 node with 5 GPUs, and there are 0"),
                             (["-N3", "--gres=gpu:v100:1"], "3 nodes with 1 GPU of type v100, and "
                              "there are 2"),
                             (["-N5", "--gpus-per-node=1"], "5 nodes with 1 GPU, and there are 4"),
                             (["--gres=gpu:h100"], "with 1 GPU of type h100, and there are 0"),
                             (["--gpus=17"], "asks for 17 GPUs, and there are 16"),
                             (["--gpus=p100:5"], "asks for 5 GPUs of type p100, and there are 4")):
            with self.subTest(flags=flags):
                done = self.lab.run("sbatch", "-p", "gpu", *flags, user=NOBODY,
                                    text="#!/bin/sh\ntrue\n")
                self.assertEqual(done.returncode, 1, done)
                self.assertIn(wrong, done.stderr)
        for flags in (["--gres=gpu:4"], ["-N2", "--gres=gpu:v100:4"], ["--gpus=16"], ["-N4"],
                      ["--gres=gpu:v100:1"], ["--gres=gpu"], ["--gres=shard:1"],
                      ["--gpus-per-task=2", "-n2"], ["--mem=1"]):
            self.lab.submit("--begin=now+1000", *flags)

    def test_no_heartbeat_without_an_answer_of_slurm(self):
        daemon = self.begin()
        self.assertEqual(os.stat(self.heartbeat).st_mode & 0o777, 0o644)
        stopped = self.lab.pid("slurmctld")
        os.kill(stopped, signal.SIGSTOP)
        try:
            self.until(lambda: self.silence() > LIMIT_S + 2)
            self.assertEqual(daemon.ask("GET", "/v1/server")[0], 200)
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.until(lambda: self.silence() < LIMIT_S)

    def test_the_watchdog_gives_way_to_a_berthd_that_is_back(self):
        self.write_heartbeat(f"{int(time.time())} {LIMIT_S}\n")
        ident = self.lab.submit("--gres=gpu:1")
        self.write_heartbeat(f"{int(time.time()) - 100} {LIMIT_S}\n")
        with subprocess.Popen([self.watchdog, "--partition", "gpu"], env=self.lab.env,
                              stdout=subprocess.PIPE, text=True) as watchdog:
            time.sleep(2)
            self.write_heartbeat(f"{int(time.time())} 60\n")
            self.assertEqual(watchdog.communicate(timeout=60)[0], "")
        self.assertEqual((watchdog.returncode, reason(self.lab, ident)), (0, "JobHeldUser"))
        # Off: it waits for berthd, however long that takes.
        self.write_heartbeat(f"{int(time.time()) - 100} 0\n")
        self.assertEqual(self.watch(), "")
        self.assertEqual(reason(self.lab, ident), "JobHeldUser")

    def test_check_says_whether_the_guard_is_there(self):
        def check(*flags):
            return self.lab.run(os.path.join(BUILD, "berth-slurm"), "--check", *flags)
        new, old = ("jobs are left to Slurm while berthd is away" for _ in range(2))
        self.write_heartbeat(f"{int(time.time()) - 100} {LIMIT_S}\n")
        self.watch()
        done = check("--partition", "gpu")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, "ok   jobs of partition gpu arrive held\n")
        self.assertRegex(done.stdout, f"NO   new {new}: berthd was there 10[0-9] s ago")
        self.assertRegex(done.stdout, f"ok   waiting {old}\n")
        self.write_heartbeat(f"{int(time.time())} {LIMIT_S}\n")
        os.utime(os.path.join(self.stamp, "last"), (1, 1))
        done = check("--partition", "gpu")
        self.assertRegex(done.stdout, f"ok   new {new}\n")
        self.assertRegex(done.stdout, f"NO   waiting {old}: start berth-slurm-watchdog")
        # One that the plugin does not hold is no longer passed over.
        done = check("--partition", "other")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "NO   jobs of partition other arrive held: name it in")


if __name__ == "__main__":
    unittest.main()
