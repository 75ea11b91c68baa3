"""The Python package: what a job says and hears, how it ends, and functions as jobs."""
import ast
import glob
import http.server
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
from unittest import mock

from support import ROOT

PYTHON = os.path.join(ROOT, "python")
sys.path.insert(0, PYTHON)
for told in [name for name in os.environ if name.startswith("BERTH_")]:
    if told not in ("BERTH_BUILD", "BERTH_DATA"):
        del os.environ[told]  # we are not a job

import berth
from berth import _call, _submit, hooks
from berth._client import Client

PATIENCE = 90  # seconds until a test that waits for a process gives up


class Scratch(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="berth py ")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return self.path(name)

    def start(self, text, **env):
        """A program of its own, with the package on its path."""
        script = self.write("job.py", text)
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        process = subprocess.Popen(
            [sys.executable, script], cwd=self.scratch, text=True,
            env={**clean, "PYTHONPATH": PYTHON, "PYTHONDONTWRITEBYTECODE": "1", **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)  # what goes wrong in it stays there
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_job(self, text, **env):
        process = self.start(text, **env)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err


class Peer:
    """A berth-run, as far as the job sees it."""

    def __init__(self, path):
        self.path = path
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.door.bind(path)
        self.door.listen(8)
        self.door.settimeout(PATIENCE)
        self.line, self.rest = None, b""

    def answer(self):
        self.hang_up()
        self.line, _ = self.door.accept()
        self.line.settimeout(PATIENCE)
        return self

    def called(self):
        """Whether somebody is at the door."""
        self.door.settimeout(0)
        try:
            self.answer()
            return True
        except BlockingIOError:
            return False
        finally:
            self.door.settimeout(PATIENCE)

    def heard(self):
        """What has come so far, without waiting."""
        self.line.settimeout(0)
        try:
            while True:
                more = self.line.recv(65536)
                if not more:
                    break
                self.rest += more
        except BlockingIOError:
            pass
        finally:
            self.line.settimeout(PATIENCE)
        lines, self.rest = self.rest.decode().split("\n"), b""
        return lines[:-1]

    def wait_for(self, word):
        """Lines up to one that starts with this word."""
        lines = []
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                lines.append(line.decode())
                if lines[-1].split()[0] == word:
                    return lines
            more = self.line.recv(4096)
            if not more:
                raise AssertionError(f"hung up after {lines}")
            self.rest += more

    def rest_of_it(self):
        """All lines until it hangs up, or ends with words of ours unread."""
        while True:
            try:
                more = self.line.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                lines, self.rest = self.rest.decode().split("\n"), b""
                return lines[:-1]
            self.rest += more

    def says(self, text):
        self.line.sendall(text.encode())

    def hang_up(self):
        if self.line is not None:
            self.line.close()
        self.line, self.rest = None, b""

    def close(self):
        self.hang_up()
        self.door.close()


class WithPeer(Scratch):
    def setUp(self):
        super().setUp()
        self.peer = Peer(self.path("job.sock"))
        self.addCleanup(self.peer.close)
        self.now = 100.0
        self.client = Client(self.peer.path, self.path("preempt"), clock=lambda: self.now)
        self.addCleanup(self.client.close)


class Tensor:
    """The parts of a tensor that matter here; reading it is what costs."""
    reads = 0

    def __init__(self, value):
        self.value, self.detached = value, False

    def detach(self):
        copy = Tensor(self.value)
        copy.detached = True
        return copy

    def __float__(self):
        assert self.detached
        Tensor.reads += 1
        return self.value


class ClientSpeaks(WithPeer):
    def test_the_newest_report_is_sent_now_and_then(self):
        """Ten a second at first, and one when it has reported for 20 seconds."""
        for step in range(1, 26):
            self.client.report(step, 1.5)
            self.now += 0.0101
        self.peer.answer()
        self.assertEqual(self.peer.heard(), ["hello 1", "report 1 1.5", "report 11 1.5",
                                             "report 21 1.5"])
        self.now += 30
        for step in range(26, 301):
            self.client.report(step, 1.5)
            self.now += 0.0101
        self.assertEqual(self.peer.heard(), ["report 26 1.5", "report 126 1.5",
                                             "report 226 1.5"])
        self.client.close()
        self.assertEqual(self.peer.heard(), ["report 300 1.5"])

    def test_a_loss_that_is_no_number_is_left_out(self):
        for loss in (None, float("nan"), float("inf"), "much", object()):
            self.client.report(7, loss)
            self.now += 1
        self.peer.answer()
        self.assertEqual(self.peer.heard(), ["hello 1"] + ["report 7 -"] * 5)

    def test_a_tensor_is_read_only_when_it_is_sent(self):
        Tensor.reads = 0
        for step in range(1000):
            self.client.report(step, Tensor(0.25))
        self.assertEqual(Tensor.reads, 1)
        self.assertEqual(self.peer.answer().heard(), ["hello 1", "report 0 0.25"])

    def test_a_checkpoint_is_told_at_once_with_the_step_before_it(self):
        self.client.total(500)
        self.client.total(0)  # that is, unknown
        self.client.report(1, 1)
        self.client.report(2, 0.5)
        self.client.saved(2)
        self.client.saved(2)
        self.assertEqual(self.peer.answer().heard(),
                         ["hello 1", "total 500", "report 1 1", "report 2 0.5", "saved 2",
                          "saved 2"])

    def test_a_peer_that_comes_back_is_told_where_things_stand(self):
        self.client.total(10)
        self.client.report(3, 0.5)
        self.client.saved(2)
        self.peer.answer().hang_up()
        self.now += 2
        self.client.report(4)
        self.client.report(5)
        self.peer.answer()
        self.now += 2
        self.client.must_stop()
        self.assertEqual(self.peer.heard(), ["hello 1", "total 10", "saved 2", "report 5 -"])

    def test_a_peer_that_is_away_is_tried_once_per_second(self):
        self.peer.close()
        os.unlink(self.peer.path)
        self.client.report(1)
        self.peer = Peer(self.path("job.sock"))
        self.addCleanup(self.peer.close)
        self.now += 0.9
        self.client.report(2)
        self.assertFalse(self.peer.called())
        self.now += 0.2
        self.client.report(3)
        self.assertEqual(self.peer.answer().heard(), ["hello 1", "report 3 -"])

    def test_a_peer_that_does_not_read_holds_nobody_up(self):
        for step in range(20000):
            self.client.report(step, 0.123456789)
            self.client.saved(step)
            self.now += 1
        self.peer.answer()
        self.assertLess(len(self.peer.heard()), 40000)
        for step in (20001, 20002):
            self.now += 1
            self.client.report(step, 1)
        lines = self.peer.heard()
        self.assertIn("report 20002 1", lines)
        for line in lines:
            self.assertRegex(line, r"\A(report|saved) \d+( [\d.]+)?\Z")

    def test_without_berth_nothing_happens(self):
        alone = Client()
        alone.report(1, 2)
        alone.total(2)
        alone.saved(1)
        self.assertFalse(alone.must_stop())
        self.assertIsNone(alone.time_left())
        alone.close()

    def test_a_path_that_cannot_be_is_nobody(self):
        for path in ("/" + "x" * 300, "/\0", "/nowhere/at/all"):
            Client(path).report(1, 1)


class ClientHears(WithPeer):
    def test_stop_in_pieces_among_unknown_words(self):
        self.assertFalse(self.client.must_stop())
        self.peer.answer()
        self.peer.says("welcome 2\nstopped\n\nsto")
        self.assertFalse(self.client.must_stop())
        self.peer.says("p 60\n")
        self.assertTrue(self.client.must_stop())
        self.now += 20
        self.assertAlmostEqual(self.client.time_left(), 40)
        self.peer.hang_up()
        self.assertTrue(self.client.must_stop())

    def test_rubbish_ends_the_connection_only(self):
        self.client.must_stop()
        self.peer.answer()
        self.peer.says("s" * 5000)
        for _ in range(3):
            self.assertFalse(self.client.must_stop())
        self.now += 1
        self.assertFalse(self.client.must_stop())
        self.assertEqual(self.peer.answer().heard(), ["hello 1"])

    def test_a_grace_that_is_no_number_still_stops(self):
        for words in ("stop\n", "stop soon\n", "stop nan\n", "stop -1\n"):
            client = Client(self.peer.path, clock=lambda: self.now)
            client.must_stop()
            self.peer.answer()
            self.peer.says(words)
            self.assertTrue(client.must_stop())
            self.assertIsNone(client.time_left())
            client.close()

    def test_the_file_tells_where_the_socket_does_not(self):
        client = Client(None, self.path("preempt"), clock=lambda: self.now)
        self.assertFalse(client.must_stop())
        self.write("preempt", "30\n")
        self.assertFalse(client.must_stop())  # it looked just now
        self.now += 0.2
        self.assertTrue(client.must_stop())
        self.assertAlmostEqual(client.time_left(), 30)


JOB = """
    import time, berth
    with berth.Run() as run:
        state = run.load() or {"step": 0}
        print("from", state["step"], run.attempt, run.resume, flush=True)
        steps = berth.steps(1000, start=state["step"], every=100, save=lambda step:
                            run.save({"step": step}))
        for step in steps:
            steps.loss = 1 / (1 + step)
            if step == 3: print("at 3", flush=True)
            time.sleep(%g)
    print("through", steps.step)
"""


class Runs(WithPeer):
    def environment(self, **more):
        return {"BERTH_SOCKET": self.peer.path, "BERTH_PREEMPT_FILE": self.path("preempt"),
                "BERTH_CKPT_DIR": self.path("ckpt"), "BERTH_JOB_ID": "7", **more}

    def test_a_job_is_stopped_and_goes_on_where_it_was(self):
        process = self.start(JOB % 0.005, **self.environment())
        self.peer.answer()
        lines = self.peer.wait_for("report")
        self.peer.says("stop 60\n")
        os.kill(process.pid, signal.SIGTERM)
        lines += self.peer.rest_of_it()
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, err), (85, ""))
        self.assertTrue(out.startswith("from 0 0 False\n"), out)
        step = int(lines[-1].split()[1])
        self.assertEqual(lines[-1], f"saved {step}")
        self.assertTrue(lines[-2].startswith(f"report {step} "), lines)

        status, out, err = self.run_job(
            JOB % 0, **self.environment(BERTH_RESUME="1", BERTH_ATTEMPT="1"))
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, rf"\Afrom {step} 1 True\n(at 3\n)?through 1000\n\Z")
        self.peer.answer()
        lines = self.peer.rest_of_it()
        self.assertEqual(lines[:2], ["hello 1", "total 1000"])
        self.assertIn("saved 1000", lines)
        self.assertIn("report 1000 0.001", lines)

    def test_the_signal_alone_is_enough(self):
        process = self.start(JOB % 0.005)
        self.assertEqual(process.stdout.readline(), "from 0 0 False\n")
        self.assertEqual(process.stdout.readline(), "at 3\n")
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, err), (85, ""))
        self.assertEqual(os.listdir(self.path("checkpoints")), ["state.pickle"])

    def test_a_job_that_is_through_when_told_to_stop_is_done(self):
        status, out, err = self.run_job("""
            import os, signal, berth
            with berth.Run() as run:
                for step in berth.steps(10):
                    if step == 9:
                        os.kill(os.getpid(), signal.SIGTERM)
            print("done")
        """)
        self.assertEqual((status, out, err), (0, "done\n", ""))

    def test_a_job_that_never_asks_ends_by_the_signal(self):
        status, _, _ = self.run_job("""
            import os, signal, berth
            berth.report(1, loss=2)
            os.kill(os.getpid(), signal.SIGTERM)
        """, **self.environment())
        self.assertEqual(status, -signal.SIGTERM)

    def test_asking_under_berth_survives_the_signal(self):
        status, out, _ = self.run_job("""
            import os, signal, berth
            print(berth.must_stop())
            os.kill(os.getpid(), signal.SIGTERM)
            print(berth.must_stop())
        """, **self.environment())
        self.assertEqual((status, out), (0, "False\nTrue\n"))

    def test_a_handler_of_the_program_stays(self):
        status, out, _ = self.run_job("""
            import os, signal, berth
            signal.signal(signal.SIGTERM, lambda *_: print("mine"))
            berth.must_stop()
            with berth.Run():
                os.kill(os.getpid(), signal.SIGTERM)
        """, **self.environment())
        self.assertEqual((status, out), (0, "mine\n"))

    def test_an_error_in_the_block_is_the_programs_own(self):
        status, _, err = self.run_job("""
            import os, signal, berth
            with berth.Run() as run:
                os.kill(os.getpid(), signal.SIGTERM)
                run.must_stop()
                raise KeyError("lost")
        """)
        self.assertEqual(status, 1)
        self.assertIn("KeyError: 'lost'", err)

    def test_the_last_report_is_sent_at_exit(self):
        status, _, _ = self.run_job("""
            import berth
            for step in range(100):
                berth.report(step, loss=step / 2)
        """, **self.environment())
        self.assertEqual(status, 0)
        self.assertEqual(self.peer.answer().rest_of_it(),
                         ["hello 1", "report 0 0", "report 99 49.5"])

    def test_a_forked_worker_says_nothing_for_its_parent(self):
        status, out, err = self.run_job("""
            import os, signal, sys, time, berth
            berth.must_stop()
            berth.report(1, loss=1)
            berth.report(2, loss=1)
            worker = os.fork()
            if worker == 0:
                sys.exit(0)                       # runs what atexit registered
            os.waitpid(worker, 0)
            here, there = os.pipe()
            worker = os.fork()
            if worker == 0:
                os.write(there, b"!")
                time.sleep(60)
                os._exit(1)
            os.read(here, 1)
            os.kill(worker, signal.SIGTERM)
            print(os.WTERMSIG(os.waitpid(worker, 0)[1]) == signal.SIGTERM)
            berth.saved(2)
        """, **self.environment())
        self.assertEqual((status, out, err), (0, "True\n", ""))
        self.assertEqual(self.peer.answer().rest_of_it(),
                         ["hello 1", "report 1 1", "report 2 1", "saved 2"])
        self.assertFalse(self.peer.called())

    def test_forked_workers_outlive_the_warning_until_their_parent_ends_them(self):
        process = self.start("""
            import multiprocessing, os, time, berth

            def work(box):
                while True:
                    box.put(os.getpid())
                    time.sleep(0.01)

            with berth.Run() as run:
                box = multiprocessing.get_context("fork").Queue(1)
                worker = multiprocessing.get_context("fork").Process(target=work, args=(box,))
                worker.start()
                box.get()
                print("ready", flush=True)
                while not run.must_stop():
                    box.get(timeout=30)
                for _ in range(10):
                    box.get(timeout=30)               # what was begun is finished
                print("alive", worker.is_alive(), flush=True)
                worker.terminate()
                worker.join()
                print("ended by", worker.exitcode, flush=True)
        """, **self.environment())
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.write("preempt", "60\n")
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out, err),
                         (85, "alive True\nended by -15\n", ""))

    def test_wrong_steps_are_refused_with_and_without_berth(self):
        for wrong in (-1, 1 << 64):
            with self.assertRaises(ValueError):
                berth.report(wrong)
        with self.assertRaises(TypeError):
            berth.saved(None)


