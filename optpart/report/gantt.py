"""The picture of a schedule: a Gantt chart by device.

A small schedule shows every vertex by name and every transfer as an arrow. A crowded one shows less
and so remains readable: narrow bars have no labels, and instead of thousands of arrows, two panels
show the numbers of busy devices and of transfers in flight over time.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optpart.errors import InputError
from optpart.files import write_bytes
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.metrics import utilisation
from optpart.solution.result import gap
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# Metadata without dates and versions, so that the same schedule gives the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "optpart"},
    "svg": {"Date": None, "Creator": "optpart"},
}
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",  # keep text as text: small, searchable, selectable
    "svg.hashsalt": "optpart",
    "text.parse_math": False,  # a "$" in a name is a dollar sign
}

_MOST_ARROWS = 100
_MOST_SHAPES = 20_000  # with more, an SVG embeds the bars as an image
_BINS = 600

_WIDTH, _MARGIN, _RIGHT, _HEADER, _PANEL = 12.0, 0.2, 0.75, 0.95, 0.75  # inches
_TALLEST_ROW, _TALLEST_CHART = 0.6, 9.0  # inches
_DPI = 150
_TITLE, _NORMAL, _SMALL, _SMALLEST = 12.0, 9.0, 8.0, 4.5  # font sizes in points

_INK, _FAINT, _TRACK, _SEND = "#222222", "#767676", "#f2f2f2", "#8c8c8c"
_BOUND, _ARROW = "#d55e00", "#3a3a3a"
# Okabe and Ito's colours, which colour-blind readers can tell apart, without black and the colour
# of the bound.
_QUALITATIVE = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#cc79a7")
_OTHER = "#bdbdbd"
# ColorBrewer's YlGnBu: ordered by lightness, so that depth is readable without the legend.
_SEQUENTIAL = ("#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")

_PLAIN: dict[str, Any] = {  # legends without a frame
    "borderaxespad": 0,
    "borderpad": 0,
    "frameon": False,
    "handlelength": 1.6,
    "labelcolor": _INK,
}


def draw(
    instance: Instance,
    schedule: Schedule,
    path: str | Path,
    *,
    title: str = "",
    bound: Fraction | None = None,
) -> None:
    """Write the Gantt chart of a schedule to ``path``, completely or not at all.

    Parameters
    ----------
    path : str or Path
        The suffix, ``.png`` or ``.svg``, gives the format.
    title : str
        By default, the name of the instance.
    bound : Fraction, optional
        A lower bound of the makespan, marked in the chart.

    Raises
    ------
    InputError
        If the suffix is another one, or the file cannot be written.

    Notes
    -----
    Up to 100 transfers are arrows, from the sender at the start of the transfer to the receiver at
    its end; larger numbers are plotted in a panel below the devices. Devices without vertices share
    one line. Bars are coloured by scope if names have scopes (``gradients/rnn/MatMul``), else by
    depth in the graph. The bytes depend only on the arguments and the version of matplotlib.
    """
    suffix = Path(path).suffix.lower()
    if suffix[1:] not in _METADATA:
        raise InputError("", f"no picture format {suffix!r}", "use .png or .svg", str(path))
    chart = _Chart(instance, schedule, title or instance.name, bound)
    write_bytes(path, _rendered(chart, suffix[1:]))


def _rendered(chart: _Chart, form: str) -> bytes:
    import matplotlib as mpl

    target = io.BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()  # the user's settings must not change the picture
        mpl.rcParams.update(_STYLE)
        _figure(chart).savefig(target, format=form, dpi=_DPI, metadata=_METADATA[form])
    return target.getvalue()


# --- what is drawn -------------------------------------------------------------------------------


class _Chart:
    """A schedule in the numbers of its chart: rows, and times as doubles in one unit."""

    def __init__(
        self, instance: Instance, schedule: Schedule, title: str, bound: Fraction | None
    ) -> None:
        self.instance = instance
        self.title = title
        self.bound = bound
        self.makespan = schedule.makespan(instance)
        self.exponent = _exponent(max(self.makespan, bound or self.makespan))
        self.device = schedule.placement
        self.used: list[int] = np.unique(schedule.placement).tolist()
        self.row = np.full(instance.devices, -1)
        self.row[self.used] = np.arange(len(self.used))
        self.busy = utilisation(instance, schedule)
        durations = [instance.duration(v, d) for v, d in enumerate(schedule.placement.tolist())]
        self.instant = np.array([duration == 0 for duration in durations], dtype=np.bool_)
        self.start = self._times(schedule.start)
        self.end = self.start + self._times(RationalArray.from_fractions(durations))
        moves = schedule.transfers
        self.sender = schedule.placement[instance.graph.tensor_vertex[moves.tensor]]
        self.receiver = moves.target
        self.departure, self.arrival = self._times(moves.start), self._times(moves.end)

    def _times(self, times: RationalArray) -> Floats:
        # Scaled exactly before rounding, since a time may exceed the largest double.
        factor = Fraction(10) ** -self.exponent
        numerators = times.numerators.astype(object) * factor.numerator
        return RationalArray(numerators, times.denominator * factor.denominator).floats

    def at(self, time: Fraction) -> float:
        """Return a time in the unit of the chart."""
        return float(time / Fraction(10) ** self.exponent)

    @cached_property
    def span(self) -> float:
        """The last moment to show."""
        return max(self.at(self.makespan), self.at(self.bound or Fraction(0))) or 1.0

    @property
    def limit(self) -> float:
        """The end of the time axis; a small chart has room there for the name of a last tick."""
        return self.span * (1.01 if self.crowded else 1.06)

    @property
    def idle(self) -> list[str]:
        """Names of the devices that run nothing."""
        return [name for d, name in enumerate(self.instance.cluster.names) if self.row[d] < 0]

    @property
    def crowded(self) -> bool:
        """Whether there are too many transfers to draw each of them."""
        return len(self.sender) > _MOST_ARROWS

    @cached_property
    def sends(self) -> Floats:
        """The time for which each transfer occupies its sender, under ``sendrecv``."""
        if self.instance.model.communication != "sendrecv":
            return np.zeros(len(self.sender))
        times = [self.instance.send_duration(d) for d in range(self.instance.devices)]
        return self._times(RationalArray.from_fractions(times))[self.sender]

    def device_label(self, device: int) -> str:
        """Return name, type and, if it matters, speed."""
        cluster = self.instance.cluster
        parts = [_short(cluster.names[device], 20)]
        kind = cluster.types[device]
        if kind is not None:
            parts.append(_short(kind, 12))
        if self.instance.given_durations is None:
            parts.append(f"speed {_number(cluster.speed[device])}")
        return " · ".join(parts)


def _exponent(longest: Fraction) -> int:
    """Return the power of ten for the time axis: 0 for handy numbers, else a multiple of three."""
    if longest <= 0:
        return 0
    magnitude = math.log10(longest.numerator) - math.log10(longest.denominator)
    return 0 if -2 <= magnitude < 5 else 3 * math.floor(magnitude / 3)


def _number(value: Fraction) -> str:
    """Return a number in few characters, exactly if possible."""
    if value.denominator == 1 and value < 10**9:
        return str(value)
    ratio = Decimal(value.numerator) / Decimal(value.denominator)
    rounded = f"{ratio.normalize():.5g}"
    if Fraction(rounded) == value:
        return rounded
    short = max(value.numerator, value.denominator) < 10**5
    return f"{value} ≈ {rounded}" if short else f"≈ {rounded}"


def _short(text: str, most: int) -> str:
    """Return text that is short enough, without characters that a format cannot hold."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _count(number: int, noun: str) -> str:
    plural = {"vertex": "vertices"}.get(noun, noun + "s")
    return f"{number:,} {noun if number == 1 else plural}"


