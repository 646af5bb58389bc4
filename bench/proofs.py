"""Which benchmark sets CP-SAT proves, at which values, and in what time.

    python bench/proofs.py --data ../shared [-o bench/results/proofs.txt]

Every optimum found is compared with the published one (``optimum.csv`` of each set).
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import ortools

from optpart import library, methods
from optpart.files import write_text
from optpart.formats.detect import read_instance
from optpart.instance import Instance
from optpart.result import Status

Case = tuple[str, Instance, Fraction]


def random_set(data: Path) -> Iterator[Case]:
    """The random instances whose optimum an independent model gave."""
    folder = data / "instances"
    for row in csv.DictReader((folder / "optimum.csv").open()):
        instance = read_instance(folder / f"{row['instance']}.json")
        yield row["instance"], instance, Fraction(row["optimum"])


def auckland(data: Path, vertices: int) -> Iterator[Case]:
    """Task graphs of one size on 2 to 16 equal processors."""
    folder = data / "data" / "auckland_gxl"
    for row in csv.DictReader((folder / "optimum.csv").open()):
        if int(row["n"]) == vertices:
            yield row["file"], read_instance(folder / row["file"]), Fraction(row["optimum"])


def classics(_: Path) -> Iterator[Case]:
    """HEFT's ten tasks, and Kwok and Ahmad's nine nodes, from the library."""
    for name, optimum in (("heft-10", 73), ("kwok-ahmad-9-2", 17), ("kwok-ahmad-9-3", 16)):
        yield name, library.load(name), Fraction(optimum)


def measure(name: str, cases: list[Case], limit: float, workers: int) -> list[str]:
    """Solve a set; return its row and a line for each case that is not proven as published."""
    seconds, wrong = [], []
    for case, instance, optimum in cases:
        result = methods.solve(instance, "cpsat", seconds=limit, workers=workers)
        seconds.append(result.seconds)
        if result.status is not Status.OPTIMAL or result.makespan != optimum:
            wrong.append(
                f"    {case}: {result.status} {result.makespan}, bound {result.lower_bound}, "
                f"published {optimum}, {result.seconds:.1f} s {result.reason}"
            )
    proven = len(cases) - len(wrong)
    row = (
        f"{name:28} {proven:4}/{len(cases):<4} "
        f"{statistics.median(seconds):8.2f} {max(seconds):8.2f} {sum(seconds):9.1f}"
    )
    return [row, *wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with instances/ and data/")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    sets = {
        "random, 8 to 60 vertices": random_set(options.data),
        "classics": classics(options.data),
        "Auckland, 10 vertices": auckland(options.data, 10),
        "Auckland, 21 vertices": auckland(options.data, 21),
    }
    lines = [
        f"CP-SAT {ortools.__version__}, {options.workers} workers, {options.time_limit:g} s each; "
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        f"{'set':28} {'proven as published':9} {'median s':>8} {'max s':>6} {'total s':>8}",
    ]
    for name, cases in sets.items():
        lines += measure(name, list(cases), options.time_limit, options.workers)
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output is not None:
        write_text(options.output, text)


if __name__ == "__main__":
    main()
