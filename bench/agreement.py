"""Do all formulations give the same optimum, and the same infeasibility?

    python bench/agreement.py [--count 50] [--first-seed 0] [-o bench/results/agreement.txt]

Tiny random instances (``tests/tiny.py``) of every model of communication and memory; enumeration is
the judge, every other method that supports the model must prove the same, and no bound may be above
it. A method that has not ended within its limit counts as open, never as wrong. Stops at the first
disagreement and writes the instance that shows it.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path
from shutil import which
from typing import get_args

from optpart import methods
from optpart.bounds.best import BOUNDS
from optpart.errors import UnsupportedError
from optpart.files import write_text
from optpart.formats import native
from optpart.instance import Communication, Instance, Memory
from optpart.result import Budget, Result, Status
from optpart.testing.draw import draw_instance

JUDGE = "enumerate"
METHODS = ["cpsat", "milp", "milp-cbc", *(["minizinc"] if which("minizinc") else [])]
LIMIT = Budget(20.0, workers=1)


def judged(instance: Instance, method: str) -> Result | None:
    """Return what a method finds; ``None`` where it does not support the model."""
    try:
        return methods.get(method)(instance, budget=LIMIT)
    except UnsupportedError:
        return None


def faults(instance: Instance, judge: Result, found: Result) -> str:
    """Return how a result contradicts the judge's; empty if it does not."""
    if Status.UNKNOWN in (judge.status, found.status):
        return ""
    if (found.status is Status.INFEASIBLE) != (judge.status is Status.INFEASIBLE):
        return f"{found.method} says {found.status}, {judge.method} {judge.status}"
    if judge.status is not Status.OPTIMAL:
        return ""
    if found.status is Status.OPTIMAL and found.makespan != judge.makespan:
        return f"{found.method} proves {found.makespan}, {judge.method} {judge.makespan}"
    if found.lower_bound is not None and found.lower_bound > judge.makespan:
        return f"{found.method} has bound {found.lower_bound} above {judge.makespan}"
    return ""


def too_high(instance: Instance, judge: Result) -> str:
    """Return which bound is above the optimum, or excludes a schedule that exists."""
    for name, bound in BOUNDS.items():
        value = bound(instance, 5.0, None)
        if judge.status is Status.OPTIMAL and (value is None or value > judge.makespan):
            return f"bound {name} is {value}, {judge.method} proves {judge.makespan}"
    return ""


def combination(
    communication: Communication, memory: Memory, seeds: range, keep: Path
) -> tuple[Counter[str], Counter[str]]:
    """Return how many instances each method has proven, and how many are of which kind."""
    proven: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed in seeds:
        instance = draw_instance(seed, communication, memory)
        judge = judged(instance, JUDGE)
        assert judge is not None
        kinds[str(judge.status)] += 1
        fault = too_high(instance, judge)
        for method in METHODS:
            found = judged(instance, method)
            if found is not None:
                proven[method] += found.status in (Status.OPTIMAL, Status.INFEASIBLE)
                fault = fault or faults(instance, judge, found)
        if fault:
            path = keep / f"{instance.name}.json"
            native.write(instance, path)
            raise SystemExit(f"{instance.name}: {fault}; the instance is in {path}")
    return proven, kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="instances per combination")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.count)
    begin = time.perf_counter()
    lines = [
        f"{options.count} instances of 4 to 6 vertices per model, seeds from {seeds.start}; "
        f"{LIMIT.seconds:g} s a solve; {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "proven by each method, where enumeration has an optimum or proves that there is none;",
        "no result contradicts another, and no bound is above an optimum",
        "",
        f"{'communication':14}{'memory':10}{'optimum':>8}{'none':>6}{'open':>6}"
        + "".join(f"{method:>10}" for method in METHODS),
    ]
    for communication, memory in product(get_args(Communication), get_args(Memory)):
        proven, kinds = combination(communication, memory, seeds, Path.cwd())
        counts = "".join(f"{proven.get(method, '–'):>10}" for method in METHODS)
        lines.append(
            f"{communication:14}{memory:10}{kinds['OPTIMAL']:>8}{kinds['INFEASIBLE']:>6}"
            f"{kinds['FEASIBLE'] + kinds['UNKNOWN']:>6}{counts}"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    lines.append(f"{time.perf_counter() - begin:.0f} s")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output is not None:
        write_text(options.output, text)


if __name__ == "__main__":
    main()
