"""The command line (design §6). Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from optpart.commands.certify import certify
from optpart.commands.check import check
from optpart.commands.generate_heterog_worst import generate_heterog_worst
from optpart.commands.options import Needed, Output, Seed, TimeLimit, Workers, file_to_write
from optpart.commands.ordering import ordering
from optpart.commands.reduce import reduce
from optpart.commands.replica import generate_replica
from optpart.errors import FaultsOf, InputError, OptpartError
from optpart.limits import (
    MOST_DEVICES,
    MOST_EDGES,
    MOST_RUNS,
    MOST_SECONDS,
    MOST_VERTICES,
    check_seed,
)
from optpart.terminal import (
    OutputError,
    ReaderGoneError,
    abandon,
    complain,
    note,
    prepare,
    put,
    say,
)

if TYPE_CHECKING:
    from optpart.problem.cluster import Cluster
    from optpart.problem.graph import Graph
    from optpart.problem.instance import Instance
    from optpart.report.progress import ProgressLine
    from optpart.search.checkpoint import StateFile
    from optpart.solution.goal import Goal
    from optpart.solution.result import Budget, Method, Result
    from optpart.solution.schedule import Schedule
    from optpart.study.audit import Finding
    from optpart.study.gap import Comparison

app = typer.Typer(
    help="True optima, proven bounds and heuristics for placing dataflow graphs on unlike devices.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
generate_app = typer.Typer(help="Draw random instances.", no_args_is_help=True)
app.add_typer(generate_app, name="generate")
generate_app.command("heterog-worst")(generate_heterog_worst)
generate_app.command("replica")(generate_replica)
app.command()(certify)
app.command()(check)
app.command()(ordering)
app.command()(reduce)

#: Typer names no public base of what it raises for wrong usage.
_UsageError: Any = typer.BadParameter.__bases__[0]

#: Larger instances are searched before CP-SAT solves them.
_SEARCHED = 100

#: Methods that keep a state and repair what they start from.
_SEARCHES = ("search", "hybrid")

#: Exact methods whose pruning rules can be switched off.
_AUDITED = ("cpsat", "milp", "milp-cbc")

#: Up to so many instances get a table each; more get a line each.
_TABLES = 3

File = Annotated[str, typer.Argument(help="An instance file, or the name of a library instance.")]
MethodName = Annotated[str, typer.Option("--method", "-m", help="See 'optpart methods'.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable to standard output.")]
Start = Annotated[
    str | None,
    typer.Option(help="A result file to start from, or a strategy such as heft or mite+pct."),
]


def main() -> None:
    """Run the command line; a fault of the user's is one line and exit code 2.

    Ends with 0 where whoever reads standard output has seen enough.
    """
    if code := _code_of(prepare):
        sys.exit(code)
    code = _code_of(lambda: app(prog_name="optpart", standalone_mode=False))
    # What is still buffered may be refused, too.
    sys.exit(_code_of(sys.stdout.flush) or code)


def _code_of(step: Callable[[], object]) -> str | int | None:
    """Take a step of the program and return the exit code that it calls for."""
    try:
        result = step()
    except SystemExit as end:
        return end.code
    except ReaderGoneError:
        abandon()
        return 0
    except _UsageError as error:
        if error.format_message():  # without any arguments the help has been printed
            complain(_usage(error))
        return 2
    except OptpartError as error:
        if isinstance(error, OutputError):
            abandon()
        complain(error)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return 130
    return result if isinstance(result, int) else 0


def _usage(error: typer.BadParameter) -> str:
    """Say what is wrong with the command line, and where to read what would be right."""
    command = "optpart" if error.ctx is None else error.ctx.command_path
    problem = " ".join(error.format_message().split()).rstrip(".")
    return f"{problem}; see '{command} --help'"


def _open(file: str) -> Instance:
    from optpart.formats.detect import read_instance
    from optpart.study import library

    if not Path(file).exists():
        if file in library.index() or file in library.unreadable():
            return library.load(file)
        raise InputError(
            "", "no such file", "name a file, or an instance of 'optpart gap --list'", file
        )
    return read_instance(file)


def _compiling() -> None:
    from optpart.kernels.compiled import announce_compilation

    announce_compilation()


def _leave(result: Result) -> NoReturn:
    """End with the exit code that a result calls for."""
    from optpart.solution.result import Status

    if result.status is Status.INFEASIBLE:
        raise typer.Exit(3)
    raise typer.Exit(4 if result.schedule is None else 0)


def _say_result(result: Result) -> None:
    from optpart.report.text import number, percent, seconds
    from optpart.solution.result import Status

    if result.status is Status.INFEASIBLE:
        say(f"{result.instance.name}: INFEASIBLE: {result.reason}")
        return
    given = f" given {result.given}" if result.given else ""
    bound = number(result.lower_bound, up=False)
    if result.makespan is None:
        say(
            f"{result.instance.name}: no schedule found{given}: {result.reason} "
            f"(lower bound {bound})"
        )
        return
    gap = "" if result.status is Status.OPTIMAL else f", gap {percent(result.gap)}"
    note = f" ({result.reason})" if result.reason else ""
    least = ""
    if result.objective != "makespan":
        least = f" (lower bound {number(result.traffic_bound, up=False)})"
    say(
        f"{result.instance.name}: {result.status}{given}{note}, makespan "
        f"{number(result.makespan, up=True)}, lower bound {bound}{gap}, traffic "
        f"{number(result.traffic, up=True)}{least}, {seconds(result.seconds)} with {result.method}"
    )


def _say_schedule(result: Result) -> None:
    """Print what every device does, if that fits on a screen."""
    from optpart.report.text import number

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
        _say_result(front[0])
    else:
        complete = all(result.status is Status.OPTIMAL for result in front)
        say(f"{instance.name}: {'the whole front' if complete else 'a part of the front'}")
        for result in front:
            makespan, traffic = (
                number(value, up=True) for value in (result.makespan, result.traffic)
            )
            remark = f" ({result.reason})" if result.reason else ""
            say(f"  {result.status}{remark}, makespan {makespan}, traffic {traffic}")
    _leave(front[0])


@app.command()
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
    instance = _open(file)
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
    _compiling()
    if method in _SEARCHES or (method == "cpsat" and instance.vertices > _SEARCHED):
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
            _say_result(result)
            _say_schedule(result)
    if state is not None and state.fault is not None:
        raise state.fault
    _leave(result)


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


@app.command()
def gap(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Instance files or library names; without any, the small library."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="A method to measure; repeat it. 'all' is every pair."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds per instance and method.", min=0.0, max=MOST_SECONDS)
    ] = 20.0,
    workers: Workers = 2,
    seed: Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            help="Runs of each method, with this many seeds from --seed on.", min=1, max=MOST_RUNS
        ),
    ] = 1,
    engine: Annotated[
        str,
        typer.Option(help="Where: local, dask (processes of this machine) or dask://HOST:PORT."),
    ] = "local",
    store: Annotated[
        Path | None,
        file_to_write(help="Keep finished runs in this file, and repeat none that it has."),
    ] = None,
    output: Annotated[
        Path | None, file_to_write("-o", "--output", help="Also write .csv or .json.")
    ] = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV to standard output.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="A table per instance, however many they are.")
    ] = False,
    axis: Annotated[
        bool,
        typer.Option(
            "--axis",
            help="Split each pair's loss into what its placement and what its order has lost; "
            "--time-limit is for each solve.",
        ),
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the instance library.")] = False,
) -> None:
    """Measure how far methods are from the optimum, or from what is known and proven.

    Every schedule is verified. A method that fails, a claim that a verified
    schedule contradicts, and a row of the store or the library that does not
    hold are named on standard error and not used. The rest of the table stands,
    and the exit code is 1.
    """
    from contextlib import nullcontext

    from optpart.files import write_text, written_first
    from optpart.formats.json import pretty
    from optpart.methods import registry
    from optpart.report import gap_table
    from optpart.report.console import plain_console
    from optpart.report.progress import ProgressLine
    from optpart.solution.result import Budget, Progress
    from optpart.study import library
    from optpart.study.engine import choose
    from optpart.study.gap import default_methods, sweep
    from optpart.study.run import Run
    from optpart.study.store import Store

    console = plain_console()
    if list_:
        _list_library(console)
        return
    check_seed(seed, seeds, "--seed and --seeds")
    if axis:
        if csv or engine != "local" or store is not None:
            raise InputError("--axis", "with --csv, --engine or --store", "leave those out")
        budget = Budget(time_limit, workers)
        _gap_by_axis(console, files, method, budget, range(seed, seed + seeds), output, json)
        return
    if output is not None and output.suffix not in (".csv", ".json"):
        raise InputError("", f"unknown suffix {output.suffix!r}", "use .csv or .json", str(output))
    if json and csv:
        raise InputError("--json", "used together with --csv", "choose one of them")
    names = method or default_methods()
    if "all" in names:
        names = [*registry.pairs(), *default_methods(), *names]
        names = [name for name in names if name != "all"]
    for name in names:
        registry.check(name)
    chosen = files or [row.name for row in library.index().values() if row.small]
    spread = choose(engine, workers)
    instances = [_open(file) for file in chosen]
    number = {instance: i for i, instance in enumerate(instances, 1)}
    line = ProgressLine()

    def watch(run: Run, step: Progress | None) -> None:
        where = f"[{number[run.instance]}/{len(instances)}] {run.instance.name}"
        line(f"{where}  {run.method}", step)

    comparisons: list[Comparison] = []
    fault: OptpartError | None = None
    with nullcontext() if store is None else Store(store) as kept:
        _compiling()
        registry.warm_up(large=any(instance.vertices > _SEARCHED for instance in instances))
        try:
            for comparison in sweep(
                instances,
                names,
                budget=Budget(time_limit, workers),
                seeds=range(seed, seed + seeds),
                engine=spread,
                store=kept,
                watch=watch,
            ):
                line.clear()
                comparisons.append(comparison)
                if not (json or csv):
                    short = len(instances) > _TABLES and not details
                    show = gap_table.print_line if short else gap_table.print_comparison
                    show(console, comparison)
        except OptpartError as error:  # the store, or standard output, takes no more
            line.clear()
            if not comparisons or isinstance(error, ReaderGoneError):
                raise
            fault = error
    if fault is not None:
        note("stopped: what follows is what was done so far")
    elif not comparisons or any(comparison.interrupted for comparison in comparisons):
        line.clear()
        note("interrupted: what follows is what was done so far")

    def write() -> None:
        if output is not None:
            as_csv = output.suffix == ".csv"
            document = gap_table.to_document(comparisons)
            write_text(output, gap_table.to_csv(comparisons) if as_csv else pretty(document))

    with written_first(write):
        if json:
            put(pretty(gap_table.to_document(comparisons)))
        elif csv:
            put(gap_table.to_csv(comparisons))
        elif len(comparisons) > 1:
            gap_table.print_summary(console, comparisons)
    if fault is not None:
        raise fault
    _say_findings([f for c in comparisons for f in c.findings], whole_library=not files)
    if comparisons and all(comparison.reference.infeasible for comparison in comparisons):
        raise typer.Exit(3)


def _say_findings(findings: list[Finding], *, whole_library: bool) -> None:
    """Name what does not hold and was not used, and end with exit code 1 if there is any."""
    from optpart.study import library
    from optpart.study.audit import one_line

    lines = [str(finding) for finding in findings]
    if whole_library:
        named = {finding.instance for finding in findings}
        lines += [
            one_line(f"{name}: library: {problem}")
            for name, problem in library.unreadable().items()
            if name not in named
        ]
    for line in lines:
        complain(line)
    if lines:
        raise typer.Exit(1)


def _gap_by_axis(
    console: Any,
    files: list[str] | None,
    names: list[str] | None,
    budget: Budget,
    seeds: range,
    output: Path | None,
    json: bool,
) -> None:
    """Print what of each pair's loss its placement and what its order has caused."""
    from contextlib import nullcontext

    from optpart.files import write_text, written_first
    from optpart.formats.json import pretty
    from optpart.methods import registry
    from optpart.report import axis_table
    from optpart.report.progress import ProgressLine
    from optpart.solution.result import Status
    from optpart.study import library
    from optpart.study.attribution import Division, divide

    if output is not None and output.suffix != ".json":
        raise InputError("", f"unknown suffix {output.suffix!r}", "use .json", str(output))
    pairs = names or registry.heuristics()
    if "all" in pairs:
        pairs = [*registry.pairs(), *(name for name in pairs if name != "all")]
    chosen = files or [row.name for row in library.index().values() if row.small]
    instances = [_open(file) for file in chosen]
    line = ProgressLine()
    done: list[Division] = []
    _compiling()
    try:
        for instance in instances:
            line.label = f"{instance.name}  "
            done.append(divide(instance, pairs, budget=budget, seeds=seeds, watch=line))
            line.clear()
            if not json:
                axis_table.print_division(console, done[-1])
    except KeyboardInterrupt:
        line.clear()
        note("interrupted: only what was done before is reported")
    document = pretty(axis_table.to_document(done))
    with nullcontext() if output is None else written_first(lambda: write_text(output, document)):
        if json:
            put(document)
    _say_findings([f for d in done for f in d.findings], whole_library=not files)
    if done and all(division.free.status is Status.INFEASIBLE for division in done):
        raise typer.Exit(3)


