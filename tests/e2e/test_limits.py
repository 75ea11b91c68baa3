"""What each user may have: at each limit a clear answer, room for others, a reserve for root.
As root, with two users that every Debian has; elsewhere it is skipped."""
import http.client
import json
import os
import pwd
import socket
import subprocess
import sys
import unittest

from live import BUILD, FACTOR, Daemon, Wire, until

HERE = os.path.dirname(os.path.abspath(__file__))

# A process of another user: each line of its input is a list of Python's words to do.
OTHER = """
import json, os, select, sys, socket, threading, time
sys.path.insert(0, sys.argv[1])
uid, gid, path = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
import encodings.idna, http.client
from live import Wire
os.setgroups([gid]); os.setgid(gid); os.setuid(uid)
kept, slow = [], []
HELD = 4096  # bytes of a stalled request that are not sent, or one by one

def send_slowly():  # so that berthd goes on waiting, however slow this machine is
    while True:
        for sock in list(slow):
            try:
                sock.send(b" ", socket.MSG_DONTWAIT)
            except OSError:
                pass
        time.sleep(1)

threading.Thread(target=send_slowly, daemon=True).start()

def ask(method, target, body):
    wire = Wire(path)
    try:
        wire.request(method, target, body=body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was answered before all of the body was sent
    reply = wire.getresponse()
    text = reply.read().decode("utf-8", "replace")
    wire.close()
    said = json.loads(text) if "json" in (reply.getheader("Content-Type") or "") else text
    return [reply.status, said, reply.getheader("Retry-After")]

def connect(count):
    for _ in range(count):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        kept.append(sock)
    # A refusal is sent when a connection is accepted.  They are accepted in order, so all are
    # known when one more, in vain or not, has been answered.
    try:
        ask("GET", "/v1/limits", None)
    except OSError:
        pass
    poll = select.poll()
    for sock in kept[-count:]:
        poll.register(sock, select.POLLIN)
    ready = {number for number, _ in poll.poll(0)}
    return [sock.recv(4000).decode() if sock.fileno() in ready else None for sock in kept[-count:]]

def stall(count, size):  # requests whose last bytes come slowly
    sent = []
    for _ in range(count):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(5)
        sock.connect(path)
        kept.append(sock)
        done = 0
        try:
            sock.sendall(b"POST /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % size)
            part = b" " * 65536
            while done < size - HELD:
                done += sock.send(part[:size - HELD - done])
            slow.append(sock)
        except OSError:
            pass
        sent.append(done)
    return sent

def watch(count):  # the statuses of so many streams of events
    statuses = []
    for _ in range(count):
        wire = Wire(path)
        wire.connect()
        kept.append(wire.sock)
        try:
            wire.request("GET", "/v1/events")
        except OSError:
            pass  # it is refused before it asks
        statuses.append(wire.getresponse().status)
    return statuses

def fall_silent():
    slow.clear()

def close():
    slow.clear()
    while kept:
        kept.pop().close()

for line in sys.stdin:
    name, *words = json.loads(line)
    print(json.dumps(globals()[name](*words)), flush=True)
"""


class Other:
    """Another user, in a process that keeps its connections."""

    def __init__(self, case, user):
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", OTHER, HERE, str(user.pw_uid), str(user.pw_gid),
             case.daemon.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        case.addCleanup(self.end)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def do(self, *words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, method, path, body=None):
        status, answer, _ = self.do("ask", method, path, json.dumps(body) if body else None)
        return status, answer

    def submit(self, **request):
        return self.ask("POST", "/v1/jobs", job(**request))


def port_of(pid):
    """The TCP port that a process listens on, as the kernel lists it."""
    sockets = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets.add(os.readlink(f"/proc/{pid}/fd/{number}"))
        except FileNotFoundError:
            pass
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file]
    return next(int(row[1].split(":")[1], 16) for row in rows
                if row[3] == "0A" and f"socket:[{row[9]}]" in sockets)


