"""``optpart solve``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base import clock
from optpart.base.choices import Fix, Objective
from optpart.base.errors import InputError
from optpart.base.limits import MOST_WORKERS
from optpart.base.terminal import complain, note, put, say
from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import (
    DeviceOrder,
    EngineName,
    File,
    Json,
    MemoryLimit,
    MethodName,
    ResultFile,
    Seed,
    Start,
    TimeLimit,
    file_to_write,
    listed_devices,
)
from optpart.commands.results import leave, say_result, say_schedule

if TYPE_CHECKING:
    from fractions import Fraction

    from optpart.search.checkpoint import StateFile
    from optpart.solution.result import Result
    from optpart.study.report.progress import ProgressLine
    from optpart.study.sensitivity import Sensitivity


def solve(
    file: File,
    method: MethodName = "auto",
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = None,
    engine: EngineName = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Threads of the solver; by default 2 or, on a cluster, all.",
            min=1,
            max=MOST_WORKERS,
        ),
    ] = None,
    seed: Seed = 0,
    start: Start = None,
    objective: Annotated[
        Objective,
        typer.Option(
            help="What to minimise; lexicographic means makespan, then traffic, bottleneck the "
            "largest load of a device, link or port."
        ),
    ] = "makespan",
    within: Annotated[
        str | None, typer.Option(help="Decide whether a makespan of at most this is possible.")
    ] = None,
    within_percent: Annotated[
        str | None,
        typer.Option(
            help="With --objective traffic: let a schedule be longer than the shortest that is "
            "found by this many percent, such as 0.1."
        ),
    ] = None,
    traffic_limit: Annotated[str | None, typer.Option(help="Greatest traffic allowed.")] = None,
    fix: Annotated[
        Fix | None,
        typer.Option(
            help="The part of --start to keep; if the instance leaves no choice of devices, "
            "its placement needs no --start."
        ),
    ] = None,
    contiguous: Annotated[
        bool,
        typer.Option("--contiguous", help="Let no path leave a device and come back to it."),
    ] = False,
    device_order: DeviceOrder = None,
    checkpoint: Annotated[
        Path | None,
        file_to_write(
            help="A new file in which search saves its state, at most every ten seconds; one that "
            "exists needs --resume. If saving fails, the search continues; if the last save fails, "
            "it exits with 2.",
            kind="optpart.search.checkpoint:KIND",
            updated=True,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint of an earlier run.")
    ] = False,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="Find the whole Pareto front of makespan and traffic, with cpsat."
        ),
    ] = False,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Solve again without the rules that remove solutions, and compare; for auto, "
            "cpsat and milp. Takes up to --time-limit more.",
        ),
    ] = False,
    sensitivity: Annotated[
        str | None,
        typer.Option(
            help="Also show how far from optimal the schedule can be if every time is off by up to "
            "this share, such as 20%."
        ),
    ] = None,
    output: ResultFile = None,
    json: Json = False,
) -> None:
    """Find a schedule, and prove as much about it as the method and the bounds can."""
    from optpart.base.files import written_first
    from optpart.interop.formats import result as result_format
    from optpart.interop.formats.json import pretty
    from optpart.methods import registry
    from optpart.methods.solve import ask
    from optpart.study.report.progress import ProgressLine
    from optpart.study.sensitivity import sensitivity as study
    from optpart.study.sensitivity import share

    if sensitivity is not None:
        share(sensitivity)
        blocks = contiguous or device_order is not None
        if pareto or objective != "makespan" or fix or within or traffic_limit or blocks:
            raise InputError(
                "--sensitivity", "only for a least makespan", "leave out what else is asked for"
            )
    if pareto and (method not in ("auto", "cpsat") or output is not None):
        raise InputError("--pareto", "used with another method or --output", "leave them out")
    if pareto and objective != "makespan":
        raise InputError(
            "--pareto", "finds the front of makespan and traffic only", "leave --objective out"
        )
    if engine != "local" and (pareto or audit):
        raise InputError("--engine", "used with --pareto or --audit", "leave one of them out")
    if pareto and start is not None and fix is None:
        raise InputError("--pareto", "does not use --start without --fix", "leave --start out")
    registry.get(method)  # report an unknown method before a missing file
    instance = open_instance(file)
    line = ProgressLine()
    state = None if checkpoint is None else _state_file(checkpoint, line)
    question = ask(
        instance,
        method,
        objective=objective,
        within=within,
        within_percent=within_percent,
        traffic_limit=traffic_limit,
        fix=fix,
        start=start,
        contiguous=contiguous,
        device_order=listed_devices(device_order),
        checkpoint=state,
        resume=resume,
        engine=engine,
        seconds=time_limit,
        workers=workers,
        seed=seed,
        memory=memory_limit,
    )
    note_limits([instance])
    if question.forced:
        note(f"{instance.name}: no vertex has a choice of device")
    if audit and (pareto or not registry.takes(method, "without")):
        able = registry.listed(registry.taking("without"))
        raise InputError("--audit", "not supported by this method, or --pareto", f"use {able}")
    if pareto:
        front = question.front()
        _say_front(front, json)
        leave(front[0])
    result = question.answer(lambda step: line(method, step), clock.command_begin())
    line.clear()
    if audit:
        _say_audit(question.audit(result))
    with written_first(partial(result_format.write, result), output):
        asked = None if result.schedule is None else sensitivity
        if json and asked is not None:
            found = study(result, asked, seed=seed)
            document = {"result": result_format.to_dict(result), "sensitivity": found.to_dict()}
            put(pretty(document))
        elif json:
            put(result_format.dumps(result))
        else:
            say_result(result)
            say_schedule(result)
            if asked is not None:
                _say_sensitivity(study(result, asked, seed=seed))
    if state is not None and state.fault is not None:
        raise state.fault
    leave(result)


def _say_front(front: list[Result], json: bool) -> None:
    """Print the Pareto front of makespan and traffic."""
    from optpart.base.rounding import number
    from optpart.interop.formats import result as result_format
    from optpart.interop.formats.json import pretty
    from optpart.problem.units import with_unit
    from optpart.solution.result import Status

    name = front[0].instance.name
    if json:
        points = [result_format.to_dict(result) for result in front]
        put(pretty({"instance": name, "front": points}))
    elif front[0].status is Status.INFEASIBLE:
        say_result(front[0])
    else:
        complete = all(result.status is Status.OPTIMAL for result in front)
        say(f"{name}: {'the whole front' if complete else 'part of the front'}")
        for result in front:
            makespan = with_unit(number(result.makespan, up=True), result.instance.time_unit)
            traffic = number(result.traffic, up=True)
            remark = f" ({result.reason})" if result.reason else ""
            say(f"  {result.status}{remark}, makespan {makespan}, traffic {traffic}")


def _say_audit(other: Result) -> None:
    """Report that a second solve, without pruning, does not contradict the first."""
    from optpart.base.rounding import between
    from optpart.study.report.text import seconds

    makespan, bound = between(other.makespan, other.lower_bound)
    note(
        f"audit: solving without pruning does not contradict it ({other.status}, makespan "
        f"{makespan}, lower bound {bound}, "
        f"{seconds(other.seconds)})"
    )


def _say_sensitivity(found: Sensitivity) -> None:
    """Print in a few lines how far from optimal the plan can be."""
    from optpart.base.rounding import number, percent

    def above(value: Fraction | None) -> str:
        return "an unknown share" if value is None else percent(value)

    error = number(100 * found.error, up=True)
    say(f"if every run time and transfer time is off by up to {error}%:")
    if found.draws:
        longest = max(draw.makespan for draw in found.draws)
        say(
            f"  in {len(found.draws):,} draws (seed {found.seed}), the plan is at most "
            f"{above(found.median)} above the best in the median and {above(found.worst)} in "
            f"the worst; its makespan reaches {number(longest, up=True)}"
        )
    if found.overfull:
        say(f"  in {found.overfull:,} draws its order exceeds a limit of memory")
    if found.guarantee is None:
        say(f"  nothing is proven for all such costs: {found.unproven}")
    else:
        say(f"  proven for all such costs: at most {above(found.guarantee)} above the best")


def _state_file(path: Path, line: ProgressLine) -> StateFile:
    """Return the file for a search's state; a failure to write it is reported at once."""
    from optpart.search.checkpoint import StateFile

    def warn(fault: InputError) -> None:
        line.clear()
        complain(f"the search continues without a checkpoint: {fault}")

    return StateFile(path, warn)
