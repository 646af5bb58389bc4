"""Tier ``series`` of the checker: it accepts what is true, and no forged table."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from series_draws import Record, accepted, blocks, drawn_prices, problem_of, record_of

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.certificates import check
from optpart.certificates.certify import grid_scales
from optpart.certificates.check import (
    Problem,
    RejectedError,
    Series,
    Windows,
    refute_in_series,
)
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance


def windows_of(problem: Problem, makespan: Fraction) -> Windows:
    """Return the windows on an exact grid."""
    return Windows(problem, grid_scales(problem, makespan)[-1], makespan)


def reason(windows: Windows, record: Record) -> str:
    with pytest.raises(RejectedError) as error:
        refute_in_series(windows, record)
    return str(error.value)


# --- random draws --------------------------------------------------------------------------------


def judge(rng: np.random.Generator, instance: Instance, seen: Counter[str]) -> None:
    """Check that the optimum is accepted, and one tick more is rejected, at any prices."""
    best = brute_force.optimum(instance)
    problem = problem_of(instance)
    if best is None:
        windows = windows_of(problem, Fraction(20))
        # That a group is separated from itself is no rule of time; the checker ignores it.
        apart = all(problem.unit[a] != problem.unit[b] for a, b in problem.separated)
        if windows.feasible and apart:
            assert accepted(windows, record_of(windows))
            seen["infeasible"] += 1
        return
    if best.makespan == 0:
        return
    scale = grid_scales(problem, best.makespan)[-1]
    for late in (0, 1):
        windows = Windows(problem, scale, best.makespan + late / scale)
        if not windows.feasible:
            assert not late
            continue
        series = Series(windows)
        free = [Fraction(0)] * series.k
        proposals = [[free], [drawn_prices(rng, windows)]]
        proposals.append([free, *(drawn_prices(rng, windows) for _ in range(2))])
        for prices in proposals:
            assert accepted(windows, record_of(windows, *prices)) == (not late)
        if len(series.parts) > 2:
            seen["parts"] += 1
            seen["memory"] += any(series.capacity) and any(series.need)
            seen["wide"] += any(len(part) > 2 for part in series.parts)
            far = [series.related(part) for part in series.parts]
            seen["jumps"] += any(
                series.part_of[w] > i + 1 for i, all_ in enumerate(far) for w in all_
            )
            seen["rules"] += any(series.rule)


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_blocks_in_a_row_are_judged_rightly(memory: str) -> None:
    rng = np.random.default_rng(51)
    seen: Counter[str] = Counter()
    for _ in range(12):
        judge(rng, blocks(rng, memory), seen)
    assert min(seen["parts"], seen["wide"], seen["jumps"], seen["rules"]) > 4
    assert memory == "none" or seen["memory"] > 4


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_instances_of_every_kind_are_judged_rightly(memory: str) -> None:
    rng = np.random.default_rng(52)
    seen: Counter[str] = Counter()
    for seed in range(12):
        judge(rng, draw_instance(seed, "delay", memory, vertices=(3, 5)), seen)  # type: ignore[arg-type]
    assert seen["parts"] > 2


# --- forged records ------------------------------------------------------------------------------


def tight() -> Instance:
    """Two parts of parallel vertices between cuts, too large for the fast device together."""
    builder = GraphBuilder()
    for name, ops in {"a": 3, "b": 6, "c": 5, "d": 4, "e": 7, "f": 5, "g": 2}.items():
        builder.vertex(name, ops, memory=ops, outputs=[1])
    for source, target in ("ab", "ac", "bd", "cd", "de", "df", "eg", "fg", "bg"):
        builder.edge(source, target)
    devices = [Device("x", 2, memory=Fraction(75, 2)), Device("y", 1, memory=30)]
    return Instance(builder.build(), Cluster.of(devices, 2), Model(memory="estimate"))


#: Prices of memory at which neither device can hold everything.
PRICES = [Fraction(1, 3), Fraction(1, 20)]


@pytest.fixture(scope="module")
def honest() -> tuple[Windows, Record]:
    """The windows of an instance, and a record with two sets that only together suffice."""
    best = brute_force.optimum(tight())
    assert best is not None
    windows = windows_of(problem_of(tight()), best.makespan)
    record = record_of(windows, PRICES, [Fraction(0)] * 2)
    refute_in_series(windows, record)
    return windows, record


def test_the_honest_record_needs_the_forward_pass(honest: tuple[Windows, Record]) -> None:
    windows, record = honest
    series = Series(windows)
    sets = [check.Prices(series, document) for document in record["sets"]]
    assert len(series.parts) == 4
    assert all(prices.start - prices.room([0, 0]) <= series.horizon for prices in sets)


def test_any_potential_raised_by_one_is_rejected(honest: tuple[Windows, Record]) -> None:
    windows, record = honest
    raised = 0
    for s, document in enumerate(record["sets"]):
        forged = copy.deepcopy(record)
        forged["sets"][s]["start"] += 1
        assert reason(windows, forged) == "record: the potential at the start is too large"
        for i, row in enumerate(document["potentials"]):
            for d in range(len(row)):
                forged = copy.deepcopy(record)
                forged["sets"][s]["potentials"][i][d] += 1
                where = f"after part {i + 1} on device {d}"
                # A potential that is also too large for what comes before it is found only after.
                assert reason(windows, forged) == f"record: the potential {where} is too large"
                raised += 1
    assert raised == 2 * 3 * 2


def test_smaller_potentials_are_true_as_well(honest: tuple[Windows, Record]) -> None:
    windows, record = honest
    for document in record["sets"]:
        document = copy.deepcopy(document)
        document["start"] = 0
        document["potentials"] = [[0] * len(row) for row in document["potentials"]]
        refute_in_series(windows, {"sets": [document]})


def test_a_horizon_that_some_schedule_keeps_is_not_refuted(honest: tuple[Windows, Record]) -> None:
    best = brute_force.optimum(tight())
    assert best is not None
    problem = problem_of(tight())
    scale = grid_scales(problem, best.makespan)[-1]
    windows = Windows(problem, scale, best.makespan + 1 / scale)
    assert "does not exclude" in reason(windows, record_of(windows, PRICES))
    assert "does not exclude" in reason(windows, honest[1])


def put(*path: Any) -> Callable[[Record], None]:
    """Return a change of a record: the last argument is put where the others lead."""

    def change(record: Record) -> None:
        *way, last, value = path
        place: Any = record
        for step in way:
            place = place[step]
        place[last] = value

    return change


FORGED: dict[str, tuple[Callable[[Record], None], str]] = {
    "no sets": (put("sets", []), "no sets"),
    "sets missing": (lambda record: record.pop("sets"), "sets is not a list"),
    "another key": (put("more", 1), "unknown key"),
    "another key in a set": (put("sets", 0, "more", 1), "unknown key"),
    "a set is a list": (put("sets", 0, []), "a set is not an object"),
    "no prices": (lambda record: record["sets"][0].pop("prices"), "prices is not a list"),
    "a price missing": (put("sets", 0, "prices", ["1/3"]), "1 entries and not 2"),
    "a price too many": (put("sets", 0, "prices", ["1/3"] * 3), "3 entries and not 2"),
    "a negative price": (put("sets", 0, "prices", 0, "-1/3"), "is negative"),
    "a price is not a number": (put("sets", 0, "prices", 0, "nan"), "is not a number"),
    "a price is null": (put("sets", 0, "prices", 0, None), "is not a number"),
    "a huge price": (put("sets", 0, "prices", 0, "1e30"), "ticks for a vertex"),
    "an endless price": (put("sets", 0, "prices", 0, "1e999"), "too large an exponent"),
    "no start": (lambda record: record["sets"][0].pop("start"), "not a whole number"),
    "a negative start": (put("sets", 0, "start", -1), "is not in 0"),
    "a huge start": (put("sets", 0, "start", 2**62 + 1), "is not in 0"),
    "the largest start": (put("sets", 0, "start", 2**62), "at the start is too large"),
    "a row missing": (lambda record: record["sets"][0]["potentials"].pop(), "entries and not 3"),
    "a row too many": (
        lambda record: record["sets"][0]["potentials"].append([0, 0]),
        "4 entries and not 3",
    ),
    "a potential missing": (put("sets", 0, "potentials", 1, [0]), "1 entries and not 2"),
    "a potential too many": (put("sets", 0, "potentials", 1, [0] * 3), "3 entries and not 2"),
    "a negative potential": (put("sets", 0, "potentials", 1, 0, -1), "is not in 0"),
    "half a potential": (put("sets", 0, "potentials", 1, 0, 0.5), "not a whole number"),
    "text for a potential": (put("sets", 0, "potentials", 1, 0, "1"), "not a whole number"),
    "true for a potential": (put("sets", 0, "potentials", 1, 0, True), "not a whole number"),
    "a potential is null": (put("sets", 0, "potentials", 1, 0, None), "each possible device"),
    "a huge potential": (put("sets", 1, "potentials", 1, 0, 2**400), "is not in 0"),
    "the largest potential": (put("sets", 1, "potentials", 1, 0, 2**62), "is too large"),
}


@pytest.mark.parametrize(("change", "why"), FORGED.values(), ids=list(FORGED))
def test_forged_records_are_rejected(
    change: Callable[[Record], None], why: str, honest: tuple[Windows, Record]
) -> None:
    windows, record = honest
    forged = copy.deepcopy(record)
    change(forged)
    assert why in reason(windows, forged)


def test_potentials_where_a_cut_cannot_be_are_rejected() -> None:
    builder = GraphBuilder().vertex("a", 2, outputs=[0], devices=["d0"])
    builder.vertex("b", 3).vertex("c", 3).edge("a", "b").edge("a", "c")
    instance = Instance(builder.build(), Cluster.uniform(2))
    windows = windows_of(problem_of(instance), Fraction(8))
    assert windows.possible[0] == [0]
    record = record_of(windows)
    assert record["sets"][0]["potentials"] == [[3, None]]
    record["sets"][0]["potentials"] = [[3, 3]]
    assert "each possible device" in reason(windows, record)


def test_prices_of_devices_without_a_limit_are_rejected() -> None:
    builder = GraphBuilder().vertex("a", 2, memory=1, outputs=[0]).vertex("b", 3).edge("a", "b")
    instance = Instance(builder.build(), Cluster.uniform(2), Model(memory="estimate"))
    windows = windows_of(problem_of(instance), Fraction(7))
    record = record_of(windows)
    record["sets"][0]["prices"] = ["0", "1"]
    assert "without a memory limit" in reason(windows, record)


def test_the_limit_of_ticks_is_named(
    honest: tuple[Windows, Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MAX_TICKS", 5)
    assert "more than 5 ticks" in reason(*honest)


@pytest.mark.parametrize("kind", ["steps", "bytes"])
def test_the_search_stops_when_its_allowance_is_used_up(
    kind: str, honest: tuple[Windows, Record]
) -> None:
    windows, record = honest
    windows = copy.copy(windows)
    windows.allowance = check.Allowance()
    setattr(windows.allowance, kind, 12_000)
    with pytest.raises(RejectedError, match="takes too"):
        refute_in_series(windows, record)


def test_labels_and_states_are_given_back(honest: tuple[Windows, Record]) -> None:
    windows, record = honest
    windows = copy.copy(windows)
    windows.allowance = check.Allowance()
    series = Series(windows)
    held = check.MAX_BYTES - windows.allowance.bytes
    refute_in_series(windows, record)
    tables = sum(len(series.need) * (series.k * 50 + 100) for _ in record["sets"])
    assert series.allowance.bytes == check.MAX_BYTES - 2 * held - tables


def test_a_group_that_would_relate_too_many_vertices_is_rejected() -> None:
    builder = GraphBuilder()
    for i in range(2000):
        builder.vertex(f"v{i}", 1)
    instance = Instance(
        builder.colocate(*(f"v{i}" for i in range(2000))).build(), Cluster.uniform(1)
    )
    windows = windows_of(problem_of(instance), Fraction(2100))
    assert "too much memory" in reason(windows, {"sets": []})
