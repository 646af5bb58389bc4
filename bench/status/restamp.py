"""Revalidation of rows of earlier code, by measuring a sample of them again."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path

from bench.store import Bench, Row, stamp


def restamp(bench: Bench, sample: int, seed: int, data: Path) -> int:
    """Measure a sample again and give today's key to the rows of every kind that it confirms.

    If a run was measured more than once, only its newest row is stamped. A kind of rows of which
    one contradicts, or none is compared, is left as it is: those rows have to be measured anew.

    Returns
    -------
    int
        0 if all rows count now, else 1.
    """
    store = bench.store
    rows = store.latest()
    stale = [row for row in rows if store.today(row.run) not in ("", row.key)]
    if not stale:
        print(f"{bench.name}: {len(rows)} runs, nothing to stamp")
        return 0
    if bench.again is None:
        print(f"{bench.name}: nothing cheap enough to compare; {bench.command}")
        return 1
    chosen, missed = drawn(bench, stale, sample, seed)
    left = set(missed)
    for number, row in enumerate(chosen, 1):
        fault = bench.differs(row.result, bench.again(row.run, data))
        if fault:
            left.add(bench.stratum(row))
        print(f"{number}/{len(chosen)} {named(row)}: {fault or 'agrees'}", flush=True)
    if missed:
        print(f"not compared, {', '.join(missed)}: a larger --sample, or no row that is cheap")
    newest = {named(row): row for row in stale if bench.stratum(row) not in left}
    replayed = dict(stamp()) | {"sample": len(chosen), "seed": seed}
    written, stamped = [], 0
    for row in reversed(store.all()):
        if newest.get(named(row)) == row:
            del newest[named(row)]
            key = store.key(row.run)
            row = replace(row, key=key, measured=row.measured | {"replayed": replayed})
            stamped += 1
        written.append(row)
    if stamped:
        store.rewrite(written[::-1])
    print(f"{bench.name}: {stamped} of {len(stale)} rows stamped, {len(written)} before and after")
    if left:
        print(f"to be measured anew (contradicted, or not compared): {', '.join(sorted(left))}")
    return 1 if left else 0


def drawn(bench: Bench, rows: list[Row], sample: int, seed: int) -> tuple[list[Row], list[str]]:
    """Return a sample of the cheap rows, of every kind in turn, and the kinds not reached."""
    rng = random.Random(seed)
    kinds = bench.strata(rows)
    cheap = {kind: [row for row in members if bench.cheap(row)] for kind, members in kinds}
    for members in cheap.values():
        rng.shuffle(members)
    order = list(chain.from_iterable(zip_longest(*cheap.values())))
    chosen = [row for row in order if row is not None][:sample]
    reached = {bench.stratum(row) for row in chosen}
    return chosen, [kind for kind, _ in kinds if kind not in reached]


def named(row: Row) -> str:
    """Write the parameters of a run."""
    return ", ".join(f"{name} {value}" for name, value in sorted(row.run.items()))
