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

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from optpart.applications.serving.problem import Serving
from optpart.base.clock import now
from optpart.base.errors import OptpartError

#: Between more sites, links are left out of account: every cut of them is looked at.
_MOST_SITES = 4
#: Steps between two looks at the clock.
_STRIDE = 256


class OutOfTimeError(OptpartError):
    """The sweep has not ended within its limit."""


@dataclass(frozen=True)
class Group:
    """Machines of equal rates in one site, in the problem's unit."""

    site: int
    machines: tuple[int, ...]
    rates: tuple[int, ...]


@dataclass(frozen=True)
class Sites:
    """Groups of machines, and the tokens per second of the best and worst link between sites."""

    groups: tuple[Group, ...]
    best: tuple[tuple[int, ...], ...]
    worst: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """The number of sites."""
        return len(self.best)


def sites_of(serving: Serving, throughput: int) -> Sites:
    """Return sites and groups for a throughput, in the problem's unit."""
    n = len(serving.machines)
    site = list(range(n))
    links = {
        (u, v): throughput if capacity is None else int(capacity * serving.unit)
        for (u, v), capacity in serving.links.items()
        if u < n and v < n
    }
    for (u, v), capacity in links.items():
        if capacity >= throughput and site[u] != site[v]:
            old, new = sorted((site[u], site[v]))[::-1]
            site = [new if each == old else each for each in site]
    names = sorted(set(site))
    if len(names) > _MOST_SITES:
        site, names = [0] * n, [0]
    number = {name: k for k, name in enumerate(names)}
    members: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for i, machine in enumerate(serving.machines):
        rates = tuple(int(rate * serving.unit) for rate in machine.rates)
        members.setdefault((number[site[i]], rates), []).append(i)
    groups = tuple(Group(p, tuple(own), rates) for (p, rates), own in sorted(members.items()))
    between: dict[tuple[int, int], list[int]] = {}
    for u, v in product(range(n), repeat=2):
        between.setdefault((number[site[u]], number[site[v]]), []).append(links.get((u, v), 0))

    def table(choose: Callable[[list[int]], int]) -> tuple[tuple[int, ...], ...]:
        every = range(len(names))
        return tuple(tuple(choose(between[p, q]) for q in every) for p in every)

    return Sites(groups, table(max), table(min))


@dataclass(frozen=True)
class _Option:
    """One machine of a group, with so many layers: what it wastes, gives and could pass."""

    waste: int
    group: int
    layers: int
    given: int
    rate: int


#: A machine that is active: the layer after its last, its group, and how many layers it holds.
_Active = tuple[int, int, int]


class Sweep:
    """All ways in which plans may reach a throughput, in the problem's unit.

    Attributes
    ----------
    steps : int
        States that were looked at.
    """

    def __init__(self, serving: Serving, throughput: int, deadline: float) -> None:
        self.steps = 0
        self._throughput, self._layers, self._deadline = throughput, serving.layers, deadline
        self._sites = sites_of(serving, throughput)
        groups = self._sites.groups
        given = [[min(rate, throughput) for rate in group.rates] for group in groups]
        best = [max(k * rate for k, rate in enumerate(each, 1)) for each in given]
        area = sum(b * len(group.machines) for b, group in zip(best, groups, strict=True))
        self._spare = area - serving.layers * throughput
        self._given, self._seen = given, set[tuple[int, tuple[int, ...], tuple[_Active, ...]]]()
        self._options = [
            _Option(best[g] - k * given[g][k - 1], g, k, given[g][k - 1], rate)
            for g, group in enumerate(groups)
            for k, rate in enumerate(group.rates, 1)
            if best[g] - k * given[g][k - 1] <= self._spare
        ]

    def passes(self) -> bool:
        """Return whether some choice passes; if not, no plan reaches the throughput.

        Raises
        ------
        OutOfTimeError
            If the deadline comes first.
        """
        left = tuple(len(group.machines) for group in self._sites.groups)
        return self._spare >= 0 and self._begin(0, left, (), (), (), 0, self._spare)

    def _begin(
        self,
        at: int,
        left: tuple[int, ...],
        kept: tuple[_Active, ...],
        ended: tuple[_Active, ...],
        begun: tuple[_Option, ...],
        first: int,
        spare: int,
    ) -> bool:
        """Try the machines begun so far at a layer, then one more of them, in the given order."""
        if self._suffices(at, kept, ended, begun):
            active = sorted((*kept, *((at + o.layers, o.group, o.layers) for o in begun)))
            if self._go_on(at, left, tuple(active), spare):
                return True
        active_now = sum(self._given[g][k - 1] for _, g, k in kept) + sum(o.given for o in begun)
        for j in range(first, len(self._options)):
            option = self._options[j]
            g = option.group
            after = spare - option.waste
            fits = left[g] and at + option.layers <= self._layers and after >= 0
            if fits and active_now + option.given - self._throughput <= after:
                fewer = (*left[:g], left[g] - 1, *left[g + 1 :])
                if self._begin(at, fewer, kept, ended, (*begun, option), j, after):
                    return True
        return False

    def _go_on(
        self, at: int, left: tuple[int, ...], active: tuple[_Active, ...], spare: int
    ) -> bool:
        """Go to the next layer at which a machine ends."""
        self.steps += 1
        if self.steps % _STRIDE == 0 and now() > self._deadline:
            raise OutOfTimeError("the sweep ran out of time")
        end = active[0][0]
        over = sum(self._given[g][k - 1] for _, g, k in active) - self._throughput
        spare -= over * (end - at)
        state = end, left, active
        if spare < 0 or state in self._seen:
            return False
        self._seen.add(state)
        if end == self._layers:
            return True
        ended = tuple(each for each in active if each[0] == end)
        return self._begin(end, left, active[len(ended) :], ended, (), 0, spare)

    def _suffices(
        self,
        at: int,
        kept: tuple[_Active, ...],
        ended: tuple[_Active, ...],
        begun: tuple[_Option, ...],
    ) -> bool:
        """Return whether enough passes a layer, within machines and from some to others."""
        groups = self._sites.groups
        need = self._throughput - sum(groups[g].rates[k - 1] for _, g, k in kept)
        if sum(option.rate for option in begun) < need or (not begun and not ended):
            return False
        if at == 0:
            return True
        if need <= 0:
            return True
        if sum(groups[g].rates[k - 1] for _, g, k in ended) < need:
            return False
        if self._sites.count == 1:
            return True
        return _passing(self._sites, ended, begun) >= need


def _passing(sites: Sites, ended: tuple[_Active, ...], begun: tuple[_Option, ...]) -> int:
    """Return the most that can pass from ended machines to begun ones, a minimal cut of sites."""
    every = range(sites.count)
    sent, senders, taken, takers = ([0] * sites.count for _ in range(4))
    for _, g, k in ended:
        sent[sites.groups[g].site] += sites.groups[g].rates[k - 1]
        senders[sites.groups[g].site] += 1
    for option in begun:
        taken[sites.groups[option.group].site] += option.rate
        takers[sites.groups[option.group].site] += 1
    least = sum(sent)
    for near in product((False, True), repeat=sites.count):  # sites whose senders are not cut off
        cut = sum(sent[p] for p in every if not near[p])
        for q in every:
            # Their links to the machines that begin at a site are cut, or these machines.
            links = sum(sites.best[p][q] * senders[p] * takers[q] for p in every if near[p])
            unlimited = near[q] and senders[q] > 0
            cut += taken[q] if unlimited else min(taken[q], links)
        least = min(least, cut)
    return least
