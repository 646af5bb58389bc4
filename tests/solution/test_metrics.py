"""Peak memory agrees with the verifier: the peak is accepted as capacity, less is not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.problem.model import Communication, Release
from optpart.solution.metrics import (
    bottleneck,
    busy,
    loads,
    peak_memory,
    traffic,
    utilisation,
)
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
    for _ in range(25):
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
    assert checked > 8


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


class TestBottleneck:
    """a (6 operations) feeds b (2) with tensors of size 8 and 4, and c (4) with the first."""

    GRAPH = (
        GraphBuilder()
        .vertex("a", 6, outputs=[8, 4])
        .vertex("b", 2)
        .vertex("c", 4)
        .edge("a", "b", 0)
        .edge("a", "b", 1)
        .edge("a", "c", 0)
        .build()
    )
    CLUSTER = Cluster.of([Device("slow", speed=1), Device("fast", speed=2)], bandwidth=2, latency=1)

    @pytest.mark.parametrize(
        ("model", "load"),
        [
            (Model(), {"device slow": 6, "device fast": 3}),
            (Model("sendrecv", send_ops=Fraction(1)), {"device slow": 8, "device fast": 3}),
            (Model("link"), {"device slow": 6, "device fast": 3, "link slow fast": 8}),
            (
                Model("port", channels=3),
                {
                    "device slow": 6,
                    "device fast": 3,
                    "send slow": Fraction(8, 3),
                    "receive fast": Fraction(8, 3),
                },
            ),
        ],
        ids=["delay", "sendrecv", "link", "port"],
    )
    def test_is_the_largest_load(self, model: Model, load: dict[str, Fraction]) -> None:
        instance = Instance(self.GRAPH, self.CLUSTER, model)
        placement = np.array([0, 1, 1], dtype=np.int32)
        names = instance.cluster.names
        found = {
            " ".join([kind, *(names[d] for d in dict.fromkeys(where))]): value
            for (kind, *where), value in loads(instance, placement).items()
        }
        assert found == load
        assert bottleneck(instance, placement) == max(load.values())

    def test_of_nothing_is_0(self) -> None:
        empty = Instance(GraphBuilder().build(), self.CLUSTER)
        assert bottleneck(empty, np.zeros(0, dtype=np.int32)) == 0
