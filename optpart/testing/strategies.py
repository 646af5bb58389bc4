"""Hypothesis strategies for the draws of :mod:`optpart.testing.draw`, for small counterexamples."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.solution.schedule import crossings
from optpart.testing.draw import Options, Shape, drawn
from optpart.testing.pick import Pick
from optpart.testing.solutions import Step, allowed_placements, picked_order


def _drawing(draw: st.DrawFn) -> Pick:
    return lambda low, high: draw(st.integers(low, high))


@st.composite
def instances(
    draw: st.DrawFn,
    max_vertices: int = 5,
    max_devices: int = 3,
    communication: Communication = "delay",
    memory: Memory = "none",
    **options: Unpack[Options],
) -> Instance:
    """Return a strategy for the instances of :func:`~optpart.testing.draw.random_instance`."""
    shape = Shape((1, max_vertices), (1, max_devices), communication, memory, **options)
    return drawn(_drawing(draw), shape)


@st.composite
def solutions(
    draw: st.DrawFn,
    max_vertices: int = 5,
    max_devices: int = 3,
    communication: Communication = "delay",
    memory: Memory = "none",
    **options: Unpack[Options],
) -> tuple[Instance, NDArray[np.int32], list[Step]]:
    """Return a strategy for an instance, an allowed placement and an order of all its steps."""
    pick = _drawing(draw)
    shape = Shape((1, max_vertices), (1, max_devices), communication, memory, **options)
    instance = drawn(pick, shape)
    placements = allowed_placements(instance)
    assume(placements)
    placement = placements[pick(0, len(placements) - 1)]
    return instance, placement, picked_order(pick, instance, crossings(instance, placement))
