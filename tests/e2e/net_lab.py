"""A network of namespaces for the tests, jobs that send in it, and berth-flowd on its hosts."""
import ctypes
import functools
import http.server
import json
import os
import queue
import re
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time

from support import BUILD, ROOT

LAB = os.path.join(ROOT, "tests", "net", "lab")
FLOWD = os.path.join(BUILD, "berth-flowd")
RING = os.environ.get("BERTH_RING", os.path.join(BUILD, "tests", "ring"))
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
CODE = {"cs5": 40, "cs4": 32, "cs3": 24, "cs2": 16, "unmarked": 0, "cs1": 8}
KINDS = ("udp4", "udp6", "tcp4")


def cgroup_root():
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    return None


def missing():
    """Why there can be no lab here, or None."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    for program in ("ip", "tc", "nsenter"):
        if not shutil.which(program, path=PATH):
            return f"{program} is not installed"
    root = cgroup_root()
    if not root or not os.access(root, os.W_OK):
        return "there are no cgroups of version 2 to write to"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True)
    return None if tried.returncode == 0 else "there are no network namespaces"


@functools.lru_cache(maxsize=None)
def usable(backend):
    """Why this backend cannot be tested here, or None."""
    said = subprocess.run([FLOWD, "--check"], capture_output=True, text=True).stdout
    row = re.search(rf"(?m)^(ok|NO) +{backend} +(.*)$", said)
    return None if row and row.group(1) == "ok" else row.group(2) if row else "not there"


def in_namespace(name, work):
    """Run 'work' in a thread in that network namespace, and return its value."""
    answer = []

    def thread():
        try:
            with open(f"/run/netns/{name}", "rb") as file:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(file.fileno(), 0x40000000) < 0:
                    raise OSError(ctypes.get_errno(), "setns")
            answer.append((work(), None))
        except Exception as error: # raised again in the waiting thread
            answer.append((None, error))

    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    result, error = answer[0]
    if error:
        raise error
    return result


def until(what, timeout=5.0, step=0.01):
    """Wait until the condition holds; returns its value, or False."""
    end = time.monotonic() + timeout
    while not (result := what()):
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return result


class Lab:
    """Up until down() is called."""
    serial = 0

    def __init__(self, rate="100mbit"):
        Lab.serial += 1
        self.name = f"bf{os.getpid()}{chr(96 + Lab.serial)}"
        done = subprocess.run([LAB, "up", self.name, rate, FLOWD], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        self.root = cgroup_root()
        self.dir = tempfile.mkdtemp(prefix="bf.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        os.mkdir(os.path.join(self.root, self.name))

    def down(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        subprocess.run([LAB, "down", self.name], check=True, stdin=subprocess.DEVNULL)

    def namespace(self, host):
        return f"{self.name}-{host}"

    def nft(self, host, *words):
        """The packet filter of a host; None: nft is not installed."""
        if not shutil.which("nft", path=PATH):
            return None
        return subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.namespace(host)}", "nft", *words],
            capture_output=True, text=True, env={**os.environ, "PATH": PATH}).stdout

    def cgroup(self, name):
        """Make a cgroup; returns its path as berthd sends it."""
        os.makedirs(os.path.join(self.root, self.name, name), exist_ok=True)
        return os.path.relpath(os.path.join(self.root, self.name, name), "/sys/fs/cgroup")

    def start(self, host, *command, cgroup=None, **more):
        """Start a process on a host, in a cgroup from its start."""
        words = ["nsenter", f"--net=/run/netns/{self.namespace(host)}", *command]
        if cgroup:
            words = ["sh", "-c", 'echo $$ >"/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"',
                     cgroup, *words]
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(words, env={**os.environ, "PATH": PATH, **more.pop("env", {})},
                                **more)


# A job that sends all the time, with packets that allow congestion marks.
TALK = r"""
import socket, sys, time
port, tos = int(sys.argv[1]), int(sys.argv[2])
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
four.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)
four.connect(("10.77.0.4", port))
six.connect(("fd77::4", port))
stream = socket.create_connection(("10.77.0.4", port))
print("up", flush=True)
while True:
    for one in (four, six, stream):
        try:
            one.send(b"x" * 200)
        except ConnectionRefusedError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            sys.exit() # the listener is gone
    time.sleep(0.01)
