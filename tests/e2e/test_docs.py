"""What the docs show works, and what the programs offer is in the docs.

Every ```sh block in README.md, CONTRIBUTING.md and docs/guide/ is run, a page at a time,
from the top, in one scratch folder with build/berth on the PATH and examples/ beside it.
A block of such lines as '$ berth …' runs those lines only; the rest is their output.
What must not be run (it installs, builds or takes long) is a ```console block.  The
examples in the man pages are run too.
"""
import glob
import os
import re
import subprocess
import unittest

from support import BERTH, BUILD, ROOT, Case

PAGES = sorted(p for p in [os.path.join(ROOT, n) for n in ("README.md", "CONTRIBUTING.md")] +
               glob.glob(os.path.join(ROOT, "docs", "guide", "*.md")) if os.path.exists(p))
MAN = sorted(glob.glob(os.path.join(ROOT, "docs", "man", "berth*.1.scd")))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blocks_of(page):
    """(line, shell text, lines that it prints) of every block to run.

    What is shown of a table stands in a console block right behind, and is compared where no
    job is drawn: what is drawn may be another on another machine.
    """
    text = read(page)
    for match in re.finditer(r"(?ms)^```sh\n(.*?)^```\n(?:\n```console\n(.*?)^```)?", text):
        body, table = match.group(1), match.group(2) or ""
        if re.search(r"(?m)^\$ ", body):
            body = "\n".join(re.findall(r"(?m)^\$ (.*(?:\\\n.*)*)", body))
        shown = [] if "synthetic" in body else table.splitlines()
        yield text.count("\n", 0, match.start()) + 2, body, shown


def examples_of(page):
    text = read(page)
    at = text.find("# EXAMPLES")
    if at >= 0:
        for match in re.finditer(r"(?ms)^```\n(.*?)^```", text[at:]):
            yield text.count("\n", 0, at + match.start()) + 2, match.group(1).replace("\\\\", "\\"), []


def flags_in_help(text):
    return set(re.findall(r"(?m)^  (?:-\w, |    )(--[\w-]+)", text))


def flags_in_page(text):
    return set(re.findall(r"(?m)^\*(?:-\w\*, \*)?(--[\w-]+)\*", text))


class Runs(Case):
    """Each block of a page, in order, in one folder."""

    def play(self, page, blocks):
        os.symlink(os.path.join(ROOT, "examples"), self.path("examples"))
        env = {**os.environ, "PATH": os.path.dirname(BERTH) + os.pathsep + os.environ["PATH"],
               "NO_COLOR": "1", "XDG_STATE_HOME": self.path("state"),
               "XDG_RUNTIME_DIR": self.path("run")}
        env.pop("BERTH_ADDR", None)
        os.mkdir(self.path("run"), 0o700)
        self.addCleanup(subprocess.run, [BERTH, "down", "--kill"], env=env,
                        stdout=subprocess.DEVNULL, timeout=60)
        for line, body, shown in blocks:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=self.scratch,
                                  env=env, stdin=subprocess.DEVNULL, text=True, timeout=240,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                self.fail(f"{os.path.relpath(page, ROOT)}:{line}: status {done.returncode}\n"
                          f"{body}\n{done.stdout}")
            said = [comparable(row) for row in done.stdout.splitlines()]
            for row in shown:
                if row != "…" and not row.startswith("$ "):
                    self.assertIn(comparable(row), said, f"{os.path.relpath(page, ROOT)}:{line}")


def comparable(row):
    """Without how it is spaced, and how long something took at its end."""
    return re.sub(r"\d+ ms$", "… ms", " ".join(row.split()))


def add_page(page, blocks):
    name = re.sub(r"\W+", "_", os.path.relpath(page, ROOT).rsplit(".", 1)[0]).lower()
    setattr(Runs, f"test_{name}", lambda self: self.play(page, blocks))


for shown in PAGES:
    found = list(blocks_of(shown))
    if found:
        add_page(shown, found)
for shown in MAN:
    found = list(examples_of(shown))
    if found:
        add_page(shown, found)


