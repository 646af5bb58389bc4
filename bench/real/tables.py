"""Tables of all rows: what every method found and proved, and what they did together."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction

from bench.real.instances import Case, articulations, base
from bench.real.memory import WHOLE, just_fits, needs
from bench.real.runs import CONTIGUOUS, METHODS, SPLIT, Run, contradiction
from bench.store import MACHINE, Values
from optpart.solution.result import Status

NOTE = (
    "Times in milliseconds, values rounded up and bounds down. `bench/real/instances.py` and "
    "`memory.py` say what the instances are and how tight their memory is. A solver is not run on "
    "instances that one before it proved within a tenth of the limit, so its counts are of those "
    "that it ran on. *gap*: (value − bound) / value. *by*: the first method, in the order of the "
    "summary, with that value or bound. *split*: the contiguous split by dynamic programming."
)


@dataclass(frozen=True)
class Together:
    """The rows of one instance and goal."""

    rows: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """Any of them."""
        return self.rows[0]

    @property
    def value(self) -> Fraction | None:
        """The least value."""
        return min((Fraction(run.value) for run in self.rows if run.value), default=None)

    @property
    def bound(self) -> Fraction | None:
        """The largest bound."""
        return max((Fraction(run.bound) for run in self.rows if run.bound), default=None)

    @property
    def infeasible(self) -> bool:
        """Whether one of them proved that there is no schedule."""
        return any(run.status == Status.INFEASIBLE for run in self.rows)

    @property
    def proven(self) -> bool:
        """Whether they prove an optimum, even if none of them does by itself."""
        return self.infeasible or (self.value is not None and self.value == self.bound)

    @property
    def gap(self) -> float | None:
        """Relative."""
        if self.value is None or self.bound is None:
            return None
        return float(1 - self.bound / self.value)

    @property
    def split(self) -> Run | None:
        """The row of the contiguous split."""
        return next((run for run in self.rows if run.method == SPLIT), None)

    def by(self, what: str) -> str:
        """Name the first method with the best value or bound, and the member of a portfolio."""
        best = self.value if what == "value" else self.bound
        for run in self.rows:
            found = getattr(run, what)
            if (found and Fraction(found) == best) or run.status == Status.INFEASIBLE:
                member = getattr(run, f"{what}_by")
                return f"{run.method} ({member})" if member else run.method
        return "–"


def together(runs: Iterable[Run]) -> list[Together]:
    """Return the rows by instance and goal, the methods in their usual order."""
    found: dict[tuple[str, str, str, float, int], list[Run]] = {}
    for run in runs:
        key = (run.group, run.instance, run.goal, run.seconds, run.workers)
        found.setdefault(key, []).append(run)
    rank = {method: i for i, method in enumerate(METHODS)}
    return [
        Together(tuple(sorted(rows, key=lambda run: rank.get(run.method, len(rank)))))
        for rows in found.values()
    ]


def contradictions(runs: Iterable[Run]) -> list[str]:
    """Return the contradictions between rows of the same instance and goal, whatever the limit.

    A contiguous placement is also one of those that need not be contiguous.
    """
    found: dict[tuple[str, str, str], list[Values]] = {}
    for run in runs:
        free = run.goal.removeprefix(CONTIGUOUS)
        found.setdefault((run.instance, run.sha256, run.goal), []).append(asdict(run))
        if free != run.goal and run.value is not None:
            found.setdefault((run.instance, run.sha256, free), []).append(
                asdict(run) | {"bound": None, "status": Status.FEASIBLE}
            )
    said = ((key, contradiction(rows)) for key, rows in found.items())
    return [f"{name}, {goal}: {fault}" for (name, _, goal), fault in said if fault]


def index(every: Iterable[Case]) -> str:
    """Return a row for every instance: its size, and how scarce its memory is."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ("group", "instance", "vertices", "edges", "articulations", "devices", "communication",
         "memory", "needs", "just fits", "limits", "sha256")
    )  # fmt: skip
    for case in every:
        real, instance = base(case.group, case.base), case.instance()
        limits = (f"{limit}" for limit in instance.cluster.memory if limit is not None)
        writer.writerow(
            (case.group, case.name, instance.vertices, len(instance.graph.edge_source),
             articulations(case.group, case.base), instance.devices, case.communication,
             case.memory, sum(needs(real)), just_fits(real) / WHOLE, " ".join(limits),
             instance.sha256)
        )  # fmt: skip
    return text.getvalue()


