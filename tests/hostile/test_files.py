"""Files of a hostile user: whatever is put in the place of what berthd's side made, nothing of
root's is changed or shown, and berthd does not wait for it."""
import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess
import time
import unittest

from hostile import (ADA, BOB, BOUND, Case, FACTOR, PATH, SERVICE, User, end, many, read, send,
                     until, write)

HOME = pwd.getpwnam("root").pw_dir

# What may be put in the place of a file: each a function of the path and of a file of root's.
PLANTS = {
    "nothing": lambda path, _: None,
    "a pipe": lambda path, _: os.mkfifo(path, 0o666),
    "a link to root's file": lambda path, secret: os.symlink(secret, path),
    "a link to a device": lambda path, _: os.symlink("/dev/zero", path),
    "a link to itself": lambda path, _: os.symlink(path, path),
    "a folder": lambda path, _: os.mkdir(path),
    "a socket": lambda path, _: os.mknod(path, 0o777 | stat.S_IFSOCK),
    "a link to a process": lambda path, _: os.symlink("/proc/self/mem", path),
    "another's": lambda path, _: os.link("/etc/passwd", path),
}
NAMES = ("sock", "preempt", "preempt.new", "script", "claim", "launch", "launch.new", "status",
         "run.sock")


def read_or(function, *args):
    try:
        return function(*args)
    except OSError:
        return ""


def remove(path):
    try:
        os.unlink(path)
    except IsADirectoryError:
        os.rmdir(path)
    except OSError:
        pass


def plant(folder, name, kind, secret):
    path = os.path.join(folder, name)
    try:
        remove(path)
        PLANTS[kind](path, secret)
    except OSError:
        pass


def race(folders, secret, seed):
    """Replace everything in these folders, and the folders, at random moments."""
    chance = random.Random(seed)
    kinds = list(PLANTS)
    end_at = time.monotonic() + 600
    while time.monotonic() < end_at:
        for folder in folders():
            for _ in range(6):
                plant(folder, chance.choice(NAMES), chance.choice(kinds), secret)
            try:
                if chance.random() < 0.3:
                    os.rename(folder, folder + "-aside")
                    os.symlink(chance.choice(["/etc", os.path.dirname(secret), HOME]), folder)
                if chance.random() < 0.3:
                    os.chmod(folder, chance.choice([0, 0o777, 0o700]))
                else:
                    os.chmod(folder, 0o700)
            except OSError:
                pass
        time.sleep(0.001)


LIBC = ctypes.CDLL(None)  # before the user is changed
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MNT_DETACH = 0x1000, 0x4000, 2


def enter_namespaces():
    """Mounts of a user are seen in a namespace of its own only."""
    return LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0


def bind(source, path):
    return LIBC.mount(source.encode(), path.encode(), None, MS_BIND | MS_REC, None) == 0


def cover(path, folder="/etc", file="/etc/passwd"):
    """Mount something of root's over it."""
    return bind(folder if os.path.isdir(path) else file, path)


def race_with_mounts(folders, _, seed):
    """Mount over all of these at random moments, and take the mounts away again."""
    chance = random.Random(seed)
    end_at = time.monotonic() + 600
    if not enter_namespaces():
        return
    while time.monotonic() < end_at:
        for folder in folders():
            if chance.random() < 0.7:
                cover(folder)
            else:
                LIBC.umount2(folder.encode(), MNT_DETACH)
        time.sleep(0.001)


