"""``optpart strategy export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.terminal import note, put, say
from optpart.commands.options import (
    file_to_write,
)

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import ItsCluster, ItsModel, StrategyPath


def export(
    strategy: StrategyPath,
    to: Annotated[str, typer.Option(help="devices, torch-stages, ranks or dtensor.")],
    output: Annotated[
        Path | None, file_to_write("-o", "--output", help="Where to write; else printed.")
    ] = None,
    model: ItsModel = None,
    cluster: ItsCluster = None,
) -> None:
    """Hand a strategy to a runtime: devices of operations, stages, or batch sizes of ranks."""
    from optpart.training_api import export_strategy

    found = export_strategy(strategy, to=to, output=output, model=model, cluster=cluster)
    # What a text does not say must not get into it where it is printed.
    tell = note if output is None else say
    if output is None:
        put(found.text)
    for remark in found.remarks:
        tell(remark)
    if output is not None:
        say(f"→ {output}")
