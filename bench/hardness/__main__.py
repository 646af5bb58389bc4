"""The hardness of deciding: time to proof against size, for every reduction to TF.

    python bench/hardness [--only FAMILY] [--time-limit S] [-o bench/results/hardness]

Every family is drawn with and without a hidden solution, three seeds per size, up to the size at
which no source is decided within the limit. In addition, there are the special cases that
polynomial algorithms solve, and PARTITION with numbers of a fixed number of bits, whose hardness
rises and falls with their count. Each run is kept in ``runs.jsonl``, so a stopped command continues
where it was.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import ortools

from bench.hardness import figures
from bench.hardness.families import FAMILIES
from bench.hardness.karmarkar_karp import nodes_to_answer
from bench.hardness.runs import Curve, Kept, Run, Special
from bench.store import RESULTS, Store
from optpart import Budget
from optpart.files import ANY, write_text
from optpart.kernels import all as kernels
from optpart.reductions.catalogue import REDUCTIONS
from optpart.reductions.decide import WORDS, Answer, decide
from optpart.reductions.partition import PARTITION, random_numbers
from optpart.reductions.single_execution_time import SINGLE_EXECUTION_TIME, Jobs
from optpart.reductions.special_cases import coffman_graham, halves, hu

SEEDS = range(3)
BITS, COUNTS, CURVE_SEEDS = 20, range(6, 47, 2), range(9)
LARGEST_BY_TF = 300


def answered(name: str, source: Any, limit: float) -> Answer[Any, Any]:
    """Decide, and stop if a yes is not valid."""
    found = decide(REDUCTIONS.find(name), source, budget=Budget(limit, 1))
    fault = found.schedule_fault or found.solution_fault or found.forth_fault
    if fault:
        raise AssertionError(f"{name}: {fault}")
    return found


def measure(kept: Kept, only: Sequence[str], limit: float) -> None:
    """Run every family, yes and no, from small to large."""
    for name in only:
        for yes in (True, False):
            for size in FAMILIES[name].sizes:
                rows = [one(kept, name, size, yes, seed, limit) for seed in SEEDS]
                if all(row.answer is None for row in rows):
                    break


def one(kept: Kept, name: str, size: int, yes: bool, seed: int, limit: float) -> Run:
    """Return one run, from the kept rows if it is there."""
    found = kept.find(Run, family=name, size=size, yes=yes, seed=seed, limit=limit)
    if found is not None:
        return found  # type: ignore[no-any-return]
    row = run_once(name, size, yes, seed, limit)
    kept.add(row)
    said = WORDS[row.answer]
    print(f"{name}, {size}, {yes}: {said}, {row.seconds:.2f} s", file=sys.stderr, flush=True)
    return row


def run_once(name: str, size: int, yes: bool, seed: int, limit: float) -> Run:
    """Draw a source and decide it."""
    family = FAMILIES[name]
    source = family.draw(size, yes, np.random.default_rng([size, seed]))
    answer = answered(name, source, limit)
    if yes and answer.verdict is False:
        raise AssertionError(f"{name}, {size}, seed {seed}: no, but a solution is known")
    instance = answer.question.instance
    by = (
        "schedule" if answer.verdict else "bounds" if "bounds" in answer.result.reason else "search"
    )
    return Run(name, size, yes, seed, limit, answer.verdict, answer.result.seconds,
               instance.vertices, instance.devices, by)  # fmt: skip


# --- polynomial special cases --------------------------------------------------------------------


def forest(n: int, rng: np.random.Generator) -> Jobs:
    order = tuple((v, int(rng.integers(v + 1, min(n, v + 9)))) for v in range(n - 1))
    return Jobs(tuple(f"j{v}" for v in range(n)), order, 3, n)


def two_processors(n: int, rng: np.random.Generator) -> Jobs:
    pairs = {(int(rng.integers(max(0, v - 8), v)), v) for v in range(1, n) for _ in range(2)}
    return Jobs(tuple(f"j{v}" for v in range(n)), tuple(sorted(pairs)), 2, n)


SUMS = "table of sums"
SCHEDULED: dict[str, tuple[Any, Any]] = {
    "Hu": (forest, hu),
    "Coffman–Graham": (two_processors, coffman_graham),
}


def special(kept: Kept, limit: float) -> None:
    """Time Hu's and Coffman and Graham's algorithms and the table of sums, and TF on the same."""
    for size in (10, 30, 100, 300, 1000, 3000):
        for name in SCHEDULED:
            if kept.find(Special, name=name, size=size, limit=limit) is None:
                kept.add(special_once(name, size, limit))
    for size in (10, 20, 40, 80):  # the table of more would not fit the memory of many machines
        if kept.find(Special, name=SUMS, size=size, limit=limit) is None:
            kept.add(special_once(SUMS, size, limit))


def special_once(name: str, size: int, limit: float) -> Special:
    """Draw a source of a special case and answer it twice."""
    if name == SUMS:
        source = random_numbers(size, BITS, np.random.default_rng(size))
        begin = time.perf_counter()
        half = halves(source)
        seconds = time.perf_counter() - begin
        found = answered("partition", source, limit)
        known = found.verdict is not None
        agree = found.verdict == (half is not None) if known else None
        return Special(name, size, limit, seconds, found.result.seconds if known else None, agree)
    draw, solve = SCHEDULED[name]
    jobs = draw(size, np.random.default_rng(size))
    begin = time.perf_counter()
    slots = solve(jobs)
    seconds = time.perf_counter() - begin
    least = replace(jobs, limit=max(slots) + 1)
    fault = SINGLE_EXECUTION_TIME.check(least, slots)
    if fault:
        raise AssertionError(fault)
    return Special(name, size, limit, seconds, *beside(least, size, limit))


def beside(least: Jobs, size: int, limit: float) -> tuple[float | None, bool | None]:
    """Return seconds through TF, for the least limit and one less, and whether both agree."""
    if size > LARGEST_BY_TF:
        return None, None
    yes = answered("scheduling", least, limit)
    no = answered("scheduling", replace(least, limit=least.limit - 1), limit)
    if yes.verdict is None or no.verdict is None:
        return None, None
    return yes.result.seconds + no.result.seconds, bool(yes.verdict and not no.verdict)


# --- the curve of PARTITION ----------------------------------------------------------------------


def curve(kept: Kept, limit: float) -> None:
    for count in COUNTS:
        for seed in CURVE_SEEDS:
            if kept.find(Curve, bits=BITS, count=count, seed=seed, limit=limit) is None:
                kept.add(curve_once(BITS, count, seed, limit))
        print(f"curve, {count} numbers", file=sys.stderr, flush=True)


def curve_once(bits: int, count: int, seed: int, limit: float) -> Curve:
    """Draw numbers and divide them twice."""
    source = random_numbers(count, bits, np.random.default_rng([bits, count, seed]))
    there, nodes = nodes_to_answer(source.numbers)
    found = answered(PARTITION.name, source, limit)
    agree = None if found.verdict is None else found.verdict == there
    return Curve(bits, count, seed, limit, there, found.result.seconds, nodes, agree)


# --- the report ----------------------------------------------------------------------------------


def report(kept: Kept, limit: float) -> Iterator[str]:
    runs = [run for run in kept.of(Run) if run.limit == limit]
    yield (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"ortools {ortools.__version__}; CP-SAT, one worker, {limit:g} s a source"
    )
    yield "decided: yes/no/open; time: median, the limit counts where open; by: how no was proven"
    for name, family in FAMILIES.items():
        chosen = [run for run in runs if run.family == name]
        if not chosen:
            continue
        yield ""
        yield f"{REDUCTIONS.find(name).title} ({name})"
        yield f"  yes: {family.yes}; no: {family.no}"
        head = f"  {family.size_is:>16} {'vertices':>9} {'devices':>8}   "
        yield f"{head}{'drawn as yes':<24}drawn as no"
        for size in sorted({run.size for run in chosen}):
            rows = [run for run in chosen if run.size == size]
            yield (
                f"  {size:>16} {rows[0].vertices:>9} {rows[0].devices:>8}   "
                f"{cell([run for run in rows if run.yes]):<24}"
                f"{cell([run for run in rows if not run.yes])}"
            ).rstrip()
    yield ""
    yield "Polynomial special cases (by TF: the least limit, and one less proven impossible)"
    yield f"  {'algorithm':<16}{'size':>6}{'seconds':>12}{'by TF':>10}"
    for row in [row for row in kept.of(Special) if row.limit == limit]:
        by_tf = "–" if row.by_tf is None else f"{row.by_tf:.2f}"
        wrong = "  DISAGREE" if row.agree is False else ""
        yield f"  {row.name:<16}{row.size:>6}{row.seconds:>12.5f}{by_tf:>10}{wrong}"
    yield from curve_report([row for row in kept.of(Curve) if row.limit == limit])


def cell(runs: Sequence[Run]) -> str:
    if not runs:
        return "–"
    counts = "/".join(str(sum(run.answer is a for run in runs)) for a in (True, False, None))
    seconds = median(limited(run) for run in runs)
    proofs = {run.by for run in runs if run.answer is False}
    return f"{counts}  {seconds:.2f} s" + (f" {' '.join(sorted(proofs))}" if proofs else "")


def limited(run: Run) -> float:
    return max(run.seconds, run.limit) if run.answer is None else run.seconds


def curve_report(rows: Sequence[Curve]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield (
        f"PARTITION of random {BITS}-bit numbers, {len(CURVE_SEEDS)} sets a count; "
        f"one even split is expected at n = {figures.critical_count(BITS):.1f}"
    )
    yield f"  {'n':>4}{'κ':>7}{'yes':>6}{'nodes':>10}{'CP-SAT':>10}{'open':>6}{'agree':>8}"
    for count in sorted({row.count for row in rows}):
        some = [row for row in rows if row.count == count]
        known = [row for row in some if row.agree is not None]
        yield (
            f"  {count:>4}{BITS / count:>7.2f}{sum(row.answer is True for row in some):>6}"
            f"{median(row.nodes for row in some):>10.0f}"
            f"{median(row.seconds for row in some):>8.3f} s{len(some) - len(known):>6}"
            f"{sum(bool(row.agree) for row in known):>5}/{len(known)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        "hardness", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=FAMILIES, action="append", help="no more than that one")
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "hardness")
    options = parser.parse_args()
    kernels.load()
    answered(PARTITION.name, random_numbers(6, 6, np.random.default_rng(0)), 5)  # starts the solver
    options.output.mkdir(parents=True, exist_ok=True)
    store = Store(options.output / "runs.jsonl")
    kept, limit = Kept(store), options.time_limit
    measure(kept, options.only or list(FAMILIES), limit)
    if options.only is None:
        special(kept, limit)
        curve(kept, limit)
    text = "\n".join(report(kept, limit))
    write_text(options.output / "table.txt", text + "\n", ANY)
    runs = [run for run in kept.of(Run) if run.limit == limit]
    rows = [row for row in kept.of(Special) if row.limit == limit]
    figures.times(runs, rows, limit, options.output / "times.png")
    if curves := [row for row in kept.of(Curve) if row.limit == limit]:
        figures.curve(curves, BITS, options.output / "partition.png")
    print(text)


if __name__ == "__main__":
    main()