class Folder(Case):
    """The folder that a job has, while it runs and when it is removed."""

    def test_nothing_planted_in_the_jobs_folder_does_harm(self):
        for kind in PLANTS:
            ident = self.submit(ADA, "trap '' TERM; while :; do sleep 900; done", grace_s=0.1)
            self.wait(ident, {"RUNNING"})
            folder = os.path.join(self.folder(ident), "job")
            ADA.call(lambda f=folder, k=kind: [plant(f, name, k, self.secret)
                                               for name in NAMES])
            self.end_all(ident)
            until(lambda i=ident: not os.path.exists(self.folder(i)), BOUND)
        self.assert_unharmed()

    def test_a_script_is_its_users(self):
        script = "#!/bin/sh\nstat -c '%u %a' $0\nid -u\n"
        ident = self.submit(ADA, [], script=script)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.output(ident), f"{ADA.uid} 700\n{ADA.uid}\n")

    def test_a_pipe_in_the_place_of_the_warning_does_not_hold_a_preemption_up(self):
        ident = self.submit(ADA, "trap 'exit 0' TERM; mkfifo $(dirname $BERTH_PREEMPT_FILE)/"
                            "preempt.new; echo up; while :; do sleep 0.05; done", gpus=4,
                            grace_s=20)
        self.wait(ident, {"RUNNING"})
        until(lambda: "up" in self.output(ident))
        trial = self.submit(BOB, "true", gpus=4, **{"class": "te"})
        start = time.monotonic()
        self.wait(trial)
        self.assertLess(time.monotonic() - start, 15, "it had its whole grace period")
        self.assert_unharmed()

    def test_folders_are_removed_however_deep_they_are(self):
        script = """
import os
os.chdir(os.path.dirname(os.environ['BERTH_PREEMPT_FILE']))
for name, depth in (('a', 3000), ('x' * 250, 400)):
    here = os.open('.', os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name); os.chdir(name)
    open('file', 'w').close()
    os.mkdir('closed'); open('closed/file', 'w').close(); os.chmod('closed', 0)
    os.fchdir(here)
os.symlink('/etc', 'link')
for i in range(300): open('file-%d' % i, 'w').close()
os.mkdir('wide')
for i in range(300): os.mkdir('wide/%d' % i); os.mkdir('wide/%d/below' % i)
os.chmod('.', 0)
"""
        ident = self.python(ADA, script)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED", self.output(ident))
        until(lambda: not os.path.exists(self.folder(ident)), 5 * BOUND)
        self.assertTrue(os.path.exists("/etc/passwd"))
        self.assert_unharmed()

    def test_a_folder_is_emptied_with_its_owners_rights_alone(self):
        ident = self.submit(ADA, "sleep 900", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        job = os.path.join(self.folder(ident), "job")
        shared = os.path.join(job, "shared")
        theirs = os.path.join(shared, "theirs")
        ADA.call(os.chmod, job, 0o711)
        ADA.call(os.mkdir, shared)
        ADA.call(os.chmod, shared, 0o777)
        BOB.call(os.mkdir, theirs)
        BOB.call(write, os.path.join(theirs, "file"), "kept\n")
        first, second = os.path.join(job, "first"), os.path.join(job, "second")
        ADA.call(os.mknod, first)
        self.end_all(ident)
        until(lambda: not os.path.exists(first), BOUND)
        ADA.call(os.mknod, second)  # it is emptied again and again
        until(lambda: not os.path.exists(second), BOUND)
        self.assertEqual(read(os.path.join(theirs, "file")), "kept\n")
        shutil.rmtree(theirs)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)

    def test_a_link_to_a_daemons_socket_does_not_kill_the_daemon(self):
        path = os.path.join(self.open, "daemon.sock")
        victim = os.fork()
        if victim == 0:
            with socket.socket(socket.AF_UNIX) as wire:
                wire.bind(path)
                wire.listen()
                time.sleep(900)
            os._exit(0)
        self.addCleanup(end, victim)
        until(lambda: os.path.exists(path))
        os.chmod(path, 0o777)
        for how in ("cancel", "kill"):
            ident = self.submit(ADA, "d=$(dirname $BERTH_PREEMPT_FILE); for n in sock run.sock;"
                                f"do ln -sf {path} $d/$n; done; echo up; sleep 900", grace_s=0.2)
            self.wait(ident, {"RUNNING"})
            until(lambda i=ident: "up" in self.output(i))
            if how == "kill":
                os.kill(self.supervisor(ident), signal.SIGKILL)
            self.end_all(ident)
            self.assertEqual(os.waitpid(victim, os.WNOHANG), (0, 0))
        os.unlink(path)

    def test_a_checkpoint_folder_is_only_its_users(self):
        ident = self.submit(ADA, "echo saved > $BERTH_CKPT_DIR/file; pwd -P")
        self.wait(ident)
        folder = os.path.join(self.daemon.state, "ckpt", str(ident))
        self.assertEqual((os.stat(folder).st_uid, os.stat(folder).st_mode & 0o777),
                         (ADA.uid, 0o700))
        for attack in (lambda: os.listdir(folder), lambda: os.rename(folder, folder + "2"),
                       lambda: os.mkdir(os.path.join(os.path.dirname(folder), "999999")),
                       lambda: os.symlink("/etc", os.path.join(os.path.dirname(folder), "77"))):
            with self.assertRaises(PermissionError):
                BOB.call(attack)
        other = self.submit(BOB, "ls $BERTH_CKPT_DIR; cat $BERTH_CKPT_DIR/file; echo no >"
                            "$BERTH_CKPT_DIR/file", ckpt_dir=folder)
        self.wait(other)
        self.assertNotIn("saved", self.output(other).split())
        self.assertEqual(read(os.path.join(folder, "file")), "saved\n")
        self.assert_unharmed()

    def test_a_checkpoint_folder_of_links_shows_and_changes_nothing(self):
        folder = os.path.join(self.open, "links")
        ADA.call(os.mkdir, folder)
        for name, to in (("root", HOME), ("etc", "/etc/shadow"), ("loop", folder)):
            ADA.call(os.symlink, to, os.path.join(folder, name))
        ADA.call(os.mkfifo, os.path.join(folder, "pipe"))
        idents = [self.submit(ADA, "sleep 1.2", ckpt_dir=where)
                  for where in (folder, HOME + "/ckpt", "/etc", "/proc/self", self.secret)]
        for ident in idents:
            self.wait(ident)
        self.assertFalse(os.path.exists(HOME + "/ckpt"))
        self.assert_unharmed()


