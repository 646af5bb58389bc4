"""Training strategies: baselines, other systems and our search, with proven gaps.

    python bench/strategy [--seconds 10] [--only vgg19,heterog-4] [--quick]
        [-o bench/results/strategy]

Eight models on three clusters of [G]: the time of one iteration under every strategy maker, and
bounds. Besides: what order and servers lose, speed-up against bandwidth, proven optima with few
groups, and the claims of [G].

Every row is kept in ``runs.jsonl``, so a stopped command continues where it was. The machine should
be idle and have two cores. ``--only`` takes models and clusters by name; ``--quick`` takes two
models, two clusters and two seconds, and keeps its rows elsewhere. The time that a run will take at
most is said at the start: 42 minutes with 10 seconds a maker.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.store import RESULTS, Store, Values
from bench.strategy import cases, runs
from bench.strategy.figure import draw
from bench.strategy.tables import csv, report
from optpart.errors import OptpartError
from optpart.files import ANY, write_text
from optpart.kernels import all as kernels

SECONDS, QUICK_SECONDS = 10.0, 2.0
QUICK_MODELS, QUICK_CLUSTERS, QUICK_GBITS = (
    ("vgg19", "bert_large"),
    ("heterog-4", "heterog-8"),
    (1, 10),
)

#: Seconds that a case takes besides limited makers and bounds, about.
_REST = 8.0


def main() -> int:
    """Exit with 0 when done, 2 on bad usage."""
    parser = argparse.ArgumentParser(
        "strategy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, help="as for the other benches; nothing is read from it")
    add("--seconds", type=float, help="limit of each maker and of each bound")
    add("--only", default="", help="models and clusters, separated by commas")
    add("--quick", action="store_true", help="two models, two clusters, two seconds")
    add("-o", "--output", type=Path, help="folder of rows, tables and figure")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    unknown = [name for name in names if name not in (*cases.BATCHES, *cases.CLUSTERS)]
    if unknown:
        known = ", ".join((*cases.BATCHES, *cases.CLUSTERS))
        parser.error(f"--only: no {unknown[0]!r}; there are {known}")
    models = chosen(cases.BATCHES, names, QUICK_MODELS if given.quick else cases.BATCHES)
    clusters = chosen(cases.CLUSTERS, names, QUICK_CLUSTERS if given.quick else cases.CLUSTERS)
    gbits = QUICK_GBITS if given.quick else cases.GBITS
    seconds = given.seconds or (QUICK_SECONDS if given.quick else SECONDS)
    kept = Path(tempfile.gettempdir()) / "strategy-quick" if given.quick else RESULTS / "strategy"
    output = given.output or kept
    store = Store(output / "runs.jsonl")
    plan = [
        *singles(models, gbits, seconds, swept="heterog-8" in clusters),
        *(exacts(models) if "heterog-4" in clusters and not given.quick else ()),
    ]
    measure(store, models, clusters, plan, seconds)
    rows = store.rows()
    write_text(output / "table.txt", report(rows, models, clusters, gbits, seconds), ANY)
    write_text(output / "table.csv", csv(rows), ANY)
    if "heterog-8" in clusters:
        draw(
            rows, [m for m in cases.SWEPT if m in models], gbits, seconds, output / "bandwidth.png"
        )
    print((output / "table.txt").read_text(encoding="utf-8"))
    return 0


def chosen(
    known: Sequence[str] | dict[str, object], names: Sequence[str], most: object
) -> list[str]:
    """Return the names that are asked for, or all if none of this kind is."""
    asked = [name for name in known if name in names]
    return asked or [name for name in known if name in most]  # type: ignore[operator]


def singles(
    models: Sequence[str], gbits: Sequence[float], seconds: float, *, swept: bool
) -> Iterator[Values]:
    """Yield the runs of bandwidths and claims."""
    for model in models:
        yield {"part": "gain", "model": model, "cluster": "heterog-4"}
        for straggler in (False, True):
            for name in runs.BASELINES:
                yield {
                    "part": "straggler",
                    "model": model,
                    "cluster": "heterog-4",
                    "straggler": straggler,
                    "method": name,
                    "seconds": 0.0,
                }
    for model in cases.SWEPT if swept else ():
        for gbit in gbits if model in models else ():
            for name in (*runs.BASELINES, runs.OURS):
                yield {
                    "part": "bandwidth",
                    "model": model,
                    "cluster": "heterog-8",
                    "gbit": gbit,
                    "method": name,
                    "seconds": seconds if name in runs.LIMITED else 0.0,
                }


def exacts(models: Sequence[str]) -> Iterator[Values]:
    """Yield the questions that are solved exactly, each with a limit of its own."""
    for cluster, groups, limit in cases.EXACT:
        for model in models:
            yield {
                "part": "exact",
                "model": model,
                "cluster": cluster,
                "groups": groups,
                "seconds": limit,
            }


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
        run = runs.case(model, cluster, "", seconds) | {
            "part": "bound",
            "with": runs.digest(ours),
            "seconds": seconds,
        }
        del run["method"]
        store.run(run, partial(runs.bound, run, ours))
        for row in found if cluster == runs.SPLIT_ON else ():
            if row.run["method"] in runs.SPLIT:
                chosen = row.result["decisions"]
                run = runs.case(model, cluster, row.run["method"], seconds) | {
                    "part": "loss",
                    "with": runs.digest([chosen]),
                    "seconds": seconds,
                }
                store.run(run, partial(runs.split, run, chosen))
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
        sys.exit(main())
    except OptpartError as error:
        sys.exit(f"strategy: {error}")
