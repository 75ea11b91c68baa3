"""Flow policies, the network and losses, from the command line."""
import json
import unittest

from support import Case

JPAS = ("--workload", "jpas:jobs=12", "--policy", "fifo")
HEAD = "#berth-jobs 1\nsubmit_s,gpus,nodes,steps,step_s,bytes_per_step,sync,curve\n"


class Flow(Case):
    def sim(self, *words):
        done = self.berth("sim", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        del found["sim"] # timings
        return found

    def test_levels_change_who_is_good_when(self):
        fair, jpas = self.sim(*JPAS), self.sim(*JPAS, "--flow", "jpas,levels=4")
        self.assertEqual(fair["flow_policy"], "fair")
        self.assertEqual(jpas["flow_policy"], "jpas,levels=4")
        self.assertEqual(fair["network"]["mode"], "exact")
        self.assertEqual(fair["network"]["level_changes"], 0)
        self.assertGreater(jpas["network"]["level_changes"], 0)
        for found in (fair, jpas):
            quality = found["quality"]
            self.assertEqual(sorted(quality), ["loss_seconds_per_job", "mean_running_loss",
                                               "time_to", "time_to_accuracy", "unit_share"])
            times = [quality["time_to"][level] for level in ("25", "50", "80", "90", "95", "99")]
            self.assertEqual(times, sorted(times))
            self.assertLess(times[-1], found["jct_s"]["mean"])
        self.assertLess(jpas["quality"]["time_to_accuracy"]["90"],
                        fair["quality"]["time_to_accuracy"]["90"])

    def test_equal_input_gives_equal_output(self):
        for flow in ("jpas", "crux", "las-flow"):
            with self.subTest(flow=flow):
                self.assertEqual(self.sim(*JPAS, "--flow", flow), self.sim(*JPAS, "--flow", flow))

    def test_the_mode_is_named(self):
        for mode in ("exact", "mean"):
            self.assertEqual(self.sim(*JPAS, "--network", mode)["network"]["mode"], mode)

    def test_without_bytes_and_losses_there_is_nothing_of_it(self):
        found = self.sim("--cluster", "2xv100:4", "--workload", "synthetic:jobs=50",
                         "--policy", "fifo", "--flow", "jpas")
        for key in ("quality", "network", "flow_policy"):
            self.assertNotIn(key, found)

    def test_a_step_is_computing_and_sending(self):
        # 10 Gb/s carry 1.1955e9 bytes a second; a ring of two sends each of them once.
        self.write("jobs.csv", HEAD + "0,2,2,10,1.5,597774108,ring,\n")
        found = self.sim("--cluster", "jpas-13", "--workload", "jobs.csv", "--policy", "fifo")
        self.assertAlmostEqual(found["jct_s"]["mean"], 20, delta=0.001)

    def test_a_job_alone_has_nobody_to_go_before(self):
        for steps in (1, 10): # a single iteration too
            self.write("jobs.csv", HEAD + f"0,2,2,{steps},1.5,597774108,ring,exp:mu=0.8\n")
            words = ("--cluster", "jpas-13", "--workload", "jobs.csv", "--policy", "fifo")
            for flow in ("fair", "jpas", "crux", "smallest-first", "las-flow"):
                with self.subTest(steps=steps, flow=flow):
                    found = self.sim(*words, "--flow", flow)
                    self.assertAlmostEqual(found["jct_s"]["mean"], 2 * steps, delta=0.001)

    def test_noise_in_reports_does_not_turn_the_order_round(self):
        def run(flow, noise):
            return self.sim("--workload", f"jpas:jobs=30,gap=80,noise={noise}",
                            "--policy", "fifo", "--flow", flow)
        fair = {noise: run("fair", noise) for noise in (0, 0.02, 0.05)}
        # It is noise in what is said, not in what is done.
        self.assertEqual(fair[0.05]["jct_s"], fair[0]["jct_s"])
        self.assertNotEqual(fair[0.05]["quality"], fair[0]["quality"])
        for noise in (0.02, 0.05):
            for flow in ("jpas", "jpas,early=nearest,late=shortest"):
                with self.subTest(noise=noise, flow=flow):
                    found = run(flow, noise)
                    self.assertLess(found["quality"]["time_to_accuracy"]["90"],
                                    0.9 * fair[noise]["quality"]["time_to_accuracy"]["90"])
                    self.assertEqual(found, run(flow, noise))

    def test_what_is_generated_runs_the_same_from_a_file(self):
        done = self.berth("gen", "--preset", "jpas:jobs=12", "-o", "jobs.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = self.sim("--cluster", "jpas-13", "--workload", "jobs.csv", "--policy", "fifo",
                        "--flow", "jpas")
        self.assertEqual(ours, self.sim(*JPAS, "--flow", "jpas"))

    def test_compare_takes_several(self):
        done = self.berth("compare", *JPAS, "--flow", "fair", "--flow", "crux", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(p["policy"], p["flow_policy"])
                          for p in json.loads(done.stdout)["policies"]],
                         [("fifo", "fair"), ("fifo", "crux")])
        done = self.berth("compare", *JPAS, "--flow", "fair", "--flow", "crux")
        self.assertIn("fifo + crux", done.stdout)

    def test_wrong_words_are_refused(self):
        for words, says in ((("--flow", "jpass"), "jpas"),
                            (("--flow", "jpas,levels=0"), "levels"),
                            (("--flow", "fair,levels=2"), "fair"),
                            (("--flow", ""), "flow policy"),
                            (("--network", "slow"), "auto, exact or mean")):
            with self.subTest(words=words):
                self.assert_refused("sim", *JPAS, *words, says=says)
                self.assert_refused("compare", *JPAS, *words, says=says)

    def test_wrong_fields_are_refused(self):
        for line, says in (("0,2,2,10,1.5,-1,ring,", "jobs.csv:3: bytes_per_step"),
                           ("0,2,2,10,1.5,1,star,", "jobs.csv:3: sync"),
                           ("0,2,2,10,0,1,ring,", "jobs.csv:3: step_s"),
                           ("0,2,2,10,1,1,ring,exp:mu=2", "jobs.csv:3: curve"),
                           ("0,2,2,10,1,1,ring,exp:mu=nan", "jobs.csv:3: curve"),
                           ("0,2,2,10,1,1,ring,\"acc:tau=5,last=7\"", "jobs.csv:3: curve")):
            with self.subTest(line=line):
                self.write("jobs.csv", HEAD + line + "\n")
                self.assert_refused("sim", "--cluster", "jpas-13", "--workload", "jobs.csv",
                                    "--policy", "fifo", says=says)


if __name__ == "__main__":
    unittest.main()
