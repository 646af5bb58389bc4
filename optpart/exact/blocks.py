"""Contiguous blocks in the CP-SAT model (design §2).

A block is contiguous if and only if it is the difference of two sets that are closed under
successors: the vertices at or after a vertex of the block, without those that a path has reached
after leaving it. The literals ``left`` describe the latter set, with one clause per edge.
"""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from optpart.exact.core import Core

#: A literal, or a constant.
Literal = cp_model.IntVar | int


def add_blocks(core: Core) -> None:
    """Keep the blocks contiguous, or along the given order of devices, if the goal asks for it."""
    if core.task.device_order:
        _add_order(core)
    elif core.task.contiguous:
        for d in range(core.instance.devices):
            _add_block(core, d)


def _add_order(core: Core) -> None:
    """No edge goes from a later device of the order back to an earlier one."""
    reached = [_reached(core, u) for u in range(len(core.devices))]
    unit = core.instance.unit_of.tolist()
    for u, v in sorted({(unit[a], unit[b]) for a, b, _ in core.instance.graph.edges()}):
        for here, there in zip(reached[u], reached[v], strict=True):
            if isinstance(here, int) and isinstance(there, int):
                if here > there:
                    core.model.add_bool_or([])
            elif isinstance(here, int):
                if here:
                    core.model.add(there == 1)
            elif isinstance(there, int):
                if not there:
                    core.model.add(here == 0)
            elif here is not there:
                core.model.add_implication(here, there)


def _reached(core: Core, u: int) -> list[Literal]:
    """Return, for each place in the order but the first, whether the unit is there or later."""
    order = core.task.device_order
    place = {d: i for i, d in enumerate(order)}
    known = place.get(core.device_known(int(core.instance.units[u][0])), -1)
    later: list[Literal] = [0]
    for i in range(len(order) - 1, 0, -1):
        here, beyond = core.on.get((u, order[i])), later[-1]
        if here is None:
            later.append(beyond)
        elif here is core.one:
            later.append(1)
        elif isinstance(beyond, int):
            later.append(beyond or here)
        else:
            literal = core.literal(f"reached[{u},{i}]", known >= i)
            core.model.add(literal == beyond + here)
            later.append(literal)
    return later[:0:-1]


def _add_block(core: Core, d: int) -> None:
    """No path leaves the block of a device and comes back to it."""
    before: dict[int, set[int]] = defaultdict(set)
    after: dict[int, set[int]] = defaultdict(set)
    for u, v, _ in core.instance.graph.edges():
        before[v].add(u)
        after[u].add(v)
    topological = core.instance.graph.topological_order.tolist()
    here = {v: core.on.get((int(core.instance.unit_of[v]), d)) for v in topological}
    possible: set[int] = set()  # at or before a vertex that may be here
    for v in reversed(topological):
        if here[v] is not None or after[v] & possible:
            possible.add(v)
    left: dict[int, cp_model.IntVar] = {}
    gone: set[int] = set()  # in the initial schedule
    for v in topological:
        sources = [u for u in sorted(before[v]) if here[u] is not None or u in left]
        if v not in possible or not sources:
            continue
        if core.device_known(v) != d and any(
            core.device_known(u) == d or u in gone for u in sources
        ):
            gone.add(v)
        left[v] = core.literal(f"left[{v},{d}]", v in gone)
        there = here[v]
        if there is not None:
            core.model.add_implication(left[v], ~there)
        for u in sources:
            if u in left:
                core.model.add_implication(left[u], left[v])
            at = here[u]
            if at is not None and at is not there:
                core.model.add_bool_or([~at, left[v], *([] if there is None else [there])])
