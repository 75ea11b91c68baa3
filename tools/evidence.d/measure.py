"""measure - run what is measured, each as a command of its own, and save a record of it."""
import glob
import json
import os
import signal
import subprocess
import tempfile

import curves
import records
from records import ROOT

BUILD = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build"))
BERTH = os.environ.get("BERTH", os.path.join(BUILD, "berth"))
ASAN = os.path.join(ROOT, "build-asan")

PAPERS = ["fitgpp", "xion", "gavel", "slaq", "jpas"]
STUDIES = [*PAPERS, "one", "forecast"]

# Seconds after which a suite is given up.
SUITES = {"sim": 240, "fit": 60, "fitgpp": 60, "flow": 60, "solve": 180, "gavel": 180, "one": 300,
          "live": 240, "slurm": 600}

# What is injected: by which tests, how much of it, and with which programs for tests.
FAULT_TESTS = {
    "crash": ("tests/e2e/test_crash.py", {"BERTH_SOAK": "1"}, ["tests/marked_job"]),
    "disk": ("tests/e2e/test_disk.py", {}, []),
    "full-disk": ("tests/e2e/test_full_disk.py", {"BERTH_SOAK": "1"},
                  ["tests/libfull_disk.so", "tests/berth-run-shared", "tests/preloaded"]),
    "slurm": ("tests/e2e/test_slurm_faults.py", {"BERTH_SOAK": "1"}, []),
}
FAULTS = [*FAULT_TESTS, "worlds", "fuzz", "libfuzzer"]
FUZZ_RUNS = "20000"
LIBFUZZER_INPUTS = 20_000_000
LEARNED = ["rates", "sharing"] # tools/NAME-study
WORLD_SEEDS = 10000
FAULT_PATIENCE_S = 3600


class Failed(Exception):
    """One part came to nothing; the others go on."""


def run(words, timeout_s, **env):
    """Run it in the sources; what came of it.

    One that takes too long is asked to end, so that it can clear away what it has started,
    and what it has printed until then counts.
    """
    child = subprocess.Popen(words, cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, **env}, start_new_session=True)
    late = ""
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        late = f"\ntook more than {timeout_s} s"
        out, err = end(child)
    except BaseException:
        end(child)
        raise
    return subprocess.CompletedProcess(words, child.returncode or (1 if late else 0), out,
                                       err + late)


def end(child):
    """By its name for ending, and after a minute by force, with all that it started."""
    child.terminate()
    try:
        return child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()


def last_words(done):
    said = (done.stderr or done.stdout).strip().splitlines()
    return said[-1] if said else f"ended with status {done.returncode}"


def shown(words):
    """A command as one would type it, wherever the program stands."""
    return " ".join("berth" if word == BERTH else word for word in words)


def build(tree, *targets):
    """What a plain 'make' leaves out."""
    done = run(["ninja", "--quiet", "-C", tree, *targets], 1800)
    if done.returncode != 0:
        raise Failed(last_words(done))


# --- the papers ---------------------------------------------------------------------------

def reproduce(paper, quick=False, seeds=None):
    """A paper's figures.  A quick run does not take the place of a full one."""
    words = [BERTH, "reproduce", paper, "--json"]
    words += ["--quick"] if quick else []
    words += ["--seeds", str(seeds)] if seeds else []
    before = records.load("reproduce", paper)
    if quick and before and not before["output"]["quick"]:
        raise Failed("a full run is there, and a quick one does not take its place")
    record = records.Record("reproduce", paper, shown(words))
    done = run(words, timeout_s=8 * 3600)
    if done.returncode != 0:
        raise Failed(last_words(done))
    output = json.loads(done.stdout)
    return record.save(seeds=output["seeds"], output=output)


# --- speed --------------------------------------------------------------------------------

def bench(suite):
    """How fast.  Of a suite that fails in the middle, what came before is kept, and says so."""
    words = [BERTH, "bench", suite, "--json"]
    record = records.Record("bench", suite, shown(words))
    done = run(words, SUITES.get(suite, 300))
    output = json.loads(done.stdout) if done.stdout else {"rows": []}
    if not output["rows"]:
        raise Failed(last_words(done))
    more = {"incomplete": last_words(done)} if done.returncode else {}
    said = done.stderr.strip()
    if said and not more:
        more["said"] = said
    return record.save(output=output, **more)


def speed_curves(stop_s=None):
    """What a run costs for every policy as jobs, GPUs and active jobs grow."""
    stop_s = stop_s or curves.STOP_S
    record = records.Record("speed", "curves", f"tools/evidence speed --stop {stop_s:g}")
    return record.save(output=curves.measure(BERTH, stop_s))


def learned(name):
    """What learned rates, or shared GPUs, bring to real jobs."""
    words = [f"tools/{name}-study"]
    record = records.Record("learned", name, shown(words))
    with tempfile.TemporaryDirectory(prefix="berth-evidence-") as folder:
        path = os.path.join(folder, "out.json")
        done = run([*words, "--json", path], timeout_s=3 * 3600)
        if done.returncode != 0:
            raise Failed(last_words(done))
        with open(path, encoding="utf-8") as file:
            output = json.load(file)
    return record.save(output=output)


# --- faults -------------------------------------------------------------------------------