def job(**request):
    return {"command": ["/bin/sleep", "1000"], "cwd": "/", "gpus": 1, "hold": True,
            "env": {"PATH": "/usr/bin:/bin"}, **request}


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be two other users")
class Limits(unittest.TestCase):
    config = ""

    def start(self, config=None, **more):
        self.daemon = Daemon("--system", "--root-jobs", gpus="v100:4", **more)
        os.chmod(self.daemon.dir, 0o755)
        self.addCleanup(self.daemon.wipe)
        if config:
            path = os.path.join(self.daemon.dir, "berthd.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(config)
            self.daemon.flags += ["--config", path]
        self.daemon.start()
        self.people()

    def people(self):
        self.ada = Other(self, pwd.getpwnam("nobody"))
        self.bob = Other(self, pwd.getpwnam("daemon"))

    def set(self, **values):
        status, answer = self.daemon.ask("PATCH", "/v1/limits", values)
        self.assertEqual(status, 200, answer)

    def refused(self, answer, status, sentence):
        self.assertEqual(answer[0], status, answer)
        self.assertIn(sentence, answer[1]["error"])

    def berth(self, *words, user="nobody", **more):
        entry = pwd.getpwnam(user)
        more.setdefault("timeout", 120)
        return subprocess.run(
            [os.path.join(BUILD, "berth"), *words], cwd="/", text=True, user=entry.pw_uid,
            group=entry.pw_gid, extra_groups=[], env={"PATH": "/usr/bin:/bin", "HOME": "/",
                                                      "BERTH_ADDR": self.daemon.socket},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    # ---- what one job may ask for ----

    def test_a_job_asks_for_no_more_than_its_user_may(self):
        self.start("limits:\n  users:\n    nobody: {job_gpus: 2, weight: 10, class: be, "
                   "grace: 10m, job_time: 2h}\n")
        fine = {"gpus": 2, "weight": 10, "class": "be", "grace_s": 600, "time_limit_s": 7200}
        self.assertEqual(self.ada.submit(**fine)[0], 201)
        for key, value, sentence in (
                ("gpus", 3, "gpus: 3 is more than your limit of 2"),
                ("weight", 11, "weight: 11 is more than your limit of 10"),
                ("class", "te", "class: te is not allowed for you, want be"),
                ("grace_s", 601, "grace_s: 601s is more than your limit of 10m"),
                ("time_limit_s", 7201, "time_limit_s: 7201s is more than your limit of 2h"),
                ("time_limit_s", 0, "time_limit_s: want a time of at most 2h (-t)")):
            status, answer = self.ada.submit(**{**fine, key: value})
            self.assertEqual((status, answer.get("field")), (400, key), answer)
            self.assertEqual(answer["error"], sentence)
            self.assertEqual(self.bob.submit(**{**fine, key: value})[0], 201)
        done = self.berth("submit", "-G1", "--class=te", "true")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "", "berth submit: time_limit_s: want a time of at most 2h (-t)\n"))

    def test_a_waiting_job_is_not_changed_beyond_the_limits(self):
        self.start()
        ident = self.ada.submit(**{"class": "be"})[1]["id"]
        self.set(users={"nobody": {"weight": 10, "class": "be", "grace": "10m"}})
        path = f"/v1/jobs/{ident}"
        self.refused(self.ada.ask("PATCH", path, {"weight": 11}), 400, "weight: 11 is more")
        self.refused(self.ada.ask("PATCH", path, {"class": "te"}), 400, "class: te is not")
        self.refused(self.ada.ask("PATCH", path, {"grace_s": 601}), 400, "grace_s: 601s is")
        self.assertEqual(self.ada.ask("PATCH", path, {"weight": 10})[0], 200)
        self.assertEqual(self.daemon.ask("PATCH", path, {"class": "te"})[0], 200)  # by root

    # ---- how much there may be ----

    def test_jobs_and_waiting_jobs_are_counted(self):
        self.start("limits: {default: {jobs: 3, waiting: 2}}\n")
        idents = [self.ada.submit()[1]["id"] for _ in range(2)]
        self.refused(self.ada.submit(), 429, "you have 2 jobs waiting, your limit is 2")
        self.assertEqual(self.bob.submit()[0], 201)
        self.assertEqual(self.daemon.ask("POST", "/v1/jobs", {"jobs": [job()] * 50})[0], 201)
        self.ada.ask("PATCH", f"/v1/jobs/{idents[0]}", {"hold": False})
        self.daemon.wait(idents[0], {"RUNNING"})
        idents.append(self.ada.submit()[1]["id"])
        self.refused(self.ada.submit(), 429,
                     "you have 3 jobs waiting or running, your limit is 3")
        done = self.berth("submit", "--hold", "true")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aberth submit: you have 3 jobs .*limit is 3\n\Z")
        done = self.berth("submit", "--dry-run", "true")
        self.assertEqual((done.returncode, done.stdout), (
            0, "would be refused: you have 3 jobs waiting or running, your limit is 3\n"))

        self.daemon.kill()  # what is counted is what there is, after a crash as well
        self.daemon.start()
        self.people()
        self.refused(self.ada.submit(), 429, "you have 3 jobs waiting or running")
        used = self.ada.ask("GET", "/v1/limits")[1]["limits"]
        self.assertEqual((used["jobs"]["used"], used["waiting"]["used"]), (3, 2))
        for ident in idents:
            self.ada.ask("DELETE", f"/v1/jobs/{ident}")
            self.daemon.wait(ident)
        used = self.ada.ask("GET", "/v1/limits")[1]["limits"]
        self.assertEqual((used["jobs"]["used"], used["waiting"]["used"]), (0, 0))
        self.refused(self.ada.ask("POST", "/v1/jobs", {"jobs": [job()] * 3}), 429,
                     "you have 0 jobs waiting, your limit is 2")
        self.assertEqual(self.ada.ask("POST", "/v1/jobs", {"jobs": [job()] * 2})[0], 201)

    def test_a_rejected_job_keeps_its_reason_and_not_its_request(self):
        self.start()
        status, answer = self.ada.submit(gpus=64, env={"A": "x" * (6 << 20)})
        self.assertEqual(status, 201)
        self.assertTrue(answer["rejected"])
        shown = self.ada.ask("GET", f"/v1/jobs/{answer['id']}")[1]
        self.assertEqual((shown["state"], shown["reason"], shown["command"]),
                         ("REJECTED", answer["rejected"], ["/bin/sleep", "1000"]))
        used = self.ada.ask("GET", "/v1/limits")[1]["limits"]
        self.assertLess(used["bytes_stored"]["used"], 2048)
        self.assertEqual(used["jobs"]["used"], 0)

    def test_ended_jobs_make_way_for_what_is_stored(self):
        self.start("limits: {default: {bytes_stored: 1M}}\n")
        big = {"env": {"A": "x" * 300000}}
        old = []
        for _ in range(5):  # 1.5 MB in all
            status, answer = self.ada.submit(**big)
            self.assertEqual(status, 201, answer)
            old.append(answer["id"])
            self.ada.ask("DELETE", f"/v1/jobs/{answer['id']}")
            self.daemon.wait(answer["id"])
        shown = self.ada.ask("GET", f"/v1/jobs/{old[0]}")[1]
        self.assertEqual((shown["state"], shown["cwd"]), ("CANCELLED", "/"))
        for _ in range(3):
            self.assertEqual(self.ada.submit(**big)[0], 201)
        self.refused(self.ada.submit(**big), 429, "your limit is 1 MiB")
        self.assertEqual(self.bob.submit(**big)[0], 201)

    def test_submissions_a_second_are_limited(self):
        self.start("limits: {default: {submits_per_s: 1}}\n")
        for _ in range(100):  # a busy machine takes its time for each
            status, answer, after = self.ada.do("ask", "POST", "/v1/jobs", json.dumps(job()))
            if status != 201:
                break
        self.assertEqual((status, answer["retry_after_s"], after), (429, 1, "1"))
        self.assertEqual(answer["error"], "you submit jobs faster than your limit of 1 a second")
        self.assertEqual(self.bob.submit()[0], 201)
        done = self.berth("submit", "--hold", "true")  # waits, and gets its turn
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_changes_a_second_are_limited(self):
        self.start("limits: {default: {submits_per_s: 1}}\n")
        ident = self.ada.submit()[1]["id"]
        for turn in range(100):
            status, answer, after = self.ada.do("ask", "PATCH", f"/v1/jobs/{ident}",
                                                json.dumps({"weight": 1 + turn % 2}))
            if status != 200:
                break
        self.assertEqual((status, answer["retry_after_s"], after), (429, 1, "1"))
        self.assertEqual(answer["error"], "you change jobs faster than your limit of 1 a second")
        self.assertEqual(self.ada.ask("DELETE", f"/v1/jobs/{ident}")[0], 200)
        ident = self.bob.submit()[1]["id"]
        self.assertEqual(self.bob.ask("PATCH", f"/v1/jobs/{ident}", {"weight": 2})[0], 200)
        self.assertEqual(self.daemon.ask("PATCH", f"/v1/jobs/{ident}", {"hold": True})[0], 200)

    # ---- connections and bodies ----

    def test_connections_are_limited_by_user_and_commands_wait_for_one(self):
        self.start("limits: {default: {connections: 4}}\n")
        replies = self.ada.do("connect", 5)
        self.assertEqual(replies[:4], [None] * 4)
        self.assertIn("503", replies[4].split("\r\n")[0])
        self.assertIn("Retry-After: 1", replies[4])
        self.assertIn("you have 4 connections, your limit is 4", replies[4])
        self.assertEqual(self.bob.submit()[0], 201)
        self.assertEqual(self.daemon.ask("GET", "/v1/jobs")[0], 200)

        entry = pwd.getpwnam("nobody")
        with subprocess.Popen(
                [os.path.join(BUILD, "berth"), "run", "--socket", self.daemon.socket, "-G1", "--",
                 "echo", "hi"], cwd="/", user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            said = run.stderr.readline()
            self.assertEqual(said, "berth run: you have 4 connections, your limit is 4; waiting\n")
            self.ada.do("close")
            self.assertEqual((run.communicate(timeout=60)[0], run.returncode), ("hi\n", 0))

    def test_streams_of_one_user_leave_room_for_others(self):
        self.start()
        self.assertEqual(set(self.ada.do("watch", 64)), {200})
        self.assertEqual(self.ada.do("watch", 1), [503])
        self.assertEqual(self.bob.do("watch", 1), [200])
        wire = Wire(self.daemon.socket)
        self.addCleanup(wire.close)
        wire.request("GET", "/v1/events")
        self.assertEqual(wire.getresponse().status, 200)

    def test_stalled_bodies_of_one_user_leave_room_for_others(self):
        self.start()
        sent = self.ada.do("stall", 4, 16 << 20)  # 32 MiB are allowed
        self.assertEqual(sent[:2], [(16 << 20) - 4096] * 2)
        self.assertLess(sum(sent[2:]), 16 << 20)
        used = self.daemon.ask("GET", "/v1/limits")[1]
        self.assertTrue(used["exempt"])
        body = job(env={"A": "x" * (7 << 20)})
        self.assertEqual(self.bob.ask("POST", "/v1/jobs", body)[0], 201)
        self.assertEqual(self.daemon.ask("POST", "/v1/jobs", body)[0], 201)
        status, answer, after = self.ada.do("ask", "POST", "/v1/jobs", json.dumps(body))
        self.assertEqual((status, after), (503, "1"), answer)
        self.assertIn("your limit is 33554432", answer["error"])
        # They are given up after ten seconds without a byte.
        self.ada.do("fall_silent")
        until(lambda: self.ada.ask("POST", "/v1/jobs", body)[0] == 201)

    def test_users_without_a_limit_leave_a_reserve_for_root(self):
        self.start("limits: {default: {connections: none, bytes_in_flight: none, jobs: none}}\n"
                   "max_jobs: 40\n")
        for one in (self.ada, self.bob, self.ada, self.bob):
            one.do("stall", 8, 16 << 20)
            one.do("connect", 300)
        refused = self.ada.do("connect", 1)[0]
        self.assertIn("there are too many connections", refused)
        body = job(env={"A": "x" * (7 << 20)})
        self.assertEqual(self.daemon.ask("POST", "/v1/jobs", body)[0], 201)
        self.ada.do("close")
        self.bob.do("close")

        def fill():
            status, answer = self.ada.submit()
            return answer if status == 503 else None
        until(lambda: self.ada.ask("GET", "/v1/limits")[0] == 200)
        self.assertIn("no more fit", until(fill)["error"])
        self.assertEqual(self.daemon.ask("POST", "/v1/jobs", job())[0], 201)

    def test_anonymous_clients_of_tcp_leave_room_for_others(self):
        self.daemon = Daemon("--system", "--listen", "127.0.0.1:0", gpus="v100:4")
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()
        port = port_of(self.daemon.process.pid)
        held = []
        for i in range(200):
            sock = socket.create_connection(("127.0.0.1", port), timeout=5)
            if i % 2:
                sock.sendall(b"POST /v1/session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                             b"Content-Length: 16000\r\n\r\n" % port)
            held.append(sock)
        status, made = self.daemon.ask("POST", "/v1/tokens", {
            "scope": "submit", "uid": pwd.getpwnam("nobody").pw_uid})
        self.assertEqual(status, 201, made)
        token = made["token"]
        for _ in range(20):
            wire = http.client.HTTPConnection("127.0.0.1", port, timeout=20 * FACTOR)
            wire.request("POST", "/v1/jobs", body=json.dumps(job(env={"A": "x" * (7 << 20)})),
                         headers={"Authorization": f"Bearer {token}"})
            self.assertEqual(wire.getresponse().status, 201)
            wire.close()
        wire = Wire(self.daemon.socket)
        wire.request("GET", "/v1/jobs")
        self.assertEqual(wire.getresponse().status, 200)
        wire.close()
        for sock in held:
            sock.close()

    def test_a_hundred_commands_at_once_all_run(self):
        self.start()
        entry = pwd.getpwnam("nobody")
        runs = [subprocess.Popen(
            [os.path.join(BUILD, "berth"), "run", "--socket", self.daemon.socket, "-G1", "--",
             "echo", "hi"], cwd="/", user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(100)]
        said = [(run.communicate(timeout=300), run.returncode) for run in runs]
        wrong = [one for one in said if one[0][0] != "hi\n" or one[1] != 0]
        self.assertEqual(wrong, [])

    # ---- setting ----

    def test_what_is_set_live_wins_over_the_file_until_reset(self):
        self.start("limits:\n  default: {jobs: 7}\n  groups:\n    nogroup: {jobs: 9}\n")

        def limit_of(user, key="jobs"):
            found = user.ask("GET", "/v1/limits")[1]["limits"][key]
            return found.get("limit"), found["scope"], found.get("name"), found["set"]
        until(lambda: limit_of(self.ada) == (9, "group", "nogroup", "file"))
        self.assertEqual(limit_of(self.bob), (7, "default", None, "file"))
        self.assertEqual(limit_of(self.bob, "weight"), (1000, "default", None, "built-in"))

        done = subprocess.run([os.path.join(BUILD, "berth"), "limits", "set", "user=nobody",
                               "jobs=1", "grace=none"], text=True, stdout=subprocess.PIPE,
                              env={"BERTH_ADDR": self.daemon.socket}, check=True)
        self.assertRegex(done.stdout, r"user nobody +jobs +1 +live\n")
        self.assertEqual(limit_of(self.ada), (1, "user", "nobody", "live"))
        self.assertEqual(limit_of(self.ada, "grace"), (None, "user", "nobody", "live"))
        self.set(default={"jobs": 8})
        self.assertEqual(limit_of(self.bob), (8, "default", None, "live"))
        self.assertEqual(self.ada.submit()[0], 201)
        self.refused(self.ada.submit(), 429, "your limit is 1")

        self.daemon.kill()
        self.daemon.start()
        self.people()
        self.refused(self.ada.submit(), 429, "your limit is 1")
        self.assertEqual(limit_of(self.bob), (8, "default", None, "live"))
        self.assertEqual(self.daemon.ask("PATCH", "/v1/limits", {"reset": True})[0], 200)
        until(lambda: limit_of(self.ada) == (9, "group", "nogroup", "file"))
        self.assertEqual(limit_of(self.bob), (7, "default", None, "file"))
        self.assertEqual(self.ada.submit()[0], 201)

    def test_only_administrators_set_limits_and_see_those_of_others(self):
        self.start()
        for body in ({"default": {"jobs": 5}}, {"reset": True}):
            self.assertEqual(self.ada.ask("PATCH", "/v1/limits", body)[0], 403)
        status, answer = self.ada.ask("GET", "/v1/limits")
        self.assertEqual((status, answer["user"], answer["exempt"]), (200, "nobody", False))
        self.assertNotIn("settings", answer)
        status, answer = self.daemon.ask("GET", "/v1/limits")
        self.assertEqual((answer["user"], answer["exempt"]), ("root", True))
        self.assertIn({"scope": "default", "set": "built-in", "key": "jobs", "value": 50000},
                      answer["settings"])
        for body, sentence in (
                ({"default": {"gpus": 4}}, 'there is no limit "gpus", want jobs, waiting, '),
                ({"default": {"gpu_hours_day": 4}}, 'there is no limit "gpu_hours_day", want '),
                ({"users": {"a": {"jobs": -1}}}, 'users.a: jobs is "-1", want a whole number'),
                ({"reset": False}, "reset: want true"),
                ({"all": {}}, "all: want default, users or groups")):
            self.refused(self.daemon.ask("PATCH", "/v1/limits", body), 400, sentence)
        self.assertIn("waiting", self.berth("limits").stdout)

    def test_a_wrong_limit_in_the_file_is_refused_with_its_line(self):
        for text, sentence in (
                ("limits:\n  users:\n    ada: {jobs: 1}\n    bob: {jobs: many}\n",
                 r'berthd.yaml:4: limits.users.bob: jobs is "many", want a whole number'),
                ("max_jobs: 5\nlimits:\n  default: {gpus: 3}\n",
                 r'berthd.yaml:3: limits.default: there is no limit "gpus", want jobs'),
                ("limits: 5\n", r"berthd.yaml:1: limits.want default")):
            with self.assertRaisesRegex(AssertionError, sentence):
                self.start(text)


if __name__ == "__main__":
    unittest.main()
