"""When jobs will start and end: forecasts of a real berthd, their outcomes, and dry runs."""
import concurrent.futures
import http.client
import json
import os
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from live import BUILD, ENDED, Daemon, Wire, until

QUANTILES = ("p10", "p50", "p90")


class Case(unittest.TestCase):
    def start(self, *flags, gpus="v100:1"):
        daemon = Daemon(*flags, gpus=gpus)
        self.addCleanup(daemon.wipe)
        return daemon.start()

    def submit(self, daemon, seconds, gpus=1, **more):
        body = {"gpus": gpus, "command": ["sleep", str(seconds)], "cwd": "/", **more}
        status, reply = daemon.ask("POST", "/v1/jobs", body)
        self.assertEqual(status, 201, reply)
        return reply["id"]

    def dry_run(self, daemon, gpus=1, **more):
        body = {"gpus": gpus, "command": ["true"], "cwd": "/", **more}
        return daemon.ask("POST", "/v1/jobs?dry_run=true", body)

    def wait(self, daemon, *ids):
        for job in ids:
            until(lambda: daemon.ask("GET", f"/v1/jobs/{job}")[1]["state"] in ENDED)

    def finish_some(self, daemon, count=6, seconds=0.2, **more):
        """Jobs from which run times are known."""
        self.wait(daemon, *[self.submit(daemon, seconds, **more) for _ in range(count)])

    def forecast(self, daemon, ids=None):
        status, reply = daemon.ask("GET", "/v1/forecast" + (f"?ids={ids}" if ids else ""))
        self.assertEqual(status, 200, reply)
        return reply

    def expected(self, daemon, *ids):
        """The forecast of these jobs, once there is one of all of them."""
        def found():
            jobs = {job["id"]: job for job in self.forecast(daemon)["jobs"]}
            return jobs if all("expected_start" in jobs.get(job, {}) for job in ids) else None
        return until(found)

    def rows(self, daemon, query):
        """Of the database, while berthd does not run."""
        with sqlite3.connect(os.path.join(daemon.state, "berth.db")) as db:
            return db.execute(query).fetchall()

    def check_rows(self, daemon):
        """What is kept of forecasts agrees with what is kept of jobs."""
        self.assertEqual(self.rows(daemon, "SELECT job FROM forecast WHERE job NOT IN "
                                   "(SELECT id FROM job)"), [])
        self.assertEqual(self.rows(
            daemon, "SELECT job, target FROM forecast JOIN job ON id = job WHERE target = 0 AND "
            "NOT dropped AND over_ns IS NOT NULL AND over_ns <> start_ns"), [])
        self.assertEqual(self.rows(
            daemon, "SELECT job, target, over_ns, end_ns FROM forecast JOIN job ON id = job WHERE "
            "(end_ns IS NOT NULL AND over_ns IS NULL) OR "
            "(target = 1 AND over_ns IS NOT end_ns)"), [])

    def check_times(self, times):
        self.assertEqual(sorted(times[q] for q in QUANTILES), [times[q] for q in QUANTILES])
        self.assertGreaterEqual(times["p10"], times["made"])
        self.assertGreater(times["horizon"], times["p90"])