def lines_of(path):
    """What the tests wrote into BERTH_EVIDENCE_OUT: one object per line."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def injected(name, env, programs):
    """Tests that inject, with how many of them passed; a failure is recorded, not hidden."""
    if programs:
        build(BUILD, *programs)
    words = ["tools/check", "--tap", name]
    settings = {"BERTH": BERTH, "BERTH_BUILD": BUILD, **env}
    record = records.Record("faults", kind_of(name), shown([*(f"{k}={v}" for k, v in
                                                             env.items()), *words]))
    with tempfile.TemporaryDirectory(prefix="berth-evidence-") as folder:
        out = os.path.join(folder, "out")
        done = run(words, FAULT_PATIENCE_S, BERTH_EVIDENCE_OUT=out, **settings)
        survived = lines_of(out)
    verdicts = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "not ok "))]
    skipped = [line.split("# SKIP ", 1)[1] for line in verdicts if "# SKIP" in line]
    failed = [line.split(" - ", 1)[1] for line in verdicts if line.startswith("not ok ")]
    if failed:
        print(done.stdout, flush=True)
    if not survived and not failed:
        raise Failed("skipped: " + (skipped[0] if skipped else last_words(done)))
    return record.save(seeds=sorted({s["seed"] for s in survived if "seed" in s}), output={
        "tests": {"passed": len(verdicts) - len(failed) - len(skipped), "failed": failed,
                  "skipped": sorted(set(skipped))}, "survived": survived})


def kind_of(name):
    return next(kind for kind, (path, *_) in FAULT_TESTS.items() if path == name)


def fuzz():
    """Every parser over its corpus and mutants of it, under the sanitizers if they are built."""
    tree = ASAN if os.path.exists(os.path.join(ASAN, "build.ninja")) else BUILD
    targets = [os.path.basename(path)[len("fuzz_"):-len(".c")]
               for path in sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c")))]
    build(tree, *(f"tests/fuzz_{target}" for target in targets))
    where = os.path.relpath(tree, ROOT)
    record = records.Record("faults", "fuzz", f"BERTH_FUZZ_RUNS={FUZZ_RUNS} "
                            f"{where}/tests/fuzz_NAME tests/fuzz/corpus/NAME")
    failed = []
    with tempfile.TemporaryDirectory(prefix="berth-evidence-") as folder:
        out = os.path.join(folder, "out")
        for target in targets:
            done = run([os.path.join(tree, "tests", f"fuzz_{target}"),
                        os.path.join(ROOT, "tests", "fuzz", "corpus", target)], 1800,
                       BERTH_EVIDENCE_OUT=out, BERTH_FUZZ_RUNS=FUZZ_RUNS)
            if done.returncode != 0:
                failed.append(target)
        survived = lines_of(out)
    return record.save(seeds=sorted({s["seed"] for s in survived}),
                       output={"failed": failed, "targets": survived})


def libfuzzer(seconds):
    """Every target under clang's libFuzzer, which follows what an input reaches."""
    words = ["tools/fuzz", *(["--seconds", str(seconds)] if seconds else
                             ["--inputs", str(LIBFUZZER_INPUTS)])]
    record = records.Record("faults", "libfuzzer", shown(words))
    with tempfile.TemporaryDirectory(prefix="berth-evidence-") as folder:
        out = os.path.join(folder, "out")
        done = run(words, 2 * (seconds or 6 * 3600), BERTH_EVIDENCE_OUT=out)
        targets = sorted(lines_of(out), key=lambda target: target["target"])
    if not targets:
        raise Failed(last_words(done))
    if done.returncode != 0:
        print(done.stdout, flush=True)
    return record.save(seeds=sorted({target["seed"] for target in targets}), output={
        "failed": [target["target"] for target in targets if not target["passed"]],
        "targets": targets})


def worlds(seeds):
    """Seeded worlds in which everything goes wrong, for every policy."""
    program = os.path.join(BUILD, "tests", "soak_worlds")
    words = [program, "--seeds", str(seeds or WORLD_SEEDS), "--json"]
    build(BUILD, "tests/soak_worlds")
    record = records.Record("faults", "worlds", shown(["tests/soak_worlds", *words[1:]]))
    done = run(words, 2 * FAULT_PATIENCE_S)
    if not done.stdout:
        raise Failed(last_words(done))
    output = json.loads(done.stdout)
    last = output["from"] + output["seeds"] - 1
    return record.save(seeds=f"{output['from']} to {last}", output=output)


def faults(kind, seeds=None, seconds=None):
    if kind == "fuzz":
        return fuzz()
    if kind == "libfuzzer":
        return libfuzzer(seconds)
    if kind == "worlds":
        return worlds(seeds)
    return injected(*FAULT_TESTS[kind])


# --- coverage -----------------------------------------------------------------------------

def coverage(read=False):
    """What tools/coverage counts; its list of lines that nothing reached stays there."""
    words = ["tools/coverage", *(["--read"] if read else []), "--json"]
    record = records.Record("coverage", "gcov", shown([*words, "FILE"]))
    with tempfile.TemporaryDirectory(prefix="berth-evidence-") as folder:
        path = os.path.join(folder, "coverage.json")
        done = run([*words, path], FAULT_PATIENCE_S)
        if not os.path.exists(path):
            raise Failed(last_words(done))
        with open(path, encoding="utf-8") as file:
            output = json.load(file)
    for folder in output["folders"]:
        for source in folder["files"]:
            for key in ("missing", "missing_branches"):
                source.pop(key, None)
    return record.save(output=output)
