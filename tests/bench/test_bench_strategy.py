"""Tables of strategies, on rows by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from bench.store import Row
from bench.strategy import cases, runs, tables
from bench.strategy.tables import speedups
from optpart.applications.training.strategy import Decision


def row(run: dict[str, Any], **result: Any) -> Row:
    return Row(run, {"reason": "", "moves": 1, "seconds": 0.0, **result}, {})


def case(name: str, milliseconds: float | None, seconds: float = 10.0) -> Row:
    time = None if milliseconds is None else str(Fraction(milliseconds) * 10**6)
    run = runs.case("vgg19", "heterog-4", name, seconds)
    return row(run, ns=time, decisions=[[[1, 1, 1, 1], "allreduce"]])


ROWS = [
    case("ev-ps", 420),
    case("ev-ar", 300),
    case("cp-ps", None),
    case("cp-ar", 250),
    case("alpa", 120),
    case("search", 125),
]


def bound(shares: int, actions: int) -> Row:
    run = runs.case("vgg19", "heterog-4", "", 10.0) | {"part": "bound", "seconds": 10.0}
    run["with"] = runs.digest([ROWS[-1].result["decisions"]])
    return row(run, shares=str(shares * 10**6), actions=str(actions * 10**6))


def test_only_what_is_feasible_has_a_time() -> None:
    assert "cp-ps" not in tables.times(ROWS, "vgg19", "heterog-4", 10.0)
    assert tables.times(ROWS, "vgg19", "heterog-4", 5.0).keys() == {"ev-ps", "ev-ar", "cp-ar"}


def test_the_gap_is_to_the_larger_bound_and_the_speed_up_over_the_best_baseline() -> None:
    found = tables.times(ROWS, "vgg19", "heterog-4", 10.0)
    known = tables.bounds([*ROWS, bound(100, 110)], "vgg19", "heterog-4", 10.0)
    assert tables.gap(found, *known) == pytest.approx(1 - 110 / 125)
    assert tables.gap(found, None) is None
    assert tables.speedup(found) == pytest.approx(2.0)
    assert tables.speedup(found, ("ev-ps",)) == pytest.approx(420 / 125)


def test_a_bound_for_other_strategies_does_not_count() -> None:
    other = bound(100, 110)
    other.run["with"] = "another"
    assert tables.bounds([*ROWS, other], "vgg19", "heterog-4", 10.0) == (None, None)


def test_the_report_says_where_search_is_slower() -> None:
    text = tables.report([*ROWS, bound(100, 110)], ["vgg19"], ["heterog-4"], (1,), 10.0)
    assert "search is slower than a baseline or peer: vgg19 on heterog-4 (alpa)" in text
    assert "12.0%" in text
    assert (
        "up to 222% speed-up over data parallelism: partly holds. Over the best of the four" in text
    )
    assert "parameter servers beat AllReduce with a straggler: not measured" in text


def test_what_order_servers_and_the_rest_lose_is_the_gap() -> None:
    def on_eight(name: str, part: str, **result: Any) -> Row:
        run = runs.case("vgg19", "heterog-8", name, 10.0) | {"part": part, "seconds": 10.0}
        return row(run, **result)

    decisions = [[[1] * 8, 0]]
    rows = [
        on_eight("search", "case", ns=str(200 * 10**6), decisions=decisions),
        on_eight("search", "loss", order=str(10 * 10**6), servers=str(20 * 10**6), by="hybrid"),
        on_eight("", "bound", shares="1", actions=str(100 * 10**6)),
    ]
    rows[-1].run["with"] = runs.digest([decisions])
    *_, line = tables.of_loss(rows, ["vgg19"], 10.0)
    assert line.split() == ["vgg19", "search", "200.00", "5.0%", "10.0%", "35.0%", "hybrid"]


def test_speed_ups_need_a_baseline_and_search() -> None:
    def at(gbit: float, name: str, time: str | None) -> Row:
        run = {"part": "bandwidth", "model": "vgg19", "gbit": gbit, "method": name}
        return row(run | {"seconds": 5.0 if name == "search" else 0.0}, ns=time)

    rows = [at(1, "ev-ar", "30"), at(1, "cp-ar", "20"), at(1, "search", "10")]
    rows += [at(10, "ev-ar", None), at(10, "search", "10")]
    assert speedups(rows, "vgg19", (1, 10), 5.0) == [(1, 2.0)]
    assert speedups(rows, "vgg19", (1, 10), 10.0) == []


def test_the_found_decisions_are_among_the_actions_of_a_bound() -> None:
    question = cases.problem("vgg19", "heterog-4", 2)
    found = runs.widened(question, [[[[3, 1, 1, 1], 0], [[1, 0, 0, 0], None]]])
    assert Decision((3, 1, 1, 1), 0) in found[0]
    assert all(len(set(each)) == len(each) for each in found)
    assert len(found[1]) == len(found[0]) - 1


def test_the_straggler_is_one_slow_device_of_four() -> None:
    slow, equal = (cases.straggling("vgg19", each) for each in (True, False))
    assert [slow.kind.count(kind) for kind in set(slow.kind)] in ([3, 1], [1, 3])
    assert len(set(equal.kind)) == 1


def test_free_links_take_no_time() -> None:
    cluster = cases.free("vgg19").cluster
    assert cluster.transfer(0, 3, Fraction(10**9)) == 0
    assert cluster.copying(0, Fraction(10**9)) == 0


def test_times_are_rounded_up_and_bounds_down() -> None:
    time = Fraction(1234567890, 7)
    assert (tables.milliseconds(time), tables.milliseconds(time, down=True)) == ("176.37", "176.36")
