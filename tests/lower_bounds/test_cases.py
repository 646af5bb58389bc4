"""Cases: two vertices share a device and take turns, or do not and a tensor crosses."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.exact.enumeration import enumerate_all
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.cases import Growth, cases_bound, heads_of
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.windows import windows
from optpart.problem.model import Communication
from optpart.testing.draw import draw_instance

ALL = Growth(32, 40, np.inf)


def forks(number: int, size: int = 1) -> Instance:
    """Forks of two branches in a row, each joined by the next; a tensor takes ``size`` to cross."""
    builder = GraphBuilder().vertex("f0", 1, outputs=[size])
    for i in range(number):
        builder.vertex(f"f{i + 1}", 1, outputs=[size])
        for name in (f"a{i}", f"b{i}"):
            builder.vertex(name, 1, outputs=[size]).edge(f"f{i}", name).edge(name, f"f{i + 1}")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1))


class TestByHand:
    def test_branches_take_turns_or_a_tensor_crosses(self) -> None:
        """Together: 1 + 2 + 1. Apart, one of them waits for a tensor: 1 + 1 + 1 + 1 + 1."""
        assert critical_path_bound(forks(1)) == 3
        assert cases_bound(forks(1)) == 4

    @pytest.mark.parametrize("number", [2, 5])
    def test_gains_along_a_path_add_up(self, number: int) -> None:
        assert cases_bound(forks(number)) == 3 * number + 1

    def test_what_crosses_in_no_time_is_apart(self) -> None:
        graph = GraphBuilder().vertex("f", 1).vertex("a", 1).vertex("b", 1).vertex("j", 1)
        for name in "ab":
            graph.edge("f", name, None).edge(name, "j", None)
        assert cases_bound(Instance(graph.build(), Cluster.uniform(2))) == 3

    def test_sending_takes_time_only_between_devices(self) -> None:
        """On one device, the branches take turns; apart, one is sent there and back."""
        fork = forks(1)
        model = Model(communication="sendrecv", send_ops=Fraction(5))
        assert cases_bound(Instance(fork.graph, fork.cluster, model=model)) == 4

    def test_the_sender_takes_the_time_to_send(self) -> None:
        """1 + 4/2 + 3 + 1; forwards and backwards, the slower receiver counts for nothing."""
        builder = GraphBuilder().vertex("a", 2, outputs=[3], devices=["fast"])
        builder.vertex("b", 1, devices=["slow"]).edge("a", "b")
        cluster = Cluster.of([Device("fast", 2), Device("slow")], bandwidth=1)
        model = Model(communication="sendrecv", send_ops=Fraction(4))
        assert cases_bound(Instance(builder.build(), cluster, model=model)) == 7

    def test_a_device_that_is_too_small_is_in_no_case(self) -> None:
        builder = GraphBuilder().vertex("a", 2, outputs=[3], device_type="gpu")
        builder.vertex("b", 2).edge("a", "b")
        cluster = Cluster.of([Device("c", type="cpu"), Device("g", 2, type="gpu")], bandwidth=1)
        assert cases_bound(Instance(builder.build(), cluster)) == 2

    def test_separated_vertices_share_no_device(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[5]).vertex("b", 1).edge("a", "b")
        graph = builder.separate("a", "b").build()
        assert cases_bound(Instance(graph, Cluster.uniform(2, bandwidth=1))) == 7


def test_it_goes_no_higher_than_a_schedule() -> None:
    assert cases_bound(forks(5), makespan=Fraction(14)) == 14


def test_without_time_it_is_a_bound_of_paths() -> None:
    assert cases_bound(forks(5), seconds=0.0) == critical_path_bound(forks(5))


@pytest.mark.parametrize("communication", get_args(Communication))
def test_heads_and_tails_hold_in_every_optimal_schedule(communication: Communication) -> None:
    """No vertex starts before its head, nor ends with less than its tail left."""
    compared = 0
    for seed, backwards in product(range(30), (False, True)):
        instance = draw_instance(seed, communication, "none", vertices=(4, 6), devices=(2, 3))
        best = enumerate_all(instance)
        grid = Grid.of(instance)
        window = windows(instance, grid)
        if best.schedule is None or window.bound is None:
            continue
        heads = heads_of(instance, grid, window, backwards=backwards)
        list(heads.rise(ALL))
        assert (heads.head >= (window.tail if backwards else window.head)).all()
        assert best.makespan is not None
        for v, d in enumerate(best.schedule.placement.tolist()):
            left = best.makespan - best.schedule.end(instance, v)
            least = grid.time(int(heads.head[v, d]))
            assert least <= (left if backwards else best.schedule.start[v])
            compared += 1
    assert compared > 150


def test_it_proves_more_than_paths_and_never_more_than_the_optimum() -> None:
    more = 0
    for seed in range(25):
        instance = draw_instance(seed, "delay", "none", vertices=(5, 7), devices=(2, 3))
        best = enumerate_all(instance).makespan
        if best is None:
            continue
        value = cases_bound(instance)
        assert value is not None
        path = critical_path_bound(instance)
        assert path is not None
        assert path <= value <= best
        more += value > path
    assert more > 3


def test_where_no_tensor_can_pass_there_is_no_schedule() -> None:
    builder = GraphBuilder().vertex("a", 1, outputs=[1], devices=["c"])
    builder.vertex("b", 1, devices=["g"]).edge("a", "b")
    cluster = Cluster.of([Device("c"), Device("g")], bandwidth=0)
    assert cases_bound(Instance(builder.build(), cluster)) is None