class Saves(Scratch):
    def run_in_scratch(self):
        return berth.Run(ckpt_dir=self.path("ckpt"))

    def test_what_is_saved_is_loaded(self):
        run = self.run_in_scratch()
        self.assertIsNone(run.load())
        self.assertFalse(run.resume)
        self.assertEqual(run.load({"step": 0}), {"step": 0})
        run.save({"step": 5, "weights": [1.5, 2]})
        self.assertEqual(self.run_in_scratch().load(), {"step": 5, "weights": [1.5, 2]})
        self.assertTrue(run.resume)

    def test_a_save_that_fails_leaves_what_was(self):
        run = self.run_in_scratch()
        run.save("before")
        with self.assertRaises(Exception):
            run.save(lambda: None)  # cannot be pickled
        with self.assertRaises(ZeroDivisionError):
            with run.saving("state.pickle") as path:
                with open(path, "w", encoding="utf-8") as file:
                    file.write("half")
                1 / 0
        self.assertEqual(run.load(), "before")
        self.assertEqual(os.listdir(self.path("ckpt")), ["state.pickle"])


class Notes:
    """What is said, and when to be told to stop, in the test's own hands."""

    def setUp(self):
        self.calls = []
        self.stop_after = None
        for name in ("report", "total", "saved"):
            patch = mock.patch.object(berth._speak, name, self.note(name))
            patch.start()
            self.addCleanup(patch.stop)
        for name, ours in (("must_stop", self.must_stop), ("_answered", False)):
            patch = mock.patch.object(berth._speak, name, ours)
            patch.start()
            self.addCleanup(patch.stop)
        self.asked = 0

    def note(self, name):
        return lambda *args: self.calls.append((name, *args))

    def must_stop(self):
        self.asked += 1
        return self.stop_after is not None and self.asked > self.stop_after


