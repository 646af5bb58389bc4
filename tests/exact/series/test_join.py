"""Joining labels and columns: identical devices are renamed, so that names alone do not matter."""

import numpy as np
import pytest

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


def _join(end, taken, kind):
    """Join one label on device 0 with columns."""
    k, count = len(kind), len(end)
    nothing = np.zeros((1, k), dtype=np.int64)
    return joined(
        Ends(device=np.zeros(1, dtype=np.int64), time=np.zeros(1, dtype=np.int64), memory=nothing),
        Extensions(
            first=np.array([0, count, *[count] * (k - 1)]),
            end=np.array(end),
            span=np.full(count, 5),
            taken=np.array(taken),
        ),
        Cut(
            after=nothing,
            price=nothing,
            shift=0,
            capacity=np.full(k, 9),
            rest_need=9,
            ahead=np.zeros((k, k), dtype=np.int64),
            kind=np.array(kind),
            upper=100,
            beam=10,
        ),
    )


def test_labels_that_differ_in_names_alone_become_one():
    device, _, memory, _, column, renamed, _ = _join([1, 2], [[0, 4, 3], [0, 3, 4]], [0, 1, 1])

    assert device.tolist() == [1]
    assert memory.tolist() == [[0, 4, 3]]
    assert renamed[0].tolist() == ([0, 1, 2] if column[0] == 0 else [0, 2, 1])


def test_labels_on_unlike_devices_stay_apart():
    device, *_ = _join([1, 2], [[0, 4, 3], [0, 3, 4]], [0, 1, 2])

    assert sorted(device.tolist()) == [1, 2]
