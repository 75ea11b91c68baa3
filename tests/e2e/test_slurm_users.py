"""Berth on Slurm for all users: what its processes may do, progress, output, holds of the owner's
own, and how it leaves.  berthd has no rights; berth-slurm runs as SlurmUser, which is not root."""
import fcntl
import glob
import http.client
import json
import os
import pwd
import re
import signal
import stat
import struct
import subprocess
import termios
import time
import unittest

from live import SERVICE
from slurm_lab import NOBODY, Lab, missing
from support import BUILD, ROOT
from test_slurm import TRAPS, Slurmed, reason, state

BERTH = os.path.join(BUILD, "berth")
PYTHON = os.path.join(ROOT, "python")
SOMEBODY = 12345  # another user, who owns nothing
GAMES = 5  # another user, who has jobs
SLURM = "slurm"  # SlurmUser


def status_of(pid):
    """Fields of a process that say what it may do."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return {line.split(":")[0]: line.split()[1:] for line in file}


def children(pid):
    """Child processes that are alive: number by name."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        pids = [int(word) for word in file.read().split()]
    found = {}
    for child in pids:
        try:
            status = status_of(child)
        except (FileNotFoundError, ProcessLookupError): # it ended before, or meanwhile
            continue
        if status["State"][0] not in "ZX":
            found[status["Name"][0]] = child
    return found


