"""The rows of the commands other than ``solve``, ``bound`` and ``gap``.

Certificates, orders of transfers, plans of pipelines, simulations and reports on the drawn
instances; reductions, chains, strategies of training, and files, which have sizes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from optpart import (
    Budget,
    Cluster,
    Device,
    GraphBuilder,
    Instance,
    Model,
    Result,
    costed,
    plan,
    simulate,
    solve,
    solve_strategy,
    workload,
    write_report,
)
from optpart.certify.certify import certify
from optpart.errors import OptpartError
from optpart.ordering.compare import compare_orders
from optpart.reductions.catalogue import reduction
from optpart.reductions.decide import decide
from optpart.solution.result import conclude
from optpart.training import profile
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


#: Vertices of chains, and rows of files.
_SIZES = (100, 1000, 10_000)


def chained(vertices: int) -> Instance:
    """Draw a chain on four unlike devices that together hold a tenth more than it needs."""
    rng = np.random.default_rng(1)
    builder = GraphBuilder()
    for v in range(vertices):
        ops, size = (int(x) for x in rng.integers(1, 100, 2))
        builder.vertex(f"v{v}", ops, memory=1, outputs=[size])
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    # A vertex takes at most 1 + 99 for what it holds and makes, and 99 for what it reads.
    memory = vertices * 110 // 4 + 200
    devices = [Device(f"d{d}", 10 + d, memory=memory) for d in range(4)]
    cluster = Cluster.of(devices, 20)
    return Instance(builder.build(), cluster, Model(memory="estimate"), name=f"chain-{vertices}")


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
    yield Row("pipeline", _said(partial(_planned, instance)), 0)
    yield Row("simulate", _said(lambda: str(simulate(instance).result.status)), 0)
    yield Row("report", _said(reported), 0)


def own_rows(limit: float) -> Iterator[Row]:
    """Yield the rows that have sizes of their own; those of files have no limit."""

    def decided(name: str, size: int) -> str:
        chosen = reduction(name)
        source = chosen.random(size, np.random.default_rng(1))
        return str(decide(chosen, source, budget=Budget(limit)).verdict)

    for name in ("clique", "partition", "three-partition"):
        for size in (8, 40):
            yield Row(f"reduce {name} {size}", _said(partial(decided, name, size)))
    for size in _SIZES:
        chain = chained(size)
        blocks = {"objective": "bottleneck", "contiguous": True}
        for method, options in (("series", {}), ("pipeline", blocks)):

            def solved(chain=chain, method=method, options=options) -> str:  # type: ignore[no-untyped-def]
                found = solve(chain, method, seconds=limit, **options)
                return f"{found.status} ({found.termination})"

            yield Row(f"solve -m {method} {chain.name}", _said(solved))
        yield Row(f"pipeline {chain.name}", _said(partial(_planned, chain)), 0)
        yield Row(f"import dot {size}", _said(partial(_imported, size)), 0)
        yield Row(f"profile fit {size}", _said(partial(_fitted, size)), 0)
    for model, batch in _STRATEGIES:
        question = strategy_question(model, "heterog-8", batch)

        def bounded(question=question) -> str:  # type: ignore[no-untyped-def]
            return str(strategy_bound(question, seconds=limit).reason or "proven")

        def compared(question=question) -> str:  # type: ignore[no-untyped-def]
            found = compare_strategies(question, ["stages"], seconds=limit)
            return "no strategy" if found.best is None else found.best[0]

        def made(question=question) -> str:  # type: ignore[no-untyped-def]
            found = solve_strategy(question, seconds=limit)
            return "no gap" if found.gap is None else f"gap {found.gap:.1%}"

        def lost(question=question) -> str:  # type: ignore[no-untyped-def]
            made = compare_strategies(question, ["stages"], seconds=0).rows[0][1]
            if made.makespan is None:
                return made.reason
            parts, best = loss(question.problem, made, made.makespan, budget=StrategyBudget(limit))
            return f"{float(parts.total):.0f} ns, order by {best.by}"

        def simplest(question=question) -> str:  # type: ignore[no-untyped-def]
            return compare_strategies(question, ["stages"], seconds=0).rows[0][0]

        yield Row("floor (stages)", _said(simplest))
        yield Row(f"strategy bound {model}", _said(bounded))
        yield Row(f"strategy compare {model}", _said(compared), 2)
        yield Row(f"strategy solve {model}", _said(made), 2)
        yield Row(f"strategy loss {model}", _said(lost))


def _planned(instance: Instance) -> str:
    return str(plan(instance).status)


def _imported(vertices: int) -> str:
    lines = [f"  v{v} [ops={v % 97}]" for v in range(vertices)]
    lines += [f"  v{v} -> v{v + 1} [size={v % 89}]" for v in range(vertices - 1)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chain.dot"
        path.write_text("\n".join(["digraph chain {", *lines, "}"]))
        found = costed(workload(path), Cluster.uniform(4), "unit").instance
    return f"{found.vertices:,} vertices"


def _fitted(rows: int) -> str:
    """Fit lines to a table with ten rows per operation."""
    lines = [f"op{row // 10},gpu,{1 + row % 10},{3 + row % 10}" for row in range(rows)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "times.csv"
        path.write_text("\n".join(["op,kind,batch,time (us)", *lines]))
        return f"{len(profile.fit_files([path]).operations):,} lines"


def _said(run: Callable[[], str]) -> Callable[[], str]:
    """Return what runs it and says why it is refused, if it is."""

    def told() -> str:
        try:
            return run()
        except OptpartError as error:
            return str(error)[:90]

    return told
