"""The policy that CONTRIBUTING.md adds: its code, taken from the page, builds and runs.

The steps are done as the page says them, in a copy of the tree and of what was built of it,
so that only what they change is built.
"""
import json
import os
import re
import shutil
import subprocess
import unittest

from support import BUILD, ROOT, Case

PAGE = os.path.join(ROOT, "CONTRIBUTING.md")
NEEDED = ("contrib", "data", "docs", "examples", "include", "meson.build", "meson_options.txt", "python",
          "src", "tests", "tools", "web")


def steps():
    """The text of each code block of the section, in order."""
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().split("\n## Add a policy\n")[1].split("\n## ")[0]
    return re.findall(r"(?ms)^```(?:c|meson)\n(.*?)^```", section)


class AddPolicy(Case):
    def edit(self, name, before, text):
        """Put 'text' in front of the first line that begins with 'before'."""
        path = self.path(name)
        with open(path, encoding="utf-8") as file:
            old = file.read()
        at = re.search(before, old, re.M)
        self.assertTrue(at, f"{name} has no place for the new policy")
        with open(path, "w", encoding="utf-8") as file:
            file.write(old[:at.start()] + text + old[at.start():])

    def run_tool(self, *words):
        done = subprocess.run(words, cwd=self.scratch, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout)

    def build(self):
        blocks = steps()
        self.assertEqual(len(blocks), 3, "the file, the registry, the build")
        code, (declared, listed), built = blocks[0], blocks[1].splitlines(True), blocks[2]
        for name in NEEDED:
            source, target = os.path.join(ROOT, name), self.path(name)
            if os.path.isdir(source):
                shutil.copytree(source, target,
                                ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
            else:
                shutil.copy(source, target)
        os.makedirs(self.path("src/policy"), exist_ok=True)
        self.write("src/policy/" + re.search(r"policy/(\w+\.c)", built).group(1), code)
        self.edit("src/policy/registry.c", r"^const struct policy \*const policy_list", declared)
        self.edit("src/policy/registry.c", r"(?<=[ ,])NULL,\n\};|^ *NULL,\n\};", "\n" + listed)
        self.edit("src/meson.build", r"^.*'policy/fifo\.c'", built)
        shutil.copytree(BUILD, self.path("build"), symlinks=True,
                        ignore=shutil.ignore_patterns("tests", "meson-logs"))
        self.run_tool("meson", "setup", "--reconfigure", "build", "-Dweb=disabled",
                      "-Dtests=disabled", "-Dman=disabled", "-Dcompletions=false")
        self.run_tool("ninja", "-C", "build", "berth")
        return self.path("build/berth")

    def test_the_policy_of_the_page_builds_and_runs(self):
        berth = self.build()
        listed = subprocess.run([berth, "policies"], capture_output=True, text=True, timeout=60)
        self.assertRegex(listed.stdout, r"(?m)^largest-first +the largest gang first")
        done = subprocess.run(
            [berth, "sim", "--cluster", "4xv100:8", "--workload", "synthetic:jobs=500,load=1.2",
             "--policy", "largest-first", "--json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["jobs"]["completed"], 500)


if __name__ == "__main__":
    unittest.main()
