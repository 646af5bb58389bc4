"""Tiled Cholesky factorisation (Buttari, Langou, Kurzak and Dongarra 2009)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def cholesky(
    tiles: Annotated[int, Option(1, MOST_VERTICES, "Tiles in a row of the matrix.")] = 4,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw the right-looking Cholesky factorisation of a matrix of ``tiles × tiles`` tiles.

    Every task writes one tile. With ``t`` for ``tiles``, there are ``t`` tasks ``potrf_k``,
    ``t(t − 1) / 2`` each of ``trsm_i_k`` and ``syrk_i_k``, and ``t(t − 1)(t − 2) / 6`` of
    ``gemm_i_j_k``: in all, ``t(t + 1)(t + 2) / 6`` tasks and ``(t − 1)t(t + 1) / 2`` edges. The
    graph is that of A. Buttari et al., A class of parallel tiled linear algebra algorithms for
    multicore architectures, Parallel Computing 35 (2009). Operations are drawn without regard to
    the kind of task. See :func:`~optpart.interop.generate.family.instance_of` for costs,
    ``devices`` and ``ccr``.
    """
    draw.count(tiles, "tiles", least=1)

    def shape(rng: np.random.Generator) -> Shape:
        names: list[str] = []
        edges: list[tuple[int, int]] = []
        writer: dict[tuple[int, int], int] = {}  # of each tile, so far

        def task(name: str, tile: tuple[int, int], *reads: tuple[int, int]) -> None:
            """Add a task that reads tiles and updates one."""
            v = len(names)
            names.append(name)
            edges.extend((writer[one], v) for one in (tile, *reads) if one in writer)
            writer[tile] = v

        for k in range(tiles):
            task(f"potrf_{k}", (k, k))
            for i in range(k + 1, tiles):
                task(f"trsm_{i}_{k}", (i, k), (k, k))
            for i in range(k + 1, tiles):
                task(f"syrk_{i}_{k}", (i, i), (i, k))
                for j in range(k + 1, i):
                    task(f"gemm_{i}_{j}_{k}", (i, j), (i, k), (j, k))
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=tiles * (tiles + 1) * (tiles + 2) // 6,
        edges=(tiles - 1) * tiles * (tiles + 1) // 2,
        name={"cholesky": "", "t": tiles},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="tiled Cholesky factorisation of Buttari et al. 2009",
    )
