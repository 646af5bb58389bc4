"""Reasons why no schedule exists: minimal sets of conflicting requirements (design §3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from optpart.base.escaping import listed
from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.problem.feasibility import SHOWN, devices_named, units_named
from optpart.problem.instance import Instance

#: Limit of one proof, in deterministic time; beyond it, a placement is assumed to exist.
_EFFORT = 2.0


@dataclass(frozen=True)
class _Kept:
    """A subset of an instance's requirements: units to place and limits to respect.

    Attributes
    ----------
    units : frozenset of int
    memory : frozenset of int
        Devices whose capacity counts.
    apart : frozenset of pairs of units
    links : frozenset of pairs of devices
        Missing links that count.
    """

    units: frozenset[int]
    memory: frozenset[int]
    apart: frozenset[tuple[int, int]]
    links: frozenset[tuple[int, int]]


def conflict(instance: Instance, seconds: float = 10.0) -> str:
    """Return which units cannot all be placed, and why; empty if that is not proven.

    Requirements are dropped one by one, first limits, then units, as long as no placement becomes
    possible. So the set is minimal, provided that every solve ended in time: without any one of the
    requirements, a placement exists.

    Notes
    -----
    Deletion filter for an irreducible infeasible set: Chinneck and Dravnieks 1991.
    """
    deadline = time.perf_counter() + seconds
    problem = _Placements(instance)
    kept = problem.everything
    if not problem.impossible(kept):
        return ""
    for name in ("links", "apart", "memory"):
        whole = getattr(kept, name)
        for part in [whole, *({item} for item in sorted(whole))]:
            smaller = _without(kept, name, part)
            if time.perf_counter() < deadline and problem.impossible(smaller):
                kept = smaller
    step = max(1, len(kept.units) // 2)
    while step:
        for block in _blocks(sorted(kept.units), step):
            smaller = _without(kept, "units", block)
            if time.perf_counter() < deadline and problem.impossible(smaller):
                kept = smaller
        step //= 2
    return _words(instance, kept)


def memory_conflict(instance: Instance, infeasible: Callable[[Instance], bool]) -> str:
    """Return the memory limits that rule out every order although placements exist.

    Parameters
    ----------
    infeasible : callable
        Returns whether an instance is proven to have no schedule.

    Returns
    -------
    str
        Names the devices of a minimal set of limits, as far as ``infeasible`` proves it; empty
        under memory models that do not depend on time.
    """
    if not instance.model.timed_memory:
        return ""
    limits = instance.cluster.memory
    kept = [d for d, limit in enumerate(limits) if limit is not None]
    for d in tuple(kept):
        if infeasible(_with_limits(instance, [e for e in kept if e != d])):
            kept.remove(d)
    names = ", ".join(f"{instance.cluster.names[d]} ({limits[d]})" for d in kept)
    return (
        f"memory over time ({instance.model.memory}): no placement and order keep the limits of "
        f"{names} (proven by search)"
    )


def _with_limits(instance: Instance, kept: list[int]) -> Instance:
    memory = tuple(m if d in kept else None for d, m in enumerate(instance.cluster.memory))
    return replace(instance, cluster=replace(instance.cluster, memory=memory))


def _blocks(items: list[int], size: int) -> Iterable[list[int]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _without(kept: _Kept, name: str, part: Iterable[object]) -> _Kept:
    fields = {**vars(kept), name: frozenset(getattr(kept, name)) - set(part)}
    if name == "units":
        fields["apart"] = frozenset(pair for pair in kept.apart if set(pair) <= fields["units"])
    return _Kept(**fields)


class _Placements:
    """The placement problem, without times."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.need, self.capacity = whole_memory(instance, relax=True)
        self.blocked = blocked_pairs(instance)
        self.everything = _Kept(
            frozenset(range(len(instance.units))),
            frozenset(d for d, limit in enumerate(self.capacity.tolist()) if limit < UNLIMITED),
            frozenset(instance.separated_units),
            frozenset(chain.from_iterable(self.blocked.values())),
        )

    def impossible(self, kept: _Kept) -> bool:
        """Return whether the units are proven to have no placement within the limits."""
        from ortools.sat.python import cp_model  # slow to load, and seldom needed

        from optpart.exact.cp_sat import solver_within

        model = cp_model.CpModel()
        on = {
            (u, d): model.new_bool_var("")
            for u in kept.units
            for d in self.instance.allowed[u].nonzero()[0].tolist()
        }
        for u in kept.units:
            model.add_exactly_one(on[u, d] for d in self.instance.allowed[u].nonzero()[0].tolist())
        for d in kept.memory:
            used = sum(int(self.need[u]) * x for (u, e), x in on.items() if e == d)
            model.add(used <= int(self.capacity[d]))
        for a, b in kept.apart:
            for d in range(self.instance.devices):
                if (a, d) in on and (b, d) in on:
                    model.add_bool_or(~on[a, d], ~on[b, d])
        for (a, b), links in self.blocked.items():
            for d, e in links & kept.links:
                if (a, d) in on and (b, e) in on:
                    model.add_bool_or(~on[a, d], ~on[b, e])
        return solver_within(deterministic=_EFFORT).solve(model) == cp_model.INFEASIBLE


def blocked_pairs(instance: Instance) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Return, for pairs of units that communicate, the device pairs that they cannot use."""
    graph, unit = instance.graph, instance.unit_of.tolist()
    apart = ~instance.cluster.linked
    np.fill_diagonal(apart, False)
    everywhere = set(zip(*(side.tolist() for side in apart.nonzero()), strict=True))
    blocked: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for u, v, tensor in graph.edges():
        if unit[u] == unit[v]:
            continue
        links = everywhere
        if tensor in graph.tensor_delay:
            links = links | {
                (d, e)
                for d, row in enumerate(graph.tensor_delay[tensor])
                for e, delay in enumerate(row)
                if d != e and delay is None
            }
        if links:
            blocked.setdefault((unit[u], unit[v]), set()).update(links)
    return blocked


def _words(instance: Instance, kept: _Kept) -> str:
    units = sorted(kept.units)
    reasons = []
    if kept.memory:
        devices = sorted(kept.memory)
        need = listed([str(instance.static_memory[unit]) for unit in units], SHOWN)
        limits = listed([str(instance.cluster.memory[d]) for d in devices], SHOWN)
        reasons.append(f"{devices_named(instance, devices)} memory (they need {need} of {limits})")
    if kept.apart:
        apart = [
            f"{instance.unit_name(a)} apart from {instance.unit_name(b)}"
            for a, b in sorted(kept.apart)
        ]
        reasons.append(f"separation ({listed(apart, SHOWN)})")
    if kept.links:
        names = instance.cluster.names
        missing = [f"{names[d]} → {names[e]}" for d, e in sorted(kept.links)]
        reasons.append(f"missing links ({listed(missing, SHOWN)})")
    where = " or ".join(
        sorted({devices_named(instance, instance.allowed[u].nonzero()[0].tolist()) for u in units})
    )
    return (
        f"units {units_named(instance, units)} may go to {where} only, and cannot all be placed: "
        + "; ".join(reasons)
    )
