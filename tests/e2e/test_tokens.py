"""Tokens and TLS: what each scope may do, how a token ends, whom a client believes."""
import http.client
import json
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

from live import BUILD, PATIENCE, Daemon, until
from support import ROOT

sys.path.insert(0, os.path.join(ROOT, "python"))

BERTH = os.path.join(BUILD, "berth")
FLOWD = os.path.join(BUILD, "berth-flowd")
SCOPES = ("flow", "read", "submit", "admin")
HERE = os.path.dirname(os.path.abspath(__file__))

# A request in a process of its own that has become another user.
ASK = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
uid, gid, socket, method, path, body = int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:8]
import encodings.idna
from live import Wire
os.setgroups([]); os.setgid(gid); os.setuid(uid)
wire = Wire(socket)
wire.request(method, path, body=body or None)
reply = wire.getresponse()
print(json.dumps([reply.status, json.loads(reply.read())]))
"""


def operations():
    """[(method, path, {scopes})] of the document."""
    with open(os.path.join(ROOT, "docs", "api", "openapi.yaml"), encoding="utf-8") as file:
        text = file.read().split("\ncomponents:")[0]
    found = []
    for path, rest in re.findall(r"^  (/\S+):\n((?:    .*\n?)+)", text, re.M):
        for method, part in re.findall(r"^    (get|post|patch|delete):(.*\n?(?:      .*\n?)*)",
                                       rest, re.M):
            scopes = re.search(r"x-scopes: \[([a-z, ]+)\]", part)
            found.append((method.upper(), path, set(scopes.group(1).split(", "))))
    return found


class TlsCase(unittest.TestCase):
    """A berthd that other machines can reach: it listens on every address, so with TLS."""

    flags = ()

    def setUp(self):
        self.daemon = Daemon("--listen", "0.0.0.0:0", *self.flags, gpus="v100:2")
        os.chmod(self.daemon.dir, 0o755)
        self.addCleanup(self.daemon.wipe)
        try:
            self.start()
        except FileNotFoundError:
            self.skipTest("berthd is not built")

    def start(self):
        self.daemon.start()
        server = self.daemon.ask("GET", "/v1/server")[1]
        self.port, self.fingerprint = server["tls_port"], server["fingerprint"]
        self.url = f"https://127.0.0.1:{self.port}"

    def token(self, scope, **more):
        status, answer = self.daemon.ask("POST", "/v1/tokens", {"scope": scope, **more})
        self.assertEqual(status, 201, answer)
        return answer["token"]

    def line(self, **kwargs):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        line = http.client.HTTPSConnection("127.0.0.1", self.port, context=context,
                                           timeout=PATIENCE, **kwargs)
        self.addCleanup(line.close)
        return line

    def ask(self, token, method, path, body=None):
        """The status and the reply of a request over TLS."""
        line = self.line()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        line.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = line.getresponse()
        data = reply.read()
        line.close()
        return reply.status, json.loads(data) if b"{" in data[:1] else data.decode()

    def follow(self, token, path):
        """The reply of a stream; its headers have come."""
        line = self.line()
        line.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        reply = line.getresponse()
        self.assertEqual(reply.status, 200)
        return reply

    def assert_ends(self, stream):
        """All that is left of it can be read, and then it is over."""
        try:
            while stream.read(1):
                pass
        except (http.client.IncompleteRead, ConnectionError, ssl.SSLError):
            pass

    def berth(self, *words, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BERTH_")}
        return subprocess.run([BERTH, *words], text=True, capture_output=True,
                              env={**clean, "BERTH_NO_START": "1", "HOME": self.daemon.dir,
                                   "BERTH_ADDR": self.url, **env})


class Scopes(TlsCase):
    def test_every_scope_may_do_what_the_document_says_and_nothing_else(self):
        """An unknown key is refused with 400, but only after the scope was checked: so every
        operation can be tried without doing anything."""
        ident = self.daemon.sh("sleep 600")
        tokens = {scope: self.token(scope) for scope in SCOPES}
        tried = 0
        for method, path, scopes in operations():
            self.assertTrue(scopes, (method, path))
            target = path.replace("{id}", str(ident)) + "?no_such_key=1"
            for scope in SCOPES:
                status, answer = self.ask(tokens[scope], method, target,
                                          {} if method in ("POST", "PATCH") else None)
                self.assertEqual(status, 400 if scope in scopes else 403,
                                 (method, path, scope, answer))
                if status == 403:
                    self.assertIn(f"scope {scope}", answer["error"])
                tried += 1
            status, _ = self.ask(None, method, path.replace("{id}", str(ident)),
                                 {} if method in ("POST", "PATCH") else None)
            self.assertEqual(status, 401, (method, path))
        self.assertGreater(tried, 80)

    def test_a_job_s_own_token_can_only_report(self):
        ident = self.daemon.sh("sleep 600")
        own = self.daemon.ask("POST", f"/v1/jobs/{ident}/token")[1]["token"]
        other = self.daemon.sh("sleep 600")
        for method, path, scopes in operations():
            status, answer = self.ask(own, method, path.replace("{id}", str(ident)),
                                      {"step": 1} if method in ("POST", "PATCH") else None)
            self.assertEqual(status, 409 if path.endswith("/progress") else 401,
                             (method, path, answer)) # 409: here supervisors report
        self.assertEqual(self.ask(own, "POST", f"/v1/jobs/{other}/progress", {"step": 1})[0], 401)

    def test_scopes_do_what_they_are_for(self):
        read, submit, flow = (self.token(scope) for scope in ("read", "submit", "flow"))
        request = {"command": ["sleep", "600"], "cwd": "/", "gpus": 1,
                   "env": {"PATH": os.environ["PATH"]}}
        status, answer = self.ask(submit, "POST", "/v1/jobs", request)
        self.assertEqual(status, 201, answer)
        ident = answer["id"]
        self.daemon.wait(ident, {"RUNNING"})
        self.assertEqual(self.ask(read, "GET", f"/v1/jobs/{ident}")[1]["state"], "RUNNING")
        self.assertEqual(self.ask(read, "DELETE", f"/v1/jobs/{ident}")[0], 403)
        self.assertEqual(self.ask(flow, "GET", f"/v1/jobs/{ident}")[0], 403)
        self.assertEqual(self.ask(flow, "GET", "/v1/flows")[0], 200)
        self.assertEqual(self.ask(flow, "POST", "/v1/flows", {"host": "a", "jobs": []})[0], 200)
        self.assertEqual(self.ask(submit, "DELETE", f"/v1/jobs/{ident}")[0], 200)
        self.assertEqual(self.daemon.wait(ident)["state"], "CANCELLED")
        admin = self.token("admin")
        self.assertEqual(self.ask(admin, "PATCH", "/v1/server", {"policy": "fifo"})[0], 200)

    def test_no_token_but_an_admin_s_makes_others(self):
        for scope in ("flow", "read", "submit"):
            self.assertEqual(self.ask(self.token(scope), "POST", "/v1/tokens",
                                      {"scope": "read"})[0], 403)
        status, answer = self.ask(self.token("admin"), "POST", "/v1/tokens", {"scope": "read"})
        self.assertEqual(status, 201)
        self.assertEqual(self.ask(answer["token"], "GET", "/v1/jobs")[0], 200)

    def test_what_cannot_be_made_is_refused(self):
        for body, field in (({}, "scope"), ({"scope": "session"}, "scope"), ({"scope": 7}, "scope"),
                            ({"scope": "read", "uid": -1}, "uid"),
                            ({"scope": "read", "uid": 1e12}, "uid"),
                            ({"scope": "read", "expires_s": 0}, "expires_s"),
                            ({"scope": "read", "expires_s": "1d"}, "expires_s"),
                            ({"scope": "flow", "uid": 4711}, "uid"),
                            ({"scope": "read", "name": "x"}, "name")):
            status, answer = self.daemon.ask("POST", "/v1/tokens", body)
            self.assertEqual((status, answer.get("field")), (400, field), answer)
        self.assertEqual(self.daemon.ask("POST", "/v1/tokens", "[")[0], 400)
        self.assertEqual(self.daemon.ask("POST", "/v1/tokens", "7")[0], 400)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/tokens/1")[0], 404)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/tokens/1_2")[0], 400)
        self.assertEqual(self.daemon.ask("GET", "/v1/tokens")[1]["tokens"], [])

    def test_a_session_does_not_make_tokens_or_sessions(self):
        if self.daemon.ask("POST", "/v1/ui")[0] == 404:
            self.skipTest("berthd was built without its page")
        # With TLS outside, pages are on a port of loopback, without it.
        url = self.daemon.ask("POST", "/v1/ui")[1]["url"]
        where, secret = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/#token=(\w+)", url).groups()
        line = http.client.HTTPConnection(where, timeout=PATIENCE)
        self.addCleanup(line.close)
        line.request("POST", "/v1/session", json.dumps({"token": secret}))
        session = json.loads(line.getresponse().read())["session"]
        for method, path, want in (("GET", "/v1/jobs", 200), ("POST", "/v1/tokens", 403),
                                   ("GET", "/v1/tokens", 403), ("POST", "/v1/ui", 403)):
            line.request(method, path, "{}" if method == "POST" else None,
                         {"Authorization": f"Bearer {session}"})
            reply = line.getresponse()
            reply.read()
            self.assertEqual(reply.status, want, (method, path))


class Life(TlsCase):
    def test_a_revoked_token_is_refused_at_once_and_its_streams_end(self):
        read, flow, kept = self.token("read"), self.token("flow"), self.token("read")
        streams = [self.follow(read, "/v1/events"),
                   self.follow(flow, "/v1/flows?follow=true&host=a")]
        other = self.follow(kept, "/v1/events")
        for token in (read, flow):
            number = token.split(".")[1]
            self.assertEqual(self.daemon.ask("DELETE", f"/v1/tokens/{number}")[0], 200)
            self.assertEqual(self.ask(token, "GET", "/v1/flows")[0], 401)
            self.assertEqual(self.daemon.ask("DELETE", f"/v1/tokens/{number}")[0], 409)
        for stream in streams:
            self.assert_ends(stream)
        self.daemon.sh("true")
        self.assertIn(b"submitted", b"".join(other.readline() for _ in range(6)))
        self.assertEqual(self.ask(kept, "GET", "/v1/jobs")[0], 200)
        states = {t["id"]: t["state"] for t in self.daemon.ask("GET", "/v1/tokens")[1]["tokens"]}
        self.assertEqual(states, {1: "revoked", 2: "revoked", 3: "valid"})

    def test_an_expired_token_is_refused_and_its_streams_end(self):
        token = self.token("read", expires_s=2)
        stream = self.follow(token, "/v1/events")
        until(lambda: self.ask(token, "GET", "/v1/jobs")[0] == 401)
        self.assert_ends(stream)
        self.assertEqual(self.daemon.ask("GET", "/v1/tokens")[1]["tokens"][0]["state"], "expired")

    def test_a_forged_token_is_refused(self):
        read, admin = self.token("read"), self.token("admin")
        form, number, secret, mark = read.split(".")
        flipped = secret[:-2] + ("A" if secret[-2] != "A" else "B") + secret[-1]
        for wrong in (f"{form}.{number}.{flipped}.{mark}", f"{form}.2.{secret}.{mark}",
                      f"{form}.99.{secret}.{mark}", f"{form}.{number}..{mark}", f"{form}.{number}",
                      f"{form}.{number}.{'A' * 43}.{mark}", secret, f"bt2.{number}.{secret}",
                      f"{form}.0{number}.{secret}", read + "x", read[:-1], "bt1." + "9" * 400,
                      admin.replace("bt1.2.", "bt1.1.")):
            self.assertEqual(self.ask(wrong, "GET", "/v1/jobs")[0], 401, wrong)
        self.assertEqual(self.ask(f"{form}.{number}.{secret}", "GET", "/v1/jobs")[0], 200)

    def test_tokens_and_the_key_outlive_berthd_and_the_store_has_no_secret(self):
        token, gone = self.token("read"), self.token("read")
        self.daemon.ask("DELETE", "/v1/tokens/2")
        before = self.fingerprint
        self.daemon.kill()
        for name in os.listdir(self.daemon.state):
            path = os.path.join(self.daemon.state, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self.assertNotIn(token.split(".")[2].encode(), file.read(), name)
        self.start()
        self.assertEqual(self.fingerprint, before)
        self.assertEqual(token.split(".")[3], before)
        self.assertEqual(self.ask(token, "GET", "/v1/jobs")[0], 200)
        self.assertEqual(self.ask(gone, "GET", "/v1/jobs")[0], 401)
        row = self.daemon.ask("GET", "/v1/tokens")[1]["tokens"][0]
        self.assertLess(abs(row["used"] - time.time()), 3600)

    def test_the_token_file_of_0_1_is_an_administrator_s(self):
        with open(f"{self.daemon.state}/token", encoding="ascii") as file:
            token = file.read().strip()
        self.assertEqual(self.ask(token, "PATCH", "/v1/server", {"policy": "fifo"})[0], 200)
        done = self.berth("nodes", BERTH_ADDR=f"{self.url}#{self.fingerprint}",
                          BERTH_TOKEN_FILE=f"{self.daemon.state}/token")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_command_makes_lists_and_revokes(self):
        local = {"BERTH_ADDR": self.daemon.socket}
        self.assertEqual(self.berth("token", "list", **local).stdout, "There are no tokens.\n\n"
                         f"Fingerprint of berthd's key: {self.fingerprint}\n")
        made = self.berth("token", "create", "--scope", "read", "--expires", "30d", **local)
        self.assertRegex(made.stdout, r"\Abt1\.1\.[\w-]{43}\.[\w-]{43}\n\Z")
        done = self.berth("queue", BERTH_TOKEN=made.stdout.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        listed = self.berth("token", "list", **local).stdout.splitlines()
        self.assertEqual(listed[0].split()[:3], ["ID", "SCOPE", "USER"])
        self.assertEqual(listed[1].split()[:2], ["1", "read"])
        self.assertNotIn(made.stdout.split(".")[2], "\n".join(listed))
        self.assertEqual(self.berth("token", "revoke", "1", **local).returncode, 0)
        done = self.berth("queue", BERTH_TOKEN=made.stdout.strip())
        self.assertEqual(done.returncode, 1)
        self.assertIn("revoked", done.stderr)
        listed = json.loads(self.berth("token", "list", "--json", **local).stdout)
        self.assertEqual([t["state"] for t in listed["tokens"]], ["revoked"])
        for words in (("token",), ("token", "make"), ("token", "create"), ("token", "revoke"),
                      ("token", "create", "--scope", "all"), ("token", "revoke", "x"),
                      ("token", "create", "--scope", "read", "--expires", "soon"),
                      ("token", "create", "--scope", "read", "--user", "no such user"),
                      ("token", "create", "--scope", "flow", "--user", "4711"),
                      ("token", "list", "--scope", "read"), ("token", "list", "all")):
            self.assertEqual(self.berth(*words, **local).returncode, 2, words)


class Believing(TlsCase):
    """Whom a client believes, and what it tells to whom."""

    def other_key(self, token):
        return token[:-43] + ("A" if token[-43] != "A" else "B") + token[-42:]

    def test_another_fingerprint_is_refused_and_nothing_is_sent(self):
        token = self.token("read")
        wrong = self.other_key(token)
        before = self.daemon.ask("GET", "/v1/tokens")[1]["tokens"][0].get("used")
        for env in ({"BERTH_TOKEN": wrong},
                    {"BERTH_TOKEN": token, "BERTH_ADDR": f"{self.url}#{wrong[-43:]}"}):
            done = self.berth("queue", **env)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("another fingerprint", done.stderr)
        self.assertEqual(self.daemon.ask("GET", "/v1/tokens")[1]["tokens"][0].get("used"), before)

    def test_without_a_fingerprint_a_certificate_of_our_own_is_not_trusted(self):
        token = self.token("read").rsplit(".", 1)[0]
        done = self.berth("queue", BERTH_TOKEN=token)
        self.assertEqual(done.returncode, 1)
        self.assertIn("#FINGERPRINT", done.stderr)
        done = self.berth("queue", BERTH_TOKEN=token, BERTH_ADDR=f"{self.url}/#{self.fingerprint}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.berth("queue", BERTH_TOKEN=token, BERTH_ADDR=f"{self.url}#short")
        self.assertEqual(done.returncode, 2)

    def test_plain_http_is_for_this_machine_only(self):
        for address in ("http://192.0.2.1:7600", "http://head:7600", "http://127.0.0.1.example:1",
                        "http://localhost:x@192.0.2.1:7600", "http://[2001:db8::1]:7600",
                        "http://localhost@192.0.2.1"):
            done = self.berth("queue", BERTH_TOKEN=self.token("read"), BERTH_ADDR=address)
            self.assertEqual(done.returncode, 2, address)
            self.assertIn("use https://", done.stderr)

    def test_our_own_daemon_s_token_is_not_sent_elsewhere(self):
        """Without BERTH_TOKEN the file in the state folder is used, but for this machine alone."""
        folder = os.path.join(self.daemon.dir, "home", ".local", "state", "berth")
        os.makedirs(folder)
        shutil.copy(f"{self.daemon.state}/token", folder)
        done = self.berth("queue", HOME=os.path.join(self.daemon.dir, "home"),
                          XDG_STATE_HOME=os.path.dirname(folder),
                          BERTH_ADDR=f"{self.url}#{self.fingerprint}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("token is missing", done.stderr)

    def test_python_pins_as_well(self):
        from berth import _call, _tls
        token = self.token("read")
        self.addCleanup(os.environ.pop, "BERTH_TOKEN", None)
        os.environ["BERTH_TOKEN"] = token
        self.assertEqual(_call.call("GET", "/v1/jobs", address=self.url)["jobs"], [])
        os.environ["BERTH_TOKEN"] = self.other_key(token)
        with self.assertRaisesRegex(ConnectionError, "another fingerprint"):
            _call.call("GET", "/v1/jobs", address=self.url)
        os.environ["BERTH_TOKEN"] = token.rsplit(".", 1)[0]
        with self.assertRaises(ssl.SSLError):
            _call.call("GET", "/v1/jobs", address=self.url)
        self.assertEqual(_call.call("GET", "/v1/jobs",
                                    address=f"{self.url}#{self.fingerprint}")["jobs"], [])
        path = os.path.join(self.daemon.dir, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write(token + "\n")
        del os.environ["BERTH_TOKEN"]
        os.environ["BERTH_TOKEN_FILE"] = path
        self.addCleanup(os.environ.pop, "BERTH_TOKEN_FILE", None)
        self.assertEqual(_call.call("GET", "/v1/jobs", address=self.url)["jobs"], [])
        for wrong in ("http://192.0.2.1:7600", "http://head:1", f"{self.url}#x", "ftp://localhost",
                      "http://localhost:x@192.0.2.1:7600"):
            with self.assertRaises(ValueError):
                _tls.connect(wrong, 1)

    def test_old_tls_and_plain_http_are_not_spoken(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as raw:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(raw)
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as raw:
            raw.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")
            data = raw.recv(4096)
        self.assertNotIn(b"HTTP/1", data)

    def test_flowd_works_with_a_flow_token_over_tls(self):
        path = os.path.join(self.daemon.dir, "flow-token")
        with open(path, "w", encoding="ascii") as file:
            file.write(self.token("flow") + "\n")
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BERTH_")}
        agent = subprocess.Popen([FLOWD, "--server", self.url, "--token-file", path, "--host",
                                  "far", "--backend", "advice"], env=clean,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.stderr.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.terminate)
        until(lambda: self.daemon.ask("GET", "/v1/flows")[1]["agents"] == ["far"])
        self.assertEqual(self.daemon.ask("DELETE", "/v1/tokens/1")[0], 200)
        until(lambda: self.daemon.ask("GET", "/v1/flows")[1]["agents"] == [])


class Stalling(TlsCase):
    def stall(self, count, text=b""):
        lines = [socket.create_connection(("127.0.0.1", self.port), PATIENCE)
                 for _ in range(count)]
        for line in lines:
            self.addCleanup(line.close)
            try:
                line.sendall(text)
            except OSError: # it was closed for another
                pass
        return lines

    def test_stalled_handshakes_keep_nobody_out(self):
        """Silent connections, handshakes that stop in the middle, and others that were shown
        through but say nothing: requests of others go on, over TLS and over the socket."""
        token = self.token("read")
        stream = self.follow(token, "/v1/events")
        longest = 0
        for text in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP"):
            self.stall(100, text)
            for _ in range(5):
                start = time.monotonic()
                self.assertEqual(self.ask(token, "GET", "/v1/jobs")[0], 200)
                self.assertEqual(self.daemon.ask("GET", "/v1/jobs")[0], 200)
                longest = max(longest, time.monotonic() - start)
        self.assertLess(longest, 8) # each of those is closed after ten seconds
        self.daemon.sh("true") # the stream was not closed for any of them
        self.assertIn(b"submitted", b"".join(stream.readline() for _ in range(6)))

    def test_one_address_cannot_keep_another_out(self):
        """A host that opens connections as fast as it can closes its own with them."""
        token, over, lines = self.token("read"), threading.Event(), []

        def flood():
            while not over.is_set():
                try:
                    lines.append(socket.create_connection(
                        ("127.0.0.1", self.port), PATIENCE, source_address=("127.0.0.9", 0)))
                    lines[-1].sendall(b"\x16\x03\x01\x00")
                except OSError:
                    pass
                while len(lines) > 300:
                    lines.pop(0).close()

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            until(lambda: len(lines) > 200)
            for _ in range(50):
                self.assertEqual(self.ask(token, "GET", "/v1/jobs")[0], 200)
        finally:
            over.set()
            thread.join()
            for line in lines:
                line.close()
        # Not even the host that floods was refused: room is made at once, whoever comes.
        metrics = self.daemon.ask("GET", "/metrics")[1]
        self.assertIn("berth_http_turned_away_total 0\n", metrics)

    def test_connections_without_a_credential_are_closed_soon(self):
        lines = self.stall(5, b"\x16\x03\x01")
        kept = self.line()
        token = self.token("read")
        kept.request("GET", "/v1/jobs", headers={"Authorization": f"Bearer {token}"})
        kept.getresponse().read()
        for line in lines:
            line.settimeout(45) # ten seconds, and a busy machine
            try:
                while line.recv(4096): # perhaps an alert first
                    pass
            except ConnectionError:
                pass
        kept.request("GET", "/v1/jobs", headers={"Authorization": f"Bearer {token}"})
        self.assertEqual(kept.getresponse().status, 200)


class Certificate(TlsCase):
    """A site's own certificate."""

    def setUp(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        super().setUp()

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True,
                       cwd=self.daemon.dir)

    def sign(self, days):
        """A certificate for the key of the site, by its authority."""
        with open(os.path.join(self.daemon.dir, "names"), "w", encoding="ascii") as file:
            file.write("subjectAltName=IP:127.0.0.1,DNS:head\n")
        self.openssl("req", "-new", "-key", "site.key", "-subj", "/CN=head", "-out", "site.csr")
        self.openssl("x509", "-req", "-in", "site.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", str(days), "-extfile", "names", "-out", "site.crt")

    def start_with(self, certificate, key):
        self.daemon.stop()
        path = os.path.join(self.daemon.dir, "berthd.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{name}: {self.daemon.dir}/{value}\n" for name, value in (
                ("tls_certificate", certificate), ("tls_key", key)) if value))
        self.daemon.flags = [*self.daemon.flags[:4], "--config", path]
        self.start()

    def test_a_site_s_certificate_is_used_and_may_be_renewed(self):
        old = self.token("read")
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key",
                     "-subj", "/CN=site", "-days", "3", "-out", "ca.crt")
        self.openssl("genrsa", "-out", "site.key", "2048")
        self.openssl("genrsa", "-out", "wrong.key", "2048")
        self.sign(days=2)
        os.chmod(os.path.join(self.daemon.dir, "site.key"), 0o640)
        self.start_with("site.crt", "site.key")
        # Who trusts the authority needs no fingerprint.
        context = ssl.create_default_context(cafile=os.path.join(self.daemon.dir, "ca.crt"))
        line = http.client.HTTPSConnection("127.0.0.1", self.port, context=context)
        line.request("GET", "/v1/jobs", headers={"Authorization": f"Bearer {old}"})
        self.assertEqual(line.getresponse().status, 200)
        line.close()
        # Tokens made from now on have the new key's, older ones another.
        self.assertIn("another fingerprint", self.berth("queue", BERTH_TOKEN=old).stderr)
        token = self.token("read")
        self.assertEqual(self.berth("queue", BERTH_TOKEN=token).returncode, 0)
        self.sign(days=1)
        self.start_with("site.crt", "site.key")
        self.assertEqual(self.berth("queue", BERTH_TOKEN=token).returncode, 0)

        for certificate, key, says in (("site.crt", "wrong.key", "is not the key of"),
                                       ("site.crt", None, "go together"),
                                       (None, "site.key", "go together"),
                                       ("site.key", "site.key", "site.key: "),
                                       ("none.crt", "site.key", "No such file")):
            with self.assertRaisesRegex(AssertionError, says):
                self.start_with(certificate, key)
        os.chmod(os.path.join(self.daemon.dir, "site.key"), 0o644)
        with self.assertRaisesRegex(AssertionError, "other users can read this key"):
            self.start_with("site.crt", "site.key")


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be other users")
class Users(TlsCase):
    flags = ("--system", "--root-jobs")

    def as_user(self, user, method, path, body=None):
        done = subprocess.run([sys.executable, "-S", "-c", ASK, HERE, str(user.pw_uid),
                               str(user.pw_gid), self.daemon.socket, method, path,
                               json.dumps(body) if body else ""],
                              stdout=subprocess.PIPE, check=True, cwd="/")
        return tuple(json.loads(done.stdout))

    def job(self):
        return {"command": ["/bin/sh", "-c", "id -un; sleep 600"], "cwd": "/", "gpus": 1,
                "env": {"PATH": "/usr/bin:/bin"}}

    def test_a_user_makes_tokens_for_itself_that_read_and_submit(self):
        ada, bob = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
        for scope, want in (("read", 201), ("submit", 201), ("flow", 403), ("admin", 403)):
            status, answer = self.as_user(ada, "POST", "/v1/tokens", {"scope": scope})
            self.assertEqual(status, want, answer)
        self.assertEqual(self.as_user(ada, "POST", "/v1/tokens",
                                      {"scope": "read", "uid": bob.pw_uid})[0], 403)
        self.token("read", uid=bob.pw_uid)
        mine = self.as_user(ada, "GET", "/v1/tokens")[1]["tokens"]
        self.assertEqual([(t["id"], t["user"]) for t in mine], [(1, "nobody"), (2, "nobody")])
        self.assertEqual(len(self.daemon.ask("GET", "/v1/tokens")[1]["tokens"]), 3)
        self.assertEqual(self.as_user(ada, "DELETE", "/v1/tokens/3")[0], 404)
        self.assertEqual(self.as_user(ada, "DELETE", "/v1/tokens/1")[0], 200)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/tokens/2")[0], 200)

    def test_a_token_is_its_user_and_no_more(self):
        ada = pwd.getpwnam("nobody")
        token = self.token("submit", uid=ada.pw_uid)
        status, answer = self.ask(token, "POST", "/v1/jobs", self.job())
        self.assertEqual(status, 201, answer)
        hers = answer["id"]
        self.assertEqual(self.daemon.wait(hers, {"RUNNING"})["user"], "nobody")
        until(lambda: "nobody" in self.ask(token, "GET", f"/v1/jobs/{hers}/log")[1])
        ours = self.daemon.ask("POST", "/v1/jobs", self.job())[1]["id"]
        self.assertEqual(self.ask(token, "DELETE", f"/v1/jobs/{ours}")[0], 403)
        self.assertEqual(self.ask(token, "GET", f"/v1/jobs/{ours}/log")[0], 403)
        # Root's token of this scope changes root's own jobs, and only those.
        root = self.token("submit")
        self.assertEqual(self.ask(root, "DELETE", f"/v1/jobs/{hers}")[0], 403)
        self.assertEqual(self.ask(root, "PATCH", f"/v1/jobs/{hers}", {"hold": True})[0], 403)
        for body in ({"user": "nobody"}, {"all": True}):
            status, answer = self.ask(root, "POST", "/v1/jobs/cancel", body)
            self.assertNotIn(hers, [job["id"] for job in answer.get("jobs", [])], answer)
        self.assertEqual(self.daemon.job(hers)["state"], "RUNNING")
        ours = self.daemon.ask("POST", "/v1/jobs", self.job())[1]["id"]
        self.assertEqual(self.ask(root, "DELETE", f"/v1/jobs/{ours}")[0], 200)
        self.assertEqual(self.ask(self.token("admin"), "DELETE", f"/v1/jobs/{hers}")[0], 200)


if __name__ == "__main__":
    unittest.main()
