"""berth-launch and berth-slurm on a Slurm cluster: a berthd that has been taken over reaches the
jobs of its partitions by the verbs there are, and nothing else in Slurm or on this host."""
import json
import os
import socket
import struct
import unittest

from hostile import ADA, BOUND, processes, read, start_launcher, until
from live import BUILD
from slurm_lab import Lab, missing
from test_launcher import (BRIDGE, EINVAL, ENOSYS, EPERM, EPROTO, HELLO, KILL, KILL_JOB, OPENED,
                           OPENING, REMOVE, REPLY, REQUEST, START, order)

ASKED = struct.Struct("=IIQ16s1024s")
ENOENT, E2BIG = 2, 7
BERTH_SLURM = os.path.join(BUILD, "berth-slurm")
NOTHING = "0000000000000000"


def status_of(pid):
    """Fields of a process that say what it may do."""
    return {line.split(":")[0]: line.split()[1:]
            for line in read(f"/proc/{pid}/status").splitlines()}


class Launched(unittest.TestCase):
    """We are a berthd that was taken over; berth-launch is asked to start berth-slurm."""
    flags = ("--partition", "gpu")
    program = BERTH_SLURM
    env = {}

    def setUp(self):
        self.process, self.orders, self.openings = start_launcher(
            "--bridge", self.program, *self.flags, env=self.env)
        self.addCleanup(self.stop)

    def stop(self):
        self.orders.close()
        self.openings.close()
        self.process.wait(BOUND)

    def send(self, data, fds=()):
        """The errno of the reply, and its text."""
        socket.send_fds(self.orders, [data], list(fds))
        answer = self.orders.recv(4096)
        self.assertEqual(len(answer), REPLY.size)
        fields = REPLY.unpack(answer)
        return fields[0], fields[4].split(b"\0")[0].decode()

    def start(self, partitions=b"", driver=b"", bell=None):
        """The errno, or a connection to a berth-slurm."""
        mine, theirs = socket.socketpair()
        fds = [theirs.fileno()] + ([bell] if bell is not None else [])
        error, text = self.send(ASKED.pack(BRIDGE, 0, 0, driver, partitions), fds)
        theirs.close()
        if error:
            self.assertTrue(text)
            mine.close()
            return error
        mine.settimeout(BOUND)
        self.addCleanup(mine.close)
        return mine

    def children(self):
        return [pid for pid, _, state, parent, _ in processes()
                if parent == self.process.pid and state not in "ZX"]


@unittest.skipUnless(os.geteuid() == 0, "needs root, to start berth-launch")
class Orders(Launched):
    """Without a Slurm: what is refused, and what a launcher for Slurm does not do at all."""
    env = {"SLURM_CONF": "/nonexistent/slurm.conf"}

    def test_other_partitions_and_what_is_no_name_are_refused(self):
        for wrong, why in ((b"other", EPERM), (b"gpu,other", EPERM), (b"GPU", EPERM),
                           (b"-x", EINVAL), (b"--bell", EINVAL), (b"gpu,", EINVAL),
                           (b"gpu ", EINVAL), (b"../gpu", EINVAL), (b"/etc/passwd", EINVAL),
                           (b"gpu;id", EINVAL), (b"$(id)", EINVAL), (b"gpu\n", EINVAL),
                           (b"a" * 1024, EINVAL), (b",".join([b"gpu"] * 31), E2BIG)):
            self.assertEqual(self.start(wrong), why, wrong)
        for wrong in (b"x", b"/bin/sh", b"--check", b"commands;id", b"a" * 16):
            self.assertEqual(self.start(b"gpu", wrong), EINVAL, wrong)
        self.assertEqual(self.children(), [])

    def test_a_message_of_another_size_is_refused(self):
        whole = ASKED.pack(BRIDGE, 0, 0, b"", b"gpu")
        for data in (whole[:16], whole[:-1], whole + b"x", REQUEST.pack(BRIDGE, 0, 0),
                     ASKED.pack(START, 0, 1, b"", b"gpu"), ASKED.pack(HELLO, 0, 0, b"", b"")):
            self.assertEqual(self.send(data)[0], EPROTO, data[:20])
        self.assertEqual(self.children(), [])

    def test_it_wants_a_stream_socket(self):
        whole = ASKED.pack(BRIDGE, 0, 0, b"", b"gpu")
        self.assertEqual(self.send(whole)[0], EINVAL)
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with open("/etc/passwd", "rb") as file, pair[0], pair[1]:
            self.assertEqual(self.send(whole, [file.fileno()])[0], EINVAL)
            self.assertEqual(self.send(whole, [pair[0].fileno()])[0], EINVAL)
            self.assertEqual(self.send(whole, [file.fileno()] * 3)[0], EPROTO)
        self.assertEqual(self.children(), [])

    def test_it_starts_and_ends_no_jobs(self):
        fd = order()
        self.addCleanup(os.close, fd)
        with open("/dev/null", "rb") as file:
            self.assertEqual(self.send(REQUEST.pack(START, 0, 1), [fd, file.fileno()])[0], ENOSYS)
        for kind in (KILL, KILL_JOB, REMOVE):
            self.assertEqual(self.send(REQUEST.pack(kind, 0, 1))[0], ENOSYS)
        self.assertEqual(self.send(REQUEST.pack(HELLO, 0, 0)), (0, ""))

    def test_files_are_opened_with_the_users_rights_alone(self):
        for uid, path, error in ((ADA.uid, b"/etc/shadow", 13), (0, b"/etc/passwd", EPERM),
                                 (ADA.uid, b"etc/passwd", EINVAL), (ADA.uid, b"/etc/passwd", 0)):
            self.openings.send(OPENING.pack(7, uid, path))
            data, fds, _, _ = socket.recv_fds(self.openings, 100, 4)
            self.assertEqual(OPENED.unpack(data), (7, error))
            for fd in fds:
                os.close(fd)

    def test_it_keeps_three_capabilities(self):
        self.send(REQUEST.pack(HELLO, 0, 0))
        # CAP_KILL, CAP_SETGID, CAP_SETUID
        self.assertEqual(int(status_of(self.process.pid)["CapPrm"][0], 16), 1 << 5 | 1 << 6 | 1 << 7)

    def test_a_program_that_is_not_there_is_said(self):
        self.stop()
        self.program = "/nonexistent/berth-slurm"
        self.setUp()
        self.assertEqual(self.start(b"gpu"), ENOENT)


