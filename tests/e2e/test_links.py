"""Links between pages lead somewhere, and so do the names of files and functions."""
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


class Names(unittest.TestCase):
    """What ARCHITECTURE.md names is there: files as `solve/lp/lp.c`, functions as `commit()`."""

    @classmethod
    def setUpClass(cls):
        cls.page = read(os.path.join(ROOT, "ARCHITECTURE.md"))
        cls.files = [path for kind in ("c", "h", "sql") for path in
                     glob.glob(os.path.join(ROOT, "src", "**", "*." + kind), recursive=True)]
        cls.files += glob.glob(os.path.join(ROOT, "web", "src", "**", "*.ts"), recursive=True)

    def test_every_file_is_there(self):
        names = {os.path.basename(path) for path in self.files}
        named = set(re.findall(r"`([\w./-]+\.(?:c|h|ts|sql|yaml|build))`", self.page))
        self.assertGreater(len(named), 50)
        for name in sorted(named):
            with self.subTest(name=name):
                places = [os.path.join(ROOT, name), os.path.join(ROOT, "src", name)]
                self.assertTrue(any(map(os.path.exists, places)) or name in names)

    def test_every_function_is_there(self):
        code = []
        for path in self.files:
            with open(path, encoding="utf-8") as file:
                code.append(file.read())
        there = set()
        for text in code: # at the start of a line, or as an operation in a table
            there |= set(re.findall(r"(?m)^\w[\w *]*?\b(\w+)\(", text))
            there |= set(re.findall(r"\(\*(\w+)\)\(", text))
        named = set(re.findall(r"`(\w+)\(\)`", self.page))
        self.assertGreater(len(named), 50)
        self.assertEqual(sorted(named - there), [])

    def test_functions_are_in_the_files_they_are_said_to_be_in(self):
        pairs = re.findall(r"`(\w+)\(\)`\s+(?:in\s+|\()`([\w/-]+\.c)`", self.page)
        self.assertGreater(len(pairs), 15)
        for name, place in pairs:
            with self.subTest(name=name, place=place):
                with open(os.path.join(ROOT, "src", place), encoding="utf-8") as file:
                    self.assertRegex(file.read(), rf"(?m)^\w[\w *]*?\b{name}\(")

    def test_every_folder_of_the_source_is_told_of(self):
        folders = sorted(os.path.basename(path) for path in
                         glob.glob(os.path.join(ROOT, "src", "*")) if os.path.isdir(path))
        told = re.findall(r"(?m)^\| `(\w+)` \|", self.page)
        self.assertEqual(sorted(told), folders)


if __name__ == "__main__":
    unittest.main()
