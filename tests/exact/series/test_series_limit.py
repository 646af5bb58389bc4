"""The parts of a graph, their columns and their relaxation keep a time limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from optpart import Budget, Cluster, GraphBuilder, Instance, Status
from optpart.base import clock
from optpart.base.clock import OutOfTimeError
from optpart.certificates import series as certificates
from optpart.exact.series import bound, lattice, problem, solve
from optpart.exact.series.dual import Pricing
from optpart.exact.series.lattice import Links
from optpart.exact.series.problem import Series
from optpart.solution.termination import Termination


@pytest.fixture
def path() -> Instance:
    builder = GraphBuilder()
    for v in range(20):
        builder.vertex(f"v{v}", v + 1, outputs=[v + 2])
    for v in range(19):
        builder.edge(f"v{v}", f"v{v + 1}")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=3), name="path")


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every limit be over as soon as it begins."""
    monkeypatch.setattr(clock, "GRACE", -1e9)


def test_parts_are_not_built_beyond_the_limit(path: Instance, late: None) -> None:
    with clock.limited(1), pytest.raises(OutOfTimeError):
        Series(path)


@pytest.mark.parametrize("module", [lattice, problem])
def test_building_looks_at_the_clock_for_every_vertex(
    path: Instance, module: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    monkeypatch.setattr(module, "check_time", lambda: looks.append(None))
    Series(path)
    assert len(looks) >= path.vertices - 1


def test_a_part_with_too_many_entries_is_refused_before_it_is_enumerated(path: Instance) -> None:
    part = Series(path).parts[0]
    huge = replace(part, vertices=tuple(range(lattice._MOST_ENTRIES)))
    nothing = Links.__new__(Links)  # without any attribute
    assert lattice.build(huge, set(), set(), nothing, 2**60) is None


def test_neither_columns_nor_a_relaxation_are(path: Instance, late: None) -> None:
    series = Series(path)
    with clock.limited(1), pytest.raises(OutOfTimeError):
        Pricing(series, 1000)
    pricing = Pricing(series, 1000)
    with clock.limited(1), pytest.raises(OutOfTimeError):
        next(pricing.run(clock.now() + 1))


def test_the_method_says_so(path: Instance, late: None) -> None:
    result = solve.solve_series(path, budget=Budget(1))
    assert (result.status, result.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)


def test_the_bound_is_a_weaker_one(path: Instance, late: None) -> None:
    assert bound.series_bound(path, seconds=1, makespan=None) == 0


def test_a_relaxation_that_was_done_in_time_counts(
    path: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Pricing.relax

    def then_late(self: Pricing, *arguments: object) -> object:
        monkeypatch.setattr(Pricing, "relax", raising)
        return first(self, *arguments)  # type: ignore[arg-type]

    def raising(self: Pricing, *arguments: object) -> object:
        raise OutOfTimeError("time limit")

    monkeypatch.setattr(Pricing, "relax", then_late)
    monkeypatch.setattr(Series, "limited", True)
    assert bound.series_bound(path, seconds=60, makespan=None) == sum(map(Fraction, range(1, 21)))


def test_a_certificate_does_without_prices(path: Instance, late: None) -> None:
    class Given:
        k, need, capacity, horizon = 2, (1,), (Fraction(1), None), 300

    proposed = certificates.proposed_prices(path, Given(), Fraction(1), 1)  # type: ignore[arg-type]
    assert proposed == [[Fraction(0), Fraction(0)]]
