"""Random graphs G(n, p) whose edges follow the order of the tasks (Cordeiro et al. 2010)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def gnp(
    tasks: Annotated[int, Option(1, MOST_VERTICES)] = 20,
    probability: Annotated[float, Option(0, 1, "Of each edge.")] = 0.2,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw each edge from a task to a later one with the same probability.

    Of ``n`` tasks, ``probability · n(n − 1) / 2`` edges are expected; with probability 1, there are
    exactly ``n(n − 1) / 2``. This is the method of P. Erdős and A. Rényi for graphs without cycles,
    as in D. Cordeiro et al., Random graph generation for scheduling simulations, SIMUTools 2010.
    See :func:`~optpart.interop.generate.family.instance_of` for costs, ``devices`` and ``ccr``.
    """
    draw.count(tasks, "tasks", least=1)
    draw.probability(probability, "probability")
    pairs = tasks * (tasks - 1) // 2

    def shape(rng: np.random.Generator) -> Shape:
        # A uniform set of a binomial number of pairs: the same as a draw for each pair. Pair number
        # v(v−1)/2 + u joins u < v; rounding of the root is corrected exactly.
        drawn = draw.distinct(rng, pairs, int(rng.binomial(pairs, probability)))
        v = ((1 + np.sqrt(1 + 8 * drawn.astype(np.float64))) / 2).astype(np.int64)
        v -= v * (v - 1) // 2 > drawn
        v += v * (v + 1) // 2 <= drawn
        u = drawn - v * (v - 1) // 2
        return Shape(
            [f"t{i}" for i in range(tasks)], list(zip(u.tolist(), v.tolist(), strict=True))
        )

    return instance_of(
        shape,
        tasks=tasks,
        edges=probability * pairs,
        name={"gnp": "", "n": tasks, "p": f"{probability:g}"},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="random graph G(n, p) ordered by the numbers of tasks",
    )
