"""records - what a run leaves behind: one JSON file with the figures and how they came about."""
import json
import os
import platform
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOME = os.path.join(ROOT, "docs", "evidence")
FOLDER = os.environ.get("BERTH_EVIDENCE", HOME) # elsewhere: to try something
DATA = os.path.join(FOLDER, "data")
OWN_OUTPUT = ("docs/evidence", "README.md") # what pages writes does not make a tree another one


def first_line(*command):
    """What a program says of itself; empty where it is not installed."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout else ""


def after_colon(path, name):
    """The value of a 'name : value' line, as /proc writes them."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.split(":")[0].strip() == name:
                return line.split(":", 1)[1].strip()
    return ""


def commit():
    """The commit that is measured; with a '+' if the sources differ from it."""
    name = first_line("git", "rev-parse", "--short=12", "HEAD")
    changed = first_line("git", "status", "--porcelain", "--untracked-files=no", "--", ".",
                         *(f":(exclude){path}" for path in OWN_OUTPUT))
    return name + ("+" if changed else "")


def machine():
    memory_kib = int(after_colon("/proc/meminfo", "MemTotal").split()[0])
    return {
        "cpu": after_colon("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_kib * 1024,
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "compiler": first_line("cc", "--version"),
    }


class Record:
    """One run: open it before, give it what came out, save it."""

    def __init__(self, part, name, command):
        self.path = os.path.join(DATA, f"{part}-{name}.json")
        self.began = time.monotonic()
        self.content = {
            "part": part,
            "name": name,
            "command": command,
            "commit": commit(),
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "machine": machine(),
            "load": [round(os.getloadavg()[0], 2)],
        }

    def save(self, **what):
        """Figures go in whole or not at all: a run that is killed leaves the last one."""
        self.content["load"].append(round(os.getloadavg()[0], 2))
        self.content["seconds"] = round(time.monotonic() - self.began, 1)
        self.content.update(what)
        os.makedirs(DATA, exist_ok=True)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.content, file, indent=1, ensure_ascii=False)
            file.write("\n")
        os.replace(self.path + ".new", self.path)
        return os.path.relpath(self.path)


def load(part, name, data=DATA):
    """A saved record, or None."""
    try:
        with open(os.path.join(data, f"{part}-{name}.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def load_all(part, data=DATA):
    """All saved records of a part, by name."""
    names = sorted(os.listdir(data)) if os.path.isdir(data) else []
    return [load(part, name[len(part) + 1:-len(".json")], data) for name in names
            if name.startswith(part + "-") and name.endswith(".json")]