class Forecasts(Case):
    def test_jobs_of_a_queue_are_expected_one_after_the_other(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon, name="train")
        jobs = [self.submit(daemon, 1, name="train") for _ in range(4)]
        found = self.expected(daemon, *jobs[1:])
        last = 0
        for job in jobs[1:]:
            start = found[job]["expected_start"]
            self.check_times(start)
            self.check_times(found[job]["expected_end"])
            self.assertGreater(start["p50"], last)
            self.assertEqual((start["policy"], start["basis"], start["method"]),
                             ("fifo", "name", "played"))
            self.assertGreaterEqual(start["basis_jobs"], 6)
            last = start["p50"]
        shown = daemon.ask("GET", f"/v1/jobs/{jobs[3]}")[1]
        self.check_times(shown["expected_start"])
        listed = {job["id"]: job for job in daemon.ask("GET", "/v1/jobs")[1]["jobs"]}
        self.check_times(listed[jobs[3]]["expected_end"])

    def test_outcomes_are_kept_and_read_again_after_a_crash(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 0.7) for _ in range(4)]
        self.expected(daemon, *jobs[2:])
        self.wait(daemon, *jobs)
        told = self.forecast(daemon)["calibration"]
        self.assertGreaterEqual(told["n"], 2)
        self.assertGreater(told["median_abs_error_s"], 0)
        daemon.kill()
        with sqlite3.connect(os.path.join(daemon.state, "berth.db")) as db:
            rows = db.execute("SELECT job, made_ns, over_ns FROM forecast "
                              "WHERE target = 0 AND NOT dropped").fetchall()
            starts = dict(db.execute("SELECT id, start_ns FROM job"))
        self.assertEqual(len(rows), told["n"])
        for job, made_ns, over_ns in rows:
            self.assertEqual(over_ns, starts[job])
            self.assertGreater(over_ns, made_ns)
        daemon.start()
        until(lambda: self.forecast(daemon)["calibration"].get("n") == told["n"])
        again = self.forecast(daemon)["calibration"]
        self.assertAlmostEqual(again["median_abs_error_s"], told["median_abs_error_s"], 6)
        jobs = [self.submit(daemon, 0.7) for _ in range(3)]
        self.expected(daemon, jobs[2]) # from what had ended before the crash

    def test_a_cancelled_job_does_not_count_as_started(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 30) for _ in range(3)]
        self.expected(daemon, jobs[2])
        for job in reversed(jobs):
            daemon.ask("DELETE", f"/v1/jobs/{job}")
        self.wait(daemon, *jobs)
        daemon.kill()
        with sqlite3.connect(os.path.join(daemon.state, "berth.db")) as db:
            rows = dict(db.execute("SELECT job, dropped FROM forecast WHERE target = 0"))
        self.assertEqual(rows[jobs[2]], 1)
        daemon.start()

    def test_nothing_is_said_where_nothing_is_known(self):
        daemon = self.start("--policy", "fifo")
        jobs = [self.submit(daemon, 30) for _ in range(3)]
        until(lambda: "5 jobs" in self.forecast(daemon).get("reason", ""))
        self.assertEqual(self.forecast(daemon)["jobs"], [])
        self.assertNotIn("expected_start", daemon.ask("GET", f"/v1/jobs/{jobs[1]}")[1])
        status, reply = daemon.ask("GET", "/v1/forecast?ids=1,x")
        self.assertEqual((status, reply["field"]), (400, "ids"))

    def test_held_jobs_are_expected_after_what_they_wait_for(self):
        daemon = self.start("--policy", "fifo", gpus="v100:2")
        self.finish_some(daemon, seconds=1)
        begin = time.time() + 30
        first = self.submit(daemon, 60)
        later = self.submit(daemon, 1, begin=begin)
        after = self.submit(daemon, 1, dependency=[{"kind": "afterok", "id": first}])
        held = self.submit(daemon, 1, hold=True)
        found = self.expected(daemon, later, after)
        self.assertGreaterEqual(found[later]["expected_start"]["p10"], begin - 1)
        self.assertGreaterEqual(found[after]["expected_start"]["p10"] + 0.01,
                                found[first]["expected_end"]["p10"])
        self.assertNotIn(held, found)

    def test_another_policy_is_forecast_as_soon_as_it_decides(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 30) for _ in range(3)]
        self.expected(daemon, jobs[2])
        self.assertEqual(daemon.ask("PATCH", "/v1/server", {"policy": "las"})[0], 200)
        until(lambda: self.expected(daemon, jobs[2])[jobs[2]]["expected_start"]["policy"] == "las")

    def test_the_stream_tells_of_each_forecast(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        wire = Wire(daemon.socket)
        self.addCleanup(wire.close)
        wire.request("GET", "/v1/events")
        reply = wire.getresponse()
        jobs = [self.submit(daemon, 30) for _ in range(3)]
        wanted = f'"id":{jobs[2]},"expected_start"'
        line = ""
        while not (line.startswith("data: ") and wanted in line):
            line = reply.readline().decode()
            self.assertTrue(line)

    def test_metrics_tell_how_forecasts_turned_out(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        self.wait(daemon, *[self.submit(daemon, 0.5) for _ in range(4)])
        text = until(lambda: (said := daemon.ask("GET", "/metrics")[1])
                     and 'berth_forecast_coverage{policy="fifo",target="end"}' in said and said)
        self.assertRegex(text, r'berth_forecasts_total\{outcome="made"\} [1-9]')
        self.assertRegex(text, r'berth_forecasts_total\{outcome="failed"\} 0')


class DryRuns(Case):
    def test_a_job_that_would_start_at_once_is_told_where(self):
        daemon = self.start(gpus="v100:2")
        status, reply = self.dry_run(daemon, gpus=2)
        self.assertEqual(status, 200)
        self.assertEqual((reply["can_ever_run"], reply["now"], reply["preempts"]), (True, True, []))
        self.assertEqual(reply["placement"][0]["gpus"], [0, 1])
        self.assertEqual(daemon.ask("GET", "/v1/jobs?history=true")[1]["jobs"], [])
        self.assertEqual(self.submit(daemon, 0), 1) # no number was used

    def test_a_job_that_would_wait_is_told_how_long(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        self.submit(daemon, 30)
        reply = self.dry_run(daemon)[1]
        self.assertEqual((reply["now"], reply["reason"]), (False, "needs 1 GPU, 0 are free"))
        self.check_times(reply["start"])

    def test_a_trial_is_told_whom_it_would_preempt_at_what_price(self):
        daemon = self.start("--policy", "fitgpp", gpus="v100:2")
        victim = self.submit(daemon, 30, gpus=2, grace_s=5, pause_s=3, load_s=4)
        until(lambda: daemon.ask("GET", f"/v1/jobs/{victim}")[1]["state"] == "RUNNING")
        reply = self.dry_run(daemon, **{"class": "te"})[1]
        self.assertEqual([entry["job"] for entry in reply["preempts"]], [victim])
        self.assertGreater(reply["preempts"][0]["price_gpu_s"], 6) # two GPUs pause for 3 s
        self.assertEqual(daemon.ask("GET", f"/v1/jobs/{victim}")[1]["state"], "RUNNING")
        self.assertEqual(daemon.ask("GET", "/v1/ledger")[1]["entries"], [])

    def test_what_can_never_run_and_what_is_wrong_is_said(self):
        daemon = self.start()
        status, reply = self.dry_run(daemon, gpus=2)
        self.assertEqual((status, reply["can_ever_run"]), (200, False))
        self.assertIn("2", reply["reason"])
        status, reply = self.dry_run(daemon, gpu=1)
        self.assertEqual((status, reply["field"]), (400, "gpu"))
        body = {"jobs": [{"gpus": 1, "command": ["true"], "cwd": "/"}] * 2}
        status, reply = daemon.ask("POST", "/v1/jobs?dry_run=true", body)
        self.assertEqual(status, 400)
        self.assertIn("one job", reply["error"])
        reply = self.dry_run(daemon, hold=True)[1]
        self.assertEqual((reply["can_ever_run"], reply["now"]), (True, False))


class Ahead(Case):
    def ahead(self, daemon, **change):
        return daemon.ask("POST", "/v1/ahead", {"ahead_s": 600, **change})

    def busy(self, gpus="v100:2,k80:2"):
        daemon = self.start("--policy", "fifo", gpus=gpus)
        self.finish_some(daemon, seconds=0.5)
        jobs = [self.submit(daemon, 30) for _ in range(12)]
        until(lambda: daemon.ask("GET", f"/v1/jobs/{jobs[3]}")[1]["state"] == "RUNNING")
        return daemon, jobs

    def test_more_gpus_shorten_waits_and_fewer_lengthen_them(self):
        daemon, _ = self.busy()
        status, reply = self.ahead(daemon, add="v100:4")
        self.assertEqual(status, 200, reply)
        self.assertEqual(reply["present"]["jobs_finished"], 12)
        self.assertLess(reply["difference"]["mean_wait_s"]["high"], 0)
        nodes = [node["name"] for node in daemon.ask("GET", "/v1/nodes")[1]["nodes"]]
        status, reply = self.ahead(daemon, remove=nodes[:1])
        self.assertEqual(status, 200, reply)
        self.assertGreater(reply["difference"]["mean_wait_s"]["low"], 0)
        self.assertEqual(reply["changed"]["jobs_finished"], 12)
        status, reply = self.ahead(daemon, remove=nodes)
        self.assertEqual((status, reply["changed"]["jobs_finished"]), (200, 0))

    def test_jobs_are_left_out_by_number_and_by_user(self):
        daemon, jobs = self.busy()
        reply = self.ahead(daemon, without=jobs[:6])[1]
        self.assertEqual(reply["difference"]["jobs_finished"]["mean"], -6)
        user = daemon.ask("GET", f"/v1/jobs/{jobs[0]}")[1]["user"]
        reply = self.ahead(daemon, without_user=user)[1]
        self.assertEqual(reply["changed"]["jobs_finished"], 0)
        self.assertEqual(daemon.ask("GET", f"/v1/jobs/{jobs[0]}")[1]["state"], "RUNNING")

    def what_if(self, daemon, *flags):
        return subprocess.run([os.path.join(BUILD, "berth"), "what-if", "--socket", daemon.socket,
                               *flags], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)

    def test_the_command_asks_once_for_each_policy(self):
        daemon, jobs = self.busy()
        done = self.what_if(daemon, "--ahead", "10m", "--policy", "las", "--policy", "srtf",
                            "--add", "v100:2", "--add", "2xk80:1", "--without", str(jobs[11]))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("10.0 min from now", "now fifo decides", "\nlas ", "\nsrtf ",
                      "jobs that end"):
            self.assertIn(words, done.stdout)
        done = self.what_if(daemon, "--ahead", "10m", "--policy", "las", "--json")
        case = json.loads(done.stdout)["cases"][0]
        self.assertEqual((case["ahead_s"], case["changed"]["policy"]), (600, "las"))
        for flags, words in ((["--ahead", "10m"], "different"),
                             (["--ahead", "1s", "--policy", "las"], "1m to 30d"),
                             (["--ahead", "1h", "--last", "1d"], "do not go together"),
                             (["--ahead", "1h", "--without", "x"], "number of a job"),
                             (["--ahead", "1h", "--add", "h100:1"], "h100"),
                             (["--ahead", "1h", "--remove", "nosuch"], "nosuch")):
            done = self.what_if(daemon, *flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), flags)
            self.assertIn(words, done.stderr)

    def test_another_policy_is_played_and_not_installed(self):
        daemon, _ = self.busy()
        reply = self.ahead(daemon, policy="las,queues=2")[1]
        self.assertEqual((reply["present"]["policy"], reply["changed"]["policy"]),
                         ("fifo", "las,queues=2"))
        self.assertEqual(daemon.ask("GET", "/v1/server")[1]["policy"], "fifo")

    def test_what_cannot_be_played_is_refused_with_its_field(self):
        daemon = self.start()
        for change, status, words in (({"add": "h100:2"}, 400, "no GPU of type h100"),
                                      ({"add": "4"}, 400, "TYPE:GPUS"),
                                      ({"add": "/etc/passwd:1"}, 400, "TYPE:GPUS"),
                                      ({"remove": ["nosuch"]}, 400, "no node nosuch"),
                                      ({"policy": "nosuch"}, 400, "no policy"),
                                      ({"policy": "las,nosuch=1"}, 400, "nosuch"),
                                      ({"ahead_s": 1, "policy": "las"}, 400, "60"),
                                      ({"without": ["x"]}, 400, "numbers of jobs"),
                                      ({"nosuch": 1}, 400, "nosuch"),
                                      ({}, 400, "nothing to change"),
                                      ({"policy": "las"}, 409, "fewer than 5 jobs")):
            reply = self.ahead(daemon, **change)
            self.assertEqual(reply[0], status, (change, reply))
            self.assertIn(words, reply[1]["error"])


class Sharing(Case):
    def test_one_user_has_a_few_at_once_and_is_told_to_try_again(self):
        daemon = self.start("--policy", "fifo")
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 30) for _ in range(3)]
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            replies = list(pool.map(lambda _: self.dry_run(daemon), range(72)))
        self.assertEqual({status for status, _ in replies} - {200, 429}, set())
        self.assertGreaterEqual([status for status, _ in replies].count(200), 4)
        for status, reply in replies:
            if status == 429:
                self.assertIn("try again later", reply["error"])
        self.assertEqual(self.dry_run(daemon)[0], 200)
        self.expected(daemon, jobs[2])

    def test_who_asks_why_all_the_time_ends_no_other_question(self):
        daemon = self.start("--policy", "las")
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 60) for _ in range(200)]
        over = threading.Event()

        def ask():
            while not over.is_set():
                self.assertEqual(daemon.ask("GET", f"/v1/jobs/{jobs[5]}/why")[0], 200)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(ask) for _ in range(2)]
            try:
                for _ in range(5):
                    status, reply = daemon.ask("POST", "/v1/ahead",
                                               {"ahead_s": 86400, "policy": "fifo"})
                    self.assertEqual(status, 200, reply)
                made = self.forecast(daemon).get("made", 0)
                self.submit(daemon, 60)
                until(lambda: self.forecast(daemon).get("made", 0) > made) # passes go on, too
            finally:
                over.set()
            for one in asking:
                one.result()

    def test_who_is_not_known_is_not_remembered(self):
        daemon = self.start()
        status, reply = daemon.ask("POST", "/v1/ahead", {"without_user": "nobody-here"})
        self.assertEqual((status, reply["field"]), (400, "without_user"))


