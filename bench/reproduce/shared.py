"""Helpers for the findings of several sections."""

from __future__ import annotations

from collections.abc import Iterable

from bench.reproduce.cases import LAICH, Case
from bench.reproduce.criteria import Verdict, falling, overlap
from bench.reproduce.data import Data, MissingError
from bench.reproduce.findings import Judgement

HASH, HEFT, BATCH, CP, ICP, MITE, DFS = NAMES = LAICH
SCHEDULERS = ("fifo", "pct", "msr")

SAME = "Makespans within 0.1% count as equal."
MEAN = "Means over the runs."


def thesis(data: Data, number: int, devices: int = 100) -> Case:
    """Return a graph of [L] table 7.1."""
    return data.case(f"thesis-{number}", devices)


def makespans(
    data: Data, case: Case, scheduler: str, names: Iterable[str] = NAMES
) -> dict[str, float]:
    """Mean makespan by partitioning strategy."""
    return {name: data.makespan(case, name, scheduler) for name in names}


def traffics(data: Data, case: Case) -> dict[str, float]:
    """Mean traffic by partitioning strategy of [L]."""
    return {name: data.traffic(case, name) for name in NAMES}


def shown(case: Case) -> str:
    """Return a short name of a graph."""
    return case.graph.replace("thesis-", "graph ").removesuffix("_network")


def percent(value: float) -> str:
    """Write a change."""
    return f"{100 * value:+.0f}%"


def listed(parts: Iterable[str]) -> str:
    """Join the numbers of several graphs."""
    return "; ".join(parts)


def cases_of(data: Data, setting: str) -> list[Case]:
    """Return the cases of a setting, or say that there are none."""
    cases = data.of(setting)
    if not cases:
        raise MissingError(setting)
    return cases


def highest(data: Data, setting: str, expected: tuple[str, ...]) -> Judgement:
    """Judge whether some strategies cause the most traffic."""
    order = {c: falling(traffics(data, c)) for c in cases_of(data, setting)}
    hits = [overlap(names, expected) for names in order.values()]
    verdict = Verdict.HOLDS if min(hits) == len(expected) else Verdict.NOT
    if verdict is Verdict.NOT and min(hits) >= len(expected) - 1:
        verdict = Verdict.PARTLY
    return verdict, listed(
        f"{shown(c)}: {', '.join(names[: len(expected)])}" for c, names in order.items()
    )
