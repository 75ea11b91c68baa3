"""A full disk and one that can no longer be written: nothing is acknowledged that is not
kept, what runs goes on, and when there is room again berthd goes on as if nothing had been.

Needs root, for a small file system of its own; elsewhere it is skipped.
"""
import os
import subprocess
import tempfile
import time
import unittest

from injected import survived
from live import PATIENCE, Daemon, until


def mount(folder, *options):
    done = subprocess.run(["mount", *options, folder], stderr=subprocess.PIPE, check=False)
    return done.returncode == 0


class Disk(unittest.TestCase):
    """berthd whose store is on a small file system of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="berth-disk-")
        self.addCleanup(os.rmdir, self.folder)
        if not self.prepare():
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder], check=False)
        # The folder with the output and the marks is elsewhere: only the store suffers.
        self.daemon = Daemon(gpus="v100:2")
        self.daemon.state = os.path.join(self.folder, "s")
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()

    def submit(self, script, **request):
        out = os.path.join(self.daemon.dir, "out")
        return self.daemon.ask("POST", "/v1/jobs", {
            "command": ["sh", "-c", script], "cwd": self.daemon.dir, "gpus": 1, "output": out,
            "env": {"PATH": os.environ["PATH"]}, **request})

    def refuses(self):
        """Submissions fail, and say why."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status, answer = self.submit("true")
            if status == 503:
                self.assertIn("error", answer)
                return
            self.assertEqual(status, 201)
        self.fail("it went on taking jobs")


@unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small file system")
class Full(Disk):
    def prepare(self):
        return mount(self.folder, "-t", "tmpfs", "-o", "size=4m", "tmpfs")

    def works_again(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status, answer = self.submit("true")
            if status == 201:
                self.assertEqual(self.daemon.wait(answer["id"])["state"], "COMPLETED")
                return
            time.sleep(0.2)
        self.fail(f"it takes no jobs: {status} {answer}\n{self.daemon.words()}")

    def trouble(self, begin, end):
        gate, over = (os.path.join(self.daemon.dir, name) for name in ("gate", "over"))
        status, answer = self.submit(
            f"while [ ! -e {gate} ]; do sleep 0.02; done; touch {over}; exit 5")
        self.assertEqual(status, 201)
        running = answer["id"]
        self.daemon.wait(running, {"RUNNING"})
        held = self.submit("true", hold=True)[1]["id"]
        begin()
        self.refuses()
        self.assertIsNone(self.daemon.process.poll(), self.daemon.words())
        self.assertEqual(self.daemon.ask("GET", f"/v1/jobs/{running}")[0], 200)
        with open(gate, "w", encoding="utf-8"):
            pass
        until(lambda: os.path.exists(over))
        time.sleep(0.5)  # it ends while its end cannot be written
        end()
        self.works_again()
        job = self.daemon.wait(running)
        self.assertEqual((job["state"], job["exit_code"]), ("FAILED", 5))
        self.assertEqual(self.daemon.job(held)["state"], "HELD")
        accepted = [e["job"] for e in self.daemon.events() if e["kind"] == "submitted"]
        for ident in accepted:
            if ident != held:
                self.assertIn(self.daemon.wait(ident)["state"], ("COMPLETED", "FAILED"))
        return len(accepted)

    def test_a_full_disk(self):
        filler = os.path.join(self.folder, "filler")

        def fill():
            with open(filler, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * 4096)
                except OSError:
                    pass

        jobs = self.trouble(fill, lambda: os.remove(filler))
        survived("the disk is full", 1, "nothing is acknowledged that is not kept, what runs goes "
                 "on, and with room again all of it is recorded", jobs=jobs)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to mount something")
class Mounted(unittest.TestCase):
    """Something was mounted by accident where a job's folder is."""

    def test_a_removal_does_not_cross_a_mount_point(self):
        daemon = Daemon(gpus="v100:1")
        self.addCleanup(daemon.wipe)
        daemon.start()
        kept, ident = os.path.join(daemon.dir, "kept"), daemon.sh("sleep 900", grace_s=0.1)
        daemon.wait(ident, {"RUNNING"})
        os.mkdir(kept, 0o750)
        with open(os.path.join(kept, "file"), "w", encoding="utf-8"):
            pass
        folder = os.path.join(daemon.state, "run", "jobs", f"{ident}.0")
        if not mount(os.path.join(folder, "job"), "--bind", kept):
            self.skipTest("cannot mount here")
        self.addCleanup(subprocess.run, ["umount", "-l", os.path.join(folder, "job")],
                        check=False, stderr=subprocess.DEVNULL)
        daemon.ask("DELETE", f"/v1/jobs/{ident}")
        daemon.wait(ident)
        daemon.stop()
        daemon.start()  # it removes what supervisors have left
        until(lambda: f"berthd: {folder} is not removed, because something is mounted there"
              in daemon.words())
        self.assertEqual((os.listdir(kept), os.stat(kept).st_mode & 0o777), (["file"], 0o750))
        subprocess.run(["umount", os.path.join(folder, "job")], check=True)
        daemon.stop()
        daemon.start()
        until(lambda: not os.path.exists(folder))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small file system")
class ReadOnly(Disk):
    """A file system that the kernel no longer writes to, as after an error of the disk."""

    def prepare(self):
        self.image = tempfile.mktemp(prefix="berth-image-")
        self.addCleanup(lambda: os.path.exists(self.image) and os.remove(self.image))
        with open(self.image, "wb") as file:
            file.truncate(32 << 20)
        made = subprocess.run(["mkfs.ext4", "-q", self.image], stderr=subprocess.DEVNULL,
                              check=False)
        return made.returncode == 0 and mount(self.folder, "-o", "loop", self.image)

    def test_a_disk_that_can_only_be_read(self):
        daemon = self.daemon
        kept = [self.submit("true", hold=True)[1]["id"] for _ in range(5)]
        self.assertTrue(mount(self.folder, "-o", "remount,abort"))
        self.refuses()
        self.assertIsNone(daemon.process.poll(), daemon.words())
        self.assertEqual(daemon.ask("GET", f"/v1/jobs/{kept[0]}")[0], 200)
        status, _ = daemon.ask("PATCH", f"/v1/jobs/{kept[0]}", {"hold": False})
        self.assertEqual(status, 503)
        # No job can be ended now, and nothing keeps berthd itself from ending.
        self.assertIn(daemon.ask("DELETE", "/v1/server?kill=true")[0], (202, 503))
        daemon.stop()
        with self.assertRaises(AssertionError):
            daemon.start()
        self.assertEqual(daemon.process.returncode, 1)
        self.assertIn("Read-only", daemon.words())
        subprocess.run(["umount", self.folder], check=True)
        subprocess.run(["e2fsck", "-fy", self.image], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.assertTrue(mount(self.folder, "-o", "loop", self.image))
        daemon.start()
        for ident in kept:
            self.assertEqual(daemon.job(ident)["state"], "HELD")
            self.assertEqual(daemon.ask("PATCH", f"/v1/jobs/{ident}", {"hold": False})[0], 200)
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        survived("the disk can only be read", 1, "submissions are refused and say why, questions "
                 "are answered, and after a repair nothing is missing", jobs=len(kept))


if __name__ == "__main__":
    unittest.main()
