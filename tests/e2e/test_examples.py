"""The examples run alone, stop when they must, and go on where they were.

The header for jobs is tried with a C++ compiler, too.
"""
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, ROOT

EXAMPLES = os.path.join(ROOT, "examples")
CLIENT = os.path.join(BUILD, "examples", "example-client")
PATIENCE = 90


class Example(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="berth example ")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def start(self, *command, **env):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith("BERTH_") and k != "PYTHONPATH"}
        process = subprocess.Popen(
            command, cwd=self.scratch, text=True, start_new_session=True,
            env={**clean, "PYTHONDONTWRITEBYTECODE": "1", **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def run_it(self, *command, **env):
        process = self.start(*command, **env)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(err, "")
        return process.returncode, out

    def stop_at_a_step(self, *command, **env):
        """Let it come to a line with a step, ask it to stop; where it says it stopped."""
        process = self.start(*command, **env)
        for line in process.stdout:
            if line.startswith("step "):
                break
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, err), (85, ""), out)
        return int(re.search(r"(?m)^stopped at step (\d+)$", out).group(1))

    def read(self, name):
        with open(os.path.join(self.scratch, name), "rb") as file:
            return file.read()

    def assert_goes_on(self, command, quick, kept):
        """Stopped and gone on, it ends with what one that was not stopped ends with."""
        step = self.stop_at_a_step(*command, BERTH_CKPT_DIR=self.scratch)
        status, out = self.run_it(*quick, BERTH_CKPT_DIR=self.scratch)
        self.assertEqual(status, 0, out)
        self.assertRegex(out, rf"(?m)^(attempt 0 )?from step {step}\b")
        self.assertRegex(out, r"(?m)^done step \d+")
        after = self.read(kept)
        os.unlink(os.path.join(self.scratch, kept))
        status, out = self.run_it(*quick, BERTH_CKPT_DIR=self.scratch)
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"(?m)^(attempt 0 )?from step 0\b")
        self.assertEqual(self.read(kept), after)


class Training(Example):
    def call(self, name, sleep, *more):
        return [sys.executable, os.path.join(EXAMPLES, name), "--steps", "300",
                "--log-every", "10", "--sleep", sleep, *more]

    def test_train_goes_on_where_it_was(self):
        self.assert_goes_on(self.call("train.py", "0.01"), self.call("train.py", "0"),
                            "state.pickle")

    def test_train_plain_goes_on_where_it_was(self):
        self.assert_goes_on(self.call("train_plain.py", "0.01"),
                            self.call("train_plain.py", "0"), "model.json")

    def test_busy_goes_on_where_it_was(self):
        command = [sys.executable, os.path.join(EXAMPLES, "busy.py"), "--steps", "30", "--work"]
        for work in ("compute", "memory"):
            step = self.stop_at_a_step(*command, work, "--ckpt-dir", work)
            self.assertGreaterEqual(step, 10)
            status, out = self.run_it(*command, work, "--ckpt-dir", work)
            self.assertEqual((status, out.splitlines()[0]), (0, f"from step {step}"))
            self.assertIn("done step 30", out)

    def test_train_torch_goes_on_where_it_was(self):
        if subprocess.run([sys.executable, "-c", "import torch"],
                          capture_output=True).returncode:
            self.skipTest("PyTorch is not installed")
        step = self.stop_at_a_step(*self.call("train_torch.py", "0.01"))
        status, out = self.run_it(*self.call("train_torch.py", "0"))
        self.assertEqual(status, 0)
        self.assertIn(f"from step {step} ", out)

    def test_it_learns(self):
        _, out = self.run_it(*self.call("train.py", "0", "--steps", "1000"))
        losses = [float(loss) for loss in re.findall(r"(?m)^step \d+ loss (.*)$", out)]
        self.assertGreater(losses[0], 2 * losses[-1])
        self.assertGreater(float(re.search(r"accuracy (.*)", out).group(1)), 0.95)

    def test_a_kill_costs_the_steps_since_the_last_checkpoint_only(self):
        for name in ("train.py", "train_plain.py"):
            command = self.call(name, "0.005", "--save-every", "20", "--ckpt-dir", name)
            process = self.start(*command)
            for line in process.stdout:
                if line.startswith("step 50 "):
                    break
            process.kill()
            process.communicate()
            _, out = self.run_it(*self.call(name, "0", "--ckpt-dir", name))
            start = int(re.search(r"from step (\d+)", out).group(1))
            self.assertGreaterEqual(start, 40)
            self.assertEqual(start % 20, 0)

    def test_both_print_what_the_pattern_of_the_job_file_finds(self):
        with open(os.path.join(EXAMPLES, "job.yaml"), encoding="utf-8") as file:
            pattern = re.search(r"(?m)^pattern: (.*)$", file.read()).group(1)
        for name in ("train.py", "train_plain.py"):
            _, out = self.run_it(*self.call(name, "0", "--ckpt-dir", name))
            found = re.findall(pattern, out)
            self.assertEqual(len(found), 30)
            self.assertEqual(found[-1][0], "300")

    def test_the_batch_script_runs_as_it_is(self):
        os.symlink(EXAMPLES, os.path.join(self.scratch, "examples"))
        status, out = self.run_it("sh", "examples/job.sh", STEPS="100", SLEEP="0",
                                  BERTH_ATTEMPT="2", CUDA_VISIBLE_DEVICES="3")
        self.assertEqual(status, 0)
        self.assertIn("on 3, attempt 2\n", out)
        self.assertIn("done step 100", out)

    def test_the_command_of_the_job_file_runs_as_it_is(self):
        os.symlink(EXAMPLES, os.path.join(self.scratch, "examples"))
        with open(os.path.join(EXAMPLES, "job.yaml"), encoding="utf-8") as file:
            command = re.search(r"(?m)^command: \[(.*)\]$", file.read()).group(1)
        words = [word.strip().strip('"') for word in command.split(",")]
        self.assertEqual(words[0], "python3")
        status, out = self.run_it(*words, "--sleep", "0", "--steps", "100")
        self.assertEqual(status, 0)
        self.assertIn("done step 100", out)


