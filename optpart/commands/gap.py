"""``optpart gap``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.base.errors import InputError, OptpartError
from optpart.base.limits import MOST_RUNS, check_seed
from optpart.base.terminal import ReaderGoneError, complain, note, put
from optpart.commands.instances import note_limits, open_instances
from optpart.commands.options import (
    DataFolder,
    EngineName,
    Json,
    MemoryLimit,
    Seed,
    SetName,
    Workers,
    file_to_write,
    time_limit,
)
from optpart.commands.results import INCOMPLETE, INTERRUPTED, is_incomplete

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.solution.audit import Finding
    from optpart.solution.result import Budget
    from optpart.study.gap import Comparison
    from optpart.study.library import Known


#: Full tables for at most this many instances; one line each for more.
_TABLES = 3


def gap(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Instance files or library names; by default, the small library."),
    ] = None,
    set_name: SetName = None,
    data: DataFolder = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", help="A method to measure; repeatable. 'all' means every pair."
        ),
    ] = None,
    program: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="A program to measure, such as './mine {instance} {result}', which reads the one "
            "file and writes the other; repeatable. Only its schedule counts.",
        ),
    ] = None,
    time_limit: Annotated[
        float, time_limit("Seconds per instance and method, and for the reference.")
    ] = 20.0,
    memory_limit: MemoryLimit = None,
    workers: Workers = 2,
    seed: Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            help="Runs of each method, with consecutive seeds from --seed on.", min=1, max=MOST_RUNS
        ),
    ] = 1,
    engine: EngineName = "local",
    store: Annotated[
        Path | None,
        file_to_write(
            help="Store finished runs in this file, and skip those it already holds.",
            kind="optpart.study.store:KIND",
            updated=True,
        ),
    ] = None,
    output: Annotated[
        Path | None, file_to_write("-o", "--output", help="Also write .csv or .json.")
    ] = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV to standard output.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="A table per instance, however many there are.")
    ] = False,
    axis: Annotated[
        bool,
        typer.Option(
            "--axis",
            help="Split each pair's loss into the part due to its placement and the part due to "
            "its order; --time-limit is for each solve.",
        ),
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List the instance library, or print it as JSON.")
    ] = False,
) -> None:
    """Measure how far methods are from the optimum, or from the best known values and bounds.

    Every schedule is verified. Standard error names each method that fails,
    each claim that a verified schedule contradicts, and each wrong row of the
    store or the library; none of them is used. The rest of the table stands,
    and the exit code is 1. It is 130 for a table that an interrupt has cut
    short, and 5 if a process failed in a run that has no proof without it.
    """
    if list_:
        given = files or set_name or data or method or program or store or output or csv or axis
        if given or engine != "local":
            raise InputError("--list", "used with what runs methods", "leave out all but --json")
        _list_library(json)
        return

    from contextlib import nullcontext

    from optpart.base.files import check_target, write_text, written_first
    from optpart.interop.formats.json import pretty
    from optpart.kernels.all import expect
    from optpart.methods.program import register_program
    from optpart.solution.result import Budget, Progress
    from optpart.study.engine import choose
    from optpart.study.gap import chosen_methods, sweep
    from optpart.study.report import gap_table
    from optpart.study.report.console import plain_console
    from optpart.study.report.progress import ProgressLine, position
    from optpart.study.run import Run
    from optpart.study.store import Store

    console = plain_console()
    check_seed(seed, seeds, "--seed and --seeds")
    if program and (axis or engine != "local"):
        raise InputError("--program", "used with --axis or --engine", "leave those out")
    if axis:
        if csv or engine != "local" or store is not None:
            raise InputError("--axis", "used with --csv, --engine or --store", "leave those out")
        budget = Budget(time_limit, workers, memory=memory_limit)
        instances = open_instances(files, set_name, data)
        seeded = range(seed, seed + seeds)
        _gap_by_axis(
            console, instances, method, budget, seeded, output, json,
            whole_library=not files and set_name is None,
        )  # fmt: skip
        return
    if output is not None:
        if output.suffix not in gap_table.KINDS:
            problem = f"unknown suffix {output.suffix!r}"
            raise InputError("", problem, "use .csv or .json", str(output))
        check_target(output, gap_table.KINDS[output.suffix])
    if json and csv:
        raise InputError("--json", "used together with --csv", "choose one of them")
    programs = [register_program(command) for command in dict.fromkeys(program or [])]
    names = chosen_methods([*method, *programs] if method else [])  # all programs, too
    spread = choose(engine, workers)
    instances = open_instances(files, set_name, data)
    note_limits(instances)
    line, began = ProgressLine(), time.monotonic()

    def watch(run: Run, step: Progress | None) -> None:
        line.label = position(len(comparisons), len(instances), time.monotonic() - began)
        line(f"{run.instance.name}  {run.method}", step)

    comparisons: list[Comparison] = []
    fault: OptpartError | None = None
    interrupted = False
    with nullcontext() if store is None else Store(store) as kept:
        expect()
        try:
            for comparison in sweep(
                instances,
                names,
                budget=Budget(time_limit, workers, memory=memory_limit),
                seeds=range(seed, seed + seeds),
                engine=spread,
                store=kept,
                watch=watch,
            ):
                line.clear()
                if _is_empty(comparison):
                    interrupted = True
                    continue
                comparisons.append(comparison)
                if not (json or csv):
                    short = len(instances) > _TABLES and not details
                    show = gap_table.print_line if short else gap_table.print_comparison
                    show(console, comparison)
        except OptpartError as error:  # the store or standard output cannot be written any more
            line.clear()
            if not comparisons or isinstance(error, ReaderGoneError):
                raise
            fault = error
        except KeyboardInterrupt:  # between two runs
            interrupted = True
    line.clear()
    if not comparisons:
        raise KeyboardInterrupt  # the sweep ends by itself if it is interrupted within a run
    if fault is not None:
        note("stopped: the results so far follow")
    interrupted = interrupted or any(c.interrupted for c in comparisons)
    if interrupted and fault is None:
        whole = sum(not c.interrupted for c in comparisons)
        note(f"the table is partial: {whole} of {len(instances)} instances are done")

    def write(path: Path) -> None:
        as_csv = path.suffix == ".csv"
        document = gap_table.to_document(comparisons)
        text = gap_table.to_csv(comparisons) if as_csv else pretty(document)
        write_text(path, text, gap_table.KINDS[path.suffix])

    with written_first(write, output):
        if json:
            put(pretty(gap_table.to_document(comparisons)))
        elif csv:
            put(gap_table.to_csv(comparisons))
        elif len(comparisons) > 1:
            gap_table.print_summary(console, comparisons)
    if fault is not None:
        raise fault
    _say_findings(
        [f for c in comparisons for f in c.findings],
        whole_library=not files and set_name is None,
        interrupted=interrupted,
    )
    if all(comparison.reference.infeasible for comparison in comparisons):
        raise typer.Exit(3)
    results = [result for comparison in comparisons for result in comparison.results]
    if any(map(is_incomplete, results)):
        raise typer.Exit(INCOMPLETE)
    if all(comparison.reference.kind in ("optimum", "infeasible") for comparison in comparisons):
        raise typer.Exit  # nothing is missing, whatever failed on the way


def _is_empty(comparison: Comparison) -> bool:
    """Return whether the user interrupted before any method had found or proven anything."""
    from optpart.study.run import interrupted

    return not comparison.reference.infeasible and all(
        interrupted(result) and result.makespan is None and result.lower_bound is None
        for result in comparison.results
    )


def _say_findings(
    findings: list[Finding], *, whole_library: bool, interrupted: bool = False
) -> None:
    """List the wrong rows that were left out; exit after an interrupt, or if there are any."""
    from optpart.study import library

    lines = [str(finding) for finding in findings]
    if whole_library and library.unreadable():
        from optpart.solution.audit import one_line

        named = {finding.instance for finding in findings}
        lines += [
            one_line(f"{name}: library: {problem}")
            for name, problem in library.unreadable().items()
            if name not in named
        ]
    for line in lines:
        complain(line)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if lines:
        raise typer.Exit(1)


def _gap_by_axis(
    console: Any,
    instances: list[Instance],
    names: list[str] | None,
    budget: Budget,
    seeds: range,
    output: Path | None,
    json: bool,
    whole_library: bool,
) -> None:
    """Print how much of each pair's loss is due to its placement, and how much to its order."""
    from optpart.base.files import check_target, write_text, written_first
    from optpart.interop.formats.json import pretty
    from optpart.kernels.all import expect
    from optpart.methods import registry
    from optpart.solution.result import Status
    from optpart.study.attribution import Division, divide
    from optpart.study.report import axis_table
    from optpart.study.report.progress import ProgressLine, position

    if output is not None:
        if output.suffix != ".json":
            raise InputError("", f"unknown suffix {output.suffix!r}", "use .json", str(output))
        check_target(output, axis_table.KIND)
    pairs = names or registry.heuristics()
    if "all" in pairs:
        pairs = [*registry.pairs(), *(name for name in pairs if name != "all")]
    note_limits(instances)
    line, began = ProgressLine(), time.monotonic()
    done: list[Division] = []
    expect()
    try:
        for instance in instances:
            where = position(len(done), len(instances), time.monotonic() - began)
            line.label = f"{where}{instance.name}  "
            done.append(divide(instance, pairs, budget=budget, seeds=seeds, watch=line))
            line.clear()
            if not json:
                axis_table.print_division(console, done[-1])
    except KeyboardInterrupt:
        line.clear()
        if not done:
            raise
        note(f"the table is partial: {len(done)} of {len(instances)} instances are done")
    document = pretty(axis_table.to_document(done))

    with written_first(lambda path: write_text(path, document, axis_table.KIND), output):
        if json:
            put(document)
    _say_findings(
        [f for d in done for f in d.findings],
        whole_library=whole_library,
        interrupted=len(done) < len(instances),
    )
    if all(division.free.status is Status.INFEASIBLE for division in done):
        raise typer.Exit(3)


