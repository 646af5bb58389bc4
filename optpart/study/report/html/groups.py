"""Groups of vertices, so that a large graph can be drawn: a tree by name scope, part or depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from optpart.exact.series.parts import parts
from optpart.problem.graph import Graph

#: Up to this many vertices, a graph is drawn without groups.
UNGROUPED = 1000

#: Most groups within a group, and most vertices of a group that is not divided.
_MOST = 40

By = Literal["", "scope", "part", "depth"]


@dataclass
class Groups:
    """A tree of groups.

    Attributes
    ----------
    by : str
        What the outermost groups are; empty without groups.
    names : list of str
    parent : list of int
        The group that each group is in; -1 for the outermost ones. Parents come first.
    of : list of int, length n
        The innermost group of each vertex; -1 without groups.
    """

    by: By
    names: list[str] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    of: list[int] = field(default_factory=list)


def groups_of(graph: Graph, least: int = _MOST) -> Groups:
    """Divide a graph into groups, and those into smaller ones.

    Parameters
    ----------
    least : int
        Groups of at most this many vertices are not divided.
    """
    n = len(graph)
    if n <= UNGROUPED:
        return Groups("", of=[-1] * n)
    return _Division(graph, max(least, _MOST)).run()


class _Division:
    def __init__(self, graph: Graph, least: int) -> None:
        self.least = least
        self.order: list[int] = graph.topological_order.tolist()
        self.paths = [name.split("/") for name in graph.names]
        scoped = sum(len(path) > 1 for path in self.paths)
        self.rank = [0] * len(graph)
        for i, v in enumerate(self.order):
            self.rank[v] = i
        self.part = [0] * len(graph)
        pieces = parts(graph)
        for number, piece in enumerate(pieces):
            for v in piece.vertices:
                self.part[v] = number
        by: By = "depth"
        if 2 * scoped > len(graph):
            by = "scope"
        elif len(pieces) > 1:
            by = "part"
        self.groups = Groups(by, of=[-1] * len(graph))

    def run(self) -> Groups:
        if self.groups.by == "scope":
            self._by_scope(self.order, -1, 0)
        elif self.groups.by == "part":
            self._by_part()
        else:
            self._by_rank(self.order, -1, "position")
        return self.groups

    def _add(self, name: str, parent: int) -> int:
        self.groups.names.append(name)
        self.groups.parent.append(parent)
        return len(self.groups.names) - 1

    def _close(self, vertices: Sequence[int], group: int) -> None:
        for v in vertices:
            self.groups.of[v] = group

    def _by_scope(self, vertices: Sequence[int], parent: int, level: int) -> None:
        if parent >= 0 and len(vertices) <= self.least:
            self._close(vertices, parent)
            return
        inside: dict[str, list[int]] = {}
        for v in vertices:
            path = self.paths[v]
            # The last part of a name is the vertex itself, not a scope.
            scope = path[level] if level < len(path) - 1 else ""
            inside.setdefault(scope, []).append(v)
        if set(inside) == {""} or len(inside) > len(vertices) / 2:
            self._by_rank(vertices, parent, "position")
            return
        if len(inside) == 1:
            if parent >= 0:
                self.groups.names[parent] += f"/{next(iter(inside))}"
            self._by_scope(vertices, parent, level + 1)
            return
        for scope, members in self._fewer(inside):
            outer = "/".join(self.paths[members[0]][:level])
            name = f"{outer}/{scope or '(other)'}" if outer else scope or "(other)"
            group = self._add(name, parent)
            if scope in inside and scope:
                self._by_scope(members, group, level + 1)
            else:
                self._by_rank(members, group, "position")

    def _fewer(self, inside: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
        """Join scopes that follow one another if there are too many."""
        listed = sorted(inside.items(), key=lambda item: self.rank[item[1][0]])
        if len(listed) <= 2 * _MOST:
            return listed
        size = -(-len(listed) // _MOST)
        joined = []
        for i in range(0, len(listed), size):
            run = listed[i : i + size]
            name = run[0][0] if len(run) == 1 else f"{run[0][0]} … {run[-1][0]}"
            joined.append((name, [v for _, members in run for v in members]))
        return joined

    def _by_part(self) -> None:
        last = self.part[self.order[-1]] + 1
        inside: dict[int, list[int]] = {}
        for v in self.order:
            inside.setdefault(self.part[v], []).append(v)
        size = -(-last // _MOST)
        for low in range(0, last, size):
            high = min(low + size, last)
            name = f"part {low + 1}" if high == low + 1 else f"parts {low + 1}–{high}"
            members = [v for part in range(low, high) for v in inside.get(part, ())]
            self._by_rank(members, self._add(name, -1), "position")

    def _by_rank(self, vertices: Sequence[int], parent: int, word: str) -> None:
        """Divide vertices into runs of the topological order."""
        if parent >= 0 and len(vertices) <= self.least:
            self._close(vertices, parent)
            return
        ordered = sorted(vertices, key=self.rank.__getitem__)
        size = max(self.least, -(-len(ordered) // _MOST))
        for low in range(0, len(ordered), size):
            run = ordered[low : low + size]
            name = f"{word} {self.rank[run[0]] + 1}–{self.rank[run[-1]] + 1}"
            group = self._add(name, parent)
            if len(run) == len(ordered):
                self._close(run, group)
            else:
                self._by_rank(run, group, word)
