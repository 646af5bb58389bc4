"""Benchmark sets with known optima: how often search reaches the optimum, and how quickly.

A run ends as soon as it reaches the known optimum of the set, which only saves time.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from bench.search.rows import Part
from bench.store import MACHINE, Values
from optpart.formats.detect import read_instance
from optpart.methods import registry
from optpart.solution.result import Budget, Progress


class Case(NamedTuple):
    """A file, the number of devices where it does not say it, and the optimum."""

    path: Path
    devices: int | None
    optimum: Fraction


SECONDS = {"job shop": 30.0, "STG 100": 10.0, "Auckland 21": 5.0}
EVERY = {"job shop": 1, "STG 100": 8, "Auckland 21": 1}
METHODS = ("search", "hybrid")


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "sets")
    for name, seconds in SECONDS.items():
        for method in METHODS:
            for case in list(_cases(shared / "data", name))[:: EVERY[name]]:
                key: Values = {"set": name, "method": method, "file": case.path.name}
                key["devices"] = case.devices or 0
                store.run(key, lambda: _row(case, method, seconds))  # noqa: B023
    return "\n".join(_table(store.rows))


def _cases(data: Path, name: str) -> Iterator[Case]:
    if name == "job shop":
        wanted = {"ft06", "ft10", *(f"la{i:02}" for i in range(1, 21))}
        wanted |= {f"orb{i:02}" for i in range(1, 11)}
        for row in _rows(data / "jsplib"):
            if row["instance"] in wanted:
                upper = Fraction(row["upper_bound"])
                yield Case(data / "jsplib" / row["instance"], None, upper)
    elif name == "STG 100":
        for row in _rows(data / "stg"):
            if row["file"].startswith("100/"):
                optimum = Fraction(row["optimum"])
                yield Case(data / "stg" / row["file"], int(row["procs"]), optimum)
    else:
        for row in _rows(data / "auckland_gxl"):
            if row["n"] == "21":
                yield Case(data / "auckland_gxl" / row["file"], None, Fraction(row["optimum"]))


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "optimum.csv").open() as stream:
        return list(csv.DictReader(stream))


def _row(case: Case, method: str, seconds: float) -> Values:
    instance = read_instance(case.path, devices=case.devices)
    begin = time.perf_counter()

    def watch(step: Progress) -> None:
        if step.objective is not None and step.objective <= case.optimum:
            raise KeyboardInterrupt

    result = registry.get(method)(instance, budget=Budget(seconds, 2), watch=watch)
    assert result.makespan is not None
    if result.makespan < case.optimum:
        raise AssertionError(f"{case.path}: {result.makespan} is below {case.optimum}")
    return {
        "makespan": float(result.makespan),
        "optimum": float(case.optimum),
        "seconds": round(time.perf_counter() - begin, 2),
    }


def _table(rows: list[Values]) -> Iterator[str]:
    yield f"Two cores, one seed; every eighth row of STG. {MACHINE}.\n"
    yield "| set | limit | method | optimal | mean excess | worst excess | mean seconds |"
    yield "|---" * 7 + "|"
    for name, seconds in SECONDS.items():
        for method in METHODS:
            own = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            if not own:
                continue
            excess = [float(row["makespan"]) / float(row["optimum"]) - 1 for row in own]
            yield (
                f"| {name} | {seconds:.0f} s | {method} | {excess.count(0.0)} of {len(own)} "
                f"| {sum(excess) / len(own):.2%} | {max(excess):.2%} "
                f"| {sum(float(row['seconds']) for row in own) / len(own):.1f} |"
            )
