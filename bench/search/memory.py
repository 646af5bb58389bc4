"""Tight memory: search compared with the best heuristic that respects the memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from bench.search.networks import best_heuristic
from bench.search.rows import Part, down, up
from bench.store import MACHINE, Values
from optpart.formats.native import read
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.problem.model import Memory, Model
from optpart.search.layout import repaired
from optpart.solution.result import Budget
from optpart.solution.verifier import verify

NAMES = ("convolutional_network-7-1", "convolutional_network-50-1")
MODELS: tuple[Memory, ...] = ("estimate", "refcount")
SECONDS = 30.0


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "memory")
    for name in NAMES:
        for memory in MODELS:
            given = read(shared / "instances" / f"{name}.json")
            store.run({"instance": name, "memory": memory}, lambda: _row(given, memory))  # noqa: B023
    return "\n".join(_table(store.rows))


def tight(given: Instance, memory: Memory, factor: Fraction = Fraction(11, 10)) -> Instance:
    """Give every device ``factor`` times the least equal capacity that is found to fit.

    The least capacity is found by bisection: under ``estimate``, some heuristic must find a
    placement, under ``refcount`` a schedule.
    """
    static = _with(given, "estimate", None).static_memory
    total = sum((static[u] for u in range(len(given.units))), Fraction(0))
    low, high = Fraction(0), total
    for _ in range(20 if memory == "estimate" else 8):
        middle = (low + high) / 2
        low, high = (low, middle) if _fits(_with(given, memory, middle)) else (middle, high)
    return _with(given, memory, factor * high)


def _fits(instance: Instance) -> bool:
    if instance.model.memory == "estimate":
        return repaired(instance, None, np.random.default_rng(0)) is not None
    found = (registry.get(name)(instance) for name in registry.pairs())
    return any(result.schedule is not None for result in found)


def _with(given: Instance, memory: Memory, capacity: Fraction | None) -> Instance:
    cluster = replace(given.cluster, memory=(capacity,) * given.devices)
    return replace(given, cluster=cluster, model=Model("delay", memory))


def _row(given: Instance, memory: Memory) -> Values:
    instance = tight(given, memory)
    start = best_heuristic(instance)
    row: Values = {"heuristic": float(start.makespan(instance))}
    for method in ("search", "hybrid"):
        result = registry.get(method)(instance, budget=Budget(SECONDS, 2))
        assert result.schedule is not None
        assert not verify(instance, result.schedule, most=1)
        row[method] = float(result.makespan or 0)
        row["bound"] = float(result.lower_bound or 0)
    return row


def _table(rows: list[Values]) -> Iterator[str]:
    yield f"After {SECONDS:.0f} s on two cores; every schedule verified. {MACHINE}.\n"
    yield "| instance | memory | best feasible heuristic | search | hybrid | bound |"
    yield "|---" * 6 + "|"
    for row in rows:
        values = [up(float(row[name])) for name in ("heuristic", "search", "hybrid")]
        values.append(down(float(row["bound"])))
        yield f"| `{row['instance']}` | {row['memory']} | " + " | ".join(values) + " |"
