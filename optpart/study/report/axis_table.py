"""The tables of ``optpart gap --axis``: losses by placement and by order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rich.table import Table

from optpart.base.files import Kind, of_format
from optpart.base.rounding import number, percent
from optpart.solution.result import Result, Status
from optpart.study.attribution import Bracket, Division, Split
from optpart.study.report.console import PlainConsole, plain_table
from optpart.study.report.gap_table import print_head
from optpart.study.report.text import infeasible, remark

FORMAT = "optpart-axis/1"
KIND = Kind("a record of gap --axis", of_format(FORMAT))


def print_division(console: PlainConsole, division: Division) -> None:
    """Print one instance: the least makespan of all, and a row per pair, best first."""
    print_head(console, division.instance)
    console.tell("  " + _said(division.free))
    if division.free.status is not Status.INFEASIBLE:
        console.show(_table(division))
    console.print()


def _said(free: Result) -> str:
    """Describe the best of all placements and orders."""
    if free.status is Status.INFEASIBLE:
        return infeasible(free.reason)
    note = f" ({free.reason})" if free.reason else ""
    if free.status is Status.OPTIMAL:
        return f"optimum {number(free.makespan, up=True)}{note}; losses are shares of it"
    return (
        f"optimum between {number(free.lower_bound, up=False)} and "
        f"{number(free.makespan, up=True)}{note}; losses are shares of it, in brackets where it or "
        "the best order is not proven"
    )


def _table(division: Division) -> Table:
    several = len({split.pair.seed for split in division.splits}) > 1
    columns = ("makespan", "in the best order", "lost by placement", "by order", "in all", "")
    heads = ("  pair", *(["seed"] if several else []), *columns)
    table = plain_table(*heads, padding=(0, 2), header_style="dim")
    for split in sorted(division.splits, key=_by_makespan):
        table.add_row(
            "  " + split.pair.method,
            *([str(split.pair.seed)] if several else []),
            number(split.pair.makespan, up=True),
            _makespan(split.best_order),
            *map(share, (split.by_placement, split.by_order, split.in_all)),
            remark(_remark(split)),
        )
    return table


def _by_makespan(split: Split) -> tuple[bool, Any, str]:
    pair = split.pair
    return pair.makespan is None, pair.makespan or 0, pair.method


def _remark(split: Split) -> str:
    """Return the reason why a figure is missing."""
    ordered = split.ordered
    if ordered is not None and ordered.status is Status.INFEASIBLE:
        return f"no order of its placement is valid: {ordered.reason}"
    if ordered is not None and ordered.makespan is None:
        return f"no order of its placement was found: {ordered.reason}"
    return split.pair.reason


def _makespan(bracket: Bracket | None) -> str:
    if bracket is None:
        return "–"
    high = number(bracket.high, up=True)
    return high if bracket.exact else f"{number(bracket.low, up=False)} … {high}"


def share(bracket: Bracket | None) -> str:
    """Return a share in percent, a bracket rounded outwards."""
    if bracket is None:
        return "–"
    low = percent(bracket.low, up=False)
    if bracket.high is None:
        return f"{low} or more"
    high = percent(bracket.high)
    return high if bracket.exact else f"{low} … {high}"


def to_document(divisions: list[Division]) -> dict[str, Any]:
    """Return everything, exact numbers as strings."""
    return {
        "format": FORMAT,
        "instances": [
            {
                "instance": division.instance.name,
                "free": _result(division.free),
                "findings": [
                    {"source": finding.source, "problem": finding.problem}
                    for finding in division.findings
                ],
                "pairs": [_split(split) for split in division.splits],
            }
            for division in divisions
        ],
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "status": str(result.status),
        "makespan": _exact(result.makespan),
        "lower_bound": _exact(result.lower_bound),
        "reason": result.reason,
    }


def _split(split: Split) -> dict[str, Any]:
    lost = {"placement": split.by_placement, "order": split.by_order, "in_all": split.in_all}
    return {
        "pair": split.pair.method,
        "seed": split.pair.seed,
        "makespan": _exact(split.pair.makespan),
        "reason": split.pair.reason,
        "best_order": None if split.ordered is None else _result(split.ordered),
        "lost": {
            name: None if bracket is None else [_exact(bracket.low), _exact(bracket.high)]
            for name, bracket in lost.items()
        },
    }


def _exact(value: Fraction | None) -> str | None:
    return None if value is None else str(value)