class Race(Case):
    """A process that replaces whatever it can reach, at any moment."""

    def folders(self):
        """The folders that a user can change, while there are such."""
        jobs = os.path.join(self.daemon.state, "run", "jobs")
        ckpt = os.path.join(self.daemon.state, "ckpt")
        guess = range(max(1, self.newest - 8), self.newest + 3)
        return [path for ident in guess for path in (
            os.path.join(jobs, f"{ident}.0", "job"), os.path.join(jobs, f"{ident}.1", "job"),
            os.path.join(jobs, f"{ident}.0"), os.path.join(ckpt, str(ident)))]

    def start_races(self, how=race, count=2):
        self.newest = 1
        shared = os.path.join(self.daemon.dir, "newest")
        write(shared, "1")

        def folders():
            try:
                self.newest = int(read(shared) or 1)
            except (OSError, ValueError):
                pass
            return self.folders()
        self.racers = [ADA.spawn(how, folders, self.secret, seed) for seed in range(count)]
        for pid in self.racers:
            self.addCleanup(end, pid)
        return shared

    def assert_all_end(self, idents):
        """Some are started again and again while the race lasts: that harms their owner."""
        for pid in self.racers:
            end(pid)
        for ident in idents:
            send(self.daemon.socket, "DELETE", f"/v1/jobs/{ident}")
        for ident in idents:
            self.wait(ident)
        for ident in idents:
            until(lambda i=ident: not os.path.exists(self.folder(i)), BOUND)
        self.assert_unharmed()

    def submit_some(self, shared, count):
        idents = []
        for i in range(count):
            request = {"gpus": 0, "grace_s": 0.1,
                       "env": {"PATH": PATH}, "output": os.path.join(self.open, f"out-{i}")
                       if i % 3 == 0 else None}
            request = {key: value for key, value in request.items() if value is not None}
            script = ("true", "sleep 0.05", "touch $BERTH_CKPT_DIR/x; sleep 900")[i % 3]
            if i % 4 == 0:
                request.update(command=None, script=f"#!/bin/sh\n{script}\n")
            idents.append(self.submit(ADA, script, **request))
            with open(shared, "w", encoding="utf-8") as file:
                file.write(str(idents[-1]))
        return idents

    def test_folders_swapped_while_jobs_start_and_end_do_no_harm(self):
        for _ in range(many(2, 100)):
            shared = self.start_races()
            idents = self.submit_some(shared, 18)
            for ident in idents[2::3]:
                send(self.daemon.socket, "DELETE", f"/v1/jobs/{ident}")  # it may have ended
            self.wait(idents[1])  # not a script: one that leads to /dev/zero has no end
            self.assert_all_end(idents)

    def test_mounts_over_folders_while_jobs_start_and_end_do_no_harm(self):
        for turn in range(many(2, 100)):
            shared = self.start_races(race_with_mounts)
            idents = self.submit_some(shared, 18)
            if turn % 2:
                self.daemon.kill()
                self.daemon.start()
            for ident in idents[2::3]:
                send(self.daemon.socket, "DELETE", f"/v1/jobs/{ident}")  # it may have ended
            self.assert_all_end(idents)

    def test_folders_swapped_while_berthd_is_killed_and_started_do_no_harm(self):
        for turn in range(many(3, 100)):
            shared = self.start_races()
            idents = self.submit_some(shared, 9)
            self.daemon.kill(signal.SIGKILL if turn % 2 else signal.SIGTERM)
            start = time.monotonic()
            self.daemon.start()
            self.assertLess(time.monotonic() - start, BOUND, "berthd hangs at its start")
            for ident in idents[2::3]:
                send(self.daemon.socket, "DELETE", f"/v1/jobs/{ident}")  # it may have ended
            self.assert_all_end(idents)


