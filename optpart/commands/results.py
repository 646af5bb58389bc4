"""The lines that commands print about a result, and its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from optpart.base.terminal import say

if TYPE_CHECKING:
    from optpart.solution.result import Result


#: The exit code of an answer that may lack something because a process failed.
INCOMPLETE = 5


#: The exit code of a command that the user has interrupted.
INTERRUPTED = 130


def is_incomplete(result: Result) -> bool:
    """Return whether the result may lack something because a process failed."""
    from optpart.solution.termination import Termination

    return result.termination is Termination.FAILED and not result.refused


def leave(result: Result) -> NoReturn:
    """Exit with the code of a result."""
    from optpart.solution.result import Status

    if result.status is Status.INFEASIBLE:
        raise typer.Exit(3)
    if is_incomplete(result):
        raise typer.Exit(INCOMPLETE)
    raise typer.Exit(4 if result.schedule is None else 0)


def say_result(result: Result) -> None:
    """Print one line: what a run found and proved."""
    from optpart.base.rounding import between, number, percent
    from optpart.problem.units import with_unit
    from optpart.solution.result import Status
    from optpart.study.report.text import infeasible, seconds

    if result.status is Status.INFEASIBLE:
        say(f"{result.instance.name}: {infeasible(result.reason)}")
        return
    given = f" given {result.given}" if result.given else ""
    makespan, bound, load, least_load = (
        with_unit(text, result.instance.time_unit)
        for text in (
            *between(result.makespan, result.lower_bound),
            *between(result.bottleneck, result.bottleneck_bound),
        )
    )
    if result.makespan is None:
        if result.objective == "bottleneck":
            bound = f"{least_load} of the bottleneck"
        why = result.reason
        if why.startswith("its schedule"):  # a heuristic found one, which the verifier refused
            why = why.replace("its schedule", f"the schedule of {result.method}", 1)
        say(
            f"{result.instance.name}: no schedule found{given}: {why} (lower bound {bound})"
            f"{_claim(result)}"
        )
        return
    gap = "" if result.status is Status.OPTIMAL else f", gap {percent(result.gap)}"
    note = f" ({result.reason})" if result.reason else ""
    least = ""
    if result.objective == "bottleneck":
        say(
            f"{result.instance.name}: {result.status}{given}{note}, bottleneck {load}, lower bound "
            f"{least_load}{gap}, makespan {makespan}, traffic {number(result.traffic, up=True)}, "
            f"{seconds(result.seconds)} with {result.method}{_claim(result)}"
        )
        return
    if result.objective != "makespan":
        least = f" (lower bound {between(result.traffic, result.traffic_bound)[1]})"
    say(
        f"{result.instance.name}: {result.status}{given}{note}, makespan "
        f"{makespan}, lower bound {bound}{gap}, traffic "
        f"{number(result.traffic, up=True)}{least}, {seconds(result.seconds)} with {result.method}"
        f"{_members(result)}{_claim(result)}"
    )


def _claim(result: Result) -> str:
    """Return what a file claims and the run has not proven, if anything."""
    from optpart.study.report.text import claimed

    return "" if result.claim is None else f"; {claimed(result.claim)}"


def _members(result: Result) -> str:
    """Return which members of a portfolio found and proved a result; empty for other methods."""
    found, proved = result.schedule_by, result.bound_by
    if not found or found == proved:
        return f" ({found})" if found else ""
    return f" (schedule by {found}{f', bound by {proved}' if proved else ''})"


def say_schedule(result: Result) -> None:
    """Print the schedule of every device, if that fits on a screen."""
    from optpart.base.rounding import number

    schedule, instance = result.schedule, result.instance
    if schedule is None or instance.vertices > 40:
        return
    for d, device in enumerate(instance.cluster.names):
        names = [
            f"{instance.graph.names[v]}@{number(schedule.start[v], up=True)}"
            for v in schedule.sequence
            if schedule.placement[v] == d
        ]
        if names:
            say(f"  {device}: {' '.join(names)}")
