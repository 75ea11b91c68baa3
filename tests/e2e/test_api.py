"""What berthd answers: every route, hostile input to each of them, and other people."""
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import unittest

from live import PATIENCE, Daemon, Wire, until

SLEEPER = ["sleep", "60"]


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--listen", "127.0.0.1:0", gpus="v100:2")
        try:
            cls.daemon.start()
        except FileNotFoundError:
            shutil.rmtree(cls.daemon.dir, True)
            raise unittest.SkipTest("berthd is not built")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.wipe()

    def ask(self, method, path, body=None):
        return self.daemon.ask(method, path, body)

    def get(self, path):
        status, answer = self.ask("GET", path)
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, status, method, path, body=None, says=None, field=None):
        got, answer = self.ask(method, path, body)
        self.assertEqual(got, status, (method, path, answer))
        self.assertRegex(answer["error"], r"\A[^\n]+\Z")
        if says:
            self.assertIn(says, answer["error"])
        if field:
            self.assertEqual(answer.get("field"), field)

    def job(self, *command, **more):
        return {"command": list(command), "cwd": self.daemon.dir,
                "env": {"PATH": os.environ["PATH"]}, "gpus": 1, **more}

    def cancel_all(self):
        for job in self.get("/v1/jobs")["jobs"]:
            self.ask("DELETE", f"/v1/jobs/{job['id']}")
            self.daemon.wait(job["id"])

    # --- one job's life ---------------------------------------------------------------

    def test_a_job_is_submitted_shown_read_and_remembered(self):
        ident = self.daemon.sh("echo out; echo err >&2; exit 3", name="first")
        job = self.daemon.wait(ident)
        self.assertEqual(job["state"], "FAILED")
        self.assertEqual(job["exit_code"], 3)
        self.assertEqual(job["name"], "first")
        self.assertEqual(job["command"][0], "sh")
        self.assertGreaterEqual(job["end"], job["start"])
        self.assertGreaterEqual(job["start"], job["submit"])
        self.assertEqual(self.ask("GET", f"/v1/jobs/{ident}/log"), (200, "out\nerr\n"))
        self.assertEqual(self.ask("GET", f"/v1/jobs/{ident}/log?offset=-4"), (200, "err\n"))
        self.assertEqual(self.ask("GET", f"/v1/jobs/{ident}/log?offset=4"), (200, "err\n"))
        self.refused(404, "GET", f"/v1/jobs/{ident}/log?stream=err")
        self.assertIn(ident, [j["id"] for j in self.get("/v1/jobs?history=true")["jobs"]])
        self.assertNotIn(ident, [j["id"] for j in self.get("/v1/jobs")["jobs"]])
        self.assertIn(ident, [j["id"] for j in self.get("/v1/jobs?state=FAILED")["jobs"]])
        self.assertEqual(self.get(f"/v1/jobs/{ident}/why")["state"], "FAILED")
        self.refused(409, "DELETE", f"/v1/jobs/{ident}", says="has ended")
        self.refused(409, "PATCH", f"/v1/jobs/{ident}", {"hold": True}, says="has ended")

    def test_a_waiting_job_is_held_changed_explained_and_cancelled(self):
        runs = [self.daemon.submit(*SLEEPER, steps=1000) for _ in range(2)]
        for ident in runs:
            self.daemon.wait(ident, {"RUNNING"})
        waits = self.daemon.submit(*SLEEPER, name="waiter", steps=5000)
        job = self.daemon.job(waits)
        self.assertEqual(job["state"], "PENDING")
        self.assertEqual(job["reason"], "needs 1 GPU, 0 are free")
        why = self.get(f"/v1/jobs/{waits}/why")
        self.assertEqual(why["reasons"][0]["token"], "resources")
        self.assertTrue(why["can_ever_run"])
        self.assertIn(str(runs[0]), str(why["reasons"]))

        status, job = self.ask("PATCH", f"/v1/jobs/{waits}", {"hold": True})
        self.assertEqual((status, job["state"]), (200, "HELD"))
        self.assertEqual(self.get(f"/v1/jobs/{waits}/why")["smallest_change"],
                         f"berth release {waits}")
        status, job = self.ask("PATCH", f"/v1/jobs/{waits}",
                               {"class": "te", "weight": 2, "grace_s": 5})
        self.assertEqual((status, job["class"]), (200, "te"))
        self.refused(409, "PATCH", f"/v1/jobs/{runs[0]}", {"hold": True})
        status, job = self.ask("DELETE", f"/v1/jobs/{waits}")
        self.assertEqual((status, job), (200, {"id": waits, "state": "CANCELLED"}))

        nodes = self.get("/v1/nodes")["nodes"]
        self.assertEqual(sorted(sum((gpu["jobs"] for gpu in nodes[0]["held"]), [])), runs)
        self.assertEqual({f["job"] for f in self.get("/v1/flows")["flows"]}, set(runs))
        server = self.get("/v1/server")
        self.assertEqual(server["jobs"]["running"], 2)
        self.assertEqual(server["gpus"], {"total": 2, "held": 2, "foreign": 0})
        self.cancel_all()

    def test_a_preempted_job_says_by_whom_and_at_what_price(self):
        old = [self.daemon.sh("trap 'exit 85' TERM; sleep 60 & wait", grace_s=5)
               for _ in range(2)]
        for ident in old:
            self.daemon.wait(ident, {"RUNNING"})
        trial = self.daemon.submit("true", **{"class": "te"})
        self.daemon.wait(trial)
        victims = [j for j in map(self.daemon.job, old) if j["preemptions"]]
        self.assertEqual(len(victims), 1)
        by = victims[0]["preempted_by"]
        self.assertEqual((by[0]["job"], by[0]["rule"]), (trial, "trial"))
        entries = self.get(f"/v1/ledger?job={victims[0]['id']}")["entries"]
        self.assertEqual(entries[0]["for"], trial)
        self.assertIn("preempted", [r["token"] for r in
                                    self.get(f"/v1/jobs/{victims[0]['id']}/why")["reasons"]])
        self.cancel_all()

    def test_several_jobs_are_taken_together_or_not_at_all(self):
        status, answer = self.ask("POST", "/v1/jobs", {
            "jobs": [self.job("true", array_index=i) for i in range(5)], "array_limit": 2})
        self.assertEqual(status, 201)
        for ident in answer["ids"]:
            job = self.daemon.wait(ident)
            self.assertEqual(job["state"], "COMPLETED")
            self.assertEqual(job["array_id"], answer["ids"][0])
        before = self.get("/v1/jobs?history=true&limit=1")["jobs"][0]["id"]
        self.refused(400, "POST", "/v1/jobs",
                     {"jobs": [self.job("true"), self.job("true", gpus=-1)]},
                     field="jobs[1].gpus")
        self.assertEqual(self.get("/v1/jobs?history=true&limit=1")["jobs"][0]["id"], before)

    def test_one_that_can_never_run_is_recorded_as_rejected(self):
        status, answer = self.ask("POST", "/v1/jobs", self.job("true", gpus=3))
        self.assertEqual(status, 201)
        self.assertTrue(answer["rejected"])
        self.assertEqual(self.daemon.job(answer["id"])["state"], "REJECTED")
        self.assertFalse(self.get(f"/v1/jobs/{answer['id']}/why")["can_ever_run"])

    def test_output_is_followed_until_the_job_ends(self):
        ident = self.daemon.sh("for i in 1 2 3; do echo $i; sleep 0.2; done")
        self.assertEqual(self.ask("GET", f"/v1/jobs/{ident}/log?follow=true"),
                         (200, "1\n2\n3\n"))

    def test_output_goes_where_it_is_told(self):
        ident = self.daemon.sh("echo hi; echo oops >&2", name="n",
                               output="%x-%j.txt", error=f"{self.daemon.dir}/err-%j")
        self.daemon.wait(ident)
        self.assertEqual(self.ask("GET", f"/v1/jobs/{ident}/log"), (200, "hi\n"))
        self.assertEqual(self.ask("GET", f"/v1/jobs/{ident}/log?stream=err"), (200, "oops\n"))
        self.assertTrue(os.path.exists(f"{self.daemon.dir}/n-{ident}.txt"))

    def test_a_link_in_place_of_the_output_is_not_followed(self):
        path = f"{self.daemon.dir}/trick"
        ident = self.daemon.sh("true", output=path)
        self.daemon.wait(ident)
        os.remove(path)
        os.symlink("/etc/passwd", path)
        self.refused(403, "GET", f"/v1/jobs/{ident}/log")
        os.remove(path)
        os.mkfifo(path)
        self.refused(403, "GET", f"/v1/jobs/{ident}/log")

    # --- events and figures -------------------------------------------------------------

    def watch(self, query, lines, begun=None):
        wire = Wire(self.daemon.socket)
        wire.request("GET", "/v1/events" + query)
        reply = wire.getresponse()
        if begun:
            begun.set()
        events = []
        while len(events) < lines:
            line = reply.fp.readline().decode()
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
        wire.close()
        return events

    def test_events_come_as_they_happen_and_again_from_any_number(self):
        got, begun = [], threading.Event()
        thread = threading.Thread(target=lambda: got.extend(self.watch("", 4, begun)))
        thread.start()
        self.assertTrue(begun.wait(PATIENCE))
        ident = self.daemon.submit("true")
        thread.join(PATIENCE)
        self.assertEqual([e["kind"] for e in got],
                         ["submitted", "placed", "started", "finished"])
        self.assertEqual({e["job"] for e in got}, {ident})
        again = self.watch(f"?since={got[1]['seq']}", 2)
        self.assertEqual([e["seq"] for e in again], [e["seq"] for e in got[2:]])
        self.assertEqual(self.watch("?since=0", 1)[0]["seq"], 1)

    def test_figures_can_be_read_by_prometheus(self):
        wire = Wire(self.daemon.socket)
        wire.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
        reply = wire.getresponse()
        text = reply.read().decode()
        wire.close()
        self.assertIn("application/openmetrics-text", reply.headers["Content-Type"])
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertIn('berth_jobs{state="pending"}', text)
        parser = "/usr/lib/python3/dist-packages/prometheus_client/openmetrics/parser.py"
        if not os.path.exists(parser):
            self.skipTest("python3-prometheus-client is not installed")
        done = subprocess.run(
            ["/usr/bin/python3", "-c",
             "import sys; from prometheus_client.openmetrics import parser; "
             "print(len(list(parser.text_string_to_metric_families(sys.stdin.read()))))"],
            input=text, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(int(done.stdout), 10)

    def test_promtool_finds_nothing_wrong_with_them(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        _, text = self.ask("GET", "/metrics")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    # --- the server -------------------------------------------------------------------------

    def test_the_policy_can_be_changed(self):
        before = self.get("/v1/server")["policy"]
        status, answer = self.ask("PATCH", "/v1/server", {"policy": "srtf"})
        self.assertEqual((status, answer["policy"]), (200, "srtf"))
        for body in [{}, [], {"policy": 1}, {"policy": "none"}, {"policy": "srtf,x=1"},
                     {"polity": "srtf"}, {"policy": "a" * 10000}, {"flow": "none"},
                     {"flow": "jpas,levels=9"}, {"policy": "las", "flow": "jpas,x=1"}, "{"]:
            self.refused(400, "PATCH", "/v1/server", body)
        self.assertEqual(self.get("/v1/server")["policy"], "srtf")
        self.ask("PATCH", "/v1/server", {"policy": before})

    # --- hostile input -----------------------------------------------------------------------

    def test_nonsense_in_the_address(self):
        for path in ["/v1/jobs/0", "/v1/jobs/01", "/v1/jobs/-1", "/v1/jobs/+1", "/v1/jobs/x",
                     "/v1/jobs/1.0", "/v1/jobs/9223372036854775808", "/v1/jobs/%31%20",
                     "/v1/jobs/../jobs", "/v1/jobs/%2e%2e", "/v1//jobs", "/v1/jobs/1%00",
                     "/v1/jobs/1/../2", "/v1/jobs/%2fetc", "/v1/jobs?x=1", "/v1/jobs?limit=0",
                     "/v1/jobs?limit=1e3", "/v1/jobs?limit=100001", "/v1/jobs?state=NONE",
                     "/v1/jobs?state=PENDING,,x", "/v1/jobs?since=-1", "/v1/jobs?since=nan",
                     "/v1/jobs?before=0", "/v1/jobs?history=maybe", "/v1/jobs?user=%ff",
                     "/v1/jobs/1/log?offset=x", "/v1/jobs/1/log?stream=in",
                     "/v1/jobs/1/log?follow=2", "/v1/events?since=x", "/v1/ledger?job=x"]:
            self.refused(400, "GET", path)
        for path in ["/app", "/index.html", "/v1", "/v1/", "/v2/jobs", "/v1/jobs/", "/v1/jobs/1/", "/etc/passwd",
                     "/v1/jobs/1/what", "/v1/jobs/999999", "/v1/jobs/999999/why",
                     "/v1/jobs/999999/log", "/V1/JOBS"]:
            self.refused(404, "GET", path)
        for method, path in [("PUT", "/v1/jobs"), ("DELETE", "/v1/jobs"), ("POST", "/v1/nodes"),
                             ("PATCH", "/metrics"), ("OPTIONS", "/v1/jobs/1"),
                             ("TRACE", "/v1/server")]:
            self.refused(405, method, path)
        self.refused(404, "DELETE", "/v1/jobs/999999")

    def test_nonsense_in_a_name_finds_nothing(self):
        for text in ["';DROP TABLE job;--", "%25", "*", "a" * 4000, "é"]:
            from urllib.parse import quote
            self.assertEqual(self.get(f"/v1/jobs?name={quote(text)}")["jobs"], [])
            self.assertEqual(self.get(f"/v1/jobs?user={quote(text)}")["jobs"], [])

    def test_nonsense_in_a_job(self):
        before = self.get("/v1/jobs?history=true&limit=1")["jobs"]
        job = self.job("true")
        for body in ["", "{", "null", "[]", "1", '"x"', "{}", "\0", '{"command":["a\\u0000b"]}',
                     "[" * 100000, '{"a":' * 5000, b"\xff\xfe{}".decode("latin1"),
                     {**job, "command": []}, {**job, "command": "true"},
                     {**job, "command": [1]}, {**job, "gpus": "1"}, {**job, "gpus": -1},
                     {**job, "gpus": 1.5}, {**job, "gpus": 10**30}, {**job, "unknown": 1},
                     {**job, "name": "a" * 201}, {**job, "name": "a" * 10_000_000},
                     {**job, "name": ["x"]}, {**job, "env": {"A=B": "c"}},
                     {**job, "env": {"A": 1}}, {**job, "class": "xx"},
                     {**job, "signal": "NOSUCH"}, {**job, "grace_s": -1},
                     {**job, "dependency": [{"kind": "never", "id": 1}]},
                     {**job, "cwd": "relative"}, {**job, "uid": 0}, {**job, "user": "root"},
                     {"jobs": []}, {"jobs": {}}, {"jobs": [1]}, {"jobs": [job], "x": 1},
                     {"jobs": [job], "array_limit": -1}, {"jobs": [job] * 10001}]:
            self.refused(400, "POST", "/v1/jobs", body)
        for body in ["", "[]", "{}", {"hold": 1}, {"class": "xx"}, {"weight": 0},
                     {"weight": "1"}, {"grace_s": -1}, {"gpus": 1}, {"steps": 1e99}]:
            self.refused(400, "PATCH", "/v1/jobs/1", body)
        self.assertEqual(self.get("/v1/jobs?history=true&limit=1")["jobs"], before)

    def test_a_wrong_pattern_is_refused_when_the_job_is_submitted(self):
        job = self.job("true")
        for pattern, says in [("([0-9]+", "missing )"), ("step", "no group for the step"),
                              ("a" + 33 * "+", "bad repetition operator"),
                              ("((a{1,100}){1,100}){1,100}", "more than 200 times"),
                              ("(a)" * 200, "longer than 512 bytes")]:
            self.refused(400, "POST", "/v1/jobs", {**job, "pattern": pattern}, says=says,
                         field="pattern")
            self.refused(400, "POST", "/v1/jobs", {"jobs": [job, {**job, "pattern": pattern}]},
                         says="jobs[1].pattern: ")
        self.refused(400, "POST", "/v1/jobs",
                     {"jobs": [{**job, "pattern": f"({n})"} for n in range(65)]},
                     says="at most 64 different patterns")

    def test_a_body_that_is_too_large(self):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(self.daemon.socket)
            raw.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n"
                        b"Content-Length: 99999999999\r\n\r\n")
            self.assertIn(b" 413 ", raw.recv(4096))

    def test_bytes_at_random(self):
        import random
        rng = random.Random(1)
        good = json.dumps(self.job("true", hold=True)).encode()
        for _ in range(300):
            body = bytearray(good)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(body))
                body[at:at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
            status, answer = self.ask("POST", "/v1/jobs", bytes(body))
            self.assertIn(status, (201, 400), answer)
            if status == 201:
                self.assertEqual(self.ask("DELETE", f"/v1/jobs/{answer['id']}")[0],
                                 409 if "rejected" in answer else 200)

    def test_the_routes_are_those_of_the_document(self):
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(f"{root}/docs/api/openapi.yaml", encoding="utf-8") as file:
            text = file.read().split("\ncomponents:")[0]
        told = {}
        for path, rest in re.findall(r"^  (/\S+):\n((?:    .*\n?)+)", text, re.M):
            shared = rest.split("    get:")[0]
            for method, part in re.findall(r"^    (get|post|patch|delete):(.*\n?(?:      .*\n?)*)",
                                           rest, re.M):
                names = re.findall(r"name: (\w+), in: query", part)
                names += re.findall(r"name: (\w+), in: query", shared)
                told[method.upper(), path] = set(names)
        rows = []
        for name in glob.glob(f"{root}/src/daemon/**/*.c", recursive=True):
            with open(name, encoding="utf-8") as file:
                rows += re.findall(r'\{ "([A-Z]+)", "(/[^"]+)",\s+SCOPE[A-Z_| ]+,\s+"([^"]*)",',
                                   file.read())
        self.assertEqual({(method, path): set(keys.split()) for method, path, keys in rows},
                         told)

    # --- over TCP ------------------------------------------------------------------------------

    def tcp(self, headers, path="/v1/server"):
        with socket.create_connection(("127.0.0.1", self.port()), 10) as raw:
            lines = "".join(f"{k}: {v}\r\n" for k, v in headers)
            raw.sendall(f"GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
            data = b""
            while chunk := raw.recv(65536):
                data += chunk
        return int(data.split()[1])

    def port(self):
        """The port it listens on, as the kernel lists it."""
        inodes = set()
        for fd in os.listdir(f"/proc/{self.daemon.process.pid}/fd"):
            try:
                link = os.readlink(f"/proc/{self.daemon.process.pid}/fd/{fd}")
            except OSError:
                continue
            inodes.update(re.findall(r"socket:\[(\d+)\]", link))
        with open("/proc/net/tcp", encoding="ascii") as table:
            for line in list(table)[1:]:
                words = line.split()
                if words[9] in inodes and words[3] == "0A":
                    return int(words[1].split(":")[1], 16)
        raise AssertionError("it does not listen")

    def test_tcp_needs_the_token_and_the_right_host(self):
        with open(f"{self.daemon.state}/token", encoding="ascii") as file:
            token = file.read().strip()
        self.assertEqual(os.stat(f"{self.daemon.state}/token").st_mode & 0o777, 0o600)
        host = ("Host", f"127.0.0.1:{self.port()}")
        right = ("Authorization", f"Bearer {token}")
        self.assertEqual(self.tcp([host, right]), 200)
        self.assertEqual(self.tcp([host]), 401)
        self.assertEqual(self.tcp([host, ("Authorization", "Bearer " + "0" * 64)]), 401)
        self.assertEqual(self.tcp([("Host", "evil.example"), right]), 421)
        self.assertEqual(self.tcp([host, right, ("Origin", "http://evil.example")]), 403)
        self.assertEqual(self.tcp([host], "/v1/jobs/1/log"), 401)


class Why(unittest.TestCase):
    """What holds a job back, in one world after the other."""

    def setUp(self):
        self.daemon = Daemon("--policy", "fifo", gpus="v100:2,p100:1")
        try:
            self.daemon.start()
        except FileNotFoundError:
            shutil.rmtree(self.daemon.dir, True)
            self.skipTest("berthd is not built")
        self.addCleanup(self.daemon.wipe)

    def why(self, ident):
        status, answer = self.daemon.ask("GET", f"/v1/jobs/{ident}/why")
        self.assertEqual(status, 200, answer)
        tokens = [reason["token"] for reason in answer["reasons"]]
        return tokens, answer.get("smallest_change", ""), answer

    def runs(self, **more):
        ident = self.daemon.submit(*SLEEPER, **more)
        self.daemon.wait(ident, {"RUNNING"})
        return ident

    def test_room_and_turn(self):
        one = self.runs(types="v100")
        two = self.daemon.submit(*SLEEPER, types="v100", gpus=2)
        tokens, change, answer = self.why(two)
        self.assertEqual(tokens[0], "resources")
        self.assertIn(f"1 of 2 are free; 1 held by job {one}", answer["reasons"][0]["text"])
        self.assertIn("with 1 GPU instead of 2", change)

        # Behind it, one for which there is room: by this policy it has to wait.
        three = self.daemon.submit(*SLEEPER, types="p100")
        tokens, change, answer = self.why(three)
        self.assertIn("order", tokens)
        self.assertEqual(answer["ahead"], [two])
        self.assertIn(f"cancelling job {two}", change)

        # What it says would help does.
        self.daemon.ask("DELETE", f"/v1/jobs/{two}")
        self.daemon.wait(three, {"RUNNING"})
        self.assertEqual(self.why(three)[0], ["running"])
        self.runs(types="v100")
        four = self.daemon.submit(*SLEEPER, types="p100")
        self.assertIn(f"cancelling job {three}", self.why(four)[1])
        self.daemon.ask("DELETE", f"/v1/jobs/{one}")
        self.daemon.wait(one)
        self.assertIn("on type v100", self.why(four)[1])

    def test_nodes_that_will_do_also_after_a_crash(self):
        one = self.runs(types="v100")
        node = self.daemon.job(one)["placement"][0]["node"]
        two = self.daemon.submit(*SLEEPER, gpus=2, nodelist=node)
        for crash in (True, False):
            tokens, change, answer = self.why(two)
            self.assertEqual(tokens[:2], ["nodes", "resources"])
            self.assertEqual(answer["reasons"][0]["text"], f"only nodes {node} will do (-w)")
            if crash:
                self.daemon.kill()
                self.daemon.start()
        self.daemon.ask("DELETE", f"/v1/jobs/{one}")
        placement = self.daemon.wait(two, {"RUNNING"})["placement"]
        self.assertEqual([seat["node"] for seat in placement], [node])

        other = self.runs(exclude=node)
        self.assertNotEqual(self.daemon.job(other)["placement"][0]["node"], node)
        nowhere = self.daemon.submit("true", nodelist="elsewhere")
        job = self.daemon.job(nowhere)
        self.assertEqual((job["state"], job["reason"]),
                         ("REJECTED", "node elsewhere: not in this cluster"))

    def test_a_trial_job_would_start(self):
        self.daemon.ask("PATCH", "/v1/server", {"policy": "fitgpp"})
        self.runs(types="p100")
        waits = self.daemon.submit(*SLEEPER, types="p100|v100", gpus=2)
        self.daemon.wait(waits, {"RUNNING"})
        last = self.daemon.submit(*SLEEPER, types="p100")
        self.assertIn("as class te", self.why(last)[1])
        self.assertEqual(self.daemon.ask("PATCH", f"/v1/jobs/{last}", {"class": "te"})[0], 200)
        self.daemon.wait(last, {"RUNNING"})

    def test_gates(self):
        first = self.runs()
        for more, token, says in [
                ({"hold": True}, "held", "its owner holds it"),
                ({"begin": time.time() + 1000}, "begin", "may not begin"),
                ({"dependency": [{"kind": "afterok", "id": first}]}, "dependency",
                 f"job {first}")]:
            ident = self.daemon.submit(*SLEEPER, **more)
            tokens, _, answer = self.why(ident)
            self.assertEqual((answer["state"], tokens), ("HELD", [token]))
            self.assertIn(says, answer["reasons"][0]["text"])
            self.assertIn(says, self.daemon.job(ident)["reason"])


@unittest.skipIf(os.getuid() != 0, "needs root: it takes two users")
class Users(unittest.TestCase):
    """One daemon for everybody: neither can read, cancel or run as the other."""
    ONE, TWO = 65534, 1 # nobody and daemon, which every Debian has

    def setUp(self):
        self.daemon = Daemon("--system", gpus="v100:2")
        try:
            self.daemon.start()
        except FileNotFoundError:
            shutil.rmtree(self.daemon.dir, True)
            self.skipTest("berthd is not built")
        self.addCleanup(self.daemon.wipe)

    def ask_as(self, uid, method, path, body=None):
        """From a process of that user, since the kernel says who asks."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.write(write, json.dumps(self.daemon.ask(method, path, body)).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as file:
            answer = file.read()
        os.waitpid(pid, 0)
        return tuple(json.loads(answer))

    def submit_as(self, uid, script, **more):
        body = {"command": ["sh", "-c", script], "cwd": "/", "gpus": 1,
                "env": {"PATH": os.environ["PATH"]}, **more}
        status, answer = self.ask_as(uid, "POST", "/v1/jobs", body)
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def test_neither_can_read_cancel_or_run_as_the_other(self):
        mine = self.submit_as(self.ONE, "id -u; echo secret; sleep 30", name="private")
        self.daemon.wait(mine, {"RUNNING"})
        until(lambda: "secret" in self.ask_as(self.ONE, "GET", f"/v1/jobs/{mine}/log")[1])
        self.assertEqual(self.ask_as(self.ONE, "GET", f"/v1/jobs/{mine}/log"),
                         (200, f"{self.ONE}\nsecret\n"))
        for method, path, body in [("GET", "", None), ("GET", "/why", None),
                                   ("GET", "/log", None), ("DELETE", "", None),
                                   ("PATCH", "", {"hold": True})]:
            status, answer = self.ask_as(self.TWO, method, f"/v1/jobs/{mine}{path}", body)
            self.assertEqual(status, 403, answer)
        seen = self.ask_as(self.TWO, "GET", "/v1/jobs")[1]["jobs"]
        self.assertEqual([job["id"] for job in seen], [mine])
        self.assertFalse({"name", "command", "output", "progress"} & set(seen[0]))
        self.assertEqual(self.ask_as(self.TWO, "PATCH", "/v1/server", {"policy": "fifo"})[0],
                         403)
        self.assertEqual(self.ask_as(self.TWO, "DELETE", "/v1/server?kill=true")[0], 403)
        self.assertEqual(self.daemon.job(mine)["state"], "RUNNING")
        self.assertEqual(self.ask_as(self.ONE, "DELETE", f"/v1/jobs/{mine}")[0], 200)
        self.assertEqual(self.daemon.wait(mine)["state"], "CANCELLED")

    def test_a_job_cannot_show_its_owner_what_its_owner_cannot_read(self):
        secret = os.path.join(self.daemon.dir, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write("root's")
        os.chmod(secret, 0o600)
        out = os.path.join(self.daemon.dir, "out")
        os.mkdir(out, 0o755)
        os.chown(out, self.TWO, self.TWO)
        ident = self.submit_as(self.TWO, "echo hi", output=f"{out}/log")
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.ask_as(self.TWO, "GET", f"/v1/jobs/{ident}/log"), (200, "hi\n"))
        os.remove(f"{out}/log")
        for trick in (lambda: os.symlink(secret, f"{out}/log"),
                      lambda: os.link(secret, f"{out}/log")):
            trick()
            status, answer = self.ask_as(self.TWO, "GET", f"/v1/jobs/{ident}/log")
            self.assertEqual(status, 403, answer)
            os.remove(f"{out}/log")


if __name__ == "__main__":
    unittest.main()