class Mounts(Case):
    """Something is mounted over what belongs to a job: by its user, or by accident."""

    def start_job(self, **request):
        ident = self.submit(ADA, "mkdir $(dirname $BERTH_PREEMPT_FILE)/below; echo up;"
                            "sleep 900", **request)
        self.wait(ident, {"RUNNING"})
        return ident

    def test_mounts_of_a_user_hide_nothing_and_hold_nothing_up(self):
        output = os.path.join(self.open, "covered")
        ident = self.start_job(output=output)
        until(lambda: "up" in read(output), BOUND)
        folder, ready = self.folder(ident), os.path.join(self.open, "mounted")
        ckpt = os.path.join(self.daemon.state, "ckpt", str(ident))

        def hold():
            done = enter_namespaces() and all([cover(os.path.join(folder, "job", "below")),
                                               cover(os.path.join(folder, "job")), cover(ckpt),
                                               cover(output)])
            write(ready, "all" if done else "none")
            time.sleep(900)
        pid = ADA.spawn(hold)
        self.addCleanup(end, pid)
        until(lambda: os.path.exists(ready) and read(ready), BOUND)
        if read(ready) == "none":
            self.skipTest("users have no namespaces of their own here")
        self.assertEqual(self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")[1], "up\n")
        self.end_all(ident)
        until(lambda: not os.path.exists(folder) and not os.path.exists(ckpt), BOUND)
        self.assertEqual(os.waitpid(pid, os.WNOHANG), (0, 0))  # it has its mounts still
        self.assertTrue(os.path.exists("/etc/passwd"))
        self.assert_unharmed()

    def mount_over(self, what, path):
        """A part of the same file system, or another one."""
        words = ["--bind", what] if what else ["-t", "tmpfs", "tmpfs"]
        if subprocess.run(["mount", *words, path], check=False).returncode:
            self.skipTest("cannot mount here")
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=False,
                        stderr=subprocess.DEVNULL)  # of a case that failed

    def assert_not_crossed(self, ident, place, treasure):
        """The attempt ends; the mount and what is below it stay, and berthd says so."""
        path, before = os.path.join(self.folder(ident), place), len(self.daemon.words())
        self.mount_over(treasure, path)
        if not treasure:
            write(os.path.join(path, "kept"), "kept\n")
            os.chmod(path, 0o750)
        self.end_all(ident)
        until(lambda: f"{self.folder(ident)} is not removed, because something is mounted there"
              in self.daemon.words()[before:], BOUND)
        self.assertEqual(read(os.path.join(path, "kept")), "kept\n", place)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o750, place)
        self.assert_answers()
        subprocess.run(["umount", path], check=True)

    def make_treasure(self, owner):
        treasure = os.path.join(self.daemon.dir, f"treasure-{owner}")
        os.makedirs(treasure, exist_ok=True)
        write(os.path.join(treasure, "kept"), "kept\n")
        for path in (treasure, os.path.join(treasure, "kept")):
            os.chown(path, owner, -1)
        os.chmod(treasure, 0o750)
        return treasure

    def test_a_removal_does_not_cross_a_mount_point(self):
        idents = []
        for place in ("job", "job/below", ""):
            for treasure in (None, self.make_treasure(0), self.make_treasure(ADA.uid)):
                ident = self.start_job()
                until(lambda i=ident: "up" in self.output(i), BOUND)
                self.assert_not_crossed(ident, place, treasure)
                idents.append(ident)
        self.daemon.stop()
        self.daemon.start()
        for ident in idents:
            until(lambda i=ident: not os.path.exists(self.folder(i)), BOUND)
        self.assert_unharmed()

    def restart(self, flags):
        self.daemon.stop()
        self.daemon.flags = flags
        self.daemon.start()

    def test_checkpoints_of_an_old_job_are_not_removed_across_a_mount_point(self):
        config = os.path.join(self.daemon.dir, "berthd.yaml")
        write(config, "keep_jobs: 1s\n")
        idents = [self.start_job() for _ in range(3)]
        paths = [os.path.join(self.daemon.state, "ckpt", str(ident)) for ident in idents]
        for path, treasure in zip(paths, (None, self.make_treasure(0),
                                          self.make_treasure(ADA.uid))):
            until(lambda p=path: os.path.exists(p), BOUND)
            self.mount_over(treasure, path)
            if not treasure:
                write(os.path.join(path, "kept"), "kept\n")
        flags, before = list(self.daemon.flags), len(self.daemon.words())
        self.addCleanup(self.restart, flags)
        self.restart([*flags, "--config", config])
        for ident in idents:
            self.cancel(ident)
        for ident, path in zip(idents, paths):
            until(lambda i=ident: f"checkpoint folder of job {i} is not removed, because "
                  "something is mounted there" in self.daemon.words()[before:], BOUND)
            self.assertEqual(read(os.path.join(path, "kept")), "kept\n")
            subprocess.run(["umount", path], check=True)
        self.assert_unharmed()


