"""plot - small SVG charts for Markdown pages, readable on a light page and on a dark one.

Charts know nothing of Berth.  Everything is drawn from its arguments alone, so the same
data give the same bytes.
"""
import math
from xml.sax.saxutils import escape

STYLE = """<style>
text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#3b4252}
.title{font-size:14px;font-weight:600}.small{font-size:11px}.end{text-anchor:end}
.mid{text-anchor:middle}.grid{stroke:#8892a0;stroke-opacity:.25;stroke-width:1}
.axis{stroke:#8892a0;stroke-width:1}.band{fill:#8892a0;fill-opacity:.13}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.said{stroke-dasharray:5 4;stroke-width:1.6}
.spread{stroke-width:5;stroke-opacity:.3;stroke-linecap:round}.area{stroke:none;fill-opacity:.14}
.published{fill:none;stroke:#c2410c;stroke-width:2}
.s0{stroke:#2563eb}.s1{stroke:#d97706}.s2{stroke:#059669}.s3{stroke:#c026d3}.s4{stroke:#64748b}
.s5{stroke:#dc2626}.s6{stroke:#0891b2}.s7{stroke:#7c3aed}.s8{stroke:#65a30d}.s9{stroke:#b45309}
.s10{stroke:#db2777}.s11{stroke:#1e3a8a}
.f0{fill:#2563eb}.f1{fill:#d97706}.f2{fill:#059669}.f3{fill:#c026d3}.f4{fill:#64748b}
.f5{fill:#dc2626}.f6{fill:#0891b2}.f7{fill:#7c3aed}.f8{fill:#65a30d}.f9{fill:#b45309}
.f10{fill:#db2777}.f11{fill:#1e3a8a}
@media (prefers-color-scheme:dark){text{fill:#d5dae3}.published{stroke:#fb923c}
.s0{stroke:#60a5fa}.s1{stroke:#fbbf24}.s2{stroke:#34d399}.s3{stroke:#e879f9}.s4{stroke:#94a3b8}
.s5{stroke:#f87171}.s6{stroke:#22d3ee}.s7{stroke:#a78bfa}.s8{stroke:#a3e635}.s9{stroke:#f59e0b}
.s10{stroke:#f472b6}.s11{stroke:#c7d2fe}
.f0{fill:#60a5fa}.f1{fill:#fbbf24}.f2{fill:#34d399}.f3{fill:#e879f9}.f4{fill:#94a3b8}
.f5{fill:#f87171}.f6{fill:#22d3ee}.f7{fill:#a78bfa}.f8{fill:#a3e635}.f9{fill:#f59e0b}
.f10{fill:#f472b6}.f11{fill:#c7d2fe}}
.shade{stroke:none}.shade0{fill:#16a34a;fill-opacity:.45}.shade1{fill:#16a34a;fill-opacity:.18}
.shade2{fill:#d97706;fill-opacity:.25}.shade3{fill:#dc2626;fill-opacity:.35}
.shade4{fill:#b91c1c;fill-opacity:.55}.tiny{font-size:9.5px}.bold{font-weight:700}
</style>"""
COLOURS = 12
WIDTH = 760


def number(value):
    """A coordinate: short, and the same on every machine."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value else "0"


def plain(value):
    """A tick: 0.05, 1, 20k, 3M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}"
    return f"{value:.4g}"


