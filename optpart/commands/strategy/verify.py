"""``optpart strategy verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from optpart.base.terminal import put, say
from optpart.commands.options import (
    Json,
)

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import ItsCluster, ItsModel, StrategyPath, say_remarks


def verify(
    strategy: StrategyPath,
    model: ItsModel = None,
    cluster: ItsCluster = None,
    json: Json = False,
) -> None:
    """Compile and execute a strategy again, and check links, memory and what the file claims."""
    from optpart.interop.formats.json import pretty
    from optpart.study.report.strategy.table import check_document, said_check
    from optpart.training_api import verify_strategy

    found = verify_strategy(strategy, model=model, cluster=cluster)
    if json:
        put(pretty(check_document(found)))
    else:
        say_remarks(found.remarks)
        for fault in found.faults:
            say(fault)
        if not found.faults:
            say(f"{strategy}: {said_check(found)}")
    if found.faults:
        raise typer.Exit(1)
