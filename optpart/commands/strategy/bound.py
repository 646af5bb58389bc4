"""``optpart strategy bound``."""

from __future__ import annotations

import typer

from optpart.commands.options import Json, TimeLimit
from optpart.commands.strategy.options import (
    Batch,
    ClusterName,
    Compiler,
    Costs,
    Grouping,
    Groups,
    Minibatch,
    Model,
    Shape,
    Slowness,
    compiler_options,
    say_remarks,
    told,
)
from optpart.terminal import put, say


def bound(
    model: Model,
    cluster: ClusterName,
    batch: Batch,
    groups: Groups = 20,
    grouping: Grouping = "contiguous",
    compiler: Compiler = None,
    minibatch: Minibatch = None,
    slowness: Slowness = None,
    shape: Shape = None,
    costs: Costs = None,
    time_limit: TimeLimit = 30.0,
    json: Json = False,
) -> None:
    """Prove how long an iteration takes at least, whatever the strategy."""
    from optpart.formats.json import pretty
    from optpart.report.strategy.table import bound_document, heading, said_bound
    from optpart.training_api import strategy_bound, strategy_question

    question = strategy_question(
        model,
        cluster,
        batch,
        groups=groups,
        grouping=grouping,
        options=compiler_options(compiler),
        **told(minibatch, slowness, shape, costs),
    )
    found = strategy_bound(question, seconds=time_limit)
    if json:
        put(pretty(bound_document(question, found)))
    else:
        say_remarks(question.remarks)
        say(heading(question))
        say(said_bound(found))
    if found.value is None:
        raise typer.Exit(3 if found.infeasible else 4)
