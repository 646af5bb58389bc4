"""What no plan exceeds, by an exhaustive sweep over the layers; and plans that pass it.

For a plan that reaches a throughput, leave out the machines without flow. A machine then begins at
layer 0, or where another one ends, since a token goes on only at a layer that begins a machine.
Where some machines end and others begin, what goes on within machines and what passes from the
ending to the beginning ones must make up the throughput. The sweep tries all ways to choose, from
layer 0 to the last, how many machines of each kind begin with how many layers, and leaves out those

- that waste more area (:mod:`.bound`) than there is to spare, and
- at whose ends too little can pass, given the links between *sites*.

Sites are machines joined by links that carry the whole throughput; links within a site are taken as
unlimited, and links between sites all as good as the best of them. What is left of the machines,
and where those that are active end, is all that counts for what follows, and is tried once. If
nothing is left, no plan reaches the throughput. All numbers are integers.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple, TypeAlias

from optpart.applications.serving.problem import Serving
from optpart.base.clock import now
from optpart.base.errors import OptpartError

#: Between more sites, links are left out of account: every cut of them is looked at.
_MOST_SITES = 4
#: Steps between two looks at the clock.
_STRIDE = 256


class OutOfTimeError(OptpartError):
    """The sweep has not ended within its limit."""


class Group(NamedTuple):
    """Machines of equal rates in one site, in the problem's unit."""

    site: int
    rates: tuple[int, ...]
    machines: tuple[int, ...]


class Sites(NamedTuple):
    """Their number, groups of machines, and the best and worst link from each to each site."""

    number: int
    groups: tuple[Group, ...]
    best: tuple[tuple[int, ...], ...]
    worst: tuple[tuple[int, ...], ...]


def sites_of(serving: Serving, throughput: int) -> Sites:
    """Return sites and groups for a throughput, in the problem's unit."""
    n = len(serving.machines)
    site = list(range(n))
    links = [[0] * n for _ in range(n)]
    for (u, v), capacity in serving.links.items():
        if max(u, v) < n:
            links[u][v] = throughput if capacity is None else int(capacity * serving.unit)
            if links[u][v] >= throughput:
                site = [site[u] if each == site[v] else each for each in site]
    names = sorted(set(site))
    if len(names) > _MOST_SITES:
        site, names = [0] * n, [0]
    members: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for i, machine in enumerate(serving.machines):
        rates = tuple(int(rate * serving.unit) for rate in machine.rates)
        members.setdefault((names.index(site[i]), rates), []).append(i)
    groups = tuple(Group(*key, tuple(own)) for key, own in sorted(members.items()))
    inside = [[i for i in range(n) if site[i] == name] for name in names]
    best, worst = (
        tuple(tuple(choose(links[u][v] for u in p for v in q) for q in inside) for p in inside)
        for choose in (max, min)
    )
    return Sites(len(names), groups, best, worst)


class _Option(NamedTuple):
    """One machine of a group, with so many layers: what it wastes, gives and could pass."""

    waste: int
    group: int
    layers: int
    given: int
    rate: int


#: A machine that is active: the layer after its last, its group, and how many layers it holds.
_Active: TypeAlias = tuple[int, int, int]
_Left: TypeAlias = tuple[int, ...]


class _Place(NamedTuple):
    """A layer, the machines that hold it and the one before, and those that end before it."""

    at: int
    kept: tuple[_Active, ...]
    ended: tuple[_Active, ...]


