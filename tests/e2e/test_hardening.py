"""What the compiler and the linker add to every program: readelf shows it."""
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from support import BUILD


def output_of(*argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True).stdout


@functools.cache
def introspect(what):
    return json.loads(output_of("meson", "introspect", what, BUILD))


def option(name):
    return next(o["value"] for o in introspect("--buildoptions") if o["name"] == name)


def programs():
    """Every program that is installed and not a script."""
    for target in introspect("--targets"):
        if target["type"] == "executable" and target["installed"]:
            yield target["filename"][0]


def own_objects():
    """What was compiled from src/, for whichever program."""
    return glob.glob(os.path.join(BUILD, "src", "**", "*.o"), recursive=True) + \
        [name for path in programs() for name in glob.glob(path + ".p/*.o")]


class Hardening(unittest.TestCase):
    def setUp(self):
        for tool in ("readelf", "meson"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")
        if option("b_sanitize") != "none":
            self.skipTest("the sanitizers' build")

    def of_each(self, *flags):
        """(name, what readelf prints) of every program."""
        found = [(os.path.basename(path), output_of("readelf", *flags, path))
                 for path in programs()]
        self.assertGreaterEqual(len(found), 5)
        return found

    def test_programs_are_position_independent(self):
        for name, text in self.of_each("-hdW"):
            self.assertRegex(text, r"Type: +DYN", name)
            self.assertRegex(text, r"\(FLAGS_1\).*\bPIE\b", name)

    def test_a_supervisor_is_linked_statically(self):
        path = os.path.join(BUILD, "berth-run")
        self.assertNotIn("INTERP", output_of("readelf", "-lW", path))
        self.assertNotIn("NEEDED", output_of("readelf", "-dW", path))

    def test_addresses_are_resolved_at_the_start_and_sealed(self):
        for name, text in self.of_each("-dlW"):
            self.assertRegex(text, r"\(FLAGS_1\).*\bNOW\b", name)
            self.assertIn("GNU_RELRO", text, name)
            self.assertNotIn("TEXTREL", text, name)

    def test_no_stack_is_executable(self):
        for name, text in self.of_each("-lW"):
            stack = re.search(r"GNU_STACK(?: +0x\w+){5} +(\w+)", text)
            self.assertEqual(stack.group(1), "RW", name)

    def test_no_memory_is_writable_and_executable(self):
        for name, text in self.of_each("-lW"):
            self.assertNotRegex(text, r"LOAD.* RWE ", name)

    def test_stacks_are_protected(self):
        for name, text in self.of_each("-sW"):
            self.assertRegex(text, r"\b__stack_chk_fail\b", name)

    def test_our_files_call_the_checked_functions(self):
        if option("optimization") in ("plain", "0"):
            self.skipTest("fortified functions need optimisation")
        calls = {}
        for name in own_objects():
            for symbol in re.findall(r"UND (\w+_chk)\b", output_of("readelf", "-sW", name)):
                calls.setdefault(symbol, set()).add(name)
        for symbol in ("__snprintf_chk", "__memcpy_chk", "__fprintf_chk", "__vsnprintf_chk"):
            self.assertIn(symbol, calls)
        supervisor = os.path.join(BUILD, "berth-run.p")
        self.assertTrue(any(name.startswith(supervisor) for name in calls["__snprintf_chk"]))

    def has_cet(self, path):
        return "IBT, SHSTK" in output_of("readelf", "-nW", path)

    def test_jumps_are_marked(self):
        if os.uname().machine != "x86_64":
            self.skipTest("IBT and SHSTK are for x86")
        objects = own_objects()
        self.assertGreater(len(objects), 300)
        self.assertEqual([name for name in objects if not self.has_cet(name)], [])

    def test_programs_say_that_their_jumps_are_marked(self):
        start = output_of("cc", "-print-file-name=Scrt1.o").strip() if shutil.which("cc") else ""
        if not os.path.exists(start) or not self.has_cet(start):
            self.skipTest("the C library of this system has no CET, so no program has: "
                          "only our own files are")
        for name, _ in self.of_each("-h"):
            self.assertTrue(self.has_cet(os.path.join(BUILD, name)), name)
