"""berthd whose files are taken away: it refuses, says so, and goes on when they are back."""
import os
import pwd
import shutil
import signal
import sqlite3
import socket
import subprocess
import threading
import unittest

from live import BUILD, PATIENCE, Daemon, until


class HangsUp:
    """Between a client and berthd: closes the first connections that ask for a job's output."""

    def __init__(self, path, berthd, times):
        self.berthd, self.left = berthd, times
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.berthd)
        threading.Thread(target=self.copy, args=(server, client), daemon=True).start()
        self.copy(client, server, b"/log?")

    def copy(self, source, target, refused=None):
        with source, target:
            try:
                while data := source.recv(1 << 16):
                    if refused and refused in data and self.left:
                        self.left -= 1
                        return
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass


class Robust(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(gpus="v100:4")
        self.daemon.flags += ["--socket", os.path.join(self.daemon.dir, "sock")]
        self.addCleanup(self.clean_up)
        self.daemon.start()

    def clean_up(self):
        for pid in self.daemon.supervisors():
            os.kill(pid, signal.SIGTERM)
        if not os.path.exists(self.daemon.state):
            self.daemon.stop()
        self.daemon.wipe()

    def submit(self):
        return self.daemon.ask("POST", "/v1/jobs", {"command": ["true"], "cwd": "/", "gpus": 1})

    def doctor(self):
        done = subprocess.run([os.path.join(BUILD, "berth"), "doctor", "--socket",
                               self.daemon.socket], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        return done.stdout

    def test_a_command_survives_connections_that_are_closed(self):
        path = os.path.join(self.daemon.dir, "between")
        between = HangsUp(path, self.daemon.socket, 2)
        self.addCleanup(between.listener.close)
        done = subprocess.run([os.path.join(BUILD, "berth"), "run", "--socket", path, "-G1", "--",
                               "echo", "hi"], capture_output=True, text=True, cwd="/",
                              timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "hi\n"), done)
        self.assertEqual(between.left, 0)

    def test_nothing_is_acknowledged_into_a_deleted_database(self):
        self.assertEqual(self.submit()[0], 201)
        shutil.rmtree(self.daemon.state)
        status, answer = self.submit()
        self.assertEqual(status, 503, answer)
        until(lambda: "cannot be found" in self.submit()[1]["error"])
        status, answer = self.submit()
        self.assertEqual(status, 503, answer)
        server = self.daemon.ask("GET", "/v1/server")[1]
        self.assertIn("cannot be found", server["store_trouble"])
        self.assertIn("cannot be found", self.doctor())
        line = "berth.db cannot be found: No such file or directory\n"
        until(lambda: line in self.daemon.words())
        self.assertEqual(self.submit()[0], 503)
        self.assertEqual(self.daemon.words().count(line), 1)

    def test_it_goes_on_when_the_folder_is_back(self):
        job = self.daemon.sh("sleep 1000")
        self.daemon.wait(job, {"RUNNING"})
        away = self.daemon.state + ".away"
        os.rename(self.daemon.state, away)
        until(lambda: "store_trouble" in self.daemon.ask("GET", "/v1/server")[1])
        until(lambda: "cannot be found: No such file or directory\n" in self.daemon.words())
        self.assertEqual(self.submit()[0], 503)
        os.rename(away, self.daemon.state)
        ident = until(lambda: self.submit()[1].get("id"))
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.daemon.job(job)["state"], "RUNNING")
        self.assertIn("the database is back", self.daemon.words())
        self.assertNotIn("store_trouble", self.daemon.ask("GET", "/v1/server")[1])

    def test_it_ends_when_another_database_is_there(self):
        path = os.path.join(self.daemon.state, "berth.db")
        shutil.copy(path, path + ".other")
        os.rename(path + ".other", path)
        self.assertEqual(self.daemon.process.wait(PATIENCE), 1)
        self.assertIn("was replaced by another", self.daemon.words())
        self.daemon.process.stdout.close()
        self.daemon.start()
        self.assertEqual(self.submit()[0], 201)

    def change(self, *statements):
        """Change the database of a berthd that does not run."""
        base = sqlite3.connect(os.path.join(self.daemon.state, "berth.db"))
        for sql, values in statements:
            base.execute(sql, values)
        base.commit()
        base.close()

    def test_a_job_that_cannot_be_restored_is_named_and_the_others_are_back(self):
        ids = [self.daemon.sh("true", hold=True) for _ in range(4)]
        self.daemon.kill()
        self.change(("UPDATE live SET phase = 'nowhere' WHERE id = ?", ids[:1]),
                    ("UPDATE live SET seats = 'x' WHERE id = ?", ids[1:2]),
                    ("UPDATE job SET request = '{' WHERE id = ?", ids[2:3]))
        self.daemon.start()
        for ident in ids[:3]:
            job = until(lambda: self.daemon.job(ident))
            self.assertEqual(self.daemon.wait(ident)["state"], "FAILED", job)
            self.assertTrue(self.daemon.job(ident)["reason"])
            self.assertIn(f"job {ident} cannot be restored", self.daemon.words())
        self.assertEqual(self.daemon.job(ids[3])["state"], "HELD")
        self.assertEqual(self.submit()[0], 201)

    def test_reasons_that_are_not_utf_8_are_shown(self):
        ident = self.submit()[1]["id"]
        self.daemon.wait(ident)
        self.daemon.stop()
        self.change(("UPDATE job SET reason = CAST(x'61ff' AS TEXT), "
                     "name = CAST(x'c3' AS TEXT) WHERE id = ?", [ident]))
        self.daemon.start()
        self.assertEqual(self.daemon.job(ident)["reason"], "a\ufffd")
        for words in (("show", str(ident)), ("history",), ("why", str(ident))):
            done = subprocess.run([os.path.join(BUILD, "berth"), *words, "--json", "--socket",
                                   self.daemon.socket], capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""), words)
            done.stdout.decode()

    def test_a_deleted_socket_is_made_again(self):
        for _ in range(2):
            before = os.stat(self.daemon.socket)
            os.unlink(self.daemon.socket)
            until(lambda: os.path.exists(self.daemon.socket))
            status, answer = self.submit()
            self.assertEqual(status, 201, answer)
            self.assertEqual(os.stat(self.daemon.socket).st_mode, before.st_mode)
        self.assertIn("was deleted, and is made again", self.daemon.words())
        self.daemon.stop()
        self.assertFalse(os.path.exists(self.daemon.socket))

    def test_a_folder_in_the_sockets_place_is_reported_until_it_is_gone(self):
        os.unlink(self.daemon.socket)
        os.mkdir(self.daemon.socket)
        until(lambda: "is there and not a socket" in self.daemon.words())
        os.rmdir(self.daemon.socket)
        until(lambda: os.path.exists(self.daemon.socket))
        self.assertEqual(self.submit()[0], 201)


