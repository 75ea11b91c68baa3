"""berth export: what a berthd has run, as a workload: for whom, of what, and what a simulation
makes of it.  That a replay takes as long is tested in test_twin.py."""
import csv
import io
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from live import BUILD, Daemon, until

BERTH = os.path.join(BUILD, "berth")
MAGIC = "#berth-jobs 1\n"


def run(*command, **kwargs):
    return subprocess.run([BERTH, *command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, **kwargs)


def rows_of(text):
    """The jobs by their numbers."""
    if not text.startswith(MAGIC):
        raise AssertionError(text)
    return {int(row["id"]): row for row in csv.DictReader(io.StringIO(text[len(MAGIC):]))}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="berth-export-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def start(self, *flags, gpus="v100:2"):
        daemon = Daemon(*flags, gpus=gpus)
        self.addCleanup(daemon.wipe)
        return daemon.start()

    def path(self, name):
        return os.path.join(self.dir, name)

    def export(self, daemon, *flags):
        done = run("export", "--socket", daemon.socket, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return rows_of(done.stdout), done.stderr

    def simulate(self, text, *flags):
        workload, out = self.path("jobs.csv"), self.path("out.csv")
        with open(workload, "w", encoding="utf-8") as file:
            file.write(text)
        done = run("sim", "--workload", workload, "--jobs-out", out, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            return {int(row["id"]): row for row in csv.DictReader(file)}


class Format(Case):
    """What a workload says of times, and of work that was declared."""

    JOBS = MAGIC + ("id,submit_s,gpus,work_s,declared_work,eligible_s,cancel_s\n"
                    "1,0,1,10,,,\n2,1,1,10,2,,\n3,1,1,5,,30,\n4,2,1,100,,,25\n"
                    "5,3,1,100,,,4\n6,4,1,100,,50,40\n7,28,1,3,,,\n")

    def test_jobs_wait_until_they_are_eligible_and_leave_when_they_are_cancelled(self):
        rows = self.simulate(self.JOBS, "--cluster", "1xv100:1", "--policy", "fifo")
        told = {i: (row["state"], float(row["first_start_s"] or -1), float(row["end_s"]))
                for i, row in rows.items()}
        self.assertEqual(told, {
            1: ("completed", 0, 10), 2: ("completed", 10, 20), 3: ("completed", 31, 36),
            4: ("cancelled", 20, 25), 5: ("cancelled", -1, 4), 6: ("cancelled", -1, 40),
            7: ("completed", 28, 31)})

    def test_policies_are_told_the_declared_work(self):
        jobs = MAGIC + ("id,submit_s,gpus,work_s,declared_work\n"
                        "1,0,1,10,\n2,1,1,9,3\n3,2,1,5,\n")
        rows = self.simulate(jobs, "--cluster", "1xv100:1", "--policy", "sjf")
        self.assertEqual([float(rows[i]["end_s"]) for i in (1, 2, 3)], [10, 19, 24])


class Export(Case):
    def test_a_job_is_described_by_what_it_asked_for_and_what_it_was(self):
        daemon = self.start("--policy", "fifo")
        plain = daemon.sh("sleep 1", name="lr-0.1", gpus=2, entity="lab", time_limit_s=600,
                          weight=2, grace_s=7, pause_s=3, shared=True)
        fails = daemon.sh("sleep 0.3; exit 3", cpus=2, mem_bytes=1 << 30, deadline=time.time() + 900)
        waits = daemon.sh("true", dependency=[{"kind": "afterok", "id": fails}])
        held = daemon.sh("sleep 0.2", hold=True)
        given_up = daemon.sh("sleep 600", steps=500, kind="res")
        daemon.sh("true", gpus=9)
        steps = daemon.sh("i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo step $i; sleep 0.1; done",
                          pattern=r"step (?P<step>[0-9]+)", steps=40, kind="res")
        late = daemon.sh("sleep 60", time_limit_s=1)
        daemon.sh("true", hold=True)
        daemon.wait(plain)
        daemon.ask("PATCH", f"/v1/jobs/{held}", {"hold": False})
        daemon.wait(given_up, {"RUNNING"})
        daemon.ask("DELETE", f"/v1/jobs/{given_up}")
        for ident in (plain, fails, waits, held, given_up, steps, late):
            daemon.wait(ident)
        rows, said = self.export(daemon)
        self.assertEqual(sorted(rows), sorted([plain, fails, waits, held, given_up, steps, late]))
        self.assertIn("7 jobs, submitted from ", said)
        self.assertIn("1 that has not ended yet is left out.", said)
        self.assertIn("1 that could never run is left out.", said)
        self.assertEqual({rows[plain]["saves"], rows[plain]["keeps"]}, {"1"})
        self.assertEqual((rows[given_up]["saves"], rows[given_up]["keeps"],
                          rows[given_up]["declared_pause_s"]), ("0", "0", "0"))
        job = rows[plain]
        self.assertEqual(
            {key: job[key] for key in ("name", "entity", "class", "submit_s", "gpus", "weight",
                                       "grace_s", "pause_s", "limit_s", "state", "attempts",
                                       "preemptions", "fails", "declared", "cancel_s", "shared")},
            {"name": "lr-0.1", "entity": "lab", "class": "be", "submit_s": "0", "gpus": "2",
             "weight": "2", "grace_s": "7", "pause_s": "3", "limit_s": "600",
             "state": "completed", "attempts": "1", "preemptions": "0", "fails": "0",
             "declared": "0", "cancel_s": "", "shared": "1"})
        truth = daemon.job(plain)
        self.assertAlmostEqual(float(job["end_s"]), truth["end"] - truth["submit"], 3)
        self.assertAlmostEqual(float(job["work_s"]), 1, delta=0.3)
        self.assertLess(float(job["load_s"]), 1)
        job = rows[fails]
        self.assertEqual((job["fails"], job["state"], job["cpus"], job["mem_gib"]),
                         ("1", "failed", "2", "1"))
        self.assertAlmostEqual(float(job["deadline_s"]), 900, delta=60)
        job = rows[waits]
        self.assertEqual((job["state"], job["cancelled_by"], job["start_s"]),
                         ("cancelled", "dependency", ""))
        self.assertEqual((job["eligible_s"], job["after"]), (job["cancel_s"], str(fails)))
        job = rows[held]
        self.assertGreater(float(job["eligible_s"]), float(rows[plain]["end_s"]) - 0.1)
        job = rows[given_up]
        self.assertEqual((job["state"], job["cancelled_by"], job["declared"],
                          job["declared_work"]), ("cancelled", "owner", "1", "500"))
        self.assertLess(float(job["start_s"]), float(job["cancel_s"]))
        job = rows[steps]
        self.assertEqual((job["kind"], float(job["steps"]), job["declared_work"], job["work_s"]),
                         ("res", 30, "40", ""))
        # Its output is read about once a second, so its first step counts as late.
        self.assertGreater(float(job["step_s"]), 0.01)
        self.assertAlmostEqual(float(job["load_s"]) + 30 * float(job["step_s"]), 3.2, delta=1)
        self.assertEqual((rows[late]["state"], rows[late]["limit_s"]), ("failed", "1"))
        # No command, path or variable is in it.
        text = run("export", "--socket", daemon.socket).stdout
        self.assertNotIn("sleep", text)
        self.assertNotIn(daemon.dir, text)

    def test_the_result_is_a_workload(self):
        daemon = self.start("--policy", "fifo")
        idents = [daemon.sh("true", name='a "b", c') for _ in range(5)]
        for ident in idents:
            daemon.wait(ident)
        path, again = self.path("trace.csv"), self.path("again.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("of before\n")
        done = run("export", "--socket", daemon.socket, "-o", path)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        told = run("import", path, "--format", "berth", "--json")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(json.loads(told.stdout)["jobs"], 5)
        self.assertEqual(run("import", path, "-o", again).returncode, 0)
        with open(path, encoding="utf-8") as first, open(again, encoding="utf-8") as second:
            text = first.read()
            self.assertEqual(text, second.read())
        for flags in ((), ("-o", "-"), ("-o", "/dev/stdout")):
            self.assertEqual(run("export", "--socket", daemon.socket, *flags).stdout, text)
        rows = self.simulate(text, "--cluster", "1xv100:2", "--policy", "berth")
        self.assertEqual({row["state"] for row in rows.values()}, {"completed"})

    def test_names_are_hashed_on_request(self):
        daemon = self.start("--policy", "fifo")
        for name in ("lr-1", "lr-2", "lr-1", "eval"):
            daemon.wait(daemon.sh("exit 0" if name == "lr-2" else "true", name=name, entity="lab"))
        user = pwd.getpwuid(os.geteuid()).pw_name
        plain, _ = self.export(daemon)
        hashed, _ = self.export(daemon, "--hash-names")
        other, _ = self.export(daemon, "--hash-names")
        self.assertEqual({row["user"] for row in plain.values()}, {user})
        self.assertEqual([plain[i]["same_as"] for i in (1, 2, 3, 4)], ["", "", "1", "1"])
        for row in hashed.values():
            self.assertRegex(row["user"], "^[a-p]{12}$")
            self.assertRegex(row["entity"], "^[a-p]{12}$")
            self.assertRegex(row["name"], "^[a-p]{12}(-[0-9]+)?$")
        names = [row["name"] for row in hashed.values()]
        self.assertEqual((names[0], len(set(names)), len({r["user"] for r in hashed.values()})),
                         (names[2], 3, 1))
        self.assertEqual(len({re.sub("[0-9]", "", name) for name in names}), 2)
        self.assertNotEqual(hashed[1]["user"], other[1]["user"])
        for row, same in zip(plain.values(), hashed.values()):
            for key in ("name", "user", "entity"):
                row[key] = same[key] = ""
            self.assertEqual(row, same)

    def test_it_is_told_which_policy_decided(self):
        daemon = self.start("--policy", "fifo")
        daemon.wait(daemon.sh("true"))
        self.assertIn("The policy was fifo.\n", self.export(daemon)[1])
        daemon.stop()
        daemon.start() # the same is no change
        for policy in ("las", "las", "srtf"):
            self.assertEqual(daemon.ask("PATCH", "/v1/server", {"policy": policy})[0], 200)
        daemon.wait(daemon.sh("true"))
        policies = daemon.ask("GET", "/v1/export")[1]["policies"]
        self.assertEqual([each["policy"] for each in policies], ["fifo", "las", "srtf"])
        lately = daemon.ask("GET", f"/v1/export?since={policies[2]['since'] + 0.001}")[1]
        self.assertEqual(lately["policies"], policies[2:])
        said = self.export(daemon)[1]
        self.assertRegex(said, r"The policy was fifo\.\nThe policy was las from .* on\.\n"
                               r"The policy was srtf from .* on\.\n")

    def test_only_the_last_jobs_on_request(self):
        daemon = self.start("--policy", "fifo")
        old = daemon.sh("true")
        daemon.wait(old)
        time.sleep(3)
        new = daemon.sh("true")
        daemon.wait(new)
        rows, _ = self.export(daemon, "--last", "30d")
        self.assertEqual(sorted(rows), [old, new])
        until(lambda: list(self.export(daemon, "--last", "2.5s")[0]) == [new], 2)
        for wrong in ("never", "-5s", "0"):
            done = run("export", "--socket", daemon.socket, "--last", wrong)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f'--last is "{wrong}", want a time such as 12h or 30d', done.stderr)

    def test_without_history_nothing_is_written(self):
        daemon = self.start("--policy", "fifo")
        path = self.path("trace.csv")
        daemon.sh("sleep 600")
        done = run("export", "--socket", daemon.socket, "-o", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 that has not ended yet is left out.\n", done.stderr)
        self.assertIn("berth export: no job that was submitted here has ended: there is nothing "
                      "to export\n", done.stderr)
        self.assertFalse(os.path.exists(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write("of before\n")
        self.assertEqual(run("export", "--socket", daemon.socket, "-o", path).returncode, 1)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of before\n")

    def test_a_folder_that_is_not_there_is_said(self):
        daemon = self.start("--policy", "fifo")
        daemon.wait(daemon.sh("true"))
        done = run("export", "--socket", daemon.socket, "-o", self.path("no/trace.csv"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no/trace.csv", done.stderr)

    def test_a_long_history_comes_in_pages(self):
        daemon = self.start("--policy", "fifo")
        daemon.wait(daemon.sh("true"))
        status, answer = daemon.ask("POST", "/v1/jobs", {"jobs": [
            {"command": ["true"], "cwd": "/", "gpus": 1, "hold": True} for _ in range(2500)]})
        self.assertEqual(status, 201)
        daemon.ask("POST", "/v1/jobs/cancel", {"all": True})
        daemon.wait(answer["ids"][-1])
        status, page = daemon.ask("GET", "/v1/export")
        self.assertIn("next", page)
        self.assertLessEqual(len(page["jobs"]), 1000)
        rows, _ = self.export(daemon)
        self.assertEqual(list(rows), [1, *answer["ids"]])
        for wrong in ("x", "5", "-1-3", "5-3x", "9" * 50):
            status, answer = daemon.ask("GET", f"/v1/export?page={wrong}")
            self.assertEqual(status, 400, wrong)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be two other users")
class Rights(Case):
    def test_of_others_no_more_is_written_than_lists_show(self):
        ada, bob = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
        daemon = self.start("--system", "--policy", "fifo")
        os.chmod(daemon.dir, 0o755)
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}

        def as_user(user, *command):
            return subprocess.run([BERTH, *command], capture_output=True, text=True, check=False,
                                  user=user.pw_uid, group=user.pw_gid, extra_groups=[],
                                  cwd="/", env={**env, "BERTH_ADDR": daemon.socket})

        idents = {}
        for user in (ada, bob):
            done = as_user(user, "submit", "-G1", "-J", f"secret-{user.pw_name}", "--steps", "5",
                           "--weight", "3", "--entity", f"group-{user.pw_name}", "--",
                           "/bin/sleep", "0.5")
            self.assertEqual(done.returncode, 0, done.stderr)
            idents[user.pw_name] = int(done.stdout)
            daemon.wait(idents[user.pw_name])
        done = as_user(ada, "submit", "-G1", "--hold", "--parsable", "--", "true")
        given_up = int(done.stdout)
        run("cancel", str(given_up), env={**os.environ, "BERTH_ADDR": daemon.socket})
        daemon.wait(given_up)

        done = as_user(ada, "export")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = rows_of(done.stdout)
        mine, others = rows[idents[ada.pw_name]], rows[idents[bob.pw_name]]
        self.assertEqual((mine["name"], mine["entity"], mine["weight"], mine["declared_work"]),
                         (f"secret-{ada.pw_name}", f"group-{ada.pw_name}", "3", "5"))
        self.assertEqual(rows[given_up]["cancelled_by"], "administrator")
        self.assertEqual((others["user"], others["gpus"], others["state"], others["declared"]),
                         (bob.pw_name, "1", "completed", "0"))
        self.assertAlmostEqual(float(others["work_s"]), 0.5, delta=0.4)
        for key in ("name", "entity", "weight", "declared_work", "kind", "limit_s", "deadline_s",
                    "cancelled_by", "cpus", "steps"):
            self.assertEqual(others[key], "", key)
        self.assertNotIn(f"secret-{bob.pw_name}", done.stdout)
        # Root sees all of it, and what a user gets can be played as well.
        everything, _ = self.export(daemon)
        self.assertEqual(everything[idents[bob.pw_name]]["name"], f"secret-{bob.pw_name}")
        self.simulate(done.stdout, "--cluster", "1xv100:2", "--policy", "fifo")


if __name__ == "__main__":
    unittest.main()
