"""State folders that earlier versions wrote (tests/data/make_state.py) are read by this berthd.

The machine lost its power: jobs that ran there are in the queue again, everything else is as it
was.
"""
import json
import os
import shutil
import sqlite3
import unittest

from live import Daemon, until
from support import Case, ROOT

DATA = os.path.join(ROOT, "tests", "data")
ENDED = {
    1: {"name": "completed", "state": "COMPLETED", "exit_code": 0, "attempt": 0,
        "progress": {"step": 3, "steps": 3, "loss": 0.6}},
    2: {"name": "failed", "state": "FAILED", "exit_code": 3, "attempt": 1,
        "reason": "exit status 3"},
    3: {"name": "cancelled", "state": "CANCELLED", "exit_code": 143, "reason": "cancelled"},
    4: {"name": "rejected", "state": "REJECTED", "gpus": 99},
    7: {"name": "array", "state": "COMPLETED", "array_id": 7, "array_index": 0, "exit_code": 0},
    11: {"name": "trial-ended", "state": "COMPLETED", "class": "te", "exit_code": 0},
}
LIVE = {
    5: {"name": "preempted", "preemptions": 2, "gpus": 2},
    6: {"name": "running", "preemptions": 0, "gpus": 2, "entity": "vision"},
    8: {"name": "array", "array_id": 7, "array_index": 1},
    9: {"name": "array", "array_id": 7, "array_index": 2, "state": "HELD",
        "reason": "1 jobs of its array run at once, and that many are under way"},
    10: {"name": "dependent", "state": "HELD", "reason": "it waits until job 8 has completed"},
    12: {"name": "trial", "class": "te", "state": "RUNNING", "gpus": 2, "attempt": 1},
    13: {"name": "waiting", "state": "PENDING", "gpus": 4},
    14: {"name": "held", "state": "HELD", "reason": "its owner holds it"},
    15: {"name": "later", "state": "HELD"},
}