class Loops(Notes, unittest.TestCase):
    def test_a_list_of_batches(self):
        steps = berth.steps(["a", "b"], start=3)
        seen = []
        for batch in steps:
            seen.append(batch)
            steps.loss = 0.5
        self.assertEqual(seen, ["a", "b"])
        self.assertEqual(self.calls, [("total", 5), ("report", 4, 0.5), ("report", 5, 0.5)])
        self.assertFalse(steps.stopped)

    def test_what_has_no_length_has_no_total(self):
        self.assertEqual(list(berth.steps(iter("ab"))), ["a", "b"])
        self.assertEqual(self.calls, [("report", 1, None), ("report", 2, None)])

    def test_a_number_counts_from_where_it_was(self):
        self.assertEqual(list(berth.steps(5, start=3)), [3, 4])
        self.assertEqual(list(berth.steps(5, start=5)), [])

    def test_it_stops_and_saves(self):
        self.stop_after = 3
        saves = []
        steps = berth.steps(10, save=saves.append, every=2)
        self.assertEqual(list(steps), [0, 1, 2])
        self.assertTrue(steps.stopped)
        self.assertEqual(saves, [2, 3])
        self.assertEqual(self.calls[-1], ("saved", 3))

    def test_told_before_the_first_step_it_does_none(self):
        self.stop_after = 0
        steps = berth.steps(10, save=self.fail)
        self.assertEqual(list(steps), [])
        self.assertTrue(steps.stopped)


