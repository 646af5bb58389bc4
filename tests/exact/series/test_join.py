"""Joining labels and columns: identical devices are renamed, so that names alone do not matter."""

import numpy as np
import pytest

from optpart.exact.series import join
from optpart.exact.series.join import Cut, Ends, Extensions, _rename, joined

_KIND = np.array([0, 0, 2, 3, 3, 3])


@pytest.mark.parametrize("seed", range(12))
def test_names_stay_in_their_class_and_follow_from_device_and_memory(seed):
    rng = np.random.default_rng(seed)
    memory = rng.integers(0, 3, len(_KIND))
    device = int(rng.integers(len(_KIND)))
    name = np.full(len(_KIND), -1)
    _rename(memory, device, _KIND, name)

    assert sorted(name) == list(range(len(_KIND)))
    assert (_KIND[name] == _KIND).all()
    assert name[device] == _KIND[device]
    renamed = np.empty_like(memory)
    renamed[name] = memory
    for d in range(1, len(_KIND)):
        if _KIND[d] == _KIND[d - 1] and d - 1 != name[device]:
            assert renamed[d - 1] >= renamed[d]


def _cut(kind, capacity=9, **values):
    k = len(kind)
    nothing = np.zeros((1, k), dtype=np.int64)
    given = {
        "after": nothing,
        "price": nothing,
        "shift": 0,
        "capacity": np.full(k, capacity),
        "rest_need": 9,
        "ahead": np.zeros((k, k), dtype=np.int64),
        "kind": np.array(kind),
        "upper": 100,
        "beam": 10,
        "merging": False,
    }
    return Cut(**given | values)


def _join(end, taken, kind):
    """Join one label on device 0 with columns."""
    k, count = len(kind), len(end)
    nothing = np.zeros(1, dtype=np.int64)
    return joined(
        Ends(nothing, nothing, np.zeros((1, k), dtype=np.int64), nothing),
        Extensions(
            first=np.array([0, count, *[count] * (k - 1)]),
            end=np.array(end),
            span=np.full(count, 5),
            taken=np.array(taken),
        ),
        _cut(kind),
    )


@pytest.mark.parametrize("seed", range(12))
def test_too_many_labels_are_merged_into_ones_that_are_at_least_as_good(seed, monkeypatch):
    monkeypatch.setattr(join, "_LEAST_MADE", 60)
    rng = np.random.default_rng(seed)
    k, count = 3, 20
    labels = Ends(
        device=rng.integers(k, size=count),
        time=rng.integers(20, size=count),
        memory=rng.integers(30, size=(count, k)),
        bound=rng.integers(60, size=count),
    )
    columns = Extensions(
        first=np.arange(k + 1) * 8,
        end=rng.integers(k, size=24),
        span=rng.integers(20, size=24),
        taken=rng.integers(30, size=(24, k)),
    )
    price = rng.integers(3, size=(1, k))
    apart = np.where(np.eye(k) > 0, 0, 1000)
    cut = _cut(range(k), 50, price=price, rest_need=50, ahead=apart, beam=4, merging=True)
    device, time, memory, bound, *_, given_up = joined(labels, columns, cut)

    assert len(device) <= 4 * k
    for i, d in enumerate(labels.device):
        for c in range(columns.first[d], columns.first[d + 1]):
            taken = labels.memory[i] + columns.taken[c]
            ends = labels.time[i] + columns.span[c]
            value = max(labels.bound[i], ends + ((taken - cut.capacity) @ cut.price[0]))
            fits = (taken <= cut.capacity).all() and taken.sum() <= 100
            if fits and value < min(cut.upper, given_up):
                as_good = (time <= ends) & (memory <= taken).all(axis=1) & (bound <= value)
                assert (as_good & (device == columns.end[c])).any()


def test_labels_that_differ_in_names_alone_become_one():
    device, _, memory, _, _, column, renamed, _ = _join([1, 2], [[0, 4, 3], [0, 3, 4]], [0, 1, 1])

    assert device.tolist() == [1]
    assert memory.tolist() == [[0, 4, 3]]
    assert renamed[0].tolist() == ([0, 1, 2] if column[0] == 0 else [0, 2, 1])


def test_labels_on_unlike_devices_stay_apart():
    device, *_ = _join([1, 2], [[0, 4, 3], [0, 3, 4]], [0, 1, 2])

    assert sorted(device.tolist()) == [1, 2]
