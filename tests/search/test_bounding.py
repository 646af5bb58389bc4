"""What a search computes of the bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.bounds.best import BOUNDS, Bound, LowerBound
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
    known = {"critical-path", "load"} | ({"branching"} if brief else set())
    assert computed == [name for name in BOUNDS if name not in known]
