"""The same workload of short jobs, run live with real processes and simulated: the same
order of starts, the same preemptions, and completion times within a tolerance.  And the other
way round: what ran live, exported and simulated, takes as long on average.

The jobs are such that the order stays the same when each of them starts, runs and stops up
to 0.2 s late; how late it was is printed.  It runs alone: a busy machine would prove nothing.
"""
import csv
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from live import BUILD, Daemon

TOLERANCE_S = 1.5
REPLAY_TOLERANCE = 0.05 # of the mean completion time

# submitted at, class, GPUs, seconds of work
MIXED = [
    (0.0, "be", 2, 6.3),
    (0.3, "be", 1, 7.0),
    (0.6, "be", 1, 2.9),
    (1.5, "te", 1, 1.2),
    (1.8, "be", 2, 2.0),
    (3.5, "te", 2, 0.6),
    (5.0, "be", 1, 0.7),
    (5.6, "te", 4, 0.8),
]

# Under berth: the gang of trials preempts the first, the last preempts the fifth.
ORDERED = [
    (0.0, "be", 1, 8.5),
    (1.5, "te", 4, 1.2),
    (2.5, "te", 1, 1.0),
    (4.0, "be", 1, 4.8),
    (5.0, "be", 1, 7.3),
    (6.0, "be", 2, 7.7),
    (7.0, "be", 2, 1.4),
]

# Counts its work in a file, a tenth of a second at a time; told to stop, it keeps it.
JOB = r"""
import os, signal, sys, time
work, place = float(sys.argv[1]), os.path.join(os.environ["BERTH_CKPT_DIR"], "done")
done = float(open(place).read()) if os.path.exists(place) else 0.0
begin = time.monotonic() - done
def stop(*_):
    with open(place, "w") as file:
        file.write(str(time.monotonic() - begin))
    os._exit(85)
signal.signal(signal.SIGTERM, stop)
while time.monotonic() - begin < work:
    time.sleep(0.02)
"""