class Sweep:
    """All ways in which plans may reach a throughput, in the problem's unit."""

    def __init__(self, serving: Serving, throughput: int, deadline: float) -> None:
        self._throughput, self._layers, self._deadline = throughput, serving.layers, deadline
        self._steps, self._sites = 0, sites_of(serving, throughput)
        self._rates = [group.rates for group in self._sites.groups]
        self._given = [[min(rate, throughput) for rate in rates] for rates in self._rates]
        best = [max(k * rate for k, rate in enumerate(given, 1)) for given in self._given]
        self._left = tuple(len(group.machines) for group in self._sites.groups)
        area = sum(b * number for b, number in zip(best, self._left, strict=True))
        self._spare = area - serving.layers * throughput
        self._seen: set[tuple[int, _Left, tuple[_Active, ...]]] = set()
        self._options = [
            _Option(best[g] - k * given, g, k, given, self._rates[g][k - 1])
            for g in range(len(best))
            for k, given in enumerate(self._given[g], 1)
            if best[g] - k * given <= self._spare
        ]

    def passes(self) -> bool:
        """Return whether some choice passes; if not, no plan reaches the throughput.

        Raises
        ------
        OutOfTimeError
            If the deadline comes first.
        """
        start = _Place(0, (), ())
        return self._spare >= 0 and self._begin(start, self._left, (), 0, self._spare)

    def _begin(
        self, here: _Place, left: _Left, begun: tuple[_Option, ...], first: int, spare: int
    ) -> bool:
        """Go on with what has begun at a layer, else with one option more, in the given order."""
        self._steps += 1
        if self._steps % _STRIDE == 0 and now() > self._deadline:
            raise OutOfTimeError("the sweep ran out of time")
        if self._suffices(here, begun):
            new = ((here.at + o.layers, o.group, o.layers) for o in begun)
            if self._go_on(here.at, left, tuple(sorted((*here.kept, *new))), spare):
                return True
        given = sum(self._given[g][k - 1] for _, g, k in here.kept) + sum(o.given for o in begun)
        for j in range(first, len(self._options)):
            option = self._options[j]
            g, rest = option.group, spare - option.waste
            over = max(0, given + option.given - self._throughput)
            if left[g] and here.at + option.layers <= self._layers and over <= rest:
                fewer = (*left[:g], left[g] - 1, *left[g + 1 :])
                if self._begin(here, fewer, (*begun, option), j, rest):
                    return True
        return False

    def _go_on(self, at: int, left: _Left, active: tuple[_Active, ...], spare: int) -> bool:
        """Go to the next layer at which a machine ends."""
        end = active[0][0]
        over = sum(self._given[g][k - 1] for _, g, k in active) - self._throughput
        spare -= over * (end - at)
        state = end, left, active
        if spare < 0 or state in self._seen:
            return False
        self._seen.add(state)
        ended = tuple(each for each in active if each[0] == end)
        there = _Place(end, active[len(ended) :], ended)
        return end == self._layers or self._begin(there, left, (), 0, spare)

    def _suffices(self, here: _Place, begun: tuple[_Option, ...]) -> bool:
        """Return whether enough passes a layer, within machines and from some to others."""
        need = self._throughput - sum(self._rates[g][k - 1] for _, g, k in here.kept)
        passing = sum(option.rate for option in begun)
        if here.at > 0:
            passing = min(passing, sum(self._rates[g][k - 1] for _, g, k in here.ended))
        if min(need, here.at) > 0 and passing >= need and self._sites.number > 1:
            passing = self._passing(here.ended, begun)
        return passing >= need

    def _passing(self, ended: tuple[_Active, ...], begun: tuple[_Option, ...]) -> int:
        """Return the most that can pass from ended machines to begun ones: a minimal cut."""
        sites = self._sites
        every = range(sites.number)
        sent, senders, taken, takers = ([0] * sites.number for _ in range(4))
        for _, g, k in ended:
            sent[sites.groups[g].site] += self._rates[g][k - 1]
            senders[sites.groups[g].site] += 1
        for option in begun:
            taken[sites.groups[option.group].site] += option.rate
            takers[sites.groups[option.group].site] += 1
        least = sum(sent)
        for near in product((False, True), repeat=sites.number):  # sites whose senders are not cut
            cut = sum(sent[p] for p in every if not near[p])
            for q in every:  # cut off what begins at a site, or the links to it from the others
                links = sum(sites.best[p][q] * senders[p] * takers[q] for p in every if near[p])
                cut += taken[q] if near[q] and senders[q] else min(taken[q], links)
            least = min(least, cut)
        return least
