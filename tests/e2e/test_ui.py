"""How a browser comes in, and what the dashboard begins with; the pages themselves are tried in
a browser (web/test/browser)."""
import http.client
import json
import os
import re
import subprocess
import unittest
from urllib.parse import urlsplit

from live import BUILD, Daemon, Wire


def listening(pid):
    """Addresses this process listens on by TCP, as the kernel lists them."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}")))
        except OSError:
            continue
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in list(file)[1:]]
        found += [row[1] for row in rows if row[9] in inodes and row[3] == "0A"]
    return found


class Ui(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(gpus="v100:4")
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()

    def url(self):
        done = subprocess.run([os.path.join(BUILD, "berth"), "ui", "--print-url", "--socket",
                               self.daemon.socket], stdout=subprocess.PIPE, check=False, text=True,
                              stderr=subprocess.PIPE)
        if "without its page" in done.stderr:
            self.skipTest("built without web/: no node_modules")
        self.assertEqual(done.returncode, 0, done.stderr)
        return urlsplit(done.stdout.strip())

    def call(self, url, method, path, body=None, **headers):
        wire = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        wire.request(method, path, body=json.dumps(body) if body else None, headers=headers)
        reply = wire.getresponse()
        data = reply.read()
        wire.close()
        return reply, data

    def trade(self, url):
        reply, data = self.call(url, "POST", "/v1/session",
                                {"token": url.fragment.removeprefix("token=")})
        return reply.status, json.loads(data)

    def test_nothing_listens_until_it_is_asked_for_and_then_on_loopback(self):
        self.assertEqual(listening(self.daemon.process.pid), [])
        url = self.url()
        self.assertEqual(url.hostname, "127.0.0.1")
        self.assertEqual(listening(self.daemon.process.pid), ["0100007F:%04X" % url.port])
        self.assertEqual(self.url().port, url.port)

    def test_an_address_opens_once_and_its_session_goes_on_after_a_restart(self):
        url = self.url()
        status, answer = self.trade(url)
        self.assertEqual(status, 201)
        self.assertEqual(self.trade(url)[0], 401)
        bearer = {"Authorization": f"Bearer {answer['session']}"}
        self.assertEqual(self.call(url, "GET", "/v1/server", **bearer)[0].status, 200)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.call(url, "GET", "/v1/server", **bearer)[0].status, 200)
        self.assertEqual(self.call(url, "DELETE", "/v1/session", **bearer)[0].status, 200)
        self.assertEqual(self.call(url, "GET", "/v1/server", **bearer)[0].status, 401)

    def test_streams_of_a_session_end_with_it(self):
        url = self.url()
        bearer = {"Authorization": f"Bearer {self.trade(url)[1]['session']}"}
        wire = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        self.addCleanup(wire.close)
        wire.request("GET", "/v1/events", headers=bearer)
        stream = wire.getresponse()
        self.assertEqual(stream.status, 200)
        self.assertEqual(self.call(url, "DELETE", "/v1/session", **bearer)[0].status, 200)
        try:
            while stream.read(4096):
                pass
        except http.client.IncompleteRead:
            pass # cut: it must not time out

    def test_what_needs_no_session_is_safe_to_give(self):
        url = self.url()
        for path in ("/", "/app.js", "/app.css", "/icon.svg"):
            reply, data = self.call(url, "GET", path)
            self.assertEqual(reply.status, 200, path)
            self.assertGreater(len(data), 100)
            policy = reply.getheader("Content-Security-Policy")
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(reply.getheader("X-Frame-Options"), "DENY")
            self.assertEqual(self.call(url, "GET", path, Host="evil.example")[0].status, 421)
            self.assertEqual(self.call(url, "GET", path, Origin="http://evil.example")[0].status, 403)
        for method, path in (("GET", "/v1/snapshot"), ("GET", "/v1/events"), ("POST", "/v1/ui"),
                             ("GET", "/v1/trends"), ("DELETE", "/v1/session"), ("POST", "/v1/jobs"),
                             ("GET", "/v1/session"), ("GET", "/app.js?x"), ("POST", "/")):
            self.assertEqual(self.call(url, method, path)[0].status, 401, path)
        for body in ({}, {"token": 7}, {"token": ""}, {"token": "0" * 64}, {"x": [[]]}):
            self.assertEqual(self.call(url, "POST", "/v1/session", body)[0].status, 401, body)

    def test_a_snapshot_says_up_to_where_and_the_stream_goes_on_from_there(self):
        first = self.daemon.sh("sleep 0.1", gpus=2, name="first")
        self.daemon.wait(first)
        second = self.daemon.sh("sleep 30", gpus=4, name="second")
        self.daemon.wait(second, {"RUNNING"})
        status, snapshot = self.daemon.ask("GET", "/v1/snapshot")
        self.assertEqual(status, 200)
        self.assertEqual(snapshot["seq"], self.daemon.events()[-1]["seq"])
        self.assertEqual([job["id"] for job in snapshot["jobs"]], [second])
        self.assertEqual([job["id"] for job in snapshot["ended"]], [first])
        wire = Wire(self.daemon.socket)
        wire.request("GET", f"/v1/events?since={snapshot['seq']}")
        stream = wire.getresponse()
        third = self.daemon.sh("true", gpus=1)
        line = stream.readline()
        while not line.startswith(b"data: "):
            line = stream.readline()
        wire.close()
        event = json.loads(line[6:])
        self.assertEqual((event["seq"], event["job"]), (snapshot["seq"] + 1, third))
        self.daemon.ask("DELETE", f"/v1/jobs/{third}")
        held = [(span["job"], len(span["gpus"]), span.get("how")) for span in snapshot["spans"]]
        self.assertEqual(held, [(first, 2, "finished"), (second, 4, None)])
        self.daemon.kill()
        self.daemon.start()
        again = self.daemon.ask("GET", "/v1/snapshot")[1]
        self.assertEqual(again["spans"], snapshot["spans"]) # from the log
        self.assertEqual(self.daemon.ask("GET", "/v1/snapshot?since=x")[0], 400)

    def check_story(self, ident):
        status, story = self.daemon.ask("GET", f"/v1/jobs/{ident}/story")
        self.assertEqual(status, 200)
        self.assertTrue(story["complete"])
        self.assertEqual([one["how"] for one in story["attempts"]], ["finished"])
        self.assertEqual([(one["type"], one["gpus"]) for one in story["speeds"]], [("v100", 3)])
        points = story["loss"]["points"]
        self.assertGreater(len(points), 3)
        self.assertLess(points[-1]["loss"], points[0]["loss"])
        for point in story["loss"]["fit"]["ahead"]:
            self.assertLessEqual(point["low"], point["value"])
            self.assertLessEqual(point["value"], point["high"])
        self.assertEqual(self.daemon.ask("GET", "/v1/jobs/999/story")[0], 404)

    def check_trends(self, trends):
        self.assertEqual([trends[name][0] for name in ("gpus", "held", "waiting")], [4, 3, 1])
        self.assertEqual([one["token"] for one in trends["reasons"]], ["resources"])
        shares = {one["name"]: (one["got"][0], one["due"][0]) for one in trends["entities"]}
        self.assertEqual(shares.pop("people"), (0, 2))
        self.assertEqual(list(shares.values()), [(3, 2)])

    def test_a_job_has_a_story_and_the_cluster_has_trends(self):
        script = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo step $i loss $((3000/(i+10))); " \
                 "sleep 0.1; done"
        ident = self.daemon.sh(script, gpus=3, steps=60, pattern="step ([0-9]+) loss ([0-9]+)")
        self.daemon.sh("sleep 30", gpus=4, entity="people")
        self.assertEqual(self.daemon.ask("GET", "/v1/trends")[1]["t"], [])
        self.daemon.wait(ident)
        self.check_story(ident)
        self.check_trends(self.daemon.ask("GET", "/v1/trends")[1])


if __name__ == "__main__":
    unittest.main()
