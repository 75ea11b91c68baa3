"""What berthd keeps, and for how long: jobs that ended go with all that is kept of them, what
live jobs need stays, secrets are on disk no longer than their job; long lists are read in pages."""
import json
import os
import time
import unittest

from live import Daemon, ENDED, until
from support import Case


class Kept(Case):
    def setUp(self):
        super().setUp()
        self.daemon = Daemon()
        self.addCleanup(self.daemon.wipe)

    def start(self, keep="2s"):
        """Reports and jobs are kept that long after a job's end."""
        config = os.path.join(self.daemon.dir, "berthd.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"keep_jobs: {keep}\nkeep_reports: {keep}\n")
        self.daemon.flags += ["--config", config]
        self.daemon.start()

    def says(self, *words):
        return self.berth(words[0], "--socket", self.daemon.socket, *words[1:])

    def is_kept(self, ident):
        return self.daemon.ask("GET", f"/v1/jobs/{ident}")[0] == 200

    def ended(self, ident):
        """Whether it has; it may have been pruned since."""
        status, job = self.daemon.ask("GET", f"/v1/jobs/{ident}")
        return status == 404 or job["state"] in ENDED

    def ends(self, script="true", **request):
        """A job that has ended."""
        ident = self.daemon.sh(script, **request)
        until(lambda: self.ended(ident))
        return ident

    def path(self, *parts):
        return os.path.join(self.daemon.state, *map(str, parts))

    def is_on_disk(self, text):
        for name in ("berth.db", "berth.db-wal"):
            try:
                with open(self.path(name), "rb") as file:
                    if text.encode() in file.read():
                        return True
            except FileNotFoundError:
                pass
        return False


class Jobs(Kept):
    def test_an_old_job_goes_with_all_that_is_kept_of_it(self):
        self.start()
        other = os.path.join(self.daemon.dir, "own.out")
        live = self.daemon.sh("echo hello; touch $BERTH_CKPT_DIR/step; sleep 1000")
        self.daemon.wait(live, {"RUNNING"})
        ident = self.ends("echo output; mkdir -p $BERTH_CKPT_DIR/a/b; "
                          "echo 1 > $BERTH_CKPT_DIR/a/b/step; ln -s / $BERTH_CKPT_DIR/root")
        named = self.ends("echo mine", output=other)
        until(lambda: not self.is_kept(ident) and not self.is_kept(named))
        until(lambda: not os.path.exists(self.path("ckpt", ident)))
        self.assertFalse(os.path.exists(self.path("log", f"{ident}.out")))
        self.assertTrue(os.path.exists(other))  # a file that its user named
        self.assertTrue(os.path.exists(self.path("log", f"{live}.out")))
        self.assertTrue(os.path.exists(self.path("ckpt", live, "step")))
        self.assertEqual(self.daemon.events(ident), [])

        words = f"job {ident} ended and is no longer kept; history goes back to 20"
        for verb in ("show", "why", "logs", "hold", "cancel"):
            done = self.says(verb, str(ident))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr, verb)
        self.assertIn("there is no job 999", self.says("show", "999").stderr)
        done = self.says("history")
        self.assertEqual(done.stdout, "No such jobs.\n")
        self.assertIn("History goes back to ", done.stderr)
        self.assertEqual(json.loads(self.says("history", "--json").stdout)["jobs"], [])

    def test_a_restart_after_pruning_finds_the_live_jobs_and_uses_no_number_twice(self):
        self.start()
        live = self.daemon.sh("i=0; while :; do i=$((i+1)); echo step $i loss 0.5; sleep 0.1; done",
                              pattern="step ([0-9]+) loss ([0-9.]+)")
        self.daemon.wait(live, {"RUNNING"})
        last = self.daemon.sh("sleep 1000")
        seq = self.daemon.events()[-1]["seq"]
        self.daemon.ask("DELETE", f"/v1/jobs/{last}")
        until(lambda: not self.is_kept(last))
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.daemon.wait(live, {"RUNNING"})["attempt"], 0)
        self.assertEqual(self.daemon.sh("sleep 1000"), last + 1)
        until(lambda: self.daemon.events()[-1]["seq"] > seq)
        self.assertIn("is no longer kept", self.says("show", str(last)).stderr)

    def test_what_live_jobs_need_stays(self):
        self.start()
        needed = self.daemon.sh("sleep 1")
        waits = self.daemon.sh("true", dependency=[{"kind": "afterok", "id": needed}], hold=True)
        status, answer = self.daemon.ask("POST", "/v1/jobs", {"jobs": [
            {"command": ["sleep", "0" if i == 0 else "1000"], "cwd": "/", "gpus": 0,
             "array_index": i} for i in range(2)]})
        self.assertEqual(status, 201, answer)
        ended, task = answer["ids"]
        until(lambda: self.ended(needed) and self.ended(ended))
        self.daemon.wait(task, {"RUNNING"})
        later = self.ends()
        until(lambda: not self.is_kept(later))  # what ended before it would be gone too
        self.assertTrue(self.is_kept(needed))
        self.assertTrue(self.is_kept(ended))
        self.assertEqual(self.daemon.job(f"{ended}_0")["id"], ended)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.daemon.job(waits)["state"], "HELD")
        self.assertEqual(self.says("release", str(waits)).returncode, 0)
        until(lambda: self.ended(waits))
        self.assertEqual(self.says("cancel", str(task)).returncode, 0)
        until(lambda: not any(map(self.is_kept, (needed, ended, task))))
        self.assertIn("is no longer kept",
                      self.says("submit", "-d", f"afterok:{needed}", "--wrap", "true").stderr)

    def test_bytes_stored_go_down(self):
        self.start()

        def used():
            return self.daemon.ask("GET", "/v1/limits")[1]["limits"]["bytes_stored"]["used"]
        ident = self.daemon.sh("sleep 1000")
        self.assertGreater(used(), 1024)
        self.daemon.ask("DELETE", f"/v1/jobs/{ident}")
        until(lambda: not self.is_kept(ident))
        self.assertEqual(used(), 0)


