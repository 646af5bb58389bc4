"""What no plan exceeds, by area: all machines together against all layers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from optpart.applications.serving.problem import Serving


def area(serving: Serving, throughput: Fraction) -> Fraction:
    """Return the layers that all machines give at most to a throughput, in tokens · layers / s.

    A machine with ``k`` layers passes at most ``min(T(k), throughput)`` tokens per second through
    each. What every machine gives at its best ``k`` must be ``layers · throughput`` in all: else no
    plan reaches the throughput, whatever the links. Relative to the throughput, the sum never
    grows, so that no plan exceeds it either.
    """
    kinds = Counter(machine.rates for machine in serving.machines)
    return sum(
        (
            number * max(k * min(rate, throughput) for k, rate in enumerate(rates, 1))
            for rates, number in kinds.items()
        ),
        Fraction(0),
    )


def area_bound(serving: Serving) -> Fraction:
    """Return the largest throughput for which the area suffices, exactly.

    Between two neighbouring values at which the best number of layers of some machine changes, or
    its limit, the area is ``a + b · throughput``.
    """
    kinds = Counter(machine.rates for machine in serving.machines)
    turns = {
        m * rate / k for rates in kinds for m, rate in enumerate(rates, 1) for k in range(1, m + 1)
    }
    at = sorted(turns | {rate for rates in kinds for rate in rates})
    need = serving.layers
    low, high = -1, len(at)  # the area suffices at the first, and not at the second
    while high - low > 1:
        middle = (low + high) // 2
        if area(serving, at[middle]) >= need * at[middle]:
            low = middle
        else:
            high = middle
    begin = at[low] if low >= 0 else Fraction(0)
    inside = (begin + at[high]) / 2 if high < len(at) else begin + 1
    fixed = slope = Fraction(0)
    for rates, number in kinds.items():
        k, rate = max(enumerate(rates, 1), key=lambda each: each[0] * min(each[1], inside))
        if rate <= inside:
            fixed += number * k * rate
        else:
            slope += number * k
    return fixed / (need - slope)
