"""The placement for ``optpart solve --fix``: from a file, a strategy or the instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commandline import Outcome, Run

from optpart import Cluster, Device, GraphBuilder, Instance, Model, conclude, retime
from optpart.interop.formats import native
from optpart.interop.formats import result as result_format
from optpart.interop.generate.small import small
from optpart.methods.starts import only_placement, pair_of

Solve = Callable[..., Outcome]


@pytest.fixture
def solve(run: Run, tmp_path: Path) -> Solve:
    """Return a function that solves an instance, or a library instance by name."""

    def call(instance: Instance | str, *arguments: object) -> Outcome:
        file = instance
        if isinstance(instance, Instance):
            file = str(tmp_path / "instance.json")
            native.write(instance, file)
        return run("solve", file, *arguments)

    return call


def memory_bound() -> Instance:
    """One device can hold a and its output until c has run, but not b's output as well."""
    builder = GraphBuilder().vertex("a", 1, outputs=[5]).vertex("b", 1, outputs=[5])
    builder.vertex("c", 1).vertex("d", 1).edge("a", "c").edge("b", "d")
    cluster = Cluster.of([Device("x", memory=5)])
    return Instance(builder.build(), cluster, Model(memory="refcount"), name="tight")


class TestFromAStrategy:
    @pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
    @pytest.mark.parametrize("strategy", ["heft", "mite", "hash+fifo"])
    def test_the_best_order_is_the_one_that_enumeration_finds(
        self, solve: Solve, communication: Any, strategy: str
    ) -> None:
        model = Model(communication, send_ops=Fraction(20))
        instance = replace(
            small(7, 3, seed=5, ccr=1.0, types=False, groups=False, memory="none"), model=model
        )
        fixed = ("--fix", "placement", "--start", strategy)
        shown = solve(instance, *fixed, "--workers", 1)
        assert "OPTIMAL given the placement of 7 vertices, makespan" in shown.out
        other = solve(instance, *fixed, "-m", "enumerate")
        assert makespan(other) == makespan(shown)

    def test_its_order_can_be_kept_as_well(self, solve: Solve) -> None:
        shown = solve("heft-10", "--fix", "both", "--start", "heft")
        assert "makespan 80, lower bound 80" in shown.out

    def test_a_schedule_that_breaks_the_memory_model_still_has_a_placement(
        self, solve: Solve
    ) -> None:
        assert solve(memory_bound(), "-m", "fastest+fifo").code == 4
        shown = solve(memory_bound(), "--fix", "placement", "--start", "fastest+fifo")
        assert "OPTIMAL given the placement of 4 vertices, makespan 4" in shown.out

    def test_search_starts_from_it(self, solve: Solve) -> None:
        arguments = ("-m", "search", "--start", "heft", "--time-limit", 1, "--workers", 1)
        assert makespan(solve("heft-10", *arguments)) <= 80

    def test_without_a_placement_there_is_nothing_to_fix(self, solve: Solve) -> None:
        builder = GraphBuilder().vertex("a", 1, memory=3).vertex("b", 1, memory=3)
        cluster = Cluster.of([Device("x", memory=5)])
        instance = Instance(builder.build(), cluster, Model(memory="estimate"))
        shown = solve(instance, "--fix", "placement", "--start", "heft")
        assert (shown.code, shown.out) == (2, "")
        assert "heft: found no feasible placement" in shown.err

    def test_an_unknown_name_is_neither_a_file_nor_a_strategy(self, solve: Solve) -> None:
        shown = solve("heft-10", "--start", "hefty")
        assert (shown.code, shown.out) == (2, "")
        assert "hefty: neither a file nor a strategy; give a result" in shown.err

    @pytest.mark.parametrize(
        ("name", "pair"),
        [
            ("heft", "heft"),
            ("mite", "mite+pct"),
            ("mite+fifo", "mite+fifo"),
            ("cpsat", None),
            ("mite+nope", None),
        ],
    )
    def test_a_partitioning_strategy_alone_is_scheduled(self, name: str, pair: str | None) -> None:
        assert pair_of(name) == pair


class TestFromAFile:
    def test_a_file_named_like_a_strategy_is_a_file(
        self, solve: Solve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert solve("heft-10", "-m", "hash+pct", "-o", "heft").code == 0
        placed = solve("heft-10", "--fix", "placement", "--start", "heft")
        strategy = solve("heft-10", "--fix", "placement", "--start", "hash")
        assert makespan(placed) == makespan(strategy) != 80

    def test_only_its_placement_must_fit(self, solve: Solve, tmp_path: Path) -> None:
        """Its order was made without the memory limit, which it breaks."""
        tight = memory_bound()
        loose = replace(tight, model=Model())
        path = tmp_path / "loose.json"
        result_format.write(conclude(loose, "mine", retime(loose, [0] * 4, [0, 1, 2, 3])), path)
        placed = solve(tight, "--fix", "placement", "--start", path)
        assert "OPTIMAL given the placement of 4 vertices, makespan 4" in placed.out
        both = solve(tight, "--fix", "both", "--start", path)
        assert both.code == 2
        assert "schedule: not valid for this instance" in both.err

    def test_a_placement_that_is_not_allowed_is_proven_infeasible(
        self, solve: Solve, tmp_path: Path
    ) -> None:
        graph = GraphBuilder().vertex("a", 1).build()
        free = Instance(graph, Cluster.uniform(2))
        path = tmp_path / "free.json"
        result_format.write(conclude(free, "mine", retime(free, [1], [0])), path)
        bound = GraphBuilder().vertex("a", 1, devices=["d0"]).build()
        shown = solve(replace(free, graph=bound), "--fix", "placement", "--start", path)
        assert shown.code == 3
        assert "a is fixed to d1, where it may not run" in shown.out


class TestFromTheInstance:
    def shop(self) -> Instance:
        builder = GraphBuilder()
        for name, device in (("a", "x"), ("b", "y"), ("c", "y"), ("d", "x")):
            builder.vertex(name, 2, devices=[device])
        builder.edge("a", "b", None).edge("c", "d", None)
        return Instance(builder.build(), Cluster.of([Device("x"), Device("y")]), name="shop")

    def test_there_is_no_choice_of_placement(self, solve: Solve) -> None:
        shown = solve(self.shop(), "--fix", "placement")
        assert "shop: OPTIMAL given the placement of 4 vertices, makespan 4" in shown.out
        assert shown.err.startswith("shop: no vertex has a choice of device\n")

    def test_it_gives_no_order(self, solve: Solve) -> None:
        shown = solve(self.shop(), "--fix", "order")
        assert (shown.code, shown.out) == (2, "")
        assert "--fix: no schedule to take it from" in shown.err

    def test_colocated_vertices_have_the_device_of_the_group(self) -> None:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 1, devices=["d1"]).colocate("a", "b")
        graph = builder.build()
        assert only_placement(Instance(graph, Cluster.uniform(2))) == {0: 1, 1: 1}
        alone = GraphBuilder().vertex("a", 1).build()
        assert only_placement(Instance(alone, Cluster.uniform(2))) is None


def makespan(shown: Outcome) -> Fraction:
    assert shown.code == 0, shown.err
    return Fraction(shown.out.partition("makespan ")[2].partition(",")[0])