class ManPages(Case):
    def commands(self):
        return re.findall(r"(?m)^  ([a-z][\w-]*) +\S", self.berth("--help").stdout)

    def page(self, command):
        return os.path.join(ROOT, "docs", "man", f"berth-{command}.1.scd")

    def test_the_commands_of_help_are_those_with_a_page(self):
        pages = [re.fullmatch(r"berth-(.*)\.1\.scd", os.path.basename(p)) for p in MAN]
        self.assertEqual(sorted(self.commands()), sorted(p.group(1) for p in pages if p))

    def test_the_overview_names_every_command(self):
        text = read(os.path.join(ROOT, "docs", "man", "berth.1.scd"))
        named = re.findall(r"(?m)^\*berth ([\w-]+)\*$", text)
        self.assertEqual(sorted(named), sorted(self.commands()))

    def test_every_flag_is_in_the_page_and_no_other(self):
        for command in self.commands():
            if os.path.exists(self.page(command)):
                with self.subTest(command=command):
                    self.assertEqual(flags_in_page(read(self.page(command))),
                                     flags_in_help(self.berth(command, "--help").stdout))

    def test_so_are_those_of_berth_slurm(self):
        program = os.path.join(os.path.dirname(BERTH), "berth-slurm")
        if not os.access(program, os.X_OK):
            self.skipTest("berth-slurm is not built")
        said = subprocess.run([program, "--help"], text=True, capture_output=True).stdout
        page = read(os.path.join(ROOT, "docs", "man", "berth-slurm.8.scd"))
        self.assertEqual(flags_in_page(page), set(re.findall(r"--[a-z][a-z-]*", said)))

    def test_so_are_those_of_berth_flowd(self):
        program = os.path.join(os.path.dirname(BERTH), "berth-flowd")
        if not os.access(program, os.X_OK):
            self.skipTest("berth-flowd is not built")
        said = subprocess.run([program, "--help"], text=True, capture_output=True).stdout
        page = read(os.path.join(ROOT, "docs", "man", "berth-flowd.8.scd"))
        self.assertEqual(flags_in_page(page), flags_in_help(said))

    def test_a_backslash_in_an_example_is_doubled(self):
        for page in glob.glob(os.path.join(ROOT, "docs", "man", "*.scd")):
            for block in re.findall(r"(?ms)^```\n(.*?)^```", read(page)):
                alone = re.search(r"(?m)^.*(?<!\\)(?:\\\\)*\\(?!\\).*$", block)
                self.assertIsNone(alone, f"{os.path.basename(page)}: scdoc swallows it: {alone}")

    def test_letters_are_in_the_page_too(self):
        for command in self.commands():
            said = re.findall(r"(?m)^  (-\w), (--[\w-]+)", self.berth(command, "--help").stdout)
            page = read(self.page(command))
            for letter, flag in said:
                self.assertIn(f"*{letter}*, *{flag}*", page, command)

    def test_every_page_is_installed(self):
        listed = read(os.path.join(ROOT, "docs", "man", "meson.build"))
        for page in MAN:
            self.assertIn(f"'{os.path.basename(page)[:-4]}'", listed)


class Installed(Case):
    """What make install puts where."""

    def setUp(self):
        super().setUp()
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
                              env={**os.environ, "DESTDIR": self.scratch}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.found = {os.path.relpath(os.path.join(folder, name), self.scratch)
                      for folder, _, names in os.walk(self.scratch) for name in names}

    def assert_found(self, ending):
        matching = [f for f in self.found if f.endswith(ending)]
        self.assertTrue(matching, f"{ending} is not among {sorted(self.found)}")
        return self.path(matching[0])

    def test_everything_is_in_its_usual_place(self):
        for ending in ("bin/berth", "share/bash-completion/completions/berth.bash",
                       "share/zsh/site-functions/_berth",
                       "share/fish/vendor_completions.d/berth.fish", "pkgconfig/berth-client.pc"):
            self.assert_found(ending)
        if any("/man1/" in name for name in self.found):
            self.assert_found("share/man/man1/berth.1")
            self.assert_found("share/man/man1/berth-sim.1")

    def test_bash_completes_commands_flags_and_policies(self):
        script = self.assert_found("berth.bash")

        def completed(line):
            done = subprocess.run(
                ["bash", "-c", '. "$1"; compopt() { :; }; COMP_WORDS=($2); '
                 '[ "${2%" "}" = "$2" ] || COMP_WORDS+=(""); '
                 'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _berth; echo "${COMPREPLY[*]}"',
                 "bash", script, line], capture_output=True, text=True, timeout=60,
                env={**os.environ,
                     "PATH": os.path.dirname(BERTH) + os.pathsep + os.environ["PATH"]})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.split()

        self.assertEqual(completed("berth co"), ["compare"])
        self.assertEqual(completed("berth sim --clu"), ["--cluster"])
        self.assertEqual(completed("berth sub"), ["submit"])
        self.assertEqual(completed("berth submit --gpus-p"), ["--gpus-per-node"])
        self.assertIn("srtf", completed("berth sim --policy s"))
        self.assertIn("fifo", completed("berth policies f"))


if __name__ == "__main__":
    unittest.main()
