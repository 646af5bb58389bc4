"""``optpart simulate``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from optpart.base.limits import MOST_RUNS, check_seed
from optpart.base.terminal import put
from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import File, Json, ResultFile, Seed
from optpart.commands.results import leave


def simulate(
    file: File,
    method: Annotated[
        str, typer.Option("--method", "-m", help="A pair such as heft+pct; see 'optpart methods'.")
    ] = "heft+pct",
    start: Annotated[
        Path | None, typer.Option(help="Take the placement from this result file.")
    ] = None,
    runs: Annotated[
        int, typer.Option(help="Runs, with consecutive seeds.", min=1, max=MOST_RUNS)
    ] = 1,
    seed: Seed = 0,
    output: ResultFile = None,
    json: Json = False,
) -> None:
    """Execute the graph under a placement and a scheduling strategy."""
    from optpart.base.files import written_first
    from optpart.interop.formats import result as result_format
    from optpart.interop.formats.json import pretty
    from optpart.study.report import simulation

    check_seed(seed, runs, "--seed and --runs")
    instance = open_instance(file)
    note_limits([instance])
    placed = None if start is None else result_format.read_schedule(start, instance).placement
    runs_ = simulation.run(instance, method, placed, range(seed, seed + runs))
    found = [run for run in runs_ if run.result.schedule is not None]
    best = min(found, key=lambda run: run.result.makespan or 0) if found else runs_[0]
    with written_first(partial(result_format.write, best.result), output):
        if json:
            put(pretty(simulation.to_document(best)))
        else:
            simulation.print_runs(runs_)
    leave(best.result)
