"""Random choices of strategies, and their optimum by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from optpart.applications.training.compiled import Compiled, Options
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.base.errors import InputError
from optpart.exact.cp_sat import solver_within
from optpart.problem.instance import Instance
from optpart.solution.schedule import crossings
from optpart.testing.training import (
    random_decision,
    random_strategy,
    random_training_cluster,
    random_training_graph,
)


def random_choices(
    rng: np.random.Generator,
    *,
    layers: int = 3,
    devices: int = 2,
    groups: int = 4,
    actions: int = 3,
    options: Options | None = None,
    memory: Fraction | int | None = None,
    missing: float = 0,
) -> Choices:
    """Draw a graph, a cluster, groups, and the actions of each group."""
    graph = random_training_graph(rng, layers)
    cluster = random_training_cluster(rng, devices, memory=memory, missing=missing)
    strategy = random_strategy(rng, graph, devices, groups=groups)
    rows = []
    for decision in strategy.decisions:
        row = {decision: None}
        for _ in range(3 * actions):
            if len(row) < actions:
                row[random_decision(rng, devices)] = None
        rows.append(tuple(row))
    options = options or Options()
    return Choices(StrategyProblem(graph, cluster, strategy.batch, strategy.groups, options), rows)


def tiny_choices(seed: int) -> Choices:
    """Draw choices on two devices, few enough to enumerate and to order every strategy."""
    rng = np.random.default_rng(seed)
    return random_choices(
        rng,
        layers=int(rng.integers(1, 3)),
        groups=int(rng.integers(1, 5)),
        actions=int(rng.integers(2, 4)),
        options=Options(
            memory="none",
            tick=(Fraction(1), Fraction(1, 3))[int(rng.integers(2))],
            auxiliary=("memory", "free")[int(rng.random() < 0.3)],
        ),
        missing=0.1 if rng.random() < 0.2 else 0,
    )


def compiled_strategies(choices: Choices) -> Iterator[tuple[tuple[int, ...], Compiled]]:
    """Yield every strategy for which no link is missing."""
    for chosen in product(*(range(len(actions)) for actions in choices.actions)):
        try:
            problem, strategy = choices.problem, choices.strategy(chosen)
            compiled = compile_strategy(problem.graph, problem.cluster, strategy, problem.options)
        except InputError:
            continue
        yield chosen, compiled


def best_order(compiled: Compiled) -> Fraction:
    """Return the least makespan of a compiled strategy, memory apart.

    Devices, links and nothing else: each runs one thing at a time.
    """
    instance, placement = compiled.instance, compiled.placement
    graph, model = instance.graph, cp_model.CpModel()
    device = placement.tolist()
    moves = [*crossings(instance, placement)]
    run = [instance.duration(v, d) for v, d in enumerate(device)]
    time = [_delay(instance, tensor, device, e) for tensor, e in moves]
    scale = math.lcm(*(x.denominator for x in (*run, *time)))
    horizon = int(scale * (sum(run) + sum(time)))
    busy: dict[object, list[Any]] = {}

    def interval(length: Fraction, where: object) -> Any:
        start = model.new_int_var(0, horizon, "")
        made = model.new_fixed_size_interval_var(start, int(length * scale), "")
        busy.setdefault(where, []).append(made)
        return made

    tasks = [interval(length, d) for length, d in zip(run, device, strict=True)]
    sent = {
        (tensor, e): interval(length, (device[int(graph.tensor_vertex[tensor])], e))
        for (tensor, e), length in zip(moves, time, strict=True)
    }
    for (tensor, _), move in sent.items():
        model.add(move.start_expr() >= tasks[int(graph.tensor_vertex[tensor])].end_expr())
    for u, v, tensor in zip(
        graph.edge_source.tolist(),
        graph.edge_target.tolist(),
        graph.edge_tensor.tolist(),
        strict=True,
    ):
        before = tasks[u] if device[u] == device[v] else sent[tensor, device[v]]
        model.add(tasks[v].start_expr() >= before.end_expr())
    for intervals in busy.values():
        model.add_no_overlap(intervals)
    makespan = model.new_int_var(0, horizon, "")
    for task in tasks:
        model.add(task.end_expr() <= makespan)
    model.minimize(makespan)
    solver = solver_within()
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL
    return Fraction(solver.value(makespan), scale)


def best_strategy(choices: Choices) -> Fraction | None:
    """Return the least makespan of all strategies in all orders, memory apart."""
    return min((best_order(compiled) for _, compiled in compiled_strategies(choices)), default=None)


def _delay(instance: Instance, tensor: int, device: list[int], target: int) -> Fraction:
    delay = instance.delay(tensor, device[int(instance.graph.tensor_vertex[tensor])], target)
    assert delay is not None
    return delay