class State(Case):
    """All of it for each of the folders: 'data', the version of whose tables is 'version'."""
    data, version = "", 0

    def setUp(self):
        super().setUp()
        self.daemon = Daemon(gpus=None)  # which GPUs there are is in the database
        self.addCleanup(self.daemon.wipe)
        self.keep("36500d")  # its jobs ended long ago
        os.mkdir(self.daemon.state, 0o700)
        base = sqlite3.connect(os.path.join(self.daemon.state, "berth.db"))
        data = os.path.join(DATA, self.data)
        with open(os.path.join(data, "berth.sql"), encoding="utf-8") as file:
            base.executescript(file.read())
        if self.version > 1:  # before the jobs: triggers count what they need
            base.execute("UPDATE usage SET uid = ?", (os.getuid(),))
        base.execute("UPDATE job SET uid = ?, request = replace(request, '/tmp/berth-state', ?)",
                     (os.getuid(), self.daemon.dir))
        base.commit()
        base.close()
        shutil.copytree(os.path.join(data, "log"), os.path.join(self.daemon.state, "log"))

    def keep(self, time):
        config = os.path.join(self.daemon.dir, "berthd.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"keep_jobs: {time}\nkeep_reports: {time}\n")
        self.daemon.flags = ["--config", config]

    def ask(self, sql):
        base = sqlite3.connect(f"file:{self.daemon.state}/berth.db?mode=ro", uri=True)
        rows = base.execute(sql).fetchall()
        base.close()
        return rows

    def read(self, *words):
        done = self.berth(words[0], "--socket", self.daemon.socket, "--json", *words[1:])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def again(self, ident, attempt):
        job = self.daemon.job(ident)
        return (job["state"], job["attempt"]) == ("RUNNING", attempt)

    def check(self, found, wanted):
        for ident, fields in wanted.items():
            self.assertEqual({key: found[ident].get(key) for key in fields}, fields,
                             f"job {ident}: {found[ident]}")

    def test_everything_is_there_again(self):
        self.daemon.start()
        # The trial starts again at once; the other GPUs go to one of the best-effort jobs.
        until(lambda: self.again(12, 1) and (self.again(5, 2) or self.again(6, 1)))
        queue = {job["id"]: job for job in self.read("queue")["jobs"]}
        self.assertEqual(sorted(queue), sorted(LIVE))
        self.check(queue, LIVE)
        history = {job["id"]: job for job in self.read("history")["jobs"]}
        self.assertEqual(sorted(history), sorted(ENDED))
        self.check(history, ENDED)
        self.check({ident: self.read("show", str(ident)) for ident in {**LIVE, **ENDED}},
                   {**LIVE, **ENDED})

    def test_environments_are_kept_apart_and_those_of_ended_jobs_are_gone(self):
        self.daemon.start()
        kept = dict(self.ask("SELECT id, env FROM launch WHERE env IS NOT NULL"))
        requests = [text for (text,) in self.ask("SELECT request FROM job")]
        self.assertEqual(sorted(kept), sorted(LIVE))
        for env in kept.values():
            self.assertEqual(json.loads(env)["PATH"], "/usr/bin:/bin")
        self.assertEqual(len(requests), len(LIVE) + len(ENDED))
        for request in requests:
            self.assertNotIn("env", json.loads(request))
        copy = f"{self.daemon.state}/berth.db.before-{self.version + 1}"
        self.assertEqual(os.stat(copy).st_mode & 0o777, 0o600)

    def test_what_preemptions_cost_is_known(self):
        self.daemon.start()
        first, second = sorted(self.read("ledger")["entries"], key=lambda entry: entry["at"])
        for entry, beneficiary in ((first, 11), (second, 12)):
            self.assertEqual((entry["victim"], entry["for"], entry["rule"], entry["gpus"]),
                             (5, beneficiary, "trial", 2))
            self.assertEqual(entry["predicted_cost_gpu_s"], 2)
            self.assertGreater(entry["pause_gpu_s"], 0)
        self.assertGreater(first["load_gpu_s"], 0)
        self.assertEqual([cause["job"] for cause in self.read("show", "5")["preempted_by"]],
                         [12, 11])

    def test_output_events_and_policy_are_kept(self):
        self.daemon.start()
        self.assertEqual(self.daemon.ask("GET", "/v1/jobs/1/log")[1],
                         "step 1 loss 0.8\nstep 2 loss 0.7\nstep 3 loss 0.6\n")
        losses = [event["loss"] for event in self.daemon.events(6) if "loss" in event]
        self.assertGreater(len(losses), 3)
        self.assertEqual(losses, sorted(losses, reverse=True))
        kinds = [event["kind"] for event in self.daemon.events(1)]
        self.assertEqual((kinds[0], kinds[-1]), ("submitted", "finished"))
        self.assertIn("fitgpp,max_preemptions=0",
                      json.dumps(self.daemon.ask("GET", "/v1/server")[1]))

    def test_the_jobs_can_be_worked_on(self):
        self.daemon.start()
        for ident in (13, 14, 15, 8, 12):
            self.assertEqual(self.daemon.ask("DELETE", f"/v1/jobs/{ident}")[0], 200)
            self.daemon.wait(ident, {"CANCELLED"})
        # What waited for a job that was cancelled never starts; the next of the array does.
        self.daemon.wait(10, {"CANCELLED", "FAILED"})
        self.assertEqual(self.daemon.sh("true"), 16)
        self.daemon.wait(16, {"COMPLETED", "PENDING", "RUNNING"})

    def test_old_jobs_can_be_pruned_and_the_file_can_shrink(self):
        self.keep("1s")
        self.daemon.start()
        until(lambda: not self.ask("SELECT 1 FROM job WHERE end_ns IS NOT NULL AND id != 7"))
        self.assertEqual([ident for (ident,) in self.ask("SELECT id FROM job ORDER BY id")],
                         sorted({**LIVE, 7: ENDED[7]}))  # 7 is of an array that lives
        self.assertEqual(self.ask("PRAGMA auto_vacuum"), [(2,)])
        until(lambda: not os.path.exists(f"{self.daemon.state}/log/1.out"))
        (stored,), = self.ask("SELECT bytes FROM usage")
        (wanted,), = self.ask(
            "SELECT sum(1024 + length(request) + coalesce(length(env), 0) + "
            "coalesce(length(script), 0)) FROM job LEFT JOIN launch USING (id)")
        self.assertEqual(stored, wanted)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(sorted(job["id"] for job in self.read("queue")["jobs"]), sorted(LIVE))
        self.assertEqual(self.daemon.sh("true"), 16)

    def test_a_newer_state_is_refused(self):
        path = os.path.join(self.daemon.state, "berth.db")
        base = sqlite3.connect(path)
        base.execute("PRAGMA user_version = 99")
        base.commit()
        base.close()
        with self.assertRaisesRegex(AssertionError, "version 99, written by a newer berthd"):
            self.daemon.start()


class FirstRelease(State):
    data, version = "state-0.1", 1


class BeforePruning(State):
    data, version = "state-5", 5


del State

if __name__ == "__main__":
    unittest.main()
