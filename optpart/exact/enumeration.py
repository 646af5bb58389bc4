"""An independent branch and bound: the judge of last resort for every model of design §2.

Placements are enumerated unit by unit. Under a placement, everything that has a time is an *event*,
the start of a vertex or of a transfer plus a constant, and every rule has one of two forms:

* event ``a`` is no later than event ``b`` (precedence), or
* at no moment do the intervals on a resource ``[begin, latest of ends)`` add up to more than its
  limit: a device, a link or a port with its channels, or the memory of a device.

Rules of the first form alone have a componentwise least solution, the longest paths. If it breaks
a rule of the second form, some intervals that overlap pairwise are too much together. Intervals on
a line that overlap pairwise have a common moment, so in every valid schedule one of them has ended
when another begins; to try each such pair is to miss nothing, and each pair adds rules of the first
form. If the least solution breaks nothing, no schedule of this branch has a smaller makespan:
the branch is finished.

That is exact for memory models as well, where to start a vertex later may be what makes a schedule
valid: nothing is ever assumed to start as early as it could but for the rules added. All numbers
are Python integers over a common denominator, so nothing is rounded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpart.errors import UnsupportedError
from optpart.limits import check_seed
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.goal import Goal, Task
from optpart.solution.result import Budget, Progress, Result, Watch, conclude
from optpart.solution.schedule import Schedule, Transfers
from optpart.solution.termination import Termination

#: Larger graphs take impractically long.
MAX_VERTICES = 12

#: Branches that count as one unit of deterministic time.
_BRANCHES = 10_000

#: Variable and offset: the moment ``start[variable] + offset``.
Event = tuple[int, int]

#: ``(i, j, w)``: ``start[j] ≥ start[i] + w``.
Arc = tuple[int, int, int]

#: A device, a link or one of the two ports of a device.
Place = tuple[str, int] | tuple[str, int, int]

#: Makespan and traffic, as integers.
Value = tuple[int, int]


def enumerate_all(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
    goal: Goal = Goal(),  # noqa: B008
) -> Result:
    """Solve a small instance of any model exactly, by enumeration.

    Parameters
    ----------
    seed : int
        Without effect: nothing is drawn.
    start : Schedule, optional
        Its placement is tried first.
    goal : Goal
        Every objective, limit and given decision is supported.

    Returns
    -------
    Result
        Optimal or infeasible unless the budget ran out. The bound holds for the instance under
        what ``goal`` gives.

    Raises
    ------
    UnsupportedError
        If the graph has more than :data:`MAX_VERTICES` vertices.
    InputError
        If ``goal`` names what the instance does not have.
    """
    check_seed(seed)
    check_scope(instance, goal)
    return _Search(instance, goal, budget or Budget(), start, watch).run(seed)


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise an :class:`UnsupportedError` if the graph is too large."""
    if instance.vertices > MAX_VERTICES:
        raise UnsupportedError(
            "vertices",
            f"enumerate does not solve {instance.vertices} vertices",
            f"give at most {MAX_VERTICES}, or use another exact method",
        )
    goal.check(instance)


