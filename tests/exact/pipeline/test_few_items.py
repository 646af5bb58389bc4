"""A graph with too many items is refused before run times are computed."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance, plan
from optpart.api import pipeline_problem
from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline import downsets, problem
from optpart.exact.pipeline.downsets import items_of, require_few_items
from optpart.testing.draw import random_instance


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downsets, "MOST_ITEMS", 3)


def row(*ops: int, together: tuple[str, ...] = ()) -> Instance:
    """Vertices ``v0``, ``v1``, … in a row, some of them colocated."""
    builder = GraphBuilder()
    for v, each in enumerate(ops):
        builder.vertex(f"v{v}", each, outputs=[1])
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    if together:
        builder.colocate(*together)
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1))


def test_before_run_times_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem, "relaxed_pipeline", None)
    with pytest.raises(UnsupportedError, match="has 4 vertices or groups that take time, of at m"):
        plan(row(1, 1, 1, 1))


def test_a_problem_may_be_larger_to_check_a_plan_of_it() -> None:
    assert len(pipeline_problem(row(1, 1, 1, 1)).vertices) == 4


@pytest.mark.parametrize(
    "instance",
    [
        row(1, 1, 1),
        row(1, 1, 1, 0),  # without time and memory, the last joins its neighbour
        row(1, 1, 1, 1, together=("v0", "v1")),
        row(1, 1, 1, 1, 1, together=("v1", "v4")),  # and with them all between
    ],
)
def test_what_stays_together_counts_once(instance: Instance) -> None:
    assert plan(instance).bottleneck is not None


def test_given_run_times_count() -> None:
    times = [(v % 2, None) for v in range(8)]
    idle = Instance(row(*[1] * 8).graph, Cluster.uniform(2, bandwidth=1), durations=times)
    with pytest.raises(UnsupportedError, match="has 4 vertices"):
        require_few_items(idle)


@pytest.mark.parametrize("seed", range(20))
def test_only_what_has_too_many_items_is_refused(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = random_instance(np.random.default_rng(seed))
    monkeypatch.setattr(downsets, "MOST_ITEMS", instance.vertices)
    relaxed = problem.relaxed_pipeline(instance)
    monkeypatch.setattr(downsets, "MOST_ITEMS", len(items_of(relaxed).members))
    require_few_items(instance)