def _list_library(console: Any) -> None:
    from rich.table import Table

    from optpart.report.text import number
    from optpart.study import library

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column("name")
    for column in ("vertices", "edges", "devices", "best makespan", "best bound"):
        table.add_column(column, justify="right")
    table.add_column("status")
    for row in library.index().values():
        table.add_row(
            row.name,
            str(row.vertices),
            str(row.edges),
            str(row.devices),
            number(row.makespan, up=True),
            number(row.bound, up=False),
            row.status,
        )
    console.print(table)
    _say_findings([], whole_library=True)


@app.command()
def bound(
    file: File,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for all bounds together.", min=0.0, max=MOST_SECONDS)
    ] = 30.0,
    json: Json = False,
) -> None:
    """Prove lower bounds of the makespan."""
    from optpart.bounds.best import each_bound, largest
    from optpart.formats.json import pretty
    from optpart.methods.solver_bound import SOLVER_BOUND
    from optpart.problem.feasibility import contradiction
    from optpart.report.text import number, seconds

    instance = _open(file)
    reason = contradiction(instance)
    if reason:
        (note if json else say)(f"{instance.name}: INFEASIBLE: {reason}")
        raise typer.Exit(3)
    _compiling()
    found = []
    interrupted = False
    try:
        for each in each_bound(instance, time_limit, besides=SOLVER_BOUND):
            found.append(each)  # noqa: PERF402  (an interruption keeps what is there)
    except KeyboardInterrupt:
        interrupted = True
        note("interrupted: what follows is what was proven so far")
    best = largest(found) if found else None
    if json:
        rows = [
            {
                "bound": b.name,
                "value": None if b.value is None else str(b.value),
                "seconds": round(b.seconds, 6),
            }
            for b in found
        ]
        document = {
            "instance": instance.name,
            "interrupted": interrupted,
            "best": None if best is None else best.name,
            "bounds": rows,
        }
        put(pretty(document))
    else:
        for b in found:
            value = "infeasible" if b.value is None else number(b.value, up=False)
            say(f"{b.name:>14}  {value:>12}  {seconds(b.seconds)}")
        if best is not None and best.value is not None:
            say(f"{'best':>14}  {number(best.value, up=False):>12}  by {best.name}")
    if best is None:
        raise typer.Exit(4)
    if best.value is None:
        raise typer.Exit(3)


