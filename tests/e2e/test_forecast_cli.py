"""When jobs will start and end, as the command line says it, and what a job would do before it is
submitted: against a real berthd that has learned from real short jobs how long declared ones take."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from live import PATIENCE, until
from support import BERTH
from test_live_cli import Live

TIME = r"(?:[A-Z][a-z]{2} )?\d\d:\d\d" # with a weekday around midnight
TRAIN = "i=0; while [ $i -lt $0 ]; do i=$((i+1)); sleep 0.1; echo step $i; done"
REPORTS = ("--pattern", "step ([0-9]+)")


class Forecast(Live):
    policy = "fifo"

    @classmethod
    def setUpClass(cls):
        """Jobs that made a part of the steps they declared; then a long one on all GPUs."""
        super().setUpClass()
        for steps in range(4, 10):
            cls.must("submit", "-G1", "--steps", "9", "--step-time", "0.1s", *REPORTS,
                     "--", "sh", "-c", TRAIN, str(steps))
        until(lambda: "COMPLETED" in cls.must("history") and not cls.live_jobs())
        declared = ("--steps", "1200", "--step-time", "1s", *REPORTS)
        cls.long = int(cls.must("submit", "-G4", "-J", "long", *declared, "sleep", "900"))
        cls.late = int(cls.must("submit", "-G1", "-J", "late", *declared, "sleep", "900"))
        until(lambda: "late" in cls.must("forecast"))

    @classmethod
    def must(cls, *words):
        done = cls.outside(*words)
        if done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout

    @classmethod
    def live_jobs(cls):
        return "RUNNING" in (text := cls.must("queue")) or "PENDING" in text

    def test_intervals_hold_what_is_known(self):
        forecast = self.facts("forecast")
        rows = {job["id"]: job for job in forecast["jobs"]}
        end, start = rows[self.long]["expected_end"], rows[self.late]["expected_start"]
        now = time.time()
        self.assertLess(now, end["p10"])
        self.assertLessEqual(end["p10"], end["p50"])
        self.assertLess(end["p50"], end["p90"])
        self.assertLess(end["p90"], now + 1.1 * 1200)
        # The next one starts when this one ends.
        for quantile in ("p10", "p50", "p90"):
            self.assertAlmostEqual(start[quantile], end[quantile], delta=60)
        self.assertEqual((start["policy"], start["basis"]), ("fifo", "estimate"))
        self.assertNotIn("expected_start", rows[self.long])

    def test_the_table_has_a_line_for_each(self):
        lines = self.ok("forecast").splitlines()
        self.assertRegex(lines[0], r"^ *ID  NAME .*START +END +BASIS$")
        self.assertRegex(lines[1], rf"^ *{self.long}  long .*RUNNING +4 +{TIME}-{TIME}  its declared")
        self.assertRegex(lines[2], rf"^ *{self.late}  late .*PENDING +1 +{TIME}-{TIME} +{TIME}-")
        self.assertRegex("\n".join(lines), r"(?m)^Made at .* by playing fifo forward 32 times, up to 4")
        self.assertRegex("\n".join(lines), r"(?m)^(Of \d+ forecasts of starts|How well)")

    def test_some_jobs_only(self):
        text = self.ok("forecast", str(self.late), "777777")
        self.assertNotIn("long", text)
        self.assertIn("Nothing can be said of job 777777.\n", text)
        self.assertEqual([job["id"] for job in self.facts("forecast", str(self.late))["jobs"]],
                         [self.late])
        self.assert_refused("forecast", "late", says='"late" is no job')
        self.assert_refused("forecast", "1-500", says="at most 400")

    def test_queue_show_and_why_have_the_same_words(self):
        said = f"{TIME}-{TIME}"
        queue = self.ok("queue")
        self.assertRegex(queue, rf"(?m)^ *{self.late}  late .* starts {said}; needs 1 GPU")
        self.assertRegex(queue, rf"(?m)^ *{self.long}  long .* ends {said}$")
        sentence = rf"Expected to start between {TIME} and {TIME} \(80 % likely\), as likely"
        for verb in ("why", "show"):
            self.assertRegex(self.ok(verb, str(self.late)), sentence)
        self.assertIn("as those of 6 finished jobs turned out. How well such forecasts hold",
                      self.ok("why", str(self.late)))
        self.assertIn("Expected to end between", self.ok("show", str(self.long)))
        self.assertIn("expected_start", self.facts("why", str(self.late)))

    def on_terminal(self, columns, *words, **env):
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        child = subprocess.Popen([BERTH, *words], stdin=subprocess.DEVNULL, stdout=theirs,
                                 env={**os.environ, **self.env, "LC_ALL": "", "LC_CTYPE": "",
                                      **env})
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError: # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(child.wait(PATIENCE), 0)
        return text.decode().replace("\r\n", "\n")

    def test_dashes_are_those_of_the_terminal(self):
        self.assertRegex(self.on_terminal(160, "queue", LANG="C.UTF-8"), rf"starts {TIME}–{TIME};")
        self.assertRegex(self.on_terminal(160, "queue", LANG="C"), rf"starts {TIME}-{TIME};")

    def test_a_narrow_terminal_keeps_the_time(self):
        for columns in (60, 80):
            text = self.on_terminal(columns, "queue", LANG="C.UTF-8")
            self.assertLessEqual(max(map(len, text.splitlines())), columns)
            self.assertRegex(text, r"starts (\d\d:\d\d–\d\d:\d\d|[A-Z])")

    def test_top_shows_ends_and_starts(self):
        child, screen = pty.fork()
        if child == 0:
            os.environ.update(self.env, TERM="xterm", LC_ALL="C.UTF-8", COLUMNS="200")
            os.execv(BERTH, [BERTH, "top"])
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        text, end = "", time.monotonic() + PATIENCE
        while time.monotonic() < end and not re.search(
                rf"ends {TIME}–{TIME}.*starts {TIME}–{TIME}; needs", text, re.S):
            if select.select([screen], [], [], 0.2)[0]:
                text += os.read(screen, 65536).decode("utf-8", "replace")
        self.assertLess(time.monotonic(), end, text[-3000:])
        os.write(screen, b"q")
        try:
            while os.read(screen, 65536):
                pass
        except OSError:
            pass
        os.close(screen)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def dry_run(self, *words):
        before = self.facts("queue")["jobs"]
        text = self.ok("submit", "--dry-run", *words)
        self.assertEqual([job["id"] for job in self.facts("queue")["jobs"]],
                         [job["id"] for job in before])
        return text

    def test_a_dry_run_says_when_a_job_would_start(self):
        text = self.dry_run("-G1", "--steps", "5", "--step-time", "1s", "true")
        self.assertRegex(text, rf"\Awould start {TIME}(-{TIME})?\nreason: needs 1 GPU, 0 are free\n\Z")
        answer = self.facts("submit", "--dry-run", "-G1", "true")
        self.assertEqual((answer["can_ever_run"], answer["now"], answer["preempts"]),
                         (True, False, []))
        self.assertIn("p10", answer["start"])

    def test_a_dry_run_of_what_can_never_run_prints_nothing(self):
        for flags in ((), ("--json",)):
            done = self.berth("submit", "--dry-run", *flags, "-G64", "true")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Aberth submit: it can never run: .*64[^\n]*\n\Z")

    def test_a_dry_run_is_of_one_job(self):
        self.assert_refused("submit", "--dry-run", "-a", "0-3", "true", says="tells of one job")
        self.assert_refused("submit", "--dry-run", "--param", "lr=1,2", "true", says="tells of one job")
        self.assert_refused("submit", "--dry-run", "--parsable", "true", says="no number to print")


class Preempting(Live):
    policy = "fitgpp"

    def test_without_a_history_nothing_is_said_and_why(self):
        ident = self.submit("-G1", "sleep", "60")
        self.addCleanup(self.berth, "cancel", str(ident))
        self.wait(ident, ("RUNNING",))
        said = until(lambda: re.search("There is no forecast: fewer than 5 jobs .*", self.ok("forecast")))
        self.assertTrue(said)
        self.assertIn("reason", self.facts("forecast"))
        self.assertNotIn("Expected", self.ok("why", str(ident)))
        self.assertNotIn("ends", self.ok("queue"))

    def test_a_dry_run_names_whom_a_job_would_preempt(self):
        ident = self.submit("-G4", "--grace=2s", "sleep", "100")
        self.addCleanup(self.wait, ident)
        self.addCleanup(self.berth, "cancel", str(ident))
        self.wait(ident, ("RUNNING",))
        text = self.ok("submit", "--dry-run", "--class=te", "-G2", "true")
        self.assertRegex(text, rf"\Awould start now on \S+ \(v100 \d,\d\)\n"
                               rf"would preempt job {ident} \(price [\d.]+ GPU-s\)\n\Z")
        self.assertEqual(self.facts("show", str(ident))["state"], "RUNNING")
        self.assertRegex(self.ok("submit", "--dry-run", "true"), r"\Awould start now on \S+\n\Z")
        text = self.ok("submit", "--dry-run", "-G2", "true")
        self.assertRegex(text, r"\Awould wait; when it would start cannot be said\nreason: needs 2 GPUs")
