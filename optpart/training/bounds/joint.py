"""One CP-SAT model of the actions of all groups and of the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ortools.sat.python import cp_model

from optpart.training.bounds.choice_model import ChoiceModel
from optpart.training.bounds.costs import Slice, Synchronisation
from optpart.training.bounds.rows import Resource, Row, Rows

#: What runs on a device or a link: kind, operation, output, and two devices.
Key = tuple[str, int, int, int, int, tuple[Fraction, Fraction] | None]


@dataclass
class Task:
    """Something that occupies a resource, if it is present.

    Attributes
    ----------
    start : IntVar
    length : linear expression or int
    present : literal
    """

    start: Any
    length: Any
    present: Any

    @property
    def end(self) -> Any:
        """When it ends."""
        return self.start + self.length


class JointModel(ChoiceModel):
    """Variables for actions and starts; every solution is a strategy with an order.

    Attributes
    ----------
    tasks : dict
        Everything that may run, by key.
    """

    def __init__(self, rows: Rows, least: int, most: int, cuts: Iterable[Row] = ()) -> None:
        super().__init__(rows, least, most, cuts)
        self.tasks: dict[Key, Task] = {}
        self._on: dict[Resource, list[Any]] = {}
        self._operations()
        for o in range(len(rows.graph)):
            self._outputs(o)
        for intervals in self._on.values():
            self.model.add_no_overlap(intervals)

    def hint(self, chosen: Sequence[int], starts: dict[Key, int]) -> None:
        """Propose a strategy and its starts."""
        for row, action in zip(self.y, chosen, strict=True):
            for a, literal in enumerate(row):
                self.model.add_hint(literal, a == action)
        for key, task in self.tasks.items():
            if key in starts and starts[key] <= self.most:
                self.model.add_hint(task.start, starts[key])

    # --- tasks -----------------------------------------------------------------------------

    def _task(
        self, key: Key, resource: Resource, lengths: Sequence[tuple[int, Any]], present: Any
    ) -> Task:
        """Add a task whose length is that of the one literal that holds."""
        model = self.model
        start = model.new_int_var(0, self.most, "")
        sizes = sorted({size for size, _ in lengths})
        size: Any
        if len(sizes) == 1:
            length = size = sizes[0]
            interval = model.new_optional_fixed_size_interval_var(start, size, present, "")
        else:
            size = model.new_int_var_from_domain(cp_model.Domain.from_values(sizes), "")
            length = sum(value * literal for value, literal in lengths)
            model.add(size == length).only_enforce_if(present)
            end = model.new_int_var(0, 2 * self.most, "")
            model.add(end == start + size)
            interval = model.new_optional_interval_var(start, size, end, present, "")
            length = size
        task = Task(start, length, present)
        self.tasks[key] = task
        self._on.setdefault(resource, []).append(interval)
        model.add(task.end <= self.makespan).only_enforce_if(present)
        return task

    def _operations(self) -> None:
        rows, costs = self.rows, self.costs
        self.run: list[dict[int, Task]] = []
        for o in range(len(rows.graph)):
            g = costs.choices.group_of[o]
            row = {}
            for d in range(costs.k):
                lengths = [
                    (int(costs.duration[o, layout, d]), literal)
                    for layout, literal in self.layout[g].items()
                    if costs.present[layout, d]
                ]
                if lengths:
                    key = ("run", o, 0, d, d, None)
                    row[d] = self._task(key, ("device", d, d), lengths, self.there[g][d])
            self.run.append(row)

    # --- tensors ---------------------------------------------------------------------------

    def _outputs(self, o: int) -> None:
        rows, graph = self.rows, self.rows.graph
        home = self.costs.choices.group_of
        tensors: dict[int, dict[tuple[int, bool], list[int]]] = {}
        for e in rows.out_edges[o]:
            edge = graph.edges[e]
            key = home[edge.consumer], graph.operations[edge.consumer].splittable
            tensors.setdefault(edge.output, {}).setdefault(key, []).append(e)
        for ways in tensors.values():
            first = next(iter(ways.values()))[0]
            if rows.sums(graph.edges[first]):
                self._sum([e for edges in ways.values() for e in edges])
            else:
                self._convert(o, list(ways.values()))

    def _convert(self, o: int, ways: list[list[int]]) -> None:
        """Add what brings one tensor to its consumers, and make them wait for it."""
        rows, costs, graph = self.rows, self.costs, self.rows.graph
        g = costs.choices.group_of[o]
        output = graph.edges[ways[0][0]].output
        # Even what takes no time is a task of its own, so that two consumers may both have one.
        shared = sum(any(map(self._moves, self._entries(g, edges))) for edges in ways) > 1
        cells: list[tuple[list[int], list[tuple[Any, list[Slice], int, int]]]] = []
        splits: dict[int, list[tuple[int, Any]]] = {}
        transfers: dict[tuple[int, int, Any], list[tuple[int, Any]]] = {}
        concats: dict[tuple[int, Any], list[tuple[int, Any]]] = {}
        for edges in ways:
            edge = graph.edges[edges[0]]
            entries = self._entries(g, edges)
            for literal, slices, a, b in entries:
                for f in {piece.source for piece in slices if piece.split}:
                    time = costs.copy(f, costs.bytes_of(edge, edge.producer, a, f))
                    splits.setdefault(f, []).append((time, literal))
                for e in {piece.target for piece in slices if piece.concatenated}:
                    time = costs.copy(e, costs.bytes_of(edge, edge.consumer, b, e))
                    key = self._whole(edge.consumer, b, e) if shared else None
                    concats.setdefault((e, key), []).append((time, literal))
                for piece in slices:
                    if piece.source != piece.target:
                        moving = costs.transfer(piece.source, piece.target, piece.size)
                        assert moving is not None
                        key = piece.interval if shared else None
                        transfers.setdefault((piece.source, piece.target, key), []).append(
                            (moving, literal)
                        )
            cells.append((edges, entries))
        split = {
            f: self._shared(("split", o, output, f, f, None), ("device", f, f), found, shared)
            for f, found in splits.items()
        }
        moved = {
            key: self._shared(
                ("transfer", o, output, key[0], key[1], key[2]),
                ("link", key[0], key[1]),
                found,
                shared,
            )
            for key, found in transfers.items()
        }
        joined = {
            key: self._shared(
                ("concat", o, output, key[0], key[0], key[1]),
                ("device", key[0], key[0]),
                found,
                shared,
            )
            for key, found in concats.items()
        }
        waits: dict[tuple[Any, Any, int], list[Any]] = {}
        direct: dict[tuple[int, int, int], list[tuple[int, Any]]] = {}

        def after(one: Any, two: Any, literal: Any, kind: int = 0) -> None:
            waits.setdefault((id(one), id(two), kind), [one, two]).append(literal)

        for edges, entries in cells:
            edge = graph.edges[edges[0]]
            for literal, slices, a, b in entries:
                for piece in slices:
                    f, e = piece.source, piece.target
                    source = self.run[o][f]
                    if piece.split:
                        after(source, split[f], literal)
                        source = split[f]
                    if f != e:
                        task = moved[f, e, piece.interval if shared else None]
                        after(source, task, literal)
                        source = task
                    delay = int(rows.moves[edges[0]].delay[a, b, f, e])
                    for i in edges:
                        direct.setdefault((graph.edges[i].consumer, f, e), []).append(
                            (delay, literal)
                        )
                    if piece.concatenated:
                        task = joined[e, self._whole(edge.consumer, b, e) if shared else None]
                        after(source, task, literal)
                        source = task
                    for i in edges:
                        after(source, self.run[graph.edges[i].consumer][e], literal)
        for one, two, *literals in waits.values():
            self._wait(one, two, literals)
        for (v, f, e), found in direct.items():
            if any(delay for delay, _ in found):
                end = self.run[o][f].end + sum(delay * x for delay, x in found if delay)
                self._enforce(self.run[v][e].start >= end, [x for _, x in found])

    def _entries(self, g: int, edges: list[int]) -> list[tuple[Any, list[Slice], int, int]]:
        """Return what one way of reading a tensor takes, by the layouts of both ends."""
        edge = self.rows.graph.edges[edges[0]]
        missing = self.rows.moves[edges[0]].missing
        return [
            (literal, list(self.costs.slices(edge, a, b)), a, b)
            for (a, b), literal in self._cells(g, self.costs.choices.group_of[edge.consumer])
            if not missing[a, b]  # then no action of this layout is possible
        ]

    def _moves(self, entry: tuple[Any, list[Slice], int, int]) -> bool:
        """Return whether anything but reading what is there is done."""
        return any(x.source != x.target or x.split or x.concatenated for x in entry[1])

    def _cells(self, g: int, h: int) -> list[tuple[tuple[int, int], Any]]:
        if g == h:
            return [((a, a), literal) for a, literal in self.layout[g].items()]
        p = self.rows.pair[min(g, h), max(g, h)]
        if g < h:
            return list(self.w[p].items())
        return [((b, a), literal) for (a, b), literal in self.w[p].items()]

    def _whole(self, consumer: int, layout: int, device: int) -> tuple[Fraction, Fraction]:
        if not self.rows.graph.operations[consumer].splittable:
            return Fraction(0), Fraction(1)
        return self.costs.intervals[layout][device]

    def _shared(
        self, key: Key, resource: Resource, found: list[tuple[int, Any]], shared: bool
    ) -> Task:
        literals = [literal for _, literal in found]
        if not shared:
            distinct = {literal.index: literal for literal in literals}
            return self._task(key, resource, found, self._any(list(distinct.values())))
        present = self.model.new_bool_var("")
        for literal in literals:
            self.model.add_implication(literal, present)
        self.model.add_bool_or([*literals, ~present])
        sizes: dict[int, list[Any]] = {}
        for size, literal in found:
            sizes.setdefault(size, []).append(literal)
        if len(sizes) == 1:
            return self._task(key, resource, found, present)
        # Only the length of a Split differs, by the layout of the producer.
        chosen = []
        for size, some in sizes.items():
            one = self.model.new_bool_var("")
            for literal in some:
                self.model.add_implication(literal, one)
            self.model.add_bool_or([*some, ~one])
            chosen.append((size, one))
        return self._task(key, resource, chosen, present)

    def _wait(self, one: Task, two: Task, literals: list[Any]) -> None:
        self._enforce(two.start >= one.end, literals)

    def _enforce(self, constraint: Any, literals: list[Any]) -> None:
        distinct = {literal.index: literal for literal in literals}
        self.model.add(constraint).only_enforce_if(self._one_of(distinct))

    def _one_of(self, literals: dict[int, Any]) -> Any:
        if len(literals) == 1:
            return next(iter(literals.values()))
        key = tuple(sorted(literals))
        known: dict[Any, Any] = self.__dict__.setdefault("_ors", {})
        if key not in known:
            known[key] = self.model.new_bool_var("")
            for literal in literals.values():
                self.model.add_implication(literal, known[key])
        return known[key]

    # --- gradients -------------------------------------------------------------------------

    def _sum(self, edges: list[int]) -> None:
        rows, costs = self.rows, self.costs
        edge = rows.graph.edges[edges[0]]
        o, output = edge.producer, edge.output
        moves = rows.moves[edges[0]]
        assert isinstance(moves, Synchronisation)
        g = costs.choices.group_of[o]
        actions = costs.choices.actions[g]
        applies = [self.run[rows.graph.edges[e].consumer] for e in edges]
        producer = rows.graph.operations[o]
        size = producer.outputs[output].size.alpha
        local = [a for a, x in enumerate(actions) if len(x.devices) == 1 or not producer.splittable]
        fine = [a for a in range(len(actions)) if rows.possible[rows.y[g] + a]]
        collective = [
            (int(moves.collective[a]), self.y[g][a])
            for a in fine
            if a not in local and actions[a].sync == "allreduce"
        ]
        for d in self.run[o]:
            here = [self.y[g][a] for a in fine if d in actions[a].devices]
            for apply in applies:
                self._wait(self.run[o][d], apply[d], here)
        if collective:
            key = ("allreduce", o, output, 0, 0, None)
            task = self._task(
                key, ("nccl", 0, 0), collective, self._any([x for _, x in collective])
            )
            for d in self.run[o]:
                here = [
                    self.y[g][a]
                    for a in fine
                    if a not in local and actions[a].sync == "allreduce" and d in actions[a].devices
                ]
                if here:
                    self._wait(self.run[o][d], task, here)
                    for apply in applies:
                        self._wait(task, apply[d], here)
        for s in range(costs.k):
            served = [a for a in fine if a not in local and actions[a].sync == s]
            if not served:
                continue
            lengths = [(costs.copy(s, size), self.y[g][a]) for a in served]
            add = self._task(
                ("add", o, output, s, s, None),
                ("device", s, s),
                lengths,
                self._any([x for _, x in lengths]),
            )
            for d in range(costs.k):
                here = [self.y[g][a] for a in served if d in actions[a].devices]
                if not here:
                    continue
                if d == s:
                    self._wait(self.run[o][d], add, here)
                    for apply in applies:
                        self._wait(add, apply[d], here)
                    continue
                present = self._any(here)
                to, fro = costs.transfer(d, s, size), costs.transfer(s, d, size)
                assert to is not None
                assert fro is not None
                up = self._task(
                    ("up", o, output, d, s, None), ("link", d, s), [(to, present)], present
                )
                down = self._task(
                    ("down", o, output, s, d, None), ("link", s, d), [(fro, present)], present
                )
                self._wait(self.run[o][d], up, here)
                self._wait(up, add, here)
                self._wait(add, down, here)
                for apply in applies:
                    self._wait(down, apply[d], here)
