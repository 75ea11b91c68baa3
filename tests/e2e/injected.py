"""Record which faults were injected and survived, for the evidence.

A test calls survived() as the last thing it does, when all that must hold has held.  With
BERTH_EVIDENCE_OUT set to a file, a line of JSON is added to it; tools/evidence does so.
"""
import json
import os


def survived(fault, times, held, seed=None, **over):
    """'times' faults of one kind; what held; 'over' counts what it was checked on."""
    path = os.environ.get("BERTH_EVIDENCE_OUT")
    if not path:
        return
    line = {"fault": fault, "times": times, "held": held, "over": over}
    if seed is not None:
        line["seed"] = seed
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
