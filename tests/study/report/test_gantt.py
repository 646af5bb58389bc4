"""The Gantt chart: its files, their content and their readability."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import native
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.schedule import Schedule, retime
from optpart.study.report.gantt import draw
from optpart.study.report.gantt.drawing import _mean_active

RNN = Path(__file__).parents[4] / "shared" / "instances" / "dynamic_rnn-50-1.json"
SVG = "{http://www.w3.org/2000/svg}"

Chart = tuple[Instance, Schedule]


def on(instance: Instance, placement: list[int]) -> Schedule:
    return retime(instance, placement, instance.graph.topological_order.tolist())


def small(model: Model | None = None) -> Chart:
    """Diamond a → (b, c) → d on two devices, then the end mark ``sync``; a third device idles."""
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 30, outputs=[20])
    builder.vertex("sync", 0)
    for source, target in ("ab", "ac", "bd", "cd"):
        builder.edge(source, target)
    builder.edge("d", "sync", None)
    devices = [Device("cpu", 10, "CPU"), Device("gpu", "45/2", "GPU"), Device("spare", 1)]
    cluster = Cluster.of(devices, 10)
    instance = Instance(builder.build(), cluster, model or Model(), name="diamond")
    return instance, on(instance, [0, 0, 1, 1, 1])


def crowd(vertices: int = 400, devices: int = 8) -> Chart:
    """Draw a random graph that puts hundreds of transfers between the devices."""
    rng = np.random.default_rng(7)
    builder = GraphBuilder()
    for v in range(vertices):
        builder.vertex(f"layer{v % 3}/op_{v}", int(rng.integers(1, 50)), outputs=[1])
    for v in range(1, vertices):
        builder.edge(f"layer{(v // 2) % 3}/op_{v // 2}", f"layer{v % 3}/op_{v}")
    instance = Instance(builder.build(), Cluster.uniform(devices, 3, 2), name="crowd")
    return instance, on(instance, rng.integers(0, devices - 2, vertices).tolist())


class Picture:
    """A parsed SVG."""

    def __init__(self, path: Path) -> None:
        self.root = ElementTree.parse(path).getroot()

    @property
    def texts(self) -> list[str]:
        return ["".join(text.itertext()) for text in self.root.iter(f"{SVG}text")]

    @property
    def ids(self) -> set[str]:
        return {element.get("id", "") for element in self.root.iter()}

    def shapes(self, name: str) -> int:
        """Count the shapes of a group."""
        groups = [g for g in self.root.iter(f"{SVG}g") if g.get("id") == name]
        drawn = [
            list(group.iter(f"{SVG}use")) or list(group.iter(f"{SVG}path")) for group in groups
        ]
        return sum(map(len, drawn))


@pytest.fixture
def svg(tmp_path: Path) -> Callable[..., Picture]:
    def made(chart: Chart, title: str = "", bound: Fraction | None = None) -> Picture:
        draw(*chart, tmp_path / "chart.svg", title=title, bound=bound)
        return Picture(tmp_path / "chart.svg")

    return made


class TestFile:
    @pytest.mark.parametrize("name", ["chart.png", "CHART.PNG"])
    def test_png(self, tmp_path: Path, name: str) -> None:
        draw(*small(), str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")

    def test_svg(self, svg: Callable[..., Picture]) -> None:
        assert svg(small()).root.tag == f"{SVG}svg"

    @pytest.mark.parametrize("name", ["chart.pdf", "chart", "chart.svg.txt"])
    def test_another_suffix_is_an_error_that_names_the_remedy(
        self, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(InputError, match=r"use \.png or \.svg") as error:
            draw(*small(), tmp_path / name)
        assert error.value.file == str(tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_a_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be written"):
            draw(*small(), tmp_path / "missing" / "chart.svg")

    @pytest.mark.parametrize("suffix", ["svg", "png"])
    @pytest.mark.parametrize("chart", [small, crowd])
    def test_the_same_schedule_gives_the_same_bytes(
        self, tmp_path: Path, suffix: str, chart: Callable[[], Chart]
    ) -> None:
        first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
        draw(*chart(), first, bound=Fraction(5))
        draw(*chart(), second, bound=Fraction(5))
        assert first.read_bytes() == second.read_bytes()

    def test_user_settings_are_neither_used_nor_changed(self, tmp_path: Path) -> None:
        draw(*small(), tmp_path / "plain.svg")
        with mpl.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
            draw(*small(), tmp_path / "styled.svg")
            assert mpl.rcParams["font.size"] == 30
        assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "styled.svg").read_bytes()

    def test_neither_pyplot_nor_an_early_import_of_matplotlib(self, tmp_path: Path) -> None:
        program = """
