"""The order of execution that [G] gives a compiled strategy (§4.2)."""

from __future__ import annotations

from optpart.solution.schedule import Schedule
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate
from optpart.training.compiled import Compiled


def by_rank(compiled: Compiled) -> Schedule:
    """Return the schedule of a compiled strategy in [G]'s order (§4.2)."""
    return simulate(compiled.instance, Partition(compiled.placement), heterog)