"""


class Talker:
    """A job that sends to host 4, to its own port."""
    ports = iter(range(7100, 9000))

    def __init__(self, lab, cgroup=None, tos=2, wrap=(), host="h1", **more):
        self.port = next(Talker.ports)
        ear = in_namespace(lab.namespace("h4"),
                           lambda: socket.create_server(("10.77.0.4", self.port)))
        self.process = lab.start(host, *wrap, sys.executable, "-ISc", TALK, str(self.port),
                                 str(tos), cgroup=cgroup, stdout=subprocess.PIPE, **more)
        assert self.process.stdout.readline() == b"up\n"
        self.peer, _ = ear.accept()
        ear.close()
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        try:
            while self.peer.recv(65536):
                pass
        except OSError:
            pass

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.peer.close()


class Watch:
    """Captures at host 4: the last traffic class per port and kind of packet."""

    def __init__(self, lab):
        self.wire = in_namespace(lab.namespace("h4"), lambda: socket.socket(
            socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)))
        self.wire.bind(("eth0", 3))
        self.wire.settimeout(0.02)
        self.last, self.congestion, self.open = {}, {}, True
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while self.open:
            try:
                packet, origin = self.wire.recvfrom(65536)
            except socket.timeout:
                continue
            except OSError:
                return
            if origin[2] != 4: # PACKET_OUTGOING
                self.take(packet)

    def take(self, packet):
        if packet[0] >> 4 == 4:
            kind, header, field = packet[9], (packet[0] & 15) * 4, packet[1]
        else:
            kind, header = packet[6], 40
            field = struct.unpack("!H", packet[:2])[0] >> 4 & 255
        if kind not in (6, 17) or len(packet) < header + 8:
            return
        name = ("tcp" if kind == 6 else "udp") + str(packet[0] >> 4)
        key = struct.unpack("!H", packet[header + 2:header + 4])[0], name
        self.last[key] = field >> 2, time.monotonic()
        self.congestion.setdefault(key, set()).add(field & 3)

    def is_now(self, port, code, kinds=KINDS):
        """Whether the newest packet of each kind has this code point."""
        return all(self.last.get((port, kind), (None,))[0] == code for kind in kinds)

    def becomes(self, port, point, timeout=5.0, kinds=KINDS):
        """Seconds until every kind of packet has it; None: never."""
        begun = time.monotonic()
        if until(lambda: self.is_now(port, CODE[point], kinds), timeout, step=0.002):
            return time.monotonic() - begun
        return None

    def stays(self, port, point, seconds, kinds=KINDS):
        """Whether all packets that arrive now, at least some, have it."""
        end = time.monotonic() + seconds
        begun = time.monotonic()
        while time.monotonic() < end:
            if not self.is_now(port, CODE[point], kinds):
                return False
            time.sleep(0.005)
        return all(self.last[port, kind][1] > begun for kind in kinds)

    def close(self):
        self.open = False
        self.thread.join()
        self.wire.close()


class Flows:
    """A fake berthd: sends valid and invalid events to agents."""

    def __init__(self, folder, token=None):
        self.token, self.said, self.words, self.joined = token, [], {}, 0
        self.lock = threading.Lock()
        self.streams = set()
        self.alive = True
        self.path = os.path.join(folder, f"flows{id(self)}.sock")
        self.begin()

    def begin(self):
        flows = self
        self.alive = True

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def address_string(self):
                return ""

            def refused(self):
                if flows.token and self.headers["Authorization"] != "Bearer " + flows.token:
                    self.answer(401, {"error": "no token"})
                    return True
                return False

            def answer(self, status, body):
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):
                if self.refused():
                    return
                if "follow=true" not in self.path:
                    self.answer(200, {"flows": []})
                    return
                match = re.search(r"host=(\w+)", self.path)
                flows.stream(self, match.group(1) if match else "")

            def do_POST(self):
                if not self.refused():
                    text = self.rfile.read(int(self.headers["Content-Length"]))
                    flows.said.append((time.monotonic(), self.path, json.loads(text)))
                    self.answer(200, {})

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET if flows.token else socket.AF_UNIX

            def handle_error(self, request, address):
                pass # the client has gone

            def server_bind(self):
                self.socket.bind(self.server_address)
                self.server_name, self.server_port = "localhost", 0

        if not self.token and os.path.exists(self.path):
            os.remove(self.path)
        self.server = Server(("127.0.0.1", 0) if self.token else self.path, Handler)
        if self.token:
            self.address = "http://127.0.0.1:%d" % self.server.socket.getsockname()[1]
        else:
            self.address = self.path
            os.chmod(self.path, 0o777)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stream(self, handler, host):
        mail = queue.Queue()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        with self.lock:
            self.streams.add((host, mail))
            self.joined += 1
            if host in self.words:
                mail.put(self.words[host])
        try:
            while self.alive:
                try:
                    handler.wfile.write(mail.get(timeout=0.02))
                    handler.wfile.flush()
                except queue.Empty:
                    pass
        except OSError:
            pass
        finally:
            handler.close_connection = True
            with self.lock:
                self.streams.discard((host, mail))

    def raw(self, text, host="h1"):
        """Send to the agents that are connected now."""
        text = text if isinstance(text, bytes) else text.encode()
        with self.lock:
            for name, mail in self.streams:
                if name == host:
                    mail.put(text)

    def word(self, jobs, host="h1", valid_s=45, levels=6, **more):
        body = {"flow": "jpas", "levels": levels, "host": host, "valid_s": valid_s,
                "jobs": jobs, **more}
        return f"event: flows\ndata: {json.dumps(body)}\n\n".encode()

    def say(self, jobs, host="h1", **more):
        """Set the desired marks, which all agents get from now on."""
        text = self.word(jobs, host, **more)
        with self.lock:
            self.words[host] = text
        self.raw(text, host)

    def go(self):
        """Stop, and close all connections."""
        self.alive = False
        self.server.shutdown()
        self.server.server_close()
        until(lambda: not self.streams, 2)


class Agent:
    """berth-flowd on a host."""

    def __init__(self, lab, flows, *flags, host="h1", named=True, **more):
        name = ("--host", host) if named else () # berthd knows its own host
        self.process = lab.start(host, FLOWD, "--server", flows.address, *name, *flags,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.heard, self.told = [], []
        self.ready = self.process.stdout.readline().decode()
        self.ears = [threading.Thread(target=self.listen, args=ear) for ear in (
            (self.process.stdout, self.heard), (self.process.stderr, self.told))]
        for ear in self.ears:
            ear.start()
        assert " ready: " in self.ready, (self.ready, self.words())

    def listen(self, pipe, lines):
        with pipe:
            for line in pipe:
                lines.append(line.decode().rstrip("\n"))

    def words(self):
        time.sleep(0.02)
        return "\n".join(self.told)

    def status(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(timeout=10)
        for ear in self.ears:
            ear.join()
        return status
