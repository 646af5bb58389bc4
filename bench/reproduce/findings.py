"""Published findings: what was claimed, by which criterion it holds, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from bench.reproduce.cases import LAICH, Case
from bench.reproduce.data import Data, MissingError

#: Makespans that differ by less, relatively, count as equal.
SAME = 0.001


class Verdict(StrEnum):
    """Whether a finding holds here."""

    HOLDS = "holds"
    PARTLY = "partly"
    NOT = "does not"
    UNKNOWN = "not measured"


def by_share(count: int, total: int, *, holds: float, partly: float) -> Verdict:
    """Judge a claim by how many of the cases agree with it."""
    if not total:
        return Verdict.UNKNOWN
    share = count / total
    if share >= holds:
        return Verdict.HOLDS
    return Verdict.PARTLY if share >= partly else Verdict.NOT


def all_of(flags: Iterable[bool]) -> Verdict:
    """Judge a claim about every case: all agree, some do, none does."""
    flags = list(flags)
    return by_share(sum(flags), len(flags), holds=1.0, partly=1e-9)


def within(
    value: float, holds: tuple[float, float], partly: tuple[float, float] | None = None
) -> Verdict:
    """Judge a published number by the range in which the measured one lies."""
    if holds[0] <= value <= holds[1]:
        return Verdict.HOLDS
    if partly is not None and partly[0] <= value <= partly[1]:
        return Verdict.PARTLY
    return Verdict.NOT


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Judge a claim of several parts: it holds with all, and does not without any."""
    verdicts = list(verdicts)
    for one in (Verdict.UNKNOWN, Verdict.HOLDS, Verdict.NOT):
        if verdicts and all(verdict is one for verdict in verdicts):
            return one
    return Verdict.UNKNOWN if Verdict.UNKNOWN in verdicts else Verdict.PARTLY


def is_largest(value: float, others: Collection[float]) -> bool:
    """Whether a value is the largest, alone or within :data:`SAME` of the largest."""
    return value >= max(others) * (1 - SAME)


def is_least(value: float, others: Collection[float]) -> bool:
    """Whether a value is the least, alone or within :data:`SAME` of the least."""
    return value <= min(others) * (1 + SAME)


def alike(values: Collection[float]) -> bool:
    """Whether values differ by less than :data:`SAME`."""
    return max(values) <= min(values) * (1 + SAME)


def falling(values: Mapping[str, float]) -> list[str]:
    """Names by falling value."""
    return sorted(values, key=lambda name: -values[name])


def overlap(names: Sequence[str], expected: Collection[str]) -> int:
    """Return how many of the first ``n`` names are among the ``n`` expected ones."""
    return len(set(names[: len(expected)]) & set(expected))


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's correlation; 0 where one does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


#: A verdict, and the measured numbers that led to it.
Judgement: TypeAlias = tuple[Verdict, str]


@dataclass(frozen=True)
class Finding:
    """One published finding.

    Attributes
    ----------
    title : str
    source : str
        Section and figure.
    published : str
        The claim of the source.
    criterion : str
        The condition under which it holds.
    judge : callable
        Computes the verdict from the measurements.
    why : str
        The explanation if it does not hold.
    """

    title: str
    source: str
    published: str
    criterion: str
    judge: Callable[[Data], Judgement]
    why: str = ""

    def judged(self, data: Data) -> Judgement:
        """Return verdict and numbers; what was not measured says so."""
        try:
            verdict, measured = self.judge(data)
            found = verdict in (Verdict.HOLDS, Verdict.UNKNOWN)
            return verdict, measured if found or not self.why else f"{measured}. {self.why}"
        except MissingError as error:
            return Verdict.UNKNOWN, f"not measured: {error}"


@dataclass(frozen=True)
class Row:
    """A finding with its verdict."""

    finding: Finding
    verdict: Verdict
    measured: str


def judged(findings: Iterable[Finding], data: Data) -> list[Row]:
    """Judge all findings."""
    return [Row(finding, *finding.judged(data)) for finding in findings]


def as_markdown(rows: list[Row], header: str) -> str:
    """Write the table for readers, the criteria below."""
    count = {verdict: sum(row.verdict is verdict for row in rows) for verdict in Verdict}
    lines = [
        "# Published findings, run again",
        "",
        header,
        "",
        ", ".join(f"{number} {verdict.value}" for verdict, number in count.items() if number)
        + f", of {len(rows)}. Criteria stand below the table.",
        "",
        "| | finding | source | published | measured | found again |",
        "|-:|---|---|---|---|---|",
    ]
    for number, row in enumerate(rows, 1):
        f = row.finding
        cells = (str(number), f.title, f.source, f.published, row.measured, f"**{row.verdict}**")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "## Criteria", ""]
    lines += [f"{number}. {row.finding.criterion}" for number, row in enumerate(rows, 1)]
    return "\n".join(lines) + "\n"


HASH, HEFT, BATCH, CP, ICP, MITE, DFS = NAMES = LAICH
SCHEDULERS = ("fifo", "pct", "msr")


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
