"""``optpart strategy solve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.terminal import put, say
from optpart.commands.options import (
    Json,
    MemoryLimit,
    Seed,
    TimeLimit,
    spread,
)
from optpart.commands.options import output as written

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import Asked, say_remarks


@spread
def solve(
    asked: Asked,
    method: Annotated[
        str, typer.Option("--method", "-m", help="See 'optpart strategy compare'.")
    ] = "search",
    order: Annotated[
        str,
        typer.Option(
            help="rank (that of HeteroG), or a method of 'optpart methods', which then has the "
            "time limit once more."
        ),
    ] = "rank",
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None, written("optpart.applications.training.strategy_file:KIND")
    ] = None,
    json: Json = False,
) -> None:
    """Find a strategy, and prove how far from optimal it can be."""
    from optpart.base.files import written_first
    from optpart.interop.formats.json import pretty
    from optpart.study.report.strategy.table import failure_document, said_solution
    from optpart.training_api import solve_strategy

    question = asked.question()
    found = solve_strategy(
        question, method, order=order, seconds=remaining(time_limit), seed=seed, memory=memory_limit
    )
    save = output if found.made.feasible else None
    with written_first(found.save, save):
        if json:
            feasible = found.made.feasible
            put(found.dumps() if feasible else pretty(failure_document(found)))
        else:
            say_remarks(question.remarks)
            for line in said_solution(found):
                say(line)
            if save is not None:
                say(f"→ {save}")
    if not found.made.feasible:
        raise typer.Exit(3 if found.bound.infeasible else 4)
