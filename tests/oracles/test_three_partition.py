"""3-PARTITION, the strongly NP-complete problem, with the answer known by construction.

M. R. Garey, D. S. Johnson, Computers and Intractability (1979), SP15: ``3m`` numbers between a
quarter and a half of ``B``, of sum ``m·B``; do they split into ``m`` triples of sum ``B``? As times
on ``m`` equal machines they end at ``B`` if and only if they do. As memory they fit ``m`` devices
of ``B`` if and only if they do.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from oracles.proving import ONE, agree, bound, prove

from optpart import Cluster, GraphBuilder, Instance, Model, Status
from optpart.methods import registry


def solvable(m: int, total: int, rng: np.random.Generator) -> list[int]:
    """Draw ``m`` triples of sum ``total``, shuffled."""
    numbers: list[int] = []
    while len(numbers) < 3 * m:
        first, second = (int(rng.integers(total // 4 + 1, (total + 1) // 2)) for _ in range(2))
        third = total - first - second
        if total < 4 * third and 2 * third < total:
            numbers += [first, second, third]
    return [numbers[i] for i in rng.permutation(3 * m)]


def unsolvable(rng: np.random.Generator) -> tuple[list[int], int]:
    """Draw nine multiples of 3 whose sum is ``3·B``, and ``B``, which is none."""
    while True:
        numbers = [3 * int(x) for x in rng.integers(9, 16, size=9)]
        total, rest = divmod(sum(numbers), 3)
        assert rest == 0
        if total % 3 and all(total < 4 * x and 2 * x < total for x in numbers):
            return numbers, total


def as_times(numbers: list[int], m: int) -> Instance:
    builder = GraphBuilder()
    for i, number in enumerate(numbers):
        builder.vertex(f"v{i}", number)
    return Instance(builder.build(), Cluster.uniform(m), name=f"3-partition-times-{m}")


def as_memory(
    numbers: list[int], m: int, total: int, memory: Literal["estimate", "refcount"]
) -> Instance:
    """Build vertices that hold their number as resident memory and, in ``estimate``, outputs."""
    builder = GraphBuilder()
    for i, number in enumerate(numbers):
        output = number // 3 if memory == "estimate" else 0
        builder.vertex(f"v{i}", 1 + i % 2, memory=number - output, outputs=[output])
    cluster = Cluster.uniform(m, memory=total)
    return Instance(
        builder.build(), cluster, Model(memory=memory), name=f"3-partition-{memory}-{m}"
    )


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_times_of_a_solvable_one(m: int) -> None:
    numbers = solvable(m, 40, np.random.default_rng(m))
    prove(as_times(numbers, m), 40, "enumerate")


@pytest.mark.parametrize("m", [10, 60])
def test_bounds_and_heuristics_of_a_large_one(m: int) -> None:
    instance = as_times(solvable(m, 1000, np.random.default_rng(m)), m)
    assert bound(instance, 0.1) == 1000
    for name in registry.heuristics():
        agree(registry.get(name)(instance), 1000)


@pytest.mark.parametrize("seed", range(3))
def test_times_of_an_unsolvable_one(seed: int) -> None:
    numbers, total = unsolvable(np.random.default_rng(seed))
    result = registry.get("cpsat")(as_times(numbers, 3), budget=ONE)
    assert result.status is Status.OPTIMAL
    assert result.makespan is not None
    assert result.makespan > total
    assert result.makespan % 3 == 0


@pytest.mark.parametrize("memory", ["estimate", "refcount"])
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_memory_of_a_solvable_one(memory: Literal["estimate", "refcount"], m: int) -> None:
    numbers = solvable(m, 40, np.random.default_rng([m, 1]))
    instance = as_memory(numbers, m, 40, memory)
    result = registry.get("cpsat")(instance, budget=ONE)
    assert result.status is Status.OPTIMAL
    assert result.makespan is not None
    assert bound(instance, 0.2) <= result.makespan


@pytest.mark.parametrize("memory", ["estimate", "refcount"])
@pytest.mark.parametrize("seed", range(3))
def test_memory_of_an_unsolvable_one(memory: Literal["estimate", "refcount"], seed: int) -> None:
    numbers, total = unsolvable(np.random.default_rng(seed))
    result = registry.get("cpsat")(as_memory(numbers, 3, total, memory), budget=ONE)
    assert result.status is Status.INFEASIBLE
