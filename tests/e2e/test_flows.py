"""Whose packets go first, live: levels by what jobs report, the stream that agents follow,
what they count, and changes at run time."""
import http.client
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from curves import curves
from live import Daemon, Wire
from support import BERTH, ROOT
from test_users import ASK

HOST = os.uname().nodename

# A job that replays a learning curve, so many points a second; ten steps are a point.
REPLAY = """
import json, sys, time
import berth
losses, pace, begin = json.load(open(sys.argv[1])), float(sys.argv[2]), time.monotonic()
while True:
    at = min(pace * (time.monotonic() - begin), len(losses) - 1.001)
    low = int(at)
    berth.report(int(10 * at), loss=losses[low] + (at - low) * (losses[low + 1] - losses[low]))
    time.sleep(0.1)
"""


class Stream:
    """Events of GET /v1/flows?follow=true, as they come."""

    def __init__(self, daemon, query="", timeout=30):
        self.wire = Wire(daemon.socket, timeout)
        self.wire.request("GET", "/v1/flows?follow=true" + query)
        self.reply = self.wire.getresponse()
        if self.reply.status != 200:
            raise AssertionError(self.reply.read())

    def next(self):
        name, data = self.reply.readline(), self.reply.readline()
        if name != b"event: flows\n" or not data.startswith(b"data: {"):
            raise AssertionError((name, data))
        if self.reply.readline() != b"\n":
            raise AssertionError("no empty line")
        return json.loads(data[6:])

    def until(self, holds, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            event = self.next()
            if holds(event):
                return event
        raise AssertionError("it did not come to that")

    def close(self):
        self.wire.close()


class Live(unittest.TestCase):
    def berthd(self, *flags, **more):
        daemon = Daemon(*flags, **more)
        self.addCleanup(daemon.wipe)
        return daemon.start()

    def follow(self, daemon, query=""):
        stream = Stream(daemon, query)
        self.addCleanup(stream.close)
        return stream

    def flows(self, daemon):
        status, answer = daemon.ask("GET", "/v1/flows")
        self.assertEqual(status, 200, answer)
        return {flow["job"]: flow for flow in answer["flows"]}

    def wait_for(self, daemon, holds, seconds=30):
        """Levels and reasons, once they are as wanted."""
        end = time.monotonic() + seconds
        while True:
            flows = self.flows(daemon)
            if holds(flows):
                return flows
            if time.monotonic() > end:
                raise AssertionError(f"{flows}\n{daemon.words()}")
            time.sleep(0.05)

    def replay(self, daemon, losses, pace):
        file, script = (os.path.join(daemon.dir, f"{id(losses)}.json"),
                        os.path.join(daemon.dir, "replay.py"))
        with open(file, "w", encoding="utf-8") as out:
            json.dump(losses, out)
        with open(script, "w", encoding="utf-8") as out:
            out.write(REPLAY)
        return daemon.submit(sys.executable, "-S", script, file, str(pace), env={
            "PATH": os.environ["PATH"], "PYTHONPATH": os.path.join(ROOT, "python"),
            "PYTHONDONTWRITEBYTECODE": "1"})


class Order(Live):
    def test_the_order_changes_as_jobs_learn(self):
        daemon = self.berthd("--flow", "jpas,period=1s,aging=4", gpus="v100:8")
        found, _ = curves(8)
        # By how much of its way a curve has behind it after a tenth of its points.
        found.sort(key=lambda c: (c[0] - c[len(c) // 10]) / (c[0] - c[-1]))
        silent = daemon.sh("sleep 300")
        old = self.replay(daemon, found[0], len(found[0]) / 40)
        # A job that reports nothing goes first for one period and then among the last.
        flows = self.wait_for(daemon, lambda f: "stopped" in f.get(silent, {}).get("why", "")
                              and 0 < f.get(old, {}).get("score", 1) < 0.05)
        self.assertGreater(flows[silent]["level"], flows[old]["level"])
        # One comes that goes through its curve in five seconds: now it learns most.
        young = self.replay(daemon, found[-1], len(found[-1]) / 5)
        flows = self.wait_for(daemon, lambda f: young in f and f[young]["level"] < f[old]["level"])
        self.assertEqual(flows[young]["level"], 0, flows)
        # It has learnt all it will: the other overtakes it again.
        flows = self.wait_for(daemon, lambda f: f[old]["level"] < f[young]["level"]
                              and "behind it" in f[young]["why"])
        self.assertEqual(flows[old]["level"], 0, flows)
        self.assertGreater(flows[old]["score"], flows[young]["score"])
        self.assertGreater(flows[silent]["level"], flows[old]["level"])
        # All of it is in the log, and levels are those of the events.
        levels = {}
        for event in daemon.events():
            if event["kind"] == "levelled":
                levels[event["job"]] = event["level"]
        self.assertGreater(len(levels), 1)

        # After a restart what was reported counts.
        daemon.kill()
        daemon.start()
        self.assertEqual(daemon.ask("GET", "/v1/server")[1]["flow"], "jpas,period=1s,aging=4")
        stream = self.follow(daemon)
        event = stream.until(lambda e: len(e["jobs"]) == 3 and all("pid" in j for j in e["jobs"]))
        for job in event["jobs"]: # of supervisors that another berthd started
            with open(f"/proc/{job['pid']}/comm", encoding="ascii") as file:
                self.assertEqual(file.read().strip(), "berth-run")
        flows = self.flows(daemon)
        self.assertIn("behind it", flows[old]["why"])


class Follow(Live):
    def test_each_event_is_the_whole_truth(self):
        daemon = self.berthd("--flow", "crux")
        stream = self.follow(daemon, "&host=" + HOST)
        self.assertEqual(stream.next(), {"flow": "crux", "levels": 6, "host": HOST,
                                         "valid_s": 45, "jobs": []})
        first = daemon.sh("sleep 60 & wait")
        event = stream.until(lambda e: len(e["jobs"]) == 1)
        job = event["jobs"][0]
        self.assertEqual((job["id"], job["level"], job["attempt"], job["executor"]),
                         (first, 0, 0, "local"))
        if "cgroup" in job:
            with open(f"/sys/fs/cgroup/{job['cgroup']}/cgroup.procs", encoding="ascii") as file:
                self.assertGreaterEqual(len(file.read().split()), 1)
        with open(f"/proc/{job['pid']}/comm", encoding="ascii") as file:
            self.assertEqual(file.read().strip(), "berth-run")
        second = daemon.sh("sleep 60")
        event = stream.until(lambda e: len(e["jobs"]) == 2)
        self.assertEqual([j["id"] for j in event["jobs"]], [first, second])
        self.assertEqual(sorted(j["level"] for j in event["jobs"]), [0, 1])
        daemon.ask("DELETE", f"/v1/jobs/{first}")
        event = stream.until(lambda e: len(e["jobs"]) == 1)
        self.assertEqual(event["jobs"][0]["id"], second)

    def test_a_job_that_starts_again_has_another_attempt_and_cgroup(self):
        daemon = self.berthd("--flow", "jpas")
        stream = self.follow(daemon)
        ident = daemon.sh("test $BERTH_ATTEMPT = 1 && exec sleep 60; sleep 0.3; exit 3",
                          retries=1)
        seen = {}
        while len(seen) < 2:
            for job in stream.next()["jobs"]:
                self.assertEqual(job["id"], ident)
                seen[job["attempt"]] = job.get("cgroup")
        self.assertEqual(sorted(seen), [0, 1])
        if seen[0]:
            self.assertNotEqual(seen[0], seen[1])

    def test_the_flow_policy_changes_at_run_time_and_is_remembered(self):
        daemon = self.berthd()
        for _ in range(3):
            daemon.sh("sleep 60")
        stream = self.follow(daemon)
        event = stream.next()
        self.assertEqual((event["flow"], event["jobs"]), ("fair", []))
        self.assertNotIn("flow", daemon.ask("GET", "/v1/server")[1])

        status, answer = daemon.ask("PATCH", "/v1/server", {"flow": "jpas,levels=3"})
        self.assertEqual((status, answer["flow"]), (200, "jpas,levels=3"))
        event = stream.until(lambda e: sorted(j["level"] for j in e["jobs"]) == [0, 1, 2])
        self.assertEqual((event["flow"], event["levels"]), ("jpas", 3))

        for wrong, says in (("nobody", "no flow policy"), ("jpas,levels=1", "2 to 8 levels"),
                            ("jpas,levels=9", "2 to 8 levels"), ("jpas,x=1", "x"), ("", "no flow")):
            status, answer = daemon.ask("PATCH", "/v1/server", {"flow": wrong})
            self.assertEqual(status, 400, wrong)
            self.assertIn(says, answer["error"])
        status, answer = daemon.ask("PATCH", "/v1/server", {"flow": 7})
        self.assertEqual(status, 400)
        self.assertEqual(daemon.ask("GET", "/v1/server")[1]["flow"], "jpas,levels=3")

        daemon.kill()
        daemon.start()
        self.assertEqual(daemon.ask("GET", "/v1/server")[1]["flow"], "jpas,levels=3")
        done = subprocess.run([BERTH, "set", "--flow", "fair", "--socket", daemon.socket],
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual({f["level"] for f in self.flows(daemon).values()}, {0})
        stream = self.follow(daemon)
        self.assertEqual(stream.next()["jobs"], [])

    def test_who_may_follow_over_tcp(self):
        daemon = self.berthd("--flow", "jpas", "--listen", "127.0.0.1:0")
        with open(f"/proc/{daemon.process.pid}/net/tcp", encoding="ascii") as file:
            listening = {line.split()[9]: int(line.split()[1].split(":")[1], 16)
                         for line in file if line.split()[3] == "0A"}
        inodes = {os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}")[8:-1]
                  for fd in os.listdir(f"/proc/{daemon.process.pid}/fd")
                  if os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}").startswith("socket:")}
        port = next(port for inode, port in listening.items() if inode in inodes)
        with open(f"{daemon.state}/token", encoding="ascii") as file:
            token = file.read().strip()
        for method, path, body in (("GET", "/v1/flows?follow=true", None),
                                   ("POST", "/v1/flows", '{"host":"a","jobs":[]}')):
            for words, want in (({}, 401), ({"Authorization": "Bearer " + "0" * 64}, 401),
                                ({"Authorization": "Bearer " + token}, 200)):
                wire = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                wire.request(method, path, body, words)
                self.assertEqual(wire.getresponse().status, want, (method, words))
                wire.close()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_on_a_system_only_who_runs_it_may_follow_and_count(self):
        daemon = Daemon("--system", "--flow", "jpas")
        os.chmod(daemon.dir, 0o755)
        self.addCleanup(daemon.wipe)
        daemon.start()
        nobody = pwd.getpwnam("nobody")
        for method, path, body, want in (
                ("GET", "/v1/flows", "", 200), ("GET", "/v1/flows?follow=true", "", 403),
                ("POST", "/v1/flows", '{"host":"a","jobs":[]}', 403)):
            done = subprocess.run(
                [sys.executable, "-S", "-c", ASK, os.path.dirname(os.path.abspath(__file__)),
                 str(nobody.pw_uid), str(nobody.pw_gid), daemon.socket, method, path, body],
                stdout=subprocess.PIPE, check=True, cwd="/")
            self.assertEqual(json.loads(done.stdout)[0], want, (method, path))
        self.assertEqual(self.follow(daemon).next()["jobs"], [])

    def test_many_who_come_and_go(self):
        daemon = self.berthd("--flow", "jpas")
        streams = [Stream(daemon) for _ in range(20)]
        for stream in streams:
            self.assertEqual(stream.next()["jobs"], [])
        daemon.sh("sleep 60")
        for stream in streams[::2]:
            stream.close()
        for stream in streams[1::2]:
            self.assertEqual(len(stream.until(lambda e: e["jobs"])["jobs"]), 1)
            stream.close()
        end = time.monotonic() + 10
        while daemon.ask("GET", "/v1/flows")[1]["agents"] and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(daemon.ask("GET", "/v1/flows")[1]["agents"], [])


class Count(Live):
    def test_bytes_are_kept_per_job_and_give_a_rate(self):
        daemon = self.berthd("--flow", "smallest-first")
        large, small = daemon.sh("sleep 60"), daemon.sh("sleep 60")
        daemon.wait(small, {"RUNNING"})
        for i in range(4):
            for host in ("a", "b"): # an agent in each of two namespaces
                status, answer = daemon.ask("POST", "/v1/flows", {"host": host, "jobs": [
                    {"id": large, "bytes": i * 20_000_000, "news": "of a newer agent"},
                    {"id": small, "bytes": i * 1_000_000}, {"id": 999, "bytes": 5}]})
                self.assertEqual(status, 200, answer)
            time.sleep(0.6)
        flows = self.flows(daemon)
        self.assertEqual((flows[large]["bytes"], flows[small]["bytes"]), (120_000_000, 6_000_000))
        self.assertGreater(flows[large]["bytes_per_s"], 10 * flows[small]["bytes_per_s"])
        self.assertEqual((flows[small]["level"], flows[large]["level"]), (0, 1))
        self.assertIn("MB in a step", flows[large]["why"])
        done = subprocess.run([BERTH, "flows", "--socket", daemon.socket], text=True,
                              stdout=subprocess.PIPE, check=True)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"JOB +LEVEL +HOSTS +SCORE +SENDS +WHY")
        self.assertRegex(lines[1], rf"^ *{small} +0 ") # in the order in which they go
        self.assertIn("MB/s", lines[2])
        self.assertIn("No berth-flowd follows", lines[-1])

    def test_wrong_counts_change_nothing(self):
        daemon = self.berthd("--flow", "jpas")
        ident = daemon.sh("sleep 60")
        daemon.wait(ident, {"RUNNING"})
        one = {"id": ident, "bytes": 5}
        for body in ("{", "[]", "7", {}, {"host": "a"}, {"jobs": []}, {"host": 7, "jobs": []},
                     {"host": "", "jobs": []}, {"host": "a" * 256, "jobs": []},
                     {"host": "a\nb", "jobs": []}, {"host": "a/../b", "jobs": []},
                     {"host": "a", "jobs": {}}, {"host": "a", "jobs": [7]},
                     {"host": "a", "jobs": [one, one]},
                     {"host": "a", "jobs": [one, {"id": 0, "bytes": 1}]},
                     {"host": "a", "jobs": [one, {"id": -1, "bytes": 1}]},
                     {"host": "a", "jobs": [one, {"id": "2", "bytes": 1}]},
                     {"host": "a", "jobs": [one, {"id": 2}]},
                     {"host": "a", "jobs": [one, {"id": 2, "bytes": -1}]},
                     {"host": "a", "jobs": [one, {"id": 2, "bytes": 1.5}]},
                     {"host": "a", "jobs": [one, {"id": 2, "bytes": 2 ** 60 + 1}]},
                     '{"host":"a","jobs":[{"id":1,"bytes":99999999999999999999}]}',
                     {"host": "a", "jobs": [one] + [{"id": i, "bytes": 1}
                                                    for i in range(100, 4196)]}):
            status, answer = daemon.ask("POST", "/v1/flows", body)
            self.assertEqual(status, 400, (str(body)[:80], answer))
            self.assertNotIn("\n", answer["error"])
            self.assertLess(len(answer["error"]), 200)
        self.assertNotIn("bytes", self.flows(daemon)[ident])
        for path in ("/v1/flows?follow=maybe", "/v1/flows?host=a", "/v1/flows?follow=true&host=",
                     "/v1/flows?follow=true&host=a%0ab", "/v1/flows?follow=true&hosts=a",
                     "/v1/flows?follow=true&host=" + "a" * 300):
            self.assertEqual(daemon.ask("GET", path)[0], 400, path)

    def test_figures(self):
        daemon = self.berthd("--flow", "jpas,levels=4")
        for _ in range(3):
            daemon.sh("sleep 60")
        stream = self.follow(daemon)
        stream.until(lambda e: sorted(j["level"] for j in e["jobs"]) == [0, 1, 2])
        text = daemon.ask("GET", "/metrics")[1]
        # How many changes it takes depends on whether the jobs come together.
        changes = sum(event["kind"] == "levelled" for event in daemon.events())
        self.assertGreaterEqual(changes, 2)
        for line in ('berth_flow_jobs{level="0"} 1', 'berth_flow_jobs{level="2"} 1',
                     'berth_flow_jobs{level="3"} 0', "berth_flow_agents 1",
                     f"berth_flow_changes_total {changes}"):
            self.assertIn("\n" + line + "\n", text)


class Start(Live):
    def test_what_is_marked_at_the_start_only(self):
        daemon = self.berthd(gpus="v100:8")
        path = os.environ["PATH"]
        show = "env | grep ^NCCL_IB | sort; true"

        def env(**more):
            ident = daemon.sh(show, env={"PATH": path, **more})
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
            return daemon.ask("GET", f"/v1/jobs/{ident}/log")[1].split()
        self.assertEqual(env(), [])
        daemon.ask("PATCH", "/v1/server", {"flow": "jpas"})
        self.assertEqual(env(), ["NCCL_IB_SL=5", "NCCL_IB_TC=160"])
        self.assertEqual(env(NCCL_IB_TC="106"), ["NCCL_IB_SL=5", "NCCL_IB_TC=106"])
        daemon.ask("PATCH", "/v1/server", {"flow": "fair"})
        self.assertEqual(env(), [])
        # One that is started again has the level it had: the second of six is cs4.
        daemon.ask("PATCH", "/v1/server", {"flow": "jpas"})
        first = daemon.sh("sleep 60")
        daemon.wait(first, {"RUNNING"})
        ident = daemon.sh("test $BERTH_ATTEMPT = 1 && { " + show + "; exit 0; }; sleep 1; exit 3",
                          retries=1)
        self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(daemon.ask("GET", f"/v1/jobs/{ident}/log")[1].split(),
                         ["NCCL_IB_SL=4", "NCCL_IB_TC=128"])

    def test_the_doctor_asks_the_agent(self):
        with tempfile.TemporaryDirectory(prefix="berth flowd ") as folder:
            berth = shutil.copy(BERTH, folder) # an agent beside it would be asked first
            agent = os.path.join(folder, "berth-flowd")
            none = os.path.join(folder, "none")

            def row(**env):
                done = subprocess.run([berth, "doctor", "--json", "--socket", none],
                                      stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, **env})
                checks = json.loads(done.stdout)["checks"]
                return next(c for c in checks if c["what"] == "flows")

            # The two understand each other: what the agent says itself is what is told.
            real = os.path.join(os.path.dirname(BERTH), "berth-flowd")
            os.symlink(real, agent)
            said = subprocess.run([real, "--check", "--server", none], text=True,
                                  stdout=subprocess.PIPE, check=False)
            self.assertIn("used", said.stdout)
            self.assertEqual(row()["verdict"], "ok" if said.returncode == 0 else "less")
            for script, verdict, says in (
                    ("echo 'ok   nft'; echo '     used     nft'", "ok", "marked by nft"),
                    ("echo 'NO   nft'; exit 1", "less", "no packets can be marked"),
                    (None, "less", "not installed")):
                if os.path.lexists(agent):
                    os.unlink(agent)
                if script:
                    with open(agent, "w", encoding="utf-8") as file:
                        file.write("#!/bin/sh\n" + script + "\n")
                    os.chmod(agent, 0o755)
                found = row(PATH=folder)
                self.assertEqual(found["verdict"], verdict, found)
                self.assertIn(says, found["text"])


if __name__ == "__main__":
    unittest.main()
