"""Repeat the published findings: tables, figures, and which findings hold here.

    python bench/reproduce [--quick] [--runs 10] [--only SETTING] [-o bench/results/reproduce]

Measures every partitioning strategy of the registry under every scheduling strategy on

- ``laich100``: the six graphs of [L] table 7.1 on 100 drawn devices (figures 7.1 to 7.3),
- ``tensorflow50``: three TensorFlow graphs on 50 devices (figures 7.4 to 7.6, [M] figure 3),
- ``seven``: graphs 2 and 3 and the TensorFlow graphs on 7 devices (figures 7.7 to 7.10),
- ``bahnmueller``: the two networks of [B] on 1 to 8 equal devices (figures 5.3 to 5.25),

bounds every instance (``gaps``), and writes the findings, tables and figures. Measurements are kept
in ``runs.jsonl``: a stopped command continues where it was, and a strategy is measured again only
after its code has changed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from bench.reproduce import (
    bahnmueller,
    figures,
    findings,
    laich_seven,
    laich_synthetic,
    laich_tensorflow,
    mayer,
    measure,
    tables,
)
from bench.reproduce.cases import CASES, chosen
from bench.reproduce.data import Data
from bench.reproduce.records import Run
from bench.reproduce.rows import records
from bench.store import RESULTS, Store
from optpart.files import ANY, write_text
from optpart.methods import registry

FOLDER = RESULTS / "reproduce"
SECTIONS = (laich_synthetic, laich_tensorflow, laich_seven, mayer, bahnmueller)
SETTINGS = (*dict.fromkeys(case.setting for case in CASES), "gaps")


def main() -> None:
    options = arguments()
    folder: Path = options.output or (FOLDER / "quick" if options.quick else FOLDER)
    runs: int = options.runs or (2 if options.quick else 10)
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder / "runs.jsonl")
    begin = time.perf_counter()
    wanted = chosen(options.only, options.quick)
    measure.run(wanted, runs, store, only_bounds=options.only == "gaps")
    data = Data(records(store), chosen(None, options.quick), runs)
    report(data, folder, time.perf_counter() - begin)
    print(f"{folder}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "reproduce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small graphs, two runs")
    parser.add_argument("--runs", type=int, help="runs of everything (10; 2 with --quick)")
    parser.add_argument("--only", choices=SETTINGS, help="measure no more than that")
    parser.add_argument("-o", "--output", type=Path, help="folder of the results")
    return parser.parse_args()


def report(data: Data, folder: Path, seconds: float) -> None:
    """Write findings, tables and figures of all measurements."""
    header = list(heading(data, seconds))
    rows = findings.judged(chain.from_iterable(part.FINDINGS for part in SECTIONS), data)
    write_text(folder / "findings.md", findings.as_markdown(rows, header), ANY)
    write_text(folder / "findings.csv", findings.as_csv(rows), ANY)
    write_text(folder / "makespan.csv", tables.makespans(data), ANY)
    write_text(folder / "partition.csv", tables.partitions(data), ANY)
    write_text(folder / "gaps.csv", tables.gaps(data), ANY)
    write_text(folder / "references.csv", tables.references(data), ANY)
    top = "\n".join(header) + "\n\n"
    write_text(folder / "gaps.txt", top + tables.gap_summary(data), ANY)
    write_text(folder / "tables.txt", top + "\n".join(tables.makespan_text(data)) + "\n", ANY)
    figures.draw_all(data, folder / "figures")
    for number, row in enumerate(rows, 1):
        print(f"{number:3} {row.verdict.value:12} {row.finding.title}: {row.measured}")


def heading(data: Data, seconds: float) -> Iterator[str]:
    """Say where the numbers come from."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("optpart", "numpy", "numba"))
    yield f"{machine()}; Python {platform.python_version()}, {packages}."
    yield (
        f"{data.runs} runs, seeds 1 to {data.runs}: graphs, costs and clusters are drawn anew in "
        "every run (the networks of [B] stay as they are), strategies draw with the run's seed. "
        f"Measuring takes {data.cost():.0f} s of processor time, on {measure.PROCESSES} processes "
        f"side by side; this command, with what was stored before it, took {seconds:.0f} s."
    )
    count, error = data.verified()
    yield (
        f"Makespans are in doubles. {count} schedules of the first runs were timed exactly and "
        "accepted by the verifier: every pair on the smallest TensorFlow graph, and a sample of "
        f"the pairs on all others; the largest relative difference is {error:.1g}."
    )
    yield (
        f"A strategy that needs more than {measure.SLOW:g} s of one core is run there once: "
        f"{', '.join(slow(data)) or 'none was'}."
    )
    failed = sorted({f"{run.partitioner} on {run.case}" for run in data.every() if run.failed})
    yield f"No placement in some run: {', '.join(failed) or 'nowhere'}."


def slow(data: Data) -> Iterator[str]:
    runs = (run for run in data.every() if is_slow(run))
    for run in sorted(runs, key=lambda run: (run.partitioner, run.case)):
        yield f"{run.partitioner} on {run.case} ({run.seconds:.0f} s)"


def is_slow(run: Run) -> bool:
    return run.run == 1 and run.seconds > measure.SLOW


def machine() -> str:
    model = platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        model = next((ln.partition(": ")[2] for ln in lines if ln.startswith("model name")), model)
    return f"{os.cpu_count()} cores, {model}, {len(registry.PARTITIONERS)} partitioning strategies"


if __name__ == "__main__":
    main()
