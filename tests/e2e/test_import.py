"""berth import: public traces in, Berth's own format and the facts out."""
import gzip
import json
import os
import unittest

from support import DATA, ROOT, Case

FIXTURES = os.path.join(ROOT, "tests", "data")
KEYS = {"format", "jobs", "skipped", "skipped_reasons", "gpu_hours", "first_submit",
        "last_submit", "max_gpus"}
FORMATS = {
    "jobs.csv": ("berth", 3), "philly.json": ("philly", 2), "philly.csv": ("philly-csv", 2),
    "helios.csv": ("helios", 2), "acme.csv": ("acme", 2), "pai.csv": ("pai", 2),
    "gavel.trace": ("gavel", 2), "shockwave.trace": ("gavel", 1), "nasa.swf": ("swf", 2),
    "sacct.txt": ("sacct", 2), "generic.csv": ("generic", 2), "muri.csv": ("generic", 1),
}


def fixture(name):
    return os.path.join(FIXTURES, name)


class Import(Case):
    def facts(self, *words):
        done = self.berth("import", *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_every_format_is_recognised(self):
        for name, (form, jobs) in FORMATS.items():
            facts = self.facts(fixture(name))
            self.assertEqual((facts["format"], facts["jobs"]), (form, jobs), name)
            self.assertLessEqual(set(facts), KEYS)
            self.assertEqual(sum(facts["skipped_reasons"].values()), facts["skipped"])

    def test_the_format_can_be_named(self):
        facts = self.facts(fixture("helios.csv"), "--format", "helios")
        self.assertEqual(facts["format"], "helios")
        self.assert_refused("import", fixture("helios.csv"), "--format", "swf",
                            says="helios.csv:1: ")
        self.assert_refused("import", fixture("helios.csv"), "--format", "helyos",
                            says="did you mean 'helios'")

    def test_what_is_written_has_the_same_facts(self):
        for name in FORMATS:
            facts = self.facts(fixture(name), "-o", "out.csv")
            again = self.facts("out.csv")
            self.assertEqual(again["format"], "berth")
            for key in ("jobs", "max_gpus", "gpu_hours"):
                if name in ("pai.csv", "shockwave.trace") and key == "gpu_hours":
                    continue  # parts of a GPU became whole ones; run times are a table's
                self.assertEqual(again.get(key), facts.get(key), (name, key))

    def test_without_output_the_jobs_go_to_standard_output(self):
        done = self.berth("import", fixture("generic.csv"))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.splitlines()[:3], [
            "#berth-jobs 1", "name,user,entity,submit_s,gpus,work_s", "x2,yan,,0,1,3600"])
        self.assertIn("skipped", done.stderr)

    def test_a_packed_file_is_read_and_a_cut_one_refused(self):
        with open(fixture("helios.csv"), "rb") as file:
            packed = gzip.compress(file.read())
        for name, data in (("whole.gz", packed), ("cut.gz", packed[:-12])):
            with open(self.path(name), "wb") as file:
                file.write(data)
        self.assertEqual(self.facts("whole.gz")["jobs"], 2)
        self.assert_refused("import", "cut.gz", "-o", "out.csv", says="cut.gz: the gzip stream")

    def test_broken_files_get_one_sentence_and_leave_nothing(self):
        head = "#berth-jobs 1\nid,submit_s,gpus,work_s\n"
        broken = {
            "empty": ("", "x: the file is empty"),
            "negative": (head + "1,0,-1,5\n", 'x:3: gpus is "-1"'),
            "nan": (head + "1,0,1,nan\n", 'x:3: work_s is "nan"'),
            "unit": (head + "1,0,1,5h\n", 'x:3: work_s is "5h"'),
            "twice": (head + "1,0,1,5\n1,0,1,5\n", 'x:4: id is "1"'),
            "order": (head + "1,9,1,5\n2,8,1,5\n", 'x:4: submit_s is "8"'),
            "huge": (head + "1,0,1," + "9" * 2000000 + "\n", "x:3: the line is longer"),
            "binary": ("\x7fELF\0\0", "binary"),
            "cut": (head + "1,0,1,5\n2,0,1", "x:4: "),
            "unknown": ("a,b,c\n1,2,3\n", "x:1: not a format that is known"),
        }
        for name, (text, says) in broken.items():
            with self.subTest(name):
                self.write("x", text)
                self.assert_refused("import", "x", "-o", "out.csv", says=says)
                self.assert_refused("import", "x", says=says)

    def test_a_file_that_is_not_there_is_wrong_input(self):
        self.assert_refused("import", "nowhere.csv", says="nowhere.csv: ")
        self.assert_refused("import", ".", says=".: ")
        self.assert_refused("import")

    @unittest.skipUnless(DATA, "BERTH_DATA not set")
    def test_the_philly_trace(self):
        facts = self.facts(os.path.join(DATA, "traces", "philly-csv", "philly.csv.gz"))
        self.assertEqual(facts, {
            "format": "philly-csv", "jobs": 72967, "skipped": 0, "skipped_reasons": {},
            "gpu_hours": 694087.5225, "first_submit": 1504521041.0,
            "last_submit": 1513929731.0, "max_gpus": 128})


if __name__ == "__main__":
    unittest.main()
