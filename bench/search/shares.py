"""The distribution of a search's time: shares of one worker's wall time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.search.networks import NAMES
from bench.search.rows import Part
from bench.store import MACHINE, Values
from optpart.formats.native import read
from optpart.methods import registry
from optpart.search import climb
from optpart.search.evaluator import Evaluator
from optpart.search.neighbourhood import Exact, Greedy
from optpart.search.search import _Search
from optpart.solution.result import Budget

SECONDS = 30.0
METHODS = ("search", "hybrid")

#: What is measured, and the functions that do it; what one calls of another counts for that.
SPENT: dict[str, list[tuple[Any, str]]] = {
    "starts": [(_Search, "_start")],
    "bounds": [(_Search, "_bound_cheaply"), (_Search, "_bound_here")],
    "annealing": [(climb, "anneal")],
    "computing anew": [(Evaluator, "refresh"), (climb, "by_start")],
    "greedy repair": [(Greedy, "step")],
    "CP-SAT on parts": [(Exact, "step")],
    "exact timing, verifying": [(_Search, "_take")],
}


class Clock:
    """Time by label; what runs within something else counts for itself only."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._running: list[str] = ["other"]
        self._since = time.perf_counter()

    def _pass(self) -> None:
        now = time.perf_counter()
        self.spent[self._running[-1]] += now - self._since  # type: ignore[assignment]
        self._since = now

    def timed(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and is measured."""

        def measured(*given: Any, **named: Any) -> Any:
            self._pass()
            self._running.append(label)
            try:
                return call(*given, **named)
            finally:
                self._pass()
                self._running.pop()

        return measured

    def shares(self) -> Values:
        """Return the shares of all labels so far."""
        self._pass()
        total = sum(self.spent.values())
        return {label: round(self.spent[label] / total, 4) for label in (*SPENT, "other")}


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "shares")
    for name in NAMES:
        for method in METHODS:
            path = shared / "instances" / f"{name}.json"
            store.run({"instance": name, "method": method}, lambda: _row(path, method))  # noqa: B023
    return "\n".join(_table(store.rows))


def _row(path: Path, method: str) -> Values:
    instance = read(path)
    speed: list[float] = [0.0]
    clock = Clock()
    with ExitStack() as patches:
        for label, places in SPENT.items():
            for owner, name in places:
                timed = clock.timed(label, getattr(owner, name))
                patches.enter_context(patch.object(owner, name, timed))

        def watch(step: object) -> None:
            speed.append(getattr(step, "moves_per_second", 0.0))

        registry.get(method)(instance, budget=Budget(SECONDS, 1), watch=watch)
    return {"moves_per_second": round(speed[-1]), **clock.shares()}


def _table(rows: list[Values]) -> Iterator[str]:
    yield f"Shares of {SECONDS:.0f} s of one worker. {MACHINE}.\n"
    heads = ["instance", "method", "moves/s", *SPENT, "other"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        shares = [f"{float(row[label]):.1%}" for label in (*SPENT, "other")]
        speed = f"{int(row['moves_per_second']):,}"
        yield f"| `{row['instance']}` | {row['method']} | {speed} | " + " | ".join(shares) + " |"
