"""``optpart strategy compile``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optpart.base.terminal import say
from optpart.commands.options import (
    NewInstance,
    say_size,
)

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import ItsCluster, ItsModel, StrategyPath, say_remarks


def compile_(
    strategy: StrategyPath,
    output: NewInstance,
    model: ItsModel = None,
    cluster: ItsCluster = None,
) -> None:
    """Write a strategy as an instance, for all other commands of optpart."""
    from optpart.interop.formats import native
    from optpart.training_api import verify_strategy

    found = verify_strategy(strategy, model=model, cluster=cluster)
    instance = found.compiled.instance
    native.write(instance, output)
    say_remarks(found.remarks)
    for fault in found.faults:
        say(f"{strategy}: {fault}")
    say_size(instance, output)
