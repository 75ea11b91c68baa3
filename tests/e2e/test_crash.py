"""berthd killed at random moments under a stream of submissions, cancellations and
preemptions: every job that was acknowledged ends exactly once, and none runs twice.

Each job appends a line to a file of its own when an attempt begins and when it ends, with
O_APPEND, so that what really ran can be compared with what the books say.
"""
import http.client
import os
import random
import signal
import threading
import time
import unittest

from injected import survived
from live import BUILD, Daemon, ENDED

SOAK = os.environ.get("BERTH_SOAK")
KILLS = int(os.environ.get("BERTH_KILLS") or (300 if SOAK else 6 if "asan" in BUILD else 12))
SEED = int(os.environ.get("BERTH_SEED") or 1)

# Two attempts of one job at the same time would find each other's lock.
JOB = """
exec 9>>"$MARK.lock"
flock -n 9 || echo "twice $BERTH_ATTEMPT" >>"$MARK"
echo "begin $BERTH_ATTEMPT" >>"$MARK"
trap 'echo "saved $BERTH_ATTEMPT" >>"$MARK"; exit 85' TERM
i=0
while [ $i -lt $STEPS ]; do sleep 0.05 9>&-; i=$((i+1)); done
echo "end $BERTH_ATTEMPT" >>"$MARK"
exit $CODE
"""


class Crash(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(SEED)
        print(f"# BERTH_SEED={SEED}", flush=True)
        self.daemon = Daemon(gpus="v100:4")
        self.addCleanup(self.daemon.wipe)
        self.accepted = {}  # id: (mark, exit code)
        self.unsure = []    # marks of submissions that were not answered
        self.cancelled = set()
        self.over = threading.Event()
        self.addCleanup(self.over.set)  # a client that nobody ends goes on for ever
        self.supervised = True  # nobody ends a supervisor

    def submit_some(self):
        number = 0
        rng = random.Random(SEED * 7)
        while not self.over.is_set():
            number += 1
            mark = os.path.join(self.daemon.dir, f"mark{number}")
            code = 3 if rng.random() < 0.1 else 0
            trial = rng.random() < 0.3
            env = {"PATH": os.environ["PATH"], "MARK": mark, "CODE": str(code),
                   "STEPS": str(rng.randrange(1, 6 if trial else 30))}
            try:
                ident = self.daemon.sh(JOB, env=env, gpus=rng.choice([1, 1, 2]),
                                       grace_s=5, **{"class": "te" if trial else "be"})
                self.accepted[ident] = (mark, code)
                if rng.random() < 0.15:
                    self.cancelled.add(ident)  # perhaps, if nobody answers
                    status, _ = self.daemon.ask("DELETE", f"/v1/jobs/{ident}")
                    if status != 200:
                        self.cancelled.discard(ident)
            except (OSError, http.client.HTTPException):
                self.unsure.append(mark)
                time.sleep(0.05)
            time.sleep(rng.random() * 0.15)

    def test_no_job_is_lost_or_run_twice(self):
        self.daemon.start()
        clients = [threading.Thread(target=self.submit_some)]
        for client in clients:
            client.start()
        for _ in range(KILLS):
            time.sleep(self.rng.random() * 0.6)
            self.daemon.kill()
            time.sleep(self.rng.random() * 0.2)
            self.daemon.start()
        self.over.set()
        for client in clients:
            client.join()
        self.check_all()
        survived("berthd killed with signal 9, at a random moment", KILLS,
                 "every acknowledged job ends exactly once, with its own exit code unless it was "
                 "cancelled, and no two attempts run at a time", seed=SEED, jobs=len(self.accepted))

    def test_supervisors_are_killed(self):
        """Whoever loses his supervisor starts again, and never beside himself."""
        self.supervised = False
        self.daemon.start()
        client = threading.Thread(target=self.submit_some)
        client.start()
        killed = 0
        for turn in range(KILLS * 2):
            time.sleep(self.rng.random() * 0.3)
            found = self.daemon.supervisors()
            if found:
                try:
                    os.kill(self.rng.choice(found), signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
            if turn % 8 == 7:
                self.daemon.kill()
                self.daemon.start()
        self.over.set()
        client.join()
        self.check_all()
        survived("a job's supervisor killed with signal 9, and at times berthd", killed,
                 "every acknowledged job ends exactly once, begun anew where it has to and given up "
                 "after ten times at the earliest, and never runs beside itself", seed=SEED, jobs=len(self.accepted))

    def check_all(self):
        for ident in sorted(self.accepted):
            job = self.daemon.wait(ident, ENDED, 120)
            self.check_one(ident, job)
        base = self.daemon.events()
        ends = {}
        for event in base:
            if event["kind"] in ("finished", "failed"):
                ends[event["job"]] = ends.get(event["job"], 0) + 1
        self.assertLessEqual(max(ends.values(), default=0), 1)
        known = set(ends) | self.cancelled
        for ident in self.accepted:
            self.assertIn(ident, known)

    def check_one(self, ident, job):
        mark, code = self.accepted[ident]
        lines = []
        if os.path.exists(mark):
            with open(mark, encoding="utf-8") as file:
                lines = file.read().split("\n")[:-1]
        words = [line.split()[0] for line in lines]
        attempts = [line.split()[1] for line in lines if line.startswith("begin")]
        message = f"job {ident}: {job}\n{lines}\n{self.daemon.events(ident)}\n{self.daemon.words()}"
        self.assertNotIn("twice", words, message)
        self.assertEqual(len(attempts), len(set(attempts)), message)
        if ident in self.cancelled:
            self.assertIn(job["state"], ("CANCELLED", "COMPLETED", "FAILED"), message)
            return
        if not self.supervised and job.get("reason") == "its supervisor was killed":
            self.assertGreaterEqual(len(attempts), 10, message)  # again and again
            return
        self.assertEqual(job["state"], "FAILED" if code else "COMPLETED", message)
        if self.supervised:
            self.assertEqual(words.count("end"), 1, message)
        else:
            self.assertGreaterEqual(words.count("end"), 1, message)
        self.assertEqual(job["exit_code"], code, message)


if __name__ == "__main__":
    unittest.main()
