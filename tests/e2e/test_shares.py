"""Shares of users and groups in a real berthd under the policy berth: what entities: of berthd.yaml
says, what is known of undeclared work, and that both survive a restart."""
import os
import sqlite3
import unittest

from live import Daemon

DAY_NS = 86400 * 10**9


class Shares(unittest.TestCase):
    def start(self, config="", gpus="v100:1"):
        daemon = Daemon("--policy", "berth", gpus=gpus)
        self.addCleanup(daemon.wipe)
        path = os.path.join(daemon.dir, "berthd.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        daemon.flags += ["--config", path]
        return daemon.start()

    def why(self, daemon, ident):
        status, answer = daemon.ask("GET", f"/v1/jobs/{ident}/why")
        self.assertEqual(status, 200)
        return answer

    def text(self, daemon, ident, token):
        return "; ".join(r["text"] for r in self.why(daemon, ident)["reasons"] if r["token"] == token)

    def run_to_end(self, daemon, **request):
        ident = daemon.submit("true", **request)
        self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        return ident

    def fill(self, daemon):
        """A job that holds the GPU and is never preempted."""
        ident = daemon.submit("sleep", "1000", stays=True)
        daemon.wait(ident, {"RUNNING"})

    def lengthen(self, daemon, ident, days):
        """While berthd is down: this job has run for so many days, until it ended."""
        base = sqlite3.connect(f"{daemon.state}/berth.db")
        with base:
            base.execute("UPDATE job SET start_ns = end_ns - ?1, served_ns = ?1 WHERE id = ?2",
                         (int(days * DAY_NS), ident))
        base.close()

    def test_a_guess_survives_a_restart(self):
        daemon = self.start()
        for number in range(6):
            self.run_to_end(daemon, name=f"train-{number}")
        self.fill(daemon)
        named = daemon.submit("true", name="train-77")
        other = daemon.submit("true", name="other")
        guess = self.text(daemon, named, "value")
        self.assertIn("by 6 finished jobs of its name and user", guess)
        self.assertIn("by 6 finished jobs of its user", self.text(daemon, other, "value"))
        daemon.kill()
        daemon.start()
        self.assertIn("by 6 finished jobs of its name and user", self.text(daemon, named, "value"))
        self.assertIn("by 6 finished jobs of its user", self.text(daemon, other, "value"))

    def test_a_guess_survives_a_switch_of_policies(self):
        daemon = self.start()
        for number in range(5):
            self.run_to_end(daemon, name=f"train-{number}")
        self.fill(daemon)
        ident = daemon.submit("true", name="train-77")
        for policy in "las", "berth":
            status, answer = daemon.ask("PATCH", "/v1/server", {"policy": policy})
            self.assertEqual(status, 200, answer)
        self.assertIn("by 5 finished jobs of its name and user", self.text(daemon, ident, "value"))

    def queue_two(self, config):
        """Two groups that have had as much; a waiting job of each.  The first is a little longer."""
        daemon = self.start(config)
        past = [self.run_to_end(daemon, entity=name) for name in ("vision", "speech")]
        daemon.kill()
        for ident in past:
            self.lengthen(daemon, ident, days=1)
        daemon.start()
        self.fill(daemon)
        vision = daemon.submit("sleep", "150", entity="vision", steps=150)
        speech = daemon.submit("sleep", "100", entity="speech", steps=100)
        return daemon, vision, speech

    def test_groups_without_weights_go_by_their_work(self):
        daemon, vision, speech = self.queue_two("")
        self.assertEqual(self.why(daemon, vision)["ahead"], [speech])
        self.assertEqual(self.text(daemon, speech, "order"), "")
        self.assertIn(f"the first, job {speech}, is worth", self.text(daemon, vision, "order"))

    def test_the_weight_of_a_group_counts_and_survives_a_restart(self):
        config = "entities:\n  - {name: vision, weight: 8}\n  - {name: speech, weight: 1}\n"
        daemon, vision, speech = self.queue_two(config)
        for _ in range(2):
            self.assertEqual(self.why(daemon, speech)["ahead"], [vision])
            self.assertEqual(self.why(daemon, vision)["ahead"], [])
            self.assertIn("more than its share", self.text(daemon, speech, "share"))
            daemon.kill()
            daemon.start()

    def test_a_wrong_file_is_refused_with_its_line(self):
        for config, complaint in (("entities:\n  - {name: a}\n  - {name: a}\n", "berthd.yaml:3: entity"),
                                  ("entities:\n  - {name: a, weight: -1}\n", "berthd.yaml:2:"),
                                  ("entities: {a: 2}\n", "berthd.yaml:1: entities: want a list")):
            with self.assertRaises(AssertionError) as caught:
                self.start(config)
            self.assertIn(complaint, str(caught.exception))

    def test_victims_that_were_considered_are_named(self):
        daemon = self.start()
        runs = daemon.submit("sleep", "1000", steps=1000, pause_s=5000, grace_s=5000, load_s=5000)
        daemon.wait(runs, {"RUNNING"})
        waits = daemon.submit("sleep", "10", steps=500)
        why = self.why(daemon, waits)
        self.assertEqual([item["job"] for item in why["considered"]], [runs])
        item = why["considered"][0]
        self.assertEqual(item["verdict"], "costs more than it saves")
        self.assertGreater(item["price_gpu_s"], 0)
        self.assertIn("benefit_s", item)


if __name__ == "__main__":
    unittest.main()
