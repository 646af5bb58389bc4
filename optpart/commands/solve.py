"""``optpart solve``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from optpart.commands.instances import announce_compilation, open_instance
from optpart.commands.options import (
    File,
    Json,
    MethodName,
    Output,
    Seed,
    Start,
    TimeLimit,
    Workers,
    file_to_write,
)
from optpart.commands.results import leave, say_result, say_schedule
from optpart.errors import InputError
from optpart.terminal import complain, note, put, say

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.report.progress import ProgressLine
    from optpart.search.checkpoint import StateFile
    from optpart.solution.goal import Goal
    from optpart.solution.result import Budget, Method, Result
    from optpart.solution.schedule import Schedule


#: Larger instances are searched before CP-SAT solves them.
SEARCHED = 100

#: Methods that keep a state and repair what they start from.
_SEARCHES = ("search", "hybrid")

#: Exact methods whose pruning rules can be switched off.
_AUDITED = ("cpsat", "milp", "milp-cbc")


class Objectives(StrEnum):
    """What ``solve`` minimises."""

    makespan = "makespan"
    traffic = "traffic"
    lexicographic = "lexicographic"


class Fixed(StrEnum):
    """What of a schedule ``solve`` keeps."""

    placement = "placement"
    order = "order"
    both = "both"


def solve(
    file: File,
    method: MethodName = "cpsat",
    time_limit: TimeLimit = 60.0,
    workers: Workers = 2,
    seed: Seed = 0,
    start: Start = None,
    objective: Annotated[
        Objectives,
        typer.Option(help="What to minimise; lexicographic is makespan, then traffic."),
    ] = Objectives.makespan,
    within: Annotated[
        str | None, typer.Option(help="Decide whether there is a makespan of at most this.")
    ] = None,
    traffic_limit: Annotated[str | None, typer.Option(help="Traffic of at most this.")] = None,
    fix: Annotated[
        Fixed | None,
        typer.Option(
            help="What of --start is given and must be kept; a placement that the instance leaves "
            "no choice of needs no --start."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        file_to_write(
            help="Where search keeps its state, written at most every ten seconds; a search goes "
            "on where that fails, and ends with 2 if the last state could not be kept."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint of a run that was ended.")
    ] = False,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="The whole front of makespan and traffic, by cpsat.")
    ] = False,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Solve again without any rule that removes solutions, and compare; for cpsat and "
            "milp. Takes up to --time-limit more.",
        ),
    ] = False,
    output: Output = None,
    json: Json = False,
) -> None:
    """Find a schedule, and prove as much about it as the method and the bounds can."""
    from contextlib import nullcontext

    from optpart.exact.second_opinion import confirmed
    from optpart.files import written_first
    from optpart.formats import result as result_format
    from optpart.methods import registry
    from optpart.report.progress import ProgressLine
    from optpart.solution.result import Budget

    if pareto and (method != "cpsat" or output is not None):
        raise InputError("--pareto", "with another method, or --output", "leave those out")
    run = registry.get(method)
    instance = open_instance(file)
    given = first = None
    if start is not None:
        given = first = _started(start, instance, seed, repair=method in _SEARCHES)
        if method not in _SEARCHES:
            first = _valid(start, instance, given, needed=fix is not Fixed.placement)
    goal = _goal(instance, given, objective.value, within, traffic_limit, fix)
    if goal is not None or pareto:
        run = _with_goal(run, method, goal)
    line = ProgressLine()
    state = None if checkpoint is None else _state_file(checkpoint, line)
    if checkpoint is not None or resume:
        run = _with_checkpoint(run, method, state, resume)
    if audit and (pareto or method not in _AUDITED):
        raise InputError(
            "--audit", "not for this method, or --pareto", f"use {' or '.join(_AUDITED)}"
        )
    announce_compilation()
    if method in _SEARCHES or (method == "cpsat" and instance.vertices > SEARCHED):
        from optpart.search.searcher import warm_up

        warm_up("hybrid" if method == "hybrid" else "search")
    budget = Budget(time_limit, workers)
    if pareto:
        _solve_front(instance, budget, seed, goal, json)
        return
    result = run(
        instance, budget=budget, seed=seed, start=first, watch=lambda step: line(method, step)
    )
    line.clear()
    if goal is None:
        result = _bounded(result)
    result = confirmed(result, goal)
    if audit:
        _audit(run, result, budget, seed)
    with (
        nullcontext()
        if output is None
        else written_first(lambda: result_format.write(result, output))
    ):
        if json:
            put(result_format.dumps(result))
        else:
            say_result(result)
            say_schedule(result)
    if state is not None and state.fault is not None:
        raise state.fault
    leave(result)


def _solve_front(
    instance: Instance, budget: Budget, seed: int, goal: Goal | None, json: bool
) -> None:
    """Print the Pareto front of makespan and traffic."""
    from optpart.formats import result as result_format
    from optpart.formats.json import pretty
    from optpart.methods.pareto import pareto
    from optpart.report.text import number
    from optpart.solution.goal import Goal
    from optpart.solution.result import Status

    front = pareto(instance, budget, seed=seed, goal=goal or Goal())
    if json:
        points = [result_format.to_dict(result) for result in front]
        put(pretty({"instance": instance.name, "front": points}))
    elif front[0].status is Status.INFEASIBLE:
        say_result(front[0])
    else:
        complete = all(result.status is Status.OPTIMAL for result in front)
        say(f"{instance.name}: {'the whole front' if complete else 'a part of the front'}")
        for result in front:
            makespan, traffic = (
                number(value, up=True) for value in (result.makespan, result.traffic)
            )
            remark = f" ({result.reason})" if result.reason else ""
            say(f"  {result.status}{remark}, makespan {makespan}, traffic {traffic}")
    leave(front[0])


def _goal(
    instance: Instance,
    start: Schedule | None,
    objective: Literal["makespan", "traffic", "lexicographic"],
    within: str | None,
    traffic_limit: str | None,
    fix: Fixed | None,
) -> Goal | None:
    """Return what is asked for beyond a least makespan; ``None`` if nothing is."""
    from dataclasses import replace

    from optpart.exact.given_order import given_by
    from optpart.problem.rational import rational
    from optpart.solution.goal import Goal

    goal = Goal()
    if fix is not None:
        goal = _only(instance, fix) if start is None else given_by(instance, start, fix.value)
    goal = replace(
        goal,
        objective=objective,
        makespan=None if within is None else rational(within, "--within"),
        traffic=None if traffic_limit is None else rational(traffic_limit, "--traffic-limit"),
    )
    return None if goal == Goal() else goal


def _only(instance: Instance, fix: Fixed) -> Goal:
    """Return the goal that keeps the placement of an instance that allows no other."""
    from optpart.methods.starts import only_placement
    from optpart.solution.goal import Goal

    placement = only_placement(instance) if fix is Fixed.placement else None
    if placement is None:
        raise InputError(
            "--fix",
            "nothing to take it from",
            "give a result with --start, or a strategy such as heft",
        )
    note(f"{instance.name}: no vertex has a choice of device")
    return Goal(placement=placement)


def _with_goal(run: Method, method: str, goal: Goal | None) -> Method:
    """Return a method that pursues a goal; one that cannot is a fault of the user's."""
    from functools import partial
    from inspect import signature

    if "goal" not in signature(run).parameters:
        raise InputError(
            "--method",
            f"{method} takes no goal but a least makespan",
            "use cpsat, milp, minizinc or enumerate",
        )
    with_goal: Any = run
    return run if goal is None else partial(with_goal, goal=goal)


