"""Memory limits in proportion to a cluster's own, by the least that hold a model.

The scale of limits is counted in thousandths: at 1000, all devices together hold exactly what the
whole model needs under ``estimate``, each its part in proportion to its real memory, rounded down
to whole bytes. A model *just fits* at the least whole scale above 1000 at which a placement exists.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

from ortools.sat.python import cp_model

from optpart.problem.instance import Instance

WHOLE = 1000
#: By how much limits exceed those that just fit; ``None``: memory does not count.
MEMORY = {"free": None, "tight": Fraction(4, 3), "very-tight": Fraction(21, 20)}

_SECONDS = 120.0


def limited(real: Instance, memory: str) -> Instance:
    """Return an instance whose memory is as tight as named in :data:`MEMORY`.

    Parameters
    ----------
    real : Instance
        Its cluster has the real memory of every device, which does not count.
    """
    excess = MEMORY[memory]
    if excess is None:
        cluster = replace(real.cluster, memory=(None,) * real.devices)
        return replace(real, cluster=cluster, source=f"{real.source}; memory does not count")
    scale = just_fits(real)
    return replace(
        real,
        cluster=replace(real.cluster, memory=tuple(map(Fraction, limits(real, excess * scale)))),
        model=replace(real.model, memory="estimate"),
        source=f"{real.source}; memory by estimate; the devices' real memory times a common "
        f"factor, {excess} of the least at which a placement exists, where all together hold "
        f"{scale}/{WHOLE} of what the whole model needs",
    )


def limits(real: Instance, scale: Fraction | int) -> tuple[int, ...]:
    """Return the limit of every device at a scale, in bytes."""
    memory = _memory(real)
    factor = Fraction(scale) * sum(needs(real)) / (WHOLE * sum(memory))
    return tuple(int(factor * limit) for limit in memory)


def needs(real: Instance) -> list[int]:
    """Return what every assignment unit needs under ``estimate``, in bytes."""
    exact = replace(real, model=replace(real.model, memory="estimate")).static_memory.fractions()
    assert all(need.denominator == 1 for need in exact)
    return [int(need) for need in exact]


@cache
def just_fits(real: Instance) -> int:
    """Return the least scale at which a placement exists, found by bisection.

    Raises
    ------
    TimeoutError
        If CP-SAT does not answer.
    """
    low, high = WHOLE, WHOLE + 1
    while not fits(real, limits(real, high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(real, limits(real, middle)) else (middle, high)
    return high


def fits(real: Instance, limits: tuple[int, ...]) -> bool:
    """Return whether a placement under ``estimate`` keeps the limits, by a proof or a witness.

    Units of equal need that may use the same devices are interchangeable, so that the model
    decides how many of them each device takes.
    """
    assert not real.separated_units
    assert real.cluster.linked.all()
    alike = Counter(zip(needs(real), map(tuple, real.allowed.tolist()), strict=True))
    model = cp_model.CpModel()
    held: list[list[cp_model.LinearExprT]] = [[] for _ in limits]
    for (need, allowed), count in alike.items():
        placed = []
        for d, may in enumerate(allowed):
            if may:
                placed.append(model.new_int_var(0, count, ""))
                held[d].append(need * placed[-1])
        model.add(sum(placed) == count)
    for terms, limit in zip(held, limits, strict=True):
        model.add(sum(terms) <= limit)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = _SECONDS
    status = solver.solve(model)
    if status == cp_model.UNKNOWN:
        raise TimeoutError(f"{real.name}: no answer whether it fits in {limits}")
    return status in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def _memory(real: Instance) -> list[Fraction]:
    found = [limit for limit in real.cluster.memory if limit is not None]
    assert len(found) == real.devices
    return found
