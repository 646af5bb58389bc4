"""Growth of time and memory from ten thousand to a million vertices.

    python bench/scale.py [-o bench/results/scale]

The graphs are those of [L] §6.2, with two edges per vertex, on 50 devices. Each size runs in a
new process, after compilation. The output is a table, and a figure with logarithmic axes.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench.output import save, short_machine
from optpart.base.files import ANY, write_text

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
STRATEGIES = ("hash", "critical-path", "mite", "dfs", "batch-split")
DEVICES = 50


def measure(vertices: int) -> dict[str, float]:
    """Return seconds per step at one size, and peak memory in MiB."""
    import numpy as np

    from optpart.interop.generate.cluster import drawn_cluster
    from optpart.interop.generate.layered import layered
    from optpart.kernels.tasks import tasks
    from optpart.methods.registry import PARTITIONERS
    from optpart.problem.instance import Instance
    from optpart.strategies.scheduling.pct import pct
    from optpart.strategies.simulator import execute, simulate

    seconds: dict[str, float] = {}

    def timed(name: str, step: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        result = step()
        seconds[name] = time.perf_counter() - begin
        return result

    def instance(n: int) -> Instance:
        graph = layered(
            1,
            levels=max(10, n // 100),
            width=(50, 200),
            vertices=n,
            level_edges=3 * n // 2,
            level_limit=20,
            random_edges=n // 2,
            colocated=n // 10,
        )
        return Instance(graph, drawn_cluster(1, DEVICES))

    def rng() -> np.random.Generator:
        return np.random.default_rng(1)

    warm = instance(2000)
    for name in STRATEGIES:
        simulate(warm, PARTITIONERS[name].load()(warm, rng()), pct)
    made = timed("generate", lambda: instance(vertices))
    timed("prepare", lambda: PARTITIONERS["hash"].load()(made, rng()))
    for name in STRATEGIES:
        partition = timed(name, lambda n=name: PARTITIONERS[n].load()(made, rng()))

        def run(partition: Any = partition) -> Any:
            work = tasks(made, partition.placement)
            return execute(work, pct(work, partition, rng()))

        timed(f"{name}+pct simulation", run)
    timed("exact schedule", lambda: simulate(made, partition, pct))
    seconds["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, default=max(SIZES))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    rows: dict[int, dict[str, float]] = {}
    for size in (size for size in SIZES if size <= options.most):
        command = [sys.executable, __file__, "--one", str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows[size] = json.loads(done.stdout)
        print(f"{size:>9,} vertices done", file=sys.stderr)
    text = table(rows)
    print(text)
    if options.output is not None:
        write_text(options.output.with_suffix(".txt"), text, ANY)
        save(figure(rows), options.output.with_suffix(".png"), dpi=150)


def table(rows: dict[int, dict[str, float]]) -> str:
    """Return seconds per step (a row) and size (a column), and the growth over the last decade."""
    sizes = list(rows)
    lines = [
        f"{DEVICES} devices, two edges a vertex; {short_machine()}; seconds",
        f"{'step':32}" + "".join(f"{size:>12,}" for size in sizes) + f"{'exponent':>10}",
    ]
    for step in rows[sizes[0]]:
        values = [rows[size][step] for size in sizes]
        lines.append(
            f"{step:32}"
            + "".join(f"{value:12.3f}" for value in values)
            + f"{exponent(sizes, values):10.2f}"
        )
    return "\n".join(lines) + "\n"


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope between the first and the last point, both logarithmic: 1 is linear growth."""
    return math.log(values[-1] / values[0]) / math.log(sizes[-1] / sizes[0])


def figure(rows: dict[int, dict[str, float]]) -> Figure:
    """Draw seconds against vertices."""
    picture = Figure(figsize=(8, 5), layout="constrained")
    axes = picture.add_subplot()
    sizes = list(rows)
    drawn = [step for step in rows[sizes[0]] if step not in ("peak MiB", "prepare")]
    # One colour a strategy, dashed for its simulation.
    colours = {name: f"C{i}" for i, name in enumerate(n for n in drawn if "+" not in n)}
    for step in drawn:
        colour, style = colours[step.partition("+")[0]], ":" if "+" in step else "-"
        seconds = [rows[size][step] for size in sizes]
        axes.plot(sizes, seconds, style, color=colour, marker="o", markersize=4, label=step)
    first = rows[sizes[0]]["generate"]
    linear = [first * size / sizes[0] for size in sizes]
    axes.plot(sizes, linear, color="0.6", linestyle="--", label="linear")
    axes.set(xscale="log", yscale="log", xlabel="vertices", ylabel="seconds")
    axes.grid(visible=True, which="major", color="0.9")
    axes.legend(fontsize=7, ncols=2, frameon=False)
    return picture


if __name__ == "__main__":
    main()