@unittest.skipIf(missing(), missing())
class Users(unittest.TestCase):
    """One Slurm for all; a berthd each."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(env={"BERTH_LAB_SLURM_USER": SLURM})
        cls.addClassCleanup(cls.lab.down)
        cls.munge = os.path.join(cls.lab.dir, "run", "munge.socket")

    def setUp(self):
        self.daemon = None
        self.addCleanup(self.clear)

    def clear(self):
        for user in (NOBODY, GAMES):
            self.lab.run("scancel", "-u", str(user))
        self.until(lambda: not self.lab.run("squeue", "-h", "-a").stdout.strip())
        # Slurm may give a number out again after a crash, to a job of another user.
        for path in glob.glob(os.path.join(self.lab.work, "*.out")):
            os.remove(path)
        if self.daemon:
            words = self.daemon.words()
            self.daemon.wipe()
            self.assertNotIn("nothing was changed", words)

    def until(self, there, seconds=60):
        """What 'there' brings, once it brings something."""
        end = time.monotonic() + seconds
        while True:
            found = there()
            if found:
                return found
            self.assertLess(time.monotonic(), end, self.daemon and self.daemon.words())
            time.sleep(0.05)

    def begin(self, *flags):
        self.daemon = Slurmed(self.lab, "--system", *flags,
                              more=f"slurm_user: {SLURM}\nmunge_socket: {self.munge}\n")
        self.daemon.start()
        return self.daemon

    def launcher(self):
        """The berth-launch of this berthd."""
        return children(self.daemon.process.pid)["berth-launch"]

    def bridge(self):
        """The berth-slurm of this berthd, or None."""
        return children(self.launcher()).get("berth-slurm")

    def assert_powerless(self, pid, user):
        """A process has the rights of this user and no others."""
        status = status_of(pid)
        self.assertEqual(status["Uid"], [str(pwd.getpwnam(user).pw_uid)] * 4)
        self.assertEqual(status["Gid"], [str(pwd.getpwnam(user).pw_gid)] * 4)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(status[name][0], 16), 0, name)
        self.assertEqual(status["NoNewPrivs"], ["1"])

    def assert_separated(self):
        """berthd and what speaks with Slurm for it have no rights on this machine."""
        self.assert_powerless(self.daemon.process.pid, SERVICE)
        self.assert_powerless(self.until(self.bridge), SLURM)

    def berth(self, *words, **env):
        return subprocess.run([BERTH, *words], text=True, capture_output=True,
                              env={**self.lab.env, "BERTH_ADDR": self.daemon.socket, **env})

    def listen(self):
        """A berthd that jobs can reach over TCP, and where."""
        daemon = self.begin("--listen", "127.0.0.1:0")
        port = self.until(lambda: self.port_of(daemon.process.pid))
        return daemon, f"http://127.0.0.1:{port}"

    def listen_with_tls(self):
        """The same for jobs on other hosts: they know berthd by its key."""
        daemon = self.begin("--listen", "0.0.0.0:0")
        server = daemon.ask("GET", "/v1/server")[1]
        return daemon, f"https://127.0.0.1:{server['tls_port']}#{server['fingerprint']}"

    @staticmethod
    def port_of(pid):
        """The TCP port that a process listens on, from the kernel."""
        ours = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
            except FileNotFoundError:
                continue
            if found:
                ours.add(found.group(1))
        with open("/proc/net/tcp", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                words = line.split()
                if words[3] == "0A" and words[9] in ours:
                    return int(words[1].split(":")[1], 16)
        return None

    def export(self, **env):
        env.setdefault("BERTH_MUNGE_SOCKET", self.munge)
        return "--export=ALL," + ",".join(f"{key}={value}" for key, value in env.items())

    def post(self, to, path, body, token=None, text=None):
        line = http.client.HTTPConnection(to[len("http://"):], timeout=30)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        line.request("POST", path, json.dumps(body) if text is None else text, headers)
        answer = line.getresponse()
        data = answer.read()
        line.close()
        return answer.status, json.loads(data)

    def credential(self, uid, purpose):
        done = self.lab.run("munge", "--socket", self.munge, f"--string={purpose}", user=uid)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def reported(self, daemon, ident, step):
        """Its progress, once it has come so far."""
        daemon.seen(ident)

        def there():
            found = daemon.job(ident).get("progress", {})
            return found if found.get("step", 0) >= step else None
        return self.until(there)

    # --- processes

    def test_jobs_of_two_users_without_a_right(self):
        daemon = self.begin()
        self.assert_separated()
        script = "#SBATCH --signal=B:USR1@30\n" + TRAPS.format(log="/dev/null")
        runs = [self.lab.submit("--gres=gpu:4", script=script, user=user)
                for user in (NOBODY, GAMES, NOBODY, GAMES)]
        for ident in runs:
            daemon.until(ident, "RUNNING")
        self.assert_separated()
        # Held, since nothing is free.
        waits = self.lab.submit("--gres=gpu:4", user=GAMES)
        daemon.until(waits, "PENDING")
        self.until(lambda: "JobHeld" in reason(self.lab, waits))
        self.assert_separated()
        # Preempted: the trial job of one user takes the GPUs of another job.
        trial = self.lab.submit("--gres=gpu:4", "--comment=berth:class=te", script="sleep 1")
        daemon.until(trial, "COMPLETED")
        self.until(lambda: any(daemon.job(ident)["preemptions"] for ident in runs))
        self.assert_separated()
        # Released, and finished.
        daemon.ask("DELETE", f"/v1/jobs/{runs[0]}")
        daemon.ask("DELETE", f"/v1/jobs/{runs[1]}")
        daemon.until(waits, "RUNNING")
        self.assertEqual({daemon.job(ident)["user"] for ident in (*runs, waits)},
                         {pwd.getpwuid(user).pw_name for user in (NOBODY, GAMES)})
        short = self.lab.submit("--gres=gpu:1", script="exit 3", user=GAMES)
        for ident in (waits, *runs[2:]):
            self.lab.run("scancel", str(ident))
            daemon.until(ident, "CANCELLED")
        self.assertEqual(daemon.until(short, "FAILED")["exit_code"], 3)
        self.assert_separated()
        self.assertEqual(status_of(self.launcher())["Uid"], ["0"] * 4)

    def test_berth_slurm_is_killed_and_another_is_started(self):
        daemon = self.begin()
        ident = self.lab.submit("--gres=gpu:1")
        daemon.until(ident, "RUNNING")
        for _ in range(3):
            before = self.until(self.bridge)
            os.kill(before, signal.SIGKILL)
            self.until(lambda b=before: self.bridge() not in (None, b))
            self.until(lambda: "trouble" not in daemon.ask("GET", "/v1/server")[1])
        self.assertEqual(daemon.until(ident, "RUNNING")["attempt"], 0)
        done = self.lab.submit("--gres=gpu:1", script="true", user=GAMES)
        daemon.until(done, "COMPLETED")
        self.assert_separated()

    def test_the_bell_is_berthds_and_berth_slurm_hears_it(self):
        self.begin()
        self.until(self.bridge)
        found = os.stat(self.lab.bell)
        self.assertEqual((found.st_uid, stat.S_IMODE(found.st_mode)),
                         (pwd.getpwnam(SERVICE).pw_uid, 0o622))
        bell = os.open(self.lab.bell, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, bell)

        def left():
            return struct.unpack("i", fcntl.ioctl(bell, termios.FIONREAD, bytes(4)))[0]
        self.until(lambda: left() == 0)
        ring = self.lab.run("sh", "-c", f"echo . > {self.lab.bell}", user=NOBODY)
        self.assertEqual(ring.returncode, 0, ring.stderr)
        self.until(lambda: left() == 0)
        self.daemon.stop()
        self.assertFalse(os.path.exists(self.lab.bell))

    def test_berthd_is_started_by_a_service_manager(self):
        listen = os.path.join(self.lab.dir, "orders")
        with open(os.path.join(self.lab.dir, "launch.log"), "wb") as log:
            launcher = subprocess.Popen(
                [os.path.join(BUILD, "berth-launch"), "--listen", listen, "--user", SERVICE,
                 "--bridge", os.path.join(BUILD, "berth-slurm"), "--bridge-user", SLURM,
                 "--partition", "gpu", "--min-uid", "1"], env=self.lab.env, stdin=subprocess.DEVNULL, stderr=log)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.kill)
        self.until(lambda: os.path.exists(listen))
        user = pwd.getpwnam(SERVICE)
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.daemon = Slurmed(self.lab, "--system", "--launcher", listen)
        os.chown(self.daemon.dir, user.pw_uid, user.pw_gid)
        ident = self.lab.submit("--gres=gpu:1", script="echo mine; sleep 1000", user=GAMES)
        for _ in range(2):  # the second one finds the same berth-launch
            self.daemon.start(**identity)
            self.daemon.until(ident, "RUNNING")
            self.assertEqual(status_of(self.daemon.process.pid)["Uid"], [str(user.pw_uid)] * 4)
            self.assert_powerless(self.until(lambda: children(launcher.pid).get("berth-slurm")),
                                  SLURM)
            self.until(lambda: self.berth("logs", str(ident)).stdout == "mine\n")
            self.daemon.stop()
        # Another partition than berth-launch was told of.
        self.daemon.flags = [word.replace("partition=gpu", "partition=other")
                             for word in self.daemon.flags]
        with self.assertRaisesRegex(AssertionError, "other is not one that berth-launch"):
            self.daemon.start(**identity)

    # --- progress

    def test_a_script_and_a_program_report_over_tcp(self):
        daemon, to = self.listen_with_tls()
        shell = self.lab.submit("--gres=gpu:1", self.export(BERTH_REPORT_TO=to), script=f"""