class Restart(Case):
    """berthd comes up while jobs are placed or running."""

    gpus = "v100:1"

    def test_a_running_job_goes_on_under_its_supervisor(self):
        ident = self.submit(ADA, "sleep 900")
        self.wait(ident, {"RUNNING"})
        pid = self.supervisor(ident)
        for number in (signal.SIGKILL, signal.SIGTERM):
            self.daemon.kill(number)
            self.daemon.start()
            self.wait(ident, {"RUNNING"})
            time.sleep(0.3)  # a supervisor that is lost is noticed by then
            self.assertEqual(self.job(ident)["state"], "RUNNING")
            self.assertEqual(self.supervisor(ident), pid)
            os.kill(pid, 0)
        self.end_all(ident)

    def test_a_job_that_was_placed_starts_once(self):
        out = os.path.join(self.open, "once")
        ident = self.submit(ADA, f"echo $$ >> {out}; sleep 900")
        self.daemon.kill()
        self.daemon.start()
        self.wait(ident, {"RUNNING"})
        until(lambda: os.path.exists(out) and read(out), BOUND)
        self.assertEqual(len(read(out).split()), 1)
        self.assert_unharmed()

    def test_the_next_attempt_has_its_checkpoint_folder(self):
        """The last one is removed while the next one starts."""
        for _ in range(many(1, 12)):
            ident = self.submit(ADA, "for i in 1 2 3 4 5 6 7 8; do test -d $BERTH_CKPT_DIR ||"
                                " echo none; sleep 0.05; done; echo up; sleep 900")
            for attempt in range(many(4, 8)): # a job that is lost more than ten times fails
                until(lambda a=attempt, i=ident: read_or(self.output, i).count("up") > a, BOUND)
                os.kill(self.supervisor(ident, attempt), signal.SIGKILL)
            until(lambda i=ident, a=attempt: os.path.exists(self.folder(i, a + 1)), BOUND)
            self.assertNotIn("none", self.output(ident))
            self.end_all(ident)

    def test_nothing_forged_while_berthd_is_away_is_believed(self):
        ident = self.submit(ADA, "sleep 900")
        self.wait(ident, {"RUNNING"})
        folder = self.folder(ident)
        self.daemon.kill()

        def forge():
            for name, text in (("claim", "1 1\n"), ("launch", "become=1\0uid=0\0"),
                               ("launch.new", "uid=0\0"),
                               ("status", "ended finished 0 0 1 1 1 \n")):
                for place in (folder, os.path.join(folder, "job")):
                    path = os.path.join(place, name)
                    for attack in (lambda p=path: os.unlink(p),
                                   lambda p=path, t=text: write(p, t),
                                   lambda p=path: os.mkfifo(p + ".x")):
                        try:
                            attack()
                        except OSError:
                            pass
        ADA.call(forge)
        pid = self.supervisor(ident)
        self.daemon.start()
        self.wait(ident, {"RUNNING"})
        self.assertEqual(self.supervisor(ident), pid)
        self.assertEqual(sorted(os.listdir(folder)), ["claim", "job", "run.sock", "status"])
        self.end_all(ident)
        self.assert_unharmed()


