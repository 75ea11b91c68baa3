"""speed - the page on how fast it is, and beside whom."""
import plot
import words

# Who it was compared with in the same run; what a row is compared with otherwise is itself.
PEERS = {
    "CLP": "CLP",
    "CLP dual": "CLP, dual simplex",
    "CLP primal": "CLP, primal simplex",
    "CLP warm": "CLP, going on from its last basis",
    "task-spooler": "task-spooler",
    "slurm": "Slurm alone",
}

SUITES = {
    "sim": "Simulation: replays of 100,000 and of a million jobs, the cost of a decision, reading",
    "fit": "Learning curves of 100 points, cold and warm, and forecasts",
    "fitgpp": "FitGpp: choosing a victim among 80,000 jobs; its whole study",
    "flow": "Flows: whose packets go first, for 1,000 jobs on 1,000 hosts; the simulated network",
    "solve": "Shares of GPU time, by prices and by CLP",
    "gavel": "Gavel: a solution and a round over the number of jobs; the paper's window",
    "one": "The policy berth beside xion: cost of an event, and the longest decision",
    "live": "berthd itself: submissions, starts, preemptions, restarts",
    "slurm": "Berth on a Slurm of its own, beside Slurm alone",
}

FAIR = """\
Every ratio compares two measurements of one run on one machine: the same jobs, one after the
other, in the same process or on the same nodes with the same configuration. It says how many
times as fast Berth is; below 1 it is slower. The peers are those that Debian packages. CLP is
given the same problem that our solver is given, and answers to its own tolerance, ours to a
proven gap; times are CPU seconds, the best of several for both (the median, where a solution is
taken up again), in `solve` without the time to write a linear programme down, in `gavel` with
it, as a policy would need it. task-spooler and Berth run 2,000 jobs that do nothing, eight at a
time and in turns; task-spooler has only its command to take them by, Berth is asked over its socket. It keeps
nothing on disk: rows with `tmpfs` compare what both do in memory, `loaded` is beside ten processes that compute. Slurm
alone runs the same jobs in a partition that Berth does not look after.
"""

# What stands above the figures of a suite.
NOTES = {
    "live": """\
The floor of a job that is submitted alone is one `fdatasync`, because an accepted job must be on disk, one fork and
one execution of its command. Berth adds a fork for the job's supervisor, since a job's end has to survive `berthd`, and
the files by which a restarted `berthd` finds it. Rows with `tmpfs` are without the disk, so they show what is left beside
the `fdatasync`; [what is waited for](../internals/speed.md#from-a-submission-to-the-end-of-the-job) has each step
and its system calls.
""",
}


def against(record):
    """Rows that were measured beside another program."""
    return [row for row in record["output"]["rows"] if row.get("versus") in PEERS]


def of_peer(row):
    """The peer's own figure: rates are divided, times multiplied."""
    rate = row["unit"].endswith("/s")
    return row["value"] / row["ratio"] if rate else row["value"] * row["ratio"]


def times(ratio):
    return f"{words.digits(ratio)} ×"


def largest(rows, enough=16):
    """Of many rows that differ by their size alone, 'solve_las_2048', the largest."""
    if len(rows) <= enough:
        return rows
    kept = {row["id"].rpartition("_")[0]: row for row in sorted(rows, key=lambda r: r["n"])}
    return [row for row in rows if row in kept.values()]


def draw(benches):
    """One bar per row with a peer: {file name: (title, svg)}."""
    drawn = {}
    for record in benches:
        rows = largest([row for row in against(record) if row["ratio"] > 0])
        if rows:
            peers = list(PEERS)
            title = f"{record['name']}: times as fast as the peer"
            bars = [(f"{row['id']} / {row['versus']}", row["ratio"], peers.index(row["versus"]))
                    for row in rows]
            ratios = [1, *(row["ratio"] for row in rows)]
            drawn[f"speed-{record['name']}.svg"] = (title, plot.ranks(
                title, bars, lambda value: f"{value:,.3g} ×" if value < 1000
                else f"{value:,.0f} ×", log=max(ratios) / min(ratios) >= 20, line=1))
    return drawn


def peers_table(record):
    return words.table(
        ("row", "n", "Berth", "peer", "the peer's figure", "times as fast"),
        [(f"`{row['id']}`", words.count(row["n"]), words.figure(row["unit"], row["value"]),
          PEERS[row["versus"]], words.figure(row["unit"], of_peer(row)), times(row["ratio"]))
         for row in against(record)], (1, 2, 4, 5))


def own_table(record):
    return words.table(
        ("row", "n", "figure"),
        [(f"`{row['id']}`", words.count(row["n"]), words.figure(row["unit"], row["value"]))
         for row in record["output"]["rows"] if row.get("versus") not in PEERS], (1, 2))


def page(benches, pictures, first=""):
    text = "# Speed\n\n" + first + ("## Suites of `berth bench`\n\n" if first else "") + FAIR + "\n"
    missing = [name for name in SUITES if name not in {record["name"] for record in benches}]
    if missing:
        text += "Not measured: " + ", ".join(f"`berth bench {name}`" for name in missing) + ".\n\n"
    order = list(SUITES)
    for record in sorted(benches, key=lambda record: order.index(record["name"])
                         if record["name"] in order else len(order)):
        name, output = record["name"], record["output"]
        text += f"## {SUITES.get(name, name)}\n\n"
        text += NOTES[name] + "\n" if name in NOTES else ""
        if record.get("incomplete"):
            text += f"This run ended early: {record['incomplete']}\n\n"
        if record.get("said"):
            text += f"It said: {record['said']}\n\n"
        if against(record):
            picture = f"speed-{name}.svg"
            text += f"![{pictures[picture][0]}](plots/{picture})\n\n" + peers_table(record) + "\n"
        what = "Other figures" if against(record) else "Figures"
        text += (f"<details><summary>{what}, and how they came about</summary>\n\n"
                 + own_table(record) + "\n" + words.made(record) + "\n"
                 + "".join(f"- {note}\n" for note in output.get("notes", []))
                 + "\n</details>\n\n")
    return text
