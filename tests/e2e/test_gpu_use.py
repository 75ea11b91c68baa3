"""NVIDIA's GPUs, by a library that looks like NVIDIA's: what jobs are told, who may share."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from live import BUILD, Daemon, until

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "typed_job.py")
PAIRS = "gavel-las,sharing=true,round=1"
ONE = "rtx2080ti" # of which there is one
GIB = 1 << 30


class Machine(unittest.TestCase):
    def setUp(self):
        library = os.path.join(BUILD, "tests", "libfake_nvml.so")
        if not os.path.exists(library):
            self.skipTest("the library that looks like NVIDIA's is not built")
        self.folder = tempfile.mkdtemp(prefix="berth-nvml-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        shutil.copy(library, os.path.join(self.folder, "libnvidia-ml.so.1"))
        self.lines = os.path.join(self.folder, "lines")
        self.env = {**os.environ, "LD_LIBRARY_PATH": self.folder, "FAKE_NVML_FILE": self.lines}

    def say(self, *lines):
        """What the library says from now on."""
        with open(self.lines + ".new", "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        os.rename(self.lines + ".new", self.lines)

    def up(self, *flags, config=None):
        self.daemon = Daemon("--policy", PAIRS, *flags, gpus=None)
        self.addCleanup(self.daemon.wipe)
        if config:
            path = os.path.join(self.folder, "berthd.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(config)
            self.daemon.flags += ["--config", path]
        self.daemon.start(env=self.env)

    def berth(self, *words):
        return subprocess.run([os.path.join(BUILD, "berth"), *words, "--socket",
                               self.daemon.socket], stdout=subprocess.PIPE, check=False,
                              text=True, env=self.env).stdout

    def checks(self, what):
        return [row for row in json.loads(self.berth("doctor", "--json"))["checks"]
                if row["what"] == what]

    def train(self, steps=100000, **request):
        """A job that makes 50 steps a second, whoever is beside it."""
        return self.daemon.submit(sys.executable, "-I", "-S", JOB, str(steps), "50", "3",
                                  steps=steps, grace_s=20, types=ONE, shared=True, **request)

    def beside(self, job):
        return self.daemon.job(job).get("beside")

    def paired(self, jobs):
        def together():
            for job in jobs:
                self.assertNotEqual(self.daemon.job(job)["state"], "FAILED")
            return self.beside(jobs[0]) == jobs[1]
        until(together)

    def end(self, jobs):
        for job in jobs:
            self.daemon.ask("DELETE", f"/v1/jobs/{job}")
            self.daemon.wait(job)

    def never_beside(self, jobs):
        """They take turns to their end."""
        seen = set()
        def watch():
            seen.update(self.beside(job) for job in jobs)
            states = {self.daemon.job(job)["state"] for job in jobs}
            self.assertNotIn("FAILED", states)
            return states == {"COMPLETED"}
        until(watch)
        self.assertEqual(seen, {None})

    def variables(self, **request):
        job = self.daemon.sh("env | grep -E '^CUDA_(MPS|VISIBLE)'; true", **request)
        self.daemon.wait(job)
        with open(f"{self.daemon.state}/log/{job}.out", encoding="utf-8") as file:
            return sorted(file.read().split())

    def control_daemon(self):
        """A process that looks like the control daemon of MPS, and its folder."""
        folder = os.path.join(self.folder, "mps")
        os.mkdir(folder)
        program = os.path.join(folder, "nvidia-cuda-mps-control")
        shutil.copy("/bin/sleep", program)
        process = subprocess.Popen([program, "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        with open(os.path.join(folder, "nvidia-cuda-mps-control.pid"), "w",
                  encoding="utf-8") as file:
            file.write(f"{process.pid}\n")
        return folder


class Mps(Machine):
    def test_clients_get_their_gpus_and_limits_by_permanent_names(self):
        folder = self.control_daemon()
        self.up(config=f"sharing: {{mps: {folder}}}\n")
        self.assertEqual(self.variables(gpus=2, types="v100", shared=True,
                                        gpu_memory_bytes=6 * GIB),
                         ["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=GPU-0=6144M,GPU-2=6144M",
                          f"CUDA_MPS_PIPE_DIRECTORY={folder}",
                          "CUDA_VISIBLE_DEVICES=GPU-0,GPU-2"])
        self.assertEqual(self.variables(gpus=2, types="v100", gpu_memory_bytes=6 * GIB),
                         ["CUDA_VISIBLE_DEVICES=0,2"])
        self.assertIn("compute at once, by MPS", self.checks("sharing")[0]["text"])

    def test_where_one_process_may_use_a_gpu_all_jobs_are_clients(self):
        folder = self.control_daemon()
        self.say("mode 0 3", "mode 1 3", "mode 2 3")
        self.up(config=f"sharing: {{mps: {folder}}}\n")
        self.assertEqual(self.variables(types=ONE, gpu_memory_bytes=6 * GIB),
                         [f"CUDA_MPS_PIPE_DIRECTORY={folder}", "CUDA_VISIBLE_DEVICES=GPU-1"])
        jobs = [self.train(kind=kind, gpu_memory_bytes=GIB) for kind in ("a", "b")]
        self.paired(jobs)


class Modes(Machine):
    def test_no_jobs_share_a_gpu_that_takes_one_process_at_a_time(self):
        self.say("mode 1 3")
        self.up()
        check = self.checks("sharing")[0]
        self.assertEqual(check["verdict"], "less")
        self.assertIn("no control daemon of MPS runs", check["text"])
        self.never_beside([self.train(200, kind=kind, gpu_memory_bytes=GIB)
                           for kind in ("a", "b")])

    def test_a_gpu_in_mig_mode_is_no_jobs(self):
        self.say("mig 0")
        self.up()
        nodes = self.daemon.ask("GET", "/v1/nodes")[1]["nodes"]
        self.assertEqual(sorted((n["type"], n["gpus"]) for n in nodes),
                         [("rtx2080ti", 1), ("v100", 1)])
        self.assertIn("GPU 0 (v100) is in MIG mode", self.daemon.words())
        self.assertTrue([row for row in self.checks("accelerators")
                         if "GPU 0 (v100) is in MIG mode" in row["text"]])

    def test_the_doctor_lists_gpus_with_their_memory(self):
        self.up()
        self.assertEqual(self.checks("accelerators")[0]["text"],
                         "1 rtx2080ti with 10.8 GiB, 2 v100 with 15.5 GiB")
        self.assertIn("take turns", self.checks("sharing")[0]["text"])


class Memory(Machine):
    def pid(self, job):
        """Of its first process, which every job names as it does its library."""
        found = []
        run = os.path.dirname(self.daemon.socket)
        mark = (f"BERTH_PREEMPT_FILE={run}/jobs/{job}.{self.daemon.job(job)['attempt']}"
                "/job/preempt").encode()
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    lines = file.read().split(b"\0")
                if name.isdigit() and mark in lines:
                    found.append(int(name))
            except OSError:
                pass
        return min(found)

    def used(self, job, gib):
        until(lambda: self.daemon.job(job).get("gpu_memory_used_bytes", 0) >= gib * GIB)

    def test_the_most_that_a_job_had_is_kept(self):
        self.up()
        job = self.train(kind="a", gpu_memory_bytes=8 * GIB)
        self.daemon.wait(job, {"RUNNING"})
        pid = self.pid(job)
        self.say(f"process 1 {pid} {3 * GIB}", "busy 1 40")
        self.used(job, 3)
        self.say(f"process 1 {pid} {2 * GIB}", "busy 1 40")
        until(lambda: abs(self.daemon.job(job).get("gpu_busy", 0) - 0.4) < 0.01)
        shown = self.berth("show", str(job))
        self.assertRegex(shown, r"\ngpu memory +3 GiB at most, 8 GiB declared\n")
        self.assertRegex(shown, r"\ngpu busy +40 % of the time\n")

        # After a restart, and after its end.
        self.daemon.kill()
        self.daemon.start(env=self.env)
        self.assertEqual(self.daemon.job(job)["gpu_memory_used_bytes"], 3 * GIB)
        self.end([job])
        self.assertEqual(self.daemon.job(job)["gpu_memory_used_bytes"], 3 * GIB)

    def test_a_kind_that_was_seen_needs_no_declaration(self):
        self.up()
        first = self.train(kind="a", gpu_memory_bytes=8 * GIB)
        self.daemon.wait(first, {"RUNNING"})
        self.say(f"process 1 {self.pid(first)} {2 * GIB}")
        self.used(first, 2)
        until(lambda: self.daemon.ask("GET", "/v1/rates?kind=a")[1]["rates"])
        self.end([first])
        self.daemon.kill()
        self.daemon.start(env=self.env)

        jobs = [self.train(kind="a"), self.train(kind="b", gpu_memory_bytes=4 * GIB)]
        self.paired(jobs)
        shown = self.daemon.job(jobs[0])
        self.assertNotIn("gpu_memory_bytes", shown)
        self.assertAlmostEqual(shown["gpu_memory_expected_bytes"], 2.2 * GIB, delta=GIB / 100)
        self.assertIn("2.2 GiB expected", self.berth("show", str(jobs[0])))

    def test_more_than_was_declared_is_reported(self):
        self.up()
        jobs = [self.train(kind=kind, gpu_memory_bytes=2 * GIB) for kind in ("a", "b")]
        self.paired(jobs)
        self.say(*[f"process 1 {self.pid(job)} {3 * GIB}" for job in jobs[:1]])
        self.used(jobs[0], 3)
        self.assertIn("3 GiB at most, more than the 2 GiB declared",
                      self.berth("show", str(jobs[0])))
        until(lambda: f"job {jobs[0]} has 3072 MiB of a GPU that it shares with job {jobs[1]}, "
              "and declared 2048 MiB" in self.daemon.words())

    def test_what_a_gpu_has_is_the_drivers_word(self):
        self.up()
        jobs = [self.train(kind=kind, gpu_memory_bytes=5 * GIB) for kind in ("a", "b")]
        self.paired(jobs)
        self.end(jobs)
        self.never_beside([self.train(200, kind=kind, gpu_memory_bytes=6 * GIB)
                           for kind in ("a", "b")])


if __name__ == "__main__":
    unittest.main()
