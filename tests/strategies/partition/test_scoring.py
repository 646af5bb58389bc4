"""Scoring ([B] Alg. 4.3): α · LoadScore + β · CommScore."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.strategies.partition.scoring import scoring


def placement(
    builder: GraphBuilder,
    cluster: Cluster | None = None,
    model: Model | None = None,
    **options: Any,
) -> dict[str, int]:
    instance = Instance(builder.build(), cluster or Cluster.uniform(2), model or Model())
    partition = scoring(instance, np.random.default_rng(0), **options)
    return dict(zip(instance.graph.names, partition.placement.tolist(), strict=True))


def fork() -> GraphBuilder:
    """s → x and s → y."""
    builder = GraphBuilder()
    for name in "sxy":
        builder.vertex(name, 1, memory=1)
    return builder.edge("s", "x", None).edge("s", "y", None)


def loaded(first: int, second: int, *consumers: tuple[str, int]) -> GraphBuilder:
    """``first`` vertices on d0 and ``second`` on d1, then consumers of so many of those on d0."""
    builder = GraphBuilder()
    for d, count in enumerate((first, second)):
        for i in range(count):
            builder.vertex(f"{'st'[d]}{i}", devices=[f"d{d}"])
    for name, inputs in consumers:
        builder.vertex(name, devices=["d0"] if name == "z" else None)
        for i in range(inputs):
            builder.edge(f"s{i}", name, None)
    return builder


def test_equal_scores_go_to_the_lower_number() -> None:
    """s: 1 and 1. x and y: 0 + 1 on d0, 1 + 0 on d1."""
    assert placement(fork()) == {"s": 0, "x": 0, "y": 0}


def test_more_weight_for_the_load_spreads() -> None:
    """x: 1 on d0, 1.1 on d1. y, with one unit on each: 1 on d0, 0 on d1."""
    assert placement(fork(), alpha=1.1) == {"s": 0, "x": 1, "y": 0}


def test_only_the_ratio_counts() -> None:
    assert placement(fork(), alpha=11, beta=10) == placement(fork(), alpha=1.1)


def test_the_load_counts_relative_to_the_largest() -> None:
    """x: 0 + 1 on d0, 1.5 · (1 − 2/4) + 0 on d1; with ``min(1, …)`` d1 would win."""
    assert placement(loaded(4, 2, ("x", 1)), alpha=1.5)["x"] == 0
    assert placement(loaded(4, 1, ("x", 1)), alpha=1.5)["x"] == 1


def test_inputs_count_relative_to_the_most_in_the_fringe() -> None:
    """x: 1/4 on d0 and 1/2 on d1 beside z with four inputs; 1 on d0 without z."""
    assert placement(loaded(4, 0, ("z", 4), ("x", 1)), alpha=0.5)["x"] == 1
    assert placement(loaded(4, 0, ("x", 1)), alpha=0.5)["x"] == 0


def test_the_fringe_is_a_multiple_of_the_devices() -> None:
    """With 1 · 2 units at a time, z and y make a fringe before x, which then counts 1/1."""
    builder = loaded(4, 0, ("z", 4), ("y", 4), ("x", 1))
    assert placement(builder, alpha=0.5, fringe=2)["x"] == 1
    assert placement(builder, alpha=0.5, fringe=1)["x"] == 0


def test_without_weights_everything_goes_to_the_first_device_that_fits() -> None:
    cluster = Cluster.of([Device("d0", memory=2), Device("d1")])
    found = placement(fork(), cluster, Model(memory="estimate"), alpha=0, beta=0)
    assert found == {"s": 0, "x": 0, "y": 1}


@pytest.mark.parametrize(
    ("option", "value"),
    [("alpha", -1), ("beta", math.nan), ("alpha", math.inf), ("fringe", 0)],
)
def test_a_bad_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(InputError, match=option):
        placement(fork(), **{option: value})
