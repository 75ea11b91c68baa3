"""docs/evidence: made from its records alone, to the byte; and a run that fails hides nothing."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from support import ROOT, Case
from verdicts import check_rows

FOLDER = os.path.join(ROOT, "docs", "evidence")
TOOL = os.path.join(ROOT, "tools", "evidence")
WRITTEN_BY_THE_TOOL = re.compile(r"<!-- evidence -->\n(.*?)<!-- end of evidence -->", re.S)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def below(folder):
    """Everything there but the records."""
    return {os.path.relpath(path, folder): text_of(path)
            for path in glob.glob(os.path.join(folder, "**", "*"), recursive=True)
            if os.path.isfile(path) and not path.startswith(os.path.join(folder, "data"))}


class Evidence(Case):
    def tool(self, *words, **env):
        return subprocess.run([sys.executable, TOOL, *words], cwd=self.scratch, text=True,
                              env={**os.environ, **env}, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300)

    def test_pages_are_what_their_records_say(self):
        done = self.tool("pages", self.path("again"))
        self.assertEqual(done.returncode, 0, done)
        again, here = below(self.path("again")), below(FOLDER)
        self.assertEqual(sorted(again), sorted(here), "run tools/evidence pages")
        for name, text in again.items():
            self.assertTrue(text == here[name], f"{name} differs: run tools/evidence pages")

    def reproduced(self):
        """The rows of every paper's record."""
        return {os.path.basename(path)[len("reproduce-"):-len(".json")]:
                json.loads(text_of(path))["output"]["rows"]
                for path in glob.glob(os.path.join(FOLDER, "data", "reproduce-*.json"))}

    def test_every_verdict_can_be_made_again_from_its_record(self):
        found = self.reproduced()
        for study in ("one", "forecast"): # they have targets instead of published figures
            del found[study]
        self.assertEqual(sorted(found), ["fitgpp", "gavel", "jpas", "slaq", "xion"])
        for paper, rows in found.items():
            check_rows(self, rows, has_values=any("values" in row for row in rows))

    def test_every_target_of_a_forecast_is_judged_by_its_record(self):
        rows = [row for row in self.reproduced()["forecast"] if "target" in row]
        self.assertGreater(len(rows), 100)
        for row in rows:
            self.assertEqual(row["verdict"] == "better", row["measured"] <= row["target"], row)

    def test_every_regret_can_be_made_again_from_its_record(self):
        record = json.loads(text_of(os.path.join(FOLDER, "data", "reproduce-one.json")))
        chart = next(one for one in record["output"]["charts"] if one["kind"] == "regret")
        checked = 0
        for cell in chart["cells"]:
            for metric in cell["metrics"]:
                if metric["regret"] is None:
                    continue
                policies = {one["policy"]: one["seeds"] for one in metric["policies"]}
                subject, reference = metric["policies"][0]["seeds"], policies[metric["against"]]
                self.assertTrue(metric["policies"][0]["policy"].startswith("berth"))
                again = sum(a / b - 1 for a, b in zip(subject, reference)) / len(subject)
                self.assertAlmostEqual(again, metric["regret"], places=9)
                checked += 1
        self.assertGreater(checked, 50)

    def test_fidelities_are_those_of_the_setups(self):
        found = self.reproduced()
        for paper, fidelity in (("fitgpp", "reconstructed"), ("xion", "reconstructed"),
                                ("jpas", "reconstructed"), ("slaq", "tuned")):
            self.assertEqual({row["fidelity"] for row in found[paper]}, {fidelity})
        gavel = {row["id"]: row for row in found["gavel"]}
        self.assertEqual(gavel["las_jct_ratio_single"]["fidelity"], "released-code")
        self.assertEqual({row["verdict"] for name, row in gavel.items() if row["unit"] == "s"},
                         {"faster"})
        self.assertEqual({name for name, row in gavel.items() if row["verdict"] == "faster"},
                         {name for name in gavel if name.startswith("solver_")})

    def test_headlines_have_setting_fidelity_and_price(self):
        table = WRITTEN_BY_THE_TOOL.search(text_of(os.path.join(ROOT, "README.md"))).group(1)
        lines = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in table.split("\n\n")[0].splitlines()]
        self.assertEqual(lines[0][1:6], ["setting", "published", "measured", "verdict", "fidelity"])
        rows = {line[0].split("]")[0].lstrip("["): line for line in lines[2:]}
        self.assertGreater(len(rows), 8)
        found = self.reproduced()
        for paper, ident, start in (("slaq", "t90_change", "SLAQ: time to 90"),
                                    ("slaq", "t90_change_berth", "Berth's default of SLAQ"),
                                    ("jpas", "t90_change_best", "JPAS: time to 90"),
                                    ("fitgpp", "te_p95_change", "FitGpp: slowdown of trial")):
            row = next(row for row in found[paper] if row["id"] == ident)
            shown = next(line for name, line in rows.items() if name.startswith(start))
            self.assertEqual(shown[1], f"`{row['setting']}`")
            self.assertIn(f"price: {100 * row['price']['measured']:+.1f} %".replace("-", "−"),
                          shown[6])
        trial = next(line for name, line in rows.items() if "trial jobs" in name)
        self.assertRegex(trial[6], "beside: −96.[0-9] %, rand")

    def test_figures_in_the_pages_of_policies_are_those_of_the_records(self):
        sys.path.insert(0, os.path.join(ROOT, "tools", "evidence.d"))
        try:
            import figures # pylint: disable=import-outside-toplevel
        finally:
            sys.path.pop(0)
        blocks = 0
        for path in figures.pages():
            text = text_of(path)
            blocks += text.count("<!-- figures ")
            self.assertEqual(text.count("<!-- figures "), len(figures.BLOCK.findall(text)), path)
            self.assertTrue(figures.fill(text, os.path.join(FOLDER, "data")) == text,
                            f"{path}: run tools/evidence pages")
        self.assertGreater(blocks, 6)

    def test_readme_has_the_same_table(self):
        table = WRITTEN_BY_THE_TOOL.search(text_of(os.path.join(ROOT, "README.md"))).group(1)
        shown = text_of(os.path.join(FOLDER, "README.md"))
        self.assertIn(table.replace("](docs/evidence/", "]("), shown)
        self.assertGreater(table.count("\n"), 3)

    def test_records_say_how_they_came_about(self):
        for path in glob.glob(os.path.join(FOLDER, "data", "*.json")):
            record = json.loads(text_of(path))
            for key in ("command", "commit", "date", "machine", "seconds", "output"):
                self.assertTrue(record[key], f"{path}: {key}")
            self.assertEqual(len(record["load"]), 2)
            self.assertEqual(os.path.basename(path), f"{record['part']}-{record['name']}.json")

    def test_plots_are_well_formed(self):
        for path in glob.glob(os.path.join(FOLDER, "plots", "*.svg")):
            xml.etree.ElementTree.parse(path)
            self.assertNotIn("nan", text_of(path))

    def test_a_run_is_recorded_and_a_failed_one_leaves_it(self):
        place = {"BERTH_EVIDENCE": self.path("tried")}
        done = self.tool("reproduce", "fitgpp", "--quick", "--seeds", "1", **place)
        self.assertEqual(done.returncode, 0, done)
        path = self.path("tried/data/reproduce-fitgpp.json")
        before = text_of(path)
        record = json.loads(before)
        self.assertEqual((record["command"], record["seeds"]),
                         ("berth reproduce fitgpp --json --quick --seeds 1", [1]))
        self.assertIn("te_p95_change", text_of(self.path("tried/fitgpp.md")))
        done = self.tool("reproduce", "fitgpp", "xion", "--quick", BERTH="/bin/false", **place)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stdout.count("nothing recorded"), 2)
        self.assertEqual(text_of(path), before)

    def record(self, part, name, output, **more):
        """A record of a run that never was, beside the others in the scratch folder."""
        os.makedirs(self.path("data"), exist_ok=True)
        machine = {"cpu": "c", "cores": 2, "memory_bytes": 2 ** 30, "kernel": "k", "system": "s",
                   "compiler": "cc"}
        self.write(f"data/{part}-{name}.json", json.dumps({
            "part": part, "name": name, "command": "x", "commit": "abc", "date": "d",
            "machine": machine, "load": [0, 1], "seconds": 1, "output": output, **more}))

    def test_what_failed_is_shown_as_plainly_as_what_did_not(self):
        counts = {"lines": 10, "lines_hit": 9, "branches": 10, "branches_hit": 4}
        peer = {"id": "trivial_jobs", "value": 50, "unit": "jobs/s", "n": 3, "versus": "slurm",
                "ratio": 0.5}
        self.record("bench", "slurm", {"rows": [peer], "notes": ["four nodes"]},
                    incomplete="Slurm went away")
        self.record("faults", "crash", {
            "tests": {"passed": 1, "failed": ["Crash.test_it"], "skipped": []},
            "survived": [{"fault": "berthd killed", "times": 12, "held": "none is lost",
                          "over": {"jobs": 1}}]})
        self.record("faults", "worlds", {
            "seeds": 10, "from": 1, "policies": 2, "worlds": 20, "events": 5000, "decisions": 7,
            "faults_injected": 30, "faults": {"node_lost": 30}, "rebuildings": 4, "failures": 1})
        self.record("faults", "fuzz", {"failed": ["yaml"], "targets": [
            {"target": "fuzz_json", "files": 2, "mutants": 10, "seed": 1, "sanitizers": True}]})
        self.record("faults", "libfuzzer", {"failed": ["http"], "targets": [
            {"target": "http", "passed": False, "inputs": 1234, "edges": 56, "saved": 7}]})
        self.record("coverage", "gcov", {"mark": 0.9, "tests": None, "promised": ["src/x"],
                                         "folders": [{"name": "src/x", **counts, "files": []}]})
        done = self.tool("pages", BERTH_EVIDENCE=self.scratch)
        self.assertEqual(done.returncode, 0, done)
        for page, words in (
                ("speed", ["This run ended early: Slurm went away", "| 100 jobs/s | 0.500 ×"]),
                ("faults", ["Not survived", "crash: Crash.test_it", "worlds: 1 world",
                            "fuzz: yaml", "libfuzzer: http",
                            "| `http` | 1,234 | 56 | 7 |", "| berthd killed | 12 | none is lost | 1 job |"]),
                ("coverage", ["90.0 % of 10 lines", "Not above it:", "| `src/x` | 10 | 40.0 % |"]),
                ("README", ["0.500 × as fast", "1 failed"])):
            text = text_of(self.path(f"{page}.md"))
            for word in words:
                self.assertIn(word, text)

    def test_wrong_words_are_refused(self):
        done = self.tool("faults", "flood", BERTH_EVIDENCE=self.path("tried"))
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("no 'flood'", done.stderr)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