class Twin(unittest.TestCase):
    def live(self, policy, workload):
        daemon = Daemon("--policy", policy, gpus="v100:4")
        self.addCleanup(daemon.wipe)
        daemon.start()
        script = os.path.join(daemon.dir, "job.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(JOB)
        ids = {}
        begin = time.monotonic() + 0.3

        def arrive(number, at, kind, gpus, work):
            time.sleep(max(0, begin + at - time.monotonic()))
            ids[daemon.submit("python3", "-S", script, str(work), gpus=gpus, steps=work,
                              grace_s=5, pause_s=0.01, load_s=0.01, **{"class": kind})] = number

        threads = [threading.Thread(target=arrive, args=(i + 1, *job))
                   for i, job in enumerate(workload)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ident in ids:
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        events = daemon.events()
        zero = min(e["at"] - workload[ids[e["job"]] - 1][0] for e in events
                   if e["kind"] == "submitted")
        starts, stops, ends = [], {}, {}
        for event in events:
            number = ids.get(event.get("job"))
            if event["kind"] == "started":
                starts.append(number)
            elif event["kind"] == "recalled":
                stops[number] = stops.get(number, 0) + 1
            elif event["kind"] == "finished":
                ends[number] = event["at"] - zero
        return starts, stops, ends

    def simulated(self, policy, workload):
        folder = tempfile.mkdtemp(prefix="berth-twin-")
        self.addCleanup(shutil.rmtree, folder, True)
        jobs, out = os.path.join(folder, "jobs.csv"), os.path.join(folder, "out.csv")
        trace = os.path.join(folder, "trace.json")
        with open(jobs, "w", encoding="utf-8") as file:
            file.write("#berth-jobs 1\nid,class,submit_s,gpus,work_s,grace_s,pause_s,load_s\n")
            for number, (at, kind, gpus, work) in enumerate(workload, 1):
                file.write(f"{number},{kind},{at},{gpus},{work},5,0.01,0.01\n")
        subprocess.run([os.path.join(BUILD, "berth"), "sim", "--cluster", "1xv100:4",
                        "--workload", jobs, "--policy", policy, "--jobs-out", out,
                        "--trace-out", trace], check=True, stdout=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        firsts = {int(row["id"]): float(row["first_start_s"]) for row in rows}
        stops = {int(r["id"]): int(r["preemptions"]) for r in rows if int(r["preemptions"])}
        ends = {int(r["id"]): float(r["end_s"]) for r in rows}
        return firsts, stops, ends

    def compare(self, policy, workload=MIXED):
        starts, stops, ends = self.live(policy, workload)
        firsts, sim_stops, sim_ends = self.simulated(policy, workload)
        # Of those that start together, any may be the first to say so.
        order = [firsts[number] for number in dict.fromkeys(starts)]
        off = {n: round(ends[n] - sim_ends[n], 3) for n in sorted(ends)}
        print(f"# {policy}: live less simulated, s: {off}", flush=True)
        self.assertEqual(len(order), len(firsts))
        self.assertEqual(order, sorted(order))
        self.assertEqual(stops, sim_stops)
        for number, seconds in off.items():
            self.assertLess(abs(seconds), TOLERANCE_S, f"job {number}")

    def test_trial_jobs_preempt(self):
        self.compare("fitgpp")

    def test_the_shortest_goes_first(self):
        self.compare("srtf")

    def test_one_policy_does_both(self):
        self.compare("berth", ORDERED)

    def test_what_ran_under_fifo_takes_as_long_in_a_replay(self):
        self.replay("fifo")

    def test_what_ran_under_berth_takes_as_long_in_a_replay(self):
        self.replay("berth")

    def replay(self, policy):
        daemon = Daemon("--policy", policy, gpus="v100:4")
        self.addCleanup(daemon.wipe)
        daemon.start()
        script, path, out = (os.path.join(daemon.dir, n) for n in ("job.py", "t.csv", "out.csv"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(JOB)
        draw = random.Random(7)
        ids = []
        begin = time.monotonic()
        for number in range(30):
            time.sleep(max(0, begin + 0.25 * number - time.monotonic()))
            work = draw.uniform(0.4, 2.5)
            more = {"begin": time.time() + 2} if number in (4, 17) else {}
            ids.append(daemon.submit(
                "python3", "-S", script, str(work), gpus=draw.choice([1, 1, 1, 2, 4]), steps=work,
                grace_s=5, pause_s=0.05, load_s=0.05,
                **{"class": "te" if draw.random() < 0.2 else "be"}, **more))
            if number in (6, 13, 25): # given up, running or waiting
                daemon.ask("DELETE", f"/v1/jobs/{ids[-2]}")
        ended = [daemon.wait(ident) for ident in ids]
        self.assertLessEqual({job["state"] for job in ended}, {"COMPLETED", "CANCELLED"})
        berth = os.path.join(BUILD, "berth")
        subprocess.run([berth, "export", "--socket", daemon.socket, "-o", path], check=True,
                       stderr=subprocess.DEVNULL)
        subprocess.run([berth, "sim", "--cluster", "1xv100:4", "--workload", path, "--policy",
                        policy, "--jobs-out", out], check=True, stdout=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["id"]) for row in sorted(rows, key=lambda r: int(r["id"]))], ids)
        live = sum(job["end"] - job["submit"] for job in ended) / len(ids)
        again = sum(float(row["jct_s"]) for row in rows) / len(ids)
        stops = sum(job["preemptions"] for job in ended)
        print(f"# {policy}: mean completion {live:.3f} s live with {stops} preemptions, "
              f"{again:.3f} s in a replay ({again / live - 1:+.2%})", flush=True)
        self.assertLess(abs(again / live - 1), REPLAY_TOLERANCE)


if __name__ == "__main__":
    unittest.main()
