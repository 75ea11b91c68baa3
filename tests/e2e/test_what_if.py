"""berth what-if: what a real berthd has run, played again; and traces."""
import json
import os
import shlex
import subprocess
import time
import unittest

from live import Daemon
from support import BERTH, Case as Scratch
from test_twin import JOB

# Of the mean completion time of a dozen jobs, on a busy machine; where jobs preempt each other,
# some milliseconds decide who preempts whom.
TOLERANCE = {"fifo": 0.02, "berth": 0.12}


def run(*words, **kwargs):
    return subprocess.run([BERTH, *words], capture_output=True, text=True, check=False, **kwargs)


class Trace(Scratch):
    """A file of jobs, on which every run comes out alike."""

    HEAD = "#berth-jobs 1\nid,user,submit_s,gpus,work_s,start_s,end_s,state\n"

    def write(self, days, past=True):
        """Each day a job of 100 s and one of 10 to 70 s, together; as fifo has them."""
        path = self.path("jobs.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.HEAD)
            for day in range(days):
                at, short = 86400 * day, 10 + 10 * (day % 7)
                told = (f"{at},{at + 100},completed", f"{at + 100},{at + 100 + short},completed")
                told = told if past else (",,", ",,")
                file.write(f"{2 * day + 1},ada,{at},1,100,{told[0]}\n"
                           f"{2 * day + 2},bob,{at},1,{short},{told[1]}\n")
        return path

    def ask(self, *words, status=0):
        done = run("what-if", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def asked(self, *words):
        return json.loads(self.ask(*words, "--json").stdout)

    def test_the_floor_of_trust_and_paired_differences(self):
        path = self.write(14)
        flags = ("-w", path, "-c", "1xv100:1", "--policy-was", "fifo")
        told = self.asked(*flags, "--policy", "sjf", "--policy", "fifo")
        self.assertEqual(told["trust"]["jobs"], 28)
        for figure in told["trust"]["figures"].values():
            self.assertAlmostEqual(figure["change"], 0, 9)
        self.assertEqual(told["intervals"], {"method": "block bootstrap", "block_s": 86400,
                                             "blocks": 14, "draws": 1000, "level": 0.95})
        better, same = told["variants"]
        self.assertEqual((better["policy"], better["jobs"]), ("sjf", 28))
        jct = better["figures"]["jct_s.mean"]
        self.assertAlmostEqual(jct["was"], 120, 6)  # (100 + 100 + 40) / 2
        self.assertAlmostEqual(jct["difference"], -30, 6)  # the short one no longer waits 100 s
        self.assertAlmostEqual(jct["change"], -0.25, 9)
        self.assertTrue(-45 < jct["low"] < -30 < jct["high"] < -15, jct)
        self.assertTrue(jct["change_low"] < -0.25 < jct["change_high"] < 0, jct)
        for figure in same["figures"].values():
            self.assertEqual((figure["difference"], figure["low"], figure["high"]), (0, 0, 0))
        self.assertEqual(told, self.asked(*flags, "--policy", "sjf", "--policy", "fifo"))
        self.assertEqual(self.asked(*flags, "--policy", "sjf", "--seed", "5")["seed"], 5)

    def test_more_gpus_and_fewer_jobs(self):
        path = self.write(7)
        flags = ("-w", path, "-c", "2xv100:1", "--policy-was", "fifo")
        told = self.asked(*flags, "--remove", "n1")
        self.assertEqual(told["changed"], "without node n1")
        (worse,) = told["variants"]
        self.assertEqual(worse["policy"], "fifo")
        self.assertAlmostEqual(worse["figures"]["wait_s.mean"]["difference"], 50, 6)
        flags = ("-w", path, "-c", "1xv100:1", "--policy-was", "fifo")
        told = self.asked(*flags, "--add", "v100:1")
        self.assertAlmostEqual(told["variants"][0]["figures"]["wait_s.mean"]["value"], 0, 6)
        told = self.asked(*flags, "--add", "3xv100:1", "--remove", "n0", "--without", "user=ada")
        self.assertEqual(told["changed"], "3xv100:1 more, without node n0, without jobs of ada")
        self.assertEqual(told["variants"][0]["jobs"], 7)
        self.assertAlmostEqual(told["variants"][0]["figures"]["wait_s.mean"]["was"], 100, 6)
        told = self.asked(*flags, "--without", "1")
        self.assertEqual(told["variants"][0]["jobs"], 13)

    def test_a_trace_that_tells_no_past_and_days_that_are_few(self):
        path = self.write(3, past=False)
        text = self.ask("-w", path, "-c", "1xv100:1", "--policy-was", "fifo", "--policy", "sjf").stdout
        self.assertIn("How far to trust it is not known", text)
        self.assertIn("No intervals: jobs were submitted on fewer than 5 days, and in fewer than "
                      "5 hours.", text)
        self.assertNotIn("95 % OF CHANGES", text)
        told = self.asked("-w", path, "-c", "1xv100:1", "--policy-was", "fifo", "--policy", "sjf")
        self.assertEqual((told["trust"]["jobs"], told["intervals"]["method"]), (0, "none"))
        self.assertNotIn("low", told["variants"][0]["figures"]["jct_s.mean"])
        last = self.asked("-w", path, "-c", "1xv100:1", "--last", "1d", "--policy", "sjf")
        self.assertEqual((last["period"]["jobs"], last["period"]["jobs_played"]), (4, 6))

    def test_wrong_input_is_one_sentence(self):
        path = self.write(2)
        flags = ("-w", path, "-c", "4xv100:2")
        for words, said in (
                (("--policy", "fofi"), "no policy 'fofi'"),
                (("--remove", "node9"), '--remove is "node9", want a node\'s name, such as n0 or n3'),
                (("--add", "v1000:2"), "--add: no GPU of type v1000 has been here, so nothing is "
                                       "known of its speed (did you mean 'v100'?)"),
                (("--add", "v100"), '--add: "v100": want TYPE:GPUS for a node, or NODESxTYPE:GPUS'),
                (("--add", "v100:65"), '--add: "v100:65": want'),
                (("--without", "user=eve"), '--without is "user=eve": no job that is played is '
                                            "that user's"),
                (("--without", "0"), '--without is "0", want a job\'s number, or user=NAME'),
                (("--without", "user=ada", "--without", "user=bob"), "--without leaves no job"),
                (("--last", "soon"), '--last is "soon", want a time such as 12h or 30d'),
                (("--json", "--report", "-"), "--json and --report both want standard output"),
                (("--remove", "n0", "--remove", "n1", "--remove", "n2", "--remove", "n3"),
                 "--remove leaves no node"),
                (("extra",), "extra")):
            done = self.ask(*flags, *words, status=2)
            self.assertIn(said, done.stderr)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        done = run("what-if", "--policy-was", "fifo", "--socket", "/nowhere")
        self.assertEqual((done.returncode, done.stderr), (2, "berth what-if: --policy-was is for a "
                                                             "trace, given by --workload\n"))
        # A job of two GPUs that no node has any more is said to be left out.
        with open(path, "a", encoding="utf-8") as file:
            file.write("99,ada,200000,2,5,,,\n")
        text = self.ask("-w", path, "-c", "1xv100:2,1xp100:1", "--remove", "n0").stdout
        self.assertIn("; 1 could never run\n", text)

    def test_a_narrow_terminal_and_a_page(self):
        path = self.write(7)
        page = self.path("page.html")
        flags = ("-w", path, "-c", "1xv100:1", "--policy-was", "fifo", "--policy", "sjf")
        wide = self.ask(*flags).stdout
        self.assertIn("95 % OF CHANGES", wide)
        command = "stty cols 60 && exec " + shlex.join([BERTH, "what-if", *flags])
        done = subprocess.run(["script", "-qec", command, "/dev/null"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        lines = done.stdout.replace("\r", "").splitlines()
        self.assertIn("completion time", done.stdout)
        self.assertLessEqual(max(len(line.replace("\033[K", "")) for line in lines
                                 if "\033[" not in line), 60, done.stdout)
        done = run("what-if", *flags, "--report", page)
        if done.returncode:
            self.assertIn("without its report page", done.stderr)
            return
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn('"what_if":', text)
        self.assertIn("sjf", text)


class Live(unittest.TestCase):
    def start(self, *flags, gpus="v100:4"):
        daemon = Daemon(*flags, gpus=gpus)
        self.addCleanup(daemon.wipe)
        return daemon.start()

    def ask(self, daemon, *words):
        done = run("what-if", "--socket", daemon.socket, *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_replay(self, policy):
        daemon = self.start("--policy", policy)
        ids = []
        script = os.path.join(daemon.dir, "job.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(JOB)
        for number in range(14):
            more = {"steps": 0.5, "pause_s": 0.05, "load_s": 0.05} if number % 2 else {}
            ids.append(daemon.submit(
                "python3", "-S", script, str(0.4 + 0.1 * (number % 5)), name=f"lr-{number}",
                gpus=[1, 2, 1, 4][number % 4], hold=number == 5, grace_s=5,
                dependency=[{"kind": "afterany", "id": ids[3]}] if number == 8 else [],
                **{"class": "te" if number % 5 == 2 else "be"}, **more))
            time.sleep(0.12)
        daemon.ask("PATCH", f"/v1/jobs/{ids[5]}", {"hold": False})
        daemon.ask("DELETE", f"/v1/jobs/{ids[-1]}")
        ended = [daemon.wait(ident) for ident in ids]
        live = daemon.sh("sleep 600")
        daemon.wait(live, {"RUNNING"})
        told = self.ask(daemon, "--policy", "fifo", "--add", "v100:4")
        completed = [job for job in ended if job["state"] == "COMPLETED"]
        trust = told["trust"]
        self.assertEqual(told["policy"], policy)
        self.assertEqual(trust["jobs"], len(completed))
        jct = trust["figures"]["jct_s.mean"]
        mean = sum(job["end"] - job["submit"] for job in completed) / len(completed)
        self.assertAlmostEqual(jct["happened"], mean, 3)
        print(f"# {policy}: mean completion {mean:.3f} s live, {jct['replayed']:.3f} s in a replay "
              f"({jct['change']:+.2%})", flush=True)
        self.assertLess(abs(jct["change"]), TOLERANCE[policy])
        self.assertEqual(told["period"]["jobs_played"], len(ids) + 1)
        self.assertIn("1 job has not ended: played with the work declared, or twice what was made "
                      "so far, and not counted.", told["notes"])
        (variant,) = told["variants"]
        wait = variant["figures"]["wait_s.mean"]
        self.assertLess(wait["value"], wait["was"])

    def test_what_ran_under_fifo(self):
        self.check_replay("fifo")

    def test_what_ran_under_berth(self):
        self.check_replay("berth")

    def test_three_jobs_a_change_of_policy_and_no_jobs(self):
        daemon = self.start("--policy", "fifo", gpus="v100:1")
        done = run("what-if", "--socket", daemon.socket)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "berth what-if: no job that was submitted in the last 7d has "
                                      "ended: there is nothing to play again\n")
        for _ in range(3):
            daemon.wait(daemon.sh("sleep 0.2"))
        daemon.ask("PATCH", "/v1/server", {"policy": "srtf"})
        daemon.wait(daemon.sh("exit 3"))
        told = self.ask(daemon, "--policy", "las", "--last", "1h")
        self.assertEqual((told["policy"], told["seed"], told["trust"]["jobs"]), ("srtf", 1, 3))
        self.assertEqual(told["intervals"]["method"], "none")
        self.assertRegex(told["notes"][0], "^The policy was fifo until .*, then srtf; the replay "
                                           "changes it at the same time, ")
        time.sleep(1.2)
        self.assertEqual(run("what-if", "--socket", daemon.socket, "--last", "1s").returncode, 1)
        for words, said in ((("--remove", "x"), '--remove is "x", want a node\'s name, such as '),
                            (("--add", "a100:2"), "no GPU of type a100 has been here")):
            done = run("what-if", "--socket", daemon.socket, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)

    def test_what_is_told_of_the_cluster(self):
        daemon = self.start("--policy", "fifo", gpus="v100:2,p100:2")
        daemon.wait(daemon.sh("true"))
        status, told = daemon.ask("GET", "/v1/export/cluster")
        self.assertEqual(status, 200)
        self.assertEqual((told["policy"], told["seed"], told["changes"]), ("fifo", 1, []))
        self.assertEqual([each["policy"] for each in told["policies"]], ["fifo"])
        self.assertEqual({node["type"] for node in told["nodes"]}, {"v100", "p100"})
        self.assertEqual(sum(node["gpus"] for node in told["nodes"]), 4)
        self.assertEqual(daemon.ask("GET", "/v1/export/cluster?since=x")[0], 400)
        self.assertEqual(daemon.ask("GET", "/v1/export/cluster?until=3")[0], 400)


if __name__ == "__main__":
    unittest.main()
