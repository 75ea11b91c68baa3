"""Mixed workloads, and jobs that do not declare their work: written, read again, simulated."""
import json
import unittest

from support import Case

JOBS = """#berth-jobs 1
submit_s,gpus,work_s,declared,user
0,1,100,1,ada
1,1,5,0,ada
2,1,50,,ben
3,1,20,1,ben
"""


class Mixed(Case):
    def sim(self, *words):
        done = self.berth("sim", "--json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return json.loads(done.stdout)

    def ends(self, *words):
        """The jobs in the order in which they end."""
        self.sim(*words, "--jobs-out", "out.csv")
        with open(self.path("out.csv")) as file:
            return [int(line.split(",")[0]) for line in file.read().splitlines()[1:]]

    def test_a_job_that_declares_nothing_is_not_known_to_be_short(self):
        self.write("jobs.csv", JOBS)
        self.write("told.csv", JOBS.replace(",0,ada", ",1,ada"))
        for policy in ("sjf", "srtf", "xion"):
            words = ("--cluster", "1xv100:1", "--policy", policy, "--workload")
            self.assertEqual(self.ends(*words, "jobs.csv")[-1], 2, policy)
            self.assertEqual(self.ends(*words, "told.csv")[0], 1 if policy == "sjf" else 2)

    def test_every_policy_finishes_jobs_that_declare_nothing(self):
        policies = json.loads(self.berth("policies", "--json").stdout)["policies"]
        for policy in policies:
            said = self.sim("--cluster", "mixed-112", "--policy", policy["name"],
                            "--workload", "mixed:jobs=60,unknown_share=1", "--seed", "2")
            self.assertEqual(said["jobs"]["completed"], 60, policy["name"])

    def test_a_policy_compared_with_others_decides_as_it_does_alone(self):
        """Policies guess by name and user, so jobs that runs share have both."""
        jobs = ("--cluster", "mixed-112", "--workload", "mixed:jobs=200,unknown_share=1")
        done = self.berth("compare", "--json", *jobs, "--policy", "las", "--policy", "berth",
                          "--seeds", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        for compared in json.loads(done.stdout)["policies"]:
            alone = self.sim(*jobs, "--policy", compared["policy"])
            for figure in ("mean", "p95"):
                self.assertAlmostEqual(compared["figures"]["jct_s." + figure]["mean"],
                                       alone["jct_s"][figure], delta=1e-6)

    def test_a_job_found_to_be_long_leaves_slow_gpus_that_it_has_alone(self):
        """Job 148, 16 GPUs for 15 h: when its guess is exceeded, faster GPUs are free already,
        and nothing else happens.  It ends after 292,000 s where it stays."""
        said = self.sim("--cluster", "mixed-112", "--policy", "berth", "--seed", "6",
                        "--workload", "mixed:load=1.1,jobs=300")
        self.assertEqual(said["jobs"]["completed"], 300)
        self.assertLess(said["makespan_s"], 200000)

    def test_slowdowns_are_of_the_true_work(self):
        self.write("jobs.csv", JOBS)
        said = self.sim("--cluster", "4xv100:1", "--policy", "sjf", "--workload", "jobs.csv")
        self.assertEqual(said["slowdown"]["all"]["max"], 1)
        self.assertEqual(said["slowdown"]["worst_user"], 1)

    def test_the_file_gives_the_same_run_as_the_generator(self):
        clusters = {"mixed": "mixed-112", "lab": "lab-44", "industry": "industry-256",
                    "sweeps": "sweeps-64", "box": "box-8"}
        for preset, cluster in clusters.items():
            jobs = f"{preset}:jobs=150"
            done = self.berth("gen", "--preset", jobs, "--seed", "7", "-o", "jobs.csv")
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual(self.berth("import", "jobs.csv", "-o", "again.csv").returncode, 0)
            with open(self.path("jobs.csv")) as one, open(self.path("again.csv")) as two:
                self.assertEqual(one.read(), two.read())
            words = ("--policy", "srtf", "--seed", "7", "--workload")
            drawn = self.sim(*words, jobs)  # on the cluster that it names
            read = self.sim(*words, "jobs.csv", "--cluster", cluster)
            for said in (drawn, read):
                del said["sim"]
            self.assertEqual(drawn, read, preset)


if __name__ == "__main__":
    unittest.main()