class Drawing:
    """Shapes in order, and a file at the end."""

    def __init__(self, height, title, width=WIDTH):
        self.width, self.height = width, height
        self.shapes = []
        self.title = title
        if title:
            self.text(0, 15, title, "title")

    def text(self, x, y, words, style=""):
        mark = f' class="{style}"' if style else ""
        self.shapes.append(f'<text x="{number(x)}" y="{number(y)}"{mark}>{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, style):
        self.shapes.append(f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" '
                           f'y2="{number(y2)}" class="{style}"/>')

    def box(self, x, y, width, height, style):
        self.shapes.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
                           f'height="{number(max(height, 0))}" class="{style}"/>')

    def dot(self, x, y, style, radius=4):
        self.shapes.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{radius}" '
                           f'class="{style}"/>')

    def diamond(self, x, y, style, size=6):
        points = ((x, y - size), (x + size, y), (x, y + size), (x - size, y))
        self.path(points, style, "polygon")

    def path(self, points, style, shape="polyline"):
        places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.shapes.append(f'<{shape} points="{places}" class="{style}"/>')

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} '
                f'{number(self.height)}" width="{self.width}" height="{number(self.height)}" '
                f'role="img" aria-label="{escape(self.title, {chr(34): "&quot;"})}">\n'
                + STYLE + "\n" + "\n".join(self.shapes) + "\n</svg>\n")


class Scale:
    """From values to pixels, linear or logarithmic, with round ticks."""

    def __init__(self, low, high, begin, end, log=False, ticks=5):
        self.log = log
        if log:
            low, high = math.log10(low), math.log10(high)
            first, last = math.floor(low + 1e-9), math.ceil(high - 1e-9)
            last = max(last, first + 1)
            self.low, self.high = first, last
            self.ticks = [10.0 ** power for power in range(first, last + 1)]
        else:
            if high <= low:
                low, high = low - (abs(low) or 1) * 0.1, high + (abs(high) or 1) * 0.1
            rough = (high - low) / ticks
            power = 10 ** math.floor(math.log10(rough))
            step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - rough))
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            self.low, self.high = first * step, last * step
            self.ticks = [step * k for k in range(first, last + 1)]
        self.begin, self.end = begin, end

    def __call__(self, value):
        at = math.log10(value) if self.log else value
        return self.begin + (at - self.low) / (self.high - self.low) * (self.end - self.begin)


def legend_places(names):
    """Where each name goes, from left to right and in rows: [(x, row)]."""
    places, x, row = [], 0, 0
    for name in names:
        room = 40 + 6.4 * len(name)
        if x and x + room > WIDTH:
            x, row = 0, row + 1
        places.append((x, row))
        x += room
    return places


def legend_height(names):
    return 18 * (legend_places(names)[-1][1] + 1)


def legend(drawing, names, colours, y):
    """A short line in its colour and the name; dashed for what was published."""
    for name, (x, row) in zip(names, legend_places(names)):
        said = " said" if name.endswith(", published") else ""
        drawing.line(x, y + row * 18 - 4, x + 22, y + row * 18 - 4,
                     f"line s{colours[name] % COLOURS}{said}")
        drawing.text(x + 28, y + row * 18, name, "small")


def paired_colours(names):
    """'X, published' has the colour of 'X'."""
    bases = list(dict.fromkeys(name.removesuffix(", published") for name in names))
    return {name: bases.index(name.removesuffix(", published")) for name in names}


def y_axis(drawing, scale, left, right, show=plain):
    for tick in scale.ticks:
        drawing.line(left, scale(tick), right, scale(tick), "grid")
        drawing.text(left - 8, scale(tick) + 4, show(tick), "small end")


