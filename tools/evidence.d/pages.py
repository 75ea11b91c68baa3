"""pages - docs/evidence and README's table, from the saved records and from nothing else."""
import os
import shutil

import curves
import forecasts
import learned
import measure
import papers
import records
import safety
import speed
import unified
import words

BEGIN, END = "<!-- evidence -->\n", "<!-- end of evidence -->\n"

# README's rows: of each paper and bench, what it is best known by.
HEADLINE_PAPERS = [
    ("fitgpp", "te_p95_change", "FitGpp: slowdown of trial jobs, 95 %, against FIFO"),
    ("fitgpp", "be_p50_change", "FitGpp: slowdown of best-effort jobs, median, against FIFO"),
    ("xion", "jct_change_vs_srtf", "Xion: mean completion time against SRTF"),
    ("gavel", "las_jct_ratio_single", "Gavel: completion time, LAS over Gavel LAS, 5.6 jobs/h"),
    ("gavel", "makespan_ratio_fifo", "Gavel: makespan, FIFO over Gavel"),
    ("slaq", "t90_change", "SLAQ: time to 90 % of a model, against equal shares"),
    ("slaq", "t90_change_berth", "Berth's default of SLAQ: the same"),
    ("jpas", "t90_change_best", "JPAS: time to 90 % of a model, best setting"),
    ("jpas", "t95_change_best", "JPAS: time to 95 % of a model, best setting"),
    ("jpas", "t90_change_best_berth", "Berth's variant of JPAS: time to 90 %, best setting"),
]
HEADLINE_SPEED = [
    ("solve", "maxmin_4k", "max-min shares of 4,096 jobs"),
    ("live", "trivial_jobs_singly", "jobs that do nothing, submitted one by one"),
    ("slurm", "trivial_jobs", "jobs that do nothing, on a Slurm cluster"),
    ("slurm", "makespan.gavel-makespan", "makespan on a Slurm cluster with three types of GPU"),
]


def find(rows, ident):
    return next((row for row in rows if row["id"] == ident), None)


def headline_papers(data):
    """Published beside measured, with the setting and what the gain costs."""
    rows = []
    for paper, ident, what in HEADLINE_PAPERS:
        record = records.load("reproduce", paper, data)
        row = record and find(record["output"]["rows"], ident)
        if not row:
            continue
        unit = row["unit"]
        spread = f" ({words.span(unit, *row['spread'])})" if row["seeds"] > 1 else ""
        setting = f"`{row['setting']}`" if "setting" in row else words.BLANK
        rows.append((f"[{what}](docs/evidence/{paper}.md)", setting,
                     words.figure(unit, row.get("published")),
                     words.figure(unit, row["measured"]) + spread,
                     (row["verdict"] if "published" in row else words.BLANK)
                     + (", in the quick study" if record["output"]["quick"] else ""),
                     papers.fidelity(row), papers.price(row)))
    return words.table(("paper", "setting", "published", "measured", "verdict", "fidelity",
                        "price, and a simpler policy beside it"), rows, (2, 3)) if rows else ""


def headline(data):
    """README's tables: papers, then a peer against measured, and what was survived."""
    rows = []
    for suite, ident, what in HEADLINE_SPEED:
        record = records.load("bench", suite, data)
        row = record and find(record["output"]["rows"], ident)
        if row and row.get("versus") in speed.PEERS:
            rows.append((f"[{what}](docs/evidence/speed.md)",
                         f"{words.figure(row['unit'], speed.of_peer(row))}, "
                         f"{speed.PEERS[row['versus']]}", words.figure(row["unit"], row["value"]),
                         f"{speed.times(row['ratio'])} as fast"))
    rows += safe_rows(data)
    tables = [headline_papers(data), words.table(("", "a peer in the same run", "measured", ""),
                                                 rows, (1, 2)) if rows else ""]
    return "\n".join(filter(None, tables))


