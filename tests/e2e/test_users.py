"""One berthd for everybody: jobs run as their users, and nobody reads, cancels or runs as
another.  As root, with two users that every Debian has; elsewhere it is skipped."""
import http.client
import json
import os
import pwd
import stat
import subprocess
import sys
import unittest
from urllib.parse import urlsplit

from live import SERVICE, Daemon, until
from support import BUILD

# A request in a process of its own that has become somebody else.
ASK = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
uid, gid, socket, method, path, body = int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:8]
import encodings.idna
from live import Wire
os.setgroups([]); os.setgid(gid); os.setuid(uid)  # all it needs of Python is loaded
wire = Wire(socket)
wire.request(method, path, body=body or None)
reply = wire.getresponse()
text = reply.read().decode("utf-8", "replace")
# By what it says it is: the output of a job may be a number as well.
said = json.loads(text) if "json" in (reply.getheader("Content-Type") or "") else text
print(json.dumps([reply.status, said]))
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be two other users")
class Users(unittest.TestCase):
    def setUp(self):
        self.ada, self.bob = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
        self.daemon = Daemon("--system", gpus="v100:4")
        os.chmod(self.daemon.dir, 0o755)
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()

    def ask(self, user, method, path, body=None):
        done = subprocess.run(
            [sys.executable, "-S", "-c", ASK, os.path.dirname(os.path.abspath(__file__)),
             str(user.pw_uid), str(user.pw_gid), self.daemon.socket, method, path,
             json.dumps(body) if body else ""], stdout=subprocess.PIPE, check=True, cwd="/")
        return tuple(json.loads(done.stdout))

    def submit(self, user, script, **request):
        status, answer = self.ask(user, "POST", "/v1/jobs", {
            "command": ["/bin/sh", "-c", script], "cwd": "/", "gpus": 1,
            "env": {"PATH": "/usr/bin:/bin"}, **request})
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def test_a_job_runs_as_who_submitted_it(self):
        for user in (self.ada, self.bob):
            ident = self.submit(user, "id -u; id -g; id -G; touch $BERTH_CKPT_DIR/mine")
            job = self.daemon.wait(ident)
            self.assertEqual((job["state"], job["user"]), ("COMPLETED", user.pw_name))
            status, text = self.ask(user, "GET", f"/v1/jobs/{ident}/log")
            self.assertEqual(status, 200)
            lines = text.split("\n")
            self.assertEqual(lines[:2], [str(user.pw_uid), str(user.pw_gid)])

    def test_a_socket_where_berthd_cannot_write_is_refused(self):
        folder = os.path.join(self.daemon.dir, "of root")
        os.mkdir(folder, 0o755)
        done = subprocess.run(
            [os.path.join(BUILD, "berthd"), "--system", "--user", SERVICE, "--fake-gpus", "v100:1",
             "--state", os.path.join(self.daemon.dir, "other"), "--socket",
             os.path.join(folder, "socket")], stderr=subprocess.PIPE, text=True, timeout=30)
        self.assertIn(done.returncode, (1, 99)) # 99: LeakSanitizer may not look at it
        self.assertIn(f"{folder}: user {SERVICE}, as whom berthd runs, cannot write in it",
                      done.stderr)

    def test_output_and_checkpoints_of_a_user_go_with_the_job(self):
        self.daemon.stop()
        config = os.path.join(self.daemon.dir, "berthd.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("keep_jobs: 2s\n")
        other = os.path.join(self.daemon.dir, "other")
        os.mkdir(other)
        os.chown(other, self.ada.pw_uid, self.ada.pw_gid)
        self.daemon.flags += ["--config", config]
        self.daemon.start()
        script = f"cd $BERTH_CKPT_DIR; mkdir -p a/b; echo > a/b/step; chmod 0 a; ln -s {other} c; "
        ident = self.submit(self.ada, script + f"touch {other}/stays; echo output")
        log, ckpt = (os.path.join(self.daemon.state, name)
                     for name in (f"log/{ident}.out", f"ckpt/{ident}"))
        until(lambda: os.path.exists(f"{other}/stays") and os.path.exists(ckpt))
        until(lambda: self.daemon.ask("GET", f"/v1/jobs/{ident}")[0] == 404)
        until(lambda: not os.path.exists(ckpt) and not os.path.exists(log))
        self.assertTrue(os.path.exists(f"{other}/stays"))

    def test_nobody_can_say_that_he_is_another(self):
        status, answer = self.ask(self.ada, "POST", "/v1/jobs", {
            "command": ["id"], "cwd": "/", "gpus": 1, "user": "root"})
        self.assertEqual(status, 400, answer)
        status, answer = self.ask(self.ada, "POST", "/v1/jobs", {
            "command": ["id"], "cwd": "/", "gpus": 1, "uid": 0})
        self.assertEqual(status, 400, answer)

    def test_neither_can_read_cancel_or_change_the_others_job(self):
        ident = self.submit(self.ada, "echo secret; sleep 3600", name="quiet",
                            env={"PATH": "/usr/bin:/bin", "TOKEN": "hidden"})
        self.daemon.wait(ident, {"RUNNING"})
        for method, path, body in (
                ("GET", f"/v1/jobs/{ident}/log", None),
                ("DELETE", f"/v1/jobs/{ident}", None),
                ("PATCH", f"/v1/jobs/{ident}", {"hold": True}),
                ("PATCH", f"/v1/jobs/{ident}", {"class": "te"}),
                ("PATCH", "/v1/server", {"policy": "fifo"}),
                ("DELETE", "/v1/server", None)):
            status, answer = self.ask(self.bob, method, path, body)
            self.assertIn(status, (403, 404), f"{method} {path}: {answer}")
        status, answer = self.ask(self.bob, "GET", f"/v1/jobs/{ident}")
        self.assertNotIn("hidden", json.dumps(answer))
        self.assertNotIn("secret", json.dumps(answer))
        self.assertEqual(self.daemon.job(ident)["state"], "RUNNING")
        self.assertEqual(self.ask(self.ada, "DELETE", f"/v1/jobs/{ident}")[0], 200)
        self.assertEqual(self.daemon.wait(ident)["state"], "CANCELLED")

    def test_filters_select_ones_own_jobs_and_an_administrators_everybodys(self):
        mine = self.submit(self.ada, "true", name="sweep", hold=True)
        theirs = self.submit(self.bob, "true", name="sweep", hold=True)

        def cancel(caller, **body):
            status, answer = self.ask(caller, "POST", "/v1/jobs/cancel", body)
            jobs = [job["id"] for job in answer.get("jobs", [])]
            return status, jobs, [job["id"] for job in answer.get("refused", [])]

        self.assertEqual(cancel(self.bob, user=self.ada.pw_name)[0], 403)
        self.assertEqual(cancel(self.bob, ids=[mine]), (200, [], [mine]))
        self.assertEqual(cancel(self.bob, all=True), (200, [theirs], []))
        self.assertEqual(self.daemon.job(mine)["state"], "HELD")
        self.assertEqual(cancel(self.bob, name="sweep"), (200, [], []))
        self.assertEqual(cancel(pwd.getpwuid(0), name="swee?"), (200, [mine], []))

    def test_a_page_has_the_rights_of_who_opened_it(self):
        theirs = self.submit(self.bob, "sleep 3600", name="quiet")
        mine = self.submit(self.ada, "sleep 3600")
        self.daemon.wait(theirs, {"RUNNING"})
        self.daemon.wait(mine, {"RUNNING"})
        status, answer = self.ask(self.ada, "POST", "/v1/ui")
        if status == 404:
            self.skipTest("built without web/: no node_modules")
        url = urlsplit(answer["url"])

        def call(method, path, body=None, **headers):
            wire = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
            wire.request(method, path, body=json.dumps(body) if body else None, headers=headers)
            reply = wire.getresponse()
            data = json.loads(reply.read())
            wire.close()
            return reply.status, data

        status, answer = call("POST", "/v1/session", {"token": url.fragment.split("=")[1]})
        self.assertEqual(status, 201)
        bearer = {"Authorization": f"Bearer {answer['session']}"}
        for path in ("", "/why", "/story", "/log"):
            self.assertEqual(call("GET", f"/v1/jobs/{theirs}{path}", **bearer)[0], 403, path)
        self.assertEqual(call("DELETE", f"/v1/jobs/{theirs}", **bearer)[0], 403)
        self.assertEqual(call("DELETE", "/v1/server", **bearer)[0], 403)
        status, snapshot = call("GET", "/v1/snapshot", **bearer)
        self.assertEqual((status, snapshot["me"]["all"]), (200, False))
        self.assertNotIn("quiet", json.dumps(snapshot))
        self.assertEqual(sum(len(span["gpus"]) for span in snapshot["spans"]), 2)
        self.assertEqual(call("DELETE", f"/v1/jobs/{mine}", **bearer)[0], 200)

    def test_files_are_opened_as_their_user(self):
        secret = os.path.join(self.daemon.dir, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("of root\n")
        os.chmod(secret, 0o600)
        ident = self.submit(self.ada, "true", output=secret)
        self.assertEqual(self.daemon.wait(ident)["state"], "FAILED")
        status, text = self.ask(self.ada, "GET", f"/v1/jobs/{ident}/log")
        self.assertNotIn("of root", str(text))
        with open(secret, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of root\n")
        folder = os.path.join(self.daemon.dir, "open")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        link = os.path.join(folder, "link")
        ident = self.submit(self.ada, "echo mine", output=link)
        self.daemon.wait(ident)
        os.remove(link)
        os.symlink(secret, link)
        status, text = self.ask(self.ada, "GET", f"/v1/jobs/{ident}/log")
        self.assertNotIn("of root", str(text))

    def test_what_is_kept_is_not_for_others(self):
        ident = self.submit(self.ada, "sleep 0.2")
        self.daemon.wait(ident)
        for name in ("berth.db", "token"):
            path = os.path.join(self.daemon.state, name)
            if os.path.exists(path):
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o077, 0, name)
        for folder in ("log", "ckpt"):
            done = subprocess.run(["ls", os.path.join(self.daemon.state, folder)],
                                  user=self.bob.pw_uid, group=self.bob.pw_gid, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertNotEqual(done.returncode, 0, folder)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to start berth-launch")
class Apart(unittest.TestCase):
    """As a service manager does it: berth-launch is root, berthd never was."""

    def setUp(self):
        self.service = pwd.getpwnam(SERVICE)
        self.daemon = Daemon("--system", "--launcher", "", gpus="v100:2")
        self.orders = os.path.join(self.daemon.dir, "orders")
        self.daemon.flags = ["--fake-gpus", "v100:2", "--system", "--launcher", self.orders]
        os.chmod(self.daemon.dir, 0o755)
        for folder in (self.daemon.state, os.path.join(self.daemon.state, "run")):
            os.mkdir(folder, 0o711)
            os.chmod(folder, 0o711)
            os.chown(folder, self.service.pw_uid, self.service.pw_gid)
        self.launcher = subprocess.Popen(
            [os.path.join(BUILD, "berth-launch"), "--listen", self.orders, "--run",
             os.path.join(self.daemon.state, "run"), "--state", self.daemon.state,
             "--supervisor", os.path.join(BUILD, "berth-run"), "--user", SERVICE,
             "--min-uid", "1"])
        self.addCleanup(self.launcher.wait)
        self.addCleanup(self.launcher.kill)
        self.addCleanup(self.daemon.wipe)
        until(lambda: os.path.exists(self.orders))

    def start(self):
        self.daemon.start(user=self.service.pw_uid, group=self.service.pw_gid, extra_groups=[])

    def submit(self, script):
        done = subprocess.run(
            [os.path.join(BUILD, "berth"), "submit", "--socket", self.daemon.socket, "-G1", "--",
             "/bin/sh", "-c", script], user="nobody", group="nogroup", extra_groups=[], cwd="/",
            env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, check=True)
        return int(done.stdout)

    def test_a_berthd_without_rights_runs_jobs_as_their_users(self):
        self.start()
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="utf-8") as file:
            status = file.read()
        self.assertIn("CapEff:\t0000000000000000", status)
        self.assertIn("CapPrm:\t0000000000000000", status)
        ident = self.submit("id -u")
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(str(self.daemon.ask("GET", f"/v1/jobs/{ident}/log")[1]).strip(), "65534")

    def test_jobs_go_on_while_either_part_is_started_again(self):
        self.start()
        ident = self.submit("sleep 1; echo done")
        self.daemon.wait(ident, {"RUNNING"})
        self.daemon.kill()
        self.start()
        job = self.daemon.wait(ident)
        self.assertEqual((job["state"], job["attempt"]), ("COMPLETED", 0))

    def test_another_user_cannot_give_orders(self):
        self.start()
        tried = subprocess.run(
            [sys.executable, "-S", "-c",
             "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); "
             "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1])",
             self.orders], cwd="/", stderr=subprocess.PIPE, check=False)
        self.assertIn(b"PermissionError", tried.stderr)


class Own(unittest.TestCase):
    def ask(self, daemon):
        return subprocess.run(
            [sys.executable, "-S", "-c", ASK, os.path.dirname(os.path.abspath(__file__)),
             "65534", "65534", daemon.socket, "GET", "/v1/jobs", ""],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, cwd="/")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_a_berthd_of_ones_own_serves_nobody_else(self):
        daemon = Daemon()
        self.addCleanup(daemon.wipe)
        os.chmod(daemon.dir, 0o755)
        daemon.start()
        done = self.ask(daemon)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"PermissionError", done.stderr)
        for path in (os.path.dirname(daemon.socket), daemon.state):
            os.chmod(path, 0o755)
        os.chmod(daemon.socket, 0o777)  # and not by permissions alone
        done = self.ask(daemon)
        self.assertNotIn(b"PermissionError", done.stderr)
        if done.returncode == 0:  # else it was closed before the answer was read
            self.assertEqual(json.loads(done.stdout)[0], 403)
        self.assertEqual(daemon.ask("GET", "/v1/jobs")[0], 200)


if __name__ == "__main__":
    unittest.main()
