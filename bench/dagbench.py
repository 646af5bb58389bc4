"""Solve and certify every graph of DAGBench, for which no optimum is published.

    python bench/dagbench.py FOLDER [--time-limit 20] [--output bench/results/dagbench.csv]

FOLDER holds DAGBench's ``workflows``. Each graph on its own network is solved by ``auto``, and its
optimum, if it is proven, is certified, with that time for each. A row is written after each graph;
when the command is run again, graphs with an optimum, and others that had as much time, are left
out. The last lines say how many are proven, how many of these have a certificate, and how far HEFT
is from the optimum.
"""

from __future__ import annotations

import argparse
import tempfile
from fractions import Fraction
from pathlib import Path
from statistics import mean

import optpart as op
from bench.output import read_csv, write_csv
from optpart.base.errors import OptpartError
from optpart.certificates.certify import certify
from optpart.problem.instance import Instance

COLUMNS = ("graph", "vertices", "edges", "devices", "status", "makespan", "bound", "heft",
           "certificate", "seconds")  # fmt: skip


def solved(instance: Instance, seconds: float) -> dict[str, str]:
    """Return the row of a graph."""
    result = op.solve(instance, "auto", seconds=seconds)
    heft = op.solve(instance, "heft")
    tier = ""
    if result.status == "OPTIMAL" and result.schedule is not None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                target = Path(folder) / "certificate"
                tier = certify(instance, result.schedule, target, seconds=seconds).tier
            except OptpartError as error:
                tier = f"none: {error}"
    return {
        "graph": instance.name,
        "vertices": f"{instance.vertices}",
        "edges": f"{len(instance.graph.edge_source)}",
        "devices": f"{instance.devices}",
        "status": str(result.status),
        "makespan": str(result.makespan),
        "bound": str(result.lower_bound),
        "heft": str(heft.makespan),
        "certificate": tier,
        "seconds": f"{seconds:g}",
    }


def main() -> None:
    """Solve what is missing, and print the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--output", type=Path, default=Path("bench/results/dagbench.csv"))
    given = parser.parse_args()
    rows = {row["graph"]: row for row in read_csv(given.output)}
    for path in sorted(given.folder.glob("*/*/graph.json")):
        instance = op.load(path)
        old = rows.get(instance.name)
        if old and (old["status"] == "OPTIMAL" or float(old["seconds"]) >= given.time_limit):
            continue
        rows[instance.name] = row = solved(instance, given.time_limit)
        print(*row.values(), flush=True)
        write_csv(given.output, rows.values(), COLUMNS)  # at once: the run may be stopped
    summarise(list(rows.values()))


def summarise(rows: list[dict[str, str]]) -> None:
    """Print what is proven, and how far HEFT is from it."""
    proven = [row for row in rows if row["status"] == "OPTIMAL"]
    certified = [row for row in proven if not row["certificate"].startswith("none")]
    left = [row for row in rows if row not in proven]
    print(f"{len(rows)} graphs: {len(proven)} proven, {len(certified)} of them certified")
    for row in left:
        gap = 1 - Fraction(row["bound"]) / Fraction(row["makespan"])
        print(f"  open: {row['graph']}, {row['vertices']} vertices, gap {float(gap):.1%}")
    over = [Fraction(row["heft"]) / Fraction(row["makespan"]) - 1 for row in proven]
    print(
        f"HEFT over the optimum: {float(mean(over)):.1%} in the mean, {float(max(over)):.1%} at "
        f"most, optimal for {sum(not each for each in over)}"
    )


if __name__ == "__main__":
    main()
