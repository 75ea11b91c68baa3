"""Each policy has a page, and its tables are what the program says."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest

from support import BERTH, ROOT, Case

SECTIONS = ["Settings", "Source", "When run times are unknown", "Measured",
            "When not to use it"]


FLOW_SECTIONS = ["Settings", "Source", "Measured", "When not to use it"]


def pages(folder="policies"):
    return {os.path.basename(path)[:-3]: path
            for path in glob.glob(os.path.join(ROOT, "docs", folder, "*.md"))}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class PolicyPages(Case):
    def test_every_policy_has_a_page_and_every_page_a_policy(self):
        listed = json.loads(self.berth("policies", "--json").stdout)["policies"]
        self.assertEqual(sorted(pages()), sorted(policy["name"] for policy in listed))

    def test_every_page_has_the_same_sections(self):
        for name, path in sorted(pages().items()):
            with self.subTest(page=name):
                text = read(path)
                self.assertTrue(text.startswith(f"# {name}\n"))
                self.assertEqual(re.findall(r"(?m)^## (.*)$", text), SECTIONS)
                self.assertIn("<!-- settings -->", text)
                self.assertRegex(text, "<!-- measured( by class| in money| quality)? -->")

    def test_every_flow_policy_has_a_page_with_the_same_sections(self):
        listed = json.loads(self.berth("policies", "--json").stdout)["flows"]
        self.assertEqual(sorted(pages("flows")), sorted(flow["name"] for flow in listed))
        for name, path in sorted(pages("flows").items()):
            with self.subTest(page=name):
                text = read(path)
                self.assertTrue(text.startswith(f"# {name}\n"))
                self.assertEqual(re.findall(r"(?m)^## (.*)$", text), FLOW_SECTIONS)
                self.assertIn("<!-- settings -->", text)
                self.assertIn("<!-- measured -->", text)

    def test_the_tables_are_what_the_program_says(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "policy-pages"),
                               "--check"], env={**os.environ, "BERTH": BERTH}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=400)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr +
                         "run tools/policy-pages to write them again")


if __name__ == "__main__":
    unittest.main()
