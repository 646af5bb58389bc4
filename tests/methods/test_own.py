"""Strategies of a user's own: they join every pair, and nothing that they return is trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from commandline import Run

import optpart as op
from optpart.base import clock
from optpart.base.errors import PluginError
from optpart.methods import registry
from optpart.methods.parts import PARTITIONERS, SCHEDULERS
from optpart.study.gap import chosen_methods
from optpart.study.run import Run as StudyRun
from optpart.study.run import execute


def first(instance: op.Instance, rng: np.random.Generator) -> list[int]:
    """Everything on device 0."""
    return [0] * instance.vertices


def longest(work: Any, partition: Any, rng: np.random.Generator) -> Any:
    """Prefer the longest."""
    return work.duration


@pytest.fixture
def both() -> None:
    op.register("mine", kind="partitioner")(first)
    op.register("long", kind="scheduler")(longest)


@pytest.mark.usefixtures("both")
class TestPairs:
    @pytest.mark.parametrize("name", ["mine+pct", "hash+long", "mine+long", "mine+tao"])
    def test_every_pair_solves(self, name: str) -> None:
        result = op.solve("heft-10", name)
        assert result.makespan is not None
        assert result.lower_bound == 73
        if name.startswith("mine"):
            assert set(result.schedule.placement.tolist()) == {0}  # type: ignore[union-attr]

    def test_they_are_among_all_pairs(self) -> None:
        assert {"mine+pct", "hash+long", "mine+long"} <= set(registry.pairs())
        assert not any("mine" in name or "long" in name for name in registry.built_in_pairs())

    def test_they_stand_in_the_default_table(self) -> None:
        assert {"mine+pct", "mine+long", "heft+long"} <= set(chosen_methods([]))

    def test_they_are_listed(self) -> None:
        rows = {entry.name: entry for entry in registry.entries()}
        assert rows["mine+SCHEDULER"].summary == "Everything on device 0."
        assert rows["PARTITIONING+long"].kind == "own"

    def test_they_can_be_a_start(self) -> None:
        kept = op.solve("heft-10", "cpsat", start="mine", fix="placement", seconds=20)
        assert kept.makespan == 127

    def test_they_are_simulated(self) -> None:
        assert op.simulate("heft-10", "mine+long").result.makespan == 127

    def test_an_unknown_name_says_where_all_are_listed(self) -> None:
        with pytest.raises(op.InputError) as caught:
            op.solve("heft-10", "mine+short")
        assert "'optpart methods' lists all" in caught.value.remedy


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("method", "cpsat"), ("method", "heft"), ("method", "hash+fifo"),
        ("partitioner", "hash"), ("scheduler", "pct"), ("scheduler", "tao"),
        ("partitioner", "a+b"), ("scheduler", ""), ("partitioner", "a:b"),
    ],
)  # fmt: skip
def test_a_name_that_is_taken_or_none_is_refused(kind: Any, name: str) -> None:
    with pytest.raises(op.InputError):
        op.register(name, kind=kind)(first)
    assert registry.registered() == []


def test_two_functions_cannot_have_one_name_but_one_may_be_registered_again() -> None:
    op.register("mine", kind="partitioner")(first)
    op.register("mine", kind="partitioner")(first)
    with pytest.raises(op.InputError, match="already the name of a registered partitioner"):
        op.register("mine", kind="partitioner")(longest)


def test_a_strategy_that_would_make_one_name_two_methods_is_refused() -> None:
    op.register("mine+pct")(lambda instance, **_: op.solve(instance, "heft"))
    with pytest.raises(op.InputError, match=r"would make 'mine\+pct' ambiguous"):
        op.register("mine", kind="partitioner")(first)
    assert "mine" not in registry.pairs()


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(op.InputError, match="kind: no kind 'bound'"):
        op.register("mine", kind="bound")  # type: ignore[arg-type]


def test_a_partitioner_may_return_names() -> None:
    op.register("named", kind="partitioner")(
        lambda instance, rng: dict.fromkeys(instance.graph.names, instance.cluster.names[0])
    )
    assert op.solve("heft-10", "named+pct").makespan == 127


def raises(instance: op.Instance, rng: np.random.Generator) -> Any:
    raise ValueError("no idea")


class TestFaults:
    @pytest.mark.parametrize(
        ("function", "problem"),
        [
            (raises, r"failed \(ValueError: no idea\)"),
            (lambda instance, rng: None, "does not return device numbers"),
            (lambda instance, rng: [0], "does not return device numbers"),
            (lambda instance, rng: [0.5] * instance.vertices, "does not return device numbers"),
            (lambda instance, rng: [99] * instance.vertices, "a device that does not exist"),
            (lambda instance, rng: [-1] * instance.vertices, "a device that does not exist"),
        ],
    )
    def test_of_a_partitioner_are_one_line(
        self, function: Callable[..., Any], problem: str
    ) -> None:
        op.register("bad", kind="partitioner")(function)
        with pytest.raises(PluginError, match=problem):
            op.solve("heft-10", "bad+pct")
        result = execute(StudyRun(op.load("heft-10"), "bad+pct", 0, op.Budget(5)))
        assert result.refused
        assert result.schedule is None

    @pytest.mark.parametrize(
        ("returned", "problem"),
        [
            (lambda n: "soon", "does not return numbers"),
            (lambda n: [1.0], "does not return numbers"),
            (lambda n: [float("nan")] * n, "a value that is not a number"),
        ],
    )
    def test_of_a_scheduler_are_one_line(
        self, returned: Callable[[int], Any], problem: str
    ) -> None:
        op.register("bad", kind="scheduler")(lambda work, p, rng: returned(len(work.duration)))
        with pytest.raises(PluginError, match=problem):
            op.solve("heft-10", "hash+bad")

    def test_a_placement_that_cannot_be_run_has_no_schedule(self) -> None:
        graph = op.GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 1).edge("a", "b").build()
        instance = op.Instance(graph, op.Cluster.uniform(2, bandwidth=0))
        op.register("apart", kind="partitioner")(lambda instance, rng: [0, 1])
        result = op.solve(instance, "apart+pct")
        assert result.schedule is None
        assert "not linked" in result.reason


PLUGIN = """
from optpart import register

