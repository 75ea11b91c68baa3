"""A submission that is sent again is accepted once: keys, lost replies, restarts."""
import json
import os
import signal
import socket
import subprocess
import threading
import unittest

from live import BUILD, PATIENCE, Daemon, Wire, until


class Proxy(threading.Thread):
    """A socket between a client and berthd that loses the first replies to submissions."""

    def __init__(self, path, target, losses):
        super().__init__(daemon=True)
        self.target, self.losses, self.submissions = target, losses, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    @staticmethod
    def read_message(stream):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return None
            head += line
        sizes = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
                 if line.lower().startswith(b"content-length:")]
        return head, stream.read(sizes[0] if sizes else 0)

    def serve(self, client):
        with client, client.makefile("rb") as stream, socket.socket(socket.AF_UNIX) as server:
            server.connect(self.target)
            answers = server.makefile("rb")
            while message := self.read_message(stream):
                server.sendall(b"".join(message))
                reply = self.read_message(answers)
                if message[0].startswith(b"POST /v1/jobs "):
                    self.submissions.append((message, reply))
                    if len(self.submissions) <= self.losses:
                        return
                client.sendall(b"".join(reply))

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()


class Idempotency(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(gpus="v100:4")
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()

    def post(self, body, key):
        wire = Wire(self.daemon.socket)
        wire.request("POST", "/v1/jobs", body=json.dumps(body),
                     headers={"Idempotency-Key": key})
        reply = wire.getresponse()
        answer = json.loads(reply.read())
        wire.close()
        return reply.status, answer

    def request(self, **more):
        return {"command": ["true"], "cwd": self.daemon.dir, "gpus": 1, **more}

    def jobs(self):
        return len(self.daemon.ask("GET", "/v1/jobs?history=true")[1]["jobs"])

    def test_the_same_key_gives_the_same_job_also_after_a_crash(self):
        first = self.post(self.request(), "k")
        self.assertEqual(first[0], 201)
        self.assertEqual(self.post(self.request(), "k"), first)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.post(self.request(), "k"), first)
        self.assertEqual(self.jobs(), 1)
        self.assertNotEqual(self.post(self.request(), "K")[1], first[1])
        self.assertEqual(self.jobs(), 2)

    def test_another_body_under_the_same_key_is_refused(self):
        self.assertEqual(self.post(self.request(), "k")[0], 201)
        status, answer = self.post(self.request(name="other"), "k")
        self.assertEqual(status, 422)
        self.assertIn("was used for another submission", answer["error"])
        self.assertEqual(self.jobs(), 1)
        for key in ("x" * 129, "a b", ""):
            self.assertEqual(self.post(self.request(), key)[0], 400, key)

    def test_lists_and_rejected_jobs_are_answered_as_the_first_time(self):
        jobs = {"jobs": [self.request(), self.request()]}
        first = self.post(jobs, "list")
        self.assertEqual(len(first[1]["ids"]), 2)
        self.assertEqual(self.post(jobs, "list"), first)
        never = self.post(self.request(gpus=99), "never")
        self.assertIn("rejected", never[1])
        self.assertEqual(self.post(self.request(gpus=99), "never"), never)
        self.assertEqual(self.jobs(), 3)

    def test_ten_at_once_are_one(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            self.post(self.request(), "once"))) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 10)
        self.assertEqual(len({json.dumps(answer) for answer in answers}), 1, answers)
        self.assertEqual(self.jobs(), 1)

    def berth(self, *words, address=None):
        env = {**os.environ, "BERTH_ADDR": address or self.daemon.socket}
        return subprocess.Popen([os.path.join(BUILD, "berth"), *words], env=env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.daemon.dir)

    def finish(self, process):
        out, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, errors), (0, ""))
        return out

    def test_the_command_line_repeats_what_had_no_reply(self):
        path = os.path.join(self.daemon.dir, "proxy")
        proxy = Proxy(path, self.daemon.socket, losses=2)
        proxy.start()
        self.addCleanup(proxy.listener.close)
        out = self.finish(self.berth("submit", "-G1", "true", address=path))
        self.assertEqual(len(proxy.submissions), 3)
        self.assertEqual(len({message for message, _ in proxy.submissions}), 1)
        self.assertEqual(out, f"{json.loads(proxy.submissions[0][1][1])['id']}\n")
        self.assertEqual(self.jobs(), 1)
        self.finish(self.berth("submit", "-G1", "true", address=path))
        self.assertEqual(self.jobs(), 2)  # another submission, another key

    @staticmethod
    def waits_on_socket(pid):
        """It has connected, and sleeps until there is a reply."""
        folder = f"/proc/{pid}/fd"
        links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            sleeps = file.read().rsplit(")", 1)[1].split()[0] == "S"
        return sleeps and any(link.startswith("socket:") for link in links)

    def test_the_command_line_waits_for_a_berthd_that_was_killed(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        submit = self.berth("submit", "-G1", "true")
        until(lambda: self.waits_on_socket(submit.pid))
        self.daemon.kill()
        self.daemon.start()
        ident = int(self.finish(submit))
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(self.jobs(), 1)

    def test_a_key_of_ones_own(self):
        words = ("submit", "--idempotency-key", "mine", "-G1", "true")
        self.assertEqual(self.finish(self.berth(*words)), self.finish(self.berth(*words)))
        self.assertEqual(self.jobs(), 1)
        other = self.berth("run", "--idempotency-key", "mine", "-G1", "false")
        self.assertIn("was used for another submission", other.communicate()[1])
        self.assertEqual(other.returncode, 2)
        wrong = self.berth("submit", "--idempotency-key", "a b", "true")
        self.assertIn("want 1 to 128", wrong.communicate()[1])
        self.assertEqual(wrong.returncode, 2)


if __name__ == "__main__":
    unittest.main()
