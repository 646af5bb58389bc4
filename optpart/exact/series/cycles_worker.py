"""The process that solves paths of cycles with CP-SAT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart.exact import cp_sat
from optpart.exact.messages import Incumbent, Limits, Send, serve
from optpart.exact.series.cycles import Body, Cycle, Fork, Kind, Path, Way

#: Devices up to which every set of them gets a constraint of its own.
_FEW = 8

#: Devices up to which every renaming is tried, not only exchanges of two.
_RENAMED = 6

#: Single vertices that tighten an inequality.
_LIFTED = 2

#: With fewer workers, CP-SAT has few full searches, with two a single one; the others look for
#: solutions. These prove most, tried with two workers: branching by pseudo-costs and by reduced
#: costs.
_MANY, _SEARCHES = 8, ("pseudo_costs", "reduced_costs")

#: A kind and a device.
_State = tuple[int, int]


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _solve(path: Path, limits: Limits, send: Send) -> None:
    def tune(parameters: Any) -> None:
        # With forks, the relaxation is strong if the solver heeds all of it; else it takes longer.
        parameters.linearization_level = 2 if path.forks else 1
        if 1 < limits.workers < _MANY:
            parameters.subsolvers.extend(_SEARCHES)

    cp_sat.solve(lambda: PathModel(path), limits, send, tune)


class _Steps:
    """Numbers of steps between two devices, by the ways through a fork if there is one.

    Attributes
    ----------
    number : variable
        Of all of them.
    ways : list of (Way, variable)
    cost : list of expression
    """

    def __init__(self, model: cp_model.CpModel, ways: Sequence[Way], most: int) -> None:
        self.ways = [(way, model.new_int_var(0, most, "")) for way in ways]
        self.number = self.ways[0][1]
        if len(ways) > 1:
            self.number = model.new_int_var(0, most, "")
            model.add(self.number == cp_model.LinearExpr.sum([x for _, x in self.ways]))
        self.cost: list[cp_model.LinearExprT] = [way.ticks * x for way, x in self.ways if way.ticks]

    def taken(self, value: cp_sat.Value) -> list[tuple[int, ...]]:
        """Return the devices in the fork for every step."""
        return [way.devices for way, x in self.ways for _ in range(value(x))]


class _Bodies:
    """The vertices of a fork, of all its repetitions.

    Attributes
    ----------
    fork : Fork
    steps : dict from (device, device) to _Steps
    number : int
        How often it is repeated.
    """

    def __init__(self, fork: Fork, steps: dict[tuple[int, int], _Steps], number: int) -> None:
        self.fork, self.steps, self.number = fork, steps, number

    def on(self, device: int, need: int) -> list[cp_model.LinearExprT]:
        """Return how many of some need there are on a device."""
        bodies = self.fork.bodies
        counts = [
            (x, sum(d == device and bodies[b].need == need for b, d in enumerate(way.devices)))
            for steps in self.steps.values()
            for way, x in steps.ways
        ]
        return [count * x for x, count in counts if count]

    def beside(self, device: int) -> list[tuple[list[cp_model.IntVar], int]]:
        """Return the steps with a single vertex on a device, and what is held besides then."""
        if self.fork.over is None:
            return []
        apart, at_an_end = list[cp_model.IntVar](), list[cp_model.IntVar]()
        for ends, steps in self.steps.items():
            inside = [x for way, x in steps.ways if way.devices == (device,)]
            (at_an_end if device in ends else apart).extend(inside)
        extra = self.fork.bodies[0].beside.get(device, 0), self.fork.over.get(device, 0)
        return [pair for pair in zip((apart, at_an_end), extra, strict=True) if pair[0]]


def _options(
    cross: dict[tuple[int, int], int], fork: Fork | None, pair: tuple[int, int]
) -> Sequence[Way]:
    """Return the ways between two devices."""
    if fork is not None:
        return fork.ways.get(pair, [])
    if pair[0] == pair[1]:
        return [Way(0, ())]
    return [Way(cross[pair], ())] if pair in cross else []


class _CycleModel:
    """Numbers of steps between the states of one cycle.

    Attributes
    ----------
    first, last : dict from device to literal
        Whether the cycle begins, or ends, on the device.
    visits : dict from (kind, device) to variable
        Number of vertices. The solver branches on these: without variables of their own, it proves
        far less.
    """

    def __init__(self, model: cp_model.CpModel, cycle: Cycle, capacity: dict[int, int]) -> None:
        self.model, self.cycle, self.capacity = model, cycle, capacity
        kinds, k = cycle.kinds, len(cycle.kinds)
        literal = model.new_bool_var
        end = (cycle.length - 1) % k
        self.first = {d: literal("") for d in kinds[0].time}
        self.last = self.first if cycle.length == 1 else {d: literal("") for d in kinds[end].time}
        model.add_exactly_one(self.first.values())
        model.add_exactly_one(self.last.values())
        self.steps: dict[tuple[_State, _State], _Steps] = {}
        self.bodies: list[_Bodies] = []
        self.cost: list[cp_model.LinearExprT] = []
        into: dict[_State, list[cp_model.LinearExprT]] = defaultdict(list)
        out: dict[_State, list[cp_model.LinearExprT]] = defaultdict(list)
        for p, kind in enumerate(kinds):
            most, q = (cycle.length - 1 - p + k - 1) // k, (p + 1) % k
            inside: dict[tuple[int, int], _Steps] = {}
            for d in kind.time:
                for e in kinds[q].time if most else ():
                    if ways := _options(kind.cross, kind.fork, (d, e)):
                        steps = inside[d, e] = _Steps(model, ways, most)
                        self.steps[(p, d), (q, e)] = steps
                        out[p, d].append(steps.number)
                        into[q, e].append(steps.number)
                        self.cost += steps.cost
            if kind.fork is not None:
                self.bodies.append(_Bodies(kind.fork, inside, most))
        for d, begins in self.first.items():
            into[0, d].append(begins)
        for d, ends in self.last.items():
            out[end, d].append(ends)
        total = cp_model.LinearExpr.sum
        self.visits: dict[_State, cp_model.IntVar] = {}
        for p, kind in enumerate(kinds):
            for d, ticks in kind.time.items():
                visits = self.visits[p, d] = model.new_int_var(0, self.most(p, d), "")
                model.add(visits == total(into[p, d]))
                model.add(visits == total(out[p, d]))
                self.cost.append(ticks * visits)
            model.add(total([self.visits[p, d] for d in kind.time]) == self.number(p))
        #: Whether the cycle uses a state, and a device.
        self.used = {(0, d): begins for d, begins in self.first.items()}
        self.on = dict(self.first)
        if cycle.length > 1:
            self.on = {d: literal("") for d in sorted({d for _, d in self.visits})}
            self._connected()

    def _connected(self) -> None:
        """Let steps lead from the first vertex to all states in use."""
        model, used = self.model, self.used
        rank: dict[_State, cp_model.IntVar] = {}
        for state, visits in self.visits.items():
            used[state] = model.new_bool_var("")
            rank[state] = model.new_int_var(0, len(self.visits) - 1, "")
            model.add(visits >= used[state])
            model.add(visits <= self.most(*state) * used[state])
        ways: dict[_State, list[cp_model.LinearExprT]] = defaultdict(list)
        for d, begins in self.first.items():
            ways[0, d].append(begins)
        for (one, other), steps in self.steps.items():
            if one != other:
                taken = model.new_bool_var("")
                model.add(steps.number >= taken)
                model.add(rank[other] >= rank[one] + 1).only_enforce_if(taken)
                ways[other].append(taken)
        for state, literal in used.items():
            model.add(cp_model.LinearExpr.sum(ways[state]) == literal)
        # Implied by the above, and stronger in the relaxation: a way leads into every set of
        # devices that has one in use.
        devices = list(self.on)
        for (_, d), literal in used.items():
            model.add(literal <= self.on[d])
        sizes = range(1, len(devices) + 1 if len(devices) <= _FEW else 2)
        for inside in (set(each) for size in sizes for each in combinations(devices, size)):
            enter: list[cp_model.LinearExprT] = [
                steps.number
                for ((_, d), (_, e)), steps in self.steps.items()
                if d not in inside and e in inside
            ]
            enter += [begins for d, begins in self.first.items() if d in inside]
            for d in inside:
                model.add(cp_model.LinearExpr.sum(enter) >= self.on[d])

    def number(self, kind: int) -> int:
        """Return how many vertices are of a kind."""
        k = len(self.cycle.kinds)
        return (self.cycle.length - kind + k - 1) // k

    def most(self, kind: int, device: int) -> int:
        """Return how many vertices of a kind fit on a device."""
        number, body = self.number(kind), self.cycle.kinds[kind]
        if device not in self.capacity or not body.need:
            return number
        room = self.capacity[device] - body.beside.get(device, 0)
        return min(number, max(0, room) // body.need)

    def found(self, value: cp_sat.Value) -> list[int]:
        """Return the device of every vertex of the cycle: an Eulerian trail (Hierholzer)."""
        left: dict[_State, list[_State]] = defaultdict(list)
        ways: dict[tuple[_State, _State], list[tuple[int, ...]]] = {}
        for (one, other), steps in self.steps.items():
            left[one] += [other] * value(steps.number)
            ways[one, other] = steps.taken(value)
        way = [(0, next(d for d, begins in self.first.items() if value(begins)))]
        trail: list[_State] = []
        while way:
            if left[way[-1]]:
                way.append(left[way[-1]].pop())
            else:
                trail.append(way.pop())
        found = [trail[-1][1]]
        for one, other in pairwise(trail[::-1]):
            found += [*ways[one, other].pop(), other[1]]
        return found


class _Amount:
    """The vertices of some need on a device.

    Attributes
    ----------
    visits : list of expression
        How many there are, by cycle and kind; in the end one variable for all together.
    number : int
        How many there may be.
    cycles : set of _CycleModel
    on : literal
        Whether the last of these cycles uses the device.
    forks : bool
        Whether vertices of forks are among them, which the literal does not count.
    """

    def __init__(self) -> None:
        self.visits: list[cp_model.LinearExprT] = []
        self.number = 0
        self.cycles: set[_CycleModel] = set()
        self.on: cp_model.LinearExprT = 0
        self.forks = False

    def add(self, cycle: _CycleModel, kind: int, device: int) -> None:
        """Count the vertices of one kind of a cycle, too."""
        self.visits.append(cycle.visits[kind, device])
        self.number += cycle.number(kind)
        self.cycles.add(cycle)
        self.on = cycle.on[device]

    def add_fork(self, bodies: _Bodies, need: int, device: int) -> None:
        """Count the vertices of a fork, too."""
        if visits := bodies.on(device, need):
            self.visits += visits
            self.number += bodies.number * sum(body.need == need for body in bodies.fork.bodies)
            self.forks = True


def _edges(x: NDArray[np.int64], y: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the normals of the upper hull of points: ``x`` from 0 on, ``y`` falling."""
    hull: list[tuple[int, int]] = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2:]
            if (y2 - y1) * (a - x1) > (b - y1) * (x2 - x1):
                break
            hull.pop()
        hull.append((a, b))
    falling = [(y1 - y2, x2 - x1) for (x1, y1), (x2, y2) in pairwise(hull) if y1 > y2]
    return falling or [(1, 0)]