'{BERTH}' report 10 0.9 --total 1000 || echo failed
sleep 1.2
'{BERTH}' report 30 0.5 || echo failed
sleep 1000""")
        program = self.lab.submit("--gres=gpu:1", self.export(
            BERTH_REPORT_TO=to, PYTHONPATH=PYTHON), script="""
exec python3 -c '
import berth, time
berth.total(500)
for step in range(500):
    berth.report(step, loss=1 / (1 + step))
    time.sleep(0.05)
'""")
        self.reported(daemon, shell, 30)
        found = self.until(lambda: (p := daemon.job(shell)["progress"]).get("eta_s") and p)
        self.assertEqual((found["steps"], found["loss"]), (1000, 0.5))
        found = self.reported(daemon, program, 25)
        self.assertEqual(found["steps"], 500)
        self.assertLess(found["loss"], 0.5)
        # About 20 a second, on a machine that others use as well.
        rate = self.until(lambda: daemon.job(program)["progress"].get("steps_per_s"))
        self.assertTrue(2 < rate < 30, rate)
        table = self.berth("queue").stdout
        self.assertRegex(table, rf"{shell} .*\d %")
        self.assertRegex(self.berth("show", str(shell)).stdout, r"loss +0\.5\n")
        self.assertEqual(self.lab.output(f"{shell}.out"), "")

    def test_a_job_in_c_reports_yields_and_goes_on(self):
        client = os.path.join(BUILD, "examples", "example-client")
        if not os.access(client, os.X_OK):
            self.skipTest("example-client is not built")
        daemon, to = self.listen_with_tls()
        for _ in range(3):
            self.lab.submit("--gres=gpu:4", "--no-requeue")
        folder = os.path.join(self.lab.work, "ckpt")
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        env = self.export(BERTH_REPORT_TO=to, BERTH_CKPT_DIR=folder)
        ident = self.lab.submit("--gres=gpu:4", env, script=f"""#SBATCH --signal=B:USR1@30
exec '{BERTH}' report -- '{client}' 100000 10000""")
        found = self.reported(daemon, ident, 20)
        self.assertEqual(found["steps"], 100000)
        trial = self.lab.submit("--gres=gpu:4", "--comment=berth:class=te", script="sleep 1")
        daemon.until(trial, "COMPLETED")
        self.until(lambda: self.lab.output(f"{ident}.out").count("from step") == 2)
        output = self.lab.output(f"{ident}.out")
        stopped = re.search(r"stopped at step (\d+)", output).group(1)
        self.assertIn(f"from step {stopped}\n", output)
        self.assertEqual(daemon.job(ident)["preemptions"], 1)
        self.reported(daemon, ident, int(stopped) + 1)

    def test_who_may_speak_for_a_job(self):
        daemon, to = self.listen()
        ident = self.lab.submit("--gres=gpu:1")
        other = self.lab.submit("--gres=gpu:1")
        daemon.until(ident, "RUNNING")
        daemon.until(other, "RUNNING")
        token, progress = f"/v1/jobs/{ident}/token", f"/v1/jobs/{ident}/progress"
        self.assertEqual(self.post(to, progress, {"step": 1})[0], 401)
        self.assertEqual(self.post(to, token, {})[0], 401)
        self.assertEqual(self.post(to, token, {"munge": "MUNGE:AAAA:"})[0], 401)
        self.assertEqual(self.post(to, token, {"munge": "nonsense"})[0], 400)
        purpose = f"berth progress {ident}"
        foreign = self.credential(SOMEBODY, purpose)
        self.assertEqual(self.post(to, token, {"munge": foreign})[0], 403)
        # Made for something else, or for another job; good for one time.
        for words in ("", "berth progress", f"berth progress {other}"):
            wrong = self.credential(NOBODY, words)
            self.assertEqual(self.post(to, token, {"munge": wrong})[0], 401)
        mine = self.credential(NOBODY, purpose)
        status, answer = self.post(to, token, {"munge": mine})
        self.assertEqual(status, 200)
        self.assertEqual(self.post(to, token, {"munge": mine})[0], 401)
        badge = answer["token"]
        self.assertEqual(self.post(to, f"/v1/jobs/{other}/progress", {"step": 1}, badge)[0], 401)
        self.assertEqual(self.post(to, progress, {"step": 1}, badge[:-1] + "x")[0], 401)
        # It is good for nothing else.
        self.assertEqual(self.post(to, "/v1/jobs", {"command": ["true"]}, badge)[0], 401)
        for body in ({"step": -1}, {"step": "many"}, {"loss": 1}, {"step": 1, "x": 2}, []):
            self.assertEqual(self.post(to, progress, body, badge)[0], 400, body)
        huge = " " * 20000
        self.assertEqual(self.post(to, progress, None, badge, text=huge)[0], 413)
        # However often it speaks, the engine hears of it once a second.
        began = time.monotonic()
        for step in range(1, 101):
            self.assertEqual(self.post(to, progress, {"step": step, "loss": 2, "total": 200},
                                       badge)[0], 202)
        self.reported(daemon, ident, 100)
        took = time.monotonic() - began
        heard = [e for e in daemon.events(ident) if e["kind"] == "progress"]
        self.assertLessEqual(len(heard), took + 2)
        # By the socket the kernel says who it is.
        self.assertEqual(daemon.ask("POST", progress, {"step": 150})[0], 202)

    def test_a_file_that_berthd_follows(self):
        daemon = self.begin()
        path = os.path.join(self.lab.work, "%j.progress")
        ident = self.lab.submit("--gres=gpu:1", f"--comment=berth:steps=100;progress={path}",
                                script=f"""
f={self.lab.work}/$SLURM_JOB_ID.progress
echo 5 2.5 >> $f; sleep 1.5
BERTH_PROGRESS_FILE=$f '{BERTH}' report 40 0.25
printf '99 no end' >> $f
sleep 1000""")
        found = self.reported(daemon, ident, 40)
        self.assertEqual((found["loss"], found["steps"]), (0.25, 100))
        # Not somebody else's file, not by way of a link.
        secret = os.path.join(self.lab.dir, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write("77 0.7\n")
        os.chmod(secret, 0o644)
        link = os.path.join(self.lab.work, "link")
        if not os.path.islink(link):
            os.symlink(secret, link)
        thieves = [self.lab.submit("--gres=gpu:1",
                                   f"--comment=berth:steps=100;progress={where}")
                   for where in (secret, link, "/proc/self/stat", "/dev/zero", self.lab.work)]
        for thief in thieves:
            daemon.until(thief, "RUNNING")
        time.sleep(2.5)
        for thief in thieves:
            self.assertNotIn("loss", daemon.job(thief).get("progress", {}))

    # --- output

    def test_output_and_names(self):
        daemon = self.begin()
        ident = self.lab.submit("--gres=gpu:1", "-J", "a b%", "-o", "%x-%j.txt", "-e", "%5j.err",
                                script="echo to you; echo to err >&2; sleep 1000")
        daemon.until(ident, "RUNNING")
        output = os.path.join(self.lab.work, f"a b%-{ident}.txt")
        self.until(lambda: os.path.exists(output) and os.path.getsize(output))
        self.assertEqual(daemon.job(ident)["output"], output)
        self.assertEqual(self.berth("logs", str(ident)).stdout, "to you\n")
        self.assertEqual(self.berth("logs", "-e", str(ident)).stdout, "to err\n")
        # A task of an array by Slurm's own name for it.
        first = self.lab.submit("--array=3-4", "--gres=gpu:1", "-o", "task_%a",
                                script="echo $SLURM_ARRAY_TASK_ID; sleep 1000")
        self.until(lambda: self.lab.output("task_4"))
        self.until(lambda: self.berth("logs", f"{first}_4").stdout == "4\n")
        shown = self.berth("show", f"{first}_3").stdout
        self.assertIn(f"{first}_3\n", shown)
        self.assertIn("sbatch", shown)
        self.assertIn(f"{first}_3 ", self.berth("queue").stdout)
        self.assertEqual(self.berth("why", f"{first}_3").returncode, 0)
        self.assertEqual(self.berth("cancel", f"{first}_3").returncode, 0)
        done = self.berth("show", f"{first}_9")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"{first}_9", done.stderr)

    # --- holds

    def test_an_owners_own_hold(self):
        daemon = self.begin()
        ident = self.lab.submit("-H", "--gres=gpu:1", "--comment=berth:class=te")
        self.assertEqual(daemon.until(ident, "HELD")["class"], "te")
        why = self.berth("why", str(ident)).stdout
        self.assertIn("scontrol release", why)
        self.assertEqual(self.lab.run("scontrol", "release", str(ident), user=NOBODY).returncode, 0)
        daemon.until(ident, "RUNNING")
        # While it waits: held and let go.
        full = [self.lab.submit("-N1", "--gres=gpu:4") for _ in range(4)]
        for other in full[:3]:
            daemon.until(other, "RUNNING")
        waits = full[3]
        daemon.until(waits, "PENDING")
        self.lab.run("scontrol", "hold", str(waits), user=NOBODY)
        daemon.until(waits, "HELD")
        self.lab.run("scancel", str(ident))
        time.sleep(1)
        self.assertEqual(state(self.lab, waits), "PENDING")
        # Let go while berthd is away.
        daemon.stop()
        self.assertEqual(self.lab.run("scontrol", "release", str(waits), user=NOBODY).returncode, 0)
        self.assertEqual(state(self.lab, waits), "PENDING")
        daemon.start()
        daemon.until(waits, "RUNNING")

    # --- leaving

    def release_all(self, *flags, **env):
        return subprocess.run([BERTH, "slurm", "release-all", *flags], text=True,
                              capture_output=True,
                              env={**self.lab.env, "HOME": self.daemon.dir,
                                   "BERTH_ADDR": self.daemon.socket, **env})

    def test_it_leaves_as_if_it_had_never_been_there(self):
        daemon = self.begin()
        runs = [self.lab.submit("-N1", "--gres=gpu:4") for _ in range(4)]
        for ident in runs:
            daemon.until(ident, "RUNNING")
        waits = self.lab.submit("-N1", "--gres=gpu:4")
        chain = self.lab.submit(f"--dependency=afterok:{waits}", "--gres=gpu:1", script="true")
        later = self.lab.submit("--gres=gpu:1", "--begin=now+1000")
        tasks = self.lab.submit("--array=1-3", "--gres=gpu:1", script="sleep 0.1")
        own = self.lab.submit("-H", "--gres=gpu:1")
        for ident in (waits, later, own):
            daemon.seen(ident)
        daemon.until(chain, "HELD")
        # One that ran is bound to its nodes.
        self.lab.run("scontrol", "requeue", str(runs[0]), user=NOBODY)
        self.until(lambda: (job := daemon.job(runs[0]))["attempt"] >= 1 or
                   job["state"] != "RUNNING")
        done = self.release_all("--state", daemon.state)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stop it first", done.stderr)
        # One that nobody told us of shows itself.
        done = self.release_all("--partition", "gpu", BERTH_ADDR="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("holds them again", done.stderr)
        self.until(lambda: "JobHeld" in reason(self.lab, waits))
        daemon.stop()
        done = self.release_all("--state", daemon.state)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^\d+ jobs released; 1 stays held, as the owner wants it\n$")
        self.assertRegex(self.release_all("--partition", "gpu").stdout, "^0 jobs released; 1 stays")
        pending = self.lab.run("scontrol", "show", "job", str(later)).stdout
        self.assertNotIn("Priority=0 ", pending)
        self.assertEqual(reason(self.lab, later), "BeginTime")
        self.assertEqual(reason(self.lab, own), "JobHeldUser")
        self.assertEqual(reason(self.lab, waits) in ("Resources", "Priority", "None"), True,
                         reason(self.lab, waits))
        # Slurm goes on alone.
        for ident in runs:
            self.lab.run("scancel", str(ident))
        self.until(lambda: state(self.lab, waits) == "RUNNING")
        self.lab.run("scancel", str(waits))
        self.until(lambda: state(self.lab, chain) in ("", "CANCELLED", "PENDING"))
        self.until(lambda: set(state(self.lab, tasks).split()) == {"COMPLETED"})

    def test_wrong_words(self):
        self.begin()
        for words in ([], ["leave"], ["release-all", "more"]):
            done = subprocess.run([BERTH, "slurm", *words], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = self.release_all()
        self.assertEqual(done.returncode, 2)
        self.assertIn("--partition", done.stderr)

    # --- seeing

    def test_trouble_is_said(self):
        daemon = self.begin()
        self.until(lambda: "trouble" not in daemon.ask("GET", "/v1/server")[1])
        server = daemon.ask("GET", "/v1/server")[1]
        self.assertEqual(server["executor"], "slurm:partition=gpu")
        self.lab.run("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=burnt out")
        self.addCleanup(self.lab.run, "scontrol", "update", "NodeName=n2", "State=RESUME")
        def down():
            nodes = {n["name"]: n for n in daemon.ask("GET", "/v1/nodes")[1]["nodes"]}
            return nodes["n2"] if not nodes["n2"]["up"] else None
        self.assertIn("burnt out", self.until(down)["reason"])
        self.assertIn("burnt out", self.berth("nodes").stdout)
        checks = json.loads(self.berth("doctor", "--json").stdout)["checks"]
        slurm = [c for c in checks if c["what"] == "Slurm"]
        self.assertIn("jobs of partition gpu arrive held", " ".join(c["text"] for c in slurm))
        said = {c["what"]: c for c in checks} # nothing of this host's GPUs
        self.assertIn("Slurm's nodes", said["accelerators"]["text"])
        self.assertFalse({"NVML", "sharing", "cgroups"} & set(said), said)
        self.assertIn("berth_slurm_up 1\n", daemon.ask("GET", "/metrics")[1])
        # Slurm goes away, and comes back.
        waits = self.lab.submit("-H", "--gres=gpu:1")
        daemon.seen(waits)
        os.kill(self.lab.pid("slurmctld"), 9)
        self.until(lambda: daemon.ask("GET", "/v1/server")[1].get("trouble"))
        self.assertIn("berth_slurm_up 0\n", daemon.ask("GET", "/metrics")[1])
        self.assertIn("Slurm", self.berth("queue").stderr)
        self.assertIn("Slurm does not answer", self.berth("why", str(waits)).stdout)
        self.lab.start("slurmctld", "-f", os.path.join(self.lab.dir, "slurm.conf"))
        self.until(lambda: "trouble" not in daemon.ask("GET", "/v1/server")[1])


if __name__ == "__main__":
    unittest.main()
