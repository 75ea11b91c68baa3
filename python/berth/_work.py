"""The other end of berth.submit(): calls the function in the job, keeps what came of it.

    python -m berth._work FOLDER
"""
import importlib
import os
import pickle
import runpy
import sys
import traceback
import types

from ._submit import CALL, MAIN, RESULT


def _load_file(path):
    """The submitter's script, under another name so that its own work is not done again;
    what it defines is also found as '__main__', where its pickled objects say they are."""
    module = types.ModuleType(MAIN)
    module.__dict__.update(runpy.run_path(path, run_name=MAIN))
    sys.modules[MAIN] = sys.modules["__main__"] = module
    return module


def find(how, where, name):
    if how == "module":
        found = importlib.import_module(where)
    elif how == "file":
        found = _load_file(where)
    else:
        found = types.ModuleType("__berth_text__")
        sys.modules[found.__name__] = found
        exec(compile(where, "<submitted>", "exec"), found.__dict__)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def keep(folder, outcome):
    """Write it so that it is there whole or not at all."""
    part = os.path.join(folder, RESULT + ".part")
    with open(part, "wb") as file:
        file.write(outcome)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, os.path.join(folder, RESULT))


def raised(error):
    """An exception as bytes, or the like of it where it cannot be pickled."""
    told = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        data = pickle.dumps(("raised", error, told))
        pickle.loads(data)  # some go in and do not come out
        return data
    except Exception:
        return pickle.dumps(("raised", RuntimeError(f"{type(error).__name__}: {error}"),
                             told))


def work(folder):
    try:
        with open(os.path.join(folder, CALL), "rb") as file:
            call = pickle.load(file)
        sys.path[:] = call["path"] + [p for p in sys.path if p not in call["path"]]
        fn = find(*call["function"])
        args, kwargs = pickle.loads(call["call"])
        outcome = pickle.dumps(("returned", fn(*args, **kwargs)))
    except Exception as error:  # SystemExit goes on: 85 means 'put me back'
        keep(folder, raised(error))
        traceback.print_exc()
        return 1
    keep(folder, outcome)
    return 0


if __name__ == "__main__":
    sys.exit(work(sys.argv[1]))
