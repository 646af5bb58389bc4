"""Pictures of the measurements, after the figures of the sources."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.reproduce.bahnmueller import RATIOS
from bench.reproduce.cases import BAHNMUELLER, LAICH, Case
from bench.reproduce.data import Data, MissingError, Pair
from bench.reproduce.measure import placed, weighed
from bench.reproduce.tables import gap_rows
from optpart.files import ANY, write_bytes
from optpart.kernels.compiled import arrays
from optpart.kernels.tasks import tasks
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.report import gantt
from optpart.strategies.base import Partition
from optpart.strategies.simulator import execute, simulate

#: Okabe and Ito's colours, which colour-blind readers can tell apart; markers tell apart, too.
COLOURS = {"fifo": "#e69f00", "pct": "#0072b2", "msr": "#009e73", "as-placed": "#cc79a7"}
MARKERS = {"fifo": "o", "pct": "s", "msr": "^", "as-placed": "x"}
_SERIES = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#cc79a7", "#999999")
_SHAPES = "osD^vPX*"
_LAICH_RULES = ("fifo", "pct", "msr")
_DPI = 110
_STYLE = Path(__file__).parents[1] / "charts.mplstyle"

_SHORT = {"critical-path": "CP", "iterated-critical-path": "ICP", "batch-split": "batch\nsplit"}
_UPPER = ("heft", "mite", "dfs")

_BINS = 700
#: Labels of logarithmic axes.
_TICKS = tuple(tick * 10**power for power in range(-2, 4) for tick in (1, 1.5, 2, 3, 4, 5, 7))


def short(name: str) -> str:
    """Return a name that fits below a bar."""
    return _SHORT.get(name, name.upper() if name in _UPPER else name)


def title(case: Case) -> str:
    """Name a graph as the sources do."""
    return f"{case.graph.replace('thesis-', 'graph ')}, {case.devices} devices"


def canvas(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of axes."""
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(rows, columns)).flat)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG without a date, whole or not at all."""
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
    write_bytes(path, target.getvalue(), ANY)


def draw_all(data: Data, folder: Path) -> list[Path]:
    """Draw all figures for which there are measurements."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with mpl.rc_context(fname=_STYLE):
        for name, draw in _figures().items():
            path = folder / f"{name}.png"
            try:
                draw(data, path)
            except MissingError as error:
                path.unlink(missing_ok=True)
                print(f"no {path.name}: not measured: {error}")
            else:
                drawn.append(path)
    return drawn


Draw = Callable[[Data, Path], None]


def _figures() -> dict[str, Draw]:
    laich, networks, seven = "laich100", "tensorflow50", "seven"
    return {
        "7.1_makespan_100_devices": lambda d, p: makespan_bars(d.of(laich), d, p),
        "7.2_traffic_100_devices": lambda d, p: traffic_bars(d.of(laich), d, p),
        "7.3_partitioning_time_100_devices": lambda d, p: time_bars(d.of(laich), d, p),
        "7.4_makespan_tensorflow_50_devices": lambda d, p: makespan_bars(d.of(networks), d, p),
        "7.5_traffic_tensorflow_50_devices": lambda d, p: traffic_bars(d.of(networks), d, p),
        "7.6_partitioning_time_tensorflow": lambda d, p: time_bars(d.of(networks), d, p),
        "7.7_makespan_7_devices": lambda d, p: makespan_bars(d.of(seven), d, p),
        "7.8_traffic_7_devices": lambda d, p: traffic_bars(d.of(seven), d, p),
        "7.9_utilisation_graph_2": lambda d, p: utilisation(d.case("thesis-2", 7), d, p),
        "7.9_utilisation_graph_3": lambda d, p: utilisation(d.case("thesis-3", 7), d, p),
        "7.9_gantt_graph_2_mite+pct": lambda d, p: chart(d.case("thesis-2", 7), "mite", d, p),
        "7.9_gantt_graph_3_mite+pct": lambda d, p: chart(d.case("thesis-3", 7), "mite", d, p),
        "7.10_executable_vertices": executable,
        "all_strategies_100_devices": lambda d, p: all_strategies(d.of(laich), d, p),
        "all_strategies_tensorflow": lambda d, p: all_strategies(
            [*d.of(networks), *(c for c in d.of(seven) if not c.graph.startswith("thesis-"))], d, p
        ),
        "bahnmueller_makespan": lambda d, p: over_devices(d, p, "makespan"),
        "bahnmueller_weights": weights,
        "bahnmueller_traffic": lambda d, p: over_devices(d, p, "traffic"),
        "gaps": gap_map,
    }


