"""What a search computes of the bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.lower_bounds.best import BOUNDS, Bound, LowerBound
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.search import bounding


@pytest.mark.parametrize("brief", [False, True])
def test_what_a_search_has_computed_before_is_not_computed_again(
    monkeypatch: pytest.MonkeyPatch, brief: bool
) -> None:
    graph = GraphBuilder().vertex("a", 1).build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1), name="one vertex")
    computed: list[str] = []

    def best_bound(*_: object, among: list[Bound]) -> LowerBound:
        computed.extend(row.name for row in among)
        return LowerBound("one", Fraction(1), 0.0)

    monkeypatch.setattr(bounding, "best_bound", best_bound)
    bounding.bounded(instance, 1.0, None, brief=brief)
    # Without a need to be brief, destructive bounds begin with cases.
    known = {"critical-path", "load", "branching" if brief else "cases"}
    assert computed == [name for name in BOUNDS if name not in known]


def test_intervals_see_what_paths_and_loads_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors take so long to cross that a fork runs on one device, one vertex after another."""
    graph = GraphBuilder().vertex("fork", 1, outputs=[9]).vertex("join", 1)
    for name in "abc":
        graph.vertex(name, 2, outputs=[9]).edge("fork", name).edge(name, "join")
    instance = Instance(graph.build(), Cluster.uniform(2, bandwidth=1), name="fork and join")
    monkeypatch.setattr(bounding, "BOUNDS", {"cases": BOUNDS["cases"]})
    monkeypatch.setattr(bounding, "LONG", 0)
    assert bounding.bounded(instance, 60.0, None) == 8


def test_intervals_are_left_out_where_all_must_be_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "LONG", 0)
    row = Bound("intervals", "anytime", never)
    monkeypatch.setattr(bounding, "intervals", lambda workers: row)
    monkeypatch.setattr(bounding, "BRIEF", (BOUNDS["energy"],))
    graph = GraphBuilder().vertex("a", 1).build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1), name="one vertex")
    assert bounding.bounded(instance, 60.0, None, brief=True) == 1


def never(*_: object, **__: object) -> Fraction:
    raise AssertionError("computed, though it takes all the time")
