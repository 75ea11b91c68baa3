"""Sessions by PAM: each job has one, which is closed when the job is over, however it ends."""
import os
import shutil
import signal
import unittest

from hostile import ADA, BOUND, Case, processes, read, until, write

SERVICES = "/etc/pam.d"
AWAY = 45  # seconds: fewer than the supervisor of an ended job waits for a berthd

# In a mount namespace of its own: other daemons of this machine have no such service.
COVER = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {SERVICES} && exec "$@"']


@unittest.skipUnless(os.path.isdir(SERVICES), "needs PAM")
class Sessions(Case):
    """A service file of ours, whose module writes down what it is asked for."""

    @classmethod
    def prepare(cls):
        folder = cls.daemon.dir
        cls.record = os.path.join(folder, "record")
        cls.refusal = os.path.join(folder, "refuse")
        module, limits = os.path.join(folder, "module"), os.path.join(folder, "limits")
        services = shutil.copytree(SERVICES, os.path.join(folder, "services"))
        write(module, f'#!/bin/sh\necho "$PAM_TYPE $PAM_USER" >> {cls.record}\n'
              f'test "$PAM_TYPE" != open_session || test ! -e {cls.refusal}\n', 0o700)
        write(limits, f"{ADA.name} - nofile 333\n")
        write(cls.record, "")
        write(os.path.join(services, "berth"), "account required pam_permit.so\n"
              f"session required pam_exec.so quiet {module}\n"
              f"session required pam_limits.so conf={limits}\n"
              "auth required pam_permit.so\n")
        cls.limits = limits
        cls.service = os.path.join(services, "berth")
        cls.daemon.prefix = [*COVER, services]

    def setUp(self):
        write(self.record, "")

    def holder(self, ident):
        """The process that holds the session of a job."""
        supervisor = self.supervisor(ident)
        return [pid for pid, uid, state, parent, name in processes()
                if parent == supervisor and uid == 0 and name == "berth-launch"
                and state not in "ZX"]

    def assert_closed(self, ident, count=1):
        until(lambda: read(self.record).count("close_session") == count, BOUND)
        self.assertEqual(read(self.record).splitlines(),
                         [f"open_session {ADA.name}", f"close_session {ADA.name}"] * count)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)

    def test_a_session_is_closed_at_a_normal_end(self):
        ident = self.submit(ADA, "ulimit -n; id -u")
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.output(ident), f"333\n{ADA.uid}\n")
        self.assert_closed(ident)

    def test_a_failure_and_its_status_are_the_jobs(self):
        ident = self.submit(ADA, "exit 7")
        job = self.wait(ident)
        self.assertEqual((job["state"], job["exit_code"]), ("FAILED", 7))
        self.assert_closed(ident)

    def test_a_session_is_closed_after_a_cancellation(self):
        ident = self.submit(ADA, "trap '' TERM; while :; do sleep 1; done", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        self.assertEqual(len(self.holder(ident)), 1)
        self.assertNotIn("close_session", read(self.record))
        self.end_all(ident)
        self.assert_closed(ident)

    def test_a_session_is_closed_when_its_supervisor_was_killed(self):
        ident = self.submit(ADA, "sleep 900")
        self.wait(ident, {"RUNNING"})
        holder = self.holder(ident)[0]
        os.kill(self.supervisor(ident), signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{holder}") or
              "close_session" in read(self.record), BOUND)
        self.assertIn("close_session", read(self.record))
        self.cancel(ident)
        self.wait(ident)

    def test_a_session_outlives_berthd(self):
        ident = self.submit(ADA, "sleep 900", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        self.daemon.kill()
        self.daemon.start()
        self.wait(ident, {"RUNNING"})
        self.assertNotIn("close_session", read(self.record))
        self.end_all(ident)
        self.assert_closed(ident)

    def test_a_session_is_closed_with_its_job_while_berthd_is_away(self):
        ident = self.submit(ADA, "until test -e $BERTH_CKPT_DIR/end; do sleep 0.05; done")
        self.wait(ident, {"RUNNING"})
        supervisor = self.supervisor(ident)
        self.daemon.kill()
        write(os.path.join(self.daemon.state, "ckpt", str(ident), "end"), "")
        until(lambda: "close_session" in read(self.record), AWAY)
        self.assertTrue(os.path.exists(f"/proc/{supervisor}"))  # it waits for the next berthd
        self.daemon.start()
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        self.assert_closed(ident)

    def test_a_gang_has_one_session(self):
        ident = self.submit(ADA, "echo $RANK", gpus=2, tasks_per_node=3)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        self.assertEqual(sorted(self.output(ident).split()), ["0", "1", "2"])
        self.assert_closed(ident)

    def test_a_user_who_is_refused_has_no_job(self):
        write(self.refusal, "")
        self.addCleanup(os.unlink, self.refusal)
        ident = self.submit(ADA, "echo harm")
        self.assertEqual(self.wait(ident)["state"], "FAILED")
        self.assertNotIn("harm", self.output(ident).replace("cannot", ""))
        self.assertIn("PAM (/etc/pam.d/berth) opens no session", self.job(ident)["reason"])
        self.assertNotIn("close_session", read(self.record))

    def set_limits(self, lines, before_others=False):
        """In force for the jobs of this case; 'before_others': other modules are under them."""
        usual, service = read(self.limits), read(self.service)
        self.addCleanup(write, self.limits, usual)
        self.addCleanup(write, self.service, service)
        write(self.limits, f"{ADA.name} - {lines}\n")
        words = service.splitlines()
        if before_others:
            words.sort(key=lambda line: "pam_limits" not in line)
        write(self.service, "\n".join(words) + "\n")

    def test_a_job_that_may_write_no_file_is_told_so(self):
        self.set_limits("fsize 0")
        job = self.wait(self.submit(ADA, "echo hello"))
        self.assertEqual(job["state"], "FAILED")
        self.assertIn("File size limit exceeded", job["reason"])

    def test_limits_that_keep_pam_from_working_are_named(self):
        for limits in ("fsize 0", "nofile 0", "as 1000"):
            self.set_limits(limits, before_others=True)
            job = self.wait(self.submit(ADA, "echo hello"))
            self.assertEqual(job["state"], "FAILED", limits)
            self.assertRegex(job["reason"], r"^PAM .*opens no session.* limit", limits)

    def test_the_user_reaches_neither_the_session_nor_its_process(self):
        ident = self.submit(ADA, "sleep 900", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        pid = self.holder(ident)[0]
        with self.assertRaises(PermissionError):
            ADA.call(os.kill, pid, signal.SIGSTOP)
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        self.assertEqual([link for link in links if link.endswith(("claim", "status", ".out"))],
                         [])
        self.end_all(ident)
        self.assert_closed(ident)


if __name__ == "__main__":
    unittest.main()
