"""Branching: refute a length for every device of the units that the crossings leave in doubt."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optpart.lower_bounds.crossings import least_admitted
from optpart.problem.instance import Instance

#: Depths of branching. A greater depth is tried only after the search with a smaller one has ended.
_DEPTHS = (0, 1, 2, 4, 7, 12)


def branching_bound(
    instance: Instance, seconds: float = np.inf, makespan: Fraction | None = None
) -> Fraction | None:
    """Bound the makespan by the least length that branching on devices does not refute.

    Where the linear program of :mod:`~optpart.lower_bounds.crossings` does not refute a length, the
    unit of which most is in doubt is put on each of its devices in turn. A length that is refuted
    on all of them is refuted, since every schedule has the unit on one.

    Parameters
    ----------
    seconds : float
        Time limit; all of it is used if need be.
    makespan : Fraction, optional
        Makespan of a schedule; the search goes no higher.

    Returns
    -------
    Fraction or None
        ``None`` if there is no schedule of any length.
    """
    return least_admitted(instance, seconds, makespan, _DEPTHS)