@dataclass(frozen=True)
class _Colouring:
    """Colours with their meanings, and the colour of each vertex."""

    labels: Sequence[str]
    colours: Sequence[str]
    of: NDArray[np.int64]


def _colouring(instance: Instance) -> _Colouring:
    names = instance.graph.names
    scoped = sum("/" in name for name in names)
    return _by_scope(names) if 2 * scoped > len(names) else _by_depth(instance)


def _by_scope(names: Sequence[str]) -> _Colouring:
    """Colour by scope; a scope that holds most of the graph is split into its parts.

    If there are more scopes than colours, ``Variable_1`` and ``Variable_2`` count as one.
    """
    paths = [tuple(name.split("/")) for name in names]
    if len({path[0] for path in paths}) > len(_QUALITATIVE):
        paths = [tuple(re.sub(r"_\d+$", "", part) for part in path) for path in paths]
    scopes = [path[:1] for path in paths]
    for _ in range(6):
        largest, size = Counter(scopes).most_common(1)[0]
        finer = [
            path[: len(largest) + 1] if scope == largest else scope
            for path, scope in zip(paths, scopes, strict=True)
        ]
        coloured = sum(count for _, count in Counter(finer).most_common(len(_QUALITATIVE)))
        if 2 * size <= len(names) or 2 * coloured < len(names):
            break
        scopes = finer
    ranked = sorted(Counter(scopes).items(), key=lambda item: (-item[1], item[0]))
    shown = {scope: rank for rank, (scope, _) in enumerate(ranked[: len(_QUALITATIVE)])}
    labels = ["/".join(scope) or "/" for scope in shown]
    colours = list(_QUALITATIVE[: len(shown)])
    if len(ranked) > len(shown):
        labels.append("other")
        colours.append(_OTHER)
    return _Colouring(labels, colours, np.array([shown.get(s, len(shown)) for s in scopes]))


