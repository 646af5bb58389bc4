"""Training strategies: baselines, other systems and our search, with proven gaps.

    python bench/strategy [--seconds 10] [--only vgg19,heterog-4] [-o bench/results/strategy]

Eight models on three clusters of [G]: the time of one iteration under every strategy maker, and
bounds. Besides: what order and servers lose, speed-up against bandwidth, proven optima with few
groups, and the claims of [G].

Every row is kept in ``runs.jsonl``, so a stopped command continues where it was. The machine should
be idle and have two cores. ``--only`` takes models and clusters by name. The time that a run will
take at most is said at the start: 42 minutes with 10 seconds a maker.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.store import RESULTS, Store, Values
from bench.strategy import cases, runs
from bench.strategy.tables import draw, report
from optpart.base.errors import OptpartError
from optpart.base.files import ANY, write_text
from optpart.kernels import all as kernels

#: Seconds that a case takes besides limited makers and bounds, about.
_REST = 8.0


def main() -> None:
    parser = argparse.ArgumentParser("strategy", description="compare makers of strategies")
    add = parser.add_argument
    add("--seconds", type=float, default=10.0, help="limit of each maker and of each bound")
    add("--only", default="", help="models and clusters, separated by commas")
    add("-o", "--output", type=Path, default=RESULTS / "strategy")
    given = parser.parse_args()
    names, known = (
        [name for name in given.only.split(",") if name],
        (*cases.BATCHES, *cases.CLUSTERS),
    )
    if unknown := [name for name in names if name not in known]:
        parser.error(f"--only: no {unknown[0]!r}; there are {', '.join(known)}")
    models, clusters = chosen(cases.BATCHES, names), chosen(cases.CLUSTERS, names)
    store, seconds = Store(given.output / "runs.jsonl"), given.seconds
    plan = [
        *singles(models, seconds, swept="heterog-8" in clusters),
        *(exacts(models) if "heterog-4" in clusters else ()),
    ]
    measure(store, models, clusters, plan, seconds)
    rows = store.rows()
    text = report(rows, models, clusters, cases.GBITS, seconds)
    write_text(given.output / "table.txt", text, ANY)
    if "heterog-8" in clusters:
        swept = [model for model in cases.SWEPT if model in models]
        draw(rows, swept, cases.GBITS, seconds, given.output / "bandwidth.png")
    print(text)


def chosen(known: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the names that are asked for, or all if none of this kind is."""
    known = list(known)
    return [name for name in known if name in names] or known


def singles(models: Sequence[str], seconds: float, *, swept: bool) -> Iterator[Values]:
    """Yield the runs of bandwidths and claims."""
    for model in models:
        here: Values = {"model": model, "cluster": "heterog-4"}
        yield {"part": "gain", **here}
        for straggler in (False, True):
            for name in runs.BASELINES:
                run = {"part": "straggler", **here, "straggler": straggler, "method": name}
                yield run | {"seconds": 0.0}
    for model in cases.SWEPT if swept else ():
        for gbit in cases.GBITS if model in models else ():
            for name in (*runs.BASELINES, runs.OURS):
                limit = seconds if name in runs.LIMITED else 0.0
                here = {"model": model, "cluster": "heterog-8", "gbit": gbit, "method": name}
                yield {"part": "bandwidth", **here, "seconds": limit}


def exacts(models: Sequence[str]) -> Iterator[Values]:
    """Yield the questions that are solved exactly, each with a limit of its own."""
    for cluster, groups, limit in cases.EXACT:
        asked = {"cluster": cluster, "groups": groups, "seconds": limit}
        yield from ({"part": "exact", "model": model, **asked} for model in models)


def measure(
    store: Store, models: Sequence[str], clusters: Sequence[str], plan: list[Values], seconds: float
) -> None:
    """Measure all that there are no rows of."""
    pairs = [(model, cluster) for cluster in clusters for model in models]
    limited = len(runs.LIMITED) + 1
    splits = len(runs.SPLIT) * sum(cluster == runs.SPLIT_ON for _, cluster in pairs)
    most = (
        len(pairs) * (limited * seconds + _REST)
        + splits * seconds
        + sum(run.get("seconds", 0.0) for run in plan)
    )
    said(f"{len(pairs)} cases, {len(plan)} others: at most about {most / 60:.0f} minutes")
    began = time.perf_counter()
    kernels.load()
    for model, cluster in pairs:
        rows = []
        for name in runs.METHODS:
            run = runs.case(model, cluster, name, seconds)
            rows.append(store.run(run, partial(runs.method, run)))
        found = [row for row in rows if runs.time_of(row) is not None]
        ours = [row.result["decisions"] for row in found if row.run["method"] == runs.OURS]
        asked = {"with": runs.digest(ours), "seconds": seconds}
        run = runs.case(model, cluster, "", seconds) | {"part": "bound", **asked}
        del run["method"]
        store.run(run, partial(runs.bound, run, ours))
        for row in found if cluster == runs.SPLIT_ON else ():
            if row.run["method"] in runs.SPLIT:
                found_by, decisions = row.run["method"], row.result["decisions"]
                asked = {"with": runs.digest([decisions]), "seconds": seconds}
                run = runs.case(model, cluster, found_by, seconds) | {"part": "loss", **asked}
                store.run(run, partial(runs.split, run, decisions))
        said(f"{model}, {cluster}: {time.perf_counter() - began:.0f} s")
    for run in plan:
        store.run(run, partial(attempted, run))
    said(f"all: {time.perf_counter() - began:.0f} s")


def attempted(run: Values) -> Values:
    """Measure one of the other runs."""
    measured = {"gain": runs.gain, "exact": runs.exact}.get(run["part"], runs.method)
    return measured(run)


def said(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except OptpartError as error:
        sys.exit(f"strategy: {error}")
