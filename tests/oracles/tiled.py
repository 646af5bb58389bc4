"""Instances of any size whose optimum is known: devices cut into tiles without idle time.

Every device is busy from 0 to a horizon ``T``. A tile becomes a vertex with as many operations as
its device does in that time, so all operations together are ``T`` times the sum of all speeds, and
no schedule of any placement ends before ``T``. What restricts the instance further holds for the
tiles as they lie, often with nothing to spare: tensors arrive when they are needed, capacities are
what the tiles need, transfers have their links or ports to themselves.

With sends each of them is a tile as well, and every vertex may run only where its tile lies; then
the transfers are the same in every schedule, and ``T`` bounds each device by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model, RationalArray, Schedule
from optpart import Transfers as Moves
from optpart.problem.graph import CONTROL, Graph
from optpart.problem.model import Communication, Memory, Release
from optpart.problem.rational import Number
from optpart.solution.metrics import peak_memory


@dataclass(frozen=True)
class Planted:
    """An instance, a schedule of least makespan, and that makespan."""

    instance: Instance
    schedule: Schedule
    horizon: Fraction


@dataclass(frozen=True)
class Tile:
    """A stretch of one device's time, in ticks."""

    device: int
    begin: int
    end: int


@dataclass
class Tensor:
    """An output: its consumers, and its crossings as (begin, end) by device."""

    producer: int
    size: Fraction
    consumers: set[int] = field(default_factory=set)
    crossings: dict[int, tuple[int, int]] = field(default_factory=dict)


def planted(
    rng: np.random.Generator,
    devices: int,
    tiles: int,
    communication: Communication = "delay",
    memory: Memory = "none",
    *,
    given_durations: bool = False,
    release: Release = "end",
) -> Planted:
    """Draw an instance with so many tiles on each device.

    Parameters
    ----------
    given_durations : bool
        Give run times per vertex and device: elsewhere as long as the speeds say, or longer.
    """
    model = Model(
        communication,
        memory,
        send_ops=Fraction(_SEND if communication == "sendrecv" else 0),
        channels=int(rng.integers(1, 3)) if communication == "port" else 1,
        release=release,
    )
    return _Planting(rng, devices, tiles, model).run(given_durations)


#: Operations of a send in ticks at speed 1; every speed divides it, so that sends are whole ticks.
_SEND = 2
_SPEEDS = (1, 2)
_TYPES = ("CPU", "GPU")