class Hooks(Notes, unittest.TestCase):
    """Frameworks by their shape: the loops below call what theirs call."""

    def fit_huggingface(self, callback, steps):
        args, state = object(), types.SimpleNamespace(global_step=0, max_steps=steps)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback.on_init_end(args, state, control, model=None)
        callback.on_train_begin(args, state, control, model=None)
        while state.global_step < steps and not control.should_training_stop:
            callback.on_step_begin(args, state, control)
            state.global_step += 1
            callback.on_step_end(args, state, control, model=None)
            if control.should_save:
                callback.on_save(args, state, control)
            callback.on_log(args, state, control, logs={"loss": 1 / state.global_step})
        callback.on_train_end(args, state, control)
        return state.global_step

    def test_huggingface_reports_saves_and_stops(self):
        self.stop_after = 3
        self.assertEqual(self.fit_huggingface(berth.huggingface_callback(), 10), 3)
        self.assertEqual(self.calls, [("total", 10), ("report", 1, None), ("report", 2, 1.0),
                                      ("report", 3, 0.5), ("saved", 3)])

    def test_huggingface_trains_to_the_end(self):
        self.assertEqual(self.fit_huggingface(berth.huggingface_callback(every=4), 10), 10)
        self.assertNotIn(("saved", 10), self.calls)
        self.assertEqual(self.asked, 1 + 2)

    def fit_lightning(self, callback, steps):
        trainer = types.SimpleNamespace(global_step=0, should_stop=False, saves=[],
                                        estimated_stepping_batches=steps)
        trainer.save_checkpoint = trainer.saves.append
        callback.setup(trainer, None, stage="fit")
        callback.on_fit_start(trainer, None)
        callback.on_train_start(trainer, None)
        for batch in range(steps):
            callback.on_train_batch_start(trainer, None, batch, batch)
            trainer.global_step += 1
            callback.on_train_batch_end(trainer, None, {"loss": 0.5}, batch, batch)
            if trainer.should_stop:
                break
        callback.on_train_end(trainer, None)
        callback.teardown(trainer, None, stage="fit")
        self.assertEqual(callback.state_dict(), {})
        return trainer

    def test_lightning_reports_saves_and_stops(self):
        self.stop_after = 2
        with mock.patch.dict(os.environ, BERTH_CKPT_DIR="/somewhere"):
            callback = berth.lightning_callback()
        trainer = self.fit_lightning(callback, 10)
        self.assertEqual(trainer.global_step, 2)
        self.assertEqual(trainer.saves, ["/somewhere/berth.ckpt"])
        self.assertIsNone(callback.resume_from)
        self.assertEqual(self.calls, [("total", 10), ("report", 1, 0.5), ("report", 2, 0.5),
                                      ("saved", 2)])

    def test_lightning_without_an_end_has_no_total(self):
        self.fit_lightning(berth.lightning_callback(), 3)
        callback = berth.lightning_callback()
        self.calls.clear()
        callback.on_train_start(types.SimpleNamespace(
            estimated_stepping_batches=float("inf")), None)
        self.assertEqual(self.calls, [])

    def test_their_own_base_classes_are_used_where_they_are(self):
        class Callback:
            def on_train_start(self, trainer, module):
                raise AssertionError("ours comes first")

            def on_epoch_end(self, *args):
                return "theirs"

        module = types.ModuleType("lightning.pytorch.callbacks")
        module.Callback = Callback
        other = types.ModuleType("transformers")
        other.TrainerCallback = Callback
        with mock.patch.dict(sys.modules, {module.__name__: module, "transformers": other}):
            for callback in (berth.lightning_callback(), berth.huggingface_callback()):
                self.assertIsInstance(callback, Callback)
                self.assertEqual(callback.on_epoch_end(), "theirs")
        self.assertNotIsInstance(berth.lightning_callback(), Callback)

    def test_neither_framework_is_imported(self):
        for name in ("torch", "transformers", "lightning", "pytorch_lightning"):
            self.assertNotIn(name, sys.modules)

    def test_one_ranks_yes_is_everybodys(self):
        votes_of_others = [1]

        class Votes(list):
            def item(self):
                return self[0]

        torch = types.ModuleType("torch")
        torch.tensor = lambda values, device: Votes(values)

        def all_reduce(votes, op):
            votes[0] = max(votes + votes_of_others)

        torch.distributed = types.SimpleNamespace(
            is_available=lambda: True, is_initialized=lambda: True,
            get_world_size=lambda: 2, get_backend=lambda: "gloo", all_reduce=all_reduce,
            ReduceOp=types.SimpleNamespace(MAX="max"))
        self.assertFalse(hooks.must_stop_together())
        with mock.patch.dict(sys.modules, torch=torch):
            votes_of_others[:] = [0]
            self.assertFalse(hooks.must_stop_together())
            self.assertFalse(berth._speak.was_answered())
            votes_of_others[:] = [1]
            self.assertTrue(hooks.must_stop_together())
            self.assertTrue(berth._speak.was_answered())  # so that it leaves with 85


