"""What benches print and write: tables, numbers, figures, and what they ran on."""

from __future__ import annotations

import csv
import io
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from matplotlib.figure import Figure

from optpart.base.files import ANY, write_bytes, write_text

#: The look of all figures.
STYLE = Path(__file__).with_name("charts.mplstyle")

#: Okabe and Ito's colours, which colour-blind readers can tell apart.
ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (
    "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip


def save(figure: Figure, path: Path, dpi: int = 110) -> None:
    """Write a PNG without a date, whole or not at all."""
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    write_bytes(path, target.getvalue(), ANY)


def processor() -> str:
    """Name the processor, as far as Linux tells it."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return ", ".join(sorted(set(found))) or platform.processor() or platform.machine()


def machine(*packages: str) -> str:
    """Describe cores, processor, Python and some installed packages."""
    versions = "".join(f", {name} {version(name)}" for name in packages)
    return f"{os.cpu_count()} cores, {processor()}; Python {platform.python_version()}{versions}"


def short_machine(*packages: str) -> str:
    """Describe cores, architecture, Python and some installed packages."""
    versions = "".join(f", {name} {version(name)}" for name in packages)
    cores = f"{os.cpu_count()} cores, {platform.machine()}"
    return f"{cores}, Python {platform.python_version()}{versions}"


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table; none if there is no such file."""
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write_csv(path: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Write a table, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue(), ANY)


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table: the first column to the left, all others to the right."""
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    lines = []
    for first, *others in table:
        right = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *right]).rstrip())
    return "\n".join(lines) + "\n"


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a table in Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    return "\n".join([lines[0].replace("|  |", "| |"), "|---" * len(head) + "|", *lines[1:]])


def up(value: float) -> str:
    """Write a makespan, rounded up."""
    return f"{math.ceil(100 * value - 1e-6) / 100:.2f}"


def down(value: float) -> str:
    """Write a bound, rounded down."""
    return f"{math.floor(100 * value + 1e-6) / 100:.2f}"


def over(makespan: float, bound: float) -> str:
    """Write a makespan, a bound, and by how much the first exceeds the second."""
    return f"{up(makespan)} over {down(bound)}: {makespan / bound - 1.0:.1%}"
