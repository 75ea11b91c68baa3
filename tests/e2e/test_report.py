"""The report page in a real browser: drawn, complete, and deaf to markup in its data.

Started by the build with REPORT_WRITER, the program that writes a page from JSON.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

WRITER = os.environ.get("REPORT_WRITER")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --disable-dev-shm-usage --host-resolver-rules=MAP\t*\t~NOTFOUND"
).split(" ")
EVIL = '<script>document.title="owned"</script><img src=x onerror=document.title="owned">'
HUES = {"fifo": (0x00, 0x72, 0xB2), EVIL: (0xD5, 0x5E, 0x00)}


def run(policy, factor):
    steps = range(1, 101)
    curve = {"x": [factor * 30 * n for n in steps], "y": [n / 100 for n in steps]}
    slow = {"x": [1 + factor * n / 10 for n in steps], "y": [n / 100 for n in steps]}
    figures = [
        ("jct_s.mean", "mean completion time", "s", "less", 1500.0 * factor),
        ("slowdown.te.p95", "95th percentile of slowdown, trial", "x", "less", 9.5 * factor),
        ("gpu_utilization", "GPU utilisation", "fraction", "more", 0.871),
        ("preemptions", "preemptions", "count", "none", 12 * factor),
    ]
    return {
        "policy": policy,
        "brief": "made up",
        "figures": [
            {"id": i, "label": l, "unit": u, "better": b, "mean": m, "low": 0.9 * m,
             "high": 1.1 * m, "n": 3}
            for i, l, u, b, m in figures
        ],
        "cdf": {
            "jct_s": {"all": curve, "te": curve, "be": curve},
            "slowdown": {"all": slow, "te": slow},
        },
        "series": {
            "t_s": [60 * n for n in steps],
            "gpus_held": [n % 9 for n in steps],
            "jobs_waiting": [factor * n for n in steps],
            "jobs_running": [n % 5 for n in steps],
        },
        "gantt": {
            "from_s": 0, "to_s": 6000, "complete": False,
            "gpus": [f"n{n // 4}/{n % 4}" for n in range(8)],
            "spans": [[n % 8, 100 * n, 100 * n + 90, n, n % 2, n % 4] for n in range(60)],
        },
    }


def report(runs):
    return {
        "title": f"fifo, {EVIL} on synthetic", "version": "0.1.0",
        "cluster": {"name": "2xv100:4", "nodes": 2, "gpus": 8,
                    "types": [{"name": "v100", "gpus": 8}]},
        "workload": {"name": "synthetic:jobs=60", "jobs": 60},
        "seeds": [1, 2, 3], "command": "berth compare --policy fifo", "runs": runs,
    }


def pixels(path):
    """The picture's pixels as (r, g, b), from a PNG as browsers write it."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    size = 4 if colour == 6 else 3
    stride, raw = width * size, zlib.decompress(packed)
    before = bytearray(stride)
    for row in range(height):
        start = row * (stride + 1)
        line = unfilter(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), before, size)
        yield from zip(line[0::size], line[1::size], line[2::size])
        before = line


def unfilter(kind, line, above, size):
    for i in range(len(line)) if kind else ():
        left = line[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        if kind == 4:
            guess = left + above[i] - corner
            _, _, add = min((abs(guess - left), 0, left), (abs(guess - above[i]), 1, above[i]),
                            (abs(guess - corner), 2, corner))
        else:
            add = (0, left, above[i], (left + above[i]) // 2)[kind]
        line[i] = (line[i] + add) & 255
    return line


@unittest.skipUnless(WRITER, "REPORT_WRITER is not set: run it through the build")
class Report(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="berth-report-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.path = os.path.join(self.dir, "report.html")

    def write(self, data):
        done = subprocess.run([WRITER, self.path], input=json.dumps(data), text=True,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode == 77:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)

    def browse(self, *flags):
        if not CHROMIUM:
            self.skipTest("Chromium is not installed")
        flags = [flag.replace("\t", " ") for flag in FLAGS] + list(flags)
        profile = os.path.join(self.dir, "profile")
        done = subprocess.run([CHROMIUM, *flags, f"--user-data-dir={profile}", f"file://{self.path}"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=60, check=False)
        return done.stdout

    def drawn(self):
        """What the script made of the data: the page's main element."""
        dom = self.browse("--dump-dom")
        return dom[dom.index("<main") : dom.index("</main>")]

    def test_the_page_names_no_other_place(self):
        self.write(report([run("fifo", 1)]))
        with open(self.path, encoding="utf-8") as file:
            page = file.read()
        for word in ("http://", "https://", "//cdn", "@import", "url(", "@DATA@"):
            self.assertNotIn(word, page)
        self.assertIn("default-src 'none'", page)

    def test_every_part_is_drawn_and_markup_stays_text(self):
        self.write(report([run("fifo", 2), run(EVIL, 1)]))
        dom = self.drawn()
        self.assertEqual(dom.count("<canvas"), 5)  # two CDFs, two over time, one Gantt
        self.assertEqual(dom.count("data-figure="), 4)
        self.assertIn("mean completion time", dom)
        self.assertIn("87.1 %", dom)
        self.assertIn("Jobs complete soonest under &lt;script&gt;", dom)
        self.assertNotIn("<img", dom)
        self.assertNotIn("<script", dom)
        self.assertNotIn("<title>owned", self.browse("--dump-dom"))

    def test_lines_have_their_colours(self):
        self.write(report([run("fifo", 2), run(EVIL, 1)]))
        picture = os.path.join(self.dir, "page.png")
        self.browse(f"--screenshot={picture}", "--window-size=900,3000")
        counts = dict.fromkeys(HUES.values(), 0)
        for pixel in pixels(picture):
            if pixel in counts:
                counts[pixel] += 1
        for name, hue in HUES.items():
            self.assertGreater(counts[hue], 2000, name)

    def test_one_policy_with_figures_only(self):
        one = {key: run("fifo", 1)[key] for key in ("policy", "brief", "figures")}
        self.write(report([one]))
        dom = self.drawn()
        self.assertEqual(dom.count("<canvas"), 0)
        self.assertEqual(dom.count("data-figure="), 4)

    def test_data_of_another_shape_get_a_sentence(self):
        self.write({"runs": []})
        self.assertIn("This report cannot be shown: there is no run in it.", self.drawn())


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    if done.wasSuccessful() and len(done.skipped) >= done.testsRun:
        print(done.skipped[0][1] if done.skipped else "no test")
        sys.exit(77)  # nothing could be tested here
    sys.exit(not done.wasSuccessful())
