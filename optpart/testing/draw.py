"""Random instances that combine every feature with every other, and have structure.

Independent draws hardly ever give two interchangeable devices, or a graph that is a chain. Yet
every simplification in a solver relies on such a property, and is wrong if it is applied to an
instance that almost has the property. So a cluster is drawn by classes of equal devices (one class,
two classes, or one per device), which may still differ in one field; many instances have no special
feature; and finally up to two single numbers are changed. The draws lie just inside and just
outside of every such property.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TypedDict, TypeVar, Unpack

import numpy as np

from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory, Model, Release
from optpart.testing.pick import Draw, Pick, picking, seeded

T = TypeVar("T")

#: A matrix of numbers or ``None``.
Rows = list[list[Fraction | None]]

#: The units of time and of size, one of these each: all times and all sizes are multiples of them.
_UNITS = (Fraction(1), Fraction(1), Fraction(1, 2), Fraction(2, 3))
_FAR_UNITS = (Fraction(1, 10**9), Fraction(10**9), Fraction(1, 7919), Fraction(10**12 + 39))

#: Factors for one number among ordinary ones, so that no time grid holds both.
_AWKWARD = (Fraction(1, 7919), Fraction(10**12 + 39), Fraction(10**12 + 39, 7919 * 10**12))

#: Factors for one size: a little less, a little more, and one that divides nothing else.
_AWKWARD_SIZES = (
    Fraction(999999999999, 10**12),
    Fraction(10**12 + 39, 10**12),
    Fraction(1, 7919),
)

#: Least and greatest capacity of a device, in percent of the most that it could ever hold.
_CAPACITY: dict[Memory, tuple[int, int]] = {
    "none": (0, 100),
    "estimate": (40, 100),
    "edges": (0, 25),
    "refcount": (30, 75),
}


#: The fields in which devices of a class may differ.
_FIELDS = ("speed", "type", "memory", "bandwidth", "latency", "tensor delay", "duration")


class Options(TypedDict, total=False):
    """The features that an instance may have; see :class:`Shape` for the defaults."""

    types: bool
    allowed: bool
    colocation: bool
    separation: bool
    no_links: bool
    durations: bool
    measured: bool
    control: bool
    latency: bool
    zero_length: bool
    rational: bool
    far: bool
    exact: bool
    release: Release | None
    longest: int


@dataclass(frozen=True)
class Shape:
    """The features that an instance may have.

    Attributes
    ----------
    vertices, devices : (int, int)
        Least and greatest number.
    measured : bool
        Whether transfer times of a tensor may be given per device pair.
    rational : bool
        Whether there may be numbers that are not whole.
    far : bool
        Whether the units of time and of size may be far from one.
    exact : bool
        Whether all times are multiples of one tick; otherwise single numbers may be so awkward that
        no grid holds all times, and single sizes may be a little off.
    release : {"end", "start"}, optional
        The option of ``refcount``; by default either.
    longest : int
        The longest run time on a fast device, in units of time.
    """

    vertices: tuple[int, int]
    devices: tuple[int, int]
    communication: Communication = "delay"
    memory: Memory = "none"
    types: bool = True
    allowed: bool = True
    colocation: bool = True
    separation: bool = True
    no_links: bool = True
    durations: bool = True
    measured: bool = True
    control: bool = True
    latency: bool = True
    zero_length: bool = True
    rational: bool = True
    far: bool = True
    exact: bool = True
    release: Release | None = None
    longest: int = 3


def draw_instance(
    seed: int,
    communication: Communication = "delay",
    memory: Memory = "none",
    *,
    vertices: int | tuple[int, int] = (4, 6),
    devices: int | tuple[int, int] = (2, 3),
    **options: Unpack[Options],
) -> Instance:
    """Draw an instance; the same arguments give the same one.

    Every assignment unit has an allowed device. Separation, missing links and memory may still
    leave no schedule.

    Parameters
    ----------
    vertices, devices : int or (int, int)
        The number, or the least and the greatest one.
    """
    shape = Shape(_range(vertices), _range(devices), communication, memory, **options)
    name = f"drawn-{communication}-{memory}-{seed}"
    return drawn(seeded(seed, communication, memory), shape, name)


def random_instance(
    rng: np.random.Generator,
    max_vertices: int = 6,
    max_devices: int = 3,
    communication: Communication = "delay",
    memory: Memory = "none",
    **options: Unpack[Options],
) -> Instance:
    """Draw an instance of at least one vertex and one device with a NumPy generator."""
    shape = Shape((1, max_vertices), (1, max_devices), communication, memory, **options)
    return drawn(picking(rng), shape)


def drawn(pick: Pick, shape: Shape, name: str = "random") -> Instance:
    """Draw an instance of a shape."""
    return _Instance(Draw(pick), shape).changed().built(name)


def _range(number: int | tuple[int, int]) -> tuple[int, int]:
    return number if isinstance(number, tuple) else (number, number)


@dataclass
class _Vertex:
    ops: Fraction
    memory: Fraction
    kind: str | None = None
    devices: list[int] | None = None
    outputs: list[tuple[Fraction, Rows | None]] = field(default_factory=list)


class _Instance:
    """The numbers of an instance while they are drawn.

    A vertex may always run at its *home*, and colocated vertices have the same home. So every unit
    has an allowed device.
    """

    def __init__(self, draw: Draw, shape: Shape) -> None:
        self.draw, self.shape = draw, shape
        self.n = max(draw.between(*shape.vertices), draw.between(*shape.vertices))
        self.k = max(draw.between(*shape.devices), draw.between(*shape.devices))
        #: One in four has only the model's features, before single numbers are changed.
        self.plain = draw.chance(4)
        self.time, self.measure = self._unit(), self._unit()
        self.fractions = shape.rational and self._feature(3)
        self.device_class = self._classes()
        #: The field in which devices of a class differ nevertheless, if any.
        self.odd = draw.one_of((None, None, None, *_FIELDS))
        self._groups()
        self._vertices()
        self._edges()
        self._cluster()
        self._durations()
        self._model()

    def _unit(self) -> Fraction:
        if not self.shape.rational:
            return Fraction(1)
        far = self.shape.far and self.draw.chance(8)
        return self.draw.one_of(_FAR_UNITS if far else _UNITS)

    def _feature(self, of: int) -> bool:
        """Decide whether the instance has a feature at all."""
        return not self.plain and self.draw.chance(of)

    def _classes(self) -> list[int]:
        """Draw the class of each device; devices of a class are equal."""
        match self.draw.one_of(("unlike", "alike", "two")):
            case "alike":
                return [0] * self.k
            case "two":
                return [self.draw.between(0, 1) for _ in range(self.k)]
            case _:
                return list(range(self.k))

    # --- numbers ---------------------------------------------------------------------------

    def _number(self, low: int, high: int, unit: Fraction | int = 1) -> Fraction:
        number = unit * Fraction(self.draw.between(low, high))
        return number / self.draw.between(1, 3) if self.fractions else number

    def _length(self) -> Fraction:
        if self.shape.zero_length and self.draw.chance(8):
            return Fraction(0)
        return self._number(1, self.shape.longest, self.time)

    def _size(self) -> Fraction:
        return self.measure * self.draw.one_of((0, 2, 2, 4))

    def _resident(self) -> Fraction:
        return self.measure * self.draw.one_of((0, 0, 1, 2))

    def _rate(self, missing: bool) -> Fraction | None:
        rates = (1, 2, 2, None, 1, 2, 0 if missing else 1)
        rate = self.draw.one_of(rates)
        if rate is None:
            return None
        return self._number(rate, rate) * self.measure / self.time

    def _latency(self) -> Fraction:
        return self._number(0, 2, self.time)

    def _by_class(self, what: str, entry: Callable[[], T]) -> list[T]:
        """Draw an entry per class; return one per device."""
        of = range(self.k) if what == self.odd else self.device_class
        by_class = [entry() for _ in range(max(of) + 1)]
        return [by_class[c] for c in of]

    def _by_classes(self, what: str, entry: Callable[[], T]) -> list[list[T]]:
        """Draw an entry per pair of classes; return one per pair of devices."""
        of = range(self.k) if what == self.odd else self.device_class
        size = max(of) + 1
        by_class = [[entry() for _ in range(size)] for _ in range(size)]
        return [[by_class[c][d] for d in of] for c in of]

    # --- graph -----------------------------------------------------------------------------

    def _groups(self) -> None:
        """Draw colocation and homes; groups that share vertices are one group."""
        draw, n = self.draw, self.n
        self.colocation: list[list[int]] = []
        if self.shape.colocation and n > 1 and self._feature(3):
            for _ in range(draw.between(1, 2)):
                group = draw.some(n, draw.between(2, 3))
                pairs = len(group) > 2 and draw.chance(2)
                self.colocation += [list(pair) for pair in pairwise(group)] if pairs else [group]
        self.home = [draw.between(0, self.k - 1) for _ in range(n)]
        for _ in self.colocation:  # as often as a home may have to be passed on
            for group in self.colocation:
                least = min(self.home[v] for v in group)
                for v in group:
                    self.home[v] = least

    def _vertices(self) -> None:
        draw, shape, n, k = self.draw, self.shape, self.n, self.k
        typed = shape.types and draw.chance(2)
        kinds: list[str | None] = [None] * k
        if typed:
            kinds = self._by_class("type", lambda: draw.one_of((None, "CPU", "GPU")))
        self.kinds = kinds
        needy, limited = shape.types and self._feature(2), shape.allowed and self._feature(2)
        fixed = shape.allowed and draw.chance(12)
        resident = shape.memory != "none" or draw.chance(4)
        outputs = draw.one_of(((1,), (0, 1, 1, 2)))
        measured = shape.measured and self._feature(3)
        equal = self._length() if draw.chance(5) else None
        self.vertex: list[_Vertex] = []
        for home in self.home:
            vertex = _Vertex(
                2 * (self._length() if equal is None else equal),
                self._resident() if resident else Fraction(0),
            )
            if needy and draw.chance(3):
                vertex.kind = kinds[home]
            if fixed:
                vertex.devices = [home]
            elif limited and draw.chance(3):
                vertex.devices = sorted({home, *(d for d in range(k) if draw.chance(2))})
            for _ in range(draw.one_of(outputs)):
                delay = self._measured() if measured and draw.chance(3) else None
                vertex.outputs.append((self._size(), delay))
            self.vertex.append(vertex)
        self.separation: list[tuple[int, int]] = []
        apart = [(a, b) for a in range(n) for b in range(a) if self.home[a] != self.home[b]]
        if shape.separation and apart and self._feature(3):
            self.separation = [draw.one_of(apart) for _ in range(draw.between(1, 3))]

    def _measured(self) -> Rows:
        def entry() -> Fraction | None:
            return None if self.draw.chance(9) else self._number(0, 3, self.time)

        return self._by_classes("tensor delay", entry)

    def _edges(self) -> None:
        """Draw edges along a random rank, so that numbers and topological order differ."""
        draw = self.draw
        rank = draw.some(self.n, self.n)
        controlled = self.shape.control and self._feature(2)
        self.edges: list[tuple[int, int, int | None]] = []
        for i, j in self._pairs():
            u, v = rank[i], rank[j]
            outputs = len(self.vertex[u].outputs)
            if outputs:
                used = draw.between(0, outputs - 1)
                self.edges += [(u, v, o) for o in range(outputs) if o == used or draw.chance(3)]
            if controlled and draw.chance(4 if outputs else 2):
                self.edges.append((u, v, None))

    def _pairs(self) -> list[tuple[int, int]]:
        """Draw the shape of the graph: ascending pairs of ranks."""
        draw, n = self.draw, self.n
        every = list(combinations(range(n), 2))
        form = draw.one_of(
            ("sparse", "dense", "dense", "chain", "fork", "join", "fork-join", "layers",
             "series-parallel", "sparse", "none")
        )  # fmt: skip
        match form:
            case "sparse":
                return [pair for pair in every if draw.chance(3)]
            case "dense":
                return [pair for pair in every if draw.chance(2)]
            case "chain":
                return list(pairwise(range(n)))
            case "fork":
                return [(0, j) for j in range(1, n)]
            case "join":
                return [(i, n - 1) for i in range(n - 1)]
            case "fork-join":
                return sorted({*((0, j) for j in range(1, n)), *((i, n - 1) for i in range(n - 1))})
            case "layers":
                first = draw.between(0, n)
                return [(i, j) for i, j in every if i < first <= j]
            case "series-parallel":
                return self._series_parallel(0, n)
            case _:
                return []

    def _series_parallel(self, low: int, high: int) -> list[tuple[int, int]]:
        """Draw a series-parallel order of the ranks from ``low`` to below ``high``."""
        if high - low < 2:
            return []
        middle = self.draw.between(low + 1, high - 1)
        parts = self._series_parallel(low, middle) + self._series_parallel(middle, high)
        if self.draw.chance(2):
            return parts
        sources, targets = {i for i, _ in parts}, {j for _, j in parts}
        last = [i for i in range(low, middle) if i not in sources]
        first = [j for j in range(middle, high) if j not in targets]
        return parts + [(i, j) for i in last for j in first]

    # --- cluster and model -----------------------------------------------------------------

    def _cluster(self) -> None:
        draw, shape = self.draw, self.shape
        self.speed = self._by_class("speed", lambda: self._number(1, 2))
        missing = shape.no_links and self._feature(2)
        free = draw.chance(5)
        self.bandwidth: Rows = (
            [[None] * self.k for _ in range(self.k)]
            if free
            else self._by_classes("bandwidth", lambda: self._rate(missing))
        )
        late = shape.latency and not free and draw.chance(2)
        self.latency: list[list[Fraction]] = (
            self._by_classes("latency", self._latency)
            if late
            else [[Fraction(0)] * self.k for _ in range(self.k)]
        )
        # Capacities may be given even if the model ignores them.
        limited = draw.chance(6) if shape.memory == "none" else not draw.chance(6)
        self.memory: list[Fraction | None] = self._capacities() if limited else [None] * self.k

    def _capacities(self) -> list[Fraction | None]:
        draw, measure = self.draw, self.measure
        everything = self._everything()

        def capacity() -> Fraction | None:
            if draw.chance(5):
                return None
            if draw.chance(12):
                return Fraction(0)
            # A whole number of units, so that exact fits occur.
            share = draw.between(*_CAPACITY[self.shape.memory])
            return measure * (everything * share // (100 * measure))

        drawn = self._by_class("memory", capacity)
        if not draw.chance(4):
            return drawn
        # What every unit takes at its home at most, or a little less.
        taken = [Fraction(0)] * self.k
        for v, home in enumerate(self.home):
            taken[home] += self._estimate(v)
        less = measure if draw.chance(3) else 0
        most = {
            c: max(taken[d] for d in range(self.k) if self.device_class[d] == c)
            for c in self.device_class
        }
        return [max(Fraction(0), most[c] - less) for c in self.device_class]

    def _estimate(self, v: int) -> Fraction:
        inputs = {(u, o) for u, w, o in self.edges if w == v and o is not None}
        own = self.vertex[v].memory + sum(size for size, _ in self.vertex[v].outputs)
        return own + sum(self.vertex[u].outputs[o][0] for u, o in inputs)

    def _everything(self) -> Fraction:
        """The most that one device could have to hold."""
        crossing = sum(
            (self.vertex[u].outputs[o][0] for u, _, o in self.edges if o is not None), Fraction(0)
        )
        if self.shape.memory == "edges":
            return crossing
        total = sum(
            (v.memory + sum(size for size, _ in v.outputs) for v in self.vertex), Fraction(0)
        )
        return total + crossing if self.shape.memory == "estimate" else total

    def _durations(self) -> None:
        self.durations: Rows | None = None
        if not self.shape.durations or not self._feature(3):
            return

        self.durations = []
        for home in self.home:
            row: list[Fraction | None] = self._by_class(
                "duration", lambda: None if self.draw.chance(5) else self._length()
            )
            if row[home] is None:
                anyway = self._length()
                row = [anyway if time is None else time for time in row]
            self.durations.append(row)

    def _model(self) -> None:
        draw, shape = self.draw, self.shape
        either: tuple[Release, Release] = ("end", "start")
        release = draw.one_of(either) if shape.release is None else shape.release
        self.model = Model(
            shape.communication,
            shape.memory,
            send_ops=self._number(0, 2, self.time if shape.communication == "sendrecv" else 0),
            channels=draw.between(1, 3) if shape.communication == "port" else 1,
            release=release if shape.memory == "refcount" else "end",
        )

    # --- single changes --------------------------------------------------------------------

    def changed(self) -> _Instance:
        """Change up to two single numbers, so that equal parts differ only in these."""
        changes = [self._change_vertex, self._change_tensor]
        if self.k > 1:
            changes += [self._change_device, self._change_link]
        for _ in range(self.draw.one_of((0, 1, 1, 2)) if self.n else 0):
            self.draw.one_of(changes)()
        if not self.shape.exact and self.n and self.draw.chance(4):
            self._make_awkward()
        return self

    def _change_device(self) -> None:
        draw = self.draw
        d = draw.between(0, self.k - 1)
        match draw.one_of(("speed", "memory", "type")):
            case "speed":
                self.speed[d] = self._number(1, 3)
            case "memory" if self.shape.memory != "none":
                limit = self.memory[d]
                more = self.measure * draw.one_of((-1, 1))
                self.memory[d] = max(
                    Fraction(0), (self._everything() if limit is None else limit) + more
                )
            case "type" if self.shape.types:
                needed = any(
                    v.kind is not None and home == d
                    for v, home in zip(self.vertex, self.home, strict=True)
                )
                if not needed:
                    others = {kind for e, kind in enumerate(self.kinds) if e != d}
                    asked = {v.kind for v in self.vertex} - {None}
                    kind = draw.one_of((None, "CPU", "GPU"))
                    if asked <= others | {kind}:
                        self.kinds[d] = kind

    def _change_link(self) -> None:
        d, e = self.draw.some(self.k, 2)
        if self.shape.latency and self.draw.chance(2):
            self.latency[d][e] = self._latency()
        else:
            self.bandwidth[d][e] = self._rate(self.shape.no_links)

    def _change_vertex(self) -> None:
        draw, shape = self.draw, self.shape
        v = draw.between(0, self.n - 1)
        vertex, home = self.vertex[v], self.home[v]
        others = [d for d in range(self.k) if d != home]
        match draw.one_of(("length", "memory", "devices", "type", "separation", "colocation")):
            case "length" if self.durations is not None:
                d = draw.between(0, self.k - 1)
                self.durations[v][d] = None if d != home and draw.chance(3) else self._length()
            case "length":
                vertex.ops = self._length()
            case "memory":
                vertex.memory = self._resident()
            case "devices" if shape.allowed and vertex.devices is not None:
                vertex.devices = None
            case "devices" if shape.allowed and others:
                shut = draw.one_of(others)
                vertex.devices = [d for d in range(self.k) if d != shut]
            case "type" if shape.types:
                vertex.kind = self.kinds[home]
            case "separation" if shape.separation and self.n > 1:
                a, b = draw.some(self.n, 2)
                self.separation.append((a, b))
            case "colocation" if shape.colocation:
                same = [u for u in range(self.n) if self.home[u] == home and u != v]
                if same:
                    self.colocation.append([v, draw.one_of(same)])

    def _change_tensor(self) -> None:
        draw, k = self.draw, self.k
        v = draw.between(0, self.n - 1)
        outputs = self.vertex[v].outputs
        if not outputs:
            return
        o = draw.between(0, len(outputs) - 1)
        size, delay = outputs[o]
        if not self.shape.measured or k < 2 or draw.chance(3):
            outputs[o] = self._size(), delay
            return
        if delay is None:  # the usual times, except for one pair of devices
            delay = [[self._crossing(size, d, e) for e in range(k)] for d in range(k)]
        d, e = draw.some(k, 2)
        delay[d][e] = None if draw.chance(4) else self._number(0, 3, self.time)
        outputs[o] = size, delay

    def _crossing(self, size: Fraction, d: int, e: int) -> Fraction:
        rate = self.bandwidth[d][e]
        return self.latency[d][e] + (size / rate if rate else 0)

    def _make_awkward(self) -> None:
        """Multiply one time by a factor that leaves no common tick with the others, or one size."""
        draw = self.draw
        if self.shape.memory != "none" and draw.chance(3):
            self._make_size_awkward()
            return
        factor = draw.one_of(_AWKWARD)
        v = draw.between(0, self.n - 1)
        if self.durations is not None:
            time = self.durations[v][self.home[v]]
            self.durations[v][self.home[v]] = None if time is None else time * factor
        elif draw.chance(2) or self.k == 1:
            self.vertex[v].ops *= factor
        else:
            d, e = draw.some(self.k, 2)
            if self.shape.latency and draw.chance(2):
                self.latency[d][e] = (self.latency[d][e] or self.time) * factor
            else:
                self.speed[d] *= factor

    def _make_size_awkward(self) -> None:
        draw, factor = self.draw, self.draw.one_of(_AWKWARD_SIZES)
        d = draw.between(0, self.k - 1)
        limit = self.memory[d]
        if limit is not None and draw.chance(2):
            self.memory[d] = limit * factor
        else:
            vertex = self.vertex[draw.between(0, self.n - 1)]
            vertex.memory = (vertex.memory or self.measure) * factor

    # --- the instance ----------------------------------------------------------------------

    def built(self, name: str) -> Instance:
        devices = [f"d{d}" for d in range(self.k)]
        builder = GraphBuilder()
        for v, vertex in enumerate(self.vertex):
            builder.vertex(
                f"v{v}",
                vertex.ops,
                memory=vertex.memory,
                device_type=vertex.kind,
                devices=None if vertex.devices is None else [devices[d] for d in vertex.devices],
            )
            for size, delay in vertex.outputs:
                builder.output(f"v{v}", size, delay)
        for u, v, o in self.edges:
            builder.edge(f"v{u}", f"v{v}", o)
        for group in self.colocation:
            builder.colocate(*(f"v{v}" for v in group))
        for a, b in self.separation:
            builder.separate(f"v{a}", f"v{b}")
        cluster = Cluster.of(
            [
                Device(*fields)
                for fields in zip(devices, self.speed, self.kinds, self.memory, strict=True)
            ],
            self.bandwidth,
            self.latency,
        )
        return Instance(builder.build(), cluster, self.model, self.durations, name=name)
