"""The devices and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.arguments import checked, checked_names
from optpart.base.errors import InputError
from optpart.base.escaping import brief
from optpart.problem.rational import (
    Number,
    RationalArray,
    check_text,
    non_negative,
    rational,
    shown,
)

#: Accepted forms of a matrix: one value for all pairs, or k rows of k entries.
Matrix = Number | None | Sequence[Sequence[Number | None]]


@checked_names
@dataclass(frozen=True)
class Device:
    """One device: name, speed (operations per time unit), type, memory (``None`` = unlimited)."""

    name: str
    speed: Number = 1
    type: str | None = None
    memory: Number | None = None


@checked
@dataclass(frozen=True, eq=False)
class Cluster:
    """A set of devices and their links ([L] §2.2, [M] §2), held in arrays.

    Attributes
    ----------
    names : tuple of str, length k
    types : tuple of (str or None), length k
    speed : RationalArray, length k
        Operations per time unit, > 0.
    memory : tuple of (Fraction or None), length k
        Capacity; ``None`` is unlimited.
    bandwidth : RationalArray, k × k
        Size per time unit from sender (row) to receiver (column); 0 means no link.
    infinite : ndarray of bool, k × k
        Whether bandwidth is unlimited; where it is, ``bandwidth`` is 0.
    latency : RationalArray, k × k
    """

    names: tuple[str, ...]
    types: tuple[str | None, ...]
    speed: RationalArray
    memory: tuple[Fraction | None, ...]
    bandwidth: RationalArray
    infinite: NDArray[np.bool_]
    latency: RationalArray

    def __len__(self) -> int:
        return len(self.names)

    def only(self, kept: Sequence[int]) -> Cluster:
        """Return the cluster of some of the devices, by number, and the links between them."""
        pairs = np.ix_(kept, kept)
        return Cluster(
            tuple(self.names[d] for d in kept),
            tuple(self.types[d] for d in kept),
            self.speed.take(np.asarray(kept)),
            tuple(self.memory[d] for d in kept),
            self.bandwidth.take(pairs),
            self.infinite[pairs],
            self.latency.take(pairs),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cluster):
            return NotImplemented
        return (
            (self.names, self.types, self.memory) == (other.names, other.types, other.memory)
            and bool(np.array_equal(self.infinite, other.infinite))
            and (self.speed, self.bandwidth, self.latency)
            == (other.speed, other.bandwidth, other.latency)
        )

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({kind for kind in self.types if kind is not None}))
        return f"<Cluster of {len(self):,} devices{brief(f' ({kinds})') if kinds else ''}>"

    @cached_property
    def index(self) -> dict[str, int]:
        """Device number by name."""
        return {name: d for d, name in enumerate(self.names)}

    @cached_property
    def linked(self) -> NDArray[np.bool_]:
        """True if tensors can cross, k × k; a device is always linked to itself."""
        with_bandwidth = np.asarray(self.bandwidth.numerators != 0, dtype=np.bool_)
        return with_bandwidth | self.infinite | np.eye(len(self), dtype=np.bool_)

    @classmethod
    def of(
        cls, devices: Sequence[Device], bandwidth: Matrix = None, latency: Matrix = 0
    ) -> Cluster:
        """Build and check a cluster.

        Parameters
        ----------
        bandwidth : number, ``None`` or k × k matrix
            ``None`` is infinite, 0 means no link; the diagonal is ignored.
        latency : number or k × k matrix

        Raises
        ------
        InputError
            If a name is missing or duplicate, a speed is not positive, a number is negative, or a
            matrix has the wrong size.
        """
        if not devices:
            raise InputError("devices", "no devices", "give at least one device")
        seen: dict[str, int] = {}
        for d, device in enumerate(devices):
            place = f"devices[{d}].name"
            if not isinstance(device, Device):
                remedy = "give a Device, such as Device('gpu', 10)"
                raise InputError(f"devices[{d}]", f"is {shown(device)}", remedy)
            if not isinstance(device.name, str) or not device.name:
                raise InputError(place, "missing name", "give every device a unique name")
            if device.name in seen:
                raise InputError(
                    place,
                    f"{device.name!r} is already devices[{seen[device.name]}]",
                    "give every device a unique name",
                )
            check_text(device.name, place)
            if device.type is not None:
                if not isinstance(device.type, str):
                    problem = f"{shown(device.type)} is not a name"
                    raise InputError(f"devices[{d}].type", problem, "name a type")
                check_text(device.type, f"devices[{d}].type")
            seen[device.name] = d
        k = len(devices)
        speeds = [
            _positive(device.speed, f"devices[{d}].speed") for d, device in enumerate(devices)
        ]
        memory = tuple(
            None if device.memory is None else non_negative(device.memory, f"devices[{d}].memory")
            for d, device in enumerate(devices)
        )
        rates = _matrix(bandwidth, k, "bandwidth")
        delays = _matrix(latency, k, "latency")
        for i in range(k):
            for j in range(k):
                if delays[i][j] is None and i != j:
                    raise InputError(f"latency[{i}][{j}]", "must not be null", "give a number ≥ 0")
        return cls(
            names=tuple(seen),
            types=tuple(device.type for device in devices),
            speed=RationalArray.from_fractions(speeds),
            memory=memory,
            bandwidth=RationalArray.from_fractions(
                entry or Fraction(0) for row in rates for entry in row
            ).reshape(k, k),
            infinite=np.array([[entry is None for entry in row] for row in rates], dtype=np.bool_),
            latency=RationalArray.from_fractions(
                (entry or Fraction(0)) if i != j else Fraction(0)
                for i, row in enumerate(delays)
                for j, entry in enumerate(row)
            ).reshape(k, k),
        )

    @classmethod
    def uniform(
        cls,
        devices: int,
        speed: Number = 1,
        bandwidth: Matrix = None,
        latency: Matrix = 0,
        memory: Number | None = None,
    ) -> Cluster:
        """Build ``devices`` identical devices named ``d0``, ``d1``, …, with identical links."""
        return cls.of(
            [Device(f"d{d}", speed, memory=memory) for d in range(devices)], bandwidth, latency
        )


def _positive(value: object, place: str) -> Fraction:
    number = rational(value, place)
    if number <= 0:
        raise InputError(place, f"{shown(number)} is not positive", "give a speed > 0")
    return number


def _matrix(value: Any, k: int, place: str) -> list[list[Fraction | None]]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        entry = None if value is None else non_negative(value, place)
        return [[entry] * k for _ in range(k)]
    if len(value) != k:
        raise InputError(place, f"{len(value)} rows", f"give {k} rows of {k} entries")
    for i, row in enumerate(value):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != k:
            size = len(row) if isinstance(row, Sequence) else "no"
            raise InputError(
                f"{place}[{i}]", f"{size} entries", f"give {k} entries, one per device"
            )
    cache: dict[object, Fraction] = {}

    def read(entry: object, i: int, j: int) -> Fraction | None:
        if entry is None:
            return None
        if type(entry) is int and entry in cache:
            return cache[entry]
        number = non_negative(entry, f"{place}[{i}][{j}]")
        if type(entry) is int:
            cache[entry] = number
        return number

    return [[read(entry, i, j) for j, entry in enumerate(row)] for i, row in enumerate(value)]
