"""berthd.service and berth-launch.service, started by systemd, with jobs of several users."""
import os
import re
import shutil
import signal

from machine import Case, MIB, TOP, User, group_of, processes_with, read, run, until

NVIDIA = 195  # the number of the driver's devices; without a driver, opening one is ENXIO
UNITS = "/run/systemd/system"
ADDRESS = "/run/berth/api.sock"
ANN, BOB, ROOT = (User(name, ADDRESS) for name in ("ann", "bob", "root"))

# Which of the devices may be opened?  EPERM is the filter's answer.
OPENER = ("import errno, os\n"
          "print('GPU', os.environ['CUDA_VISIBLE_DEVICES'])\n"
          "for i in range(3):\n"
          "    try: os.open('/dev/nvidia%d' % i, os.O_RDWR)\n"
          "    except OSError as e: print(i, errno.errorcode[e.errno], flush=True)\n")
BUSY = "import os\nos.sched_setaffinity(0, {0})\nwhile True: pass\n"


def systemctl(*words):
    done = run("systemctl", *words)
    if done.returncode != 0:
        raise AssertionError(f"systemctl {' '.join(words)}: {done.stdout}"
                             f"{run('journalctl', '-n20', '-uberthd', '-uberth-launch').stdout}")
    return done.stdout.strip()


def main_pid(unit):
    return int(systemctl("show", "-P", "MainPID", unit))


def drop_in(unit, line):
    """Restart both services with this line in one's unit; None: without."""
    path = f"{UNITS}/{unit}.service.d/test.conf"
    if line:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"[Service]\n{line}\n")
    else:
        os.unlink(path)
    systemctl("daemon-reload")
    systemctl("restart", "berth-launch", "berthd")


def upgrade():
    """What a package's upgrade does: other files under the same names, and a restart."""
    for name in ("berthd", "berth-launch", "berth-run"):
        path = shutil.which(name)
        shutil.copy2(path, f"{path}.new")
        os.rename(f"{path}.new", path)
    systemctl("daemon-reload")
    systemctl("restart", "berth-launch.service", "berthd.service")


def usage_us(group):
    return int(re.search(r"usage_usec (\d+)", read(f"{group}/cpu.stat"))[1])


