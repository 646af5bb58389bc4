"""What makes the graphs of [L] table 7.1 hard: transfers, colocation groups, or the load.

    python bench/thesis.py [--numbers 3,4,5,6] [--devices 100] [--seed 0]

Without memory limits, HEFT schedules each graph as it is, and with transfers or groups or both left
out. ``groups alone`` is the relaxation that ``heft-groups`` ranks by: no transfers, and every group
and every single vertex has the fastest of its devices for itself.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import optpart as op
from optpart.interop.generate.thesis import instance as drawn
from optpart.kernels.compiled import arrays
from optpart.lower_bounds.load import load_bound
from optpart.problem.rational import RationalArray
from optpart.strategies.partition.heft_groups import relaxed, run_times


def row(number: int, devices: int, seed: int) -> list[str]:
    """Return the cells of one graph."""
    instance = drawn(number, devices, seed, memory=False)
    graph, cluster = instance.graph, instance.cluster
    single = replace(graph, colocation=())
    infinite = np.ones_like(cluster.infinite)
    fast = replace(cluster, bandwidth=RationalArray.zeros(devices, devices), infinite=infinite)
    a = arrays(instance)
    fastest, _ = run_times(a)
    alone = relaxed(instance, fastest, np.zeros(graph.tensors)).length
    cases = (
        (op.Instance(single, fast), "heft"),
        (op.Instance(single, cluster), "heft"),
        (op.Instance(graph, fast), "heft"),
        (instance, "heft"),
        (instance, "heft-groups"),
    )
    found = [op.solve(case, method, seconds=600).makespan for case, method in cases]
    times = [
        float(load_bound(instance) or 0),
        alone / a.scale,
        *(float(time or 0) for time in found),
    ]
    return [str(number), *(f"{time:.1f}" for time in times)]


def main() -> None:
    """Print one row per graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", default="3,4,5,6")
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    heads = ("graph", "load", "groups alone", "neither", "no groups", "no transfers", "heft")
    rows = [[*heads, "heft-groups"]]
    rows += [row(int(n), given.devices, given.seed) for n in given.numbers.split(",")]
    for cells in rows:
        print("".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