def some(cases: Sequence[Case], setting: str = "cases") -> Sequence[Case]:
    """Return the cases, or say that there are none."""
    if not cases:
        raise MissingError(setting)
    return cases


def names_of(data: Data, case: Case, wanted: Iterable[str]) -> list[str]:
    """Return those of the strategies that were measured."""
    measured = data.partitioners(case)
    return [name for name in wanted if name in measured]


# --- bars, as in [L] ------------------------------------------------------------------------------


def panels(
    cases: Sequence[Case], data: Data, path: Path, label: str, fill: Callable[[Axes, Case], None]
) -> None:
    """One panel a case."""
    cases = [case for case in cases if names_of(data, case, LAICH)]
    columns = min(3, len(some(cases)))
    rows = -(-len(cases) // columns)
    figure, axes = canvas(rows, columns, 4.6, 3.1)
    for ax in axes[len(cases) :]:
        ax.set_axis_off()
    for ax, case in zip(axes, cases, strict=False):
        fill(ax, case)
        ax.set_title(title(case))
        names = names_of(data, case, LAICH)
        ax.set_xticks(range(len(names)), [short(name) for name in names], fontsize=8)
        ax.grid(False, axis="x")
    for ax in axes[::columns]:
        ax.set_ylabel(label)
    save(figure, path)


def makespan_bars(cases: Sequence[Case], data: Data, path: Path) -> None:
    """Makespan by partitioning and scheduling strategy, with standard deviations."""

    def fill(ax: Axes, case: Case) -> None:
        names = names_of(data, case, LAICH)
        for i, rule in enumerate(_LAICH_RULES):
            values = [data.makespans(case, name, rule) for name in names]
            bars(ax, values, (i - 1) * 0.27, 0.25, COLOURS[rule], rule.upper())
        if case is cases[0]:
            ax.legend(ncols=3, fontsize=8, columnspacing=1, handlelength=1, loc="upper right")
            ax.set_ylim(top=ax.get_ylim()[1] * 1.12)

    panels(cases, data, path, "makespan (time units)", fill)


def traffic_bars(cases: Sequence[Case], data: Data, path: Path) -> None:
    """Traffic by partitioning strategy, with standard deviations."""

    def fill(ax: Axes, case: Case) -> None:
        values = [data.traffics(case, name) / 1e6 for name in names_of(data, case, LAICH)]
        bars(ax, values, 0.0, 0.6, COLOURS["pct"], "")

    panels(cases, data, path, "traffic (millions)", fill)


def time_bars(cases: Sequence[Case], data: Data, path: Path) -> None:
    """Median partitioning time, with the range over the runs."""

    def fill(ax: Axes, case: Case) -> None:
        for x, name in enumerate(names_of(data, case, LAICH)):
            times = 1000 * data.times(case, name)
            middle = float(np.median(times))
            ax.plot(x, middle, "o", color=COLOURS["pct"], markersize=6)
            ax.vlines(x, times.min(), times.max(), color="#444444", linewidth=1)
            text = f"{middle:.1f}" if middle < 10 else f"{middle:.0f}"
            ax.annotate(text, (x, middle), (6, 0), textcoords="offset points", fontsize=7)
        ax.set_yscale("log")
        ax.margins(x=0.12, y=0.1)
        low, high = ax.get_ylim()
        every = (1, 2, 5) if high / low > 30 else (1, 1.5, 2, 3, 5, 7)
        plain(ax.yaxis, (tick * 10**power for power in range(-2, 5) for tick in every), (low, high))

    panels(cases, data, path, "partitioning (ms, log)", fill)


def bars(
    ax: Axes, values: Sequence[np.ndarray], shift: float, width: float, colour: str, label: str
) -> None:
    """Means as bars, standard deviations as grey lines."""
    x = np.arange(len(values)) + shift
    means = [float(v.mean()) for v in values]
    deviations = [float(v.std(ddof=1)) if len(v) > 1 else 0.0 for v in values]
    ax.bar(x, means, width, color=colour, label=label or None)
    ax.errorbar(x, means, deviations, fmt="none", ecolor="#444444", elinewidth=1, capsize=1.5)


# --- seven devices --------------------------------------------------------------------------------


def utilisation(case: Case, data: Data, path: Path) -> None:
    """How busy each device is over time, a panel a strategy, under PCT ([L] fig. 7.9)."""
    names = names_of(data, case, LAICH)
    shares = {name: busy_shares(*placed(case, 1, name)) for name in some_names(names, case)}
    longest = max(span for _, span in shares.values())
    figure, axes = canvas(len(names), 1, 9.5, 1.05)
    colours = ListedColormap(mpl.colormaps["Blues"](np.linspace(0, 0.95, 64)))
    for ax, name in zip(axes, names, strict=True):
        share, span = shares[name]
        ax.imshow(
            share, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest",
            extent=(0, span, case.devices - 0.5, -0.5),
        )  # fmt: skip
        ax.set_xlim(0, longest)
        ax.set_yticks([0, case.devices - 1], ["d0", f"d{case.devices - 1}"], fontsize=7)
        ax.grid(False)
        ax.set_ylabel(short(name), rotation=0, ha="right", va="center")
        ax.annotate(
            f"{share.mean():.0%} busy", (1, 1.02), xycoords="axes fraction", ha="right", fontsize=8
        )
        if ax is not axes[-1]:
            ax.set_xticklabels([])
    axes[-1].set_xlabel("time; the darker, the busier; PCT, run 1")
    figure.suptitle(f"Device utilisation, {title(case)}", fontsize=11)
    save(figure, path)


def some_names(names: list[str], case: Case) -> list[str]:
    """Return the names, or say that there are none."""
    if not names:
        raise MissingError(case.key)
    return names


def busy_shares(instance: Instance, partition: Partition) -> tuple[np.ndarray, float]:
    """Return, per device and slice of time, the share that it is busy; and the makespan."""
    work = tasks(instance, partition.placement)
    pct = registry.scheduler("pct")
    start = execute(work, pct(work, partition, np.random.default_rng(1))).start
    end = start + work.duration
    span = float(end.max())
    edges = np.linspace(0, span, _BINS + 1)
    share = np.empty((instance.devices, _BINS))
    for d in range(instance.devices):
        mine = np.flatnonzero(partition.placement == d)
        done = [np.clip(edge - start[mine], 0, work.duration[mine]).sum() for edge in edges]
        share[d] = np.diff(done) / np.diff(edges)
    return share, span / arrays(instance).scale


def chart(case: Case, name: str, data: Data, path: Path) -> None:
    """Write the Gantt chart of a strategy under PCT, run 1."""
    some_names(names_of(data, case, [name]), case)
    instance, partition = placed(case, 1, name)
    schedule = simulate(instance, partition, registry.scheduler("pct"), 1)
    gantt.draw(instance, schedule, path, title=f"{title(case)}: {name}+pct")


def executable(data: Data, path: Path) -> None:
    """Executable vertices at a decision, under PCT ([L] fig. 7.10)."""
    figure, axes = canvas(1, 2, 5.2, 3.4)
    for ax, number in zip(axes, (2, 3), strict=True):
        case = data.case(f"thesis-{number}", 7)
        names = some_names(names_of(data, case, LAICH), case)
        boxes = []
        for name in names:
            mean, low, first, middle, third, high = data.choices(case, name, "pct").tolist()
            boxes.append(
                {
                    "whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high,
                    "mean": mean, "label": short(name),
                }
            )  # fmt: skip
        ax.bxp(
            boxes, showfliers=False, showmeans=True, patch_artist=True,
            boxprops={"facecolor": "#9ecae1"}, medianprops={"color": "#000000"},
            meanprops={"marker": "D", "markerfacecolor": "#d55e00", "markeredgecolor": "none"},
        )  # fmt: skip
        ax.set_yscale("log")
        ax.set_title(title(case))
        ax.tick_params(axis="x", labelsize=8)
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
    axes[0].set_ylabel("executable vertices at a decision (log)")
    figure.supxlabel("box: quartiles, whiskers: 5% and 95%, diamond: mean; PCT", fontsize=8)
    save(figure, path)


# --- all strategies -------------------------------------------------------------------------------


def all_strategies(cases: Sequence[Case], data: Data, path: Path) -> None:
    """Makespan over the best known one: a row a strategy, a panel a case."""
    rows = list(gap_rows(data))
    names = [n for n in registry.PARTITIONERS if any(pair.partitioner == n for _, pair, *_ in rows)]
    over = {(case.key, pair): 1 + best for case, pair, _, _, best in rows}

    def typical(name: str) -> float:
        values = [over[c.key, Pair(name, "pct")] for c in cases if (c.key, (name, "pct")) in over]
        return float(np.exp(np.mean(np.log(values)))) if values else np.inf

    names.sort(key=typical, reverse=True)
    columns = min(3, len(some(cases)))
    grid = -(-len(cases) // columns)
    figure, axes = canvas(grid, columns, 4.0, 1.0 + 0.2 * len(names))
    for ax in axes[len(cases) :]:
        ax.set_axis_off()
    for ax, case in zip(axes, cases, strict=False):
        for rule in registry.SCHEDULERS:
            points = [(over.get((case.key, Pair(n, rule))), y) for y, n in enumerate(names)]
            x, y = zip(*((x, y) for x, y in points if x is not None), strict=True)
            ax.plot(x, y, MARKERS[rule], color=COLOURS[rule], markersize=5, alpha=0.85)
        ax.set_xscale("log")
        ax.set_title(title(case))
        ax.set_ylim(-0.7, len(names) - 0.3)
        ax.set_yticks(range(len(names)), names if ax in axes[::columns] else [], fontsize=8)
        plain(ax.xaxis, (1, 1.5, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500), ax.get_xlim())
    for ax in axes[max(0, len(cases) - columns) : len(cases)]:
        ax.set_xlabel("makespan / best known (log)")
    handles = [
        Line2D([], [], marker=MARKERS[r], color=COLOURS[r], linestyle="none", label=r)
        for r in registry.SCHEDULERS
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    save(figure, path)


def plain(axis: Axis, ticks: Iterable[float], limits: tuple[float, float]) -> None:
    """Label a logarithmic axis with plain numbers."""
    shown = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
    axis.set_ticks(shown, [f"{tick:g}" for tick in shown], fontsize=8)
    axis.set_ticks([], minor=True)


def gap_map(data: Data, path: Path) -> None:
    """Gap of every strategy under its best scheduler to the best known schedule, in classes."""
    best: dict[str, dict[str, float]] = {}
    for case, pair, _, _, over in gap_rows(data):
        row = best.setdefault(pair.partitioner, {})
        row[case.key] = min(row.get(case.key, np.inf), over)
    cases = some([case for case in data.main if data.partitioners(case)])
    names = sorted(best, key=lambda n: np.mean(np.log1p([best[n].get(c.key, 10) for c in cases])))
    table = np.array([[best[name].get(case.key, np.nan) for case in cases] for name in names])
    limits = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 1000]
    colours = ListedColormap(mpl.colormaps["YlGnBu"](np.linspace(0.0, 1.0, len(limits) - 1)))
    width, height = 3 + 0.47 * len(cases), 1.6 + 0.25 * len(names)
    figure, (ax,) = canvas(1, 1, width, height)
    ax.imshow(table, cmap=colours, norm=BoundaryNorm(limits, colours.N), aspect="auto")
    for (y, x), value in np.ndenumerate(table):
        text = "–" if np.isnan(value) else f"{100 * value:.0f}" if value < 99.5 else "≫"
        ax.text(
            x, y, text, ha="center", va="center", fontsize=7,
            color="white" if value >= 1 else "black",
        )  # fmt: skip
    ax.set_xticks(range(len(cases)), [short_key(case) for case in cases], rotation=60, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(labelsize=8, length=0)
    ax.grid(False)
    ax.set_title(
        "Makespan over the best known, in percent: best scheduler of each strategy, mean of runs"
    )
    save(figure, path)


def short_key(case: Case) -> str:
    return case.key.replace("thesis-", "graph ").replace("_network", "").replace("@", " @ ")


# --- [B] ------------------------------------------------------------------------------------------


def over_devices(data: Data, path: Path, what: str) -> None:
    """Makespan under FIFO, or traffic, over the number of devices ([B] figs. 5.3 to 5.23)."""
    settings = ("link", "bahnmueller") if what == "makespan" else ("bahnmueller",)
    figure, axes = canvas(len(settings), 2, 5.4, 3.6)
    label = "makespan under FIFO (ms, log)" if what == "makespan" else "traffic (GB, symlog)"
    for ax, (setting, model) in zip(axes, product(settings, ("rnn", "nmt")), strict=True):
        cases = some([case for case in data.of(setting) if case.graph == model], model)
        for i, name in enumerate(BAHNMUELLER):
            mine = [case for case in cases if name in data.partitioners(case)]
            if not mine:
                continue
            values = [
                data.makespans(case, name, "fifo") / 1000
                if what == "makespan"
                else data.traffics(case, name) / 1e9
                for case in mine
            ]
            ax.errorbar(
                [case.devices for case in mine],
                [float(v.mean()) for v in values],
                [float(v.std()) for v in values],
                marker=_SHAPES[i], color=_SERIES[i], label=name, linewidth=1.3, markersize=5,
                elinewidth=0.8, linestyle="--" if name in ("single", "expert") else "-",
            )  # fmt: skip
        queues = "one transfer at a time on a link" if setting == "link" else "links never queue"
        ax.set_title(f"{model.upper()}, {queues}" if what == "makespan" else model.upper())
        ax.set_xlabel("devices")
        ax.set_xticks([case.devices for case in cases])
        if what == "makespan":
            ax.set_yscale("log")
            plain(ax.yaxis, _TICKS, ax.get_ylim())
        else:
            ax.set_yscale("symlog", linthresh=0.01)
            ax.set_ylim(bottom=0)
    for ax in axes[::2]:
        ax.set_ylabel(label)
    figure.legend(
        handles=axes[0].get_legend_handles_labels()[0], loc="outside right center", fontsize=8
    )
    save(figure, path)


def weights(data: Data, path: Path) -> None:
    """Makespan of scoring on 2 devices over the weight of load ([B] figs. 5.7, 5.10)."""
    figure, axes = canvas(1, 2, 5.0, 3.2)
    for ax, model in zip(axes, ("rnn", "nmt"), strict=True):
        for variant, shape, colour in (("link", "o-", "#d55e00"), ("", "s--", "#0072b2")):
            case = data.case(model, 2, variant)
            times = np.array(weighed(case, RATIOS)) / 1000
            label = "one transfer at a time on a link" if variant else "links never queue"
            ax.plot(RATIOS, times, shape, color=colour, label=label, markersize=4)
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        ax.set_title(f"{model.upper()}, scoring, 2 devices")
        ax.set_xlabel("weight of load; that of communication is 1")
    axes[0].set_ylabel("makespan under FIFO (ms)")
    axes[0].legend(fontsize=8)
    save(figure, path)