def _list_library(json: bool) -> None:
    from optpart.base.rounding import number, percent
    from optpart.solution.gap import gap
    from optpart.study import library
    from optpart.study.report.console import plain_console

    if json:
        from optpart.interop.formats.json import pretty
        from optpart.study.dataset import versions

        listed = [_listed(row) for row in library.index().values()]
        put(pretty({"instances": listed, "sets": [*versions().values()]}))
        _say_findings([], whole_library=True)
        return
    # No more columns than a terminal of 80 holds, beside the longest name and makespan.
    heads = ("name", "vertices", "devices", "best known", "gap")
    rows = [
        (row.name, str(row.vertices), str(row.devices), number(row.makespan, up=True),
         percent(gap(row.makespan, row.bound)))
        for row in library.index().values()
    ]  # fmt: skip
    plain_console().show_rows(heads, rows, left=("name",))
    _say_findings([], whole_library=True)


def _listed(row: Known) -> dict[str, object]:
    """Return a row of the library for JSON, with exact numbers as text."""
    return {
        "name": row.name,
        "group": row.group,
        "small": row.small,
        "vertices": row.vertices,
        "edges": row.edges,
        "devices": row.devices,
        "makespan": None if row.makespan is None else str(row.makespan),
        "lower_bound": None if row.bound is None else str(row.bound),
        "status": row.status,
    }
