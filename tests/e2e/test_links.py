"""Links between pages lead somewhere."""
import glob
import os
import re
import unittest

from support import ROOT

PAGES = sorted(glob.glob(os.path.join(ROOT, "*.md")) +
               glob.glob(os.path.join(ROOT, "examples", "*.md")) +
               glob.glob(os.path.join(ROOT, "docs", "*", "*.md")))


def read(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"(?ms)^```.*?^```", "", file.read())


def anchors_of(path):
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"(?m)^#+ (.*)$", read(path))}


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)]+)\)", read(page)):
                if re.match(r"\w+:", link):
                    continue
                with self.subTest(page=os.path.relpath(page, ROOT), link=link):
                    path, _, anchor = link.partition("#")
                    target = os.path.join(os.path.dirname(page), path) if path else page
                    self.assertTrue(os.path.exists(target))
                    if anchor:
                        self.assertIn(anchor, anchors_of(target))


if __name__ == "__main__":
    unittest.main()