class Rebuild(Case):
    """A commit fails, and berthd takes up its jobs anew."""

    gpus = "v100:2"

    def setUp(self):
        """The store is on a small file system of its own."""
        self.disk = os.path.join(self.daemon.dir, "disk")
        os.mkdir(self.disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0711", "tmpfs",
                           self.disk], check=False).returncode:
            self.skipTest("cannot mount a small file system here")
        self.daemon.stop()
        self.state, self.daemon.state = self.daemon.state, os.path.join(self.disk, "s")
        self.daemon.start()

    def tearDown(self):
        if hasattr(self, "state"):
            filler = os.path.join(self.disk, "filler")
            if os.path.exists(filler):
                os.remove(filler)
            try:
                super().tearDown()
            finally:
                self.daemon.stop()
                subprocess.run(["umount", "-l", self.disk], check=True)
                self.daemon.state = self.state
                self.daemon.start()

    @staticmethod
    def fill(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while True:
                os.write(fd, b"x" * 4096)
        except OSError:
            os.close(fd)

    def test_a_commit_that_fails_gives_nothing_to_who_planted_files(self):
        running = self.submit(ADA, "sleep 900", output=os.path.join(self.open, "running"))
        self.wait(running, {"RUNNING"})
        pid, folder = self.supervisor(running), self.folder(running)
        ADA.call(lambda: [plant(os.path.join(folder, "job"), name, "a link to root's file",
                                self.secret) for name in NAMES])
        filler = os.path.join(self.disk, "filler")
        self.fill(filler)
        for _ in range(many(20, 500)):
            self.ask(ADA, "POST", "/v1/jobs", {"command": ["sleep", "0"], "cwd": "/",
                                               "gpus": 1, "env": {"PATH": PATH}})
        os.kill(pid, 0)
        os.remove(filler)
        until(lambda: self.ask(ADA, "POST", "/v1/jobs", {
            "command": ["true"], "cwd": "/", "gpus": 1, "env": {"PATH": PATH}})[0] == 201)
        self.assertEqual(self.job(running)["state"], "RUNNING")
        self.assertEqual(self.supervisor(running), pid)
        self.end_all(running)
        self.assert_unharmed()


class Output(Case):
    """Where a job's output goes, and who may read it there."""

    def test_output_is_written_with_the_users_rights_alone(self):
        for path in (self.secret, "/etc/berth-hostile", HOME + "/out", "/proc/self/mem",
                     "/proc/self/fd/3", "/proc/self/fd/5", "/proc/self/oom_score_adj",
                     "/proc/self/cwd/claim", "/proc/self/root/etc/shadow",
                     os.path.join(self.daemon.state, "berth.db"),
                     os.path.join(self.daemon.state, "log", "99.out"),
                     os.path.join(self.daemon.state, "run", "api.sock")):
            ident = self.submit(ADA, "echo harm", output=path)
            self.assertEqual(self.wait(ident)["state"], "FAILED", path)
        self.assertFalse(os.path.exists("/etc/berth-hostile"))
        self.assert_unharmed()

    def test_a_link_of_proc_does_not_lead_to_what_the_launcher_has_open(self):
        for fd in range(0, 24):
            ident = self.submit(ADA, "echo harm", output=f"/proc/self/fd/{fd}", gpus=0)
            self.assertEqual(self.wait(ident)["state"], "FAILED", fd)
        self.assert_unharmed()

    def test_links_pipes_and_devices_are_not_read_for_the_user(self):
        path = os.path.join(self.open, "swapped")
        ident = self.submit(ADA, "echo mine; sleep 900", output=path)
        self.wait(ident, {"RUNNING"})
        until(lambda: os.path.exists(path) and read(path))
        for kind in PLANTS:
            ADA.call(plant, self.open, "swapped", kind, self.secret)
            start = time.monotonic()
            status, text = self.ask(ADA, "GET", f"/v1/jobs/{ident}/log?offset=0")
            self.assertNotIn("of root", str(text), kind)
            self.assertNotIn("root:x", str(text), kind)
            self.assertLess(time.monotonic() - start, 10, kind)
        self.end_all(ident)
        self.assert_unharmed()

    def test_links_swapped_while_output_is_read_show_nothing_of_others(self):
        path = os.path.join(self.open, "turning")
        ident = self.submit(ADA, "echo mine; sleep 900", output=path)
        self.wait(ident, {"RUNNING"})
        until(lambda: os.path.exists(path) and read(path))

        def turn():
            while True:
                for target in (self.secret, "/etc/shadow", path + "2"):
                    try:
                        os.symlink(target, path + ".new")
                        os.rename(path + ".new", path)
                        write(path + ".new", "mine\n", 0o644)
                        os.rename(path + ".new", path)
                    except OSError:
                        pass
        pid = ADA.spawn(turn)
        self.addCleanup(end, pid)

        def ask_often(count):
            return [send(self.daemon.socket, "GET", f"/v1/jobs/{ident}/log")[1]
                    for _ in range(count)]
        for text in ADA.call(ask_often, many(150, 5000)):
            self.assertNotIn("of root", str(text))
            self.assertNotIn("root:", str(text))
        end(pid)
        self.assert_unharmed()

    def test_a_reader_that_hangs_does_not_hold_berthd_up(self):
        pipe = os.path.join(self.open, "pipe")
        ADA.call(os.mkfifo, pipe)
        ident = self.submit(ADA, "echo never", output=pipe)
        self.assertEqual(self.wait(ident)["state"], "FAILED")  # it has no reader
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        ident = self.submit(ADA, "trap '' TERM; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx;"
                            "done", output=pipe, grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        self.assert_answers()
        status, _ = self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")
        self.assertIn(status, (200, 400, 403, 404, 409, 500))
        self.end_all(ident)
        failing = self.submit(ADA, ["/nowhere/program"], output=pipe)  # the pipe is full
        self.assertEqual(self.wait(failing)["state"], "FAILED")
        self.assert_unharmed()

    def test_a_reader_that_leaves_does_not_end_the_supervisor(self):
        pipe = os.path.join(self.open, "leaving")
        ADA.call(os.mkfifo, pipe)

        def come_and_go():
            while True:
                os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        pid = ADA.spawn(come_and_go)
        self.addCleanup(end, pid)
        for _ in range(many(6, 300)):
            ident = self.submit(ADA, ["/nowhere/program"], output=pipe, gpus=0)
            self.assertEqual(self.wait(ident)["state"], "FAILED")

    def test_a_lease_on_its_output_does_not_hold_berthd_up(self):
        """Opening a file waits for a lease of its owner, for up to 45 s."""
        script = """
import fcntl, os, sys, time
path = sys.argv[1]
os.close(1); os.close(2)
fd = os.open(path, os.O_RDWR)
while True:
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        break
    except BlockingIOError: # who started it still has the file open
        time.sleep(0.01)
import signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
open(os.environ['BERTH_CKPT_DIR'] + '/leased', 'w').close()
time.sleep(900)
"""
        log = os.path.join(self.daemon.state, "log")
        for path in (None, os.path.join(self.open, "leased")):
            request = {"output": path} if path else {}
            ident = self.python(ADA, script, path or "-", **request) if path else None
            if not path:
                guess = self.python(ADA, "pass", gpus=0)
                self.wait(guess)
                ident = self.python(ADA, script, os.path.join(log, f"{guess + 1}.out"))
            self.wait(ident, {"RUNNING"})
            until(lambda i=ident: os.path.exists(os.path.join(
                self.daemon.state, "ckpt", str(i), "leased")), BOUND)
            start = time.monotonic()
            self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")
            self.assertLess(time.monotonic() - start, 10)
            self.assert_answers()
            self.daemon.kill()
            start = time.monotonic()
            self.daemon.start()
            self.assertLess(time.monotonic() - start, 10 * FACTOR, "berthd waits for a lease")
            self.end_all(ident)

    def test_a_file_of_another_owner_is_not_shown_as_a_jobs_output(self):
        """As of an earlier job with the same number, where a database was lost."""
        ident = self.submit(ADA, "true", hold=True)
        path = os.path.join(self.daemon.state, "log", f"{ident}.out")
        write(path, "of another\n", 0o640)
        for owner, seen in ((BOB.uid, False), (ADA.uid, True)):
            os.chown(path, owner, User(SERVICE).gid)
            status, text = self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")
            self.assertEqual((status == 200, "of another" in str(text)), (seen, seen), text)

    def test_others_output_is_nobodys_to_read_or_change(self):
        ident = self.submit(ADA, "echo private")
        self.wait(ident)
        path = os.path.join(self.daemon.state, "log", f"{ident}.out")
        for attack in (read, os.unlink, lambda p: os.rename(p, p + "2"),
                       lambda p: os.link(p, os.path.join(self.open, "linked")),
                       lambda p: open(p, "a", encoding="utf-8").write("x")):
            with self.assertRaises(PermissionError):
                BOB.call(attack, path)
        other = self.submit(BOB, "true", output=path)
        self.assertEqual(self.wait(other)["state"], "FAILED")
        status, text = self.ask(BOB, "GET", f"/v1/jobs/{ident}/log")
        self.assertIn(status, (403, 404))
        self.assertEqual(read(path), "private\n")


class Lock(Case):
    """What root does in folders of the service's, before it gives up its rights."""

    def test_a_lock_that_is_another_file_is_not_truncated(self):
        self.daemon.stop()
        service, lock = User(SERVICE), os.path.join(self.daemon.state, "berthd.lock")
        for make in (lambda: os.symlink(self.secret, lock),
                     lambda: os.mkfifo(lock)):
            service.call(lambda m=make: (os.unlink(lock), m()))
            with self.assertRaises(AssertionError):
                self.daemon.start()
        os.unlink(lock)
        os.link(self.secret, lock)
        with self.assertRaises(AssertionError):
            self.daemon.start()
        os.unlink(lock)
        self.daemon.start()
        self.assert_unharmed()

    def test_a_file_that_has_another_name_does_not_become_the_services(self):
        self.daemon.stop()
        linked = os.path.join(self.daemon.state, "linked")
        os.link(self.secret, linked)
        self.daemon.start()
        os.unlink(linked)
        self.assert_unharmed()


if __name__ == "__main__":
    unittest.main()
