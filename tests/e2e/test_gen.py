"""berth gen: generated workloads as files."""
import json
import unittest

from support import Case


class Gen(Case):
    def rows(self, *words):
        done = self.berth("gen", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "#berth-jobs 1")
        names = lines[1].split(",")
        return [dict(zip(names, line.split(","))) for line in lines[2:]]

    def test_settings_come_as_flags_or_with_the_preset(self):
        flags = self.rows("--preset", "synthetic", "--jobs", "50", "--gpus", "32",
                          "--load", "0.7", "--trial-share", "0.5", "--seed", "4")
        text = self.rows("--preset", "synthetic:jobs=50,gpus=32,load=0.7,trial_share=0.5",
                         "--seed", "4")
        self.assertEqual(len(flags), 50)
        self.assertEqual(flags, text)
        self.assertNotEqual(flags, self.rows("--preset", "synthetic:jobs=50,gpus=32"))

    def test_the_file_is_read_again(self):
        done = self.berth("gen", "--preset", "synthetic", "--jobs", "200", "-o", "jobs.csv")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.files(), ["jobs.csv"])
        facts = json.loads(self.berth("import", "jobs.csv", "--json").stdout)
        self.assertEqual((facts["format"], facts["jobs"]), ("berth", 200))
        again = self.berth("import", "jobs.csv", "-o", "again.csv")
        self.assertEqual(again.returncode, 0)
        with open(self.path("jobs.csv")) as one, open(self.path("again.csv")) as two:
            self.assertEqual(one.read(), two.read())

    def test_classes_follow_run_times(self):
        rows = self.rows("--preset", "synthetic", "--jobs", "2000")
        trials = [row for row in rows if row["class"] == "te"]
        self.assertTrue(all(float(row["work_s"]) <= 1800 for row in trials))
        self.assertAlmostEqual(len(trials) / len(rows), 0.3, delta=0.05)

    def test_mistakes_are_named(self):
        self.assert_refused("gen", says="--preset is missing")
        self.assert_refused("gen", "--preset", "sinthetic", says="did you mean 'synthetic'")
        self.assert_refused("gen", "--preset", "synthetic", "--jobs", "0", "-o", "x.csv",
                            says='jobs is "0"')
        self.assert_refused("gen", "--preset", "synthetic:lod=1", says="did you mean 'load'")

    def test_a_folder_that_is_not_there_leaves_nothing(self):
        done = self.berth("gen", "--preset", "synthetic", "-o", "nowhere/x.csv")
        self.assertIn(done.returncode, (1, 2))
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