class _Numbers:
    """The instance as integers: times over ``scale``, sizes and memory over ``measure``."""

    def __init__(self, instance: Instance, goal: Goal) -> None:
        graph, cluster = instance.graph, instance.cluster
        n, k = len(graph), len(cluster)
        self.n, self.k = n, k
        times = [[_run_time(instance, goal, v, d) for d in range(k)] for v in range(n)]
        delays = [
            [[_delay(instance, t, d, e) for e in range(k)] for d in range(k)]
            for t in range(graph.tensors)
        ]
        sends = [
            instance.model.send_ops / speed if instance.model.communication == "sendrecv" else 0
            for speed in cluster.speed.fractions()
        ]
        known = [*sends, *(t for row in times for t in row)]
        known += [t for matrix in delays for row in matrix for t in row]
        self.scale = math.lcm(1, *(t.denominator for t in known if t is not None))
        self.time = [[_whole(t, self.scale) for t in row] for row in times]
        self.delay = [[[_whole(t, self.scale) for t in row] for row in m] for m in delays]
        self.send = [int(t * self.scale) for t in sends]

        sizes, resident = graph.tensor_size.fractions(), graph.memory.fractions()
        amounts = [*sizes, *resident, *(m for m in cluster.memory if m is not None)]
        self.measure = math.lcm(1, *(amount.denominator for amount in amounts))
        self.size = [int(size * self.measure) for size in sizes]
        self.resident = [int(size * self.measure) for size in resident]
        self.capacity = [_whole(m, self.measure) for m in cluster.memory]

        self.producer = graph.tensor_vertex.tolist()
        self.edges = list(zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True))
        self.apart = graph.separation
        self.model = instance.model
        self.units = _units(n, graph.colocation, graph.topological_order.tolist())
        self.order = goal.order
        self.static = self._static()

    def _static(self) -> list[int]:
        """Memory that each vertex holds on its device for the whole run."""
        match self.model.memory:
            case "none" | "edges":
                return [0] * self.n
            case "refcount":
                return self.resident
            case "estimate":  # [L] §4.1 (3)
                need = self.resident.copy()
                for tensor, u in enumerate(self.producer):
                    need[u] += self.size[tensor]
                for v, tensor in set(self.edges):
                    need[v] += self.size[tensor]
                return need

    def crossings(self, device: list[int]) -> list[tuple[int, int]]:
        """Pairs (tensor, destination) that cross between vertices that have a device, ascending."""
        return sorted(
            {
                (tensor, device[v])
                for v, tensor in self.edges
                if -1 != device[v] != device[self.producer[tensor]] != -1
            }
        )

    def alike_devices(self) -> list[list[int]]:
        """Per device, the earlier devices that it is interchangeable with."""
        if any(isinstance(task, tuple) for pair in self.order for task in pair):
            return [[] for _ in range(self.k)]  # transfers name their destinations
        return [[d for d in range(e) if self._alike(d, e)] for e in range(self.k)]

    def _alike(self, d: int, e: int) -> bool:
        swapped = list(range(self.k))
        swapped[d], swapped[e] = e, d
        return (
            all(row[d] == row[e] for row in self.time)
            and self.send[d] == self.send[e]
            and self.capacity[d] == self.capacity[e]
            and all([[m[i][j] for j in swapped] for i in swapped] == m for m in self.delay)
        )

    def traffic(self, device: list[int]) -> int:
        return sum(self.size[tensor] for tensor, _ in self.crossings(device))

    def possible(self, device: list[int]) -> bool:
        """Whether a placement, complete or not, keeps the rules in which no time occurs."""
        if any(device[a] == device[b] != -1 for a, b in self.apart):
            return False
        if any(
            self.delay[tensor][device[self.producer[tensor]]][target] is None
            for tensor, target in self.crossings(device)
        ):
            return False
        return all(
            capacity is None or self.held(device, d) <= capacity
            for d, capacity in enumerate(self.capacity)
        )

    def held(self, device: list[int], d: int) -> int:
        """Memory that is taken on a device for the whole run."""
        return sum(self.static[v] for v in range(self.n) if device[v] == d)


def _run_time(instance: Instance, goal: Goal, v: int, d: int) -> Fraction | None:
    """Run time of a vertex; ``None`` where it must not run."""
    graph, cluster, given = instance.graph, instance.cluster, instance.given_durations
    if goal.placement.get(v, d) != d:
        return None
    if graph.device_types[v] not in (None, cluster.types[d]):
        return None
    if v in graph.allowed_devices and cluster.names[d] not in graph.allowed_devices[v]:
        return None
    if given is None:
        return graph.ops[v] / cluster.speed[d]
    return given.times[v, d] if given.possible[v, d] else None


def _delay(instance: Instance, tensor: int, sender: int, receiver: int) -> Fraction | None:
    """δ of design §2; ``None`` where nothing can cross."""
    graph, cluster = instance.graph, instance.cluster
    if sender == receiver:
        return Fraction(0)
    rate = cluster.bandwidth[sender, receiver]
    infinite = cluster.infinite[sender, receiver]
    if not infinite and rate == 0:
        return None
    if tensor in graph.tensor_delay:
        return graph.tensor_delay[tensor][sender][receiver]
    latency = cluster.latency[sender, receiver]
    return latency if infinite else latency + graph.tensor_size[tensor] / rate


