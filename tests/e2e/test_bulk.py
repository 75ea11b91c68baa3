"""Many jobs at once: cancelled by one request, and restored by one start."""
import json
import os
import subprocess
import unittest

from live import BUILD, PATIENCE, Daemon

MANY = 10000


class Bulk(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(gpus="v100:4")
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()
        self.blocker = self.daemon.submit("sleep", "1000", gpus=4, grace_s=1,
                                          **{"class": "te"})
        self.daemon.wait(self.blocker, {"RUNNING"})

    def fill(self, count, **request):
        """So many jobs that wait; their ids."""
        job = {"command": ["true"], "cwd": self.daemon.dir, "gpus": 1, **request}
        status, answer = self.daemon.ask("POST", "/v1/jobs", {"jobs": [job] * count})
        self.assertEqual(status, 201, answer)
        return answer["ids"]

    def cancel(self, **body):
        return self.daemon.ask("POST", "/v1/jobs/cancel", body)

    def berth(self, *words):
        return subprocess.run([os.path.join(BUILD, "berth"), *words, "--socket",
                               self.daemon.socket], text=True, capture_output=True,
                              timeout=PATIENCE, check=False)

    def states(self, ids):
        listed = self.daemon.ask("GET", "/v1/jobs?history=true&limit=100000")[1]["jobs"]
        wanted = set(ids)
        return {job["state"] for job in listed if job["id"] in wanted}

    def commits(self):
        """Passes since the start: each one is a commit."""
        text = self.daemon.ask("GET", "/metrics")[1]
        return next(float(line.split()[1]) for line in text.split("\n")
                    if line.startswith("berth_passes_total "))

    def test_ten_thousand_waiting_jobs_are_cancelled_in_one_pass(self):
        ids = self.fill(MANY, name="sweep", hold=True)
        before = self.commits()
        done = self.berth("cancel", f"{ids[0]}-{ids[-1]}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count(" CANCELLED\n"), MANY)
        self.assertEqual(self.states(ids), {"CANCELLED"})
        self.assertLessEqual(self.commits() - before, 2)

    def test_a_start_with_ten_thousand_jobs_does_not_read_their_environments(self):
        env = {f"SOME_VARIABLE_{i}": "x" * 60 for i in range(60)}
        ids = [ident for _ in range(4) for ident in self.fill(2500, env=env)]
        self.daemon.kill()
        self.daemon.start()
        with open(f"/proc/{self.daemon.process.pid}/io", encoding="ascii") as io:
            read = int(next(line for line in io if line.startswith("rchar")).split()[1])
        self.assertLess(read, len(ids) * len(json.dumps(env)))
        self.assertEqual(self.states(ids), {"PENDING"})
        self.assertEqual(self.daemon.job(self.blocker)["state"], "RUNNING")

    def test_scripts_of_a_list_are_kept_and_run_after_a_restart(self):
        script = "#!/bin/sh\necho \"$A\" é\n"
        ids = self.fill(2, script=script, command=[], env={"A": "b}", "PATH": os.environ["PATH"]})
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.cancel(ids=[self.blocker])[0], 200)
        for ident in ids:
            self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")
            self.assertEqual(self.daemon.ask("GET", f"/v1/jobs/{ident}/log")[1], "b} é\n")

    def test_a_list_that_is_cut_says_so(self):
        self.fill(5)
        self.assertTrue(self.daemon.ask("GET", "/v1/jobs?limit=3")[1]["limited"])
        self.assertNotIn("limited", self.daemon.ask("GET", "/v1/jobs?limit=100")[1])

    def test_filters_select_jobs_and_combine(self):
        first = self.fill(3, name="sweep-1")
        second = self.fill(3, name="sweep-2", hold=True)
        other = self.fill(3, name="other")
        status, answer = self.cancel(name="sweep-*", state="HELD")
        self.assertEqual((status, answer["count"], answer["refused"]), (200, 3, []))
        self.assertEqual([job["id"] for job in answer["jobs"]], second)
        self.assertEqual(self.states(second), {"CANCELLED"})
        self.assertEqual(self.states(first + other), {"PENDING"})
        done = self.berth("cancel", "--state", "PENDING", str(first[0]), str(other[1]))
        self.assertEqual(done.stdout, f"{first[0]} CANCELLED\n{other[1]} CANCELLED\n")
        done = self.berth("cancel", "--name", "sweep-[12]")
        self.assertEqual(done.stdout, "".join(f"{i} CANCELLED\n" for i in first[1:]))
        user = self.daemon.job(other[0])["user"]
        done = self.berth("cancel", "--user", user, "--state", "PENDING,HELD")
        self.assertEqual(done.stdout, f"{other[0]} CANCELLED\n{other[2]} CANCELLED\n")
        self.assertEqual(self.daemon.job(self.blocker)["state"], "RUNNING")
        done = self.berth("cancel", "--all")
        self.assertEqual(done.stdout, f"{self.blocker} STOPPING\n")
        self.assertEqual(self.daemon.wait(self.blocker)["state"], "CANCELLED")
        done = self.berth("cancel", "--all")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("no job matches", done.stderr)

    def test_jobs_that_cannot_be_cancelled_are_named_and_the_others_are(self):
        ids = self.fill(3)
        self.assertEqual(self.cancel(ids=[ids[1]])[0], 200)
        status, answer = self.cancel(ids=[f"{ids[0]}-{ids[2]}", ids[2], 999999])
        self.assertEqual((status, answer["count"]), (200, 2))
        self.assertEqual([job["id"] for job in answer["jobs"]], [ids[0], ids[2]])
        self.assertEqual(answer["refused"], [
            {"id": ids[1], "error": f"job {ids[1]} has ended: CANCELLED"},
            {"id": 999999, "error": "there is no job 999999"}])
        done = self.berth("cancel", "--json", "999999")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no job 999999", done.stderr)

    def test_wrong_requests_cancel_nothing(self):
        ids = self.fill(1)
        for body, field in (({}, None), ({"ids": []}, "ids"), ({"ids": ["5-"]}, "ids"),
                            ({"ids": ["9-5"]}, "ids"), ({"ids": ["1-900000"]}, "ids"),
                            ({"ids": [0]}, "ids"), ({"state": "COMPLETED"}, "state"),
                            ({"state": ""}, "state"), ({"name": 5}, "name"),
                            ({"all": 1}, "all"), ({"nmae": "x"}, "nmae")):
            status, answer = self.cancel(**body)
            self.assertEqual((status, answer.get("field")), (400, field), f"{body} {answer}")
        for words in ((), ("--all", "5"), ("x",), ("--state", "COMPLETED")):
            self.assertEqual(self.berth("cancel", *words).returncode, 2, words)
        self.assertEqual(self.states(ids), {"PENDING"})


if __name__ == "__main__":
    unittest.main()
