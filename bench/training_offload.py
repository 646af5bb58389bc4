"""Training pipelines in less memory than 1F1B needs, with and without offloading.

    python bench/training_offload.py [--time-limit 10] [-o bench/results]

A step has 4 to 8 microbatches on 2 to 4 devices, which hold fewer microbatches than 1F1B needs, one
per device. A forward pass takes 10, the gradients of input and weights 12 and 8, a transfer 2; the
gradient of the input releases half of what a forward pass leaves. Offloading it takes 10 or 20, and
as long back. ``auto`` gets the time limit; the distance of ``1f1b-offload`` is to its bound.
What has a row is not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby, product

import optpart as op
from bench.output import machine, markdown
from bench.store import Row, Runs, Values, make_page
from bench.training_pipelines import TIMES
from optpart.interop.generate.training_pipeline import training_pipeline

LIMITS = {2: (1,), 3: (2,), 4: (2, 3)}
OFFLOAD = (None, 10, 20)


def runs(seconds: float) -> Iterator[Runs]:
    """Yield all runs; those that differ in offloading follow one another."""
    for p, m in product(LIMITS, (4, 6, 8)):
        for limit, offload in product(LIMITS[p], OFFLOAD):
            run: Values = {
                "devices": p,
                "microbatches": m,
                "memory": limit,
                "offload": offload,
                "seconds": seconds,
            }
            yield run, partial(measured, run)


def measured(run: Values) -> Values:
    """Solve, and run the order that offloads."""
    instance = training_pipeline(
        devices=run["devices"],
        microbatches=run["microbatches"],
        transfer=2,
        activations=1,
        released=1,
        memory=2 * run["memory"],
        offload=run["offload"],
        **TIMES["alike"],
    )
    best = op.solve(instance, seconds=run["seconds"])
    found = {"status": str(best.status), "auto": str(best.makespan), "bound": str(best.lower_bound)}
    if run["offload"] is not None:
        found["1f1b-offload"] = str(op.solve(instance, "1f1b-offload").makespan)
    return found | {"machine": machine()}


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the page."""
    proven = sum(row.result["status"] == "OPTIMAL" for row in rows)
    yield "# Training pipelines in less memory than 1F1B needs"
    yield ""
    yield " ".join((__doc__ or "").split("\n\n")[2].split())
    yield ""
    yield (
        f"{proven} of {len(rows)} optima are proven in {rows[0].run['seconds']:g} s each; others "
        f"are shown with their bound. {rows[0].result['machine']}"
    )
    yield ""
    head = ["devices", "microbatches", "memory", "all kept"]
    for offload in OFFLOAD[1:]:
        head += [f"offload in {offload}", "1f1b-offload"]
    lines = []
    shared = ("devices", "microbatches", "memory")
    for setting, group in groupby(rows, lambda row: [row.run[key] for key in shared]):
        cells = [str(value) for value in setting]
        for row in group:
            known = row.result
            best, bound = known["auto"], known["bound"]
            cells.append(best if best == bound else f"{bound} to {best}")
            if row.run["offload"] is not None:
                cells.append(f"{float(known['1f1b-offload']) / float(bound) - 1:.1%}")
        lines.append(cells)
    yield markdown(head, lines)


def page(rows: list[Row]) -> str:
    """Return the page."""
    return "\n".join(table(rows)) + "\n"


if __name__ == "__main__":
    make_page(__doc__, "training_offload", 10.0, runs, page)
