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


def with_ledger(run, preemptions):
    """The same with a ledger of two stretches, 100 GPU-hours lost and 50 h of waiting spared."""
    figures = [
        ("preemptions", "count", preemptions), ("predicted_cost_gpu_s", "gpu_s", 288000),
        ("actual_cost_gpu_s", "gpu_s", 360000), ("wait_saved_s", "s", 180000),
    ]
    return {
        **run,
        "figures": run["figures"] + [
            {"id": f"ledger.{i}", "label": i, "unit": u, "better": "none", "mean": m, "low": m,
             "high": m, "n": 3} for i, u, m in figures
        ],
        "ledger": {"t_s": [0, 3000], "preemptions": [preemptions, 0],
                   "predicted_gpu_s": [144000, 144000], "actual_gpu_s": [180000, 180000]},
    }


def with_quality(run):
    """The same with jobs that learn."""
    levels = (25, 50, 80, 90, 95, 99)
    return {
        **run,
        "figures": run["figures"] + [
            {"id": f"quality.time_to.{level}", "label": f"time to {level} % less loss", "unit": "s",
             "better": "less", "mean": 10 * level, "low": 8 * level, "high": 12 * level, "n": 3}
            for level in levels
        ],
        "quality": {"t_s": [60 * n for n in range(100)], "loss": [1 / (n + 1) for n in range(100)]},
    }


def row(name, unit, measured, verdict, **more):
    return {"id": name, "what": f"the {name}", "unit": unit, "measured": measured,
            "spread": [measured - 0.01, measured + 0.01], "seeds": 8, "verdict": verdict, **more}


def study(rows, charts=()):
    return {
        "kind": "reproduce", "title": "Done again", "paper": f"Somebody {EVIL}",
        "version": "0.1.0", "command": "berth reproduce fitgpp", "quick": True,
        "seeds": [1, 2, 3, 4, 5, 6, 7, 8],
        "setup": [{"what": "84 nodes", "origin": "published"},
                  {"what": f"arrivals {EVIL}", "origin": "reconstructed"},
                  {"what": "eight seeds", "origin": "ours"}],
        "rows": rows, "charts": list(charts), "notes": [f"Mind {EVIL}"],
    }


