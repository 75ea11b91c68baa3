"""berth fit: learning curves in, their family and where they will be out."""
import gzip
import json
import math
import os
import unittest

from support import DATA, Case

KEYS = {"id", "run_id", "metric", "algo", "family", "params", "points", "at", "ahead", "step",
        "predicted", "low", "high", "predictable"}
MANY = "run_id,algo,model,dataset,metric,unit,step,value,seconds\n"


def loss(k):
    return 1 / (0.002 * k * k + 0.1 * k + 1) + 0.5


class Fit(Case):
    def fit(self, *words):
        done = self.berth("fit", *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        curves = json.loads(done.stdout)["curves"]
        for curve in curves:
            self.assertLessEqual(set(curve), KEYS)
        return curves

    def write_curve(self, steps, value=loss, name="run.csv"):
        return self.write(name, "step,loss\n" + "".join(f"{k},{value(k):.9g}\n" for k in steps))

    def test_a_curve_is_fitted_and_foretold(self):
        curve, = self.fit(self.write_curve(range(1, 61)))
        self.assertEqual((curve["id"], curve["family"]), ("run", "inv"))
        self.assertEqual((curve["at"], curve["ahead"], curve["step"]), (60, 10, 70))
        self.assertTrue(curve["predictable"])
        self.assertAlmostEqual(curve["predicted"], loss(70), delta=0.005)
        self.assertTrue(curve["low"] <= loss(70) <= curve["high"])
        params = curve["params"]
        for name in "abc":
            self.assertGreaterEqual(params[name], 0)
        said = 1 / (params["a"] * 900 + params["b"] * 30 + params["c"]) + params["d"]
        self.assertAlmostEqual(said, loss(30), delta=0.01)

    def test_the_other_family(self):
        curve, = self.fit(self.write_curve(range(50), lambda k: 2 * 0.9 ** k - 3))
        self.assertEqual(curve["family"], "exp")
        params = curve["params"]
        self.assertAlmostEqual(params["mu"], 0.9, delta=0.001)
        self.assertAlmostEqual(params["c"], -3, delta=0.001)
        self.assertAlmostEqual(params["mu"] ** (5 - params["b"]) + params["c"],
                               2 * 0.9 ** 5 - 3, delta=0.01)

    def test_losses_may_be_negative(self):
        above, = self.fit(self.write_curve(range(1, 61)))
        below, = self.fit(self.write_curve(range(1, 61), lambda k: loss(k) - 100))
        self.assertTrue(below["predictable"])
        self.assertAlmostEqual(below["predicted"], above["predicted"] - 100, delta=1e-3)
        self.assertLess(below["high"], 0)

    def test_at_looks_no_further(self):
        whole = self.write_curve(range(1, 101))
        start = self.write_curve(range(1, 41), name="start.csv")
        ours, = self.fit(whole, "--at", "40", "--ahead", "5")
        same, = self.fit(start, "--ahead", "5")
        self.assertEqual((ours["points"], ours["at"], ours["step"]), (40, 40, 45))
        for key in ("predicted", "low", "high", "family", "params", "predictable"):
            self.assertEqual(ours[key], same[key])

    def test_k_counts_points_or_is_the_step(self):
        # steps from 0 by ones: K is the step
        curve, = self.fit(self.write_curve(range(100)), "--at", "40")
        self.assertEqual((curve["points"], curve["step"]), (41, 50))
        # every 250 steps: K counts points, and so does N
        file = self.write_curve(range(250, 25001, 250), lambda k: loss(k / 250))
        curve, = self.fit(file, "--at", "40")
        self.assertEqual((curve["points"], curve["at"], curve["step"]), (40, 40, 12500))
        # beyond the points, K can be a step, and then so is N
        curve, = self.fit(file, "--at", "10000", "--ahead", "2500")
        self.assertEqual((curve["points"], curve["at"], curve["step"]), (40, 10000, 12500))
        self.assertAlmostEqual(curve["predicted"], loss(50), delta=0.01)
        # beyond everything: all there is
        curve, = self.fit(file, "--at", "1000000")
        self.assertEqual((curve["points"], curve["at"]), (100, 100))
        # before everything: nothing is known
        curve, = self.fit(self.write_curve(range(5, 50)), "--at", "2")
        self.assertFalse(curve["predictable"])
        self.assertNotIn("predicted", curve)

    def test_many_curves_in_one_packed_file(self):
        rows = [f"a,svm,m,d,loss,epoch,{k},{loss(k)},\n" for k in range(1, 31)]
        rows += [f"a,svm,m,d,acc,epoch,{k},{1 - 0.9 ** k},{k}\n" for k in range(1, 21)]
        rows += [f"b,gbt,m,d,loss,epoch,{k},3,\n" for k in range(1, 11)]
        with open(self.path("many.csv.gz"), "wb") as file:
            file.write(gzip.compress((MANY + "".join(rows)).encode()))
        curves = self.fit("many.csv.gz")
        self.assertEqual([c["id"] for c in curves], ["a/loss", "a/acc", "b/loss"])
        self.assertEqual([c["algo"] for c in curves], ["svm", "svm", "gbt"])
        self.assertEqual([c["params"]["sign"] for c in curves], [1, -1, 1])
        self.assertEqual((curves[2]["family"], curves[2]["predicted"]), ("flat", 3))

    def test_what_cannot_be_foretold_is_said(self):
        noise = [math.sin(k * k) for k in range(100)]
        curve, = self.fit(self.write_curve(range(100), lambda k: noise[k]))
        self.assertFalse(curve["predictable"])
        curve, = self.fit(self.write_curve(range(1, 3)))
        self.assertFalse(curve["predictable"])
        curve, = self.fit(self.write_curve([1]))
        self.assertFalse(curve["predictable"])
        self.assertEqual(curve["predicted"], float(f"{loss(1):.9g}"))
        self.assertNotIn("low", curve)

    def test_the_table_is_for_people(self):
        done = self.berth("fit", self.write_curve(range(1, 61)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head, line = done.stdout.splitlines()
        self.assertIn("predicted", head)
        self.assertTrue(line.startswith("run "))
        self.assertIn("1/(", line)

    def test_equal_input_gives_equal_output(self):
        file = self.write_curve(range(1, 300), lambda k: loss(k) + 0.1 * math.sin(k * k))
        self.assertEqual(self.berth("fit", file, "--json").stdout,
                         self.berth("fit", file, "--json").stdout)

    def test_a_million_points(self):
        with open(self.path("long.csv"), "w", encoding="utf-8") as file:
            file.write("step,loss\n")
            file.writelines(f"{k},{1 / (1 + 1e-4 * k):.6f}\n" for k in range(1000000))
        curve, = self.fit("long.csv", "--ahead", "1000")
        self.assertEqual(curve["points"], 1000000)
        self.assertAlmostEqual(curve["predicted"], 1 / (1 + 1e-4 * 1001000), delta=1e-4)

    def test_bad_input_gets_one_sentence(self):
        bad = {
            "empty": ("", "x: the file is empty"),
            "nothing": ("step,loss\n", "x: no point in it"),
            "unsorted": ("step,loss\n1,2\n3,2\n2,2\n", 'x:4: step is "2", want more'),
            "twice": ("step,loss\n1,2\n1,2\n", 'x:3: step is "1", want more'),
            "nan": ("step,loss\n1,2\n2,nan\n", 'x:3: loss is "nan"'),
            "infinite": ("step,loss\n1,-inf\n", 'x:2: loss is "-inf"'),
            "absent": ("step,loss\n1,\n", 'x:2: loss is ""'),
            "short": ("step,loss\n1\n", "x:2: 1 fields, want 2"),
            "negative step": ("step,loss\n-5,1\n", 'x:2: step is "-5"'),
            "columns": ("a,b\n1,2\n", "x:1: no column step"),
            "binary": ("\x7fELF\0\0\n", "binary"),
            "apart": (MANY + "a,s,m,d,l,e,1,2,\nb,s,m,d,l,e,1,2,\na,s,m,d,l,e,2,2,\n",
                      'x:4: run_id is "a"'),
        }
        for name, (text, says) in bad.items():
            with self.subTest(name):
                self.write("x", text)
                self.assert_refused("fit", "x", says=says)
                self.assert_refused("fit", "x", "--json", says=says)
        self.write_curve(range(5))
        for flags in (("--at", "-1"), ("--at", "x"), ("--ahead", "nan"), ("--ahead", "-3")):
            self.assert_refused("fit", "run.csv", *flags, says=flags[0])
        self.assert_refused("fit", says="want one file")
        self.assert_refused("fit", "nowhere.csv", says="nowhere.csv: ")

    @unittest.skipUnless(DATA, "BERTH_DATA not set")
    def test_real_curves(self):
        curves = self.fit(os.path.join(DATA, "curves", "curves.csv.gz"))
        self.assertEqual(len(curves), 873)
        self.assertGreater(sum(c["predictable"] for c in curves), 600)


if __name__ == "__main__":
    unittest.main()
