"""Gaussian elimination by columns (Topcuoglu, Hariri and Wu 2002, §6.2.1)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def gauss(
    size: Annotated[int, Option(2, MOST_VERTICES, "Rows and columns of the matrix.")] = 5,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw Gaussian elimination of a square matrix, column by column.

    Step ``k`` finds the pivot column (``pivot_k``) and then updates every column ``j > k``
    (``update_k_j``). The first update is what the next pivot needs, and each other one is what the
    next update of the same column needs. With ``m`` for ``size``, there are ``(m² + m − 2) / 2``
    tasks and ``m(m − 1) − 1`` edges. The graph is that of H. Topcuoglu, S. Hariri and M.-Y. Wu,
    Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE TPDS
    13 (2002), after M. Cosnard et al., Parallel Gaussian elimination on an MIMD computer, Parallel
    Computing 6 (1988). See :func:`~optpart.interop.generate.family.instance_of` for costs,
    ``devices`` and ``ccr``.
    """
    draw.count(size, "size", least=2)

    def shape(rng: np.random.Generator) -> Shape:
        names: list[str] = []
        edges: list[tuple[int, int]] = []
        before = 0  # the last pivot
        for k in range(1, size):
            pivot = len(names)
            names.append(f"pivot_{k}")
            names += [f"update_{k}_{j}" for j in range(k + 1, size + 1)]
            edges += [(pivot, v) for v in range(pivot + 1, len(names))]
            if k > 1:  # from the updates of the last step to this pivot and these updates
                edges += [(before + 1 + i, pivot + i) for i in range(size - k + 1)]
            before = pivot
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=(size * size + size - 2) // 2,
        edges=size * (size - 1) - 1,
        name={"gauss": "", "m": size},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="Gaussian elimination of Topcuoglu et al. 2002",
    )