def report(runs: list[Run]) -> str:
    """Return summary and tables in Markdown."""
    return "\n".join(_report(runs)) + "\n"


def _report(runs: list[Run]) -> Iterator[str]:
    yield "# Real models"
    yield ""
    yield f"`python bench/real`; {MACHINE}. {NOTE}"
    faults = contradictions(runs)
    if faults:
        yield ""
        yield "**Contradictions:**"
        yield ""
        yield from (f"- {fault}" for fault in faults)
    limits = sorted({(run.group, run.seconds, run.workers) for run in runs}, reverse=True)
    for group, seconds, workers in limits:
        chosen = [r for r in runs if (r.group, r.seconds, r.workers) == (group, seconds, workers)]
        yield ""
        yield f"## {group.capitalize()}, {seconds:g} s, {workers} workers"
        yield ""
        yield from _summary(together(chosen))
        yield ""
        yield from _table(together(chosen))


def kind(run: Run) -> str:
    """Return what instances of a line of the summary have in common."""
    parts = run.instance.removesuffix("-port").split("-")
    memory = "very tight" if parts[-2:] == ["very", "tight"] else parts[-1]
    if run.group == "networks":
        return f"{memory}, {'port' if run.instance.endswith('-port') else 'delay'}"
    return f"{memory}, {parts[-2]}, {run.goal}"


def _summary(every: list[Together]) -> Iterator[str]:
    """Count, by kind of instance, what every method proved and found, and what all did."""
    yield (
        "| instances | method | run on | proven | mean gap of rest | nothing found "
        "| worse than the split | mean seconds |"
    )
    yield "|---" * 8 + "|"
    kinds: dict[str, list[Together]] = {}
    for each in every:
        kinds.setdefault(kind(each.first), []).append(each)
    kinds["all"] = every
    for name, members in kinds.items():
        methods = list(dict.fromkeys(run.method for each in members for run in each.rows))
        methods.sort(key=lambda method: (*METHODS, method).index(method))
        for method in methods:
            pairs = [(each, run) for each in members for run in each.rows if run.method == method]
            rest = [run.gap for _, run in pairs if not run.proven and run.gap is not None]
            nothing = sum(run.value is None and not run.proven for _, run in pairs)
            worse = sum(_worse(each, run) for each, run in pairs)
            took = sum(run.took for _, run in pairs) / len(pairs)
            yield (
                f"| {name} | `{method}` | {len(pairs)} | {sum(run.proven for _, run in pairs)} "
                f"| {_mean(rest)} | {nothing} | {worse} | {took:.1f} |"
            )
        rest = [each.gap for each in members if not each.proven and each.gap is not None]
        nothing = sum(each.value is None and not each.infeasible for each in members)
        yield (
            f"| {name} | together | {len(members)} | {sum(each.proven for each in members)} "
            f"| {_mean(rest)} | {nothing} | | |"
        )


def _worse(each: Together, run: Run) -> bool:
    """Whether a method found less than the contiguous split, or nothing where that did."""
    split = each.split
    if split is None or split.value is None:
        return False
    return run.value is None or Fraction(run.value) > Fraction(split.value)


def _table(every: list[Together]) -> Iterator[str]:
    """List the instances with the best value and bound, and who gave them."""
    yield (
        "| instance | goal | vertices | articulations | devices | value | by | bound | by | gap "
        "| split above value |"
    )
    yield "|---" * 11 + "|"
    for each in every:
        run, split = each.first, each.split
        excess = "–"
        if split is not None and split.value is not None and each.value:
            excess = f"{float(Fraction(split.value) / each.value - 1):.1%}"
        value = "infeasible" if each.infeasible else _milliseconds(each.value, up=True)
        gap = "proven" if each.proven else "–" if each.gap is None else f"{each.gap:.1%}"
        yield (
            f"| `{run.instance}` | {run.goal} | {run.vertices} | {run.articulations} "
            f"| {run.devices} | {value} | {each.by('value')} "
            f"| {_milliseconds(each.bound, up=False)} | {each.by('bound')} | {gap} | {excess} |"
        )


def _mean(gaps: list[float]) -> str:
    return f"{sum(gaps) / len(gaps):.1%}" if gaps else "–"


def _milliseconds(value: Fraction | None, *, up: bool) -> str:
    if value is None:
        return "–"
    thousandths = -(-value // 1000) if up else value // 1000
    return f"{thousandths / 1000:.3f}"
