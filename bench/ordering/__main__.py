"""Repeat the findings of [H] §6 in simulation: figures 7 to 10, and the true gap of orders.

    python bench/ordering [-o bench/results/ordering]

The partition of a worker is executed with the transfers of one parameter server on one channel; a
step of several workers ends with the slowest. Times follow from layer shapes; every op varies by a
factor drawn in every step. The baseline draws an order for every worker and step. "Normalised" step
times, which [H] does not define, are the time of the fastest step by that of the step.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

from bench.ordering.findings import as_text, findings
from bench.ordering.measure import ERROR, NOISE, RUNS, STEPS, WORKERS, measure
from bench.store import RESULTS
from optpart.applications.ordering.replica import BANDWIDTH, SPEED
from optpart.base.files import ANY, write_text


def main() -> None:
    parser = argparse.ArgumentParser("ordering", description="repeat the measurements of [H] §6")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "ordering")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    found = measure()
    packages = ", ".join(f"{name} {version(name)}" for name in ("optpart", "ortools", "numpy"))
    header = (
        f"{os.cpu_count()} cores, of which one is used; Python {platform.python_version()}, "
        f"{packages}.\n"
        f"Workers of {SPEED:,} operations and channels of {BANDWIDTH} bytes per microsecond; "
        "batches at which a worker\ncomputes as long as it receives. The time of an op varies by a "
        f"factor whose logarithm has standard deviation\n{NOISE}; {RUNS} steps for figures 7 and "
        f"8, {STEPS} of {WORKERS} workers for figures 9 and 10; with disorder, a transfer is "
        f"overtaken\nwith probability {ERROR:g}.\n"
    )
    text = as_text(findings(found))
    write_text(folder / "findings.txt", f"{header}\n{text}", ANY)
    print(text, end="")
    print(f"{folder}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
