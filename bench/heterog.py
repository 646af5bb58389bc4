"""The worst case of HeteroG's order: its ratio to proven optima, against its bound ([G] §4.2).

    python bench/heterog.py [-o bench/results/heterog]

The family of [G] theorem 2 for 1 to 6 devices, with links between distinct devices and with a link
from every device to itself as well. Writes a table and a figure.
"""

from __future__ import annotations

import argparse
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from bench.output import save
from optpart.base.files import ANY, write_text
from optpart.interop.generate.heterog_worst import heterog_worst
from optpart.methods.cpsat import cpsat
from optpart.methods.starts import only_placement
from optpart.solution.result import Budget, Status
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate

DEVICES = range(1, 7)
LENGTHS = (10, 100, 1000, 100_000)
SECONDS = 60.0


class Row(NamedTuple):
    """One instance: the makespan by rank, and the proven optimum."""

    devices: int
    loops: bool
    length: int
    by_rank: Fraction
    optimum: Fraction

    @property
    def factor(self) -> int:
        """Devices and links together: what the ratio cannot exceed."""
        return self.devices**2 + (self.devices if self.loops else 0)

    @property
    def ratio(self) -> Fraction:
        """Of the makespan by rank to the optimum."""
        return self.by_rank / self.optimum


def measure(devices: int, length: int, *, loops: bool) -> Row:
    """Run the order by rank and the solver on one instance."""
    instance = heterog_worst(devices, length, loops=loops)
    where = only_placement(instance)
    assert where is not None
    placement = np.array([where[v] for v in range(instance.vertices)], dtype=np.int32)
    schedule = simulate(instance, Partition(placement), heterog)
    assert not verify(instance, schedule)
    best = cpsat(instance, budget=Budget(SECONDS, 1))
    if best.status is not Status.OPTIMAL or best.makespan is None:
        raise SystemExit(f"{instance.name}: not proven within {SECONDS:.0f} s")
    return Row(devices, loops, length, schedule.makespan(instance), best.makespan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = [
        measure(devices, length, loops=loops)
        for loops, devices, length in itertools.product((False, True), DEVICES, LENGTHS)
    ]
    text = table(rows)
    print(text, end="")
    if options.output is not None:
        write_text(options.output.with_suffix(".txt"), text, ANY)
        save(figure(rows), options.output.with_suffix(".png"), dpi=150)


def table(rows: list[Row]) -> str:
    """Return a line per instance."""
    lines = ["links             M  length   by rank  optimum    ratio  at most  M + M²"]
    for row in rows:
        ratio = math.floor(10_000 * row.ratio) / 10_000
        lines.append(
            f"{'and to itself' if row.loops else 'between distinct':16}  {row.devices}  "
            f"{row.length:>6}  {row.by_rank!s:>8}  {row.optimum!s:>7}  {ratio:7.4f}  "
            f"{row.factor:>7}  {row.devices + row.devices**2:>6}"
        )
    return "\n".join(lines) + "\n"


def figure(rows: list[Row]) -> Figure:
    """Draw the ratio against the number of devices, for either kind of links."""
    picture = Figure(figsize=(10, 5), layout="constrained")
    panels = picture.subplots(1, 2, sharey=True)
    titles = ("links between distinct devices", "and a link from every device to itself")
    for axes, loops, title in zip(panels, (False, True), titles, strict=True):
        # Wide and pale: the family runs along its bound.
        reached, label = ([m + m**2 for m in DEVICES], "M + M², theorem 1 as printed")
        if not loops:
            axes.plot(DEVICES, reached, "k--", label=label)
            reached, label = ([m**2 for m in DEVICES], "M², all devices and links")
        axes.plot(DEVICES, reached, color="0.8", linewidth=7, label=label)
        for i, length in enumerate(LENGTHS):
            chosen = [row for row in rows if (row.loops, row.length) == (loops, length)]
            x, y = [row.devices for row in chosen], [float(row.ratio) for row in chosen]
            label = f"long tasks of {length:,}"
            axes.plot(x, y, color=f"C{i}", marker="o", markersize=4, label=label)
        axes.set(xlabel="devices M", title=title)
        axes.set_xticks(list(DEVICES))
        axes.grid(visible=True, color="0.9")
        axes.legend(fontsize=8, frameon=False)
    panels[0].set(ylabel="order by rank / proven optimum")
    return picture


if __name__ == "__main__":
    main()
