"""Certificates of the networks' gaps: a schedule, and a proof that none is shorter than a bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import optpart as op
from bench.search.networks import NAMES
from bench.search.rows import Part, down, gap, up
from bench.store import MACHINE, Values
from optpart.certificates.certify import certify_bound
from optpart.study.library import best_schedule

#: Networks of the library, whose best known schedules are taken.
LIBRARY = tuple(
    f"{name}-{devices}"
    for name in ("convolutional_network", "recurrent_network", "dynamic_rnn")
    for devices in (7, 50)
)
SEARCH, BOUNDS, PROOF = 60.0, 30.0, 120.0


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "certified")
    for name in (*NAMES, *LIBRARY):
        file = str(shared / "instances" / f"{name}.json") if name in NAMES else name
        store.run({"instance": name}, lambda: _row(file))  # noqa: B023
    return "\n".join(_table(store.rows))


def _row(file: str) -> Values:
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


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Makespans of the library or, with drawn costs, after {SEARCH:.0f} s of search; bounds "
        f"after {BOUNDS:.0f} s; {PROOF:.0f} s for a proof; times in seconds. {MACHINE}.\n"
    )
    yield "| instance | makespan | bound | certified | gap | tier | proof | check | KiB |"
    yield "|---" * 9 + "|"
    for row in rows:
        makespan, certified = float(row["makespan"]), float(row["certified"])
        yield (
            f"| `{row['instance']}` | {up(makespan)} | {down(row['bound'])} | {down(certified)} | "
            f"{gap(makespan, certified):.1%} | {row['tier']} | {row['proof']} | {row['check']} | "
            f"{row['bytes'] / 1024:.0f} |"
        )