def _exchanges(path: Path) -> Iterator[tuple[int, int]]:
    """Yield pairs of devices of which the first may as well have the larger part.

    A renaming of devices that leaves the path as it is may give the first device that it changes
    the largest part of all to which the devices before allow it to be renamed.
    """
    kinds = [kind for cycle in path.cycles for kind in cycle.kinds]
    every: list[Kind | Body] = [*kinds, *(body for fork in path.forks for body in fork.bodies)]
    devices = range(1 + max(d for each in every for d in each.time))
    tables = [kind.cross for kind in kinds] + [cycle.after for cycle in path.cycles]
    tables += [table for fork in path.forks for table in (fork.arrive, fork.leave)]
    rows = [*(each.time for each in every), *(each.beside for each in every), path.capacity]
    tables += [{(d, d): x for d, x in row.items()} for row in rows]
    cost = np.array(
        [[[table.get((d, e), -1) for e in devices] for d in devices] for table in tables]
    )
    swaps = (
        [e if x == d else d if x == e else x for x in devices] for d, e in combinations(devices, 2)
    )
    for named in permutations(devices) if len(devices) <= _RENAMED else swaps:
        changed = [d for d, e in enumerate(named) if d != e]
        if changed and (cost[:, named][:, :, named] == cost).all():
            yield changed[0], named[changed[0]]


