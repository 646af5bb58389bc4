"""``optpart strategy plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optpart.commands.options import (
    Picture,
)

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import ItsCluster, ItsModel, StrategyPath


def plot(
    strategy: StrategyPath,
    output: Picture,
    shares: Annotated[
        bool,
        typer.Option("--shares", help="Draw which device computes how much of each group."),
    ] = False,
    model: ItsModel = None,
    cluster: ItsCluster = None,
) -> None:
    """Draw the iteration, devices and links over time, or the shares, as PNG or SVG."""
    from optpart.training_api import draw_strategy

    draw_strategy(strategy, output, shares=shares, model=model, cluster=cluster)