@register("mine", "everything on device 0", kind="partitioner")
def mine(instance, rng):
    return [0] * instance.vertices

@register("long", kind="scheduler")
def long(work, partition, rng):
    return work.duration
"""


def test_a_file_registers_strategies(run: Run, tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    plugin = ("--plugin", tmp_path / "mine.py")
    assert "mine+SCHEDULER" in run(*plugin, "methods").out
    shown = run(*plugin, "solve", "heft-10", "-m", "mine+long")
    assert (shown.code, "makespan 127" in shown.out) == (0, True)
    assert ",hash+long," in run(*plugin, "gap", "graham-1969-4", "-m", "hash+long", "--csv").out


def test_a_second_file_cannot_take_a_name_of_the_first(run: Run, tmp_path: Any) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(PLUGIN)
    files = [part for n in ("one", "two") for part in ("--plugin", tmp_path / n / "mine.py")]
    shown = run(*files, "methods")
    assert shown.code == 2
    assert "mine: already the name of a registered partitioner" in shown.err


def test_another_package_offers_strategies_by_entry_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from importlib.metadata import EntryPoint

    points = {
        PARTITIONERS.group: {"mine": EntryPoint("mine", f"{__name__}:first", "x")},
        SCHEDULERS.group: {"long": EntryPoint("long", f"{__name__}:longest", "x")},
    }
    monkeypatch.setattr("optpart.base.registry.points", lambda group: points.get(group, {}))
    assert {"mine+pct", "hash+long", "mine+long"} <= set(registry.pairs())
    assert op.solve("heft-10", "mine+long").makespan == 127
    assert "mine+SCHEDULER" in [entry.name for entry in registry.entries()]


class TestTimes:
    """What a method takes is measured around it, whatever it says itself."""

    @pytest.fixture(autouse=True)
    def sleeper(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Register a method and a partitioner that move the clock by a second."""
        passed = [1000.0]
        monkeypatch.setattr(clock, "now", lambda: passed[0])

        @op.register("sleeper")
        def sleeper(instance: op.Instance, **_: object) -> op.Result:
            passed[0] += 1
            order = instance.graph.topological_order.tolist()
            schedule = op.retime(instance, [0] * instance.vertices, order)
            return op.conclude(instance, "sleeper", schedule, seconds=0.5)

        @op.register("sleeping", kind="partitioner")
        def sleeping(instance: op.Instance, rng: np.random.Generator) -> list[int]:
            passed[0] += 1
            return first(instance, rng)

    @pytest.mark.parametrize("name", ["sleeper", "sleeping+pct"])
    def test_in_a_sweep(self, name: str) -> None:
        assert execute(StudyRun(op.load("heft-10"), name, 0, op.Budget(5))).seconds == 1

    @pytest.mark.parametrize("name", ["sleeper", "sleeping+pct"])
    def test_in_a_solve(self, name: str) -> None:
        assert op.solve("heft-10", name, seconds=5).seconds == 1
