"""``optpart ordering``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.commands.instances import open_instance
from optpart.commands.options import Json, MemoryLimit, Seed, Workers, time_limit

if TYPE_CHECKING:
    from optpart.applications.ordering.compare import Orders
    from optpart.study.report.console import PlainConsole


def ordering(
    file: Annotated[
        str,
        typer.Argument(
            help="An instance, or the name of one, whose every vertex has one allowed device."
        ),
    ],
    time_limit: Annotated[float, time_limit("Seconds for all orders.")] = 60.0,
    memory_limit: MemoryLimit = None,
    workers: Workers = 2,
    seed: Seed = 0,
    times: Annotated[
        Path | None,
        typer.Option(help="Measured times: a CSV of name,time, or a Chrome trace .json."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure orders of an assigned graph by ordering efficiency and against the optimal order."""
    from optpart.applications.ordering.compare import compare_orders
    from optpart.applications.ordering.oracle import read_times, with_times
    from optpart.base.rounding import double
    from optpart.base.terminal import put
    from optpart.interop.formats.json import pretty
    from optpart.solution.result import Budget
    from optpart.study.report.console import plain_console
    from optpart.study.report.progress import ProgressLine

    instance = open_instance(file)
    if times is not None:
        instance = with_times(instance, read_times(times))
    line = ProgressLine()
    budget = Budget(remaining(time_limit), workers, memory=memory_limit)
    found = compare_orders(instance, budget, seed=seed, watch=lambda step: line("cpsat", step))
    line.clear()
    best, bounds = found.best, found.best.bounds
    low, high = best.efficiency
    loose = best.looseness
    if json:
        document = {
            "instance": instance.name,
            "upper": str(bounds.upper),
            "lower": str(bounds.lower),
            "speedup": double(bounds.speedup, up=True),
            "optimal": best.optimal,
            "proven": str(best.proven),
            "attainable_efficiency": [double(low, up=False), double(high, up=True)],
            "looseness": [
                double(loose[0], up=False),
                double(loose[1], up=True) if isinstance(loose[1], Fraction) else None,
            ],
            "orders": found.rows(),
            "omitted": list(found.omitted),
        }
        put(pretty(document))
        return
    print_orders(plain_console(), instance.name, found)


def _range(low: Fraction, high: Fraction) -> str:
    """Return a range of efficiencies rounded outwards; an exact one, like an efficiency, down."""
    from optpart.base.rounding import fixed

    least = fixed(low, 4, up=False)
    return least if low == high else f"{least} to {fixed(high, 4, up=True)}"


def print_orders(console: PlainConsole, name: str, found: Orders) -> None:
    """Print what is proven of the optimal order, and a row per order."""
    from optpart.base.rounding import fixed, number, percent
    from optpart.study.report.console import plain_table
    from optpart.study.report.text import remark

    best, bounds = found.best, found.best.bounds
    low, high = best.efficiency
    loose = best.looseness
    console.tell(
        f"{name}: makespan from {number(bounds.lower, up=False)} (eq. 2) to "
        f"{number(bounds.upper, up=True)} (eq. 1), S = {fixed(bounds.speedup, 3, up=True)}"
    )
    if best.makespan is None:
        console.tell(
            f"no order found: E* at most {fixed(high, 4, up=True)}; "
            f"{percent(loose[0], up=False)} or more above eq. 2"
        )
    else:
        told = f"E* {'= ' if best.optimal else 'from '}{_range(low, high)}"
        console.tell(
            f"optimal order {'proven' if best.optimal else 'not proven'}: {told}; it lies "
            + ("" if best.optimal else f"{percent(loose[0], up=False)} to ")
            + f"{percent(loose[1])} above eq. 2"
        )
    unsolved = any(result.makespan is None for result in found.results.values())
    table = plain_table("order", "makespan", "E", "E/E*", *([""] if unsolved else []))
    for order, result in found.results.items():
        if result.makespan is None:
            why = remark(f"no schedule: {result.reason}".removesuffix(": "))
            table.add_row(order, "–", "–", "–", why)
            continue
        share = best.share(result.makespan)
        efficiency = fixed(bounds.efficiency(result.makespan), 4, up=False)
        table.add_row(order, number(result.makespan, up=True), efficiency, _range(*share))
    console.show(table)
    if found.omitted:
        console.tell(f"not ordered in the time limit: {', '.join(found.omitted)}")
