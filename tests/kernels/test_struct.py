"""Compiled code sees the fields of a struct as Python does, and shares its arrays."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart.kernels.compiled import kernel
from optpart.kernels.struct import (
    Bools,
    Bytes,
    FloatCube,
    FloatMatrix,
    Ints,
    Longs,
    Struct,
    Words,
)


class Part(Struct):
    values: Longs
    factor: float


class Whole(Struct):
    flag: bool
    number: int
    share: float
    small: Ints
    part: Part
    matrix: FloatMatrix
    cube: FloatCube
    flags: Bools
    bytes: Bytes
    words: Words


@kernel
def told(w: Whole, row: int) -> Any:
    """Return every kind of field, and change entries of arrays."""
    w.part.values[0] += w.number
    w.matrix[row, 1] = w.share
    w.words[0] ^= np.uint64(1)
    total = 0.0
    for i in range(w.cube.shape[0]):
        for j in range(w.cube.shape[1]):
            for k in range(w.cube.shape[2]):
                total += (100 * i + 10 * j + k) * w.cube[i, j, k]
    return w.flag, w.number, w.share * w.part.factor, w.small[-1], total, w.flags[0], w.bytes[0]


def whole(**changes: Any) -> Whole:
    fields = {
        "flag": True,
        "number": -3,
        "share": 0.5,
        "small": np.array([1, 7], np.int32),
        "part": Part(np.array([10, 20]), 4.0),
        "matrix": np.zeros((2, 3)),
        "cube": np.arange(24.0).reshape(2, 3, 4),
        "flags": np.array([True]),
        "bytes": np.array([255], np.uint8),
        "words": np.array([2**63], np.uint64),
    }
    return Whole(**fields | changes)


@pytest.mark.parametrize("run", [told, told.py_func], ids=["compiled", "interpreted"])  # type: ignore[attr-defined]
def test_fields_are_read_and_entries_are_written(run: Any) -> None:
    w = whole()
    expected = sum(
        (100 * i + 10 * j + k) * w.cube[i, j, k]
        for i in range(2)
        for j in range(3)
        for k in range(4)
    )
    assert run(w, 1) == (True, -3, 2.0, 7, expected, True, 255)
    assert w.part.values.tolist() == [7, 20]
    assert w.matrix.tolist() == [[0, 0, 0], [0, 0.5, 0]]
    assert w.words.tolist() == [2**63 + 1]


@given(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
def test_every_number_arrives(flag: bool, number: int, share: float) -> None:
    w = whole(flag=flag, number=number, share=share, part=Part(np.array([0]), 1.0))
    assert told(w, 0)[:3] == (flag, number, share)


class TestStructs:
    def test_fields_cannot_change(self) -> None:
        with pytest.raises(AttributeError, match=r"Part\.factor cannot change"):
            Part(np.array([1]), 1.0).factor = 2.0  # type: ignore[misc]

    @pytest.mark.parametrize("given", [(), (1,), (1, 2, 3)])
    def test_all_fields_are_needed(self, given: tuple[Any, ...]) -> None:
        with pytest.raises(TypeError, match="Part takes values, factor"):
            Part(*given)

    def test_another_field_is_refused(self) -> None:
        with pytest.raises(TypeError, match="Part takes values, factor"):
            Part(np.array([1]), other=1.0)  # type: ignore[call-arg]

    def test_a_changed_copy_shares_the_other_fields(self) -> None:
        part = Part(np.array([1]), 1.0)
        other = part.replaced(factor=2.0)
        assert (other.factor, part.factor) == (2.0, 1.0)
        assert other.values is part.values

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_copies_have_arrays_of_their_own(self, copied: Any) -> None:
        w = whole()
        told(w, 0)
        other = copied(w)
        told(other, 0)
        assert other.part.values[0] == w.part.values[0] - 3

    @pytest.mark.parametrize(
        "wrong",
        {
            "entries of another type": np.array([1], np.int32),
            "more dimensions": np.array([[1]]),
            "with gaps": np.arange(4)[::2],
            "no array": [1],
        }.values(),
    )
    def test_compiled_code_gets_only_what_is_annotated(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"Part\.values is no"):
            told(whole(part=Part(wrong, 1.0)), 0)

    def test_compiled_code_gets_only_what_it_may_write(self) -> None:
        values = np.array([1])
        values.flags.writeable = False
        with pytest.raises(TypeError, match=r"Part\.values is no"):
            told(whole(part=Part(values, 1.0)), 0)
