"""A machine without cgroups: berthd works, and says plainly that limits are not enforced."""
import os
import subprocess
import unittest

from live import BUILD, MASK, Daemon, can_mask, until


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError): # it ended before, or meanwhile
        return False


@unittest.skipUnless(os.geteuid() == 0 and can_mask(), "needs root, to hide the machine's cgroups")
class OneUser(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.daemon = Daemon(*self.flags)
        self.addCleanup(self.daemon.wipe)
        self.daemon.start(prefix=MASK)

    def output(self, ident):
        with open(f"{self.daemon.state}/log/{ident}.out", encoding="utf-8") as file:
            return file.read()

    def test_it_says_that_nothing_is_enforced_and_why(self):
        why = "no cgroups of version 2 are mounted at /sys/fs/cgroup"
        _, server = self.daemon.ask("GET", "/v1/server")
        self.assertEqual(server["enforced"], [])
        self.assertEqual(server["not_enforced_because"], why)
        done = subprocess.run(
            [os.path.join(BUILD, "berth"), "doctor", "--socket", self.daemon.socket],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        said = " ".join(done.stdout.split())
        self.assertIn("enforced for each job: nothing; not enforced: processes, memory, pids, "
                      f"cpu, devices, because: {why}", said)

    def test_a_job_runs_to_its_end_without_its_limit(self):
        ident = self.daemon.sh("head -c 100000000 /dev/zero | tail | wc -c", mem_bytes=16 << 20, cwd="/")
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.output(ident).split(), ["100000000"])

    def test_what_left_its_session_is_found_by_its_parents(self):
        ident = self.daemon.sh("setsid sh -c '(sleep 3600 & echo $!)'; sleep 3600", grace_s=0.2,
                               cwd="/")
        self.daemon.wait(ident, {"RUNNING"})
        pid = int(until(lambda: self.output(ident).split())[0])
        self.assertTrue(is_alive(pid))
        self.daemon.ask("DELETE", f"/v1/jobs/{ident}")
        self.assertEqual(self.daemon.wait(ident)["state"], "CANCELLED")
        until(lambda: not is_alive(pid))

    def test_what_is_left_of_a_killed_supervisor_is_found_by_its_environment(self):
        ident = self.daemon.sh("setsid sh -c '(sleep 3600 & echo $!)'; sleep 3600", cwd="/")
        self.daemon.wait(ident, {"RUNNING"})
        pid = int(until(lambda: self.output(ident).split())[0])
        with open(f"{self.daemon.state}/run/jobs/{ident}.0/claim", encoding="ascii") as file:
            supervisor = int(file.read().split()[0])
        os.kill(supervisor, 9)
        until(lambda: not is_alive(pid))


class AllUsers(OneUser):
    flags = ("--system", "--root-jobs")
