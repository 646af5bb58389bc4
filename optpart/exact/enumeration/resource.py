"""Events, the arcs between them, and the resources that their intervals share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: A variable and an offset, for the moment ``start[variable] + offset``.
Event = tuple[int, int]

#: ``(i, j, w)`` means ``start[j] ≥ start[i] + w``.
Arc = tuple[int, int, int]


@dataclass(frozen=True)
class Use:
    """An interval on a resource: from ``begin`` until the latest of ``ends``."""

    begin: Event
    ends: tuple[Event, ...]
    amount: int = 1


@dataclass(frozen=True)
class Resource:
    """A limit on the sum of concurrent uses.

    On an *occupied* resource, a use of zero length conflicts with a longer use that contains it,
    but not at its borders. In memory, it takes no space.
    """

    limit: int
    uses: list[Use]
    occupied: bool

    def excess(self, start: list[int]) -> list[Use]:
        """Return a minimal set of uses that overlap pairwise and exceed the limit."""
        uses = self.uses
        begin = [start[i] + c for i, c in (use.begin for use in uses)]
        end = [max(start[i] + c for i, c in use.ends) for use in uses]
        for z in sorted(range(len(uses)), key=begin.__getitem__):
            if begin[z] == end[z] and not self.occupied:
                continue
            together = [
                i
                for i in range(len(uses))
                if i == z or (begin[i] <= begin[z] < end[i] and begin[i] < end[z])
            ]
            over = sum(uses[i].amount for i in together) - self.limit
            if over > 0:
                # Drop small uses first: fewer uses leave fewer pairs to branch on.
                for i in sorted(together, key=lambda i: uses[i].amount):
                    if uses[i].amount < over:
                        over -= uses[i].amount
                        together.remove(i)
                return [uses[i] for i in together]
        return []

    def ways(self, together: list[Use]) -> Iterator[list[Arc]]:
        """Yield, for each way to separate two of the conflicting uses, the arcs that enforce it."""
        for first in together:
            for second in together:
                # In memory, a use may also shrink to zero length.
                if first is not second or not self.occupied:
                    arcs = [before(end, second.begin) for end in first.ends]
                    if all(i != j or w <= 0 for i, j, w in arcs):
                        yield arcs

    def free_at(self, start: list[int]) -> int:
        """Return the earliest time from which the resource can stay free, given least starts."""
        now = 0
        for begin, end in sorted(
            (start[use.begin[0]] + use.begin[1], start[end[0]] + end[1])
            for use in self.uses
            for end in use.ends
        ):
            now = max(now, begin) + end - begin
        return now


def earliest(start: list[int], arcs: list[Arc]) -> list[int] | None:
    """Return the least starts, at least ``start``, that satisfy the arcs; ``None`` if none do."""
    start = start.copy()
    # Without a positive cycle, a longest path has fewer arcs than there are variables.
    for _ in range(len(start) + 1):
        changed = False
        for i, j, w in arcs:
            if start[i] + w > start[j]:
                start[j] = start[i] + w
                changed = True
        if not changed:
            return start
    return None


def before(first: Event, second: Event) -> Arc:
    """Return the arc that keeps one event no later than another."""
    return first[0], second[0], first[1] - second[1]
