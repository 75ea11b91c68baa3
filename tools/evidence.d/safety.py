"""safety - the pages on faults that were injected and survived, and on what the tests reach."""
import plot
import words


# --- faults -------------------------------------------------------------------------------

INJECTED = ("crash", "disk", "full-disk", "slurm") # kinds of faults of processes, disks, nodes


def over(counts):
    """'3 jobs, 1 restart'; a name that is a sentence stands before its number."""
    return ", ".join(f"{name.replace('_', ' ')} {words.count(number)} ×" if "_" in name
                     else words.plural(number, name.removesuffix("s"), name)
                     for name, number in counts.items()) or words.BLANK


def failed_in(records):
    """What did not survive: [(kind, what)]."""
    gone = []
    for kind, record in records.items():
        output = record["output"]
        if kind == "worlds":
            failures = output["failures"]
            gone += [(kind, words.plural(failures, "world"))] if failures else []
        elif kind in ("fuzz", "libfuzzer"):
            gone += [(kind, target) for target in output["failed"]]
        else:
            gone += [(kind, name) for name in output["tests"]["failed"]]
    return gone


def together(lines):
    """Lines of the same fault, from several tests, as one."""
    merged = {}
    for line in lines:
        times, counts = merged.setdefault((line["fault"], line["held"]), [0, {}])
        merged[line["fault"], line["held"]][0] = times + line["times"]
        for name, number in line["over"].items():
            counts[name] = counts.get(name, 0) + number
    return [(fault, times, held, counts) for (fault, held), (times, counts) in merged.items()]


def processes(records):
    lines = [line for kind in INJECTED if kind in records
             for line in records[kind]["output"]["survived"]]
    return words.table(("fault", "times", "what held, each time", "checked on"), [
        (fault, words.count(times), held, over(counts))
        for fault, times, held, counts in together(lines)], (1,))


def worlds_text(record):
    output = record["output"]
    text = (f"{words.count(output['worlds'])} worlds: {words.plural(output['seeds'], 'seed')} for "
            f"each of {output['policies']} policies. {words.count(output['events'])} events, "
            f"{words.count(output['decisions'])} decisions, "
            f"{words.count(output['faults_injected'])} faults; the state was rebuilt from the "
            f"store {words.count(output['rebuildings'])} times and compared. "
            f"{words.plural(output['failures'], 'world')} failed. "
            "[What happens there, and what is checked](../internals/worlds.md).\n\n")
    return text + words.table(("fault", "times"), [
        (name.replace("_", " "), words.count(number))
        for name, number in output["faults"].items()], (1,))


def fuzz_inputs(record):
    return sum(t["files"] + t["mutants"] for t in record["output"]["targets"])


def fuzz_text(record):
    targets = record["output"]["targets"]
    under = "under AddressSanitizer and UBSan" if all(t["sanitizers"] for t in targets) \
        else "without sanitizers"
    failed = record["output"]["failed"]
    text = (f"{words.plural(len(targets), 'parser')}, {words.count(fuzz_inputs(record))} inputs, "
            f"{under}: files of a corpus, and mutants of them. None ended the program"
            + (f", except in {', '.join(failed)}" if failed else "") + ".\n\n")
    return text + words.table(("parser", "files", "mutants"), [
        (f"`{t['target'].removeprefix('fuzz_')}`", words.count(t["files"]),
         words.count(t["mutants"])) for t in targets], (1, 2))


def libfuzzer_text(record):
    targets, failed = record["output"]["targets"], record["output"]["failed"]
    inputs = sum(t["inputs"] for t in targets)
    text = (f"{words.plural(len(targets), 'target')} under clang's libFuzzer, with AddressSanitizer "
            f"and UBSan: {words.count(inputs)} inputs, mutated from those that reached something new. None ended "
            "a target, hung or took more than 2 GiB"
            + (f", except in {', '.join(failed)}" if failed else "") + ".\n\n")
    return text + words.table(("target", "inputs", "edges reached", "inputs kept"), [
        (f"`{t['target']}`", words.count(t["inputs"]), words.count(t["edges"]),
         words.count(t["saved"])) for t in targets], (1, 2, 3))


