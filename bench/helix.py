"""Serve the clusters of Helix, beside its published plans and bounds.

    python bench/helix.py FOLDER [--time-limit 240] [--output bench/results/helix.csv]

FOLDER holds Helix's ``artifact_evaluation`` and ``simulator``. Each published plan is routed again,
exactly; ``stated`` is the objective value in its ``.sol`` file, ``their_bound`` the last bound of
its solver's trace, if there is one. ``their_gap`` is that of the published plan to our bound.
Seconds, and bounds that are not optimal, depend on the machine and what else runs on it.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from pathlib import Path

from optpart.applications.serving import helix
from optpart.applications.serving.plan import route, violations
from optpart.applications.serving.serve import serve
from optpart.base.files import ANY, write_text
from optpart.base.rounding import fixed, percent

#: Clusters of 30B and of 70B with folders of published plans, all in ``artifact_evaluation``.
CASES = [
    *((f"{place}/config/{kind}.ini", f"{place}/layout_llama30b/ilp/{kind}")
      for place in ("single_cluster", "distributed_clusters") for kind in ("a100", "l4", "t4")),
    ("ablation/config/cluster10.ini", "ablation/layouts/quality"),
    ("single_cluster/config/cluster24.ini", "single_cluster/layout_llama70b/ilp"),
    ("ablation/config/3cluster24.ini", "ablation/layouts/raw_24"),
    ("ablation/config/cluster42.ini", "ablation/layouts/no_prune_42"),
]  # fmt: skip


def row(folder: Path, cluster: str, published: str, seconds: float) -> dict[str, str]:
    """Return the row of a cluster and a published plan."""
    root = folder / "artifact_evaluation"
    model = "llama2_70b" if re.search("24|42", cluster) else "llama1_30b"
    serving = helix.read(root / cluster, folder / "simulator" / "model_manager" / model)
    plan = route(serving, helix.read_layers(root / published / "ilp_sol.ini", serving))
    assert not list(violations(serving, plan))
    value, found = plan.through(serving.sink), serve(serving, seconds)
    said = (root / published / "ilp_solution.sol").read_text()
    trace = root / published / "trace.txt"
    bounds = re.findall(r"best bound (\S+),", trace.read_text()) if trace.exists() else []
    return {
        "cluster": cluster,
        "machines": str(len(serving.machines)),
        "stated": f"{float(said.split('value =')[1].split()[0]):.4f}",
        "routed": fixed(value, 4, up=False),
        "their_bound": f"{float(bounds[-1]):.4f}" if bounds else "",
        "throughput": fixed(found.throughput, 4, up=False),
        "bound": fixed(found.bound, 4, up=True),
        "proof": found.proof,
        "status": str(found.status),
        "gap": percent(found.gap),
        "their_gap": percent(1 - value / found.bound),
        "seconds": fixed(found.seconds, 1, up=True),
    }


def main() -> None:
    """Serve all clusters, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=240.0)
    parser.add_argument("--output", type=Path, default=Path("bench/results/helix.csv"))
    given = parser.parse_args()
    rows = [row(given.folder, *case, given.time_limit) for case in CASES]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(given.output, text.getvalue(), ANY)


if __name__ == "__main__":
    main()
