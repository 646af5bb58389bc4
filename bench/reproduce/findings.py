"""The table of findings: what was published, what was measured, and whether it holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from bench.reproduce.criteria import Verdict
from bench.reproduce.data import Data, MissingError

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


def as_csv(rows: Iterable[Row]) -> str:
    """Write the table as CSV."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(("finding", "source", "published", "criterion", "measured", "verdict"))
    for row in rows:
        f = row.finding
        writer.writerow(
            (f.title, f.source, f.published, f.criterion, row.measured, row.verdict.value)
        )
    return target.getvalue()


def as_markdown(rows: list[Row], header: Iterable[str]) -> str:
    """Write the table for readers, the criteria below."""
    count = {verdict: sum(row.verdict is verdict for row in rows) for verdict in Verdict}
    lines = [
        "# Published findings, run again",
        "",
        *header,
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


def finding(
    into: list[Finding], title: str, source: str, published: str, criterion: str, why: str = ""
) -> Callable[[Callable[[Data], Judgement]], Callable[[Data], Judgement]]:
    """Add a finding whose verdict the decorated function computes."""

    def add(judge: Callable[[Data], Judgement]) -> Callable[[Data], Judgement]:
        into.append(Finding(title, source, published, criterion, judge, why))
        return judge

    return add
