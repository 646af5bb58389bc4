"""Structs: the state of compiled code, passed by one pointer.

A struct is a class with annotated fields, as a ``NamedTuple`` has them: arrays, numbers, and other
structs. Python sees an object with these attributes; compiled code sees a pointer to the addresses
and shapes of its arrays. A ``NamedTuple`` reaches compiled code as hundreds of scalars, in every
call of every function, which takes several times as long to compile and to run.

The fields of a struct never change, only the entries of its arrays. Compiled code borrows them: a
struct is made by Python, and lives for as long as Python refers to it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from ctypes import addressof, c_char
from functools import cache, cached_property
from typing import Annotated, Any, Self, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Arrays of two and three dimensions, which only :func:`array_of` tells apart from the others.
BoolMatrix = Annotated[NDArray[np.bool_], 2]
WordMatrix = Annotated[NDArray[np.uint64], 2]
IntMatrix = Annotated[NDArray[np.int32], 2]
LongMatrix = Annotated[NDArray[np.int64], 2]
FloatMatrix = Annotated[NDArray[np.float64], 2]
IntCube = Annotated[NDArray[np.int32], 3]
BoolCube = Annotated[NDArray[np.bool_], 3]
LongCube = Annotated[NDArray[np.int64], 3]
FloatCube = Annotated[NDArray[np.float64], 3]


@cache
def array_of(hint: Any) -> tuple[np.dtype[Any], int] | None:
    """Return the type of entries and the dimensions of an annotated array; ``None`` if it is none.

    Parameters
    ----------
    hint : type
        As :func:`typing.get_type_hints` returns it, with ``Annotated``.
    """
    dimensions = 1
    if get_origin(hint) is Annotated:
        hint, dimensions = get_args(hint)
    alias = getattr(get_origin(hint), "__value__", None)  # NDArray, from NumPy 2.5 on
    if alias is not None:
        hint = alias[get_args(hint)]
    if get_origin(hint) is not np.ndarray:
        return None
    return np.dtype(get_args(get_args(hint)[1])[0]), dimensions


def hints(what: Any) -> dict[str, Any]:
    """Return the annotations of a class, or of the arguments of a function, in their order."""
    return _hints(what)


@cache
def _hints(what: Any) -> dict[str, Any]:
    found = get_type_hints(what, include_extras=True)
    found.pop("return", None)
    return found


def _address_of(buffer: Any) -> int:
    return addressof(c_char.from_buffer(buffer))  # a quarter of the time that NumPy takes


@cache
def _layout(cls: Any) -> tuple[list[tuple[str, np.dtype[Any] | None, int]], Callable[..., bytes]]:
    """Return name, type and dimensions of the fields of a struct, and what packs their words."""
    fields, words = [], ""
    for name, hint in hints(cls).items():
        dtype, dimensions = array_of(hint) or (None, 0)
        fields.append((name, dtype, dimensions))
        words += "d" if hint is float else "q" * (1 + dimensions)
    return fields, struct.Struct(words).pack


@dataclass_transform(frozen_default=True)
class Struct:
    """The base of all structs.

    The annotations of a subclass are its fields: ``int``, ``float``, ``bool``, an array (see the
    names above), or another struct. Arrays are contiguous (C order) and writable, and have exactly
    the annotated type.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = hints(type(self))
        own = self.__dict__
        own.update(zip(fields, values, strict=False), **named)
        if len(values) + len(named) != len(fields) or own.keys() != fields.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot change")

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in hints(type(self)))

    def __reduce__(self) -> Any:
        return type(self), tuple(self)

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in hints(type(self)))
        return f"{type(self).__name__}({', '.join(shown)})"

    def replaced(self, **changes: Any) -> Self:
        """Return a struct that differs in some fields and shares the others."""
        return type(self)(**dict(zip(hints(type(self)), self, strict=True)) | changes)

    @cached_property
    def _words(self) -> bytearray:
        """The words behind the pointer: numbers, addresses of structs, addresses and shapes."""
        words: list[Any] = []
        own = self.__dict__
        cls: Any = type(self)
        fields, packed = _layout(cls)
        for name, dtype, dimensions in fields:
            value = own[name]
            if dtype is None:
                words.append(value._address if isinstance(value, Struct) else value)
                continue
            fits = isinstance(value, np.ndarray) and value.dtype == dtype
            # Such arrays are contiguous, aligned and writable.
            if not fits or value.ndim != dimensions or not value.flags.carray:
                wanted = f"writable {dtype} array of {dimensions} dimensions in C order"
                raise TypeError(f"{type(self).__name__}.{name} is no {wanted}")
            words.append(_address_of(value) if value.size else 0)
            words += value.shape
        return bytearray(packed(*words))

    @cached_property
    def _address(self) -> int:
        """The pointer; compiled code asks for it."""
        return _address_of(self._words)
