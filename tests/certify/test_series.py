"""Certificates in series: instances that no formula decides, and prices of memory."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.certify import check
from optpart.certify.certify import certify, grid_scales
from optpart.certify.check import Grid, Prices, Problem, Series, Windows, refute_in_series
from optpart.certify.series import NotInSeriesError, priced, proposed_prices, series_record
from optpart.formats import native
from optpart.study import library


def windows_of(instance: Instance, makespan: Fraction, finer: int = 1) -> Windows:
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    return Windows(Grid(problem, finer * grid_scales(problem, makespan)[-1], makespan))


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
    windows = windows_of(library.load(name), Fraction(makespan))
    refute_in_series(windows, json.loads(json.dumps(series_record(windows, 60))))


def test_an_optimum_is_certified_in_series(tmp_path: Path) -> None:
    instance = library.load("heft-10")
    schedule = library.best_schedule(instance)
    assert schedule is not None
    assert certify(instance, schedule, tmp_path / "out").tier == "series"
    assert "optimal makespan 73 (tier series;" in check.check(str(tmp_path / "out"))
    assert not (tmp_path / "out" / "proof.lrat.xz").exists()


def test_prices_prove_almost_all_of_what_fits_only_in_part() -> None:
    """Two of four vertices fit on the fast device: 2 + 2 + 6 + 6 units of time, and not 8."""
    windows = windows_of(chain(5), Fraction(16), finer=1000)
    series = Series(windows)
    values = proposed_prices(series)
    assert values[0] > 0
    assert values[1] == 0
    prices = Prices(series, priced(series, values))
    assert 7900 < prices.start - prices.room([0, 0]) <= 8000
    free = Prices(series, priced(series, [Fraction(0)] * 2))
    assert free.start == 4000


def test_memory_without_limits_has_no_price() -> None:
    assert proposed_prices(Series(windows_of(chain(None), Fraction(16)))) == [0, 0]
    assert proposed_prices(Series(windows_of(chain(1000), Fraction(16)))) == [0, 0]


def test_one_set_is_enough_if_it_refutes_alone() -> None:
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 2, outputs=[0])
    for source, target in ("ab", "ac", "bd", "cd"):
        builder.edge(source, target)
    instance = Instance(builder.build(), Cluster.uniform(1))
    record = series_record(windows_of(instance, Fraction(8)), 60)
    assert record == {"sets": [{"prices": ["0"], "start": 4, "potentials": [[3], [0]]}]}


def test_a_graph_without_cuts_is_left_to_formulas() -> None:
    builder = GraphBuilder()
    for name in "abc":
        builder.vertex(name, 2)
    instance = Instance(builder.build(), Cluster.uniform(2))
    with pytest.raises(NotInSeriesError, match="no vertex splits"):
        series_record(windows_of(instance, Fraction(4)), 60)


def test_what_is_not_optimal_has_no_record() -> None:
    with pytest.raises(NotInSeriesError, match="does not exclude a shorter"):
        series_record(windows_of(chain(5), Fraction(17)), 60)


def test_the_search_for_a_record_ends_in_time() -> None:
    with pytest.raises(NotInSeriesError, match="time limit"):
        series_record(windows_of(chain(5), Fraction(16)), 0)
