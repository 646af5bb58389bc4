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
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.hardness import figures
from bench.hardness.families import FAMILIES
from bench.hardness.karmarkar_karp import nodes_to_answer
from bench.output import short_machine
from bench.store import RESULTS, Store, Values
from optpart import Budget
from optpart.applications.reductions.catalogue import REDUCTIONS
from optpart.applications.reductions.decide import WORDS, Answer, decide
from optpart.applications.reductions.partition import PARTITION, random_numbers
from optpart.applications.reductions.single_execution_time import SINGLE_EXECUTION_TIME, Jobs
from optpart.applications.reductions.special_cases import coffman_graham, halves, hu
from optpart.base.files import ANY, write_text
from optpart.kernels import all as kernels

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


def families(store: Store, only: Sequence[str], limit: float) -> None:
    """Run every family, yes and no, from small to large."""
    for name in only:
        for yes in (True, False):
            for size in FAMILIES[name].sizes:
                answers = []
                for seed in SEEDS:
                    run = {"kind": "Run", "family": name, "size": size, "yes": yes, "seed": seed}
                    row = store.run(run | {"limit": limit}, partial(decided, run, limit)).flat
                    answers.append(row["answer"])
                    took = f"{WORDS[row['answer']]}, {row['seconds']:.2f} s"
                    print(f"{name}, {size}, {yes}: {took}", file=sys.stderr, flush=True)
                if answers == [None] * len(SEEDS):
                    break


def decided(run: Values, limit: float) -> Values:
    """Draw a source and decide it."""
    name, size, yes, seed = run["family"], run["size"], run["yes"], run["seed"]
    source = FAMILIES[name].draw(size, yes, np.random.default_rng([size, seed]))
    answer = answered(name, source, limit)
    if yes and answer.verdict is False:
        raise AssertionError(f"{name}, {size}, seed {seed}: no, but a solution is known")
    instance = answer.question.instance
    proof = "bounds" if "bounds" in answer.result.reason else "search"
    return {
        "answer": answer.verdict,
        "seconds": answer.result.seconds,
        "vertices": instance.vertices,
        "devices": instance.devices,
        "by": "schedule" if answer.verdict else proof,
    }


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


def specials(store: Store, limit: float) -> None:
    """Time Hu's and Coffman and Graham's algorithms and the table of sums, and TF on the same."""
    cases = [(size, name) for size in (10, 30, 100, 300, 1000, 3000) for name in SCHEDULED]
    cases += [(size, SUMS) for size in (10, 20, 40, 80)]  # more would not fit many machines
    for size, name in cases:
        run = {"kind": "Special", "name": name, "size": size, "limit": limit}
        store.run(run, partial(summed if name == SUMS else scheduled, name, size, limit))


def summed(name: str, size: int, limit: float) -> Values:
    """Divide numbers by the table of sums, and through TF."""
    source = random_numbers(size, BITS, np.random.default_rng(size))
    begin = time.perf_counter()
    half = halves(source)
    seconds = time.perf_counter() - begin
    found = answered("partition", source, limit)
    if found.verdict is None:
        return {"seconds": seconds, "by_tf": None, "agree": None}
    agree = found.verdict == (half is not None)
    return {"seconds": seconds, "by_tf": found.result.seconds, "agree": agree}


def scheduled(name: str, size: int, limit: float) -> Values:
    """Schedule by a polynomial algorithm; ask TF for its limit, and for one less."""
    draw, solve = SCHEDULED[name]
    jobs = draw(size, np.random.default_rng(size))
    begin = time.perf_counter()
    slots = solve(jobs)
    row: Values = {"seconds": time.perf_counter() - begin, "by_tf": None, "agree": None}
    least = replace(jobs, limit=max(slots) + 1)
    if fault := SINGLE_EXECUTION_TIME.check(least, slots):
        raise AssertionError(fault)
    if size > LARGEST_BY_TF:
        return row
    yes = answered("scheduling", least, limit)
    no = answered("scheduling", replace(least, limit=least.limit - 1), limit)
    if yes.verdict is None or no.verdict is None:
        return row
    agree = bool(yes.verdict and not no.verdict)
    return row | {"by_tf": yes.result.seconds + no.result.seconds, "agree": agree}


# --- the curve of PARTITION ----------------------------------------------------------------------


def curve(store: Store, limit: float) -> None:
    for count in COUNTS:
        for seed in CURVE_SEEDS:
            run = {"kind": "Curve", "bits": BITS, "count": count, "seed": seed, "limit": limit}
            store.run(run, partial(divided, count, seed, limit))
        print(f"curve, {count} numbers", file=sys.stderr, flush=True)