def lines(title, x_label, y_label, series, show=plain):
    """series: [{name, x, y, low, high}]; those named '…, published' are dashed."""
    names = [one["name"] for one in series]
    colours = paired_colours(names)
    top, height, left, right = 50, 260, 62, WIDTH - 14
    drawing = Drawing(top + height + 44 + legend_height(names), title)
    xs = [x for one in series for x in one["x"]]
    ys = [y for one in series for y in one["low"] + one["high"]]
    log_x = min(xs) > 0 and max(xs) / min(xs) >= 30
    log_y = min(ys) > 0 and max(ys) / min(ys) >= 100
    x_scale = Scale(min(xs), max(xs), left, right, log_x, 8)
    if not log_x: # data from edge to edge; round ticks inside
        x_scale.low, x_scale.high = min(xs), max(xs)
        x_scale.ticks = [t for t in x_scale.ticks if min(xs) - 1e-9 <= t <= max(xs) + 1e-9]
    y_scale = Scale(min(ys) if log_y else min(0, *ys), max(ys), top + height, top, log_y)
    y_axis(drawing, y_scale, left, right, show)
    for tick in x_scale.ticks:
        if left - 1 <= x_scale(tick) <= right + 1:
            drawing.text(x_scale(tick), top + height + 17, plain(tick), "small mid")
    drawing.line(left, top + height, right, top + height, "axis")
    drawing.text(0, top - 12, y_label, "small")
    drawing.text(right, top + height + 33, x_label, "small end")
    for one in series:
        colour = colours[one["name"]] % COLOURS
        points = [(x_scale(x), y_scale(y)) for x, y in zip(one["x"], one["y"])]
        if any(low < high for low, high in zip(one["low"], one["high"])):
            upper = [(x_scale(x), y_scale(y)) for x, y in zip(one["x"], one["high"])]
            lower = [(x_scale(x), y_scale(y)) for x, y in zip(one["x"], one["low"])]
            drawing.path(upper + lower[::-1], f"area f{colour}", "polygon")
        said = one["name"].endswith(", published")
        drawing.path(points, f"line s{colour}" + (" said" if said else ""))
        for x, y in points if not said else []:
            drawing.dot(x, y, f"f{colour}", 3)
    legend(drawing, names, colours, top + height + 54)
    return drawing.svg()


def bars(title, y_label, groups, series, show=plain):
    """Bars beside each other in each group, with their spread; logarithmic where needed."""
    names = [one["name"] for one in series]
    top, height, left, right = 50, 230, 62, WIDTH - 14
    drawing = Drawing(top + height + 30 + legend_height(names), title)
    ys = [y for one in series for y in one["low"] + one["high"]]
    log = min(ys) > 0 and max(ys) / min(ys) >= 100
    scale = Scale(min(ys) if log else min(0, *ys), max(0, *ys), top + height, top,
                  log)
    y_axis(drawing, scale, left, right, show)
    base = top + height if log else scale(0)
    room = (right - left) / len(groups)
    width = min(room * 0.8 / len(series), 60)
    for g, group in enumerate(groups):
        middle = left + room * (g + 0.5)
        drawing.text(middle, top + height + 17, group, "small mid")
        for s, one in enumerate(series):
            x = middle + (s - len(series) / 2) * width
            y = scale(one["y"][g])
            drawing.box(x + 1, min(y, base), width - 2, abs(base - y), f"f{s % COLOURS}")
            if one["low"][g] < one["high"][g]:
                drawing.line(x + width / 2, scale(one["low"][g]), x + width / 2,
                             scale(one["high"][g]), "axis")
    drawing.line(left, base, right, base, "axis")
    drawing.text(0, top - 12, y_label, "small")
    legend(drawing, names, paired_colours(names), top + height + 40)
    return drawing.svg()