def safe_rows(data):
    rows = []
    link = "[{}](docs/evidence/faults.md)"
    crash, world = (records.load("faults", kind, data) for kind in ("crash", "worlds"))
    for line in crash["output"]["survived"][:1] if crash else []:
        rows.append((link.format(line["fault"]), words.BLANK,
                     f"{words.count(line['times'])} times, {safety.over(line['over'])}",
                     "no job lost or run twice"))
    if world:
        output = world["output"]
        rows.append((link.format(f"seeded worlds of every policy, "
                                 f"{words.count(output['faults_injected'])} faults in them"),
                     words.BLANK, words.count(output["worlds"]),
                     f"{words.count(output['failures'])} failed"))
    counted = records.load("coverage", "gcov", data)
    if counted:
        rows.append(("[branches that the tests reach](docs/evidence/coverage.md)", words.BLANK,
                     safety.percent(safety.whole(counted), "branches"),
                     f"of {words.count(safety.whole(counted)['branches'])}"))
    return rows


def index(data, written):
    """docs/evidence/README.md: what there is, and how it came about."""
    text = ("# Evidence\n\nWhat Berth claims, measured. Everything in this folder is written by "
            "`tools/evidence` from the records in [data](data), one JSON file per run, which have "
            "the command, the commit, the date, the machine, its load and the seeds; nothing is "
            "typed by hand. `make evidence` measures all of it anew.\n\n"
            + headline(data).replace("](docs/evidence/", "](") + "\n## The five papers\n\n")
    rows = []
    for paper in measure.PAPERS:
        record = records.load("reproduce", paper, data)
        if record:
            own = papers.published(record)
            rows.append((f"[{record['output']['title']}]({paper}.md)", len(own),
                         papers.tally(own), papers.weakest_fidelity(own),
                         words.seeds(record["seeds"]), record["date"]))
    text += words.table(("paper", "figures", "verdicts", "fidelity", "seeds", "measured"), rows,
                        (1,))
    text += "\n" + papers.VERDICT + "\n## One policy, forecasts, speed, learned rates, faults, coverage\n\n"
    for name, what in (("one", "the policy `berth` in every study, beside the best of each"),
                       ("forecast", "when jobs start and end, forecast and as it happened"),
                       ("speed", "how fast it is, beside CLP, task-spooler and Slurm alone"),
                       ("learned", "what real jobs gain from learned speeds and shared GPUs"),
                       ("faults", "what was injected and survived"),
                       ("coverage", "which lines and branches the tests reach")):
        if f"{name}.md" in written:
            text += f"- [{what[:1].upper() + what[1:]}]({name}.md)\n"
    return text


def render(data):
    """Every file of the folder but the records: {path in the folder: text}."""
    files, reasons = {}, papers.known_reasons()

    def put(pictures):
        files.update({f"plots/{name}": svg for name, (_, svg) in pictures.items()})
        return pictures

    for paper in measure.PAPERS:
        record = records.load("reproduce", paper, data)
        if record:
            files[f"{paper}.md"] = papers.page(record, put(papers.draw(record)), reasons)
    one = records.load("reproduce", "one", data)
    if one:
        files["one.md"] = unified.page(one, put(unified.draw(one)))
    ahead = records.load("reproduce", "forecast", data)
    if ahead:
        files["forecast.md"] = forecasts.page(ahead, put(forecasts.draw(ahead)))
    benches = records.load_all("bench", data)
    grown = records.load("speed", "curves", data)
    if benches or grown:
        first = curves.section(grown, put(curves.draw(grown, benches))) if grown else ""
        files["speed.md"] = speed.page(benches, put(speed.draw(benches)), first)
    studies = {record["name"]: record for record in records.load_all("learned", data)}
    if studies:
        files["learned.md"] = learned.page(studies)
    injected = {record["name"]: record for record in records.load_all("faults", data)}
    if injected:
        files["faults.md"] = safety.faults_page(injected)
    counted = records.load("coverage", "gcov", data)
    if counted:
        files["coverage.md"] = safety.coverage_page(counted, put(safety.draw_coverage(counted)))
    files["README.md"] = index(data, files)
    return files


def write(folder, data=records.DATA):
    """The folder anew; what is no longer written goes."""
    files = render(data)
    shutil.rmtree(os.path.join(folder, "plots"), ignore_errors=True)
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name.endswith(".md") and name not in files:
            os.remove(os.path.join(folder, name))
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return len(files)


def write_headline(readme, data=records.DATA):
    """What stands between the markers in README.md."""
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise measure.Failed(f"{os.path.basename(readme)} has no '{BEGIN.strip()}' and "
                             f"'{END.strip()}'")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(before + begin + headline(data) + end + after)