def faults_page(records):
    text = ("# Faults injected and survived\n\nA line is here only if everything that it says has "
            "held was checked and did hold, in the run that is named below it.\n\n")
    gone = failed_in(records)
    if gone:
        text += "**Not survived:**\n\n"
        text += "".join(f"- {kind}: {what}\n" for kind, what in gone) + "\n"
    known = [kind for kind in INJECTED if kind in records]
    if known:
        text += "## Processes, disks and nodes\n\n" + processes(records) + "\n"
        for kind in known:
            tests = records[kind]["output"]["tests"]
            text += (f"<details><summary>{kind}: {words.plural(tests['passed'], 'test')} passed, "
                     f"{len(tests['failed'])} failed</summary>\n\n"
                     + words.made(records[kind]) + "\n</details>\n\n")
    if "worlds" in records:
        text += "## Worlds in which everything goes wrong\n\n" + worlds_text(records["worlds"]) \
            + "\n" + words.made(records["worlds"]) + "\n"
    if "fuzz" in records:
        text += "## Hostile input\n\n" + fuzz_text(records["fuzz"]) + "\n" \
            + words.made(records["fuzz"]) + "\n"
    if "libfuzzer" in records:
        text += "## Hostile input, guided by what it reaches\n\n" + libfuzzer_text(records["libfuzzer"]) \
            + "\n" + words.made(records["libfuzzer"]) + "\n"
    missing = [kind for kind in (*INJECTED, "worlds", "fuzz", "libfuzzer") if kind not in records]
    if missing:
        text += "Not recorded yet: " + ", ".join(missing) + ".\n"
    return text


# --- coverage -----------------------------------------------------------------------------

def share(row, key):
    return row[f"{key}_hit"] / row[key] if row[key] else 1.0


def percent(row, key):
    return f"{100 * share(row, key):.1f} %"


def whole(record):
    """All folders as one row."""
    folders = record["output"]["folders"]
    return {key: sum(folder[key] for folder in folders)
            for key in ("lines", "lines_hit", "branches", "branches_hit")}


def promised(record):
    """Folders and files that are to be above the mark."""
    output = record["output"]
    rows = {row["name"]: row for folder in output["folders"] for row in [folder, *folder["files"]]}
    return [rows[name] for name in output["promised"] if name in rows]


def draw_coverage(record):
    mark = record["output"]["mark"]
    rows = [(folder["name"], 100 * share(folder, "branches"),
             2 if share(folder, "branches") > mark else 1)
            for folder in record["output"]["folders"] if folder["branches"]]
    title = "Branches that the tests reach, by folder"
    return {"coverage.svg": (title, plot.ranks(title, rows, lambda value: f"{value:.4g} %",
                                               line=100 * mark, high=100))}


def coverage_page(record, pictures):
    output, all_of = record["output"], whole(record)
    tests = output["tests"] or {}
    low = [row for row in promised(record) if share(row, "branches") <= output["mark"]]
    name, (title, _) = next(iter(pictures.items()))
    text = (f"# What the tests reach\n\n{percent(all_of, 'lines')} of "
            f"{words.count(all_of['lines'])} lines and {percent(all_of, 'branches')} of "
            f"{words.count(all_of['branches'])} branches, counted by gcov while the tests of "
            "`make check` ran once"
            + (f" ({tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped)"
               if tests else "")
            + ". A branch is one way out of a condition, as gcc sees it without optimising; those "
            "of assertions are not counted. What a process counted is lost when it is killed, so "
            "in truth more was reached.\n\n" + words.made(record)
            + f"\n![{title}](plots/{name})\n\n")
    head = ("folder", "lines", "reached", "branches", "reached")
    text += words.table(head, [
        (f"`{row['name']}`", words.count(row["lines"]), percent(row, "lines"),
         words.count(row["branches"]), percent(row, "branches"))
        for row in output["folders"]], (1, 2, 3, 4))
    mark = f"{100 * output['mark']:.0f} %"
    text += f"\n## What is to be above {mark} of its branches\n\n" + (
        "Not above it:\n\n" + words.table(("", "branches", "reached"), [
            (f"`{row['name']}`", words.count(row["branches"]), percent(row, "branches"))
            for row in low], (1, 2)) + "\n" if low else "All of it is.\n\n")
    text += "<details><summary>Each</summary>\n\n" + words.table(("", "branches", "reached"), [
        (f"`{row['name']}`", words.count(row["branches"]), percent(row, "branches"))
        for row in promised(record)], (1, 2)) + "\n</details>\n"
    return text