class Services(Case):
    @classmethod
    def setUpClass(cls):
        for number in range(3):
            path = f"/dev/nvidia{number}"
            if not os.path.exists(path):
                os.mknod(path, 0o020666, os.makedev(NVIDIA, number))
                os.chmod(path, 0o666)
        systemctl("daemon-reload")
        systemctl("start", "berthd")
        cls.addClassCleanup(run, "systemctl", "stop", "berthd", "berth-launch")

    def tearDown(self):
        if run("systemctl", "is-active", "berthd").returncode == 0:
            ROOT.cancel_all()

    def start(self, user, *words):
        """A running job and its first process."""
        ident = user.submit("-G1", *words)
        user.wait(ident, {"RUNNING"})
        return ident, self.group(ident)

    def group(self, ident, attempt=0):
        found = [f"{TOP}/{name}/{ident}.{attempt}" for name in os.listdir(TOP)
                 if name.startswith("berth-")]
        return next(path for path in found if os.path.isdir(path))

    def test_systemd_is_told_when_berthd_is_ready(self):
        self.assertEqual(systemctl("is-active", "berthd", "berth-launch"), "active\nactive")
        self.assertEqual(read(f"/proc/{main_pid('berthd')}/status").split("Uid:")[1].split()[0],
                         str(User("berth").uid))

    def test_everything_is_enforced_and_doctor_says_so(self):
        server = ANN.server()
        self.assertEqual(server["enforced"], ["processes", "memory", "pids", "cpu", "devices"],
                         server)
        self.assertNotIn("not_enforced_because", server)
        self.assertIn("enforced for each job: processes, memory, pids, cpu, devices",
                      ANN.run("berth", "doctor").stdout)

    def test_a_job_is_its_users_and_outside_the_services(self):
        ident, group = self.start(ANN, "--mem", "100M", "-c", "2", "--", "sleep", "3600")
        systemctl("daemon-reload")  # systemd looks at all cgroups again
        pid = int(read(f"{group}/cgroup.procs").split()[0])
        self.assertEqual(os.stat(f"/proc/{pid}").st_uid, ANN.uid)
        parents = {one: read(f"/proc/{one}/status").split("PPid:")[1].split()[0]
                   for one in read(f"{group}.sup/cgroup.procs").split()}
        supervisor = [one for one, parent in parents.items() if parent not in parents]
        self.assertEqual(len(supervisor), 1, parents)  # beside it only its progress reader
        self.assertEqual(read(f"/proc/{supervisor[0]}/comm").strip(), "berth-run")
        self.assertLessEqual(len(parents), 2)
        self.assertEqual(read(f"{group}/memory.max").strip(), str(100 * MIB))
        self.assertEqual(read(f"{group}/cpu.weight").strip(), "200")
        self.assertLessEqual(int(read(f"{group}/pids.max")), 32768)
        for unit in ("berthd", "berth-launch"):
            own = read(f"{TOP}/system.slice/{unit}.service/cgroup.procs").split()
            self.assertEqual(own, [str(main_pid(unit))])
        ANN.berth("cancel", ident)
        self.assert_removed(group)
        self.assert_removed(group + ".sup")

    def test_a_job_beyond_its_memory_is_killed_and_told_so(self):
        self.assert_dies_of_memory(ANN)

    def test_processors_are_shared_by_what_was_asked_for(self):
        groups = [self.start(ANN, "-c", count, "--", "/usr/bin/python3", "-ISc", BUSY)[1]
                  for count in ("1", "2")]
        until(lambda: all(usage_us(group) > 2000000 for group in groups))  # both have begun
        before = [usage_us(group) for group in groups]
        until(lambda: usage_us(groups[1]) - before[1] > 6000000)
        small, large = (usage_us(group) - old for group, old in zip(groups, before))
        self.assertTrue(1.4 < large / small < 2.8, (small, large))

    def test_gpus_of_others_cannot_be_opened(self):
        for _ in range(2):
            ident = ANN.submit("-G1", "--", "/usr/bin/python3", "-ISc", OPENER)
            ANN.wait(ident)
            words = ANN.berth("logs", ident).split()
            own = 2 - int(words[1])  # device files are numbered backwards
            self.assertEqual(words[2:], [word for i in range(3) for word in
                                         (str(i), "ENXIO" if i == own else "EPERM")])

    def test_nothing_that_leaves_survives_a_cancellation(self):
        ident, pid, mark = self.start_escape(ANN)
        group = group_of(pid)
        self.assertEqual(group, self.group(ident))
        ANN.berth("cancel", ident)
        self.assertEqual(ANN.wait(ident)["state"], "CANCELLED")
        until(lambda: not processes_with(mark))
        self.assert_removed(group)

    def test_a_preempted_job_ends_entirely_and_starts_again(self):
        best = [self.start_escape(ANN, "--grace", "1s") for _ in range(3)]
        trial = BOB.submit("-G1", "--class", "te", "--", "sh", "-c", "echo in; sleep 1")
        self.assertEqual(BOB.wait(trial)["state"], "COMPLETED")
        moved = [ident for ident, pid, _ in best if not os.path.exists(f"/proc/{pid}")]
        self.assertEqual(len(moved), 1)
        ANN.wait(moved[0], {"RUNNING"})
        until(lambda: os.path.isdir(self.group(moved[0], 1)))

    def test_a_frozen_job_can_be_cancelled(self):
        ident, group = self.start(ANN, "--grace", "1s", "--", "sleep", "3600")
        with open(f"{group}/cgroup.freeze", "w", encoding="ascii") as file:
            file.write("1")
        until(lambda: "frozen 1" in read(f"{group}/cgroup.events"))
        ANN.berth("cancel", ident)
        self.assertEqual(ANN.wait(ident)["state"], "CANCELLED")
        self.assert_removed(group)

    def supervisor(self, ident):
        """Its process and start time, while it lives."""
        pid, start = read(f"/run/berth/jobs/{ident}.0/claim").split()
        stat = read(f"/proc/{pid}/stat")
        self.assertEqual(stat.rsplit(")", 1)[1].split()[19], start)
        self.assertEqual(read(f"/proc/{pid}/comm").strip(), "berth-run")
        return pid, start

    def check_survives(self, act):
        """A job goes on, untouched, whatever 'act' does to the services, and ends well."""
        ident = ANN.submit("-G1", "--", "sh", "-c", "echo $$; until [ -e go.$BERTH_JOB_ID ]; "
                           "do sleep 0.2; done; echo over")
        ANN.wait(ident, {"RUNNING"})
        supervisor = self.supervisor(ident)
        pid = until(lambda: ANN.berth("logs", ident)).strip()
        group = group_of(pid)
        act()
        self.assertEqual(self.supervisor(ident), supervisor)
        self.assertEqual(group_of(pid), group)
        until(lambda: ANN.run("berth", "show", ident).returncode == 0)
        job = ANN.job(ident)
        self.assertEqual((job["state"], job["attempt"]), ("RUNNING", 0), job)
        ANN.run("touch", f"go.{ident}")
        job = ANN.wait(ident)
        self.assertEqual((job["state"], job["attempt"]), ("COMPLETED", 0), job)
        self.assertEqual(ANN.berth("logs", ident).split(), [pid, "over"])
        return group

    def check_survives_in_cgroup(self, act):
        group = self.check_survives(act)
        self.assertRegex(group, rf"^{TOP}/berth-[^/]+/\d+\.0$")
        self.assert_removed(group)

    def test_a_job_survives_a_restart_of_berthd(self):
        before = main_pid("berthd")
        self.check_survives_in_cgroup(lambda: systemctl("restart", "berthd"))
        self.assertNotEqual(main_pid("berthd"), before)

    def test_a_job_survives_a_stop_of_berth_launch(self):
        def act():
            systemctl("stop", "berth-launch")
            self.assertNotEqual(run("systemctl", "is-active", "berthd").returncode, 0)
            systemctl("start", "berthd")
        self.check_survives_in_cgroup(act)

    def test_a_job_survives_a_killed_berth_launch(self):
        def act():
            os.kill(main_pid("berth-launch"), signal.SIGKILL)
            until(lambda: run("systemctl", "is-active", "berthd", "berth-launch").stdout.split()
                  == ["active", "active"] and main_pid("berthd") > 0)
        self.check_survives_in_cgroup(act)

    def test_a_job_survives_an_upgrade(self):
        before = main_pid("berthd"), main_pid("berth-launch")
        self.check_survives_in_cgroup(upgrade)
        after = main_pid("berthd"), main_pid("berth-launch")
        self.assertFalse(set(before) & set(after), (before, after))

    def test_a_job_without_a_cgroup_survives_an_upgrade(self):
        drop_in("berth-launch", "ProtectControlGroups=yes")  # it can make none
        self.addCleanup(drop_in, "berth-launch", None)
        self.assertNotIn("processes", ANN.server()["enforced"])
        group = self.check_survives(upgrade)  # spared by KillMode alone
        self.assertEqual(group, f"{TOP}/system.slice/berth-launch.service")

    def test_a_berthd_that_hangs_is_replaced_by_the_watchdog(self):
        drop_in("berthd", "WatchdogSec=20")
        self.addCleanup(drop_in, "berthd", None)
        before = main_pid("berthd")
        signs = set()
        until(lambda: signs.add(systemctl("show", "-P", "WatchdogTimestampMonotonic", "berthd"))
              or len(signs) > 3)  # a berthd that works says so in time, and is left alone
        self.assertEqual(main_pid("berthd"), before)

        def act():
            os.kill(before, signal.SIGSTOP)
            until(lambda: main_pid("berthd") not in (0, before) and
                  run("systemctl", "is-active", "berthd").returncode == 0)
        self.check_survives_in_cgroup(act)

    def test_berthd_exposes_little(self):
        said = run("systemd-analyze", "security", "--no-pager", "berthd.service").stdout
        found = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", said)
        print("#", found[0], flush=True)
        self.assertLess(float(found[1]), 3.0, said)

    def test_no_cgroup_of_a_job_is_left_when_the_services_stop(self):
        ident, group = self.start(ANN, "--", "sleep", "3600")
        ANN.berth("cancel", ident)
        ANN.wait(ident)
        self.addCleanup(systemctl, "start", "berthd")
        systemctl("stop", "berthd", "berth-launch")
        parent = os.path.dirname(group)  # stays, empty, for the next berth-launch
        until(lambda: not any(entry.is_dir() for entry in os.scandir(parent)))