def divided(count: int, seed: int, limit: float) -> Values:
    """Draw numbers and divide them twice."""
    source = random_numbers(count, BITS, np.random.default_rng([BITS, count, seed]))
    there, nodes = nodes_to_answer(source.numbers)
    found = answered(PARTITION.name, source, limit)
    agree = None if found.verdict is None else found.verdict == there
    return {"answer": there, "seconds": found.result.seconds, "nodes": nodes, "agree": agree}


# --- the report ----------------------------------------------------------------------------------


def report(rows: dict[str, list[Values]], limit: float) -> Iterator[str]:
    yield f"{short_machine('ortools')}; CP-SAT, one worker, {limit:g} s a source"
    yield "decided: yes/no/open; time: median, the limit counts where open; by: how no was proven"
    for name, family in FAMILIES.items():
        chosen = [row for row in rows["Run"] if row["family"] == name]
        if not chosen:
            continue
        yield ""
        yield f"{REDUCTIONS.find(name).title} ({name})"
        yield f"  yes: {family.yes}; no: {family.no}"
        head = f"  {family.size_is:>16} {'vertices':>9} {'devices':>8}   "
        yield f"{head}{'drawn as yes':<24}drawn as no"
        for size in sorted({row["size"] for row in chosen}):
            own = [row for row in chosen if row["size"] == size]
            yes, no = (cell([row for row in own if row["yes"] == drawn]) for drawn in (True, False))
            sizes = f"{size:>16} {own[0]['vertices']:>9} {own[0]['devices']:>8}"
            yield f"  {sizes}   {yes:<24}{no}".rstrip()
    yield ""
    yield "Polynomial special cases (by TF: the least limit, and one less proven impossible)"
    yield f"  {'algorithm':<16}{'size':>6}{'seconds':>12}{'by TF':>10}"
    for row in rows["Special"]:
        by_tf = "–" if row["by_tf"] is None else f"{row['by_tf']:.2f}"
        wrong = "  DISAGREE" if row["agree"] is False else ""
        yield f"  {row['name']:<16}{row['size']:>6}{row['seconds']:>12.5f}{by_tf:>10}{wrong}"
    if rows["Curve"]:
        yield ""
        yield from curve_report(rows["Curve"])


def cell(rows: Sequence[Values]) -> str:
    if not rows:
        return "–"
    answers = [row["answer"] for row in rows]
    counts = "/".join(str(answers.count(answer)) for answer in (True, False, None))
    took = (
        max(row["seconds"], row["limit"]) if row["answer"] is None else row["seconds"]
        for row in rows
    )
    proofs = sorted({row["by"] for row in rows if row["answer"] is False})
    return " ".join([f"{counts}  {median(took):.2f} s", *proofs])


def curve_report(rows: Sequence[Values]) -> Iterator[str]:
    yield (
        f"PARTITION of random {BITS}-bit numbers, {len(CURVE_SEEDS)} sets a count; "
        f"one even split is expected at n = {figures.critical_count(BITS):.1f}"
    )
    yield f"  {'n':>4}{'κ':>7}{'yes':>6}{'nodes':>10}{'CP-SAT':>10}{'open':>6}{'agree':>8}"
    for count in sorted({row["count"] for row in rows}):
        some = [row for row in rows if row["count"] == count]
        known = [row for row in some if row["agree"] is not None]
        yield (
            f"  {count:>4}{BITS / count:>7.2f}{sum(row['answer'] for row in some):>6}"
            f"{median(row['nodes'] for row in some):>10.0f}"
            f"{median(row['seconds'] for row in some):>8.3f} s{len(some) - len(known):>6}"
            f"{sum(row['agree'] for row in known):>5}/{len(known)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser("hardness", description="time to proof against size")
    parser.add_argument("--only", choices=FAMILIES, action="append", help="no more than that one")
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "hardness")
    options = parser.parse_args()
    kernels.load()
    answered(PARTITION.name, random_numbers(6, 6, np.random.default_rng(0)), 5)  # starts the solver
    store, limit = Store(options.output / "runs.jsonl"), options.time_limit
    families(store, options.only or list(FAMILIES), limit)
    if options.only is None:
        specials(store, limit)
        curve(store, limit)
    rows: dict[str, list[Values]] = {"Run": [], "Special": [], "Curve": []}
    for row in store.rows():
        if row.run["limit"] == limit:
            rows[row.run["kind"]].append(row.flat)
    text = "\n".join(report(rows, limit))
    write_text(options.output / "table.txt", text + "\n", ANY)
    figures.times(rows["Run"], rows["Special"], limit, options.output / "times.png")
    if rows["Curve"]:
        figures.curve(rows["Curve"], BITS, options.output / "partition.png")
    print(text)


if __name__ == "__main__":
    main()
