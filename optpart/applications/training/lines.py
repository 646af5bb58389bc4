"""Times ``α + β · samples`` from the figures of devices.

The roofline (:mod:`optpart.interop.costs.roofline`) of a kernel that computes ``F`` operations and
moves ``A`` bytes of activations a sample, and reads ``W`` bytes of weights once, is ``launch +
max(F·b / rate, (W + A·b) / bandwidth)`` at ``b`` samples, which is no line. Taken is ::

    α = launch + W / bandwidth        β = max(F / rate, A / bandwidth)

as if the weights were read before anything is computed. This line is never below the roofline, and
never above it by more than the time of reading the weights; for many samples both have the slope
``β``. Operations that are computed whatever the number of samples count in ``α`` as well, if they
take longer than the reading. Calibrated devices are linear themselves, and their lines are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpart.applications.training.graph import Line
from optpart.interop.costs.efficiency import Efficiencies
from optpart.interop.costs.roofline import estimates
from optpart.interop.devices.spec import Spec
from optpart.problem.workload import Work

#: Remark on every graph with such times.
REMARK = (
    "Times are lines α + β·samples: α launches and reads weights, β computes or moves activations, "
    "whichever takes longer; such a line is above the roofline by at most the time of reading the "
    "weights."
)


@dataclass(frozen=True)
class Kernel:
    """Work that is launched at once.

    Attributes
    ----------
    kind : str
        Operator type as :mod:`optpart.interop.costs.efficiency` knows it.
    flops : int
        Floating-point operations for all samples; a multiply-add counts as two.
    moved : int
        Bytes of activations that are read and written, for all samples.
    weights : int
        Bytes that are read whatever the number of samples.
    fixed_flops : int
        Operations that are computed whatever the number of samples.
    """

    kind: str
    flops: int
    moved: int
    weights: int = 0
    precision: str = "float32"
    fixed_flops: int = 0


def lines(
    kernels: Sequence[Kernel],
    specs: Mapping[str, Spec],
    *,
    samples: int = 1,
    efficiencies: Efficiencies | None = None,
) -> tuple[list[tuple[Line, ...]], tuple[str, ...]]:
    """Return the times of kernels, one line per kind of device, and what was assumed.

    Parameters
    ----------
    specs : mapping from str to Spec
        By kind of device.
    samples : int
        For how many the kernels' figures are.
    """

    def estimated(
        flops: list[int], moved: list[int]
    ) -> tuple[list[list[Fraction]], tuple[str, ...]]:
        work = Work(
            tuple(kernel.kind for kernel in kernels),
            tuple(kernel.precision for kernel in kernels),
            np.array(flops, dtype=np.int64),
            np.array(moved, dtype=np.int64),
            np.zeros(len(kernels), dtype=np.int64),
        )
        return estimates(work, list(specs), known, efficiencies)

    known = list(specs.values())
    launch, _ = estimated([0] * len(kernels), [0] * len(kernels))
    fixed, _ = estimated([k.fixed_flops for k in kernels], [k.weights for k in kernels])
    running, assumed = estimated([k.flops for k in kernels], [k.moved for k in kernels])
    found = [
        tuple(
            Line(fixed[d][k], (running[d][k] - launch[d][k]) / samples) for d in range(len(known))
        )
        for k in range(len(kernels))
    ]
    return found, (*assumed, REMARK)


def scaled(times: Sequence[Line], factor: Fraction | int) -> tuple[Line, ...]:
    """Return multiples of lines."""
    return tuple(Line(line.alpha * factor, line.beta * factor) for line in times)


def total(parts: Sequence[Sequence[Line]], kinds: int) -> tuple[Line, ...]:
    """Return the sum of the times of several kernels, by kind of device."""
    return tuple(sum((part[d] for part in parts), Line()) for d in range(kinds))
