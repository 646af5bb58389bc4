"""Contiguous blocks and bottlenecks: every exact method against brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import count
from typing import Any, get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, Status
from optpart.exact.enumeration import enumerate_all
from optpart.methods.cpsat import cpsat
from optpart.methods.milp import milp
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance

BUDGET = Budget(20.0, 1)

#: Drawn instances per model and objective, times the kinds of blocks.
CASES = 30

METHODS = {"enumerate": enumerate_all, "cpsat": cpsat, "milp": milp}

#: What blocks must be: anything, contiguous, or along the devices from last to first.
BLOCKS = ("free", "contiguous", "ordered")


@dataclass(frozen=True)
class Case:
    """An instance, a goal, and the least value by brute force."""

    instance: Instance
    goal: Goal
    least: Fraction | None


def goal_of(instance: Instance, objective: Any, blocks: str) -> Goal:
    order = tuple(reversed(range(instance.devices))) if blocks == "ordered" else ()
    return Goal(objective, contiguous=blocks == "contiguous", device_order=order)


def knot(rng: np.random.Generator, communication: Communication) -> Instance:
    """Draw a graph of long paths whose vertices each prefer another device.

    Without constraints on blocks, the best placement then often leaves a device and comes back.
    """
    n, k = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    names = [f"v{v}" for v in range(n)]
    graph = GraphBuilder()
    devices = [Device(f"d{d}", int(rng.integers(1, 3)), "XY"[d % 2], None) for d in range(k)]
    for name in names:
        kind = "XY"[rng.integers(2)] if rng.random() < 0.1 else None
        outputs = [int(size) for size in rng.integers(0, 4, size=rng.integers(1, 3))]
        graph.vertex(name, 0, memory=int(rng.integers(3)), outputs=outputs, device_type=kind)
        sources = names[: names.index(name)]
        for u in sources[-1:] if rng.random() < 0.7 else rng.permutation(sources)[:2].tolist():
            graph.edge(u, name, None if rng.random() < 0.2 else 0)
    if rng.random() < 0.3:
        graph.colocate(*rng.choice(names, 2, replace=False).tolist())
    if rng.random() < 0.2:
        graph.separate(*rng.choice(names, 2, replace=False).tolist())
    memory: Memory = "estimate" if rng.random() < 0.5 else "none"
    if memory == "estimate":
        room = int(rng.integers(3 * n, 9 * n)) // 2
        devices = [replace(device, memory=room) for device in devices]
    bandwidth: Any = int(rng.integers(1, 5))
    if rng.random() < 0.2:
        bandwidth = rng.integers(0, 3, size=(k, k)).tolist()
    return Instance(
        graph.build(),
        Cluster.of(devices, bandwidth),
        Model(communication, memory, send_ops=Fraction(1), channels=int(rng.integers(1, 4))),
        rng.integers(1, 9, size=(n, k)).tolist(),
        name=f"knot of {n}",
    )


@cache
def cases(communication: Communication, objective: str) -> list[Case]:
    """Draw instances of up to 6 vertices, half of them knots, and solve them by brute force."""
    found: list[Case] = []
    for seed in count():
        if seed % 2:
            instance = knot(np.random.default_rng(seed), communication)
        else:
            instance = draw_instance(
                seed, communication, "estimate" if seed % 4 else "none", vertices=(2, 5)
            )
        if instance.devices**instance.vertices > 800:
            continue
        for blocks in BLOCKS:
            goal = goal_of(instance, objective, blocks)

            def accepts(device: list[int], goal: Goal = goal, of: Instance = instance) -> bool:
                return not goal.blocks or brute_force.contiguous(of, device, goal.device_order)

            if objective == "bottleneck":
                found.append(Case(instance, goal, brute_force.least_bottleneck(instance, accepts)))
            else:
                best = brute_force.optimum(instance, accepts)
                found.append(Case(instance, goal, None if best is None else best.makespan))
        if len(found) == (CASES if communication == "delay" else CASES // 2):
            return found
    raise AssertionError


@pytest.mark.parametrize("objective", ["makespan", "bottleneck"])
def test_the_cases_tell_kinds_of_blocks_apart(objective: str) -> None:
    """Contiguity, and an order, each change some optima, and make some instances infeasible."""
    least = [case.least for case in cases("delay", objective)]
    each = list(zip(*(least[i :: len(BLOCKS)] for i in range(len(BLOCKS))), strict=True))
    for one, other in ((0, 1), (1, 2)):
        assert sum(values[one] != values[other] for values in each) > 1
    assert any(values[0] is not None and values[2] is None for values in each)


@pytest.mark.parametrize("name", METHODS)
class TestAgainstBruteForce:
    @pytest.mark.parametrize("communication", get_args(Communication))
    def test_the_least_bottleneck(self, name: str, communication: Communication) -> None:
        for case in cases(communication, "bottleneck"):
            check(METHODS[name], case)

    def test_the_least_makespan_with_blocks(self, name: str) -> None:
        for case in cases("delay", "makespan"):
            check(METHODS[name], case)


def check(method: Any, case: Case) -> None:
    result = method(case.instance, budget=BUDGET, goal=case.goal)
    value = result.bottleneck if case.goal.objective == "bottleneck" else result.makespan
    status = Status.INFEASIBLE if case.least is None else Status.OPTIMAL
    assert (result.status, value) == (status, case.least), (case.instance.name, case.goal)
