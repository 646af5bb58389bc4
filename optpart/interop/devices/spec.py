"""The figures of a device or a link, in nanoseconds and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

#: Data types that the library states peaks for, widest first.
PRECISIONS = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8")


@dataclass(frozen=True)
class DeviceSpec:
    """Peak rates of a device, as its datasheet states them.

    Attributes
    ----------
    name : str
    type : str
        What ``device_type`` of a vertex refers to, such as ``"GPU"``.
    peak : mapping from str to Fraction
        Dense operations per nanosecond (GFLOP/s) by data type; a multiply-add counts as two.
    bandwidth : Fraction
        Of the device's own memory, in bytes per nanosecond (GB/s).
    memory : Fraction or None
        Bytes; ``None`` where it is no property of the device.
    overhead : Fraction
        Nanoseconds that launching one operation takes: an assumption in the library.
    summary, source, date : str
        What it is, where the figures come from, and when they were entered.
    """

    name: str
    type: str | None
    peak: Mapping[str, Fraction]
    bandwidth: Fraction
    memory: Fraction | None
    overhead: Fraction
    summary: str = ""
    source: str = ""
    date: str = ""

    @property
    def speed(self) -> Fraction:
        """Operations per nanosecond in float32, or in the widest type that has a peak."""
        order = ("float32", "bfloat16", "float16", *PRECISIONS, *self.peak)
        return next(self.peak[name] for name in order if name in self.peak)


@dataclass(frozen=True)
class LinkSpec:
    """The capacity of a link in each direction.

    Attributes
    ----------
    name : str
    nominal : Fraction
        Bytes per nanosecond (GB/s) after line coding, as the standard or the datasheet states.
    efficiency : Fraction
        The part of it that is left for payload: an assumption.
    latency : Fraction
        Nanoseconds that an empty message takes between two programs: an assumption.
    summary, source, date : str
    """

    name: str
    nominal: Fraction
    efficiency: Fraction
    latency: Fraction
    summary: str = ""
    source: str = ""
    date: str = ""

    @property
    def bandwidth(self) -> Fraction:
        """Payload bytes per nanosecond (GB/s)."""
        return self.nominal * self.efficiency


@dataclass(frozen=True)
class Coefficients:
    """A run time in nanoseconds: ``constant + per_flop · FLOPs + per_byte · bytes``, all ≥ 0."""

    constant: Fraction
    per_flop: Fraction
    per_byte: Fraction

    def time(self, flops: int, moved: int) -> Fraction:
        """Return the run time in nanoseconds of an operation."""
        return self.constant + self.per_flop * flops + self.per_byte * moved


@dataclass(frozen=True)
class FittedSpec:
    """A device with run times fitted to measurements (:mod:`~optpart.interop.costs.calibration`).

    Attributes
    ----------
    name : str
    type : str or None
    memory : Fraction or None
        Bytes.
    precision : str
        Data type that was measured; run times in others are unknown.
    overall : Coefficients
        Fitted to all rows; counts where neither kind nor class was fitted.
    classes, kinds : mapping from str to Coefficients
        Fitted to the rows of one class of operations, or of one kind. A kind counts first.
    source : str
    """

    name: str
    type: str | None
    memory: Fraction | None
    precision: str
    overall: Coefficients
    classes: Mapping[str, Coefficients] = field(default_factory=dict)
    kinds: Mapping[str, Coefficients] = field(default_factory=dict)
    source: str = ""

    @property
    def speed(self) -> Fraction:
        """Operations per nanosecond without constant and bytes; 1 if none were seen to count."""
        rate = self.overall.per_flop
        return 1 / rate if rate else Fraction(1)

    def coefficients(self, kind: str, class_: str) -> tuple[Coefficients, str]:
        """Return what counts for an operation, and what it was fitted to."""
        if kind in self.kinds:
            return self.kinds[kind], "kind"
        if class_ in self.classes:
            return self.classes[class_], "class"
        return self.overall, "all"


#: What is known of a device.
Spec: TypeAlias = DeviceSpec | FittedSpec
