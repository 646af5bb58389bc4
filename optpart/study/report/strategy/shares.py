"""A map of who computes what: the share of every group on every device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import Role, TrainingGraph
from optpart.applications.training.groups import along, positions
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.rounding import number
from optpart.study.report.gantt.style import FAINT, INK, NORMAL, SMALL, SMALLEST, TITLE, short
from optpart.study.report.picture import write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Rows up to which each has its name; more are numbered at the axis.
_NAMED = 60


def draw(
    graph: TrainingGraph,
    cluster: TrainingCluster,
    strategy: Strategy,
    path: str | Path,
    *,
    title: str = "",
) -> None:
    """Draw the shares of groups (along the forward pass) on devices, as PNG or SVG."""
    write_picture(path, lambda: _figure(graph, cluster, strategy, title or graph.name))


def group_name(graph: TrainingGraph, group: tuple[int, ...]) -> str:
    """Return the first and last of a group's forward operations, or else of all."""
    place = positions(graph)
    own = [o for o in group if graph.operations[o].role is Role.FORWARD] or list(group)
    names = [graph.operations[o].name for o in sorted(own, key=lambda o: place[o])]
    if len(names) == 1:
        return short(names[0], 36)
    return f"{short(names[0], 16)} … {short(names[-1], 16)} ({len(names)})"


def _sync(decision: Decision, cluster: TrainingCluster) -> str:
    if decision.sync is None:
        return ""
    return "AllReduce" if decision.sync == "allreduce" else f"PS {cluster.names[decision.sync]}"


def _figure(
    graph: TrainingGraph, cluster: TrainingCluster, strategy: Strategy, title: str
) -> Figure:
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    order, k = along(graph, strategy.groups), len(cluster)
    decisions = [strategy.decisions[g] for g in order]
    shares = np.array([[float(share) for share in d.shares] for d in decisions])
    rows = len(order)
    each = min(0.26, 10.0 / rows)
    left, right, above, column = 2.7, 1.6, 0.75, 0.75
    below = 0.3 + 0.055 * max(len(short(name, 20)) for name in cluster.names)
    width, height = left + k * column + right, rows * each + above + below
    figure = Figure(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((left / width, below / height, k * column / width, rows * each / height))
    # Shares of many devices are small: the root keeps them apart.
    axes.imshow(shares, cmap="YlGnBu", norm=PowerNorm(0.5, 0, 1), aspect="auto")
    size = max(SMALLEST, min(SMALL, 60 * each))
    axes.set_xticks(range(k), [short(name, 20) for name in cluster.names], rotation=45, ha="right")
    if rows <= _NAMED:
        names = [group_name(graph, strategy.groups[g]) for g in order]
        axes.set_yticks(range(rows), names)
        for r, decision in enumerate(decisions):
            for d in decision.devices:
                share = decision.shares[d]
                text = f"{number(100 * share, up=False, digits=3)}%"
                colour = "white" if share > 0.4 else INK
                axes.text(d, r, text, ha="center", va="center", fontsize=size, color=colour)
            axes.text(k - 0.4, r, _sync(decision, cluster), va="center", fontsize=size, color=INK)
    else:
        axes.set_ylabel("group along the forward pass", fontsize=NORMAL, color=INK)
    axes.tick_params(axis="both", labelsize=size, length=0, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(-0.5, k), minor=True)
    axes.set_yticks(np.arange(-0.5, rows), minor=True)
    if rows <= _NAMED:
        axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    figure.text(0.2 / width, 1 - 0.3 / height, short(title, 70), fontsize=TITLE, color=INK)
    figure.text(
        0.2 / width, 1 - 0.55 / height,
        f"share of the batch ({strategy.batch} samples) that each device computes",
        fontsize=NORMAL, color=FAINT,
    )  # fmt: skip
    return figure