class _Planting:
    def __init__(self, rng: np.random.Generator, devices: int, tiles: int, model: Model) -> None:
        self.rng = rng
        self.k = devices
        self.ticks = 3 * tiles
        self.unit = [Fraction(1), Fraction(1, 2), Fraction(2, 3)][int(rng.integers(3))]
        self.model = replace(model, send_ops=model.send_ops * self.unit)
        self.speed = [int(x) for x in rng.choice(_SPEEDS, devices)]
        self.type = [_TYPES[int(x)] for x in rng.integers(0, 2, devices)]
        self.latency: list[list[int]] = rng.integers(0, 2, (devices, devices)).tolist()
        # 0 stands for an infinite bandwidth, over which sizes take no time.
        rates = (0, 1, 2, 4) if model.communication in ("delay", "sendrecv") else (1, 2, 4)
        self.rate: list[list[int]] = rng.choice(rates, (devices, devices)).tolist()
        self.sends = model.communication == "sendrecv"
        #: By link or port: how many transfers there are in each tick.
        self.busy: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0] * self.ticks)
        everything = [tile for d in range(devices) for tile in self._cut(d, tiles)]
        self.tiles = [everything[i] for i in rng.permutation(len(everything))]
        self.tensors: list[Tensor] = []
        self.controls: dict[int, Tensor] = {}

    def run(self, given_durations: bool) -> Planted:
        if self.sends:
            self._plant_sends()
        for v, tile in enumerate(self.tiles):
            for u in self._some(self._ended(tile.begin), 3):
                self._connect(u, v)
        graph = self._graph()
        instance = Instance(
            graph,
            self._cluster([None] * self.k),
            self.model,
            durations=self._durations() if given_durations else None,
            name=f"tiled-{self.model.communication}-{self.model.memory}-{len(self.tiles)}",
        )
        schedule = self._schedule(graph)
        instance = replace(instance, cluster=self._cluster(self._capacities(instance, schedule)))
        return Planted(instance, schedule, self.ticks * self.unit)

    # --- tiles -----------------------------------------------------------------------------

    def _cut(self, d: int, tiles: int) -> Iterator[Tile]:
        inner = self.rng.choice(np.arange(1, self.ticks), tiles - 1, replace=False)
        cuts = [0, *sorted(int(x) for x in inner), self.ticks]
        for begin, end in pairwise(cuts):
            yield Tile(d, begin, end)

    def _some(self, items: list[int], most: int) -> list[int]:
        count = min(len(items), int(self.rng.integers(0, most + 1)))
        return [items[i] for i in self.rng.permutation(len(items))[:count]]

    def _chance(self, of: int) -> bool:
        return int(self.rng.integers(of)) == 0

    # --- tensors ---------------------------------------------------------------------------

    def _plant_sends(self) -> None:
        """Turn tiles as long as a send into sends, where something can be sent by them."""
        kept: list[Tile] = []
        sends: list[Tile] = []
        for tile in self.tiles:
            as_long = (tile.end - tile.begin) * self.speed[tile.device] == _SEND
            (sends if as_long else kept).append(tile)
        self.tiles = kept
        for send in sends:
            made = [u for u in self._ended(send.begin) if kept[u].device == send.device]
            later = [
                v
                for v, tile in enumerate(kept)
                if tile.device != send.device
                and tile.begin >= send.end + self.latency[send.device][tile.device]
            ]
            if not made or not later:
                self.tiles.append(send)
                continue
            u, v = int(self.rng.choice(made)), int(self.rng.choice(later))
            target = kept[v].device
            end = self._arrival(send.device, target, send.end, kept[v].begin)
            tensor = Tensor(u, self._size(send.device, target, end - send.end), {v})
            tensor.crossings[target] = send.begin, end
            self.tensors.append(tensor)

    def _ended(self, time: int) -> list[int]:
        return [u for u, tile in enumerate(self.tiles) if tile.end <= time]

    def _connect(self, u: int, v: int) -> None:
        """Let ``v`` depend on ``u``, by a tensor there already or by one more."""
        one, other = self.tiles[u], self.tiles[v]
        known = [tensor for tensor in self.tensors if self._there(tensor, u, v)]
        if known and self._chance(2):
            known[int(self.rng.integers(len(known)))].consumers.add(v)
        elif one.device == other.device:
            if self._chance(3):
                self.controls.setdefault(u, Tensor(u, Fraction(0))).consumers.add(v)
            else:
                self.tensors.append(Tensor(u, self.unit * int(self.rng.integers(0, 4)), {v}))
        elif not self.sends:
            self._cross(u, v)

    def _there(self, tensor: Tensor, u: int, v: int) -> bool:
        """Whether a tensor of ``u`` is on the device of ``v`` when ``v`` starts."""
        here = self.tiles[v].device
        if tensor.producer != u:
            return False
        if self.tiles[u].device == here:
            return True
        return here in tensor.crossings and tensor.crossings[here][1] <= self.tiles[v].begin

    def _cross(self, u: int, v: int) -> None:
        """Let a new tensor cross in a stretch of time that its link or ports have free."""
        sender, target = self.tiles[u].device, self.tiles[v].device
        begin, end = self._free(sender, target, self.tiles[u].end, self.tiles[v].begin)
        if end - begin < max(self.latency[sender][target], 1):
            return
        end = self._arrival(sender, target, begin, end)
        for key in self._occupied(sender, target):
            for tick in range(begin, end):
                self.busy[key][tick] += 1
        size = self._size(sender, target, end - begin)
        self.tensors.append(Tensor(u, size, {v}, {target: (begin, end)}))

    def _occupied(self, sender: int, target: int) -> list[tuple[str, int, int]]:
        match self.model.communication:
            case "link":
                return [("link", sender, target)]
            case "port":
                return [("send", sender, sender), ("receive", target, target)]
            case _:
                return []

    def _free(self, sender: int, target: int, begin: int, end: int) -> tuple[int, int]:
        """Return the longest stretch from ``begin`` to ``end`` in which one more may cross."""
        best = until = since = begin
        for tick in range(begin, end):
            channels = (self.busy[key][tick] for key in self._occupied(sender, target))
            if any(used >= self.model.channels for used in channels):
                since = tick + 1
            elif tick + 1 - since > until - best:
                best, until = since, tick + 1
        return best, until

    def _arrival(self, sender: int, target: int, begin: int, end: int) -> int:
        """When it is needed, unless the link has no way to take as long."""
        return end if self.rate[sender][target] else begin + self.latency[sender][target]

    def _size(self, sender: int, target: int, ticks: int) -> Fraction:
        """Return the size that takes so long to cross."""
        rate = self.rate[sender][target]
        if not rate:
            return self.unit * int(self.rng.integers(0, 4))
        return (ticks - self.latency[sender][target]) * rate * self.unit

    # --- the instance ----------------------------------------------------------------------

    def _graph(self) -> Graph:
        builder = GraphBuilder()
        for v, tile in enumerate(self.tiles):
            d = tile.device
            elsewhere = [f"d{e}" for e in self._some(list(range(self.k)), 2)]
            builder.vertex(
                f"v{v}",
                (tile.end - tile.begin) * self.unit * self.speed[d],
                memory=int(self.rng.integers(0, 3)),
                device_type=self.type[d] if self._chance(3) else None,
                devices=[f"d{d}"]
                if self.sends
                else [f"d{d}", *elsewhere]
                if self._chance(3)
                else None,
            )
        for tensor in self.tensors:
            output = builder.output(f"v{tensor.producer}", tensor.size)
            for v in sorted(tensor.consumers):
                builder.edge(f"v{tensor.producer}", f"v{v}", output)
        for u, tensor in self.controls.items():
            for v in sorted(tensor.consumers):
                builder.edge(f"v{u}", f"v{v}", None)
        for d in range(self.k):
            group = self._some([v for v, tile in enumerate(self.tiles) if tile.device == d], 3)
            if len(group) > 1 and self._chance(2):
                builder.colocate(*(f"v{v}" for v in group))
        for v in self._some(list(range(len(self.tiles))), self.k):
            apart = [u for u, tile in enumerate(self.tiles) if tile.device != self.tiles[v].device]
            for u in self._some(apart, 1):
                builder.separate(f"v{u}", f"v{v}")
        return builder.build()

    def _cluster(self, capacities: list[Fraction | None]) -> Cluster:
        return Cluster.of(
            [
                Device(f"d{d}", speed, kind, memory)
                for d, (speed, kind, memory) in enumerate(
                    zip(self.speed, self.type, capacities, strict=True)
                )
            ],
            [[rate or None for rate in row] for row in self.rate],
            [[self.unit * ticks for ticks in row] for row in self.latency],
        )

    def _durations(self) -> list[list[Number | None]]:
        rows: list[list[Number | None]] = []
        for tile in self.tiles:
            ops = (tile.end - tile.begin) * self.unit * self.speed[tile.device]
            row: list[Number | None] = [
                ops / speed * int(self.rng.integers(1, 3)) for speed in self.speed
            ]
            row[tile.device] = ops / self.speed[tile.device]
            rows.append(row)
        return rows

    def _schedule(self, graph: Graph) -> Schedule:
        index = {
            (int(u), int(output)): tensor
            for tensor, (u, output) in enumerate(
                zip(graph.tensor_vertex, graph.tensor_output, strict=True)
            )
            if output != CONTROL
        }
        made: dict[int, int] = defaultdict(int)
        moves = []
        for tensor in self.tensors:
            number = index[tensor.producer, made[tensor.producer]]
            made[tensor.producer] += 1
            for target, (begin, end) in tensor.crossings.items():
                moves.append((number, target, begin * self.unit, end * self.unit))
        return Schedule(
            np.array([tile.device for tile in self.tiles], dtype=np.int32),
            RationalArray.from_fractions(tile.begin * self.unit for tile in self.tiles),
            Moves.of(sorted(moves)),
        )

    def _capacities(self, instance: Instance, schedule: Schedule) -> list[Fraction | None]:
        """Exactly what the tiles need; one device in four has no limit."""
        match self.model.memory:
            case "none":
                return [None] * self.k
            case "estimate":
                need = self._estimate(instance.graph)
            case "edges" | "refcount" as memory:
                need = peak_memory(instance, schedule, memory, self.model.release)
        return [None if self._chance(4) else amount for amount in need]

    def _estimate(self, graph: Graph) -> list[Fraction]:
        """[L] §4.1 (3) per device: resident memory, own outputs, distinct inputs."""
        need = [Fraction(0)] * self.k
        for v, tile in enumerate(self.tiles):
            need[tile.device] += graph.memory[v]
        for tensor in self.tensors:
            for v in (tensor.producer, *tensor.consumers):
                need[self.tiles[v].device] += tensor.size
        return need
