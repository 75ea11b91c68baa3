"""berthd.service of one user, started by that user's systemd, and a berthd without it."""
import os

from machine import Case, MIB, TOP, User, group_of, processes_with, read, run, until

ANN = User("ann")
JOBS = f"{TOP}/user.slice/user-{ANN.uid}.slice/user@{ANN.uid}.service/app.slice/berth-jobs.service"


def systemctl(*words):
    done = ANN.run("systemctl", "--user", *words)
    if done.returncode != 0:
        raise AssertionError(f"systemctl --user {' '.join(words)}: {done.stdout}"
                             f"{run('journalctl', '-n20', '_UID=%d' % ANN.uid).stdout}")
    return done.stdout.strip()


class Service(Case):
    @classmethod
    def setUpClass(cls):
        until(lambda: ANN.run("systemctl", "--user", "is-system-running").stdout.strip()
              in ("running", "degraded"))
        systemctl("start", "berthd")
        cls.addClassCleanup(ANN.run, "systemctl", "--user", "stop", "berthd", "berth-jobs")
        until(lambda: os.path.exists(ANN.address()))

    def tearDown(self):
        ANN.cancel_all()

    def test_memory_and_processes_are_enforced_and_the_rest_is_explained(self):
        server = ANN.server()
        print("#", server["enforced"], server.get("not_enforced_because"), flush=True)
        self.assertEqual(server["enforced"][:3], ["processes", "memory", "pids"], server)
        self.assertIn("only root may filter devices", server["not_enforced_because"])
        said = ANN.run("berth", "doctor").stdout
        self.assertIn("only root may filter devices", " ".join(said.split()))

    def test_a_job_is_in_a_cgroup_of_its_own_with_its_limits(self):
        ident, pid, _ = self.start_escape(ANN, "--mem", "100M")
        group = group_of(pid)
        self.assertEqual(os.path.dirname(os.path.dirname(group)), JOBS)
        self.assertEqual(read(f"{group}/memory.max").strip(), str(100 * MIB))
        ANN.berth("cancel", ident)
        self.assert_removed(group)

    def test_a_job_beyond_its_memory_is_killed_and_told_so(self):
        self.assert_dies_of_memory(ANN)

    def test_nothing_that_leaves_survives_a_cancellation(self):
        ident, pid, mark = self.start_escape(ANN)
        group = group_of(pid)
        ANN.berth("cancel", ident)
        self.assertEqual(ANN.wait(ident)["state"], "CANCELLED")
        until(lambda: not processes_with(mark))
        self.assert_removed(group)

    def test_a_job_survives_a_restart_of_berthd(self):
        ident, pid, _ = self.start_escape(ANN, "--mem", "100M")
        group = group_of(pid)
        systemctl("restart", "berthd")
        until(lambda: ANN.run("berth", "show", ident).returncode == 0)
        self.assertEqual(ANN.job(ident)["state"], "RUNNING")
        self.assertEqual(group_of(pid), group)
        self.assertEqual(read(f"{group}/memory.max").strip(), str(100 * MIB))
        self.assert_dies_of_memory(ANN)
        ANN.berth("cancel", ident)
        self.assert_removed(group)

    def test_to_stop_the_jobs_service_ends_all_jobs(self):
        ident, _, mark = self.start_escape(ANN, "--grace", "1s")
        systemctl("stop", "berth-jobs")
        self.assertEqual(ANN.wait(ident)["state"], "FAILED")
        until(lambda: not processes_with(mark))
        systemctl("restart", "berthd")
        until(lambda: os.path.exists(ANN.address()))
        self.assert_dies_of_memory(ANN)


class NoService(Case):
    """'berth up' where systemd has delegated nothing: as in a session by ssh."""

    def test_it_works_and_says_that_nothing_is_enforced(self):
        user = User("bob")
        user.env["XDG_RUNTIME_DIR"] = f"{user.home}/run"
        user.run("mkdir", "-m", "700", "run")
        user.berth("up")
        self.addCleanup(user.run, "berth", "down", "--kill")
        server = user.server()
        self.assertEqual(server["enforced"], [], server)
        self.assertIn("this user may not make cgroups in", server["not_enforced_because"])
        said = " ".join(user.run("berth", "doctor").stdout.split())
        self.assertIn("enforced for each job: nothing", said)
        self.assertIn("this user may not make cgroups in", said)
        ident = user.submit("-G1", "--", "echo", "in")
        self.assertEqual(user.wait(ident)["state"], "COMPLETED")