def _by_depth(instance: Instance) -> _Colouring:
    """Colour by the number of edges on the longest path from a source, in equal ranges."""
    graph = instance.graph
    start, edges = (array.tolist() for array in graph.out_edges)
    target = graph.edge_target.tolist()
    depth = [0] * len(graph)
    for v in graph.topological_order.tolist():
        for e in edges[start[v] : start[v + 1]]:
            depth[target[e]] = max(depth[target[e]], depth[v] + 1)
    levels = max(depth, default=-1) + 1
    width = max(1, math.ceil(levels / len(_SEQUENTIAL)))
    ranges = [(low, min(low + width, levels) - 1) for low in range(0, levels, width)]
    labels = [f"depth {low}" if low == high else f"depth {low}–{high}" for low, high in ranges]
    return _Colouring(labels, _SEQUENTIAL[: len(ranges)], np.array(depth, dtype=np.int64) // width)


# --- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Page:
    """The sizes of the parts of the picture, in inches, and of fonts and bars.

    Attributes
    ----------
    left, chart, below : float
        Width left of the time axis; heights of the rows and of everything below them.
    row : float
        Height of one row.
    step : int
        Number of rows per line of text: if rows are thinner, only every n-th one has its name.
    bar : float
        Height of a bar as a share of its row; arrows need room between rows.
    """

    left: float
    chart: float
    below: float
    row: float
    step: int
    bar: float

    @classmethod
    def of(cls, chart: _Chart, legend_lines: int) -> _Page:
        row = min(_TALLEST_ROW, _TALLEST_CHART / (len(chart.used) + 1))
        step = math.ceil(1.15 * _label_size(row) / (row * 72))
        rows = len(chart.used) + (step if chart.idle else 0)
        labels = [_idle_label(chart), *map(chart.device_label, chart.used)]
        left = _MARGIN + 0.14 + max(_text_width(label, _label_size(row)) for label in labels) / 72
        return cls(
            left=max(1.25, left),
            chart=max(0.8, row * rows),
            below=0.6 + 0.2 * legend_lines + (2 * _PANEL if chart.crowded else 0),
            row=row,
            step=step,
            bar=0.84 if chart.crowded else 0.58,
        )

    @property
    def height(self) -> float:
        return _HEADER + self.chart + self.below

    @property
    def plot(self) -> float:
        """Width of the time axis."""
        return _WIDTH - self.left - _RIGHT

    @property
    def bar_points(self) -> float:
        """Height of a bar in points."""
        return self.bar * self.row * 72

    def points(self, chart: _Chart) -> float:
        """Points per unit of time."""
        return self.plot * 72 / chart.limit

    def beyond(self, inches: float) -> float:
        """Return the position, as a share of the time axis, this far from its left end."""
        return inches / self.plot

    def box(self, bottom: float, height: float) -> tuple[float, float, float, float]:
        """Return the box of axes of full width with this bottom and height."""
        return (
            self.left / _WIDTH,
            bottom / self.height,
            self.plot / _WIDTH,
            height / self.height,
        )


def _label_size(row: float) -> float:
    """Return the font size of device names in rows of this height."""
    return min(_NORMAL, max(5.5, 0.52 * row * 72))


def _text_width(text: str, size: float) -> float:
    """Return the width of a text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    width: float = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return width


def _figure(chart: _Chart) -> Figure:
    from matplotlib.figure import Figure

    colouring = _colouring(chart.instance)
    columns, lines = _legend_shape(colouring)
    page = _Page.of(chart, lines)
    figure = Figure(figsize=(_WIDTH, page.height), facecolor="white")
    axes = figure.add_axes(page.box(page.below, page.chart))
    _draw_rows(axes, chart, page)
    keys = [
        *_draw_limits(axes, chart),
        *_draw_vertices(axes, chart, page, colouring),
        *_draw_sends(axes, chart, page),
    ]
    lowest = axes
    if chart.crowded:
        lowest = _draw_panels(figure, chart, page)
        axes.tick_params(axis="x", labelbottom=False)
    else:
        keys += _draw_arrows(axes, chart, page)
    unit = f" (×10{_superscript(chart.exponent)})" if chart.exponent else ""
    lowest.set_xlabel(f"time{unit}", fontsize=_NORMAL, color=_INK)
    _draw_header(figure, chart, page, keys)
    if colouring.labels:
        _draw_colours(figure, page, colouring, columns)
    return figure


def _superscript(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _set_time_axis(axes: Axes, chart: _Chart) -> None:
    axes.set_xlim(0, chart.limit)
    if not chart.makespan and not chart.bound:
        axes.set_xticks([0])
    axes.grid(axis="x", color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", labelsize=_SMALL, length=3, color="#b0b0b0", labelcolor=_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#b0b0b0")


def _draw_rows(axes: Axes, chart: _Chart, page: _Page) -> None:
    """Draw a track for every device in use, with its name and utilisation."""
    _set_time_axis(axes, chart)
    size, used, idle = _label_size(page.row), len(chart.used), page.step if chart.idle else 0
    axes.set_ylim(used + idle - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, pad=8)  # room for a diamond at time 0
    lengths = np.full(used, chart.span)
    _add_bars(axes, 0 * lengths, lengths, np.arange(used), page.bar, "devices", facecolors=_TRACK)
    rows = range(0, used - idle // 2, page.step)
    ticks: list[float] = list(rows)
    labels = [chart.device_label(chart.used[row]) for row in rows]
    aligned: dict[str, Any] = {
        "transform": axes.get_yaxis_transform(),
        "va": "center_baseline",
        "fontsize": size,
    }
    for row in rows:
        axes.text(
            page.beyond(page.plot + _RIGHT - _MARGIN),
            row,
            f"{chart.busy[chart.used[row]]:.0%}",
            ha="right",
            color=_INK,
            **aligned,
        )
    if idle:
        ticks.append(used + (idle - 1) / 2)
        labels.append(_idle_label(chart))
        backing = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        names = _listed(chart.idle, size, page.plot * 72 - 12)
        axes.text(
            page.beyond(0.05), ticks[-1], names, color=_FAINT, bbox=backing, zorder=6, **aligned
        )
    axes.set_yticks(ticks, labels, fontsize=size, color=_INK)


def _idle_label(chart: _Chart) -> str:
    return f"{_count(len(chart.idle), 'device')} idle" if chart.idle else ""


def _listed(names: Sequence[str], size: float, room: float) -> str:
    """Return as many names as there is room for."""
    text = ""
    for i, name in enumerate(names):
        longer = f"{text}, {_short(name, 20)}" if i else _short(name, 20)
        if _text_width(f"{longer}, …", size) > room:
            return f"{text}, …"
        text = longer
    return text


def _add_bars(
    axes: Axes,
    start: Floats,
    end: Floats,
    row: NDArray[Any],
    height: float,
    name: str,
    **look: Any,
) -> None:
    """Add rectangles as one collection; ``name`` is the id of its group in an SVG."""
    from matplotlib.collections import PolyCollection

    x = np.stack([start, end, end, start], axis=1)
    low, high = row - height / 2, row + height / 2
    corners = np.stack([x, np.stack([low, low, high, high], axis=1)], axis=2)
    bars = PolyCollection(
        list(corners),
        gid=name,
        rasterized=len(corners) > _MOST_SHAPES,
        **{"zorder": 0.4, "linewidths": 0, **look},
    )
    axes.add_collection(bars, autolim=False)


def _key(label: str, **look: Any) -> Artist:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"color": _INK, **look})


# --- vertices ------------------------------------------------------------------------------------


def _draw_vertices(axes: Axes, chart: _Chart, page: _Page, colouring: _Colouring) -> list[Artist]:
    """Draw bars, and ticks for vertices that take no time; return entries for the legend."""
    row = chart.row[chart.device]
    colour = np.array(colouring.colours)[colouring.of]
    bars = np.flatnonzero(~chart.instant)
    start, end = chart.start[bars], chart.end[bars]
    # A white rim separates neighbours, but would hide bars of a few pixels.
    wide = len(bars) > 0 and float(np.median(end - start)) * page.points(chart) > 6
    look = {"edgecolors": "white", "linewidths": 0.5} if wide else {"edgecolors": "face"}
    look = {"linewidths": 0.3, **look}
    faces = colour[bars].tolist()
    _add_bars(axes, start, end, row[bars], page.bar, "vertices", facecolors=faces, zorder=2, **look)
    _label_vertices(axes, chart, page, colouring)
    ticks = np.flatnonzero(chart.instant)
    if not len(ticks):
        return []
    # A diamond, the milestone of Gantt charts, takes too much room in a crowded chart.
    mark: dict[str, Any] = {"marker": "|", "color": _INK}
    if not chart.crowded:
        mark = {"marker": "d", "color": colour[ticks].tolist(), "edgecolors": _INK}
    axes.scatter(
        chart.start[ticks],
        row[ticks],
        s=min(14.0, page.bar_points + 2) ** 2,
        linewidths=0.8,
        zorder=5,
        clip_on=False,
        rasterized=len(ticks) > _MOST_SHAPES,
        gid="instants",
        **mark,
    )
    hollow = {"marker": mark["marker"], "linestyle": "", "markerfacecolor": "white"}
    return [_key("vertex without duration", **hollow)]


def _label_vertices(axes: Axes, chart: _Chart, page: _Page, colouring: _Colouring) -> None:
    """Write names into bars, or beside ticks, if there is room for them."""
    size = min(_SMALL, 0.8 * page.bar_points)
    if size < _SMALLEST:
        return
    points = page.points(chart)
    dark = [_is_dark(colour) for colour in colouring.colours]
    for v, low, high in _rooms(chart, points):
        name = _fitting(chart.instance.graph.names[v], (high - low) * points - 3, size)
        if not name:
            continue
        instant = bool(chart.instant[v])
        side = "center" if not instant else "left" if low >= chart.start[v] else "right"
        place = {"center": (low + high) / 2, "left": low, "right": high}[side]
        axes.text(
            place,
            int(chart.row[chart.device[v]]),
            name,
            ha=side,
            va="center_baseline",
            fontsize=size,
            color="white" if dark[colouring.of[v]] and not instant else _INK,
            zorder=4,
        )


def _rooms(chart: _Chart, points: float) -> Iterable[tuple[int, float, float]]:
    """Yield the vertices that have room for a name, and the interval of time for it.

    The name of a bar is inside it; that of a tick is in the wider gap beside it.
    """
    order = np.lexsort((chart.end, chart.start, chart.device))
    start, end, instant = chart.start[order], chart.end[order], chart.instant[order]
    same = np.diff(chart.device[order]) == 0
    before, after = np.zeros(len(order)), np.full(len(order), chart.limit)
    before[1:][same], after[:-1][same] = end[:-1][same], start[1:][same]
    beside, behind = 7 / points, after - start >= start - before
    low = np.where(instant, np.where(behind, start + beside, before), start)
    high = np.where(instant, np.where(behind, after, start - beside), end)
    for i in np.flatnonzero((high - low) * points > 8).tolist():
        yield int(order[i]), float(low[i]), float(high[i])


def _fitting(name: str, room: float, size: float) -> str:
    """Return the name if it fits, else its last part if that fits, else nothing."""
    for text in (name, name.rpartition("/")[2]):
        # Even the narrowest letters of the font take a quarter of its size.
        if len(text) * size / 4 < room:
            shown = _short(text, 80)
            if _text_width(shown, size) <= room:
                return shown
    return ""


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 128


# --- transfers -----------------------------------------------------------------------------------


def _draw_sends(axes: Axes, chart: _Chart, page: _Page) -> list[Artist]:
    """Draw the send vertices of ``sendrecv``, which occupy the sender."""
    from matplotlib.patches import Patch

    if not chart.sends.any():
        return []
    begin, row = chart.departure, chart.row[chart.sender]
    look = {"facecolors": _SEND, "edgecolors": "white", "zorder": 2}
    rim = 0.0 if chart.crowded else 0.5
    _add_bars(
        axes, begin, begin + chart.sends, row, 0.8 * page.bar, "sends", linewidths=rim, **look
    )
    return [Patch(facecolor=_SEND, label="send")]


def _draw_arrows(axes: Axes, chart: _Chart, page: _Page) -> list[Artist]:
    """Draw each transfer from the sender at its start to the receiver at its end."""
    from matplotlib.patches import FancyArrowPatch

    senders, receivers = chart.row[chart.sender], chart.row[chart.receiver]
    # From edge to edge of the bars, so that an arrow crosses no name in its own two rows.
    side = np.sign(receivers - senders) * page.bar / 2
    tails = zip(chart.departure, senders + side, strict=True)
    heads = zip(chart.arrival, receivers - side, strict=True)
    for i, (tail, head) in enumerate(zip(tails, heads, strict=True)):
        arrow = FancyArrowPatch(
            tail,
            head,
            arrowstyle="-|>,head_length=3.2,head_width=1.6",
            mutation_scale=1,
            shrinkA=0,
            shrinkB=0,
            linewidth=0.9,
            color=_ARROW,
            alpha=0.85,
            zorder=3,
            gid=f"transfer-{i}",
        )
        axes.add_patch(arrow)
    if not len(senders):
        return []
    return [_key("transfer", marker=">", markersize=5, linewidth=0.9, color=_ARROW)]


def _draw_panels(figure: Figure, chart: _Chart, page: _Page) -> Axes:
    """Draw the numbers of busy devices and transfers over time; return the lower panel."""
    upper = figure.add_axes(page.box(page.below - _PANEL, _PANEL - 0.16))
    _draw_count(upper, chart, page, "busy\ndevices", chart.start, chart.end, "#0072b2")
    upper.tick_params(axis="x", labelbottom=False)
    lower = figure.add_axes(page.box(page.below - 2 * _PANEL, _PANEL - 0.16))
    flights = chart.departure, chart.arrival
    _draw_count(lower, chart, page, "transfers\nin flight", *flights, "#e69f00")
    return lower


def _draw_count(
    axes: Axes, chart: _Chart, page: _Page, label: str, start: Floats, end: Floats, colour: str
) -> None:
    """Draw the number of active intervals over time."""
    _set_time_axis(axes, chart)
    edges, mean = _mean_active(start, end, chart.span)
    axes.stairs(mean, edges, fill=True, color=colour, gid="-".join(label.split()))
    top = max(1, math.ceil(round(float(mean.max()), 6)))
    axes.set_ylim(0, 1.08 * top)
    axes.set_yticks([0, top], ["0", f"{top:,}"])
    axes.text(
        page.beyond(-0.45),
        0.5,
        label,
        transform=axes.transAxes,
        ha="right",
        va="center",
        fontsize=_SMALL,
        color=_INK,
    )


def _mean_active(start: Floats, end: Floats, span: float) -> tuple[Floats, Floats]:
    """Return the edges of equal time bins, and the mean number of active intervals in each."""
    edges = np.linspace(0, span, _BINS + 1)
    elapsed = _time_since(start, edges) - _time_since(end, edges)
    return edges, np.maximum(np.diff(elapsed) * _BINS / span, 0)


def _time_since(moments: Floats, at: Floats) -> Floats:
    """Return, for each time, the sum of the times since all earlier moments."""
    moments = np.sort(moments)
    before = np.searchsorted(moments, at)
    total = np.concatenate(([0.0], np.cumsum(moments)))
    return np.asarray(before * at - total[before], dtype=np.float64)


# --- words ---------------------------------------------------------------------------------------


def _draw_limits(axes: Axes, chart: _Chart) -> list[Artist]:
    """Mark makespan and lower bound."""
    solid: dict[str, Any] = {"color": _INK, "linewidth": 1.4}
    axes.axvline(chart.at(chart.makespan), zorder=2.5, gid="makespan", **solid)
    keys = [_key(f"makespan {_number(chart.makespan)}", **solid)]
    if chart.bound is not None:
        dashed: dict[str, Any] = {"color": _BOUND, "linewidth": 1.6, "linestyle": (0, (4, 2))}
        axes.axvline(chart.at(chart.bound), zorder=2.6, gid="bound", **dashed)
        distance = gap(chart.makespan, chart.bound)
        note = f" (gap {distance:.1%})" if distance else ""
        keys.append(_key(f"lower bound {_number(chart.bound)}{note}", **dashed))
    return keys


def _draw_header(figure: Figure, chart: _Chart, page: _Page, keys: list[Artist]) -> None:
    instance = chart.instance
    counts = (
        (instance.vertices, "vertex"),
        (instance.devices, "device"),
        (len(chart.sender), "transfer"),
    )
    facts = " · ".join(_count(number, noun) for number, noun in counts)
    room = (_WIDTH - 3 * _MARGIN) * 72 - _text_width(facts, _NORMAL)
    title = _short(chart.title, 100)
    while 1.15 * _text_width(title, _TITLE) > room:  # bold letters are wider
        title = _short(title, len(title) - 1)

    def write(x: float, inches: float, text: str, **look: Any) -> None:
        figure.text(x, 1 - inches / page.height, text, va="center", **look)

    left, right = _MARGIN / _WIDTH, 1 - _MARGIN / _WIDTH
    write(left, 0.28, title, fontsize=_TITLE, fontweight="bold", color=_INK)
    write(right, 0.28, facts, fontsize=_NORMAL, ha="right", color=_FAINT)
    if chart.used:
        write(right, _HEADER - 0.1, "busy", fontsize=_SMALL, ha="right", color=_FAINT)
    figure.legend(
        handles=keys,
        loc="center left",
        bbox_to_anchor=(left, 1 - 0.58 / page.height),
        ncols=len(keys),
        fontsize=_NORMAL,
        columnspacing=2.4,
        **_PLAIN,
    )


def _legend_shape(colouring: _Colouring) -> tuple[int, int]:
    """Return the numbers of columns and lines of the colour legend."""
    labels = [_short(label, 40) for label in colouring.labels]
    widest = max((_text_width(label, _SMALL) for label in labels), default=0.0) + 40
    columns = max(1, min(len(labels), int((_WIDTH - 2 * _MARGIN) * 72 / widest)))
    return columns, math.ceil(len(labels) / columns)


def _draw_colours(figure: Figure, page: _Page, colouring: _Colouring, columns: int) -> None:
    from matplotlib.patches import Patch

    legend = figure.legend(
        [Patch(facecolor=colour) for colour in colouring.colours],
        colouring.colours,
        loc="lower left",
        bbox_to_anchor=(_MARGIN / _WIDTH, 0.12 / page.height),
        ncols=columns,
        fontsize=_SMALL,
        columnspacing=1.8,
        labelspacing=0.35,
        **_PLAIN,
    )
    # Set afterwards, since a legend leaves out labels that begin with "_".
    for text, label in zip(legend.get_texts(), colouring.labels, strict=True):
        text.set_text(_short(label, 40))
