#!/usr/bin/env python3
"""Make a state folder as an earlier Berth wrote it: make_state.py BUILD FOLDER

BUILD is where berthd, berth and berth-run of that version were built; FOLDER, state-0.1 or
state-5, is named for its release or for the version of its tables.  Jobs in every state are
submitted; then berthd and every process of a job are killed, as if the machine had lost its
power.  Kept are the database as SQL (berth.sql) and the output of the jobs (log/).  The user
and the machine are given neutral names, and all times are moved to June 2025, so that they are
in the past on any machine.  tests/e2e/test_state.py starts today's berthd on it.
"""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

FOLDER = "/tmp/berth-state"
TRAIN = "while :; do i=$((i+1)); echo \"step $i loss 0.$((90-i))\"; sleep 0.5; done"
STOPS = "trap 'exit 85' TERM; "  # as a job that has saved itself
PATTERN = "step ([0-9]+) loss ([0-9.]+)"


class Maker:
    def __init__(self, build):
        self.build = build
        self.state = os.path.join(FOLDER, "state")
        self.socket = ""
        self.env = {"PATH": "/usr/bin:/bin", "HOME": FOLDER}

    def start(self):
        daemon = subprocess.Popen(
            [os.path.join(self.build, "berthd"), "--state", self.state, "--fake-gpus", "v100:4",
             "--policy", "fitgpp,max_preemptions=0"], stdout=subprocess.PIPE, env=self.env,
            text=True, cwd=FOLDER)
        self.socket = daemon.stdout.readline().split(" ready on ")[1].strip()
        return daemon

    def berth(self, *words):
        done = subprocess.run(
            [os.path.join(self.build, "berth"), words[0], "--socket", self.socket, *words[1:]],
            stdout=subprocess.PIPE, check=False, env=self.env, text=True, cwd=FOLDER)
        return done.stdout.strip()

    def submit(self, *words):
        print("submit", *words)
        return self.berth("submit", "--parsable", "--export", "NONE", *words).split()[0]

    def sql(self, query):
        base = sqlite3.connect(os.path.join(self.state, "berth.db"))
        rows = base.execute(query).fetchall()
        base.close()
        return rows

    def wait(self, ident, state, preemptions=0):
        for _ in range(600):
            row = self.sql(f"SELECT state, preemptions FROM job WHERE id = {ident}")
            if row == [(state, preemptions)]:
                return
            time.sleep(0.1)
        sys.exit(f"job {ident} is {row}, not {state} after {preemptions} preemptions")

    def submit_all(self):
        losses = ("--pattern", PATTERN)
        ident = self.submit("-J", "completed", "-G1", *losses, "--steps", "3", "--wrap",
                            "for i in 1 2 3; do echo step $i loss 0.$((9-i)); sleep 1; done")
        self.wait(ident, "COMPLETED")
        self.wait(self.submit("-J", "failed", "-G1", "--retries", "1", "--wrap", "exit 3"),
                  "FAILED")
        ident = self.submit("-J", "cancelled", "-G1", "--wrap", "sleep 1000")
        self.wait(ident, "RUNNING")
        self.berth("cancel", ident)
        self.wait(ident, "CANCELLED")
        self.berth("submit", "-J", "rejected", "-G99", "--export", "NONE", "--wrap", "true")
        victim = self.submit("-J", "preempted", "-G2", "--grace", "5s", "--cost-pause", "1s",
                             *losses, "--wrap", STOPS + TRAIN)
        self.wait(victim, "RUNNING")
        ident = self.submit("-J", "running", "-G2", "--grace", "1h", "--entity", "vision",
                            "--weight", "2", "--steps", "1000", *losses, "--wrap", TRAIN)
        self.wait(ident, "RUNNING")
        ident = self.submit("-J", "array", "-a", "0-2%1", "--mem", "1M", "--wrap",
                            "[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000")
        self.wait(ident, "COMPLETED")
        self.wait(int(ident) + 1, "RUNNING")
        self.submit("-J", "dependent", "-d", f"afterok:{int(ident) + 1}", "--mem", "1M", "--wrap", "true")
        time.sleep(2)
        ident = self.submit("-J", "trial-ended", "-G2", "--class", "te", "--wrap", "sleep 1")
        self.wait(ident, "COMPLETED")
        self.wait(victim, "RUNNING", 1)
        time.sleep(2)
        ident = self.submit("-J", "trial", "-G2", "--class", "te", "--wrap", "sleep 1000")
        self.wait(ident, "RUNNING")
        self.wait(victim, "PENDING", 2)
        self.submit("-J", "waiting", "-G4", "--min-gpus", "2", "--deadline",
                    "2031-02-28T16:30", "--time", "2h", "--wrap", "true")
        self.submit("-J", "held", "-G1", "--hold", "--wrap", "true")
        self.submit("-J", "later", "-b", "2031-02-28T16:30", "--mem", "1M", "--wrap", "true")
        time.sleep(1)

    def kill(self, daemon):
        daemon.kill()
        daemon.wait()
        found = subprocess.run(["pgrep", "-f", f"berth-run.*{FOLDER}"], check=False,
                               stdout=subprocess.PIPE, text=True).stdout.split()
        for pid in found:
            children = subprocess.run(["pgrep", "-P", pid], check=False,
                                      stdout=subprocess.PIPE, text=True).stdout.split()
            os.kill(int(pid), signal.SIGKILL)
            for child in children:
                try:
                    os.killpg(int(child), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def keep(self, to):
        base = sqlite3.connect(os.path.join(self.state, "berth.db"))
        version = base.execute("PRAGMA user_version").fetchone()[0]
        base.execute("UPDATE job SET uid = 1000, user = 'ada'")
        for table in ("usage", "submission") if version >= 5 else ():
            base.execute(f"UPDATE {table} SET uid = 1000")
        base.commit()
        lines = [line for line in base.iterdump() if "sqlite_sequence" not in line]
        base.close()
        node = os.uname().nodename
        text = "\n".join(lines).replace(f'"node":"{node}"', '"node":"node"')
        back = int(time.time()) - 1750000000

        def move(match):
            seconds = int(match[1])
            return str(seconds - back if abs(seconds - time.time()) < 86400 else seconds)
        text = re.sub(r"\b(\d{10})(?=\d{9}\b|\.\d)", move, text)
        with open(os.path.join(to, "berth.sql"), "w", encoding="utf-8") as file:
            file.write(f"PRAGMA user_version = {version};\n{text}\n")
        shutil.rmtree(os.path.join(to, "log"), True)
        shutil.copytree(os.path.join(self.state, "log"), os.path.join(to, "log"))


def main():
    shutil.rmtree(FOLDER, True)
    os.makedirs(FOLDER)
    maker = Maker(os.path.abspath(sys.argv[1]))
    daemon = maker.start()
    try:
        maker.submit_all()
    finally:
        maker.kill(daemon)
    maker.keep(os.path.abspath(sys.argv[2]))
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main()