def _whole(number: Fraction | None, scale: int) -> int | None:
    return None if number is None else int(number * scale)


def _units(n: int, colocation: tuple[tuple[int, ...], ...], order: list[int]) -> list[set[int]]:
    """Vertices that share a device, in topological order of the first of each unit."""
    group = [{v} for v in range(n)]
    for members in colocation:
        merged = set().union(*(group[v] for v in members))
        for v in merged:
            group[v] = merged
    return [group[v] for i, v in enumerate(order) if not group[v] & set(order[:i])]


@dataclass(frozen=True)
class _Use:
    """An interval on a resource: from ``begin`` until the latest of ``ends``."""

    begin: Event
    ends: tuple[Event, ...]
    amount: int = 1


@dataclass(frozen=True)
class _Resource:
    """A limit on the sum of concurrent uses.

    On an *occupied* resource, a use of no length counts inside any longer use, but not at its
    borders; in memory it counts for nothing.
    """

    limit: int
    uses: list[_Use]
    occupied: bool

    def excess(self, start: list[int]) -> list[_Use]:
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
                # Fewer uses leave fewer pairs to try, and the large ones are fewer.
                for i in sorted(together, key=lambda i: uses[i].amount):
                    if uses[i].amount < over:
                        over -= uses[i].amount
                        together.remove(i)
                return [uses[i] for i in together]
        return []

    def ways(self, together: list[_Use]) -> Iterator[list[Arc]]:
        """Yield, for each way to separate two of the conflicting uses, the arcs that enforce it."""
        for first in together:
            for second in together:
                # In memory a use may also shrink to no length at all.
                if first is not second or not self.occupied:
                    arcs = [_before(end, second.begin) for end in first.ends]
                    if all(i != j or w <= 0 for i, j, w in arcs):
                        yield arcs

    def free_at(self, start: list[int]) -> int:
        """No schedule in which nothing starts earlier has this resource free for good before."""
        now = 0
        for begin, end in sorted(
            (start[use.begin[0]] + use.begin[1], start[end[0]] + end[1])
            for use in self.uses
            for end in use.ends
        ):
            now = max(now, begin) + end - begin
        return now


def _earliest(start: list[int], arcs: list[Arc]) -> list[int] | None:
    """Return the least starts of at least ``start`` that keep the arcs; ``None`` if none do."""
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


def _before(first: Event, second: Event) -> Arc:
    return first[0], second[0], first[1] - second[1]