@app.command()
def verify(
    file: File,
    result: Annotated[Path, typer.Argument(help="A result file.")],
    json: Json = False,
) -> None:
    """Check a result against its instance, in exact arithmetic."""
    from optpart.formats.json import pretty
    from optpart.report.verification import check_result

    instance = _open(file)
    report = check_result(instance, result)
    if json:
        document = {
            "instance": instance.name,
            "valid": not report.violations,
            "violations": [str(violation) for violation in report.violations],
            "makespan": None if report.makespan is None else str(report.makespan),
        }
        put(pretty(document))
    else:
        for violation in report.violations:
            say(str(violation))
        if not report.violations:
            say(report.summary)
    if report.violations:
        raise typer.Exit(1)


@app.command()
def simulate(
    file: File,
    method: Annotated[
        str, typer.Option("--method", "-m", help="PARTITIONING+SCHEDULER, see 'optpart methods'.")
    ] = "heft+pct",
    start: Annotated[
        Path | None, typer.Option(help="Take the placement from this result file.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs, with as many seeds.", min=1, max=MOST_RUNS)] = 1,
    seed: Seed = 0,
    output: Output = None,
    json: Json = False,
) -> None:
    """Execute the graph under a placement and a scheduling strategy."""
    from contextlib import nullcontext

    from optpart.files import written_first
    from optpart.formats import result as result_format
    from optpart.formats.json import pretty
    from optpart.report import simulation

    check_seed(seed, runs, "--seed and --runs")
    instance = _open(file)
    placed = None if start is None else result_format.read_schedule(start, instance).placement
    _compiling()
    runs_ = simulation.run(instance, method, placed, range(seed, seed + runs))
    found = [run for run in runs_ if run.result.schedule is not None]
    best = min(found, key=lambda run: run.result.makespan or 0) if found else runs_[0]
    with (
        nullcontext()
        if output is None
        else written_first(lambda: result_format.write(best.result, output))
    ):
        if json:
            put(pretty(simulation.to_document(best)))
        else:
            simulation.print_runs(runs_)
    _leave(best.result)


