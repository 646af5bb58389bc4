"""Formulations that share no mathematics agree on everything that design §2 defines."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from shutil import which
from typing import get_args

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.minizinc import minizinc
from optpart.exact.symmetry import interchangeable_devices
from optpart.methods.cpsat import cpsat
from optpart.methods.milp import milp
from optpart.methods.pareto import pareto
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal, Task
from optpart.solution.job import Job
from optpart.solution.result import Budget, Result, Status
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance

#: One worker: for tiny models starting threads takes longer than solving.
ONE = Budget(seconds=60, workers=1)

COMBINATIONS: list[tuple[Communication, Memory]] = list(
    product(get_args(Communication), get_args(Memory))
)

ANY_MODEL = pytest.mark.parametrize(("communication", "memory"), COMBINATIONS)


@cache
def judged(communication: Communication, memory: Memory, seed: int) -> tuple[Instance, Result]:
    """A tiny instance, and what enumeration says of it."""
    instance = draw_instance(seed, communication, memory, vertices=5)
    return instance, enumerate_all(instance, budget=ONE)


def same(instance: Instance, judge: Result, result: Result, goal: Goal) -> None:
    """Assert that a method has proven what the judge has, by a schedule that is valid."""
    place = f"{result.method} on {instance.name}, {goal}: {result.reason}"
    infeasible = judge.status is Status.INFEASIBLE
    assert (result.status is Status.INFEASIBLE) == infeasible, place
    if infeasible:
        return
    assert result.schedule is not None, place
    assert verify(instance, result.schedule) == [], place
    assert goal.broken(instance, result.schedule) == "", place
    if goal.decides:
        return
    assert result.status is judge.status is Status.OPTIMAL, place
    if goal.objective != "traffic":
        assert result.makespan == judge.makespan, place
    if goal.objective != "makespan":
        assert result.traffic == judge.traffic, place


@ANY_MODEL
def test_cpsat_and_enumeration(communication: Communication, memory: Memory) -> None:
    feasible = 0
    for seed in range(5):
        instance, judge = judged(communication, memory, seed)
        same(instance, judge, cpsat(instance, budget=ONE), Goal())
        feasible += judge.status is Status.OPTIMAL
    assert feasible > 1


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_milp_and_enumeration(memory: Memory) -> None:
    for seed in range(5):
        instance, judge = judged("delay", memory, seed)
        same(instance, judge, milp(instance, budget=ONE), Goal())


@pytest.mark.skipif(which("minizinc") is None, reason="the command minizinc is not installed")
@ANY_MODEL
def test_minizinc_and_enumeration(communication: Communication, memory: Memory) -> None:
    """On the smallest: a solver without explanations proves nothing else within seconds."""
    for seed in range(2):
        instance = draw_instance(seed, communication, memory, vertices=4, devices=2, far=False)
        judge = enumerate_all(instance, budget=ONE)
        same(instance, judge, minizinc(instance, budget=ONE), Goal())


@ANY_MODEL
def test_every_goal(communication: Communication, memory: Memory) -> None:
    for seed in range(1):
        instance, judge = judged(communication, memory, seed)
        for goal in goals(instance, judge, np.random.default_rng(seed)):
            same(
                instance,
                enumerate_all(instance, budget=ONE, goal=goal),
                cpsat(instance, budget=ONE, goal=goal),
                goal,
            )


def goals(instance: Instance, judge: Result, rng: np.random.Generator) -> Iterator[Goal]:
    """Objectives, given decisions and limits, alone and together."""
    placed = rng.permutation(instance.vertices)[: int(rng.integers(1, instance.vertices))]
    placement = {int(v): int(rng.integers(instance.devices)) for v in placed}
    order = tuple((task(instance, rng), task(instance, rng)) for _ in range(3))
    yield Goal("traffic")
    yield Goal("lexicographic")
    yield Goal(placement=placement)
    yield Goal(order=order)
    yield Goal("lexicographic", placement=placement, order=order)
    if judge.makespan is not None and judge.traffic is not None:
        yield Goal(makespan=judge.makespan)
        yield Goal(makespan=judge.makespan - Fraction(1, 1000))
        yield Goal("traffic", makespan=judge.makespan + 1)
        yield Goal(traffic=judge.traffic / 2)


def task(instance: Instance, rng: np.random.Generator) -> Task:
    """A vertex, or where transfers queue perhaps a transfer."""
    if instance.model.communication != "delay" and instance.graph.tensors and rng.integers(2):
        return int(rng.integers(instance.graph.tensors)), int(rng.integers(instance.devices))
    return int(rng.integers(instance.vertices))


@ANY_MODEL
def test_the_pareto_front(communication: Communication, memory: Memory) -> None:
    """Enumeration walks it as well, by steps of its own."""
    for seed in range(2):
        instance, _ = judged(communication, memory, seed)
        front = [
            (point.makespan, point.traffic)
            for point in pareto(Job(instance, budget=ONE))
            if point.status is Status.OPTIMAL
        ]
        assert front == walked(instance)


def walked(instance: Instance) -> list[tuple[Fraction | None, Fraction | None]]:
    points: list[tuple[Fraction | None, Fraction | None]] = []
    goal = Goal("lexicographic")
    while (point := enumerate_all(instance, budget=ONE, goal=goal)).traffic is not None:
        points.append((point.makespan, point.traffic))
        goal = Goal("lexicographic", traffic=point.traffic - Fraction(1, 10**15))
    return points


@pytest.mark.parametrize("goal", [Goal(), Goal("lexicographic")], ids=lambda goal: goal.objective)
def test_interchangeable_devices(goal: Goal) -> None:
    """The models take turns."""
    alike = 0
    for seed in range(32):
        instance = draw_instance(
            seed, *COMBINATIONS[seed % 16], vertices=(3, 5), devices=(2, 4), durations=seed % 3 == 0
        )
        if interchangeable_devices(instance):
            judge = enumerate_all(instance, budget=ONE, goal=goal)
            same(instance, judge, cpsat(instance, budget=ONE, goal=goal), goal)
            alike += 1
    assert alike > 5
