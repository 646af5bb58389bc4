"""Ordering efficiency and speed-up by hand ([H] §3.1), and against proven optima."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import (
    Budget,
    Cluster,
    Device,
    GraphBuilder,
    InputError,
    Instance,
    Model,
    retime,
)
from optpart.applications.ordering.compare import ORDERS, compare_orders, order
from optpart.applications.ordering.efficiency import (
    Attainable,
    MakespanBounds,
    assigned,
    attainable,
    makespan_bounds,
)
from optpart.applications.ordering.models import base_model
from optpart.applications.ordering.replica import platform, worker_partition
from optpart.base import clock
from optpart.methods.cpsat import cpsat
from optpart.problem.model import Communication
from optpart.testing.brute_force import optimum
from optpart.testing.strategies import solutions


def figure_2() -> Instance:
    """[H] figure 2: two transfers of 3, two ops of 4 and 2."""
    builder = GraphBuilder()
    for name, time, device in (
        ("r2", 3, "channel"), ("r1", 3, "channel"), ("o1", 4, "worker"), ("o2", 2, "worker"),
    ):  # fmt: skip
        builder.vertex(name, time, devices=[device])
    builder.edge("r1", "o1", None).edge("o1", "o2", None).edge("r2", "o2", None)
    return Instance(builder.build(), Cluster.of([Device("worker"), Device("channel")]))


class TestEquations:
    def test_figure_2(self) -> None:
        bounds = makespan_bounds(figure_2())
        assert bounds == MakespanBounds(Fraction(12), Fraction(6))
        assert bounds.speedup == 1
        # The good order takes 3 + 4 + 2, the bad one 3 + 3 + 4 + 2: one op at a time.
        assert bounds.efficiency(Fraction(9)) == 0.5
        assert bounds.efficiency(Fraction(12)) == 0
        assert bounds.efficiency(bounds.lower) == 1

    def test_where_nothing_can_overlap_every_order_is_the_best(self) -> None:
        graph = GraphBuilder().vertex("a", 3).build()
        bounds = makespan_bounds(Instance(graph, Cluster.uniform(1)))
        assert bounds.efficiency(Fraction(3)) == 1
        assert bounds.speedup == 0

    def test_an_empty_graph_has_no_makespan(self) -> None:
        bounds = makespan_bounds(Instance(GraphBuilder().build(), Cluster.uniform(1)))
        assert (bounds.upper, bounds.lower, bounds.speedup) == (0, 0, 0)

    @pytest.mark.parametrize(
        ("model", "upper", "lower"),
        [
            # a (2) → b (3) by a tensor of 5 and c (4) by another of 6, at 1 a time unit.
            (Model(), 20, 7),
            (Model(communication="link"), 20, 11),
            (Model(communication="port"), 20, 11),
            (Model(communication="port", channels=2), 20, 7),
            # Two sends of 10 on the first device.
            (Model(communication="sendrecv", send_ops=Fraction(10)), 40, 22),
        ],
    )
    def test_transfers_count_as_ops_of_the_resources_that_they_occupy(
        self, model: Model, upper: int, lower: int
    ) -> None:
        builder = GraphBuilder().vertex("a", 2, outputs=[5, 6]).vertex("b", 3).vertex("c", 4)
        graph = builder.edge("a", "b", 0).edge("a", "c", 1).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), model)
        assert makespan_bounds(instance, [0, 1, 1]) == MakespanBounds(
            Fraction(upper), Fraction(lower)
        )

    @pytest.mark.parametrize("communication", get_args(Communication))
    @given(data=st.data())
    def test_every_schedule_without_needless_waits_is_between_them(
        self, communication: Communication, data: st.DataObject
    ) -> None:
        instance, placement, steps = data.draw(solutions(communication=communication))
        makespan = retime(instance, placement, steps).makespan(instance)
        bounds = makespan_bounds(instance, placement)
        assert bounds.lower <= makespan <= bounds.upper


class TestAssigned:
    def test_a_choice_is_refused(self) -> None:
        graph = GraphBuilder().vertex("a", 3).build()
        with pytest.raises(InputError, match="'a' may run on 2 devices"):
            assigned(Instance(graph, Cluster.uniform(2)))

    def test_a_tensor_that_cannot_cross_is_refused(self) -> None:
        graph = GraphBuilder().vertex("a", 2, outputs=[5]).vertex("b", 3).edge("a", "b").build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=0))
        with pytest.raises(InputError, match="a:0 cannot cross"):
            makespan_bounds(instance, [0, 1])


class TestAttainable:
    def test_figure_2_has_an_optimal_efficiency_of_one_half(self) -> None:
        found = attainable(cpsat(figure_2(), budget=Budget(10, 1)))
        assert found.optimal
        assert found.efficiency == (0.5, 0.5)
        assert found.share(Fraction(9)) == (1, 1)
        assert found.share(Fraction(12)) == (0, 0)
        assert found.looseness == (0.5, 0.5)

    def test_without_a_proof_there_are_ranges(self) -> None:
        found = Attainable(makespan_bounds(figure_2()), Fraction(10), Fraction(8))
        assert not found.optimal
        assert found.efficiency == pytest.approx((1 / 3, 2 / 3))
        assert found.share(Fraction(11)) == pytest.approx((1 / 4, 1 / 2))
        assert found.looseness == pytest.approx((1 / 3, 2 / 3))

    @given(st.integers(0, 2**32))
    def test_it_is_the_optimum_of_brute_force(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        builder = GraphBuilder()
        for r in range(3):
            builder.vertex(f"r{r}", int(rng.integers(1, 6)), devices=["channel"])
        for o in range(3):
            builder.vertex(f"o{o}", int(rng.integers(1, 6)), devices=["worker"])
            builder.edge(f"r{rng.integers(3)}", f"o{o}", None)
        builder.vertex("end", 0, devices=["worker"])
        for o in range(3):
            builder.edge(f"o{o}", "end", None)
        cluster = Cluster.of([Device("worker"), Device("channel")])
        instance = Instance(builder.build(), cluster)
        best = optimum(instance)
        assert best is not None
        bounds = makespan_bounds(instance)
        found = order(instance, "tao").makespan
        assert found is not None
        exact = Attainable(bounds, best.makespan, best.makespan)
        assert bounds.efficiency(found) <= exact.efficiency[0]
        assert 0 <= exact.share(found)[0] <= 1


class TestComparison:
    def test_tao_is_optimal_for_the_forward_pass_of_alexnet(self) -> None:
        """With a balanced batch, E* is 0.995 and eq. 2 is 0.5% below the optimum, both proven."""
        instance = worker_partition(base_model("alexnet"), on=platform(546))
        found = compare_orders(instance, Budget(20, 1), names=["tao", "tio"])
        assert found.best.optimal
        assert [row["share_of_attainable"] for row in found.rows()] == [[1, 1]] * 3
        assert found.best.efficiency[0] == pytest.approx(0.9949, abs=1e-4)

    def test_without_time_there_is_one_order_and_the_others_are_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clock, "GRACE", 0.0)
        found = compare_orders(figure_2(), Budget(0, 1))
        assert [*found.results] == ["as-received", "cpsat"]
        assert found.omitted == ("tao", "tio", "random-order", "pct")
        assert found.best.makespan is not None

    def test_an_order_that_runs_out_of_time_is_left_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def late(*_: object) -> NoReturn:
            raise clock.OutOfTimeError("time limit")

        monkeypatch.setitem(ORDERS, "tao", late)
        found = compare_orders(figure_2(), Budget(10, 1))
        assert found.omitted == ("tao",)
        assert found.best.optimal

    def test_an_unknown_order_lists_all(self) -> None:
        with pytest.raises(InputError, match="no order 'x'; choose one of tao, tio"):
            order(figure_2(), "x")