@app.command()
def methods() -> None:
    """List what can stand after --method."""
    from optpart.methods import registry as registry

    for entry in registry.entries():
        say(f"{entry.name:26} {entry.kind:13} {entry.summary}")


@app.command()
def plot(
    result: Annotated[Path, typer.Argument(help="A result file.")],
    output: Needed,
    instance: Annotated[
        str | None,
        typer.Option(help="Its instance; not needed for one of the library."),
    ] = None,
) -> None:
    """Draw a schedule by device over time, as PNG or SVG."""
    from optpart.formats.result import read_document, read_schedule
    from optpart.problem.rational import rational
    from optpart.report import gantt
    from optpart.report.verification import check_result

    document = read_document(result)
    name = document.get("instance") if instance is None else instance
    if not isinstance(name, str):
        raise InputError("instance", "missing", "name the instance with --instance", str(result))
    found = _open(name)
    report = check_result(found, result)
    if report.violations:
        raise InputError(
            "schedule",
            f"not valid for {found.name} ({report.violations[0]})",
            "name its instance with --instance",
            str(result),
        )
    bound = document.get("lower_bound")
    gantt.draw(
        found,
        read_schedule(result, found),
        output,
        title=f"{found.name}, {document.get('method', '')}",
        bound=None if bound is None else rational(bound, "lower_bound"),
    )