ROWS = [
    row("te_p95_change", "change", -0.97, "reproduced", published=-0.966, fidelity="reconstructed",
        setting=f"fitgpp {EVIL}", price={"row": "be", "what": f"others {EVIL}", "unit": "change",
                                         "measured": 0.284}),
    row("be_p50_change", "change", 0.221, "inconclusive", published=0.18, note=f"flat {EVIL}",
        fidelity="tuned"),
    row("wait_ratio", "ratio", 1.21, "differs", published=1.64, fidelity="released-code",
        compared_seed=0),
    row("preempted_share", "share", 0.061, "no figure published"),
]
CHARTS = [
    {"title": f"Slowdown {EVIL}", "kind": "bars", "y_label": "slowdown", "log_y": True,
     "groups": ["trial p50", "trial p95", EVIL],
     "series": [{"name": "fifo", "y": [10, 100, 5], "low": [9, 90, 4], "high": [11, 110, 6]},
                {"name": EVIL, "y": [1, 2, None]},
                {"name": EVIL, "y": [1.1, None, 3], "published": True}]},
    {"title": "Over the cost", "kind": "lines", "x_label": "cost factor", "y_label": "hours",
     "series": [{"name": "fifo", "x": [0, 1, 3], "y": [5, 5, 5], "low": [4, 4, 4], "high": [6, 6, 6]},
                {"name": EVIL, "x": [0, 1, 3], "y": [3, 4, 4.5]},
                {"name": "fifo", "x": [0, 3], "y": [4.9, 5.2], "published": True}]},
]


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
                              timeout=240, check=False)
        return done.stdout

    def drawn(self):
        """What the script made of the data: the page's main element."""
        dom = self.browse("--dump-dom", "--virtual-time-budget=5000")
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

    def assert_hues(self, height):
        """Both policies have left their colour on a picture of the page."""
        picture = os.path.join(self.dir, "page.png")
        self.browse(f"--screenshot={picture}", f"--window-size=900,{height}")
        counts = dict.fromkeys(HUES.values(), 0)
        for pixel in pixels(picture):
            if pixel in counts:
                counts[pixel] += 1
        for name, hue in HUES.items():
            self.assertGreater(counts[hue], 2000, name)

    def test_lines_have_their_colours(self):
        self.write(report([run("fifo", 2), run(EVIL, 1)]))
        self.assert_hues(3000)

    def test_one_policy_with_figures_only(self):
        one = {key: run("fifo", 1)[key] for key in ("policy", "brief", "figures")}
        self.write(report([one]))
        dom = self.drawn()
        self.assertEqual(dom.count("<canvas"), 0)
        self.assertEqual(dom.count("data-figure="), 4)

    def test_preemptions_and_their_price(self):
        self.write(report([run("fifo", 2), with_ledger(run(EVIL, 1), 12)]))
        dom = self.drawn()
        self.assertEqual(dom.count("<canvas"), 6)
        part = dom[dom.index("Preemptions and their price") : dom.index("Who held which GPU")]
        self.assertEqual(part.count("data-ledger="), 1)
        self.assertRegex(part, "Cost, predicted <small>GPU h</small></th><td>80.0</td>")
        self.assertRegex(part, "Cost, measured <small>GPU h</small></th><td>100</td>")
        self.assertRegex(part, "Spared per GPU hour lost <small>min</small></th><td>30.0</td>")
        self.assertIn("No preemption under fifo.", part)
        self.assertNotIn("<img", part)

    def test_no_price_where_nobody_is_preempted(self):
        self.write(report([with_ledger(run("fifo", 2), 0)]))
        self.assertNotIn("their price", self.drawn())

    def test_how_soon_models_are_good(self):
        self.write(report([with_quality(run("fifo", 2)), with_quality(run(EVIL, 1))]))
        dom = self.drawn()
        self.assertEqual(dom.count("<canvas"), 7)
        part = dom[dom.index("How soon models are good") : dom.index("Over time")]
        self.assertEqual(part.count("<canvas"), 2)
        self.assertIn("times the mean of 3 seeds", part)
        self.assertIn("time to 90 % less loss", dom[dom.index("At a glance") : dom.index("How soon")])
        self.assertNotIn("<img", part)

    def test_losses_that_cannot_be_drawn_do_no_harm(self):
        odd = with_quality(run("fifo", 1))
        odd["quality"] = {"t_s": [0, 60], "loss": [None]}
        zero = with_quality(run("las", 1))
        zero["quality"] = {"t_s": [0, 60], "loss": [0, -1]}
        zero["figures"] = run("las", 1)["figures"]
        self.write(report([odd, zero, run("srtf", 1)]))
        self.assertIn("How soon models are good", self.drawn())
        self.write(report([odd, run("srtf", 1)]))
        self.assertNotIn("How soon models are good", self.drawn())

    def test_a_reproduced_study_is_drawn_and_markup_stays_text(self):
        self.write(study(ROWS, CHARTS))
        dom = self.drawn()
        self.assertIn("Of 3 published figures: 1 reproduced, 1 inconclusive, 1 differs.", dom)
        self.assertEqual(dom.count("data-row="), 4)
        self.assertEqual(dom.count("<canvas"), 2)
        for word in ("−96.6 %", "−97.0 %", "−98.0 … −96.0 %", "+18.0 %", "1.64×", "6.10 %",
                     "berth reproduce fitgpp", "1–8", "quick"):
            self.assertIn(word, dom)
        for word in ("price: +28.4 %, others", "setting: fitgpp", "tuned to match", "released code",
                     "with seed 0, as published"):
            self.assertIn(word, dom)
        for mark, verdict in (("✓", "reproduced"), ("≈", "inconclusive"), ("✗", "differs"),
                              ("○", "no figure published")):
            self.assertRegex(dom, f">{mark}</span><span>{verdict}</span>")
        places = [dom.index(f">{head}<") for head in ("Published and measured", "84 nodes",
                                                      "Reconstructed", "Ours", "Charts", "Notes")]
        self.assertEqual(places, sorted(places))
        self.assertNotIn("<img", dom)
        self.assertNotIn("<script", dom)
        self.assertNotIn("<title>owned", self.browse("--dump-dom"))

    def test_bars_and_lines_of_a_study_have_their_colours(self):
        self.write(study(ROWS, CHARTS))
        self.assert_hues(2400)

    def test_two_hundred_rows_can_be_sifted(self):
        self.write(study([{**ROWS[n % 4], "id": f"row{n}"} for n in range(200)]))
        dom = self.drawn()
        self.assertEqual(dom.count("data-row="), 200)
        self.assertIn("differs (50)", dom)
        self.assertEqual(dom.count("<canvas"), 0)

    def test_a_kind_of_the_future_gets_a_sentence(self):
        self.write({"kind": "poem"})
        self.assertIn("This report cannot be shown: this page knows nothing of its kind.", self.drawn())

    def test_data_of_another_shape_get_a_sentence(self):
        self.write({"runs": []})
        self.assertIn("This report cannot be shown: there is no run in it.", self.drawn())


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    if done.wasSuccessful() and len(done.skipped) >= done.testsRun:
        print(done.skipped[0][1] if done.skipped else "no test")
        sys.exit(77)  # nothing could be tested here
    sys.exit(not done.wasSuccessful())