class InC(Example):
    def setUp(self):
        super().setUp()
        if not os.access(CLIENT, os.X_OK):
            self.skipTest("example-client is not built")

    def test_the_job_goes_on_where_it_was(self):
        # Without Berth the signal is the program's own; a socket that is not there will do.
        nobody = os.path.join(self.scratch, "nobody.sock")
        process = self.start(CLIENT, "1000", "2000", BERTH_SOCKET=nobody)
        for line in process.stdout:
            if line.startswith("step "):
                break
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, err), (85, ""))
        step = int(re.search(r"stopped at step (\d+)", out).group(1))
        status, out = self.run_it(CLIENT, "1000", "0")
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith(f"from step {step}\n"), out)
        self.assertIn("done step 1000\n", out)
        after = self.read("model.txt")
        os.unlink(os.path.join(self.scratch, "model.txt"))
        self.run_it(CLIENT, "1000", "0")
        self.assertEqual(self.read("model.txt"), after)

    def test_it_reports_and_hears(self):
        path = os.path.join(self.scratch, "job.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(path)
            door.listen(1)
            door.settimeout(PATIENCE)
            process = self.start(CLIENT, "100000", "2000", BERTH_SOCKET=path)
            line, _ = door.accept()
            line.settimeout(PATIENCE)
            with line, line.makefile("r") as said:
                self.assertEqual(said.readline(), "hello 1\n")
                self.assertEqual(said.readline(), "total 100000\n")
                self.assertRegex(said.readline(), r"\Areport 1 4\d\.\d+\n\Z")
                line.sendall(b"stop 60\n")
                rest = said.read().splitlines()
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 85)
        step = re.search(r"stopped at step (\d+)", out).group(1)
        self.assertEqual(rest[-1], f"saved {step}")

    def test_a_kill_in_the_middle_leaves_a_whole_checkpoint_or_none(self):
        process = self.start(CLIENT, "100000", "1000")
        process.stdout.readline()
        process.kill()
        process.communicate()
        self.assertEqual(os.listdir(self.scratch), [])


class Header(Example):
    def test_it_is_c_plus_plus_as_well(self):
        compiler = shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            self.skipTest("no C++ compiler is installed")
        source = os.path.join(self.scratch, "job.cc")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <berth/client.h>\n#include <berth/client.h>\n"
                       "int main() { auto *berth = berth_client_new();\n"
                       "  return berth_client_must_stop(berth) ? BERTH_EXIT_SAVED : 0; }\n")
        for standard in ("-std=c++11", "-std=c++17"):
            done = subprocess.run(
                [compiler, standard, "-Wall", "-Wextra", "-Werror", "-pedantic",
                 "-fsyntax-only", "-I", os.path.join(ROOT, "include"), source],
                capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Installed(Example):
    """A job is compiled and run with nothing but what make install puts into place."""

    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="berth-example-")  # pkg-config minds spaces
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        if "-fsanitize" in self.build_flags():
            self.skipTest("the library of this build needs the sanitizers' flags")
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
                              env={**os.environ, "DESTDIR": self.scratch}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def build_flags(self):
        path = os.path.join(BUILD, "build.ninja")
        if not os.path.exists(path):
            self.skipTest("nothing is built")
        with open(path, encoding="utf-8") as file:
            return file.read()

    def folder_of(self, name):
        found = [folder for folder, _, names in os.walk(self.scratch) if name in names]
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def test_a_job_in_c(self):
        env = {**os.environ, "PKG_CONFIG_PATH": self.folder_of("berth-client.pc"),
               "PKG_CONFIG_SYSROOT_DIR": self.scratch,
               "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "berth-client"], env=env,
                               capture_output=True, text=True)
        self.assertEqual(flags.returncode, 0, flags.stderr)
        job = os.path.join(self.scratch, "job")
        done = subprocess.run(["cc", "-D_GNU_SOURCE", "-o", job,
                               os.path.join(EXAMPLES, "client.c"),
                               *shlex.split(flags.stdout), "-lm"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        status, out = self.run_it(job, "100", "0", LD_LIBRARY_PATH=self.folder_of(
            "libberth-client.so.1.0.0"))
        self.assertEqual((status, out.splitlines()[-1]), (0, "done step 100"))

    def test_the_python_package(self):
        package = os.path.dirname(self.folder_of("_client.py"))
        status, out = self.run_it(sys.executable, "-c",
                                  "import berth; print(berth.__file__)", PYTHONPATH=package)
        self.assertEqual((status, out), (0, os.path.join(package, "berth/__init__.py\n")))


if __name__ == "__main__":
    unittest.main()