# --- functions as jobs ------------------------------------------------------------------

class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """As much of berthd's API as submit() uses; it really runs the commands."""
    daemon_threads = True

    def __init__(self, folder):
        self.folder, self.jobs, self.asked = folder, {}, []
        super().__init__(os.path.join(folder, "api.sock"), Handler)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.thread.start()

    def submit(self, spec):
        id = len(self.jobs) + 1
        log = open(os.path.join(self.folder, f"{id}.out"), "wb")
        with log:
            process = subprocess.Popen(
                spec["command"], cwd=spec["cwd"], env={**spec["env"], "BERTH_JOB_ID": str(id)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.jobs[id] = {"spec": spec, "process": process, "cancelled": False}
        return {"id": id}

    def reject(self, spec):
        process = subprocess.Popen(["true"])
        self.jobs[len(self.jobs) + 1] = {"spec": spec, "process": process, "rejected": True}
        return {"id": len(self.jobs), "rejected": "never"}

    def show(self, id):
        job = self.jobs[id]
        if job.get("rejected"):
            return {"id": id, "state": "REJECTED", "reason": "8 GPUs in one node, never"}
        code = job["process"].poll()
        if code is None:
            return {"id": id, "state": "RUNNING"}
        state = "CANCELLED" if job["cancelled"] else "FAILED" if code else "COMPLETED"
        return {"id": id, "state": state, "exit_code": code}

    def cancel(self, id):
        self.jobs[id]["cancelled"] = True
        self.jobs[id]["process"].kill()

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()
        for job in self.jobs.values():
            if job["process"].poll() is None:
                job["process"].kill()
            job["process"].wait()


class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass

    def answer(self, status, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if data:
            self.wfile.write(data)

    def handle_any(self):
        daemon = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        daemon.asked.append((self.command, self.path))
        if (self.command, self.path) == ("POST", "/v1/jobs"):
            spec = json.loads(body)
            if spec["gpus"] == 8:  # recorded, and never run
                self.answer(201, daemon.reject(spec))
            elif spec["gpus"] > 8:
                self.answer(400, {"error": f"gpus is {spec['gpus']}, there are 8"})
            else:
                self.answer(201, daemon.submit(spec))
            return
        match = re.fullmatch(r"/v1/jobs/(\d+)(/log\?offset=(-\d+))?", self.path)
        id = int(match.group(1))
        if self.command == "DELETE":
            daemon.cancel(id)
            self.answer(200, {"id": id, "state": "CANCELLED"})
        elif match.group(2):
            with open(os.path.join(daemon.folder, f"{id}.out"), "rb") as file:
                self.answer(200, file.read()[int(match.group(3)):])
        else:
            self.answer(200, daemon.show(id))

    do_GET = do_POST = do_DELETE = handle_any


class Submits(Scratch):
    def setUp(self):
        super().setUp()
        self.daemon = Daemon(tempfile.mkdtemp(prefix="berthd-"))
        self.addCleanup(shutil.rmtree, self.daemon.folder, ignore_errors=True)
        self.addCleanup(self.daemon.stop)
        self.write("work_for_jobs.py", """
            import os, sys

            class Odd(Exception):
                def __init__(self, a, b):
                    super().__init__(f"{a} and {b}")

            def add(a, b=1):
                return a + b

            def where():
                return os.getcwd(), os.environ.get("EXTRA"), os.environ["BERTH_JOB_ID"]

            def breaks():
                {}["missing"]

            def odd():
                raise Odd(1, 2)

            def dies():
                print("about to die", flush=True)
                os.abort()

            def leaves():
                sys.exit(3)

            def hangs():
                import time
                time.sleep(600)

            def unpicklable():
                return lambda: None
        """)
        env = mock.patch.dict(os.environ, BERTH_ADDR=self.daemon.server_address,
                              XDG_STATE_HOME=self.path("state"))
        env.start()
        self.addCleanup(env.stop)
        path = mock.patch.object(sys, "path", [self.scratch, *sys.path])
        path.start()
        self.addCleanup(path.stop)
        self.addCleanup(sys.modules.pop, "work_for_jobs", None)
        import work_for_jobs
        self.work = work_for_jobs

    def folders(self):
        return os.listdir(self.path("state/berth/calls"))

    def test_a_function_comes_back_with_its_result(self):
        job = berth.submit(self.work.add, 2, b=40, gpus=2)
        self.assertEqual(job.result(timeout=PATIENCE), 42)
        self.assertEqual(job.result(), 42)
        self.assertTrue(job.done())
        spec = self.daemon.jobs[job.id]["spec"]
        self.assertEqual((spec["name"], spec["gpus"], spec["class"]), ("add", 2, "te"))
        self.assertEqual(self.folders(), [])

    def test_it_runs_where_and_with_what_is_asked(self):
        with mock.patch.dict(os.environ, BERTH_JOB_ID="999", BERTH_SOCKET="/parents"):
            job = berth.submit(self.work.where, cwd=self.scratch, env={"EXTRA": "salt"},
                               job_class="be", name="look", more={"grace": 5})
        self.assertEqual(job.result(timeout=PATIENCE), (self.scratch, "salt", str(job.id)))
        spec = self.daemon.jobs[job.id]["spec"]
        self.assertNotIn("BERTH_SOCKET", spec["env"])
        self.assertEqual((spec["name"], spec["class"], spec["grace"]), ("look", "be", 5))

    def test_an_exception_comes_back_as_itself(self):
        with self.assertRaisesRegex(KeyError, "missing") as caught:
            berth.submit(self.work.breaks).result(timeout=PATIENCE)
        self.assertIsInstance(caught.exception.__cause__, berth.RemoteTraceback)
        self.assertIn("in breaks", str(caught.exception.__cause__))

    def test_an_exception_that_cannot_travel_is_told(self):
        with self.assertRaisesRegex(RuntimeError, "Odd: 1 and 2"):
            berth.submit(self.work.odd).result(timeout=PATIENCE)

    def test_a_result_that_cannot_travel_is_an_error(self):
        with self.assertRaisesRegex(Exception, "pickle"):
            berth.submit(self.work.unpicklable).result(timeout=PATIENCE)

    def test_a_job_that_dies_says_how_and_its_last_words(self):
        with self.assertRaisesRegex(berth.JobFailed, "FAILED, exit code -6") as caught:
            berth.submit(self.work.dies).result(timeout=PATIENCE)
        self.assertIn("about to die", caught.exception.log)
        with self.assertRaisesRegex(berth.JobFailed, "exit code 3"):
            berth.submit(self.work.leaves).result(timeout=PATIENCE)

    def test_a_job_can_be_waited_for_only_so_long_and_be_cancelled(self):
        job = berth.submit(self.work.hangs)
        with self.assertRaises(TimeoutError):
            job.result(timeout=0.1)
        self.assertFalse(job.done())
        job.cancel()
        with self.assertRaisesRegex(berth.JobFailed, "CANCELLED"):
            job.result(timeout=PATIENCE)

    def test_wrong_arguments_are_noticed_before_anything_is_submitted(self):
        with self.assertRaises(TypeError):
            berth.submit(self.work.add, 1, 2, 3)
        with self.assertRaises(TypeError):
            berth.submit(self.work.add, 1, gpu=2)  # a slip for gpus
        with self.assertRaises(TypeError):
            berth.submit("add")
        here = 3
        for wrong in (lambda: 1, lambda: here):
            with self.assertRaises(ValueError):
                berth.submit(wrong)
        self.assertEqual(self.daemon.asked, [])

    def test_a_refusal_is_its_sentence_and_leaves_nothing(self):
        with self.assertRaisesRegex(_call.Refused, "gpus is 9, there are 8") as caught:
            berth.submit(self.work.add, 1, gpus=9)
        self.assertEqual(caught.exception.status, 400)
        self.assertEqual(self.folders(), [])

    def test_a_job_that_can_never_run_says_why(self):
        with self.assertRaisesRegex(berth.JobFailed, "REJECTED: 8 GPUs in one node, never"):
            berth.submit(self.work.add, 1, gpus=8).result(timeout=PATIENCE)

    def test_a_function_as_text_stands_alone(self):
        namespace = {}
        source = "def area(r):\n    import math\n    return math.pi * r * r\n"
        exec(source, namespace)
        fn = namespace["area"]
        fn.__module__ = "__main__"
        with mock.patch.object(sys.modules["__main__"], "__file__", None), \
                mock.patch.object(_submit.inspect, "getsource", lambda f: source):
            job = berth.submit(fn, 2)
        self.assertAlmostEqual(job.result(timeout=PATIENCE), 12.566370614)

    def test_a_script_submits_its_own_functions_and_classes(self):
        status, out, err = self.run_job("""
            import berth

            class Point:
                def __init__(self, x):
                    self.x = x

            class Wrong(Exception):
                pass

            def double(point):
                if point.x < 0:
                    raise Wrong("negative")
                return Point(2 * point.x)

            if __name__ == "__main__":
                good = berth.submit(double, Point(21))
                bad = berth.submit(double, Point(-1))
                print(good.result(30).x)
                try:
                    bad.result(30)
                except Wrong as wrong:
                    print("Wrong:", wrong)
        """)
        self.assertEqual((status, out, err), (0, "42\nWrong: negative\n", ""))

    def test_a_daemon_that_is_away_for_a_while_is_waited_for(self):
        job = berth.submit(self.work.add, 1)
        address = self.daemon.server_address
        os.rename(address, address + ".away")
        threading.Timer(0.3, os.rename, (address + ".away", address)).start()
        self.assertEqual(job.result(timeout=PATIENCE), 2)


class Addresses(Scratch):
    def test_the_default_places(self):
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.scratch):
            os.environ.pop("BERTH_ADDR", None)
            self.assertEqual(list(_call.places()), ["/run/berth/api.sock"])
            os.mkdir(self.path("berth"))
            self.write("berth/api.sock", "")
            self.assertEqual(_call.find(), self.path("berth/api.sock"))

    def test_a_folder_of_somebody_else_is_not_trusted(self):
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.scratch), \
                mock.patch.object(_call.os, "getuid", lambda: os.geteuid() + 1):
            os.mkdir(self.path("berth"))
            self.assertEqual(list(_call.places()), ["/run/berth/api.sock"])

    def test_an_address_that_is_none_is_refused(self):
        for wrong in ("ftp://host", "http://"):
            with self.assertRaises(ValueError):
                _call.raw("GET", "/", address=wrong)
        with self.assertRaises(OSError):
            _call.raw("GET", "/", address=self.path("nothing.sock"))

    def test_a_server_that_speaks_no_http_is_an_error_of_the_connection(self):
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(door.close)
        door.bind(self.path("odd.sock"))
        door.listen(1)

        def mumble():
            line, _ = door.accept()
            with line:
                line.recv(1000)
                line.sendall(b"mumble\r\n")

        thread = threading.Thread(target=mumble)
        thread.start()
        with self.assertRaises(ConnectionError):
            _call.raw("GET", "/v1/jobs", address=self.path("odd.sock"))
        thread.join()


class Package(Scratch):
    def sources(self):
        return sorted(glob.glob(os.path.join(PYTHON, "berth", "*.py")))

    def read(self, *name):
        with open(os.path.join(ROOT, *name), encoding="utf-8") as file:
            return file.read()

    def test_it_reads_as_python_3_8(self):
        for path in self.sources():
            with self.subTest(os.path.basename(path)):
                ast.parse(self.read(path), feature_version=(3, 8))

    def test_all_of_it_is_installed(self):
        listed = set(re.findall(r"'berth/([\w.]+)'", self.read("python", "meson.build")))
        self.assertEqual(listed, {os.path.basename(path) for path in self.sources()})

    def test_its_version_is_ours(self):
        ours = re.search(r"version: '([\d.]+)'", self.read("meson.build")).group(1)
        self.assertEqual(berth.__version__, ours)
        self.assertIn(f'version = "{ours}"', self.read("python", "pyproject.toml"))

    def test_the_words_are_those_of_the_c_library(self):
        header = self.read("src", "client", "protocol.h")
        words = re.findall(r'#define PROTOCOL_\w+ "([a-z]+)"', header)
        text = self.read("python", "berth", "_client.py")
        for word in set(words) - {"rate"}:
            self.assertRegex(text, rf'"{word}[ "]')

    def test_pip_installs_it_without_a_network(self):
        found = subprocess.run([sys.executable, "-m", "pip", "--version"],
                               capture_output=True)
        if found.returncode:
            self.skipTest("pip is not installed")
        source = self.path("source")
        shutil.copytree(PYTHON, source, ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index",
             "--disable-pip-version-check", "--target", self.path("site"), source],
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([sys.executable, "-c", "import berth; print(berth.__file__)"],
                              env={**os.environ, "PYTHONPATH": self.path("site")},
                              capture_output=True, text=True, cwd=self.scratch)
        self.assertEqual(done.stdout.strip(), self.path("site/berth/__init__.py"))

    def test_the_place_below_a_prefix(self):
        def place(prefix):
            return subprocess.run([sys.executable, os.path.join(PYTHON, "place.py"), prefix],
                                  capture_output=True, text=True, check=True).stdout.strip()

        version = "%d.%d" % sys.version_info[:2]
        self.assertEqual(place("/opt/nobody/"),
                         f"/opt/nobody/lib/python{version}/site-packages")
        for path in sys.path:
            if re.fullmatch(r"/usr/local/lib/python[\d.]+/dist-packages", path):
                self.assertEqual(place("/usr/local"), path)


if __name__ == "__main__":
    unittest.main()
