"""Certificates in series: instances that no formula decides, and prices of memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.certificates import check
from optpart.certificates.certify import certify, grid_scales
from optpart.certificates.check import Prices, Problem, Series, Windows, refute_in_series
from optpart.certificates.series import NotInSeriesError, priced, proposed_prices, series_record
from optpart.interop.formats import native
from optpart.study import library


@dataclass
class Case:
    """An instance, its windows below a makespan, and the ticks of their grid."""

    instance: Instance
    windows: Windows
    ticks: Fraction

    @classmethod
    def of(cls, instance: Instance, makespan: int, finer: int = 1) -> Case:
        problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
        ticks = finer * grid_scales(problem, Fraction(makespan))[-1]
        return cls(instance, Windows(problem, ticks, Fraction(makespan)), ticks)

    def record(self, seconds: float = 60) -> dict[str, Any]:
        found = series_record(self.instance, self.windows, self.ticks, seconds)
        return dict(json.loads(json.dumps(found)))

    def prices(self) -> list[list[Fraction]]:
        return proposed_prices(self.instance, Series(self.windows), self.ticks, 10)


def chain(limit: Fraction | int | None) -> Instance:
    """Four vertices in a row, on a fast device with little memory and a slow one."""
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 6, memory=2, outputs=[0])
    for source, target in ("ab", "bc", "cd"):
        builder.edge(source, target)
    devices = [Device("fast", 3, memory=limit), Device("slow", 1)]
    return Instance(builder.build(), Cluster.of(devices, 1), Model(memory="estimate"))


@pytest.mark.parametrize(
    "name",
    [
        "squeezenet-workstation-free",
        "resnet-50-workstation-free",
        "alexnet-workstation-tight",
        "llama-3-8b-decode-edge-tight",
        "vgg-19-edge-tight",
    ],
)
def test_optima_of_the_library_are_refuted_below(name: str) -> None:
    makespan = library.index()[name].makespan
    assert makespan is not None
    case = Case.of(library.load(name), int(makespan))
    refute_in_series(case.windows, case.record())


def test_an_optimum_is_certified_in_series(tmp_path: Path) -> None:
    instance = library.load("heft-10")
    schedule = library.best_schedule(instance)
    assert schedule is not None
    assert certify(instance, schedule, tmp_path / "out").tier == "series"
    assert "optimal makespan 73 (tier series;" in check.check(str(tmp_path / "out"))
    assert not (tmp_path / "out" / "proof.lrat.xz").exists()


def test_prices_prove_almost_all_of_what_fits_only_in_part() -> None:
    """Two of four vertices fit on the fast device: 2 + 2 + 6 + 6 units of time, and not 8."""
    case = Case.of(chain(5), 16, finer=1000)
    first, best, *_ = case.prices()
    assert first == [0, 0]
    assert best[0] > 0
    assert best[1] == 0
    series = Series(case.windows)
    prices = Prices(series, priced(series, best))
    assert 7900 < prices.start - prices.room([0, 0]) <= 8000
    assert Prices(series, priced(series, first)).start == 4000


@pytest.mark.parametrize("limit", [None, 1000])
def test_memory_that_is_not_scarce_has_no_price(limit: int | None) -> None:
    assert not any(any(values) for values in Case.of(chain(limit), 9).prices())


def test_one_set_is_enough_if_it_refutes_alone() -> None:
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 2, outputs=[0])
    for source, target in ("ab", "ac", "bd", "cd"):
        builder.edge(source, target)
    instance = Instance(builder.build(), Cluster.uniform(1))
    record = Case.of(instance, 8).record()
    assert record == {"sets": [{"prices": ["0"], "start": 4, "potentials": [[3], [0]]}]}


def test_a_graph_without_cuts_is_left_to_formulas() -> None:
    builder = GraphBuilder()
    for name in "abc":
        builder.vertex(name, 2)
    instance = Instance(builder.build(), Cluster.uniform(2))
    with pytest.raises(NotInSeriesError, match="no vertex splits"):
        Case.of(instance, 4).record()


def test_what_is_not_optimal_has_no_record() -> None:
    with pytest.raises(NotInSeriesError, match="does not exclude a shorter"):
        Case.of(chain(5), 17).record()


def test_the_search_for_a_record_ends_in_time() -> None:
    with pytest.raises(NotInSeriesError, match="time limit"):
        Case.of(chain(5), 16).record(0)
