"""The graph of an instance, from left to right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from optpart.errors import InputError
from optpart.problem.instance import Instance
from optpart.report.axes import given_or_new
from optpart.report.gantt.colours import QUALITATIVE
from optpart.report.gantt.style import FAINT, INK, SMALL, TRACK
from optpart.report.gantt.words import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Larger graphs have no names.
_MOST_NAMES = 60

#: More devices share a colour, told apart by their markers.
_MARKERS = "osD^vP*X"


def plot_graph(
    instance: Instance, placement: Mapping[str, str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a graph by depth, from left to right; edges between devices are dashed.

    Parameters
    ----------
    placement : mapping from vertex names to device names, optional

    Raises
    ------
    InputError
        If the placement names a vertex or a device that does not exist.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    device = _devices(instance, placement or {})
    place = _layout(instance)
    axes = given_or_new(ax, height=5.0)
    graph = instance.graph
    pairs = np.stack([graph.edge_source, graph.edge_target], axis=1)
    crossing = np.array(
        [device[u] != device[v] and min(device[u], device[v]) >= 0 for u, v in pairs.tolist()],
        dtype=np.bool_,
    )
    thin = 0.8 if len(pairs) <= 500 else 0.3
    for chosen, colour, style in ((~crossing, FAINT, "solid"), (crossing, INK, "dashed")):
        lines = [*place[pairs[chosen]]]
        axes.add_collection(
            LineCollection(lines, colors=colour, linestyles=style, linewidths=thin, zorder=1)
        )
    names = instance.vertices <= _MOST_NAMES
    size = 320 if names else max(6.0, 6000 / max(1, instance.vertices))
    keys = []
    for d in sorted({*device.tolist()}):
        here = np.flatnonzero(device == d)
        look = TRACK if d < 0 else QUALITATIVE[d % len(QUALITATIVE)]
        marker = "o" if d < 0 else _MARKERS[d // len(QUALITATIVE) % len(_MARKERS)]
        axes.scatter(
            place[here, 0], place[here, 1], s=size, color=look, marker=marker, edgecolors=INK,
            linewidths=0.6 if names else 0.2, zorder=2,
        )  # fmt: skip
        label = "not placed" if d < 0 else short(instance.cluster.names[d], 20)
        keys.append(Line2D([], [], color=look, marker=marker, linestyle="", markeredgecolor=INK,
                           markeredgewidth=0.6, label=label))  # fmt: skip
    if names:
        for v, name in enumerate(graph.names):
            x, y = place[v].tolist()
            text = axes.text(x, y, short(name, 10), ha="center", va="center", zorder=3)
            text.set(fontsize=SMALL - 1, color=INK, parse_math=False)
    if crossing.any():
        keys.append(Line2D([], [], color=INK, linestyle="dashed", linewidth=0.8,
                           label="between devices"))  # fmt: skip
    if placement is not None:
        axes.legend(handles=keys, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    axes.margins(0.08)
    axes.set_axis_off()
    return axes


def _devices(instance: Instance, placement: Mapping[str, str]) -> np.ndarray[tuple[int], np.dtype]:
    device = np.full(instance.vertices, -1)
    for vertex, name in placement.items():
        if vertex not in instance.graph.index:
            raise InputError("placement", f"no vertex {vertex!r}", "name one of the instance")
        if name not in instance.cluster.index:
            raise InputError("placement", f"no device {name!r}", "name one of the instance")
        device[instance.graph.index[vertex]] = instance.cluster.index[name]
    return device


def _layout(instance: Instance) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return positions: depth, and within a depth the mean height of what comes before."""
    graph = instance.graph
    before: dict[int, list[int]] = defaultdict(list)
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        before[v].append(u)
    depth = [0] * len(graph)
    for v in graph.topological_order.tolist():
        depth[v] = max((depth[u] + 1 for u in before[v]), default=0)
    columns: dict[int, list[int]] = defaultdict(list)
    for v in range(len(graph)):
        columns[depth[v]].append(v)
    place = np.zeros((len(graph), 2))
    for at in sorted(columns):

        def height(v: int) -> float:
            return float(np.mean([place[u, 1] for u in before[v]])) if before[v] else 0.0

        members = sorted(columns[at], key=lambda v: (-height(v), v))
        for i, v in enumerate(members):
            # Shift neighbouring columns against each other, so that edges miss vertices.
            place[v] = at, (len(members) - 1) / 2 - i + 0.13 * (at % 2)
    return place
