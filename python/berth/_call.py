"""Requests to berthd: HTTP over its UNIX socket, or over TCP with a token."""
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse

from . import _tls

ANSWER_MAX = 64 << 20
SYSTEM_RUN = "/run/berth"  # stays while the system's daemon is stopped or restarted
SYSTEM_AWAY_S = 10         # as long as that may take


class Refused(Exception):
    """berthd said no, in a sentence."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _own(folder):
    """Whether a folder is ours: in /tmp anybody could have made it."""
    try:
        return os.lstat(folder).st_uid == os.getuid()
    except OSError:
        return False


def places():
    """Where berthd listens unless told otherwise, best first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    mine = os.path.join(runtime, "berth") if runtime else f"/tmp/berth-{os.getuid()}"
    if _own(mine):
        yield os.path.join(mine, "api.sock")
    yield os.path.join(SYSTEM_RUN, "api.sock")


def find():
    """The address of a daemon that is there, or None.  The system's is waited for."""
    named = os.environ.get("BERTH_ADDR")
    if named:
        return named
    end = time.monotonic() + SYSTEM_AWAY_S
    while True:
        path = next((path for path in places() if os.path.exists(path)), None)
        if path or not os.path.isdir(SYSTEM_RUN):
            return path
        if time.monotonic() > end:
            raise ConnectionError("this machine's berthd does not answer at "
                                  f"{SYSTEM_RUN}/api.sock; 'berth up' starts one of your own")
        time.sleep(0.1)


def start_daemon():
    """As the commands do: the first one that needs a daemon starts it."""
    program = shutil.which("berth")
    if program is None:
        raise ConnectionError("no berthd is running and berth is not on the PATH")
    done = subprocess.run([program, "up"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise ConnectionError(f"berth up: {done.stdout.strip()}")


def _token():
    """What a URL is told, if anything: the token, or the one in a file."""
    path = os.environ.get("BERTH_TOKEN_FILE")
    if os.environ.get("BERTH_TOKEN") or not path:
        return os.environ.get("BERTH_TOKEN")
    with open(path, encoding="ascii") as file:
        return file.readline().strip()


def _connect(address, timeout, token):
    if "://" not in address:
        return _UnixConnection(address, timeout)
    url = urllib.parse.urlsplit(address)
    if url.scheme == "unix":
        return _UnixConnection(url.path, timeout)
    return _tls.connect(address, timeout, token)


def _sentence(data, status):
    """What an answer that is no success says."""
    try:
        said = json.loads(data)
        return str(said.get("error", said)) if isinstance(said, dict) else str(said)
    except ValueError:
        return data.decode("utf-8", "replace").strip() or f"status {status}"


def raw(method, path, body=None, timeout=60, address=None):
    """One request; the answer's bytes.  Refused if berthd does not agree."""
    address = address or find()
    if address is None:
        start_daemon()
        address = find()
    if address is None:
        raise ConnectionError("no berthd is running")
    headers = {"Accept": "application/json"}
    token = _token() if "://" in address else None
    if token:
        headers["Authorization"] = "Bearer " + token
    if body is not None:
        body = json.dumps(body).encode("utf-8")
        headers["Content-Type"] = "application/json"
    connection = _connect(address, timeout, token)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read(ANSWER_MAX)
    except http.client.HTTPException as wrong:
        raise ConnectionError(f"{address}: {wrong!r}") from wrong
    finally:
        connection.close()
    if answer.status >= 300:
        raise Refused(answer.status, _sentence(data, answer.status))
    return data


def call(method, path, body=None, **more):
    data = raw(method, path, body, **more)
    return json.loads(data) if data else None
