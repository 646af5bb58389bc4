"""Orders of training pipelines beside proven optima.

    python bench/training_pipelines.py [--time-limit 20] [-o bench/results]

A step has 4 to 16 microbatches and 2 to 8 devices, which hold as many microbatches as there are
devices, or nearly twice as many, or any number. Stages are alike (a forward pass takes 10, the
gradients of input and weights 12 and 8) or drawn (9 to 13, 10 to 14, 7 to 11); a transfer takes 2.
Stages of a V are two per device, at half these times. ``auto`` gets the time limit; an order's
distance is to the best bound that any run proved, so it is an upper bound where ``auto`` proved no
optimum. What has a row is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import optpart as op
from bench.output import machine, markdown
from bench.store import Row, Runs, Values, make_page
from optpart.base.errors import UnsupportedError
from optpart.interop.generate.training_pipeline import training_pipeline

ORDERS = ("gpipe", "1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v")
TIMES = {
    "alike": {"forward": (10, 10), "backward": (12, 12), "weight": (8, 8)},
    "drawn": {"forward": (9, 13), "backward": (10, 14), "weight": (7, 11)},
}
HALVED = {
    "alike": {"forward": (5, 5), "backward": (6, 6), "weight": (4, 4)},
    "drawn": {"forward": (4, 7), "backward": (5, 7), "weight": (3, 6)},
}
MEMORY: dict[str, Callable[[int], int | None]] = {
    "p": lambda p: p,
    "2p − 1": lambda p: 2 * p - 1,
    "any": lambda p: None,
}


def runs(seconds: float) -> Iterator[Runs]:
    """Yield all runs."""
    for shape, p, m, memory, times in product(
        ("line", "V"), (2, 4, 8), (4, 8, 16), MEMORY, TIMES
    ):  # fmt: skip
        if m >= p:
            run: Values = {
                "shape": shape,
                "devices": p,
                "microbatches": m,
                "memory": memory,
                "times": times,
                "seconds": seconds,
            }
            yield run, partial(measured, run)


def instance_of(run: Values) -> op.Instance:
    """Return the instance of a run."""
    limit, line = MEMORY[run["memory"]](run["devices"]), run["shape"] == "line"
    times: dict[str, Any] = (TIMES if line else HALVED)[run["times"]]
    return training_pipeline(
        1,
        devices=run["devices"],
        microbatches=run["microbatches"],
        chunks=1 if line else 2,
        shape="loop" if line else "v",
        transfer=2,
        memory=limit if limit is None or line else 2 * limit,
        **times,
    )


def measured(run: Values) -> Values:
    """Solve, and run every order."""
    instance = instance_of(run)
    best = op.solve(instance, seconds=run["seconds"])
    found: Values = {"status": str(best.status), "auto": None, "bound": str(best.lower_bound)}
    if best.makespan is not None:
        found["auto"] = str(best.makespan)
    for order in ORDERS:
        try:
            made = op.solve(instance, order)
        except UnsupportedError:
            continue
        found[order] = None if made.makespan is None else str(made.makespan)
    return found | {"machine": machine()}


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the page."""
    proven = sum(row.result["status"] == "OPTIMAL" for row in rows)
    yield "# Orders of training pipelines"
    yield ""
    yield " ".join((__doc__ or "").split("\n\n")[2].split())
    yield ""
    yield (
        f"{proven} of {len(rows)} optima are proven in {rows[0].run['seconds']:g} s each. "
        f"{rows[0].result['machine']}"
    )
    yield ""
    head = ["stages", "devices", "microbatches", "memory", "times", "auto", "bound", *ORDERS]
    lines = []
    for row in rows:
        bound = float(row.result["bound"])
        cells = [row.run[k] for k in ("shape", "devices", "microbatches", "memory", "times")]
        cells += [row.result["auto"] or "-", row.result["bound"]]
        for order in ORDERS:
            made = row.result.get(order, "")
            cells.append("" if made == "" else "memory" if made is None
                         else f"{float(made) / bound - 1:.1%}")  # fmt: skip
        lines.append(cells)
    yield markdown(head, lines)


def page(rows: list[Row]) -> str:
    """Return the page."""
    return "\n".join(table(rows)) + "\n"


if __name__ == "__main__":
    make_page(__doc__, "training_pipelines", 20.0, runs, page)
