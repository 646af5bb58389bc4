"""Groups of operations: the longest with their nearest, and contiguous cuts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from optpart.applications.training.graph import (
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Role,
    TrainingGraph,
)
from optpart.applications.training.groups import contiguous_groups, nearest_groups
from optpart.applications.training.strategy import check_groups
from optpart.base.errors import InputError
from optpart.testing.chains import chain
from optpart.testing.training import random_training_graph


def forward_chain(times: list[int]) -> TrainingGraph:
    """Return operations one after another, without parameters."""
    return TrainingGraph(
        "forward",
        ("a",),
        tuple(
            Operation(
                f"o{i}",
                Role.FORWARD,
                (Line(Fraction(0), Fraction(time)),),
                (Output(Layout.BATCHED, Line()),),
            )
            for i, time in enumerate(times)
        ),
        tuple(Edge(i, 0, i + 1) for i in range(len(times) - 1)),
    )


def test_short_operations_join_the_nearest_long_one() -> None:
    graph = forward_chain([9, 1, 1, 1, 8, 1])
    # Operation 2 is as far from 0 as from 4, and 0 takes longer.
    assert nearest_groups(graph, 1, 2) == ((0, 1, 2), (3, 4, 5))


def test_operations_without_an_edge_to_a_centre_join_the_longest() -> None:
    graph = forward_chain([9, 1, 8, 1])
    apart = TrainingGraph("apart", graph.kinds, graph.operations, (Edge(0, 0, 1), Edge(2, 0, 1)))
    assert nearest_groups(apart, 1, 2) == ((0, 1, 3), (2,))


def test_a_layer_with_its_backward_pass_and_update_is_one_unit() -> None:
    graph = chain(4)
    assert nearest_groups(graph, 8, 4) == graph.tied
    assert contiguous_groups(graph, 8, 2) == ((0, 1, 4, 5, 8, 9), (2, 3, 6, 7, 10, 11))


def test_contiguous_groups_balance_time() -> None:
    assert contiguous_groups(forward_chain([3, 3, 3, 1, 1, 1]), 1, 2) == ((0, 1), (2, 3, 4, 5))


def test_contiguous_groups_are_as_many_as_asked() -> None:
    assert contiguous_groups(forward_chain([9, 1, 3, 1]), 1, 3) == ((0,), (1,), (2, 3))
    assert contiguous_groups(forward_chain([9, 1, 2, 1]), 1, 9) == ((0,), (1,), (2,), (3,))


@pytest.mark.parametrize("seed", range(8))
def test_groups_partition_and_keep_shared_parameters_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_training_graph(rng, int(rng.integers(1, 8)))
    for most in (1, 2, 5, 1000):
        for groups in (nearest_groups(graph, 6, most), contiguous_groups(graph, 6, most)):
            check_groups(graph, groups)
            assert len(groups) == min(most, len(graph.tied))
    assert len(nearest_groups(graph, 6, 1000)) == len(graph.tied)


def test_no_groups_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        nearest_groups(chain(2), 1, 0)
