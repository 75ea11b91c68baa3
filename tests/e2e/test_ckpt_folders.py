"""Checkpoint folders: each job finds its own, empty; what is put into one stays."""
import os
import unittest

from live import Daemon


class Folders(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(gpus="slot:2")
        self.addCleanup(self.daemon.wipe)
        self.daemon.start()

    def kept(self):
        return sorted(os.listdir(os.path.join(self.daemon.state, "ckpt")))

    def output(self, ident):
        self.daemon.wait(ident)
        return str(self.daemon.ask("GET", f"/v1/jobs/{ident}/log")[1])

    def test_whoever_comes_later_finds_nothing_of_the_others(self):
        first = [self.daemon.sh("true") for _ in range(6)]
        filled = self.daemon.sh('echo 1 > "$BERTH_CKPT_DIR/step"')
        for ident in [*first, filled]:
            self.daemon.wait(ident)
        later = [self.daemon.sh('ls -A "$BERTH_CKPT_DIR" | wc -l; basename "$BERTH_CKPT_DIR"')
                 for _ in range(6)]
        for ident in later:
            self.assertEqual(self.output(ident).split(), ["0", str(ident)])
        self.daemon.stop()
        self.assertEqual(self.kept(), [str(filled)])

    def test_a_folder_that_was_not_empty_is_not_handed_on(self):
        ident = self.daemon.sh("true")
        self.daemon.wait(ident)
        spares = [name for name in self.kept() if name.startswith(".")]
        for name in spares:
            with open(os.path.join(self.daemon.state, "ckpt", name, "x"), "w",
                      encoding="utf-8"):
                pass
        ident = self.daemon.sh('ls -A "$BERTH_CKPT_DIR" | wc -l')
        self.assertEqual(self.output(ident).split(), ["0"])


if __name__ == "__main__":
    unittest.main()
