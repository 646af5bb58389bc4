"""Throughput files of dnn-partitioning: what its authors compare, and proven optima.

``python -m bench.pipeline [FOLDER]`` prints bench/results/pipeline/table.txt. FOLDER holds the
files (by default ../shared/data/dnn-partitioning/throughput). Times are milliseconds per item.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from bench.output import columns
from bench.pipeline.published import (
    MOST_DOWNSETS,
    Network,
    downsets,
    dynamic_programme,
    greedy,
    local_search,
    one_accelerator,
    prefixes,
)
from optpart.base.files import ANY, write_text
from optpart.exact.pipeline.downsets import downsets_of, items_of
from optpart.exact.pipeline.plan import PipelinePlan, plan_pipeline
from optpart.exact.pipeline.problem import Pipeline
from optpart.exact.pipeline.throughput import read_throughput

FOLDER = Path(__file__).resolve().parents[2] / "../shared/data/dnn-partitioning/throughput"
TABLE = Path(__file__).parents[1] / "results" / "pipeline" / "table.txt"

#: Size per time of transfers in the operator files, 2 GiB/s in bytes per millisecond.
RATE = Fraction(2**31, 1000)

#: Local search takes long beyond.
_MOST_ITEMS = 100

_HEAD = (
    "file", "nodes", "downsets", "one", "greedy", "local", "one order", "their DP", "ours",
    "seconds", "replicas", "synchronised",
)  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    rows = []
    for path in sorted(folder.glob("*.json")):
        factors = (1, 1000) if path.stem.startswith("layer") else (1,)
        for factor in factors:
            rows.append(_row(path, factor))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    text = "\n".join([columns(_HEAD, rows), *_NOTES, ""])
    write_text(TABLE, text, ANY)
    print(text)


def _row(path: Path, factor: int) -> tuple[str, ...]:
    net = Network(path, factor)
    sets = downsets(net)
    local = local_search(net) if len(net.fast) <= _MOST_ITEMS else None
    theirs = [one_accelerator(net), greedy(net), local, dynamic_programme(net, prefixes(net))]
    whole = dynamic_programme(net, sets) if len(sets) <= MOST_DOWNSETS else None
    problem = _scaled(read_throughput(path), factor)
    plan, seconds = _timed(lambda: plan_pipeline(problem))
    if whole is not None and abs(whole - float(plan.bottleneck or 0)) > 1e-6:
        raise SystemExit(f"{path.stem}: their programme gives {whole}, ours {plan.bottleneck}")
    most = len(problem.devices)
    shared, _ = _timed(lambda: plan_pipeline(problem, replicas=most))
    training = "training" in path.stem
    synchronised = None
    if training and "gnmt" not in path.stem:
        other = _scaled(read_throughput(path, RATE), factor)
        synchronised, _ = _timed(lambda: plan_pipeline(other, replicas=most))
    return (
        path.stem + (f", cost × {factor}" if factor > 1 else ""),
        str(len(problem.vertices)),
        f"{len(downsets_of(items_of(problem))):,}",
        *("–" if value is None else f"{value:.3f}" for value in theirs),
        "–" if whole is None else f"{whole:.3f}",
        _shown(plan),
        f"{seconds:.1f}",
        _shown(shared),
        "–" if synchronised is None else _shown(synchronised),
    )


def _scaled(problem: Pipeline, factor: int) -> Pipeline:
    tensors = tuple(replace(tensor, cost=factor * tensor.cost) for tensor in problem.tensors)
    return replace(problem, tensors=tensors)


def _timed(run: Callable[[], PipelinePlan]) -> tuple[PipelinePlan, float]:
    begin = time.perf_counter()
    return run(), time.perf_counter() - begin


def _shown(plan: PipelinePlan) -> str:
    mark = "" if plan.status.proven else " ≥?"
    return f"{float(plan.bottleneck or 0):.3f}{mark}"


_NOTES = (
    "one: all on one accelerator. greedy: accelerators filled up to their memory, in topological",
    "order. inf: not enough memory. local: best single moves from ten random placements, for up to",
    f"{_MOST_ITEMS} items; it need not be contiguous. one order: the dynamic programme along one",
    "topological order. their DP: over all downsets, with doubles, of which there may be up to",
    f"{MOST_DOWNSETS:,}. ours: proven optimal unless marked, in exact arithmetic; the seconds are",
    "from a busy machine. replicas: stages on any number of equal devices, which exchange nothing.",
    "synchronised: they exchange the sizes of their nodes after each item at 2 GiB/s.",
    "The costs of layer files are a thousand times smaller for their sizes than those of operator",
    "files; the second rows have them multiplied.",
)


if __name__ == "__main__":
    main()
