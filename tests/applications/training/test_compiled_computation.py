"""A compiled strategy computes what the single-device graph computes, by executing both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from optpart.applications.training.compiled import Compiled, Options, VertexKind
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.graph import CONTROL, Role
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate
from optpart.testing.numeric import edges_of, same_update, updated, updated_by
from optpart.testing.training import (
    NumericGraph,
    random_numeric_graph,
    random_strategy,
    random_training_cluster,
)

CHOICES = (
    ("fused", "separate"),
    ("overlap", "heterog"),
    ("memory", "free"),
    ("queue", "ring"),
    ("pairs", "shared"),
)


def drawn(seed: int, *, linear: bool = False) -> tuple[NumericGraph, Compiled, np.random.Generator]:
    rng = np.random.default_rng(seed)
    numeric = random_numeric_graph(rng, int(rng.integers(1, 7)), linear=linear)
    devices = int(rng.integers(1, 5))
    cluster = random_training_cluster(rng, devices)
    microbatches = int(rng.choice([1, 1, 2, 3]))
    strategy = random_strategy(rng, numeric.graph, devices, microbatches=microbatches)
    options = Options(
        *(str(rng.choice(choices)) for choices in CHOICES),  # type: ignore[arg-type]
        tick=None if rng.random() < 0.5 else Fraction(1),
        microbatches=microbatches,
    )
    return numeric, compile_strategy(numeric.graph, cluster, strategy, options), rng


@pytest.mark.parametrize("block", range(5))
def test_it_updates_every_parameter_on_every_device_as_one_device_does(block: int) -> None:
    for seed in range(block * 16, (block + 1) * 16):
        numeric, compiled, rng = drawn(seed)
        expected = updated(numeric, compiled.strategy.batch)
        for _ in range(2):  # in two orders
            assert same_update(compiled, updated_by(compiled, numeric, rng), expected), seed


def alive(compiled: Compiled) -> set[int]:
    """Return the vertices on which an update depends."""
    before: dict[int, set[int]] = {}
    for u, _, v in edges_of(compiled):
        before.setdefault(v, set()).add(u)
    operations = compiled.graph.operations
    found = {
        v
        for v, what in enumerate(compiled.vertices)
        if what.kind is VertexKind.REPLICA and operations[what.operation].role is Role.APPLY
    }
    waiting = [*found]
    while waiting:
        new = before.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def test_a_missing_edge_shows() -> None:
    seen = set()
    for seed in range(30):
        numeric, compiled, rng = drawn(seed, linear=True)
        expected = updated(numeric, compiled.strategy.batch)
        edges = edges_of(compiled)
        used = alive(compiled)
        for edge in edges:
            _, output, v = edge
            kind = compiled.vertices[v].kind
            carries = output != CONTROL or kind is VertexKind.ALLREDUCE
            if not carries or v not in used or rng.random() < 0.9:
                continue
            seen.add(kind)
            left = [other for other in edges if other != edge]
            try:
                found = updated_by(compiled, numeric, rng, left)
            except (IndexError, ValueError):
                continue  # nothing to compute with
            assert not same_update(compiled, found, expected), (seed, edge)
    assert seen == set(VertexKind)


@pytest.mark.parametrize("block", range(3))
def test_its_schedules_pass_the_verifier(block: int) -> None:
    for seed in range(block * 12, (block + 1) * 12):
        _, compiled, _ = drawn(seed)
        schedule = simulate(compiled.instance, Partition(compiled.placement), heterog)
        assert not verify(compiled.instance, schedule), seed
