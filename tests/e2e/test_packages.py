"""What 'make install' puts into place and what Debian's packages have are the same files.

Nothing is packaged here: debian/*.install is read the way debhelper does.  'make
check-packages' builds the packages and uses them.
"""
import fnmatch
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, ROOT

DEBIAN = os.path.join(ROOT, "debian")

# Where Debian wants something else than everybody: its zsh looks in a folder of its own, and
# its debhelper looks for units of the system in /lib.
MOVED = {
    "usr/share/zsh/site-functions/_berth": "usr/share/zsh/vendor-completions",
    "usr/lib/systemd/system/berthd.service": "lib/systemd/system",
    "usr/share/berth/pam.d/berth": "etc/pam.d",
    "usr/lib/systemd/system/berth-launch.service": "lib/systemd/system",
    "usr/lib/systemd/system/berthd-slurm.service": "lib/systemd/system",
    "usr/lib/systemd/system/berth-launch-slurm.service": "lib/systemd/system",
    "usr/lib/systemd/system/berth-slurm-watchdog.service": "lib/systemd/system",
    "usr/lib/systemd/system/berth-slurm-watchdog.timer": "lib/systemd/system",
    "usr/lib/systemd/system/berth-flowd.service": "lib/systemd/system",
}


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


def packages():
    return re.findall(r"^Package: (\S+)", read(DEBIAN, "control"), re.M)


def install_lines():
    """(package, pattern, folder it is moved to or None), one for each line."""
    found = []
    for package in packages():
        for line in read(DEBIAN, package + ".install").splitlines():
            words = line.split()
            found.append((package, words[0], words[1] if len(words) > 1 else None))
    return found


def takes(pattern, name):
    """As dh_install: '*' does not go over a '/', a folder is meant with all that is in it."""
    depth = pattern.count("/") + 1
    parts = name.split("/")
    return len(parts) >= depth and all(
        map(fnmatch.fnmatchcase, parts[:depth], pattern.split("/")))


def options():
    said = subprocess.run(["meson", "introspect", BUILD, "--buildoptions"], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    return {option["name"]: option["value"] for option in json.loads(said)}


def as_packaged(name, option):
    """The name of an installed file if the prefix were /usr and folders were Debian's.

    Without dpkg-dev Meson does not know the folders of Debian's libraries.
    """
    name = os.path.relpath(name, option["prefix"].strip("/"))
    library = option["libdir"] + "/"
    if re.match(re.escape(library) + r"(libberth|pkgconfig/)", name):
        name = "lib/some-linux-gnu/" + name[len(library):]
    name = re.sub(r"^lib/python3[^/]*/[^/]*-packages/", "lib/python3/dist-packages/", name)
    return "usr/" + name


def symbols(file, *flags, kinds="BDRT"):
    """The names that a program or library of this build defines for other files."""
    said = subprocess.run(["nm", "--defined-only", *flags, os.path.join(BUILD, file)], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    return set(re.findall(rf" [{kinds}] (\w+)$", said, re.M))


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.mkdtemp(prefix="berth e2e ")
        cls.addClassCleanup(shutil.rmtree, scratch, ignore_errors=True)
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
                              env={**os.environ, "DESTDIR": scratch}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        option = options()
        cls.installed = {
            as_packaged(os.path.relpath(os.path.join(folder, name), scratch), option)
            for folder, _, names in os.walk(scratch) for name in names}
        if not any("/man1/" in name for name in cls.installed):
            raise unittest.SkipTest("this build has no man pages: scdoc is not installed")

    def test_every_installed_file_is_in_exactly_one_package(self):
        for name in sorted(self.installed):
            homes = [package for package, pattern, _ in install_lines()
                     if takes(pattern, name)]
            self.assertEqual(len(homes), 1, f"{name} is in {homes or 'no package'}")

    def test_every_line_of_a_package_takes_something(self):
        for package, pattern, _ in install_lines():
            self.assertTrue(any(takes(pattern, name) for name in self.installed),
                            f"debian/{package}.install: {pattern} takes nothing")

    def test_files_stay_where_make_install_puts_them(self):
        moved = {pattern: folder for _, pattern, folder in install_lines() if folder}
        self.assertEqual(moved, MOVED)


class Programs(unittest.TestCase):
    def test_nothing_of_the_laboratory_is_in_berthd(self):
        lab = symbols("src/liblab.a")
        self.assertTrue({"bench_row", "recorded_shares_read"} <= lab, lab)
        self.assertTrue(lab <= symbols("berth"))
        self.assertEqual(lab & symbols("berthd"), set())

    def test_berthd_refuses_recorded_shares(self):
        scratch = tempfile.mkdtemp(prefix="b", dir="/tmp")
        self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
        done = subprocess.run(
            [os.path.join(BUILD, "berthd"), "--state", scratch, "--socket", scratch + "/s",
             "--fake-gpus", "v100:1", "--policy",
             "gavel-las,compat=released,allocations=" + scratch + "/none"],
            text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("allocations: only 'berth sim' replays", done.stderr)


class Control(unittest.TestCase):
    def test_the_changelog_has_the_version_of_the_build(self):
        built = re.search(r"^  version: '(.*)',", read(ROOT, "meson.build"), re.M).group(1)
        packaged = re.match(r"berth \((.*)\) ", read(DEBIAN, "changelog")).group(1)
        self.assertEqual(packaged, built)

    def test_the_symbols_file_has_what_the_library_exports(self):
        listed = re.findall(r"^ (\S+)@Base ", read(DEBIAN, "libberth-client1.symbols"), re.M)
        exported = symbols("src/client/libberth-client.so", "-D", kinds="T")
        self.assertEqual(sorted(listed), sorted(exported - {"mangle_path"})) # gcov's own

    def test_what_the_build_needs_is_what_the_setup_installs(self):
        said = read(DEBIAN, "control").split("Build-Depends:")[1].split("Standards-Version")[0]
        needed = set(re.findall(r"^ ([\w.+-]+)", said, re.M))
        # By the names of virtual packages, which debhelper and dh-python provide.
        needed = {{"debhelper-compat": "debhelper", "dh-sequence-python3": "dh-python"}
                  .get(name, name) for name in needed}
        setup = read(ROOT, "tools", "setup")
        installed = set()
        for table in ("build_needs", "deb_needs"):
            rows = re.search(rf"^{table}='\n(.*?)'$", setup, re.M | re.S).group(1)
            installed |= {row.split()[0] for row in rows.splitlines()}
        self.assertEqual(needed - installed, set())


if __name__ == "__main__":
    unittest.main()
