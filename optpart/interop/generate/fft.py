"""The fast Fourier transform (Topcuoglu, Hariri and Wu 2002, §6.2.2)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def fft(
    points: Annotated[int, Option(1, MOST_VERTICES, "A power of two.")] = 8,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw the one-dimensional fast Fourier transform of ``points`` numbers.

    With ``m`` points, ``2m − 1`` recursive calls form a binary tree, whose ``m`` leaves feed
    ``log₂ m`` rows of ``m`` butterflies: ``2m − 1 + m·log₂ m`` tasks and
    ``2m − 2 + 2m·log₂ m`` edges. The graph is that of H. Topcuoglu, S. Hariri and M.-Y. Wu,
    Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE TPDS
    13 (2002). See :func:`~optpart.interop.generate.family.instance_of` for costs, ``devices`` and
    ``ccr``.
    """
    if points < 1 or points & (points - 1):
        raise InputError("points", f"{points} is not a power of two", "give 1, 2, 4, 8, …")
    rows = points.bit_length() - 1

    def shape(rng: np.random.Generator) -> Shape:
        calls = 2 * points - 1
        names = [f"call_{v}" for v in range(calls)]
        edges = [((v - 1) // 2, v) for v in range(1, calls)]
        above = points - 1  # the first leaf
        for row in range(rows):
            here = len(names)
            names += [f"butterfly_{row}_{i}" for i in range(points)]
            for i in range(points):
                edges += [(above + i, here + i), (above + (i ^ (1 << row)), here + i)]
            above = here
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=2 * points - 1 + points * rows,
        edges=2 * points - 2 + 2 * points * rows,
        name={"fft": "", "m": points},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="fast Fourier transform of Topcuoglu et al. 2002",
    )
