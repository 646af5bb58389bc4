"""Maximum successor rank, computed by hand ([L] §5.4, eq. 5.2; [M] eq. 13)."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import chain

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.msr import msr
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.simulator import Scheduler, simulate


def starts(
    builder: GraphBuilder, away: dict[str, int], scheduler: Scheduler
) -> dict[str, Fraction]:
    """Start of every vertex; on device 0 all but those ``away``; speeds of 50, links of 10."""
    graph = builder.build()
    devices = np.array([away.get(name, 0) for name in graph.names], dtype=np.int32)
    instance = Instance(graph, Cluster.uniform(int(devices.max()) + 1, 50, 10))
    schedule = simulate(instance, Partition(devices), scheduler)
    return dict(zip(graph.names, schedule.start.fractions(), strict=True))


def first(
    builder: GraphBuilder, weights: tuple[int, int, int, int], away: dict[str, int] | None = None
) -> str:
    """Which of ``p`` and ``q``, both executable at once on device 0, runs first."""
    begun = starts(builder, away or {}, partial(msr, weights=weights))
    assert {begun["p"], begun["q"]} >= {0}
    return min("pq", key=lambda name: begun[name])


def two(*successors: tuple[str, str]) -> GraphBuilder:
    """``p`` and ``q`` and what they feed; ``p`` has the longer path and goes first if equal."""
    builder = GraphBuilder()
    for name in dict.fromkeys(chain("pq", *successors)):
        builder.vertex(name, 50)
    for source, name in successors:
        builder.edge(source, name, size=10)
    return builder


class TestWeights:
    """The four terms one by one: only the weight that is asked for is not 0."""

    def test_alpha_counts_successors(self) -> None:
        graph = two(("p", "a"), ("a", "c"), ("q", "a"), ("q", "b"))
        assert first(graph, (1, 0, 0, 0)) == "q"
        assert first(graph, (0, 0, 0, 0)) == "p"

    def test_a_successor_by_several_tensors_counts_once(self) -> None:
        graph = two(("p", "a"), ("p", "b"), ("q", "c"))
        graph.output("q", 10)
        graph.edge("q", "c", 1).edge("q", "c", None)
        assert first(graph, (1, 0, 0, 0)) == "p"

    def test_beta_counts_successors_on_other_devices(self) -> None:
        graph = two(("p", "a"), ("a", "c"), ("q", "b"))
        assert first(graph, (0, 1, 0, 0), {"b": 1}) == "q"
        assert first(graph, (1, 0, 0, 0), {"b": 1}) == "p"

    def test_gamma_counts_successors_that_wait_for_nothing_else(self) -> None:
        """a waits for p and q, b for q alone."""
        graph = two(("p", "a"), ("a", "c"), ("q", "a"), ("q", "b"), ("p", "d"), ("q", "d"))
        assert first(graph, (0, 0, 1, 0)) == "q"
        assert first(graph, (0, 0, 0, 1)) == "p"

    def test_delta_counts_those_whose_device_is_idle(self) -> None:
        """Device 1 runs z at the decision, device 2 nothing."""
        graph = two(("p", "a"), ("a", "c"), ("q", "b")).vertex("z", 500)
        away = {"a": 1, "z": 1, "b": 2}
        assert first(graph, (0, 0, 0, 1), away) == "q"
        assert first(graph, (0, 0, 1, 0), away) == "p"

    def test_delta_does_not_count_the_device_that_decides(self) -> None:
        graph = two(("p", "a"), ("a", "c"), ("q", "b"))
        assert first(graph, (0, 0, 0, 1), {"b": 1}) == "q"
        assert first(graph, (0, 0, 0, 1)) == "p"

    def test_delta_does_not_count_what_waits_for_more(self) -> None:
        graph = two(("p", "a"), ("a", "c"), ("q", "b"), ("z", "b"))
        assert first(graph, (0, 0, 0, 1), {"b": 1, "z": 2}) == "p"


def test_idle_is_what_a_device_is_at_the_decision() -> None:
    """At 0 device 1 runs z until 2; at 1 still, so q gains nothing; at 2 it does.

    Device 0 has x (1), then chooses among p and q.
    """
    for length, expected in ((100, "p"), (40, "q")):
        graph = GraphBuilder().vertex("x", 50).vertex("p", 50).vertex("q", 50).vertex("a", 50)
        graph.vertex("c", 50).vertex("b", 50).vertex("z", length)
        for source, target in (("x", "p"), ("x", "q")):
            graph.edge(source, target, None)
        for source, target in (("p", "a"), ("a", "c"), ("q", "b")):
            graph.edge(source, target, size=10)
        begun = starts(graph, {"b": 1, "z": 1}, partial(msr, weights=(0, 0, 0, 1)))
        assert min("pq", key=lambda name: begun[name]) == expected


class TestFigure51:
    """Devices of 50 operations and links of 10 a unit of time, as in [L] figure 5.1.

    p leads to the longer path on its own device, q to two vertices on a device that has nothing to
    do. PCT looks at the path alone and leaves that device idle.
    """

    @pytest.fixture
    def graph(self) -> GraphBuilder:
        builder = GraphBuilder().vertex("p", 50).vertex("r", 250)
        builder.vertex("q", 50, outputs=[10]).vertex("s", 100).vertex("t", 100)
        return builder.edge("p", "r", None).edge("q", "s").edge("q", "t")

    def test_pct_runs_the_longest_path_first(self, graph: GraphBuilder) -> None:
        """Path computation times: p 6, r 5, q 1 + 1 + 2."""
        assert starts(graph, {"s": 1, "t": 1}, pct) == {"p": 0, "r": 1, "q": 6, "s": 8, "t": 10}

    def test_msr_wakes_the_idle_device(self, graph: GraphBuilder) -> None:
        """Ranks: p 1 + 1, q 2 · (1 + 1 + 1 + 5); the makespan is 7 instead of 12."""
        assert starts(graph, {"s": 1, "t": 1}, msr) == {"q": 0, "p": 1, "r": 2, "s": 2, "t": 4}
