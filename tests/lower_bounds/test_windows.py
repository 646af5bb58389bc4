"""Heads and tails: no schedule starts a vertex earlier, none has less to do after it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from relabelling import relabelled

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.kernels import ticks
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.cluster import Matrix
from optpart.problem.model import Communication
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

Table = list[list[Fraction | None]]


def computed(instance: Instance, limit: int | None = None) -> tuple[Grid, Windows]:
    grid = Grid.of(instance)
    assert grid.exact
    return grid, windows(instance, grid, None if limit is None else grid.floor(Fraction(limit)))


def times(grid: Grid, table: NDArray[np.int64]) -> Table:
    """Ticks as time; ``None`` is never."""
    return [[None if t >= NEVER else grid.time(int(t)) for t in row] for row in table]


def heads(instance: Instance, limit: int | None = None) -> Table:
    grid, window = computed(instance, limit)
    return times(grid, window.head)


def tails(instance: Instance, limit: int | None = None) -> Table:
    grid, window = computed(instance, limit)
    return times(grid, window.tail)


def bound(instance: Instance, limit: int | None = None) -> Fraction | None:
    grid, window = computed(instance, limit)
    return None if window.bound is None else grid.time(window.bound)


def chain(bandwidth: Matrix = 2, latency: Matrix = 0, model: Model | None = None) -> Instance:
    """a (6) → b (4) by a tensor of 8; d1 is twice as fast as d0."""
    graph = GraphBuilder().vertex("a", 6, outputs=[8]).vertex("b", 4).edge("a", "b").build()
    devices = [Device("d0", 1), Device("d1", 2)]
    return Instance(graph, Cluster.of(devices, bandwidth, latency), model or Model())


class TestHeads:
    def test_the_best_device_of_the_producer_counts(self) -> None:
        """On d0: 6, or 3 + 4 from d1. On d1: 6 + 4 from d0, or 3."""
        assert heads(chain()) == [[0, 0], [6, 3]]

    def test_a_cheap_crossing_brings_a_tensor_from_the_fast_device(self) -> None:
        assert heads(chain(bandwidth=4)) == [[0, 0], [5, 3]]

    def test_latency_counts(self) -> None:
        assert heads(chain(bandwidth=8, latency="1/2")) == [[0, 0], [Fraction(9, 2), 3]]

    def test_a_send_counts(self) -> None:
        """The send of 2 takes 1 on d1."""
        model = Model("sendrecv", send_ops=Fraction(2))
        assert heads(chain(bandwidth=8, model=model)) == [[0, 0], [5, 3]]

    @pytest.mark.parametrize("communication", ["link", "port"])
    def test_a_transfer_never_waits(self, communication: Communication) -> None:
        model = Model(communication)
        assert heads(chain(bandwidth=4, model=model)) == [[0, 0], [5, 3]]

    def test_the_latest_input_counts(self) -> None:
        builder = GraphBuilder().vertex("a", 3).vertex("b", 7).vertex("c", 1)
        graph = builder.edge("a", "c", None).edge("b", "c", None).build()
        assert heads(Instance(graph, Cluster.uniform(1))) == [[0], [0], [7]]

    def test_a_device_that_is_not_allowed_is_never_used(self) -> None:
        graph = GraphBuilder().vertex("a", 6, devices=["d0"], outputs=[8]).vertex("b", 4)
        devices = [Device("d0", 1), Device("d1", 2)]
        instance = Instance(graph.edge("a", "b").build(), Cluster.of(devices, bandwidth=2))
        assert heads(instance) == [[0, None], [6, 10]]

    def test_without_a_link_nothing_arrives(self) -> None:
        assert heads(chain(bandwidth=[[None, 0], [4, None]])) == [[0, 0], [5, 3]]
        assert heads(chain(bandwidth=[[None, 4], [0, None]])) == [[0, 0], [6, 3]]

    def test_a_unit_never_reaches_an_impossible_device(self) -> None:
        """a is on d0 only and nothing leaves that, so b cannot be on d1."""
        graph = GraphBuilder().vertex("a", 6, devices=["d0"], outputs=[8]).vertex("b", 4)
        devices = [Device("d0", 1), Device("d1", 2)]
        instance = Instance(graph.edge("a", "b").build(), Cluster.of(devices, bandwidth=0))
        assert heads(instance) == [[0, None], [6, None]]
        assert computed(instance)[1].possible.tolist() == [[True, False], [True, False]]

    def test_a_colocated_producer_is_on_the_same_device(self) -> None:
        graph = GraphBuilder().vertex("a", 6, outputs=[1]).vertex("b", 4).edge("a", "b")
        devices = [Device("d0", 1), Device("d1", 2)]
        cluster = Cluster.of(devices, bandwidth=None)
        assert heads(Instance(graph.build(), cluster)) == [[0, 0], [3, 3]]
        assert heads(Instance(graph.colocate("a", "b").build(), cluster)) == [[0, 0], [6, 3]]

    def test_given_times(self) -> None:
        builder = GraphBuilder().vertex("a").vertex("b")
        builder.output("a", 9, [[0, 5], [None, 0]])
        graph = builder.edge("a", "b").build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), durations=[[2, 9], [1, 1]])
        assert heads(instance) == [[0, 0], [2, 7]]


class TestTails:
    def test_the_best_device_of_the_consumer_counts(self) -> None:
        """From d0: 4, or 4 + 2 on d1. From d1: 4 + 4 on d0, or 2."""
        assert tails(chain()) == [[4, 2], [0, 0]]

    def test_a_cheap_crossing_leads_to_the_fast_device(self) -> None:
        assert tails(chain(bandwidth=8)) == [[3, 2], [0, 0]]

    def test_a_send_counts_on_the_sender(self) -> None:
        model = Model("sendrecv", send_ops=Fraction(1, 2))
        assert tails(chain(bandwidth=8, model=model)) == [[Fraction(7, 2), 2], [0, 0]]

    def test_a_colocated_consumer_is_on_the_same_device(self) -> None:
        graph = GraphBuilder().vertex("a", 6, outputs=[1]).vertex("b", 4).edge("a", "b")
        devices = [Device("d0", 1), Device("d1", 2)]
        cluster = Cluster.of(devices, bandwidth=None)
        assert tails(Instance(graph.build(), cluster)) == [[2, 2], [0, 0]]
        assert tails(Instance(graph.colocate("a", "b").build(), cluster)) == [[4, 2], [0, 0]]

    def test_missing_links_have_a_direction(self) -> None:
        assert tails(chain(bandwidth=[[None, 0], [8, None]])) == [[4, 2], [0, 0]]
        assert tails(chain(bandwidth=[[None, 8], [0, None]])) == [[3, 2], [0, 0]]


class TestBound:
    def test_each_unit_where_it_does_least_harm(self) -> None:
        """a on d1: 0 + 3 + 2."""
        assert bound(chain()) == 5

    def test_a_unit_counts_by_its_worst_member(self) -> None:
        """x and y share a device: x is best on d1, y on d0."""
        graph = GraphBuilder().vertex("x").vertex("y").build()
        rows = [[9, 1], [2, 8]]
        assert bound(Instance(graph, Cluster.uniform(2), durations=rows)) == 2
        together = GraphBuilder().vertex("x").vertex("y").colocate("x", "y").build()
        grid, window = computed(Instance(together, Cluster.uniform(2), durations=rows))
        assert times(grid, window.through) == [[9, 8]]
        assert window.bound is not None
        assert grid.time(window.bound) == 8

    def test_an_empty_graph_takes_no_time(self) -> None:
        assert bound(Instance(GraphBuilder().build(), Cluster.uniform(2))) == 0

    def test_no_device_left_is_infeasible(self) -> None:
        graph = GraphBuilder().vertex("a", 6, devices=["d0"], outputs=[8])
        graph.vertex("b", 4, devices=["d1"]).edge("a", "b")
        assert bound(Instance(graph.build(), Cluster.uniform(2, bandwidth=0))) is None


class TestLimit:
    def test_drops_devices_that_are_too_slow(self) -> None:
        """Through d0: a 6 + 4, b 6 + 4. A schedule of 9 has both on d1."""
        _, window = computed(chain(), 10)
        assert window.possible.all()
        _, window = computed(chain(), 9)
        assert window.possible.tolist() == [[False, True], [False, True]]

    def test_remaining_devices_make_heads_and_tails_larger(self) -> None:
        """With 9 as limit a slow device is out for a, and with it b starts later elsewhere."""
        assert heads(chain(bandwidth=8)) == [[0, 0], [4, 3]]
        graph = GraphBuilder().vertex("a", outputs=[8]).vertex("b").edge("a", "b").build()
        rows = [[1, 3], [9, 4]]
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), durations=rows)
        assert heads(instance) == [[0, 0], [1, 3]]
        # b on d0 makes 10; without that a on d0 makes 1 + 8 + 4.
        assert heads(instance, 9) == [[None, 0], [None, 3]]
        assert bound(instance, 9) == 7

    def test_below_the_optimum_nothing_is_left(self) -> None:
        assert bound(chain(), 5) == 5
        assert bound(chain(), 4) is None


class TestNothingIsLost:
    """Over random instances, against the schedule that brute force proves optimal."""

    @pytest.mark.parametrize("slack", [0, 1])
    def test_an_optimal_schedule_keeps_every_window(self, slack: int) -> None:
        rng = np.random.default_rng(1)
        for draw in range(100):
            instance = random_instance(rng, 6, 3, memory="estimate" if draw % 2 else "none")
            check_optimal_schedule(instance, slack)

    def test_on_a_rounded_grid_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        rng = np.random.default_rng(2)
        rounded = 0
        for _ in range(100):
            instance = random_instance(rng, 6, 3, exact=False, longest=9)
            rounded += check_optimal_schedule(instance, 0, most=int(rng.integers(8, 2000)))
        assert rounded > 25

    def test_relabelling_changes_nothing(self) -> None:
        rng = np.random.default_rng(3)
        for _ in range(50):
            instance = random_instance(rng, 8, 4)
            other = relabelled(instance, rng)
            limit = int(rng.integers(5, 30))
            assert bound(instance) == bound(other)
            assert bound(instance, limit) == bound(other, limit)


def check_optimal_schedule(instance: Instance, slack: int, most: int = 2**40) -> bool:
    """Assert that windows under a limit hold an optimal schedule; say whether times are rounded."""
    best = optimum(instance)
    if best is None:
        return False
    schedule = retime(instance, best.placement, best.order)
    grid = Grid.of(instance, best.makespan, most)
    limit = grid.floor(best.makespan) + slack
    window = windows(instance, grid, limit)
    assert window.bound is not None
    assert window.bound <= limit
    for v, d in enumerate(best.placement):
        assert window.possible[instance.unit_of[v], d]
        assert window.head[v, d] <= grid.floor(schedule.start[v])
        left = best.makespan - schedule.end(instance, v)
        assert grid.time(int(window.tail[v, d])) <= left
    return not grid.exact
