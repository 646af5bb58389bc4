"""Plans, their times, and the rules that they break; nothing here is used by the search."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from optpart.applications.serving.apart.request import Request


class Plan(NamedTuple):
    """The device of every vertex, while prefilling and while decoding."""

    prefill: tuple[int, ...]
    decode: tuple[int, ...]


class Times(NamedTuple):
    """Nanoseconds until the first token, and per token; ``None`` where something cannot cross."""

    first: Fraction | None = None
    token: Fraction | None = None


def _crossings(
    request: Request, plan: Plan
) -> Iterator[tuple[int, str, int, int, Fraction | None]]:
    """Yield what crosses: phase, what, sender, receiver, and how long it takes if it can."""
    n, names = len(request.weights), request.moves.graph.names
    for phase, instance in enumerate(request.phases):
        for v, (d, e) in enumerate(pairwise(plan[phase])):
            if d != e:
                yield phase, f"the output of {names[v]}", d, e, instance.delay(v, d, e)
        d, e = plan[phase][-1], plan.decode[0]
        if d != e:
            yield phase, names[n], d, e, request.moves.delay(n, d, e)
    for v, (d, e) in enumerate(zip(*plan, strict=True)):
        if d != e and request.cached[v][0]:
            yield 0, f"keys and values of {names[v]}", d, e, request.moves.delay(v, d, e)


def times(request: Request, plan: Plan) -> Times:
    """Return the exact times of a plan."""
    found: list[Fraction | None] = []
    for phase, instance in enumerate(request.phases):
        parts = [each[-1] for each in _crossings(request, plan) if each[0] == phase]
        known = [time for time in parts if time is not None]
        known += [instance.duration(v, d) for v, d in enumerate(plan[phase])]
        found.append(None if None in parts else sum(known, Fraction(0)))
    return Times(*found)


def held(request: Request, plan: Plan, device: int) -> int:
    """Return the bytes of weights, keys and values that a device has to hold."""
    total = 0
    for v, (d, e) in enumerate(zip(*plan, strict=True)):
        prompt, context = request.cached[v]
        if device in (d, e):
            total += request.weights[v]
            total += max(prompt if d == device else 0, context if e == device else 0)
    ends = ({plan.prefill[v], plan.decode[v]} for v in (0, -1))
    return total - (request.tied if all(device in end for end in ends) else 0)


def violations(request: Request, plan: Plan) -> Iterator[str]:
    """Yield every rule that a plan of one known device per vertex and phase breaks."""
    names = request.moves.cluster.names
    for _, what, d, e, time in _crossings(request, plan):
        if time is None:
            yield f"no link takes {what} from {names[d]} to {names[e]}"
    for d in sorted({*plan.prefill, *plan.decode}):
        size, room = held(request, plan, d), request.room[d]
        if room is not None and size > room:
            yield f"{names[d]} holds {size} bytes, but has room for {room}"
    first = times(request, plan).first
    if first is not None and first > request.limit:
        yield f"the first token takes {first} ns, more than {request.limit}"
