"""The cost of certificates of optima: their tiers, times and sizes.

    python bench/certify --data ../shared [--only SET] [--every N] [-o bench/results/certify]

Every case is solved, certified and checked.
``cases.txt`` has one row per case, ``sets.txt`` one per set. Each case is kept in ``runs.jsonl``:
a stopped command continues where it was. ``--every N`` takes every N-th case of the sets with more
than fifty; the table says so.

Times are wall-clock seconds: ``solve`` to find the schedule, ``refute`` to encode and to find the
proof, ``trim`` to make it strict and short, ``check`` for the checker. Limits are 300 s for the
schedule and 60 s for the proof.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bench.exact.sets import SETS, Case
from bench.store import MACHINE, RESULTS, Store, Values
from optpart.base.errors import OptpartError
from optpart.base.files import ANY, write_text
from optpart.certificates.certify import certify
from optpart.methods import registry
from optpart.solution.result import Budget

MANY = 50
LIMIT = 60.0
SOLVE = 300.0


@dataclass(frozen=True)
class Row:
    """One case; ``tier`` is empty and ``failed`` says why if there is no certificate."""

    set: str
    case: str
    vertices: int
    devices: int
    makespan: str = ""
    tier: str = ""
    failed: str = ""
    variables: int = 0
    clauses: int = 0
    steps: int = 0
    bytes: int = 0
    solve: float = 0.0
    refute: float = 0.0
    trim: float = 0.0
    check: float = 0.0

    @property
    def seconds(self) -> float:
        """From the schedule to the accepted certificate."""
        return self.refute + self.trim + self.check


#: The sets, and which of their cases are certified: graphs of up to 40 vertices, seven job shops.
WANTED: dict[str, Callable[[Case], bool]] = {
    "random": lambda case: int(case.name.split("-")[1]) <= 40,
    "auckland": lambda case: True,
    "jsplib": lambda case: case.name in ("ft06", "la01", "la02", "la03", "la04", "la05", "ft10"),
}


def measured(name: str, case: Case, workers: int) -> Row:
    instance = case.read()
    row = Row(name, case.name, instance.vertices, instance.devices, str(case.optimum))
    begin = time.perf_counter()
    result = registry.get("cpsat")(instance, budget=Budget(SOLVE, workers))
    solve = time.perf_counter() - begin
    if result.makespan != case.optimum:
        reason = f"not solved: {result.makespan}"
        return Row(**{**asdict(row), "failed": reason, "solve": solve})
    assert result.schedule is not None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "certificate"
        try:
            found = certify(instance, result.schedule, folder, seconds=LIMIT)
        except OptpartError as error:
            return Row(**{**asdict(row), "failed": str(error), "solve": solve})
        proof = folder / "proof.lrat.xz"
        first = {
            "tier": found.tier,
            "variables": found.variables,
            "clauses": found.clauses,
            "steps": found.steps,
            "bytes": proof.stat().st_size if proof.exists() else 0,
            "solve": solve,
            "refute": found.seconds.get("encode", 0.0) + found.seconds.get("refute", 0.0),
            "trim": found.seconds.get("trim", 0.0),
            "check": found.seconds["check"],
        }
        return Row(**{**asdict(row), **first})


def parts(row: Row, workers: int) -> tuple[Values, Values]:
    """Return the parameters and the result of a row."""
    values = asdict(row)
    return {"set": values.pop("set"), "case": values.pop("case"), "workers": workers}, values


def by_case(rows: list[Row]) -> str:
    lines = [
        f"{'case':72} {'n':>3} {'k':>2} {'tier':12} {'variables':>9} {'clauses':>8} {'steps':>6} "
        f"{'bytes':>8} {'solve':>6} {'refute':>6} {'trim':>5} {'check':>5}"
    ]
    lines += [
        f"{row.case[:72]:72} {row.vertices:3} {row.devices:2} {row.tier or '–':12} "
        f"{row.variables:9} {row.clauses:8} {row.steps:6} {row.bytes:8} {row.solve:6.1f} "
        f"{row.refute:6.1f} {row.trim:5.1f} {row.check:5.2f}  {row.failed}".rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def by_set(rows: list[Row], step: int) -> str:
    lines = [
        f"{'set':10} {'cases':>5} {'certified':>9} {'path':>5} {'one-machine':>11} {'load':>5} "
        f"{'series':>6} {'intervals':>9} {'probing':>7} {'lrat':>5} {'median s':>8} "
        f"{'most s':>7} {'most bytes':>10}"
    ]
    for name in dict.fromkeys(row.set for row in rows):
        cases = [row for row in rows if row.set == name]
        done = [row for row in cases if row.tier]
        tiers = [
            sum(row.tier == t for row in done)
            for t in ("path", "one-machine", "load", "series", "intervals", "probing", "lrat")
        ]
        lines.append(
            f"{name:10} {len(cases):5} {len(done):9} {tiers[0]:5} {tiers[1]:11} {tiers[2]:5} "
            f"{tiers[3]:6} {tiers[4]:9} {tiers[5]:7} {tiers[6]:5} "
            f"{statistics.median(row.seconds for row in done or cases):8.2f} "
            f"{max(row.seconds for row in done or cases):7.1f} {max(row.bytes for row in cases):10}"
        )
    sample = f"; every {step}th case of sets of more than {MANY}" if step > 1 else ""
    machine = f"{MACHINE}, Python {platform.python_version()}"
    return "\n".join(lines) + f"\n\n{machine}; limits of {LIMIT:g} s{sample}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=WANTED, help="a set")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="of the search for a schedule")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "certify")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    kept = Store(options.output / "runs.jsonl")
    known = {
        (row.run["set"], row.run["case"]): Row(
            **{field.name: row.flat[field.name] for field in fields(Row)}
        )
        for row in kept.rows()
        if row.run["workers"] == options.workers
    }
    rows = []
    for name in options.only or WANTED:
        listed = [case for case in SETS[name](options.data) if WANTED[name](case)]
        for case in listed[:: options.every if len(listed) > MANY else 1]:
            row = known.get((name, case.name))
            if row is None:
                row = measured(name, case, options.workers)
                kept.append(*parts(row, options.workers))
                print(by_case([row]).splitlines()[1], flush=True)
            rows.append(row)
    write_text(options.output / "cases.txt", by_case(rows), ANY)
    write_text(options.output / "sets.txt", by_set(rows, options.every), ANY)
    print(by_set(rows, options.every))


if __name__ == "__main__":
    main()
