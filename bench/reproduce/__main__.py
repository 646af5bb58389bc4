"""Repeat the published findings: gaps, and which findings hold here.

    python bench/reproduce [--runs 10] [--only SETTING] [-o bench/results/reproduce]

Measures every partitioning strategy of the registry under every scheduling strategy on

- ``laich100``: the six graphs of [L] table 7.1 on 100 drawn devices (figures 7.1 to 7.3),
- ``tensorflow50``: three TensorFlow graphs on 50 devices (figures 7.4 to 7.6, [M] figure 3),
- ``seven``: graphs 2 and 3 and the TensorFlow graphs on 7 devices (figures 7.7 to 7.10),
- ``bahnmueller``: the two networks of [B] on 1 to 8 equal devices (figures 5.3 to 5.25),

bounds every instance, and writes the findings, and all gaps as a table and a map. Measurements are
kept in ``runs.jsonl``: a stopped command continues where it was.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from bench.output import processor
from bench.reproduce import bahnmueller, findings, gaps, laich, mayer, measure
from bench.reproduce.cases import CASES, chosen
from bench.reproduce.data import Data
from bench.store import RESULTS, Store
from optpart.base.files import ANY, write_text
from optpart.methods import registry


def main() -> None:
    parser = argparse.ArgumentParser("reproduce", description="repeat the published findings")
    parser.add_argument("--runs", type=int, default=10, help="runs of everything")
    settings = dict.fromkeys(case.setting for case in CASES)
    parser.add_argument("--only", choices=settings, help="measure no more than that")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "reproduce")
    options = parser.parse_args()
    folder: Path = options.output
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    store = Store(folder / "runs.jsonl")
    begin = time.perf_counter()
    measure.run(chosen(options.only), options.runs, store)
    data = Data(measure.records(store), CASES, options.runs)
    top = "\n".join(heading(data, time.perf_counter() - begin))
    rows = findings.judged(claims(), data)
    write_text(folder / "findings.md", findings.as_markdown(rows, top), ANY)
    write_text(folder / "gaps.txt", f"{top}\n\n{gaps.gap_summary(data)}", ANY)
    gaps.gap_map(data, folder / "figures" / "gaps.png")
    for number, row in enumerate(rows, 1):
        print(f"{number:3} {row.verdict.value:12} {row.finding.title}: {row.measured}")
    print(f"{folder}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def claims() -> Iterator[findings.Finding]:
    """Read the published findings, each with the function that judges it."""
    text = Path(__file__).with_name("findings.toml").read_text(encoding="utf-8")
    for row in tomllib.loads(text)["finding"]:
        source, _, name = row.pop("judge").partition(".")
        judge = getattr({"laich": laich, "mayer": mayer, "bahnmueller": bahnmueller}[source], name)
        if source == "bahnmueller":
            judge = bahnmueller.on_both(judge)
        yield findings.Finding(judge=judge, **row)


def heading(data: Data, seconds: float) -> Iterator[str]:
    """Say where the numbers come from."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("optpart", "numpy", "numba"))
    strategies = f"{len(registry.PARTITIONERS)} partitioning strategies"
    cores = f"{os.cpu_count()} cores, {processor()}, {strategies}"
    yield f"{cores}; Python {platform.python_version()}, {packages}."
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
    runs = (run for run in data.every() if run.run == 1 and run.seconds > measure.SLOW)
    for run in sorted(runs, key=lambda run: (run.partitioner, run.case)):
        yield f"{run.partitioner} on {run.case} ({run.seconds:.0f} s)"


if __name__ == "__main__":
    main()
