"""Lower bounds as a table."""

from __future__ import annotations

from collections.abc import Sequence

from optpart.bounds.best import LowerBound
from optpart.report.console import PlainConsole, plain_table
from optpart.report.text import seconds
from optpart.rounding import number


def print_bounds(console: PlainConsole, found: Sequence[LowerBound], best: LowerBound) -> None:
    """Print a row per bound, and which is the largest."""
    table = plain_table("bound", "value", "time")
    for each in found:
        value = "infeasible" if each.value is None else number(each.value, up=False)
        table.add_row(each.name, value, seconds(each.seconds))
    console.show(table)
    if best.value is not None:
        console.tell(f"best: {number(best.value, up=False)}, by {best.name}")
