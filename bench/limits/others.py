"""The rows of the commands other than ``solve``, ``bound`` and ``gap``.

Certificates, orders of transfers, pipelines, simulations and reports on the drawn instances, and
reductions and strategies of training, which have sizes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from optpart import Budget, Instance, Result, simulate, solve, write_report
from optpart.certify.certify import certify
from optpart.errors import OptpartError
from optpart.ordering.compare import compare_orders
from optpart.reductions.catalogue import reduction
from optpart.reductions.decide import decide
from optpart.solution.result import conclude
from optpart.training.makers.base import Budget as StrategyBudget
from optpart.training.order import loss
from optpart.training_api import compare_strategies, strategy_bound, strategy_question


class Row(NamedTuple):
    """What has a limit: its name, what runs it, and how often that spends the limit (0: never)."""

    name: str
    run: Callable[[], str]
    times: int = 1


#: Models and batches of strategies: few operations, and many.
_STRATEGIES = (("vgg19", 96), ("nasnet", 96))


def placed(instance: Instance, schedule: Result) -> Instance:
    """Return the instance with one allowed device per vertex, that of a schedule."""
    assert schedule.schedule is not None
    names = instance.cluster.names
    device = schedule.schedule.placement.tolist()
    allowed = {v: (names[d],) for v, d in enumerate(device)}
    graph = replace(instance.graph, allowed_devices=allowed)
    return replace(instance, graph=graph)


def drawn_rows(instance: Instance, limit: float) -> Iterator[Row]:
    """Yield the rows of an instance; those without a limit of their own are for the time only."""
    found = solve(instance, "heft", seconds=0)
    assigned = placed(instance, found)

    def certified() -> str:
        assert found.schedule is not None
        with TemporaryDirectory() as folder:
            made = certify(instance, found.schedule, Path(folder) / "out", seconds=limit)
            return f"by tier {made.tier}"

    def ordered() -> str:
        best = compare_orders(assigned, Budget(limit)).best
        return f"efficiency at least {best.efficiency[0]:.3f}"

    def reported() -> str:
        result = conclude(instance, "heft", found.schedule)
        with TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            write_report(result, page)
            return f"{page.stat().st_size / 2**20:.1f} MiB"

    yield Row("certify", _said(certified))
    yield Row("ordering", _said(ordered))
    yield Row("simulate", _said(lambda: str(simulate(instance).result.status)), 0)
    yield Row("report", _said(reported), 0)


def own_rows(limit: float) -> Iterator[Row]:
    """Yield the rows that have sizes of their own."""

    def decided(name: str, size: int) -> str:
        chosen = reduction(name)
        source = chosen.random(size, np.random.default_rng(1))
        return str(decide(chosen, source, budget=Budget(limit)).verdict)

    for name in ("clique", "partition", "three-partition"):
        for size in (8, 40):
            yield Row(f"reduce {name} {size}", _said(partial(decided, name, size)))
    for model, batch in _STRATEGIES:
        question = strategy_question(model, "heterog-8", batch)

        def bounded(question=question) -> str:  # type: ignore[no-untyped-def]
            return str(strategy_bound(question, seconds=limit).reason or "proven")

        def compared(question=question) -> str:  # type: ignore[no-untyped-def]
            found = compare_strategies(question, ["stages"], seconds=limit)
            return "no strategy" if found.best is None else found.best[0]

        def lost(question=question) -> str:  # type: ignore[no-untyped-def]
            made = compare_strategies(question, ["stages"], seconds=0).rows[0][1]
            if made.makespan is None:
                return made.reason
            parts, best = loss(question.problem, made, made.makespan, budget=StrategyBudget(limit))
            return f"{float(parts.total):.0f} ns, order by {best.by}"

        yield Row(f"strategy bound {model}", _said(bounded))
        yield Row(f"strategy compare {model}", _said(compared), 2)
        yield Row(f"strategy loss {model}", _said(lost))


def _said(run: Callable[[], str]) -> Callable[[], str]:
    """Return what runs it and says why it is refused, if it is."""

    def told() -> str:
        try:
            return run()
        except OptpartError as error:
            return str(error)[:90]

    return told