class Faults(Case):
    def test_a_long_queue_is_forecast_and_decisions_go_on(self):
        daemon = self.start("--policy", "las", gpus="v100:1,k80:1")
        self.finish_some(daemon)
        body = {"jobs": [{"gpus": 1, "types": "v100", "command": ["sleep", "60"],
                          "cwd": "/"}] * 500}
        jobs = []
        for _ in range(4):
            status, reply = daemon.ask("POST", "/v1/jobs", body)
            self.assertEqual(status, 201, reply)
            jobs += reply["ids"]
        short = [self.submit(daemon, 0, types="k80") for _ in range(20)]
        ended = 0
        for job in short: # while the others are played forward and asked for
            listed = {one["id"] for one in self.forecast(daemon)["jobs"]}
            self.assertLessEqual(len(listed), 2100)
            ended += daemon.wait(job)["state"] == "COMPLETED"
        self.assertEqual(ended, 20)
        until(lambda: {job["id"] for job in self.forecast(daemon)["jobs"]} >= set(jobs))
        ids = ",".join(str(job) for job in jobs[7:1000:7])
        listed = [job["id"] for job in self.forecast(daemon, ids)["jobs"]]
        self.assertEqual(listed, jobs[7:1000:7])
        daemon.kill()
        self.check_rows(daemon)
        kept = self.rows(daemon, "SELECT count(*), count(DISTINCT made_ns) FROM forecast "
                         "WHERE target = 0")[0]
        self.assertLess(kept[0], 200 * (kept[1] + 1)) # a few of each pass
        daemon.start()

    def test_jobs_that_come_and_go_all_the_time_leave_nothing_open(self):
        daemon = self.start("--policy", "las", gpus="v100:2")
        self.finish_some(daemon)

        def come_and_go(turn):
            job = self.submit(daemon, 0.05 * (turn % 3) if turn % 2 else 30, name=f"j{turn % 5}")
            if turn % 3 == 0:
                self.forecast(daemon)
                self.assertEqual(daemon.ask("GET", f"/v1/jobs/{job}/why")[0], 200)
            if turn % 7 == 0:
                self.assertIn(self.dry_run(daemon)[0], (200, 429))
            if turn % 2 == 0:
                daemon.ask("DELETE", f"/v1/jobs/{job}")
            return job

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            jobs = list(pool.map(come_and_go, range(300)))
        self.wait(daemon, *jobs)
        self.assertEqual(self.forecast(daemon)["jobs"], [])
        text = daemon.ask("GET", "/metrics")[1]
        self.assertRegex(text, r'berth_forecasts_total\{outcome="failed"\} 0')
        daemon.stop()
        self.check_rows(daemon)
        daemon.start()

    def test_killed_while_it_plays_forward_it_goes_on(self):
        daemon = self.start("--policy", "las", gpus="v100:2")
        self.finish_some(daemon)
        for turn in range(5):
            jobs = [self.submit(daemon, 0.1 if turn % 2 else 30) for _ in range(40)]
            asking = [threading.Thread(target=self.ask_and_lose, args=(daemon, jobs[20 + i]))
                      for i in range(3)]
            for thread in asking:
                thread.start()
            time.sleep(0.1 * turn)
            daemon.kill()
            for thread in asking:
                thread.join()
            self.check_rows(daemon)
            daemon.start()
        self.expected(daemon, self.submit(daemon, 30))
        self.assertRegex(daemon.ask("GET", "/metrics")[1],
                         r'berth_forecasts_total\{outcome="failed"\} 0')

    def ask_and_lose(self, daemon, job):
        try:
            daemon.ask("POST", "/v1/ahead", {"policy": "fifo"})
            daemon.ask("GET", f"/v1/jobs/{job}/why")
        except (OSError, http.client.HTTPException):
            pass

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small file system")
    def test_a_full_disk_leaves_no_forecast_of_what_never_was(self):
        folder = tempfile.mkdtemp(prefix="berth-forecast-")
        self.addCleanup(os.rmdir, folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        daemon = Daemon("--policy", "las", gpus="v100:2")
        daemon.state = os.path.join(folder, "s")
        self.addCleanup(daemon.wipe)
        daemon.start()
        self.finish_some(daemon)
        job = self.submit(daemon, 0.1)
        filler = os.path.join(folder, "filler")
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        body = {"gpus": 1, "command": ["sleep", "0.1"], "cwd": "/"}

        def refused():
            self.dry_run(daemon)
            daemon.ask("POST", "/v1/ahead", {"policy": "fifo"})
            return daemon.ask("POST", "/v1/jobs", body)[0] == 503

        until(refused)
        self.assertIsNone(daemon.process.poll(), daemon.words())
        os.remove(filler)
        until(lambda: daemon.ask("POST", "/v1/jobs", body)[0] == 201)
        self.wait(daemon, job)
        more = [self.submit(daemon, 30) for _ in range(4)]
        self.expected(daemon, more[3])
        daemon.kill()
        self.check_rows(daemon)
        daemon.start()


class Why(Case):
    def test_many_who_ask_at_once_are_all_answered(self):
        daemon = self.start("--policy", "las")
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 30) for _ in range(8)]
        self.expected(daemon, *jobs[1:])
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            replies = list(pool.map(
                lambda i: daemon.ask("GET", f"/v1/jobs/{jobs[1 + i % 7]}/why"), range(120)))
        changes = 0
        for status, reply in replies:
            self.assertEqual(status, 200)
            self.assertEqual(reply["state"], "PENDING")
            self.assertTrue(reply["reasons"])
            changes += "smallest_change" in reply
        self.assertGreater(changes, 0)
        reply = daemon.ask("GET", f"/v1/jobs/{jobs[1]}/why")[1]
        self.check_times(reply["expected_start"])
        self.assertEqual(reply["smallest_change"], f"cancelling job {jobs[0]} would start it")

    def test_berthd_ends_while_somebody_asks(self):
        daemon = self.start()
        self.finish_some(daemon)
        jobs = [self.submit(daemon, 30) for _ in range(4)]
        asking = [subprocess.Popen([os.path.join(BUILD, "berth"), "why", str(jobs[3])],
                                   env={**os.environ, "BERTH_ADDR": daemon.socket},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for _ in range(8)]
        daemon.stop()
        self.assertEqual(daemon.process.returncode, 0)
        for process in asking:
            process.wait(60)
        daemon.start()


if __name__ == "__main__":
    unittest.main()