class Costs(StrEnum):
    """Where an imported graph gets its costs from."""

    drawn = "drawn"
    unit = "unit"


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help=".pb, .pbtxt, a thesis graph .csv, or a file of another FORMAT."),
    ],
    output: Needed,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="gxl, stg, jsplib, fjs, santiago, moirai, dnn-partitioning or native; needed only "
            "where neither suffix nor content tells.",
        ),
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="Devices: a .toml, or a thesis device .csv.")
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            help="Draw a cluster of so many devices instead; for stg, so many equal ones.",
            min=1,
            max=MOST_DEVICES,
        ),
    ] = None,
    costs: Annotated[
        str, typer.Option(help="drawn, unit, or a CSV of name, ops, memory, sizes.")
    ] = "drawn",
    break_cycles: Annotated[
        bool, typer.Option("--break-cycles", help="Remove edges of while loops, and list them.")
    ] = False,
    colocate: Annotated[
        str | None,
        typer.Option(help="Regular expression: vertices whose names begin alike share a device."),
    ] = None,
    seed: Seed = 0,
    name: Annotated[str | None, typer.Option(help="Name of the instance.")] = None,
) -> None:
    """Make an instance of a graph from elsewhere."""
    from optpart.formats import native, thesis_csv
    from optpart.formats.detect import read_instance

    suffix = file.suffix.lower() if format_ is None else ""
    if suffix == ".csv":
        if cluster is None:
            raise InputError("--cluster", "missing", "name the CSV of the devices")
        instance = thesis_csv.read(file, cluster)
    elif suffix in (".pb", ".pbtxt"):
        instance = _import_tensorflow(
            file, _cluster(cluster, devices, seed), costs, seed, break_cycles, colocate
        )
    elif cluster is not None:
        raise InputError(
            "--cluster", "only for TensorFlow graphs and thesis tables", "leave it out", str(file)
        )
    else:
        instance = read_instance(file, format_, devices)
    if name is not None:
        from dataclasses import replace

        instance = replace(instance, name=name)
    native.write(instance, output)
    say(
        f"{instance.name}: {instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
        f"{instance.devices} devices → {output}"
    )


