"""Files on a file system that does not answer: whoever has one waits alone."""
import os
import signal
import time
import unittest

import fuse
from hostile import ADA, BOB, BOUND, Case, end, read, send, until, write


@unittest.skipUnless(os.path.exists("/dev/fuse"), "needs /dev/fuse")
class SlowFiles(Case):
    """berthd, berth-launch and the supervisor of a job whose user has such a file system."""

    def mount(self, path, held, **how):
        try:
            mounted = fuse.Mount(path, ADA, held, **how)
        except OSError as error:
            self.skipTest(f"cannot mount a file system here: {error}")
        self.addCleanup(mounted.close)
        return mounted

    def ended_job(self, name):
        """A job whose output is in a folder of its user, over which something is mounted."""
        folder = os.path.join(self.open, name)
        ADA.call(os.mkdir, folder)
        ident = self.submit(ADA, "echo mine", output=os.path.join(folder, "out"))
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        return ident, folder

    def look_at(self, ident, follow=False):
        """A process of the user's that asks for the output."""
        pid = ADA.spawn(send, self.daemon.socket, "GET",
                        f"/v1/jobs/{ident}/log" + ("?follow=true" if follow else ""), None, 900)
        self.addCleanup(end, pid)
        return pid

    def assert_prompt(self):
        """Another user is served as ever, output included."""
        path = os.path.join(self.open, f"prompt-{time.monotonic()}")
        start = time.monotonic()
        ident = self.submit(BOB, "echo prompt", output=path)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.ask(BOB, "GET", f"/v1/jobs/{ident}/log"), (200, "prompt\n"))
        self.assertLess(time.monotonic() - start, 15)
        self.assert_answers()

    def test_a_file_that_is_answered_for_is_read(self):
        ident, folder = self.ended_job("answered")
        self.mount(folder, ())
        status, text = self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")
        self.assertEqual((status, text), (200, fuse.TEXT.decode()))

    def test_whoever_reads_such_a_file_waits_alone(self):
        for number, held in enumerate(({fuse.READ}, {fuse.FLUSH}, fuse.ALL)):
            ident, folder = self.ended_job(f"held-{number}")
            mounted = self.mount(folder, held)
            count = 40 if held == fuse.ALL else 6  # more than are opened at once for all users
            pids = [self.look_at(ident, follow=number % 2 == 0) for number in range(count)]
            self.assertTrue(mounted.holds.wait(BOUND), held)
            self.assert_prompt()
            for pid in pids:
                end(pid)  # what they asked for is given up, and waits as well
            self.assert_prompt()
            if held == fuse.ALL:  # a process that waits for an answer ends only after it
                start = time.monotonic()
                self.daemon.kill(signal.SIGTERM)
                self.daemon.start()
                self.assertLess(time.monotonic() - start, BOUND, "berthd waits for a file")
                self.assert_prompt()
            mounted.close()  # else the user may open no more files

    def test_what_is_mounted_over_its_output_is_not_asked(self):
        ident = self.submit(ADA, "echo mine; sleep 900", pattern="step ([0-9]+)", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        until(lambda: "mine" in self.output(ident), BOUND)
        self.mount(os.path.join(self.daemon.state, "log", f"{ident}.out"), fuse.ALL, file=True)
        status, _ = self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")
        self.assertNotEqual(status, 200)
        self.assert_prompt()
        start = time.monotonic()
        self.daemon.kill()
        self.daemon.start()
        self.assertLess(time.monotonic() - start, BOUND, "berth-launch waits for a file")
        self.wait(ident, {"RUNNING"})
        self.cancel(ident)
        self.wait(ident)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)

    def test_output_that_hangs_keeps_no_supervisor(self):
        """Its progress is read by a process that may wait; its end is reported."""
        folder = os.path.join(self.open, "progress")
        ADA.call(os.mkdir, folder)
        ident = self.submit(ADA, "sleep 0.5; echo step 1; while ! test -e "
                            f"{folder}2; do sleep 0.1; done", steps=10,
                            output=os.path.join(folder, "out"), pattern="step ([0-9]+)")
        self.wait(ident, {"RUNNING"})
        mounted = self.mount(folder, {fuse.READ, fuse.FLUSH})
        self.assertTrue(mounted.holds.wait(BOUND))
        write(folder + "2", "")
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)
        self.assert_prompt()

    def test_what_is_mounted_over_its_folder_does_not_keep_the_attempt(self):
        ident = self.submit(ADA, "sleep 900", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        folder = os.path.join(self.folder(ident), "job")
        self.mount(folder, fuse.ALL)
        self.cancel(ident)
        self.wait(ident)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)
        self.assertNotIn(folder, read("/proc/mounts"))
        self.assert_prompt()


if __name__ == "__main__":
    unittest.main()
