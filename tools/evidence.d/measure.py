"""measure - run what is measured, each as a command of its own, and save a record of it."""
import json
import os
import subprocess

import records

BUILD = os.environ.get("BERTH_BUILD", os.path.join(records.ROOT, "build"))
BERTH = os.environ.get("BERTH", os.path.join(BUILD, "berth"))

PAPERS = ["fitgpp", "xion", "slaq", "jpas", "gavel"]


class Failed(Exception):
    """One part came to nothing; the others go on."""


def ask(words, timeout_s):
    """What a command prints as JSON, and what it says beside that."""
    try:
        done = subprocess.run(words, cwd=records.ROOT, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"took more than {timeout_s} s") from late
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(said[-1] if said else f"ended with status {done.returncode}")
    return json.loads(done.stdout), done.stderr.strip()


def shown(words):
    """A command as one would type it, wherever the program stands."""
    return " ".join(os.path.relpath(word, BUILD) if word.startswith(BUILD) else word
                    for word in words)


def reproduce(paper, quick=False, seeds=None):
    """A paper's figures.  A quick run does not take the place of a full one."""
    words = [BERTH, "reproduce", paper, "--json"]
    words += ["--quick"] if quick else []
    words += ["--seeds", str(seeds)] if seeds else []
    before = records.load("reproduce", paper)
    if quick and before and not before["output"]["quick"]:
        raise Failed("a full run is there, a quick one is not kept in its place")
    record = records.Record("reproduce", paper, shown(words))
    output, _ = ask(words, timeout_s=8 * 3600)
    return record.save(seeds=output["seeds"], output=output)