@unittest.skipIf(missing(), missing())
class Requests(Launched):
    """With a Slurm: jobs of user nobody in the partition gpu, which is managed, and in another."""
    slurm_user = "slurm"

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(env={"BERTH_LAB_SLURM_USER": cls.slurm_user})
        cls.addClassCleanup(cls.lab.down)
        cls.env = {"SLURM_CONF": cls.lab.env["SLURM_CONF"], "PATH": cls.lab.env["PATH"],
                   "BERTH_MARK": "1"} # which berth-slurm must not get
        cls.flags = ("--partition", "gpu", "--bridge-user", cls.slurm_user)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.lab.run, "scancel", "-u", "nobody")

    def connect(self, **how):
        link = self.start(**how)
        self.assertNotIsInstance(link, int)
        self.lines = link.makefile("rw", encoding="utf-8", newline="\n")
        self.addCleanup(self.lines.close)
        self.heard, self.seq = [], 0
        self.hear(lambda word: "synced" in word)
        return link

    def hear(self, wanted):
        while True:
            line = self.lines.readline()
            self.assertTrue(line, "berth-slurm has ended")
            word = json.loads(line)
            self.heard.append(word)
            if wanted(word):
                return word

    def ask(self, verb, job=None, **more):
        """What it makes of a request."""
        self.seq += 1
        words = {"seq": self.seq, "verb": verb, **({"job": job} if job else {}), **more}
        self.lines.write(json.dumps(words) + "\n")
        self.lines.flush()
        return self.hear(lambda word: word.get("done", {}).get("seq") == self.seq)["done"]

    def record(self, job):
        """All that Slurm has of a job, but for what it changes by itself."""
        shown = self.lab.run("scontrol", "-o", "-d", "show", "job", str(job)).stdout
        return [word for word in shown.split()
                if not word.startswith(("LastSchedEval=", "AccrueTime=", "RunTime="))]

    def test_it_runs_as_slurms_user_and_has_no_capability(self):
        self.connect()
        pid, = self.children()
        status = status_of(pid)
        uid = self.lab.run("id", "-u", self.slurm_user).stdout.strip()
        self.assertEqual(status["Uid"], [uid] * 4)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(status[name], [NOTHING], name)
        self.assertEqual(status["NoNewPrivs"], ["1"])
        self.assertEqual(read(f"/proc/{pid}/cmdline").split("\0")[1:-1], ["--partition", "gpu"])
        self.assertEqual(sorted(line.split("=")[0] for line in
                                read(f"/proc/{pid}/environ").split("\0") if line),
                         ["PATH", "SLURM_CONF"])
        # Its socket is input and output; what it opens itself comes and goes.
        self.assertEqual(os.readlink(f"/proc/{pid}/fd/0"), os.readlink(f"/proc/{pid}/fd/1"))

    def test_jobs_of_its_partition_can_be_started_and_held(self):
        self.connect()
        job = self.lab.submit("--gres=gpu:1")
        for verb, more in (("hold", {}), ("script", {}), ("comment", {"text": "seen"}),
                           ("start", {"nodes": ["n2"]}), ("evict", {}), ("cancel", {})):
            done = self.ask(verb, job, **more)
            self.assertTrue(done["ok"], (verb, done))

    def test_jobs_of_other_partitions_are_out_of_reach(self):
        foreign = self.lab.submit("--partition=other", "--gres=gpu:1", "-H")
        runs = self.lab.submit("--partition=other", "-n1")
        array = self.lab.submit("--partition=other", "-H", "--array=1-3")
        until(lambda: self.lab.run("squeue", "-h", "-o", "%T", "-j", str(runs)).stdout.strip() ==
              "RUNNING", BOUND)
        before = {job: self.record(job) for job in (foreign, runs, array)}
        self.connect()
        self.assertFalse({foreign, runs, array} & {w["job"]["id"] for w in self.heard if "job" in w})
        for job in (foreign, runs, array, str(foreign), f"{array}_2", f"{array}_9"):
            for verb, more in (("start", {"nodes": ["n1"]}), ("hold", {}), ("release", {}),
                               ("evict", {}), ("revive", {}), ("cancel", {}), ("park", {}),
                               ("comment", {"text": "mine"}), ("script", {}),
                               ("signal", {"signal": "KILL", "to": "all"})):
                done = self.ask(verb, job, **more)
                self.assertEqual((done["ok"], done.get("transient")), (False, False), (verb, done))
                self.assertIn("partitions that Berth manages", done["error"])
                self.assertNotIn("text", done)
        self.assertEqual({job: self.record(job) for job in before}, before)

    def test_a_job_that_was_moved_to_another_partition_is_out_of_reach(self):
        self.connect()
        job = self.lab.submit("--gres=gpu:1")
        self.assertTrue(self.ask("hold", job)["ok"])
        done = self.lab.run("scontrol", "update", f"JobId={job}", "Partition=other")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.ask("poll")["ok"])
        before = self.record(job)
        self.assertFalse(self.ask("release", job)["ok"])
        self.assertFalse(self.ask("cancel", job)["ok"])
        self.assertEqual(self.record(job), before)

    def test_there_is_no_verb_for_anything_else(self):
        self.connect()
        job = self.lab.submit("--gres=gpu:1")
        self.assertTrue(self.ask("hold", job)["ok"])
        before = self.record(job)
        for verb, more in (("submit", {"script": "#!/bin/sh\nid"}), ("update", {"UserId": 0}),
                           ("run", {"command": ["id"]}), ("reconfigure", {}), ("shutdown", {}),
                           ("start", {"nodes": ["n1 Partition=other"]}),
                           ("start", {"nodes": ["n1,n2"]}), ("start", {"nodes": ["-x"]}),
                           ("start", {"nodes": ["/etc/passwd"]}),
                           ("signal", {"signal": "STOP", "to": "all"}),
                           ("signal", {"signal": 9, "to": "all"}),
                           ("comment", {"text": "a\nPartition=other"})):
            done = self.ask(verb, job, **more)
            self.assertEqual((done["ok"], done.get("transient")), (False, False), (verb, done))
        for words in (f"{job} 1", f"{job};id", f"-{job}", "all", "../1", f"{job}+1", "4294967296"):
            self.assertFalse(self.ask("cancel", words)["ok"], words)
        # Fields that a verb does not have change nothing.
        self.assertTrue(self.ask("hold", job, partition="other", user=0, priority=99)["ok"])
        self.assertEqual(self.record(job), before)

    def test_to_name_no_partition_is_not_to_have_all(self):
        foreign = self.lab.submit("--partition=other", "-H")
        self.connect(partitions=b"")
        self.assertFalse(self.ask("cancel", foreign)["ok"])

    def test_one_runs_at_a_time(self):
        first = self.connect()
        before = self.children()
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        self.connect(bell=reader)
        until(lambda: len(self.children()) == 1, BOUND)
        self.assertNotEqual(self.children(), before)
        # The first one's connection has ended, whatever else it had to say.
        while first.recv(65536):
            pass

    def test_it_ends_with_its_connection(self):
        link = self.connect()
        self.lines.close()
        link.shutdown(socket.SHUT_RDWR)
        link.close()
        until(lambda: not self.children(), BOUND)


class RequestsToRoot(Requests):
    """The same where SlurmUser is root: it has root's name and none of root's capabilities."""
    slurm_user = "root"


if __name__ == "__main__":
    unittest.main()