def _cluster(path: Path | None, devices: int | None, seed: int) -> Cluster:
    from optpart.formats import cluster_toml
    from optpart.generate.cluster import drawn_cluster

    if (path is None) == (devices is None):
        raise InputError("--cluster", "no devices", "give either --cluster FILE or --devices N")
    if path is not None:
        return cluster_toml.read(path)
    assert devices is not None
    return drawn_cluster(seed, devices)


def _import_tensorflow(
    file: Path,
    cluster: Cluster,
    costs: str,
    seed: int,
    break_cycles: bool,
    colocate: str | None,
) -> Instance:
    from optpart.formats import tensorflow
    from optpart.formats.graph_edits import colocate_cells
    from optpart.problem.instance import Instance

    graph, counts = tensorflow.read_graph(file, cluster.names, break_cycles=break_cycles)
    for source, output, target in counts.removed:
        which = "control" if output is None else output
        say(f"removed to break a cycle: {source} ({which}) → {target}")
    if colocate is not None:
        graph = colocate_cells(graph, colocate)
    say(
        f"{file.name}: {counts.vertices} vertices, {counts.inputs} inputs, {counts.edges} distinct "
        f"edges between {counts.pairs} pairs, {counts.groups} colocation groups of two and more, "
        f"the largest of {counts.largest_group}"
    )
    source = f"imported from {file.name}, costs: {Path(costs).name}, seed {seed}"
    with FaultsOf(file):
        return Instance(_costed(graph, costs, seed), cluster, name=file.stem, source=source)


def _costed(graph: Graph, costs: str, seed: int) -> Graph:
    from optpart.costs.drawn import drawn
    from optpart.costs.from_csv import from_csv
    from optpart.costs.unit import unit

    if costs == Costs.drawn:
        return drawn(graph, seed)
    if costs == Costs.unit:
        return unit(graph)
    return from_csv(graph, costs)


@app.command()
def convert(
    file: File,
    output: Needed,
    devices: Annotated[
        Path | None, file_to_write(help="For a thesis .csv: where the devices go.")
    ] = None,
) -> None:
    """Write an instance in another format: .json, or thesis .csv with --devices."""
    from optpart.formats import native, thesis_csv

    instance = _open(file)
    suffix = output.suffix.lower()
    if suffix == ".json":
        native.write(instance, output)
    elif suffix == ".csv":
        if devices is None:
            raise InputError("--devices", "missing", "say where the CSV of the devices goes")
        thesis_csv.write(instance, output, devices)
    else:
        raise InputError("", f"unknown suffix {suffix!r}", "use .json or .csv", str(output))


@generate_app.command("thesis")
def generate_thesis(
    number: Annotated[int, typer.Argument(help="Graph of [L] table 7.1.", min=1, max=6)],
    output: Needed,
    devices: Annotated[int, typer.Option(min=2, max=MOST_DEVICES)] = 100,
    seed: Seed = 0,
) -> None:
    """Draw one of the six graphs of [L] table 7.1, with a cluster."""
    from optpart.generate import thesis

    _write_generated(thesis.instance(number, devices, seed), output)


class Tightness(StrEnum):
    """How much memory devices have."""

    none = "none"
    loose = "loose"
    tight = "tight"


@generate_app.command("small")
def generate_small(
    output: Needed,
    vertices: Annotated[int, typer.Option(min=1, max=MOST_VERTICES)] = 20,
    devices: Annotated[int, typer.Option(min=2, max=MOST_DEVICES)] = 3,
    ccr: Annotated[
        float, typer.Option(help="Communication to computation.", min=1e-6, max=1e6)
    ] = 1.0,
    types: Annotated[bool, typer.Option(help="Some vertices need a CPU or a GPU.")] = False,
    groups: Annotated[bool, typer.Option(help="Some vertices are colocated.")] = False,
    memory: Annotated[Tightness, typer.Option()] = Tightness.none,
    seed: Seed = 0,
) -> None:
    """Draw a small instance with whole-number times."""
    from optpart.generate.small import small

    instance = small(
        vertices, devices, seed=seed, ccr=ccr, types=types, groups=groups, memory=memory.value
    )
    _write_generated(instance, output)


