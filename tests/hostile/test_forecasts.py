"""Forecasts for several users: nobody learns from them what is another's, and one who asks for
everything at once keeps nobody else from being answered."""
import concurrent.futures
import json
import unittest

from hostile import ADA, BOB, SUDDEN, Case, Wire, send, until

SECRET = "the-merger-with-acme"


def ask_for_much(socket, seconds_count):
    """Dry runs and futures, many at once, again and again; how often each status came."""
    def one(i):
        if i % 2:
            path, body = "/v1/ahead", {"ahead_s": 2592000, "policy": "las"}
        else:
            path, body = "/v1/jobs?dry_run=true", {"command": ["true"], "cwd": "/", "gpus": 4}
        try:
            return send(socket, "POST", path, body, timeout=4 * SUDDEN)[0]
        except OSError:
            return 0 # not even connected
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        found = list(pool.map(one, range(seconds_count)))
    return {status: found.count(status) for status in set(found)}


def first_forecast(socket, job):
    """The first event of the stream that tells of a forecast of this job."""
    wire = Wire(socket, 4 * SUDDEN)
    wire.request("GET", "/v1/events")
    reply = wire.getresponse()
    while True:
        line = reply.readline().decode()
        if not line or (line.startswith("data: ") and f'"id":{job},"expected' in line):
            wire.close()
            return line


class Forecasts(Case):
    gpus = "v100:4"
    flags = ("--policy", "las")

    def fill(self):
        """History, and ADA's queue with a name that is hers."""
        for ident in [self.submit(ADA, "sleep 0.1", name=SECRET) for _ in range(6)]:
            self.wait(ident)
        jobs = [self.submit(ADA, "sleep 100", name=SECRET) for _ in range(20)]
        until(lambda: {job["id"] for job in send(self.daemon.socket, "GET", "/v1/forecast")[1]
                       ["jobs"]} >= set(jobs))
        return jobs

    def test_names_of_others_are_not_told(self):
        jobs = self.fill()
        own = self.ask(ADA, "GET", "/v1/forecast")[1]["jobs"]
        self.assertIn(SECRET, json.dumps(own))
        for method, path, body in (
                ("GET", "/v1/forecast", None), ("GET", f"/v1/forecast?ids={jobs[9]}", None),
                ("GET", "/v1/jobs", None), ("GET", f"/v1/jobs/{jobs[9]}/why", None),
                ("POST", "/v1/jobs?dry_run=true", {"command": ["true"], "cwd": "/", "gpus": 1}),
                ("POST", "/v1/ahead", {"without": jobs[:3]}),
                ("POST", "/v1/ahead", {"without_user": ADA.name})):
            status, reply = self.ask(BOB, method, path, body)
            self.assertIn(status, (200, 403, 404), (path, reply))
            self.assertNotIn("merger", json.dumps(reply), path)
            self.assertNotIn("sleep 100", json.dumps(reply), path)
        watching = concurrent.futures.ThreadPoolExecutor(1)
        line = watching.submit(BOB.call, first_forecast, self.daemon.socket, jobs[9])
        self.submit(ADA, "sleep 100", name=SECRET) # a change, and so a forecast
        told = line.result()
        self.assertIn("expected", told)
        self.assertNotIn("merger", told)

    def test_one_who_asks_for_all_at_once_keeps_nobody_waiting(self):
        jobs = self.fill()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            hostile = pool.submit(ADA.call, ask_for_much, self.daemon.socket, 400)
            answered = 0
            while not hostile.done() or answered < 5:
                status, reply = self.ask(BOB, "GET", "/v1/forecast")
                self.assertEqual(status, 200, reply)
                status, reply = self.ask(BOB, "POST", "/v1/jobs?dry_run=true",
                                         {"command": ["true"], "cwd": "/", "gpus": 1})
                self.assertEqual(status, 200, reply)
                self.assertFalse(reply["now"])
                answered += 1
            counts = hostile.result()
        self.assertGreater(counts.get(429, 0), 0, counts) # she was told to wait
        self.assertGreater(counts.get(200, 0), 0, counts)
        self.assertEqual(set(counts) - {0, 200, 429, 503}, set(), counts)
        ident = self.submit(BOB, "sleep 100")
        until(lambda: ident in {job["id"] for job in send(
            self.daemon.socket, "GET", "/v1/forecast")[1]["jobs"]})
        self.assertEqual(self.job(jobs[0])["state"], "RUNNING")


if __name__ == "__main__":
    unittest.main()
