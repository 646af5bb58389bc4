"""Choices of devices: the search over them agrees with labels, and with enumeration."""

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.series.choosing import Pace, choose
from optpart.exact.series.dual import Pricing
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series
from optpart.exact.series.solve import solve_series
from optpart.solution.result import Budget
from optpart.solution.termination import Termination
from optpart.testing.modules import draw_modules, draw_wide

_BUDGET = Budget(seconds=60)
_ALL = 30_000


@pytest.mark.parametrize("seed", range(10))
def test_with_hardly_enough_memory_it_agrees_with_enumeration(seed):
    instance = draw_wide(seed)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    assert (result.status, result.makespan) == (expected.status, expected.makespan)
    assert result.termination is Termination.PROVEN


def _relaxed(series, price):
    pricing = Pricing(series, 400)
    return pricing.relax(price[series.kind], _ALL, perf_counter() + 60)


@pytest.mark.parametrize("seed", range(12))
def test_relaxations_are_the_same_as_by_labels(seed):
    series = Series(draw_wide(seed, vertices=13))
    rng = np.random.default_rng(seed)
    price = rng.uniform(0, 2, series.devices)
    found = _relaxed(series, price)
    # A choice that alone takes more memory than there is counts for labels only.
    series.capacity = np.where(series.capacity >= 0, series.charge.sum(), -1)
    free = _relaxed(series, price)
    series.stretches = [replace(stretch, chains=None) for stretch in series.stretches]
    expected = _relaxed(series, price)

    assert (free.after == expected.after).all()
    assert (found.after >= expected.after).all()


#: Seeds of modules with edges from shorter chains to longer ones.
_EDGES_BACK = (3, 16, 50, 82, 298, 398)


def _parts(seed):
    """Yield the parts that the search suits, with a device before each."""
    if seed in _EDGES_BACK:
        series = Series(draw_modules(seed, vertices=14))
    else:
        series = Series((draw_modules if seed % 2 else draw_wide)(seed, vertices=10))
    for i, stretch in enumerate(series.stretches):
        if stretch.chains is not None:
            for d in series.allowed_before(i):
                yield series, i, d


def _all(series, i, d, limit, *, room=None, price=None, **limits):
    k = series.devices
    price = np.zeros(k, dtype=np.int64) if price is None else price
    duals = series.charge[None, :, None] * price, np.zeros((1, k), dtype=np.int64)
    room = np.full(k, -1) if room is None else room
    arguments = {"best_only": False, "most": 10**6, "nodes": 10**9, "pace": Pace(), **limits}
    return choose(series, i, d, duals, np.array([limit]), room, **arguments)


@pytest.mark.parametrize("seed", range(12))
def test_sequences_take_the_time_that_they_claim(seed):
    for series, i, d in _parts(seed):
        found = _all(series, i, d, 10**6, orders=10**5)
        assert found.dropped == NEVER
        assert (found.low == found.time).all()
        for column in range(min(20, len(found.end))):
            sequence = found.sequence(column)
            assert _span(series, i, d, sequence) == found.time[column]
            for device in range(series.devices):
                mine = [v for v, e in sequence if e == device]
                assert found.taken[column, device] == series.charge[mine].sum()


def _span(series, i, d, sequence):
    """Return the ticks of a sequence of the vertices of a part after a cut vertex on ``d``."""
    ends, free = {}, dict.fromkeys(range(series.devices), 0)
    where = dict(sequence)
    for v, device in sequence:
        begin = max(free[device], int(series.arrivals(i, d, [v])[0, device]))
        for u in series.links.before[v]:
            if u in ends:
                row = dict(series.links.after[u])[v]
                begin = max(begin, ends[u] + int(series.links.delays[row, where[u], device]))
        ends[v] = free[device] = begin + int(series.duration[v, device])
    return max(ends.values())


@pytest.mark.parametrize("seed", range(8))
def test_what_is_given_up_is_not_below_its_bound(seed):
    for series, i, d in _parts(seed):
        everything = _all(series, i, d, 10**6)
        for limits in ({"most": 8}, {"nodes": 12}):
            found = _all(series, i, d, 10**6, **limits)
            known = {
                (int(e), *devices)
                for e, devices in zip(found.end, found.device.tolist(), strict=True)
            }
            for row, (e, devices) in enumerate(
                zip(everything.end, everything.device.tolist(), strict=True)
            ):
                if (int(e), *devices) not in known:
                    assert everything.value[row] >= found.dropped
            assert len(found.end) < limits.get("most", NEVER)
            assert len(found.end) <= len(everything.end)


@pytest.mark.parametrize("most", [10**6, 8])
@pytest.mark.parametrize("seed", range(8))
def test_merged_columns_take_no_more_than_any_that_they_stand_for(seed, most):
    for series, i, d in _parts(seed):
        room = np.full(series.devices, series.charge.sum())
        price = np.arange(series.devices)
        everything = _all(series, i, d, 10**6, room=room, price=price)
        merged = _all(series, i, d, 10**6, room=room, price=price, bits=2, most=most)
        assert len(merged.end) <= min(most, len(everything.end))
        for end, time, taken, value in zip(
            everything.end, everything.low, everything.taken, everything.value, strict=True
        ):
            stand = (merged.end == end) & (merged.low <= time) & (merged.value <= value)
            assert value >= merged.dropped or (stand & (merged.taken <= taken).all(axis=1)).any()


@pytest.mark.parametrize("seed", sorted({*range(8), *_EDGES_BACK}))
def test_below_a_limit_nothing_is_missing(seed):
    for series, i, d in _parts(seed):
        values = np.sort(_all(series, i, d, 10**6).value)
        for limit in np.unique(values)[:9].tolist():
            found = _all(series, i, d, limit)
            assert found.dropped == NEVER
            assert np.sort(found.value).tolist() == values[values < limit].tolist()


@pytest.mark.parametrize("seed", range(8))
def test_the_best_choice_misses_no_more_than_the_slack(seed):
    for series, i, d in _parts(seed):
        best = _all(series, i, d, 10**6).value.min(initial=NEVER)
        exact = _all(series, i, d, 10**6, best_only=True)
        loose = _all(series, i, d, 10**6, best_only=True, slack=3)

        assert exact.value.min(initial=NEVER) == best
        assert best - 3 <= min(loose.value.min(initial=NEVER), loose.dropped) <= best
