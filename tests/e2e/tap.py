"""Run a file of unittest and report every case as a line of TAP: tap.py FILE."""
import os
import sys
import unittest


class TapResult(unittest.TestResult):
    count = 0

    def report(self, test, verdict, more=""):
        TapResult.count += 1
        name = test.id().split(".", 1)[-1].replace("#", "\\#")
        print(f"{verdict} {TapResult.count} - {name}{more}", flush=True)

    def addSuccess(self, test):
        self.report(test, "ok")

    def addSkip(self, test, reason):
        self.report(test, "ok", f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.report(test, "not ok")
        print(self.failures[-1][1], flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.report(test, "not ok")
        print(self.errors[-1][1], flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.report(subtest, "not ok")
            print((self.failures + self.errors)[-1][1], flush=True)

    def addExpectedFailure(self, test, err):
        self.report(test, "ok")

    def addUnexpectedSuccess(self, test):
        self.report(test, "not ok", " (unexpected success)")


def main(path):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.dont_write_bytecode = True
    name = os.path.splitext(os.path.basename(path))[0]
    result = TapResult()
    unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    print(f"1..{TapResult.count}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