def _with_checkpoint(
    run: Method, method: str, checkpoint: StateFile | None, resume: bool
) -> Method:
    from functools import partial

    if method not in _SEARCHES:
        raise InputError(
            "--checkpoint", f"{method} keeps no state", "use it with --method search or hybrid"
        )
    if checkpoint is None:
        raise InputError("--resume", "nothing to go on from", "name the file with --checkpoint")
    with_state: Any = run
    return partial(with_state, checkpoint=checkpoint, resume=resume)


def _audit(run: Method, result: Result, budget: Budget, seed: int) -> None:
    """Solve again without pruning, and say whether that contradicts the result."""
    from functools import partial

    from optpart.exact.pruning import ALL
    from optpart.exact.second_opinion import compare
    from optpart.report.text import number, seconds

    able: Any = run
    other = partial(able, without=ALL)(result.instance, budget=budget, seed=seed)
    compare(result, other)
    note(
        f"audit: nothing contradicts it without pruning ({other.status}, makespan "
        f"{number(other.makespan, up=True)}, lower bound {number(other.lower_bound, up=False)}, "
        f"{seconds(other.seconds)})"
    )


def _state_file(path: Path, line: ProgressLine) -> StateFile:
    """Return where a search keeps its state; a fault there is told of at once."""
    from optpart.search.checkpoint import StateFile

    def warn(fault: InputError) -> None:
        line.clear()
        complain(f"the search goes on without a checkpoint: {fault}")

    return StateFile(path, warn)


def _bounded(result: Result) -> Result:
    """Add the combinatorial bounds to a result whose method proves nothing."""
    from dataclasses import replace

    from optpart.bounds.best import best_bound
    from optpart.problem.feasibility import contradiction
    from optpart.solution.result import Status, with_bound

    if result.lower_bound is not None or result.status is Status.INFEASIBLE:
        return result
    reason = contradiction(result.instance)
    if reason:
        return replace(result, status=Status.INFEASIBLE, reason=reason)
    bound = best_bound(result.instance, makespan=result.makespan)
    if bound.value is None:
        reason = "missing links leave some unit no device"
        return replace(result, status=Status.INFEASIBLE, reason=reason)
    return with_bound(result, bound.value)


def _started(start: str, instance: Instance, seed: int, *, repair: bool) -> Schedule:
    """Return what to start from, unverified; searches also take results of other instances."""
    from optpart.methods.starts import started
    from optpart.search.layout import read_start

    if repair and Path(start).exists():
        return read_start(start, instance)
    return started(start, instance, seed)


def _valid(start: str, instance: Instance, found: Schedule, *, needed: bool) -> Schedule | None:
    """Return the schedule if it is valid; one that is not is a fault if it is needed."""
    from optpart.solution.verifier import verify as check

    violations = check(instance, found, most=1)
    if violations and needed:
        raise InputError(
            "schedule", f"not valid here ({violations[0]})", "give a valid schedule", start
        )
    return None if violations else found