class Secrets(Kept):
    def test_an_environment_is_on_disk_no_longer_than_its_job(self):
        self.start()

        def env(mark, size):
            return {"PATH": os.environ["PATH"], "KEY": mark, "MORE": mark * (size // len(mark))}
        live = self.daemon.sh("sleep 1000", env=env("alive-72c1", 5000))
        for size in (10, 3000, 40000):
            self.ends(env=env("secret-91fe", size))
        self.assertEqual(self.daemon.job(live)["state"], "RUNNING")
        self.assertTrue(self.is_on_disk("alive-72c1"))  # so it would be found
        until(lambda: not self.is_on_disk("secret-91fe"))
        self.daemon.ask("DELETE", f"/v1/jobs/{live}")
        until(lambda: not self.is_on_disk("alive-72c1"))

    def test_copies_of_older_versions_go_after_a_day(self):
        self.start()
        old, new, other = (self.path(name) for name in
                           ("berth.db.before-2", "berth.db.before-6", "berth.db.mine"))
        for name in (old, new, other):
            with open(name, "w", encoding="utf-8"):
                pass
        for name in (old, other):
            os.utime(name, (time.time() - 90000,) * 2)
        until(lambda: not os.path.exists(old))
        self.assertTrue(os.path.exists(new))
        self.assertTrue(os.path.exists(other))


class Pages(Kept):
    def test_pages_follow_each_other(self):
        self.daemon.start()
        ids = [self.daemon.sh("true", hold=True) for _ in range(7)]

        def page(query):
            answer = self.daemon.ask("GET", f"/v1/jobs?{query}")[1]
            return [job["id"] for job in answer["jobs"]], answer.get("limited", False)
        self.assertEqual(page("limit=3"), (ids[:3], True))
        self.assertEqual(page(f"limit=3&after={ids[2]}"), (ids[3:6], True))
        self.assertEqual(page(f"limit=3&after={ids[5]}"), (ids[6:], False))
        self.assertEqual(page(f"history=true&limit=2&before={ids[2]}"), (ids[1::-1], True))
        self.assertEqual(self.daemon.ask("GET", "/v1/jobs?after=x")[0], 400)

    def test_long_lists_are_complete(self):
        self.daemon.start()
        jobs = [{"command": ["true"], "cwd": "/", "gpus": 0, "hold": True}] * 10000
        for count in (10000, 10000, 11):
            status, answer = self.daemon.ask("POST", "/v1/jobs", {"jobs": jobs[:count]})
            self.assertEqual(status, 201, answer)
        want = list(range(1, 20012))
        done = self.says("queue", "--json")
        self.assertEqual([job["id"] for job in json.loads(done.stdout)["jobs"]], want)
        done = self.says("queue")
        self.assertEqual(done.stderr, "")
        rows = [line.split()[0] for line in done.stdout.splitlines() if "HELD" in line]
        self.assertEqual(list(map(int, rows)), want)
        self.assertEqual(self.says("cancel", "--all").returncode, 0)
        done = self.says("history", "--json", "--limit", "1000000")
        self.assertEqual([job["id"] for job in json.loads(done.stdout)["jobs"]], want[::-1])
        done = self.says("history", "--csv", "--limit", "15000")
        rows = [line.split(",")[0] for line in done.stdout.splitlines()]
        self.assertEqual(rows, ["id", *map(str, want[:-15001:-1])])
        done = self.says("history", "--limit", "15000")
        self.assertEqual(sum("CANCELLED" in line for line in done.stdout.splitlines()), 15000)

    def test_the_output_for_programs_is_one_object(self):
        self.daemon.start()
        self.assertEqual(self.says("queue", "--json").stdout, '{\n  "jobs": []\n}\n')
        self.daemon.sh("true", hold=True)
        self.daemon.sh("true", hold=True)
        text = self.says("queue", "--json").stdout
        answer = json.loads(text)
        self.assertEqual([job["id"] for job in answer["jobs"]], [1, 2])
        self.assertIn('    {\n      "id": 1,\n', text)
        self.assertTrue(text.endswith("    }\n  ]\n}\n"), text[-40:])


del Kept

if __name__ == "__main__":
    unittest.main()
