"""The kernel of labels: when the rest of a part is refuted."""

import numpy as np
import pytest

from optpart.exact.series.kernel import Limits, Prices, Scratch, Tasks, _refuted, table
from optpart.exact.series.lattice import NEVER, Lattice

_DELAY = 4


def _answer(upper, *, arcs=(), run=((5, -1), (5, -1)), tail=3, price=(0, 0), cost=0, rest_cost=0):
    """Ask for two vertices that wait; each has a tail, which includes all that follows."""
    run = np.array(run)
    count, devices = run.shape
    remain = np.where(run >= 0, run + tail, NEVER)[None]
    first = np.cumsum([0, *(sum(u == x for u, _ in arcs) for x in range(count))])
    delays = np.full((1, devices, devices), _DELAY)
    delays[0][np.diag_indices(devices)] = 0
    nothing = np.zeros(0, dtype=np.int64)
    lattice = Lattice(
        vertices=np.arange(count),
        level=nothing,
        slot_first=np.array([0, count]),
        slot_vertex=np.arange(count),
        step_first=nothing,
        step_vertex=nothing,
        step_slot=nothing,
        step_to=nothing,
        step_need=nothing,
        move_first=nothing,
        move_from=nothing,
        move_delay=nothing,
        move_rule=nothing,
        rest=np.ones((1, count), dtype=np.bool_),
        arc_first=first,
        arc_to=np.array([w for _, w in arcs], dtype=np.int64),
        arc_delay=np.zeros(len(arcs), dtype=np.int64),
    )
    tasks = Tasks(
        duration=run,
        delays=delays,
        capacity=np.array([5, -1]),
        place=1 + np.arange(count),
        rest_need=nothing,
        cost=np.zeros_like(run),
    )
    prices = Prices(
        price=np.array([price]) << 3,
        shift=3,
        remain=remain,
        rest_cost=np.array([[rest_cost]]),
        after=np.zeros((1, devices), dtype=np.int64),
    )
    limits = Limits(
        upper=upper, beam=1, most=1, pareto=True, whole=True, open_end=True, by_end=False
    )
    time = np.zeros((1, 1 + devices + count * devices), dtype=np.int64)
    (row,) = table(lattice, time, np.array([cost]), np.array([[7, 2]]))
    return _refuted(lattice, tasks, prices, limits, row, 0, Scratch.of(count, devices))


def _least(**case):
    """Return the least limit that is not refuted."""
    return next(upper for upper in range(100) if not _answer(upper, **case))


def test_vertices_on_the_same_device_run_one_after_the_other():
    assert _least() == 5 + 5 + 3 + 1


@pytest.mark.parametrize("other", [5, -1])
def test_where_two_devices_suit_them_they_share_the_load(other):
    assert _least(run=((5, 5), (5, other), (6, 6))) == -(-(5 + 5 + 6) // 2) + 3 + 1


def test_a_successor_waits_for_its_input_from_another_device():
    assert _least(run=((5, -1), (-1, 6)), arcs=((0, 1),)) == 5 + _DELAY + 6 + 3 + 1


def test_vertices_without_a_device_in_time_refute():
    assert _answer(99, run=((5, -1), (-1, -1)))


@pytest.mark.parametrize(
    ("case", "ticks"),
    [
        ({"cost": 6}, 6),
        ({"rest_cost": 6}, 6),
        ({"price": (3, 0)}, 3 * (7 - 5)),
        ({"price": (0, 3)}, 0),  # that device has no limit
    ],
)
def test_memory_adds_to_the_time(case, ticks):
    assert _least(**case) == _least() + ticks