class _Network:
    """Events, arcs and resources under a placement.

    Under a placement that is not complete it is a relaxation: what has no device yet takes its
    shortest time, needs no resource, and hands its tensors on at once.
    """

    def __init__(self, numbers: _Numbers, device: list[int]) -> None:
        self.numbers = numbers
        self.device = device
        self.length = [
            min((t for t in numbers.time[v] if t is not None), default=0)
            if d == -1
            else _known(numbers.time[v][d])
            for v, d in enumerate(device)
        ]
        self.variables = numbers.n
        self.arcs: list[Arc] = []
        #: What each task occupies, and when.
        self.tasks: dict[Task, tuple[list[Place], _Use]] = {
            v: ([("device", d)], _Use((v, 0), (self.end(v),)))
            for v, d in enumerate(device)
            if d != -1
        }
        self.begin: dict[tuple[int, int], Event] = {}
        self.arrival: dict[tuple[int, int], Event] = {}
        for crossing in numbers.crossings(device):
            self._transfer(*crossing)
        for v, tensor in numbers.edges:
            self.arcs.append(_before(self.available(tensor, v), (v, 0)))
        self._order()
        self.resources = [*self._occupied()]
        if -1 not in device:
            self.resources += self._memory()

    def end(self, v: int) -> Event:
        return v, self.length[v]

    def available(self, tensor: int, v: int) -> Event:
        """When ``v`` can have a tensor."""
        return self.arrival.get((tensor, self.device[v]), self.end(self.numbers.producer[tensor]))

    def _transfer(self, tensor: int, target: int) -> None:
        numbers = self.numbers
        u = numbers.producer[tensor]
        sender = self.device[u]
        delay, send = _known(numbers.delay[tensor][sender][target]), numbers.send[sender]
        begin, made = (self.variables, 0), self.end(u)
        if numbers.model.communication == "delay":
            begin = made
        else:
            self.variables += 1
            self.arcs.append(_before(made, begin))
        variable, offset = begin
        held = offset + (send if numbers.model.communication == "sendrecv" else delay)
        self.begin[tensor, target] = begin
        self.arrival[tensor, target] = variable, offset + send + delay
        where: list[Place] = []
        match numbers.model.communication:
            case "sendrecv":
                where = [("device", sender)]
            case "link":
                where = [("link", sender, target)]
            case "port":
                where = [("send", sender), ("receive", target)]
        self.tasks[tensor, target] = where, _Use(begin, ((variable, held),))

    def _order(self) -> None:
        """Let the given order hold between tasks that share something."""
        for first, second in self.numbers.order:
            if first in self.tasks and second in self.tasks:
                (at, earlier), (there, later) = self.tasks[first], self.tasks[second]
                if set(at) & set(there):
                    self.arcs.append(_before(earlier.ends[0], later.begin))

    def _occupied(self) -> Iterator[_Resource]:
        uses: dict[Place, list[_Use]] = {}
        for where, use in self.tasks.values():
            for resource in where:
                uses.setdefault(resource, []).append(use)
        for resource, listed in uses.items():
            port = resource[0] in ("send", "receive")
            yield _Resource(self.numbers.model.channels if port else 1, listed, occupied=True)

    def _memory(self) -> Iterator[_Resource]:
        numbers = self.numbers
        match numbers.model.memory:
            case "edges":
                held = self._active_edges()
            case "refcount":
                held = self._copies()
            case _:
                return
        for d, capacity in enumerate(numbers.capacity):
            if capacity is not None:
                uses = [use for at, use in held if at == d and use.amount]
                yield _Resource(capacity - numbers.held(self.device, d), uses, occupied=False)

    def _active_edges(self) -> list[tuple[int, _Use]]:
        """[M] eq. 2: an in-edge is active from its arrival until its target starts."""
        size = self.numbers.size
        return [
            (self.device[v], _Use(self.available(tensor, v), ((v, 0),), size[tensor]))
            for v, tensor in self.numbers.edges
        ]

    def _copies(self) -> list[tuple[int, _Use]]:
        """[L] §3.1.6: a copy of a tensor stays until its last use on that device."""
        numbers = self.numbers
        copies: dict[tuple[int, int], tuple[Event, list[Event]]] = {}
        for tensor, u in enumerate(numbers.producer):
            copies[tensor, self.device[u]] = (u, 0), [self.end(u)]
        for (tensor, target), begin in self.begin.items():
            copies[tensor, target] = begin, []
            home = self.device[numbers.producer[tensor]]
            copies[tensor, home][1].append(self.arrival[tensor, target])
        for v, tensor in numbers.edges:
            freed = (v, 0) if numbers.model.release == "start" else self.end(v)
            copies[tensor, self.device[v]][1].append(freed)
        return [
            (d, _Use(begin, tuple(ends), numbers.size[tensor]))
            for (tensor, d), (begin, ends) in copies.items()
        ]

    def bound(self, start: list[int]) -> int:
        """No schedule that starts nothing earlier has a smaller makespan."""
        ends = [start[v] + length for v, length in enumerate(self.length)]
        single = [r.free_at(start) for r in self.resources if r.occupied and r.limit == 1]
        work = -(-sum(self.length) // self.numbers.k)
        return max([0, *ends, *single, work])


def _known(number: int | None) -> int:
    assert number is not None
    return number


@dataclass(frozen=True)
class _Node:
    """A part of the search space: everything under a placement that keeps the arcs."""

    network: _Network
    start: list[int]
    arcs: list[Arc]
    value: Value


class _Search:
    """Depth first, the most promising branch first."""

    def __init__(
        self,
        instance: Instance,
        goal: Goal,
        budget: Budget,
        start: Schedule | None,
        watch: Watch | None,
    ) -> None:
        self.begin = time.perf_counter()
        self.instance = instance
        self.budget = budget
        self.watch = watch
        self.goal = goal
        self.numbers = _Numbers(instance, goal)
        self.alike = self.numbers.alike_devices()
        self.most = (
            math.inf if goal.makespan is None else goal.makespan * self.numbers.scale,
            math.inf if goal.traffic is None else goal.traffic * self.numbers.measure,
        )
        self.first = [] if start is None else start.placement.tolist()
        self.device = [-1] * self.numbers.n
        self.best: Value | None = None
        self.schedule: Schedule | None = None
        self.root: Value = 0, 0
        #: What the branches that were left unexplored may still hold.
        self.open: list[tuple[int, ...]] = []
        self.branches = 0
        self.trace: list[Progress] = []

    def run(self, seed: int) -> Result:
        ended, reason = Termination.COMPLETED, ""
        try:
            root = self._node(self.device)
            if root is not None:
                self.root = root.value
                self._place(0, root)
        except KeyboardInterrupt:
            ended, reason = Termination.INTERRUPTED, "interrupted"
            self.open.append(self._key(self.root))
        if self.best is not None:  # later than some of what was left open
            self.open = [value for value in self.open if value < self._key(self.best)]
        if self.open and ended is not Termination.INTERRUPTED:
            ended, reason = Termination.TIME_LIMIT, "time limit"
        bound, traffic_bound = self._bounds()
        return conclude(
            self.instance,
            "enumerate",
            self.schedule,
            bound=bound,
            infeasible="" if self.best or self.open else self._why_infeasible(),
            termination=ended,
            reason=reason,
            seconds=time.perf_counter() - self.begin,
            seed=seed,
            trace=tuple(self.trace),
            goal=self.goal,
            traffic_bound=traffic_bound,
        )

    def _why_infeasible(self) -> str:
        found = contradiction(self.instance) or self.goal.contradiction(self.instance)
        return found or excluded(self.instance, "enumeration", self.goal.given)

    def _bounds(self) -> tuple[Fraction, Fraction | None]:
        """Proven bounds of makespan and traffic."""
        makespan, traffic = self.root
        if self.best is not None or self.open:
            least = min([*self.open, *([self._key(self.best)] if self.best else [])])
            match self.goal.objective:
                case "makespan":
                    (makespan,) = least
                case "traffic":
                    (traffic,) = least
                case "lexicographic":
                    makespan = least[0]
                    # Only among schedules of this makespan is there no less traffic.
                    if self.best is not None and self.best[0] == makespan:
                        traffic = least[1]
        return (
            Fraction(makespan, self.numbers.scale),
            None if self.goal.objective == "makespan" else Fraction(traffic, self.numbers.measure),
        )

    def _key(self, value: Value) -> tuple[int, ...]:
        """The value that the objective compares."""
        makespan, traffic = value
        match self.goal.objective:
            case "makespan":
                return (makespan,)
            case "traffic":
                return (traffic,)
            case "lexicographic":
                return makespan, traffic

    def _hopeless(self, value: Value) -> bool:
        """Whether a branch that holds nothing below this value can be dropped."""
        if value[0] > self.most[0] or value[1] > self.most[1]:
            return True
        return self.best is not None and self._key(value) >= self._key(self.best)

    def _out_of_time(self) -> bool:
        self.branches += 1
        limit = self.budget.deterministic
        if limit is not None and self.branches > limit * _BRANCHES:
            return True
        return time.perf_counter() - self.begin > self.budget.seconds

    def _enter(self, node: _Node) -> bool:
        """Whether to explore a branch; a branch skipped for lack of time stays open."""
        if self._hopeless(node.value):
            return False
        if self._out_of_time():
            self.open.append(self._key(node.value))
            return False
        return True

    def _node(self, device: list[int]) -> _Node | None:
        """Return the branch below a placement, complete or not; ``None`` if it is empty."""
        if not self.numbers.possible(device):
            return None
        network = _Network(self.numbers, device.copy())
        start = _earliest([0] * network.variables, network.arcs)
        if start is None:  # the given order contradicts the edges
            return None
        value = network.bound(start), self.numbers.traffic(device)
        return _Node(network, start, network.arcs, value)

    def _place(self, unit: int, node: _Node) -> None:
        """Try every device for this unit and those after it."""
        if unit == len(self.numbers.units):
            self._sequence(node)
            return
        members = self.numbers.units[unit]
        options: list[tuple[tuple[int, ...], bool, int, _Node]] = []
        for d in range(self.numbers.k):
            if self._redundant(d) or any(self.numbers.time[v][d] is None for v in members):
                continue
            self._assign(members, d)
            placed = self._node(self.device)
            self._assign(members, -1)
            if placed is not None:
                other = self.first[min(members) :][:1] != [d]
                options.append((self._key(placed.value), other, d, placed))
        for _, _, d, placed in sorted(options, key=lambda o: (o[1], o[0], o[2])):
            if self._enter(placed):
                self._assign(members, d)
                self._place(unit + 1, placed)
                self._assign(members, -1)

    def _assign(self, members: set[int], d: int) -> None:
        for v in members:
            self.device[v] = d

    def _redundant(self, d: int) -> bool:
        """Whether an empty device can be skipped: an earlier interchangeable one is empty too."""
        return d not in self.device and any(e not in self.device for e in self.alike[d])

    def _sequence(self, node: _Node) -> None:
        """Resolve one conflict in every way; without one the least solution is the best."""
        found = [
            self._children(node, resource.ways(together))
            for resource in node.network.resources
            if (together := resource.excess(node.start))
        ]
        if not found:
            self._offer(node)
            return
        # Fewest branches first, and of those the longest: what cuts most is decided early.
        children = min(found, key=lambda nodes: (len(nodes), -sum(n.value[0] for n in nodes)))
        for child in sorted(children, key=lambda child: (self._key(child.value), child.value)):
            if self._enter(child):
                self._sequence(child)

    def _children(self, node: _Node, ways: Iterator[list[Arc]]) -> list[_Node]:
        """Return the branches of a conflict; later ones exclude what earlier ones contain."""
        network, traffic = node.network, node.value[1]
        children, known = [], node.arcs
        for way in ways:
            arcs = [*known, *way]
            start = _earliest(node.start, arcs)
            if start is not None:
                child = _Node(network, start, arcs, (network.bound(start), traffic))
                if not self._hopeless(child.value):
                    children.append(child)
            if len(way) == 1:
                ((i, j, w),) = way
                # The contrary, start[j] < start[i] + w. All offsets are whole, so that the least
                # solutions are: nothing is lost between whole numbers.
                known = [*known, (j, i, 1 - w)]
        return children

    def _offer(self, node: _Node) -> None:
        ends = (node.start[v] + length for v, length in enumerate(node.network.length))
        self.best = max([0, *ends]), node.value[1]
        self.schedule = self._schedule(node)
        of, unit = (
            (1, self.numbers.measure)
            if self.goal.objective == "traffic"
            else (0, self.numbers.scale)
        )
        step = Progress(
            time.perf_counter() - self.begin,
            Fraction(self.best[of], unit),
            Fraction(self.root[of], unit),
        )
        self.trace.append(step)
        if self.watch is not None:
            self.watch(step)

    def _schedule(self, node: _Node) -> Schedule:
        network, scale = node.network, self.numbers.scale

        def at(event: Event) -> Fraction:
            return Fraction(node.start[event[0]] + event[1], scale)

        return Schedule(
            np.array(network.device, dtype=np.int32),
            RationalArray.from_integers(node.start[: self.numbers.n], scale),
            Transfers.of(
                (*crossing, at(begin), at(network.arrival[crossing]))
                for crossing, begin in network.begin.items()
            ),
        )