@generate_app.command("lstm")
def generate_lstm(
    network: Annotated[str, typer.Argument(help="rnn, or nmt for an encoder and a decoder.")],
    output: Needed,
    devices: Annotated[int, typer.Option(min=1, max=MOST_DEVICES)] = 2,
    costs: Annotated[str, typer.Option(help="size, unit or drawn.")] = "size",
    cells: Annotated[bool, typer.Option(help="Colocate the operations of an LSTM cell.")] = True,
    training: Annotated[bool, typer.Option(help="With gradients and updates.")] = True,
    seed: Seed = 0,
) -> None:
    """Build an unrolled LSTM network of [B] §5.1 on equal devices."""
    from typing import cast

    from optpart.generate import lstm

    instance = lstm.instance(
        cast(lstm.Model, network),  # names that it does not know it refuses itself
        devices,
        seed,
        costs=cast(lstm.Costs, costs),
        cells=cells,
        training=training,
    )
    _write_generated(instance, output)


@generate_app.command("layered")
def generate_layered(
    output: Needed,
    levels: Annotated[int, typer.Option(min=1, max=MOST_VERTICES)] = 20,
    min_width: Annotated[
        int, typer.Option(help="Least vertices a level.", min=1, max=MOST_VERTICES)
    ] = 5,
    max_width: Annotated[
        int, typer.Option(help="Most vertices a level.", min=1, max=MOST_VERTICES)
    ] = 15,
    edge_probability: Annotated[
        float, typer.Option(help="Of an edge between vertices of two levels.", min=0, max=1)
    ] = 0.05,
    level_limit: Annotated[
        int | None,
        typer.Option(help="No edge over more levels than this.", min=1, max=MOST_VERTICES),
    ] = None,
    decay: Annotated[
        float | None,
        typer.Option(help="Factor of the probability per further level.", min=0, max=1),
    ] = None,
    random_edges: Annotated[int, typer.Option(help="Long-range edges.", min=0, max=MOST_EDGES)] = 0,
    cpu_probability: Annotated[
        float, typer.Option(help="Of a vertex to need a CPU.", min=0, max=1)
    ] = 0.0,
    gpu_probability: Annotated[
        float, typer.Option(help="Of a vertex to need a GPU.", min=0, max=1)
    ] = 0.0,
    colocated: Annotated[
        int, typer.Option(help="Vertices in colocation groups.", min=0, max=MOST_VERTICES)
    ] = 0,
    devices: Annotated[int, typer.Option(min=1, max=MOST_DEVICES)] = 10,
    seed: Seed = 0,
) -> None:
    """Draw a layered graph and a cluster, as in [L] §6.2."""
    from optpart.generate.cluster import drawn_cluster
    from optpart.generate.layered import layered
    from optpart.limits import check_size
    from optpart.problem.instance import Instance

    graph = layered(
        seed,
        levels=levels,
        width=(min_width, max_width),
        edge_probability=edge_probability,
        level_limit=level_limit,
        decay=decay,
        random_edges=random_edges,
        cpu_probability=cpu_probability,
        gpu_probability=gpu_probability,
        colocated=colocated,
    )
    check_size(len(graph), devices=devices, place="vertices and devices")
    cluster = drawn_cluster(seed, devices)
    source = f"layered graph and cluster drawn as in [L] §6.2, seed {seed}"
    _write_generated(Instance(graph, cluster, name=output.stem, source=source), output)


@generate_app.command("cluster")
def generate_cluster(
    output: Needed,
    devices: Annotated[int, typer.Option(min=1, max=MOST_DEVICES)] = 10,
    seed: Seed = 0,
) -> None:
    """Draw a cluster, as in [L] §6.2, into a TOML file."""
    from optpart.formats import cluster_toml
    from optpart.generate.cluster import drawn_cluster

    cluster_toml.write(drawn_cluster(seed, devices), output)


def _write_generated(instance: Instance, output: Path) -> None:
    from optpart.commands.generated import write_generated

    write_generated(instance, output)
