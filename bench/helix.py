"""Serve the clusters of Helix, beside its published plans and bounds.

    python bench/helix.py FOLDER [--time-limit 240] [--output bench/results/helix.csv]

FOLDER holds Helix's ``artifact_evaluation`` and ``simulator``. Each published plan is routed again,
exactly; ``stated`` is the objective value in its ``.sol`` file, ``their_bound`` the last bound of
its solver's trace, if there is one. ``their_gap`` is that of the published plan to our bound.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from fractions import Fraction
from pathlib import Path

from optpart.applications.serving import helix
from optpart.applications.serving.plan import route, violations
from optpart.applications.serving.serve import serve
from optpart.base.files import ANY, write_text
from optpart.base.rounding import fixed, percent

#: Clusters, models and published plans, in folders of ``artifact_evaluation``.
CASES = (
    *(
        (f"{site}/config/{kind}.ini", "llama1_30b", [f"{site}/layout_llama30b/ilp/{kind}"])
        for site in ("single_cluster", "distributed_clusters")
        for kind in ("a100", "l4", "t4")
    ),
    ("ablation/config/cluster10.ini", "llama1_30b", ["ablation/layouts/quality"]),
    ("single_cluster/config/cluster24.ini", "llama2_70b", ["single_cluster/layout_llama70b/ilp"]),
    (
        "ablation/config/3cluster24.ini",
        "llama2_70b",
        ["ablation/layouts/raw_24", "ablation/layouts/no_prune_24"],
    ),
    (
        "ablation/config/cluster42.ini",
        "llama2_70b",
        ["ablation/layouts/raw_42", "ablation/layouts/no_prune_42"],
    ),
)


def rows(folder: Path, case: tuple[str, str, list[str]], seconds: float) -> list[dict[str, str]]:
    """Return a row for each published plan of a cluster."""
    root = folder / "artifact_evaluation"
    serving = helix.read(root / case[0], folder / "simulator" / "model_manager" / case[1])
    found = serve(serving, seconds)
    result = []
    for plan in case[2]:
        routed = route(serving, helix.read_layers(root / plan / "ilp_sol.ini", serving))
        assert not list(violations(serving, routed))
        value = routed.through(serving.sink)
        stated = re.search(
            r"Objective value = (\S+)", (root / plan / "ilp_solution.sol").read_text()
        )
        trace = root / plan / "trace.txt"
        bounds = re.findall(r"best bound (\S+),", trace.read_text()) if trace.exists() else []
        result.append(
            {
                "cluster": case[0],
                "model": case[1],
                "machines": f"{len(serving.machines)}",
                "published": plan,
                "stated": "" if stated is None else f"{float(stated[1]):.4f}",
                "routed": fixed(value, 4, up=False),
                "their_bound": f"{float(bounds[-1]):.4f}" if bounds else "",
                "throughput": fixed(found.throughput, 4, up=False),
                "bound": fixed(found.bound, 4, up=True),
                "proof": found.proof,
                "status": str(found.status),
                "gap": percent(found.gap),
                "their_gap": percent(1 - Fraction(value / found.bound)),
                "seconds": fixed(Fraction(found.seconds), 1, up=True),
            }
        )
    return result


def main() -> None:
    """Serve all clusters, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=240.0)
    parser.add_argument("--output", type=Path, default=Path("bench/results/helix.csv"))
    given = parser.parse_args()
    table: list[dict[str, str]] = []
    for case in CASES:
        table += rows(given.folder, case, given.time_limit)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
        write_text(given.output, text.getvalue(), ANY)
        print(*table[-1].values(), sep="  ")


if __name__ == "__main__":
    main()
