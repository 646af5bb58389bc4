"""An instance as data for the MiniZinc models (``models/tf.mzn`` declares the parameters)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal, Task

#: Gecode computes in 32 bits, and the models add up a few numbers of this size.
LARGEST = 2**29


@dataclass(frozen=True)
class Sizes:
    """Memory and sizes in the largest unit that divides all of them.

    Attributes
    ----------
    unit : Fraction
    memory, size : list of int
        Per vertex and per tensor; zeros if they do not matter.
    capacity : list of int
        Per device; −1 if everything fits.
    total : int
        Upper bound of the memory held by a device, and of the traffic.
    """

    unit: Fraction
    memory: list[int]
    size: list[int]
    capacity: list[int]
    total: int

    @classmethod
    def of(cls, instance: Instance, goal: Goal) -> Sizes:
        """Read the amounts that matter to the memory model and the goal.

        Raises
        ------
        UnsupportedError
            If they amount to :data:`LARGEST` units or more.
        """
        graph, limits = instance.graph, instance.cluster.memory
        counts = instance.model.memory != "none"
        if not counts and goal.objective == "makespan" and goal.traffic is None:
            n, t, k = instance.vertices, graph.tensors, instance.devices
            return cls(Fraction(1), [0] * n, [0] * t, [-1] * k, 0)
        memory, size = graph.memory.fractions(), graph.tensor_size.fractions()
        unit = _common_unit([*memory, *size])
        total = (graph.memory.sum() + graph.tensor_size.sum()) / unit
        total += graph.tensor_size.sum(graph.edge_tensor) / unit
        if total >= LARGEST:
            raise UnsupportedError(
                "vertices", "sizes and memory are too fine for MiniZinc", "round them"
            )
        # Capacities may be fractional: whole amounts fit if and only if they fit in the floor.
        floors = [-1 if limit is None or not counts else limit // unit for limit in limits]
        return cls(
            unit,
            [int(amount / unit) for amount in memory],
            [int(amount / unit) for amount in size],
            [-1 if floor >= total else floor for floor in floors],
            int(total),
        )


def _common_unit(amounts: Iterable[Fraction]) -> Fraction:
    """Return the largest number that divides all amounts; 1 if all are 0."""
    top, bottom = 0, 1
    for amount in amounts:
        top, bottom = math.gcd(top, amount.numerator), math.lcm(bottom, amount.denominator)
    return Fraction(top, bottom) or Fraction(1)


def horizon(instance: Instance, grid: Grid) -> int:
    """Return a number of ticks within which some optimal schedule ends, if any exists.

    Once the order of any two events is given, every rule of every model is a difference constraint
    between two starts. The least solution is given by longest paths; each visits every run and
    every crossing at most once and adds at most its duration.

    Raises
    ------
    UnsupportedError
        If the grid is not exact, or the horizon too long.
    """
    delays = np.array(_delays(instance, grid), dtype=object).reshape(-1, instance.devices**2)
    crossing = delays.max(axis=1, initial=0) + int(grid.send.max())
    consumers = np.bincount(instance.graph.edge_tensor, minlength=len(crossing))
    times = np.minimum(consumers, instance.devices - 1)
    ticks = int(grid.duration.max(axis=1, initial=0).sum()) + int((crossing * times).sum())
    if not grid.exact or ticks >= LARGEST:
        raise UnsupportedError("vertices", "times are too fine for MiniZinc", "round them")
    return ticks


def write(
    instance: Instance, grid: Grid, sizes: Sizes, goal: Goal, most: tuple[int, int], objective: str
) -> str:
    """Return the data of one solve.

    Parameters
    ----------
    most : (int, int)
        Makespan in ticks and traffic in units of size, which must not be exceeded.
    """
    graph, n, k = instance.graph, instance.vertices, instance.devices
    # Times beyond the horizon cannot be used, however much longer they are.
    never = most[0] + 1
    duration = np.clip(grid.duration, 0, never)
    values = {
        "vertices": n,
        "devices": k,
        "tensors": graph.tensors,
        "edges": len(graph.edge_source),
        "allowed": [set(np.flatnonzero(row) + 1) for row in instance.vertex_allowed],
        "duration": _matrix(duration.ravel().tolist(), n, k),
        "producer": (graph.tensor_vertex + 1).tolist(),
        "input": (graph.edge_tensor + 1).tolist(),
        "target": (graph.edge_target + 1).tolist(),
        "delay": _matrix([min(x, never) for x in _delays(instance, grid)], graph.tensors, k, k),
        "send": np.minimum(grid.send, never).tolist(),
        "channels": instance.model.channels,
        "memory": sizes.memory,
        "size": sizes.size,
        "capacity": sizes.capacity,
        "freed_at_start": instance.model.release == "start",
        "together": _pairs((group[0] + 1, v + 1) for group in graph.colocation for v in group[1:]),
        "apart": _pairs((a + 1, b + 1) for a, b in graph.separation),
        "fixed": _pairs((v + 1, d + 1) for v, d in goal.placement.items()),
        "before": _pairs(
            (_number(instance, first), _number(instance, second)) for first, second in goal.order
        ),
        "horizon": most[0],
        "most_traffic": most[1],
        "traffic_counts": objective == "traffic",
    }
    return "".join(f"{name} = {_text(value)};\n" for name, value in values.items())


def _delays(instance: Instance, grid: Grid) -> list[int]:
    devices = range(instance.devices)
    return [
        grid.delay(tensor, d, e)
        for tensor in range(instance.graph.tensors)
        for d in devices
        for e in devices
    ]


def _number(instance: Instance, task: Task) -> int:
    """Number tasks: vertices first, then the transfers of tensor 0 to each device, and so on."""
    if isinstance(task, int):
        return task + 1
    tensor, target = task
    return instance.vertices + tensor * instance.devices + target + 1


def _pairs(pairs: Iterable[tuple[int, int]]) -> str:
    listed = list(pairs)
    return _matrix([x for pair in listed for x in pair], len(listed), 2)


def _matrix(entries: list[int], *shape: int) -> str:
    ranges = ", ".join(f"1..{size}" for size in shape)
    return f"array{len(shape)}d({ranges}, {_text(entries)})"


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case set():
            return "{" + ", ".join(map(str, sorted(value))) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case _:
            return str(value)