class NoMoreProcesses(unittest.TestCase):
    """A berthd whose user may have no process more."""

    def setUp(self):
        self.daemon = Daemon(gpus="v100:4")
        self.prefix = []
        if os.geteuid() == 0:  # no limit holds root back
            user = pwd.getpwnam("games")
            self.prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
                           "--clear-groups"]
            os.chown(self.daemon.dir, user.pw_uid, user.pw_gid)
        self.addCleanup(self.daemon.wipe)
        self.daemon.flags += ["--socket", os.path.join(self.daemon.dir, "sock")]
        self.daemon.start(prefix=[*self.prefix, "env", f"HOME={self.daemon.dir}"])

    def limit(self, count):
        """Of berthd and of what starts supervisors for it, as their user sets it."""
        found = subprocess.run(["pgrep", "-f", "--", f"--state {self.daemon.state}"], check=True,
                               capture_output=True, text=True).stdout.split()
        for pid in found:
            done = subprocess.run([*self.prefix, "prlimit", "--pid", pid, f"--nproc={count}:"],
                                  capture_output=True, text=True)
            if done.returncode != 0: # a supervisor whose job has ended may leave meanwhile
                self.assertIn("No such process", done.stderr)

    def test_a_job_whose_process_cannot_be_made_is_tried_again(self):
        self.daemon.wait(self.daemon.submit("true", cwd="/"))
        self.limit(1)
        ident = self.daemon.submit("true", cwd="/")
        until(lambda: "cannot start a process" in self.daemon.ask(
            "GET", f"/v1/jobs/{ident}/why")[1]["reasons"][0]["text"])
        self.assertEqual(self.daemon.job(ident)["state"], "PENDING")
        self.limit(500)
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")


if __name__ == "__main__":
    unittest.main()
