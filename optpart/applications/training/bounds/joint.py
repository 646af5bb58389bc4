"""One CP-SAT model of the actions of all groups and of the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ortools.sat.python import cp_model

from optpart.applications.training.bounds.costs import Slice, Synchronisation
from optpart.applications.training.bounds.milp import Assignment, ChoiceModel, Key
from optpart.applications.training.bounds.rows import Resource, Row, Rows
from optpart.exact import cp_sat


@dataclass
class Task:
    """An optional interval on a resource."""

    start: Any
    length: Any
    present: Any

    @property
    def end(self) -> Any:
        """When it ends."""
        return self.start + self.length


#: One way to read a tensor: its literal, the slices, and the layouts of producer and consumer.
_Entry = tuple[Any, list[Slice], int, int]


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
        self._disjunctions: dict[tuple[int, ...], Any] = {}
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

    def found(self, value: cp_sat.Value) -> Assignment:
        """Read a solution from the values of the variables."""
        times = {key: (value(task.start), value(task.end)) for key, task in self.tasks.items()}
        return super().found(value)._replace(times=times)

    # --- tasks -----------------------------------------------------------------------------

    def _task(self, key: Key, lengths: Sequence[tuple[int, Any]], present: Any) -> Task:
        """Add a task whose length is that of the one literal that holds."""
        model = self.model
        start = model.new_int_var(0, self.most, "")
        sizes = sorted({size for size, _ in lengths})
        length: Any = sizes[0]
        if len(sizes) == 1:
            interval = model.new_optional_fixed_size_interval_var(start, length, present, "")
        else:
            length = model.new_int_var_from_domain(cp_model.Domain.from_values(sizes), "")
            total = sum(value * literal for value, literal in lengths)
            model.add(length == total).only_enforce_if(present)
            end = model.new_int_var(0, 2 * self.most, "")
            model.add(end == start + length)
            interval = model.new_optional_interval_var(start, length, end, present, "")
        task = self.tasks[key] = Task(start, length, present)
        kind = {"transfer": "link", "up": "link", "down": "link", "allreduce": "nccl"}
        self._on.setdefault((kind.get(key[0], "device"), key[3], key[4]), []).append(interval)
        model.add(task.end <= self.makespan).only_enforce_if(present)
        return task

    def _operations(self) -> None:
        costs = self.costs
        self.run: list[dict[int, Task]] = []
        for o in range(len(self.rows.graph)):
            g = costs.group_of[o]
            self.run.append({})
            for d in range(costs.k):
                lengths = [
                    (int(costs.duration[o, layout, d]), literal)
                    for layout, literal in self.layout[g].items()
                    if costs.present[layout, d]
                ]
                if lengths:
                    key = ("run", o, 0, d, d, None)
                    self.run[o][d] = self._task(key, lengths, self.there[g][d])

    # --- tensors ---------------------------------------------------------------------------

    def _outputs(self, o: int) -> None:
        rows, graph = self.rows, self.rows.graph
        tensors: dict[int, dict[tuple[int, bool], list[int]]] = {}
        for e in rows.out_edges[o]:
            edge = graph.edges[e]
            key = self.costs.group_of[edge.consumer], graph.operations[edge.consumer].splittable
            tensors.setdefault(edge.output, {}).setdefault(key, []).append(e)
        for ways in tensors.values():
            first = next(iter(ways.values()))[0]
            if graph.sums(graph.edges[first]):
                self._sum([e for edges in ways.values() for e in edges])
            else:
                self._convert(o, list(ways.values()))

    def _convert(self, o: int, ways: list[list[int]]) -> None:
        """Add Splits, transfers and Concats of one tensor, and precedences to its consumers."""
        costs, graph = self.costs, self.rows.graph
        g, output = costs.group_of[o], graph.edges[ways[0][0]].output
        cells = [(edges, self._entries(g, edges)) for edges in ways]
        # Even what takes no time is a task of its own, so that two consumers may both have one.
        shared = sum(any(map(_moves, entries)) for _, entries in cells) > 1
        splits: dict[Key, list[tuple[int, Any]]] = {}
        transfers: dict[Key, list[tuple[int, Any]]] = {}
        concats: dict[Key, list[tuple[int, Any]]] = {}

        def transfer_key(piece: Slice) -> Key:
            part = piece.interval if shared else None
            return "transfer", o, output, piece.source, piece.target, part

        def concat_key(reader: int, layout: int, e: int) -> Key:
            part = costs.read_by(reader, layout, e) if shared else None
            return "concat", o, output, e, e, part

        for edges, entries in cells:
            edge = graph.edges[edges[0]]
            for literal, slices, a, b in entries:
                for f in {piece.source for piece in slices if piece.split}:
                    time = costs.copy(f, costs.bytes_of(edge, edge.producer, a, f))
                    splits.setdefault(("split", o, output, f, f, None), []).append((time, literal))
                for e in {piece.target for piece in slices if piece.concatenated}:
                    time = costs.copy(e, costs.bytes_of(edge, edge.consumer, b, e))
                    key = concat_key(edge.consumer, b, e)
                    concats.setdefault(key, []).append((time, literal))
                for piece in slices:
                    if piece.source != piece.target:
                        moving = costs.transfer(piece.source, piece.target, piece.size)
                        assert moving is not None
                        transfers.setdefault(transfer_key(piece), []).append((moving, literal))
        task = {
            key: self._shared(key, found, shared)
            for keys in (splits, transfers, concats)
            for key, found in keys.items()
        }
        waits: dict[tuple[int, int], list[Any]] = {}
        direct: dict[tuple[int, int, int], list[tuple[int, Any]]] = {}

        def after(one: Task, two: Task, literal: Any) -> None:
            waits.setdefault((id(one), id(two)), [one, two]).append(literal)

        for edges, entries in cells:
            edge = graph.edges[edges[0]]
            for literal, slices, a, b in entries:
                for piece in slices:
                    f, e = piece.source, piece.target
                    way = [self.run[o][f]]  # what happens one after the other
                    if piece.split:
                        way.append(task["split", o, output, f, f, None])
                    if f != e:
                        way.append(task[transfer_key(piece)])
                    delay = int(self.rows.moves[edges[0]].delay[a, b, f, e])
                    for i in edges:
                        reader = graph.edges[i].consumer
                        direct.setdefault((reader, f, e), []).append((delay, literal))
                    if piece.concatenated:
                        way.append(task[concat_key(edge.consumer, b, e)])
                    for one, two in pairwise(way):
                        after(one, two, literal)
                    for i in edges:
                        after(way[-1], self.run[graph.edges[i].consumer][e], literal)
        for one, two, *literals in waits.values():
            self._wait(one, two, literals)
        for (v, f, e), found in direct.items():
            if any(delay for delay, _ in found):
                end = self.run[o][f].end + sum(delay * x for delay, x in found if delay)
                self._enforce(self.run[v][e].start >= end, [x for _, x in found])

    def _entries(self, g: int, edges: list[int]) -> list[_Entry]:
        """Return the entries of one way to read a tensor, by the layouts of both ends."""
        edge, missing = self.rows.graph.edges[edges[0]], self.rows.moves[edges[0]].missing
        h = self.costs.group_of[edge.consumer]
        if g == h:
            cells = [((a, a), literal) for a, literal in self.layout[g].items()]
        else:
            pair = self.w[self.rows.pair[min(g, h), max(g, h)]].items()
            cells = [(key if g < h else key[::-1], literal) for key, literal in pair]
        return [
            (literal, list(self.costs.slices(edge, a, b)), a, b)
            for (a, b), literal in cells
            if not missing[a, b]  # then no action of this layout is possible
        ]

    def _shared(self, key: Key, found: list[tuple[int, Any]], shared: bool) -> Task:
        literals = [literal for _, literal in found]
        if not shared:
            distinct = {literal.index: literal for literal in literals}
            return self._task(key, found, self._any(list(distinct.values())))
        present = self._equals_any(literals)
        sizes: dict[int, list[Any]] = {}
        for size, literal in found:
            sizes.setdefault(size, []).append(literal)
        if len(sizes) > 1:  # only the length of a Split differs, by the layout of the producer
            found = [(size, self._equals_any(some)) for size, some in sizes.items()]
        return self._task(key, found, present)

    def _equals_any(self, literals: list[Any]) -> Any:
        """Return a literal that holds if and only if one of some does."""
        result = self.model.new_bool_var("")
        for literal in literals:
            self.model.add_implication(literal, result)
        self.model.add_bool_or([*literals, ~result])
        return result

    def _wait(self, one: Task, two: Task, literals: list[Any]) -> None:
        self._enforce(two.start >= one.end, literals)

    def _enforce(self, constraint: Any, literals: list[Any]) -> None:
        """Add a constraint that holds if one of some literals does."""
        distinct = {literal.index: literal for literal in literals}
        if not distinct:
            return
        condition = next(iter(distinct.values()))
        if len(distinct) > 1:
            key = tuple(sorted(distinct))
            if key not in self._disjunctions:
                self._disjunctions[key] = self.model.new_bool_var("")
                for literal in distinct.values():
                    self.model.add_implication(literal, self._disjunctions[key])
            condition = self._disjunctions[key]
        self.model.add(constraint).only_enforce_if(condition)

    # --- gradients -------------------------------------------------------------------------

    def _sum(self, edges: list[int]) -> None:
        rows, costs = self.rows, self.costs
        edge, moves = rows.graph.edges[edges[0]], rows.moves[edges[0]]
        assert isinstance(moves, Synchronisation)
        o, output, g = edge.producer, edge.output, costs.group_of[edge.producer]
        actions, y, run = costs.actions[g], self.y[g], self.run[o]
        applies = [self.run[rows.graph.edges[e].consumer] for e in edges]
        producer = rows.graph.operations[o]
        size = producer.outputs[output].size.alpha
        fine = [a for a in range(len(actions)) if rows.possible[rows.y[g] + a]]
        summing = [a for a in fine if len(actions[a].devices) > 1 and producer.splittable]

        def using(d: int, among: list[int]) -> list[Any]:
            return [y[a] for a in among if d in actions[a].devices]

        def let_apply(task: Task, d: int, literals: list[Any]) -> None:
            for apply in applies:
                self._wait(task, apply[d], literals)

        for d, task in run.items():
            let_apply(task, d, using(d, fine))
        collective = [a for a in summing if actions[a].sync == "allreduce"]
        if collective:
            lengths = [(int(moves.collective[a]), y[a]) for a in collective]
            present = self._any([x for _, x in lengths])
            reduced = self._task(("allreduce", o, output, 0, 0, None), lengths, present)
            for d, task in run.items():
                here = using(d, collective)
                if here:
                    self._wait(task, reduced, here)
                    let_apply(reduced, d, here)
        for s in range(costs.k):
            served = [a for a in summing if actions[a].sync == s]
            if not served:
                continue
            lengths = [(costs.copy(s, size), y[a]) for a in served]
            present = self._any([x for _, x in lengths])
            added = self._task(("add", o, output, s, s, None), lengths, present)
            for d in range(costs.k):
                here = using(d, served)
                if not here:
                    continue
                if d == s:
                    self._wait(run[d], added, here)
                    let_apply(added, d, here)
                    continue
                present = self._any(here)
                to, fro = costs.transfer(d, s, size), costs.transfer(s, d, size)
                assert to is not None
                assert fro is not None
                up = self._task(("up", o, output, d, s, None), [(to, present)], present)
                down = self._task(("down", o, output, s, d, None), [(fro, present)], present)
                self._wait(run[d], up, here)
                self._wait(up, added, here)
                self._wait(added, down, here)
                let_apply(down, d, here)


def _moves(entry: _Entry) -> bool:
    """Return whether an entry has a Split, a transfer or a Concat."""
    return any(x.source != x.target or x.split or x.concatenated for x in entry[1])
