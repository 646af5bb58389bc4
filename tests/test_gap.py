"""The comparison behind ``optpart gap``."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from optpart import (
    Budget,
    Cluster,
    GraphBuilder,
    InputError,
    Instance,
    Model,
    compare,
    conclude,
    library,
    methods,
    register,
    retime,
)
from optpart.bounds.best import LowerBound
from optpart.gap import Comparison, excess, summarise
from optpart.result import Result

BUDGET = Budget(seconds=10, workers=1)


def chain(**model: str) -> Instance:
    builder = GraphBuilder().vertex("a", 2, outputs=[4]).vertex("b", 2).vertex("c", 2)
    graph = builder.edge("a", "b").edge("a", "c").build()
    return Instance(graph, Cluster.uniform(2, bandwidth=1), Model(**model), name="chain")  # type: ignore[arg-type]


def test_the_reference_is_the_optimum_where_it_is_proven() -> None:
    comparison = compare(chain(), ["hash+pct", "fastest+pct"], budget=BUDGET)
    assert comparison.reference.kind == "optimum"
    assert comparison.reference.makespan == comparison.reference.bound == 6
    assert [result.method for result in comparison.results] == ["hash+pct", "fastest+pct"]
    by_name = {result.method: result for result in comparison.results}
    assert comparison.is_optimal(by_name["fastest+pct"])
    assert comparison.over_reference(by_name["hash+pct"]) == pytest.approx(8 / 6 - 1)


@pytest.fixture
def without_proof(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Comparison]:
    """Compare where nothing proves much: neither the method for the reference nor the bounds."""

    def compared() -> Comparison:
        with monkeypatch.context() as patch:
            bound = LowerBound("weak", Fraction(4), 0.0)
            patch.setattr("optpart.gap.best_bound", lambda *_, **__: bound)
            patch.setattr("optpart.gap.EXACT", "hash+fifo")
            return compare(chain(communication="link"), ["hash+pct", "heft"], budget=BUDGET)

    return compared


def test_without_a_proof_the_reference_is_the_best_known(
    without_proof: Callable[[], Comparison],
) -> None:
    reference = without_proof().reference
    assert reference.kind == "best known"
    assert (reference.makespan, reference.bound) == (6, 4)
    assert reference.bound_by == "weak"


def test_a_method_that_fails_costs_its_row_only() -> None:
    @register("fails")
    def fails(instance: Instance, **_: object) -> Result:
        raise ZeroDivisionError("as a user's own method may")

    comparison = compare(chain(), ["fails", "heft"], budget=BUDGET)
    assert comparison.results[0].makespan is None
    assert "ZeroDivisionError" in comparison.results[0].reason
    assert comparison.results[1].makespan == 6


def test_a_method_of_ones_own_stands_beside_the_others() -> None:
    @register("all-on-first")
    def all_on_first(instance: Instance, **_: object) -> Result:
        order = instance.graph.topological_order.tolist()
        schedule = retime(instance, [0] * instance.vertices, order)
        return conclude(instance, "all-on-first", schedule)

    assert methods.get("all-on-first") is all_on_first
    comparison = compare(chain(), ["all-on-first"], budget=BUDGET)
    assert comparison.is_optimal(comparison.results[0])


def test_an_invalid_schedule_of_a_method_is_dropped_with_the_violation() -> None:
    @register("wrong")
    def wrong(instance: Instance, **_: object) -> Result:
        valid = retime(instance, [0, 0, 0], [0, 1, 2])
        early = type(valid)(valid.placement, valid.start.take([0, 0, 0]), valid.transfers)  # type: ignore[arg-type]
        return conclude(instance, "wrong", early)

    result = compare(chain(), ["wrong"], budget=BUDGET).results[0]
    assert result.schedule is None
    assert "not valid: precedence" in result.reason


def test_a_bound_above_a_verified_schedule_stops_everything() -> None:
    instance = chain()
    schedule = retime(instance, [0, 0, 0], [0, 1, 2])
    with pytest.raises(AssertionError, match="above a verified schedule"):
        conclude(instance, "wrong", schedule, bound=Fraction(7))


def test_the_library_serves_as_reference_only_for_the_very_same_instance() -> None:
    tiny = Budget(seconds=0.0, workers=1)
    same = library.load("small-30-4-ccr10-s24")
    known = library.index()["small-30-4-ccr10-s24"]
    comparison = compare(same, ["hash+pct"], budget=tiny)
    assert comparison.reference.makespan == known.makespan
    assert comparison.reference.makespan_by == "library"
    changed = Instance(same.graph, Cluster.uniform(4), name=same.name)
    assert library.known(changed) is None
    assert compare(changed, ["hash+pct"], budget=tiny).reference.makespan_by != "library"


def test_summary_counts_solved_means_and_proven_optima(
    without_proof: Callable[[], Comparison],
) -> None:
    comparisons = [compare(chain(), ["hash+pct", "heft"], budget=BUDGET), without_proof()]
    rows = {row.method: row for row in summarise(comparisons)}
    assert (rows["heft"].solved, rows["heft"].instances) == (2, 2)
    assert (rows["heft"].optimal, rows["heft"].references) == (1, 1)
    assert rows["heft"].mean == 0.0
    assert rows["hash+pct"].worst == pytest.approx(8 / 6 - 1)


def test_unknown_methods_are_refused_with_the_list_of_all() -> None:
    with pytest.raises(InputError, match="choose of"):
        methods.get("magic")


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (Fraction(3), Fraction(2), 0.5),
        (Fraction(0), Fraction(0), 0.0),
        (Fraction(1), Fraction(0), None),
        (None, Fraction(1), None),
        (Fraction(1), None, None),
    ],
)
def test_excess(value: Fraction | None, base: Fraction | None, expected: float | None) -> None:
    assert excess(value, base) == expected
