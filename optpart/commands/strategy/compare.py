"""``optpart strategy compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.terminal import put
from optpart.commands.options import (
    Json,
    MemoryLimit,
    Seed,
    spread,
    time_limit,
)

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import Asked, say_remarks


@spread
def compare(
    asked: Asked,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="A method to compare; repeatable. Default: all."),
    ] = None,
    time_limit: Annotated[float, time_limit("Seconds for each method, and for the bound.")] = 20.0,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare methods on one model and cluster: times, and gaps to a proven lower bound."""
    from optpart.interop.formats.json import pretty
    from optpart.study.report.console import plain_console
    from optpart.study.report.strategy.table import comparison_document, print_comparison
    from optpart.training_api import compare_strategies

    question = asked.question()
    found = compare_strategies(
        question, method or (), seconds=remaining(time_limit), seed=seed, memory=memory_limit
    )
    if json:
        put(pretty(comparison_document(question, found)))
    else:
        say_remarks(question.remarks)
        print_comparison(plain_console(), question, found)
    if found.best is None:
        raise typer.Exit(3 if found.bound.infeasible else 4)