class PathModel:
    """All cycles, the transfers between them, and the memory that they share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = cp_model.CpModel()
        self.cycles = [_CycleModel(self.model, cycle, path.capacity) for cycle in path.cycles]
        cost = [term for cycle in self.cycles for term in cycle.cost]
        #: Steps from each cycle to the next, and what is in the forks of all.
        self.between: list[dict[tuple[int, int], _Steps]] = []
        self.bodies = [bodies for cycle in self.cycles for bodies in cycle.bodies]
        for one, other in zip(self.cycles, self.cycles[1:], strict=False):
            cost += self._between(one, other)
        self._memory()
        for c, b in path.same:
            for d in self.cycles[c].first.keys() | self.cycles[b].first.keys():
                self.model.add(self.cycles[c].first.get(d, 0) == self.cycles[b].first.get(d, 0))
        for c, b in path.apart:
            for d in self.cycles[c].first.keys() & self.cycles[b].first.keys():
                self.model.add_at_most_one(self.cycles[c].first[d], self.cycles[b].first[d])
        longest = max(self.cycles, key=lambda each: each.cycle.length)
        for d, e in set(_exchanges(path)):
            self.model.add(self._held(longest, d) >= self._held(longest, e))
        self.model.minimize(cp_model.LinearExpr.sum(cost))

    def _held(self, cycle: _CycleModel, device: int) -> cp_model.LinearExprT:
        return cp_model.LinearExpr.sum([v for (_, d), v in cycle.visits.items() if d == device])

    def _between(self, one: _CycleModel, other: _CycleModel) -> list[cp_model.LinearExprT]:
        """Let the tensor between two cycles cross, and return what it costs."""
        after, fork = one.cycle.after, one.cycle.fork
        crossing = {
            (d, e): _Steps(self.model, ways, 1)
            for d in one.last
            for e in other.first
            if (ways := _options(after, fork, (d, e)))
        }
        for d, ends in one.last.items():
            out = [x.number for (sender, _), x in crossing.items() if sender == d]
            self.model.add(cp_model.LinearExpr.sum(out) == ends)
        for e, begins in other.first.items():
            into = [x.number for (_, receiver), x in crossing.items() if receiver == e]
            self.model.add(cp_model.LinearExpr.sum(into) == begins)
        self.between.append(crossing)
        if fork is not None:
            self.bodies.append(_Bodies(fork, crossing, 1))
        return [term for x in crossing.values() for term in x.cost]

    def _memory(self) -> None:
        for d, room in self.path.capacity.items():
            amounts: dict[int, _Amount] = defaultdict(_Amount)
            for cycle in self.cycles:
                for p, kind in enumerate(cycle.cycle.kinds):
                    if d in kind.time and kind.need:
                        amounts[kind.need].add(cycle, p, d)
            for bodies in self.bodies:
                for need in {body.need for body in bodies.fork.bodies} - {0}:
                    amounts[need].add_fork(bodies, need, d)
            taken: list[cp_model.LinearExprT] = []
            for need, amount in amounts.items():
                # Again a variable to branch on, of all cycles together.
                count = self.model.new_int_var(0, min(amount.number, room // need), "")
                self.model.add(count == cp_model.LinearExpr.sum(amount.visits))
                amount.visits = [count]
                taken.append(need * count)
            held = cp_model.LinearExpr.sum(taken)
            beside = [
                (used, cycle.cycle.kinds[p].beside.get(d, 0))
                for cycle in self.cycles
                for (p, e), used in cycle.used.items()
                if e == d
            ]
            # Whatever the device runs, so much is held besides.
            extras = [
                body.beside.get(d, 0) for each in self.bodies for body in each.fork.bodies
                if d in body.time and each.fork.over is None
            ]  # fmt: skip
            alone = [(x, each.number) for each in self.bodies for x in each.beside(d)]
            extras += [extra for (_, extra), _ in alone]
            free = max(0, room - min((*(extra for _, extra in beside), *extras), default=0))
            self.model.add(held <= free)
            for (steps, extra), number in alone:
                if room - extra < free:
                    used = self.model.new_bool_var("")
                    self.model.add(cp_model.LinearExpr.sum(steps) <= number * used)
                    beside.append((used, extra))
            for used, extra in beside:
                if extra > room:
                    self.model.add(used == 0)
                elif room - extra < free:
                    self.model.add(held <= free - (free - room + extra) * used)
            if amounts:
                self._hull(amounts, free)

    def _hull(self, amounts: dict[int, _Amount], room: int) -> None:
        """Bound the vertices of the two needs that take most by the hull of their integer points.

        Implied, too. Each edge of the hull is an inequality, which single vertices tighten: one
        after another, they get the coefficient that no load forbids (sequential lifting).
        """
        most = sorted(amounts, key=lambda need: -need * amounts[need].number)[:2]
        one, other = [*(amounts[need] for need in most), _Amount(), _Amount()][:2]
        needs = [*most, 1, 1][:2]
        single = [need for need in amounts if need not in most and amounts[need].number == 1]
        single = sorted(single, reverse=True)[:_LIFTED]
        x = np.arange(min(one.number, room // needs[0]) + 1)

        def points(chosen: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            """Return the greatest loads beside the single vertices that are chosen."""
            left = room - int(np.dot(single, chosen)) - needs[0] * x
            y = np.minimum(other.number, left // needs[1])
            return (x[y >= 0], y[y >= 0]) if (y >= 0).any() else (x[:1] * 0, x[:1] * 0)

        def most_of(a: int, b: int, chosen: Sequence[int]) -> int:
            x, y = points(chosen)
            return int((a * x + b * y).max())

        total = cp_model.LinearExpr.sum
        for held in product((0, 1), repeat=len(single)):
            for a, b in _edges(*points(held)):
                load = a * total(one.visits) + b * total(other.visits)
                limits = {held: most_of(a, b, held)}
                terms: list[cp_model.LinearExprT] = [limits[held]]
                for j, need in enumerate(single):
                    turned = {
                        (*chosen[:j], 1 - chosen[j], *chosen[j + 1 :]): limit
                        for chosen, limit in limits.items()
                    }
                    more = max(most_of(a, b, chosen) - limit for chosen, limit in turned.items())
                    limits |= {chosen: limit + more for chosen, limit in turned.items()}
                    x_j = total(amounts[need].visits)
                    terms.append(more * (1 - x_j if held[j] else x_j))
                self.model.add(load <= total(terms))
                apart = one.forks or other.forks
                if not any(held) and not apart and len(one.cycles | other.cycles) == 1:
                    self.model.add(load <= limits[held] * one.on)

    def found(self, value: cp_sat.Value) -> Incumbent:
        """Return the device of every vertex, in topological order."""
        found = self.cycles[0].found(value)
        for steps, cycle in zip(self.between, self.cycles[1:], strict=True):
            found += [d for each in steps.values() for way in each.taken(value) for d in way]
            found += cycle.found(value)
        return Incumbent(np.array(found, np.int32))