def forest(title, panels, show):
    """Published (diamond) beside measured (dot, with its spread); a panel per unit.

    panels: [(unit, [{label, published, measured, low, high, tolerance}])]
    """
    left, right, step = 330, WIDTH - 24, 24
    height = 52 + sum(len(rows) * step + 44 for _, rows in panels)
    drawing = Drawing(height, title)
    drawing.diamond(8, 36, "published", 5)
    drawing.text(20, 40, "published, with the tolerance around it", "small")
    drawing.dot(270, 36, "f0")
    drawing.line(284, 36, 304, 36, "spread s0")
    drawing.text(312, 40, "measured: mean, and spread over seeds", "small")
    y = 58
    for unit, rows in panels:
        values = [v for row in rows for v in (row["published"], row["measured"], row["low"],
                                              row["high"])]
        log = min(values) > 0 and max(values) / min(values) >= 50
        scale = Scale(min(values) if log else min(0, *values),
                      max(values) if log else max(0, *values), left, right, log, 6)
        bottom = y + len(rows) * step
        for tick in scale.ticks:
            drawing.line(scale(tick), y, scale(tick), bottom, "grid")
            drawing.text(scale(tick), bottom + 15, show(unit, tick), "small mid")
        for row in rows:
            middle = y + step / 2
            low, high = (row["published"] + sign * row["tolerance"] for sign in (-1, 1))
            if not log or low > 0:
                edge = [min(max(scale(v), left), right) for v in (low, high)]
                drawing.box(edge[0], y + 3, edge[1] - edge[0], step - 6, "band")
            drawing.text(left - 12, middle + 4, row["label"], "small end")
            drawing.line(scale(row["low"]), middle, scale(row["high"]), middle, "spread s0")
            drawing.dot(scale(row["measured"]), middle, "f0")
            drawing.diamond(scale(row["published"]), middle, "published")
            y += step
        y = bottom + 44
    return drawing.svg()


def ranks(title, rows, show, log=False, line=None, high=None):
    """Bars to the right, one per row: [(label, value, colour)]; 'line' marks a value."""
    left, right, step = 300, WIDTH - 70, 24
    drawing = Drawing(34 + len(rows) * step + 26, title)
    values = [value for _, value, _ in rows]
    low = min(values + ([line] if line else [])) if log else 0
    scale = Scale(low, high or max(values + ([line] if line else [])), left, right, log)
    top, bottom = 30, 30 + len(rows) * step
    for tick in scale.ticks:
        drawing.line(scale(tick), top, scale(tick), bottom, "grid")
        drawing.text(scale(tick), bottom + 16, show(tick), "small mid")
    base = scale(line) if log and line else left
    for k, (label, value, colour) in enumerate(rows):
        y, at = top + k * step, scale(value)
        drawing.text(left - 10, y + step / 2 + 4, label, "small end")
        drawing.box(min(base, at), y + 4, abs(at - base), step - 8, f"f{colour % COLOURS}")
        drawing.text(max(base, at) + 6, y + step / 2 + 4, show(value), "small")
    if line:
        drawing.line(scale(line), top, scale(line), bottom, "axis")
    return drawing.svg()


SHADES = (0.02, 0.1, 0.3, 1)  # from green to red: above each the next one


def shades(title, columns, rows, show):
    """A table of colours: [(name, {column: value})]; the first row is the one in question."""
    left, right, step, top = 128, 34, 20, 128 # the names of columns lean out to the right
    width = (WIDTH - left - right) / len(columns)
    drawing = Drawing(top + len(rows) * step + 34, title)
    for k, name in enumerate(columns):
        x = left + (k + 0.5) * width
        drawing.shapes.append(f'<text class="small" transform="translate({number(x + 3)} '
                              f'{top - 6}) rotate(-62)">{escape(name)}</text>')
    for r, (name, values) in enumerate(rows):
        y = top + r * step + (6 if r else 0)
        drawing.text(left - 6, y + 14, name, "small end bold" if r == 0 else "small end")
        for k in range(len(columns)):
            if k in values:
                shade = sum(values[k] > limit for limit in SHADES)
                drawing.box(left + k * width + 1, y + 1, width - 2, step - 2,
                            f"shade shade{shade}")
                drawing.text(left + (k + 0.5) * width, y + 13.5,
                             show(values[k]).replace(" %", "%"), "tiny mid")
    y, x = top + len(rows) * step + 22, left
    for k, words in enumerate(("best, or within 2 %", "within 10 %", "within 30 %",
                               "at most twice", "worse than twice")):
        drawing.box(x, y - 10, 12, 12, f"shade shade{k}")
        drawing.text(x + 17, y, words, "small")
        x += 34 + 6.2 * len(words)
    return drawing.svg()
