"""Peak memory agrees with the verifier: the peak is accepted as capacity, less is not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.problem.model import Communication, Release
from optpart.solution.metrics import busy, peak_memory, traffic, utilisation
from optpart.solution.verifier import verify
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement


def with_memory(instance: Instance, capacity: list[Fraction], model: Model) -> Instance:
    cluster = replace(instance.cluster, memory=tuple(capacity))
    return replace(instance, cluster=cluster, model=model)


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize(
    ("memory", "release"), [("edges", "end"), ("refcount", "end"), ("refcount", "start")]
)
def test_the_peak_is_just_enough(
    communication: Communication, memory: Literal["edges", "refcount"], release: Release
) -> None:
    rng = np.random.default_rng(7)
    checked = 0
    for _ in range(120):
        instance = random_instance(rng, 6, 3, communication=communication)
        placement = random_placement(rng, instance)
        if placement is None:
            continue
        schedule = retime(instance, placement, random_order(rng, instance))
        peaks = peak_memory(instance, schedule, memory, release)
        model = replace(instance.model, memory=memory, release=release)
        assert verify(with_memory(instance, peaks, model), schedule) == []
        for d, peak in enumerate(peaks):
            if peak:
                less = [*peaks[:d], peak - Fraction(1, 1000), *peaks[d + 1 :]]
                rules = {v.rule for v in verify(with_memory(instance, less, model), schedule)}
                assert rules == {"memory"}
                checked += 1
    assert checked > 40


def test_figures_by_hand() -> None:
    """a (2) feeds b and c on the other device, which cross once: size 6 in 3."""
    graph = (
        GraphBuilder()
        .vertex("a", 2, memory=1, outputs=[6])
        .vertex("b", 1)
        .vertex("c", 1)
        .edge("a", "b")
        .edge("a", "c")
        .build()
    )
    cluster = Cluster.of([Device("x"), Device("y")], bandwidth=2)
    instance = Instance(graph, cluster)
    schedule = retime(instance, [0, 1, 1], [0, 1, 2])
    assert traffic(instance, schedule.placement) == 6
    assert busy(instance, schedule) == [2, 2]
    assert utilisation(instance, schedule) == pytest.approx([2 / 7, 2 / 7])
    # Both in-edges have arrived at 5; b starts at once, c a moment later.
    assert peak_memory(instance, schedule, "edges") == [0, 6]
    assert peak_memory(instance, schedule, "refcount") == [7, 6]


def test_an_empty_schedule() -> None:
    instance = Instance(GraphBuilder().build(), Cluster.uniform(2), Model())
    schedule = retime(instance, [], [])
    assert peak_memory(instance, schedule, "refcount") == [0, 0]
    assert utilisation(instance, schedule) == [0.0, 0.0]
