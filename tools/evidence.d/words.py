"""words - figures as people read them, and tables of them in Markdown."""
MINUS, BLANK = "−", "–"
FULL = {"us": "µs", "per_s": "per s", "MB_per_s": "MB/s", "bytes": "MB", "USD": "US$"}


def digits(value, count=3):
    """Three significant digits, thousands apart, no exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 10 ** count:
        return sign(f"{value:,.0f}")
    if size < 0.001:
        return sign(f"{value:.1g}")
    places, bound = count - 1, 10
    while size >= bound - 0.5 * 10 ** -places and places > 0:
        places, bound = places - 1, bound * 10
    if size < 1:
        places = count if size >= 0.1 else count + 1
    text = f"{value:,.{places}f}"
    return sign(text)


def sign(text):
    return text.replace("-", MINUS)


def figure(unit, value):
    """A value with its unit, as a study or a bench names it."""
    if value is None:
        return BLANK
    if unit == "change":
        return sign(f"{value * 100:+.1f} %")
    if unit == "share":
        return sign(f"{value * 100:.1f} %")
    if unit == "ratio":
        return sign(f"{value:.2f}")
    if unit == "bytes":
        value /= 1e6
    if unit == "s" and 0 < abs(value) < 1:
        unit, value = ("ms", value * 1e3) if abs(value) >= 1e-3 else ("us", value * 1e6)
    return f"{digits(value)} {FULL.get(unit, unit)}"


def tick(unit, value):
    """The same on an axis: short, and no digits that only rounding made."""
    if abs(value) < 1e-12: # what adding up steps leaves of nothing
        value = 0
    if unit in ("change", "share"):
        plus = "+" if unit == "change" and value > 0 else ""
        return sign(f"{plus}{value * 100:.6g} %")
    return sign(f"{value:.6g}" + ("" if unit == "ratio" else f" {FULL.get(unit, unit)}"))


def span(unit, low, high):
    if low == high:
        return BLANK
    return f"{figure(unit, low)} … {figure(unit, high)}"


def count(value):
    return f"{value:,}"


def plural(number, one, many=None):
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head, rows, numbers=()):
    """Columns with an index in 'numbers' are aligned to the right."""
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join(" ---: " if k in numbers else " --- " for k in range(len(head))) + "|"]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def seeds(numbers):
    """1 to 8, or each by itself; what is a text already stays as it is."""
    if isinstance(numbers, str):
        return numbers
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def made(record):
    """How a record came about: what every page shows."""
    machine = record["machine"]
    rows = [("command", f"`{record['command']}`"),
            ("commit", f"`{record['commit']}`" + (" and changes that were not committed"
                                                  if record["commit"].endswith("+") else "")),
            ("date", record["date"]),
            ("machine", f"{machine['cpu']}, {plural(machine['cores'], 'core')}, "
                        f"{machine['memory_bytes'] / 2 ** 30:.0f} GiB, {machine['system']}, "
                        f"Linux {machine['kernel']}, {machine['compiler']}"),
            ("load before and after", " and ".join(f"{load:.2f}" for load in record["load"])),
            ("took", f"{digits(record['seconds'])} s")]
    if record.get("seeds"):
        rows.append(("seeds", seeds(record["seeds"])))
    return table(("", ""), rows)
