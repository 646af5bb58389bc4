"""The device-aware critical path, in time units."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from relabelling import relabelled, stretched

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.problem.cluster import Matrix
from optpart.testing.draw import random_instance


def fork_join(bandwidth: Matrix) -> Instance:
    """a (6), then b (12) and c (9), then d (3), by tensors of 6; d1 is thrice as fast as d0."""
    builder = GraphBuilder()
    for name, ops in zip("abcd", (6, 12, 9, 3), strict=True):
        builder.vertex(name, ops, outputs=[6])
    for source, target in ("ab", "ac", "bd", "cd"):
        builder.edge(source, target)
    devices = [Device("d0", 1, "CPU"), Device("d1", 3, "GPU")]
    return Instance(builder.build(), Cluster.of(devices, bandwidth))


@pytest.mark.parametrize("bandwidth", [None, 1, 0])
def test_the_longest_chain_on_the_fastest_device(bandwidth: Matrix) -> None:
    """a, b, d; staying on d1 is best whatever the links."""
    assert critical_path_bound(fork_join(bandwidth)) == Fraction(6 + 12 + 3, 3)


def chain(types: str, bandwidth: Matrix = 2) -> Instance:
    """a (6), b (12), c (9) by tensors of 6, each on a C(PU) of speed 1, G(PU) of speed 3 or any."""
    builder = GraphBuilder()
    for name, ops, kind in zip("abc", (6, 12, 9), types, strict=True):
        builder.vertex(name, ops, device_type={"C": "CPU", "G": "GPU"}.get(kind), outputs=[6])
    graph = builder.edge("a", "b").edge("b", "c").build()
    return Instance(graph, Cluster.of([Device("d0", 1, "CPU"), Device("d1", 3, "GPU")], bandwidth))


@pytest.mark.parametrize(
    ("types", "bandwidth", "bound"),
    [
        ("...", 2, 2 + 4 + 3),
        ("C..", 2, 6 + 3 + 4 + 3),
        ("..C", 2, 2 + 4 + 3 + 9),
        (".C.", 2, 2 + 3 + 12 + 3 + 3),
        ("CGC", 2, 6 + 3 + 4 + 3 + 9),
        ("C.C", 2, 6 + 3 + 4 + 3 + 9),  # there and back takes 10, staying 12
        ("C.C", 1, 6 + 12 + 9),  # there and back takes 16
        ("C.C", 0, 6 + 12 + 9),
    ],
)
def test_a_crossing_counts_where_it_is_forced_or_pays(
    types: str, bandwidth: int, bound: int
) -> None:
    assert critical_path_bound(chain(types, bandwidth)) == bound


def test_a_crossing_that_cannot_be_is_none() -> None:
    assert critical_path_bound(chain("CGC", bandwidth=[[None, 2], [0, None]])) is None
    assert critical_path_bound(chain("CG.", bandwidth=[[None, 2], [0, None]])) == 16


def test_a_group_stays_together() -> None:
    """a alone takes 1 and b alone 2, on devices of their own; together 9 and 8."""
    graph = GraphBuilder().vertex("a").vertex("b").colocate("a", "b").build()
    instance = Instance(graph, Cluster.uniform(2), durations=[[9, 1], [2, 8]])
    assert critical_path_bound(instance) == 8


def test_a_send_lengthens_a_crossing() -> None:
    instance = chain("CG.")
    sending = Model("sendrecv", send_ops=Fraction(1, 2))
    assert critical_path_bound(Instance(instance.graph, instance.cluster, sending)) == Fraction(
        33, 2
    )


def test_does_not_see_that_devices_are_few() -> None:
    builder = GraphBuilder()
    for v in range(9):
        builder.vertex(f"v{v}", 2)
    assert critical_path_bound(Instance(builder.build(), Cluster.uniform(1))) == 2


def test_the_bound_is_exact() -> None:
    """A fraction of any size, the same whatever the numbering, and to scale."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        instance = random_instance(rng, 8, 4)
        bound = critical_path_bound(instance)
        assert bound is None or type(bound) is Fraction
        assert critical_path_bound(relabelled(instance, rng)) == bound
        factor = Fraction(int(rng.integers(1, 99)), int(rng.integers(1, 99)))
        expected = None if bound is None else bound * factor
        assert critical_path_bound(stretched(instance, factor)) == expected
