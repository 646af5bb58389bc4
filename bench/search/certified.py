"""Certificates of the networks' gaps: a schedule, and a proof that none is shorter than a bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import optpart as op
from bench.output import down, markdown, up
from bench.search.networks import NAMES
from bench.store import MACHINE, Runs, Values
from optpart.certificates.certify import certify_bound
from optpart.study.library import best_schedule

NETWORKS = ("convolutional_network", "recurrent_network", "dynamic_rnn")

#: Networks of the library, whose best known schedules are taken.
LIBRARY = tuple(f"{name}-{devices}" for name, devices in product(NETWORKS, (7, 50)))
SEARCH, BOUNDS, PROOF = 60.0, 30.0, 120.0


def runs(instances: Path) -> Iterator[Runs]:
    for name in (*NAMES, *LIBRARY):
        file = str(instances / f"{name}.json") if name in NAMES else name
        yield {"instance": name}, partial(measured, file)


def measured(file: str) -> Values:
    instance = op.load(file)
    if file in LIBRARY:
        schedule = best_schedule(instance)
    else:
        schedule = op.solve(instance, "search", seconds=SEARCH).schedule
    assert schedule is not None
    bounds = [b.value for b in op.bounds(instance, seconds=BOUNDS) if b.value is not None]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "certificate"
        begin = time.perf_counter()
        found = certify_bound(instance, bounds, folder, schedule=schedule, seconds=PROOF)
        took = time.perf_counter() - begin
        size = sum(path.stat().st_size for path in folder.iterdir() if path.name != "instance.json")
    check = found.refutation.seconds["check"]
    return {
        "makespan": float(schedule.makespan(instance)),
        "bound": float(max(bounds)),
        "certified": float(found.bound),
        "tier": found.refutation.tier,
        "proof": round(took - check, 1),
        "check": round(check, 1),
        "bytes": size,
    }


def table(rows: list[Values]) -> str:
    head = ("instance", "makespan", "bound", "certified", "gap", "tier", "proof", "check", "KiB")
    lines = (
        (
            f"`{row['instance']}`", up(row["makespan"]), down(row["bound"]),
            down(row["certified"]), f"{row['makespan'] / row['certified'] - 1:.1%}", row["tier"],
            row["proof"], row["check"], f"{row['bytes'] / 1024:.0f}",
        )
        for row in rows
    )  # fmt: skip
    return (
        f"Makespans of the library or, with drawn costs, after {SEARCH:.0f} s of search; bounds "
        f"after {BOUNDS:.0f} s; {PROOF:.0f} s for a proof; times in seconds. {MACHINE}.\n\n"
        f"{markdown(head, lines)}"
    )