import sys
from optpart.study.report.gantt import draw
assert "matplotlib" not in sys.modules
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.schedule import retime
instance = Instance(GraphBuilder().vertex("a", 1).build(), Cluster.uniform(1))
draw(instance, retime(instance, [0], [0]), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""
        subprocess.run([sys.executable, "-P", "-c", program, tmp_path / "a.png"], check=True)


class TestSmall:
    def test_every_vertex_is_named(self, svg: Callable[..., Picture]) -> None:
        assert {"a", "b", "c", "d", "sync"} <= set(svg(small()).texts)

    def test_devices_have_name_type_speed_and_utilisation(
        self, svg: Callable[..., Picture]
    ) -> None:
        # a and b run on the CPU until 6; c comes at 5 and d at 8, 4/3 each, on the GPU.
        texts = svg(small()).texts
        assert {"cpu · CPU · speed 10", "gpu · GPU · speed 22.5"} <= set(texts)
        assert {"64%", "28%"} <= set(texts)  # 6 and 8/3 of 28/3

    def test_speeds_are_left_out_where_run_times_are_given(
        self, svg: Callable[..., Picture]
    ) -> None:
        graph = GraphBuilder().vertex("a", 7).build()
        instance = Instance(graph, Cluster.uniform(1), durations=[[3]])
        assert "d0" in svg((instance, on(instance, [0]))).texts

    def test_makespan_bound_and_gap_are_marked(self, svg: Callable[..., Picture]) -> None:
        picture = svg(small(), bound=Fraction(7))
        assert {"makespan", "bound"} <= picture.ids
        assert {"makespan 9.33334", "lower bound 7 (gap 25.00%)"} <= set(picture.texts)

    def test_a_reached_bound_leaves_no_gap(self, svg: Callable[..., Picture]) -> None:
        assert "lower bound 9.33334" in svg(small(), bound=Fraction(28, 3)).texts

    def test_without_a_bound_nothing_is_claimed(self, svg: Callable[..., Picture]) -> None:
        picture = svg(small())
        assert "bound" not in picture.ids
        assert not any("bound" in text for text in picture.texts)

    def test_every_transfer_is_an_arrow(self, svg: Callable[..., Picture]) -> None:
        instance, schedule = small()
        picture = svg((instance, schedule))
        arrows = {name for name in picture.ids if name.startswith("transfer-")}
        assert len(arrows) == len(schedule.transfers) == 2

    def test_vertices_without_duration_are_marked(self, svg: Callable[..., Picture]) -> None:
        picture = svg(small())
        assert picture.shapes("vertices") == 4
        assert picture.shapes("instants") == 1

    def test_sends_occupy_the_sender(self, svg: Callable[..., Picture]) -> None:
        picture = svg(small(Model("sendrecv", send_ops=Fraction(10))))
        assert picture.shapes("sends") == 2
        assert "send" in picture.texts

    def test_idle_devices_share_a_line(self, svg: Callable[..., Picture]) -> None:
        texts = svg(small()).texts
        assert "1 device idle" in texts
        assert "spare" in texts

    def test_the_title_is_the_name_of_the_instance_unless_given(
        self, svg: Callable[..., Picture]
    ) -> None:
        assert "diamond" in svg(small()).texts
        assert "mine" in svg(small(), title="mine").texts


class TestCrowded:
    def test_panels_replace_the_arrows(self, svg: Callable[..., Picture]) -> None:
        instance, schedule = crowd()
        assert len(schedule.transfers) > 100
        picture = svg((instance, schedule))
        assert not any(name.startswith("transfer-") for name in picture.ids)
        assert {"busy-devices", "transfers-in-flight"} <= picture.ids

    def test_every_vertex_is_a_bar_but_only_wide_bars_are_named(
        self, svg: Callable[..., Picture]
    ) -> None:
        picture = svg(crowd())
        assert picture.shapes("vertices") == 400
        assert len(picture.texts) < 150

    def test_colours_represent_scopes(self, svg: Callable[..., Picture]) -> None:
        assert {"layer0", "layer1", "layer2"} <= set(svg(crowd()).texts)

    def test_rare_scopes_are_other_and_numbered_twins_are_one(
        self, svg: Callable[..., Picture]
    ) -> None:
        builder = GraphBuilder()
        for i in range(20):
            builder.vertex(f"Variable_{i}/read", 1)
            builder.vertex(f"{'abcdefghij'[i % 10]}{i}/x", 1)
        instance = Instance(builder.build(), Cluster.uniform(1))
        texts = svg((instance, on(instance, [0] * 40))).texts
        assert {"Variable", "other"} <= set(texts)

    def test_the_height_is_capped(self, tmp_path: Path) -> None:
        draw(*crowd(400, 200), tmp_path / "chart.svg")
        root = ElementTree.parse(tmp_path / "chart.svg").getroot()
        assert float(root.get("height", "").removesuffix("pt")) <= 13 * 72

    def test_too_many_bars_for_a_vector_picture_become_an_image(
        self, svg: Callable[..., Picture], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("optpart.study.report.gantt.drawing._MOST_SHAPES", 100)
        assert list(svg(crowd()).root.iter(f"{SVG}image"))

    def test_counts_over_time_are_means_of_the_bins(self) -> None:
        start, end = np.array([0.0, 1.0, 3.0]), np.array([2.0, 2.0, 3.0])
        edges, mean = _mean_active(start, end, 4.0)
        at = dict(zip(edges.round(9).tolist(), mean.round(9).tolist(), strict=False))
        assert (at[0.0], at[1.0], at[2.0], at[3.0]) == (1, 2, 0, 0)
        assert mean.sum() * (edges[1] - edges[0]) == pytest.approx(3)


class TestEdges:
    def test_an_empty_schedule(self, svg: Callable[..., Picture]) -> None:
        instance = Instance(GraphBuilder().build(), Cluster.uniform(3))
        texts = svg((instance, retime(instance, [], []))).texts
        assert {"makespan 0", "3 devices idle"} <= set(texts)

    def test_only_vertices_without_duration(self, svg: Callable[..., Picture]) -> None:
        instance = Instance(GraphBuilder().vertex("a", 0).build(), Cluster.uniform(1))
        assert "makespan 0" in svg((instance, on(instance, [0])), bound=Fraction(0)).texts

    @pytest.mark.parametrize("suffix", ["png", "svg"])
    def test_names_of_any_characters(self, tmp_path: Path, suffix: str) -> None:
        names = ["$x_1$", "<&>", "\x1b[0m\n", "_private/x", "頂点/y", "z/" * 200]
        builder = GraphBuilder()
        for name in names:
            builder.vertex(name, 9)
        cluster = Cluster.of([Device(f"{name} device", 1, name) for name in names])
        instance = Instance(builder.build(), cluster, name="\x00 $")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draw(instance, on(instance, list(range(len(names)))), tmp_path / f"odd.{suffix}")
        if suffix == "svg":
            texts = Picture(tmp_path / "odd.svg").texts
            assert {"$x_1$", "<&>", "頂点/y", "\ufffd[0m\ufffd"} <= set(texts)

    def test_a_scope_that_starts_with_an_underscore_is_in_the_legend(
        self, svg: Callable[..., Picture]
    ) -> None:
        builder = GraphBuilder().vertex("_a/x", 9).vertex("b/x", 9)
        instance = Instance(builder.build(), Cluster.uniform(1))
        assert "_a" in svg((instance, on(instance, [0, 0]))).texts

    @pytest.mark.parametrize(
        ("ops", "unit"), [("1e300", "10³⁹⁹ units"), ("1e-200", "10⁻¹⁰² units"), ("9", "units")]
    )
    def test_times_beyond_doubles_get_a_unit(
        self, svg: Callable[..., Picture], ops: str, unit: str
    ) -> None:
        speed = {"1e300": "1e-100", "1e-200": "1e-100", "9": "1"}[ops]
        graph = GraphBuilder().vertex("a", ops).build()
        instance = Instance(graph, Cluster.of([Device("d", speed)]))
        assert f"time ({unit} of the instance)" in svg((instance, on(instance, [0]))).texts

    @pytest.mark.parametrize(
        ("ops", "stated", "label"),
        [
            ("45", "ns", "time (ns)"),
            ("45e6", "ns", "time (ms)"),
            ("45e6", "s", "time (10⁶ s)"),
            ("45e12", "us", "time (10⁶ s)"),
            ("45e-5", "ms", "time (ns)"),
            ("45e-5", "ns", "time (10⁻⁶ ns)"),
            ("45e-5", "s", "time (µs)"),
        ],
    )
    def test_the_axis_has_the_unit_that_the_instance_states(
        self, svg: Callable[..., Picture], ops: str, stated: str, label: str
    ) -> None:
        graph = GraphBuilder().vertex("a", ops).build()
        instance = Instance(graph, Cluster.uniform(1), time_unit=stated)
        assert label in svg((instance, on(instance, [0]))).texts

    def test_the_legend_has_the_unit_that_the_instance_states(
        self, svg: Callable[..., Picture]
    ) -> None:
        instance, schedule = small()
        stated = replace(instance, time_unit="ms")
        assert "makespan 9.33334 ms" in svg((stated, schedule)).texts
        assert "makespan 9.33334" in svg((instance, schedule)).texts


@pytest.mark.skipif(not RNN.exists(), reason="needs ../shared/instances/dynamic_rnn-50-1.json")
def test_five_thousand_vertices_on_fifty_devices_are_a_small_picture(tmp_path: Path) -> None:
    instance = native.read(RNN)
    placement = (instance.unit_of % instance.devices).tolist()
    schedule = on(instance, placement)
    draw(instance, schedule, tmp_path / "rnn.svg")
    assert (tmp_path / "rnn.svg").stat().st_size < 5_000_000
    assert Picture(tmp_path / "rnn.svg").shapes("vertices") == np.sum(
        instance.graph.ops.numerators > 0
    )
