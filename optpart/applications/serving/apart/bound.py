"""Simple exact arguments about all plans."""

from __future__ import annotations

import math
from fractions import Fraction

from optpart.applications.serving.apart.request import Request
from optpart.base.rounding import number


def refuted(request: Request) -> tuple[str, str] | None:
    """Return a proof that there is no plan, if there is a simple one, and what it says.

    ``memory``
        All weights, keys and values exceed what all devices have room for.
    ``path``
        If each vertex had all memory, and nothing moved after the prompt is read, the first token
        would come too late; or tokens cannot pass all vertices for want of room or links.
    """
    need = sum(request.weights) + sum(context for _, context in request.cached) - request.tied
    rooms = sum(math.inf if room is None else max(room, 0) for room in request.room)
    if need > rooms:
        return "memory", f"weights, keys and values take {need:,} bytes of {rooms:,}"
    first = shortest(request, 0)
    if first is None or shortest(request, 1) is None:
        return "path", "no devices with room for each vertex are linked"
    if first > request.limit:
        return "path", f"no prompt is read in less than {number(first, up=False)} ns"
    return None


def shortest(request: Request, phase: int) -> Fraction | None:
    """Return the least time of a pass, decoding with the way back; ``None`` if none can pass."""
    instance, n = request.phases[phase], len(request.weights)
    able = [request.able(v, phase) for v in range(n)]
    found = []
    for begins in [[d] for d in able[0]] if phase else [able[0]]:
        reach = {d: instance.duration(0, d) for d in begins}
        for v in range(1, n):
            before, reach = reach, {}
            for e in able[v]:
                over = ((time, instance.delay(v - 1, d, e)) for d, time in before.items())
                times = [time + delay for time, delay in over if delay is not None]
                if times:
                    reach[e] = min(times) + instance.duration(v, e)
        for d, time in reach.items():
            home = request.moves.delay(n, d, begins[0]) if phase else Fraction(0)
            found += [] if home is None else [time + home]
    return min(found, default=None)
