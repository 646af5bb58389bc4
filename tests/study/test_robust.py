"""Plans for times that vary, against all placements, orders and choices of deviating vertices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from commandline import Run

import optpart as op
from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, Status
from optpart.interop.formats import native
from optpart.interop.formats import result as result_format
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Task
from optpart.solution.schedule import crossings, retime
from optpart.solution.verifier import verify
from optpart.study.robust.clockwork import Clockwork, Plan
from optpart.study.robust.search import dispatch
from optpart.study.robust.variation import variation
from optpart.testing.draw import random_instance

F = Fraction


def orders(instance: Instance, placement: np.ndarray) -> Iterator[tuple[Task, ...]]:
    """Yield every sequence of vertices and transfers in which producers come first."""
    graph = instance.graph
    needs: dict[Task, set[Task]] = {v: set() for v in range(len(graph))}
    moves = crossings(instance, placement) if instance.model.queues else []
    for tensor, target in moves:
        needs[tensor, target] = {int(graph.tensor_vertex[tensor])}
    for u, v, tensor in graph.edges():
        crossing = (tensor, int(placement[v]))
        needs[v].add(crossing if crossing in needs else u)

    def extend(done: tuple[Task, ...]) -> Iterator[tuple[Task, ...]]:
        if len(done) == len(needs):
            yield done
        for task, before in needs.items():
            if task not in done and before <= {*done}:
                yield from extend((*done, task))

    return extend(())


def plans(instance: Instance) -> Iterator[Plan]:
    """Yield every plan that is valid at the instance's own times."""
    for devices in product(range(instance.devices), repeat=instance.vertices):
        placement = np.array(devices, dtype=np.int32)
        if all(instance.allowed[u, d] for u, d in zip(instance.unit_of, devices, strict=True)):
            for order in orders(instance, placement):
                try:
                    schedule = retime(instance, placement, order)
                except InputError:  # no link
                    break
                if verify(instance, schedule):
                    if not instance.model.timed_memory:
                        break  # no order is valid
                    continue
                yield Plan(placement, order)


def spans(plan: Plan, cases: list[Instance]) -> list[Fraction] | None:
    found = []
    for case in cases:
        schedule = retime(case, plan.placement, plan.order)
        if verify(case, schedule):
            return None
        found.append(schedule.makespan(case))
    return found


def deviating(low: Instance, high: Instance, most: int) -> list[Instance]:
    """Return the instance with every choice of at most so many vertices at their upper ends."""
    return [
        replace(low, durations=[
            [(high if v in chosen else low).duration(v, d) if low.vertex_allowed[v, d] else None
             for d in range(low.devices)] for v in range(low.vertices)
        ])
        for count in range(most + 1) for chosen in combinations(range(low.vertices), count)
    ]  # fmt: skip


CASES = [
    (seed, communication, memory)
    for seed in range(4)
    for communication, memory in (
        ("delay", "none"), ("delay", "estimate"), ("sendrecv", "none"), ("link", "estimate"),
        ("port", "none"), ("delay", "refcount"),
    )
]  # fmt: skip


@pytest.mark.parametrize(("seed", "communication", "memory"), CASES)
def test_no_plan_is_better(seed: int, communication: Communication, memory: Memory) -> None:
    n = 4 if communication == "delay" else 3
    instance = random_instance(np.random.default_rng(seed), n, 2, communication, memory)
    instance = replace(instance, model=replace(instance.model, channels=1))
    known = [*plans(instance)]
    goal = "mean" if seed % 2 else "worst"
    if memory != "refcount" and goal == "worst":
        varies = variation(instance, spread="30%")
        assert varies.high is not None
        found = op.robust(instance, spread="30%", deviations=1, seconds=20)
        cases = deviating(varies.instance, varies.high, 1)
    else:
        found = op.robust(instance, spread="30%", draws=3, goal=goal, seconds=20)
        cases = [*variation(instance, spread="30%", draws=3).samples]
    valid = [times for plan in known if (times := spans(plan, [instance, *cases])) is not None]
    if not valid:
        assert found.value is None
        return
    values = [
        (sum(t[1:], F(0)) / len(cases) if goal == "mean" else max(t[1:]), t[0]) for t in valid
    ]
    assert found.value is not None
    assert found.bound is not None
    assert found.bound <= min(values)[0] <= found.value
    if memory != "refcount":  # there, orders that the model allows may need more memory
        assert found.status is Status.OPTIMAL
        assert found.value == min(values)[0]
        assert found.outcome is not None
        assert found.outcome.nominal >= min(values)[1]
        if found.shortest:
            assert found.outcome.nominal == min(values)[1]
