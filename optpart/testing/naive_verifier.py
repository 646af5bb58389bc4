"""A second verifier, for tests: a page of plain Python, written from design §2 alone.

It shares nothing with :mod:`optpart.solution.verifier`, not even the classes: it reads the native
document of an instance, and numbers of vertices, devices and tensors. Every rule is checked by
comparing all pairs, or all moments at which anything begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

#: A tensor: its producer and the number of the output, ``None`` for the signal.
Tensor = tuple[int, int | None]

#: A transfer: tensor, destination device, start and arrival.
Transfer = tuple[Tensor, int, Fraction, Fraction]

#: When something begins and ends.
Span = tuple[Fraction, Fraction]


class NaiveVerifier:
    """The rules of one instance.

    Parameters
    ----------
    document : mapping
        The instance in native JSON, with whole matrices (:meth:`Instance.to_dict`).
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.vertices = document["vertices"]
        self.devices = document["devices"]
        self.model = document.get("model") or {}
        vertex = {v["name"]: i for i, v in enumerate(self.vertices)}
        k = range(len(self.devices))
        self.speed = [Fraction(d.get("speed", 1)) for d in self.devices]
        self.capacity = [_number(d.get("memory")) for d in self.devices]
        self.resident = [Fraction(v.get("memory", 0)) for v in self.vertices]
        self.size: dict[Tensor, Fraction] = {}
        self.time: dict[tuple[Tensor, int, int], Fraction | None] = {}
        bandwidth, latency = document.get("bandwidth"), document.get("latency", 0)
        for v, row in enumerate(self.vertices):
            for o, output in [(None, 0), *enumerate(row.get("outputs", []))]:
                given = output if isinstance(output, dict) else {"size": output}
                size = Fraction(given.get("size", 0))
                self.size[v, o] = size
                for d in k:
                    for e in k:
                        rate = _entry(bandwidth, d, e)
                        if d == e:
                            time = Fraction(0)
                        elif rate == 0:
                            time = None
                        elif given.get("delay") is not None:
                            time = _number(given["delay"][d][e])
                        else:
                            time = _entry(latency, d, e) or Fraction(0)
                            time += 0 if rate is None else size / rate
                        self.time[(v, o), d, e] = time
        # An edge that is given twice counts once.
        self.edges: list[tuple[int, int, Tensor]] = list(
            dict.fromkeys(
                (vertex[u], vertex[v], (vertex[u], output))
                for u, v, output in document.get("edges", [])
            )
        )
        self.duration: list[list[Fraction | None]] = []
        for v, row in enumerate(self.vertices):
            allowed = row.get("devices")
            times = []
            for d in k:
                fits = row.get("device_type") in (None, self.devices[d].get("type"))
                listed = allowed is None or self.devices[d]["name"] in allowed
                measured = document.get("durations")
                time = Fraction(row.get("ops", 0)) / self.speed[d]
                if measured is not None:
                    time = _number(measured[v][d])
                times.append(time if fits and listed else None)
            self.duration.append(times)
        self.together = [[vertex[v] for v in group] for group in document.get("colocation", [])]
        self.apart = [(vertex[a], vertex[b]) for a, b in document.get("separation", [])]

    def faults(
        self, where: Sequence[int], start: Sequence[Fraction], transfers: Sequence[Transfer]
    ) -> list[str]:
        """Name the rules that a schedule breaks; each at most once."""
        if self._misplaced(where):
            return ["placement"]  # without run times, nothing else has a meaning
        end = [start[v] + self._run(v, d) for v, d in enumerate(where)]
        found = [
            ("start", any(time < 0 for time in start)),
            ("transfers", self._wrong_transfers(where, end, transfers)),
        ]
        if not found[-1][1]:
            found += [
                ("device", self._device_shared(where, start, end, transfers)),
                ("inputs", self._too_early(where, start, end, transfers)),
                ("link", self._link_shared(where, transfers)),
                ("memory", self._overfull(where, start, transfers)),
            ]
        return [rule for rule, broken in found if broken]

    def makespan(self, where: Sequence[int], start: Sequence[Fraction]) -> Fraction:
        """Return the latest end of a vertex."""
        ends = (start[v] + self._run(v, d) for v, d in enumerate(where))
        return max(ends, default=Fraction(0))

    def traffic(self, where: Sequence[int]) -> Fraction:
        """Return the sum of sizes over all crossings."""
        return sum((self.size[tensor] for tensor, _ in self._crossings(where)), Fraction(0))

    def _run(self, v: int, d: int) -> Fraction:
        time = self.duration[v][d]
        assert time is not None
        return time

    def _crossings(self, where: Sequence[int]) -> set[tuple[Tensor, int]]:
        return {(tensor, where[v]) for u, v, tensor in self.edges if where[u] != where[v]}

    def _misplaced(self, where: Sequence[int]) -> bool:
        """Rule 1."""
        return (
            any(self.duration[v][d] is None for v, d in enumerate(where))
            or any(len({where[v] for v in group}) > 1 for group in self.together)
            or any(where[a] == where[b] for a, b in self.apart)
        )

    def _send(self, d: int) -> Fraction:
        if self.model.get("communication") != "sendrecv":
            return Fraction(0)
        return Fraction(self.model.get("send_ops", 0)) / self.speed[d]

    def _wrong_transfers(
        self, where: Sequence[int], end: Sequence[Fraction], transfers: Sequence[Transfer]
    ) -> bool:
        """Each crossing happens once, over a link, after the producer, in its time."""
        if sorted(map(repr, ((t, e) for t, e, _, _ in transfers))) != sorted(
            map(repr, self._crossings(where))
        ):
            return True
        for tensor, e, begin, arrival in transfers:
            d = where[tensor[0]]
            time = self.time[tensor, d, e]
            if time is None or begin < end[tensor[0]] or arrival != begin + self._send(d) + time:
                return True
            # Under delay, transfers never wait.
            if self.model.get("communication", "delay") == "delay" and begin != end[tensor[0]]:
                return True
        return False

    def _device_shared(
        self,
        where: Sequence[int],
        start: Sequence[Fraction],
        end: Sequence[Fraction],
        transfers: Sequence[Transfer],
    ) -> bool:
        """Rule 2, with sends as further tasks."""
        tasks = [(d, start[v], end[v]) for v, d in enumerate(where)]
        if self.model.get("communication") == "sendrecv":
            for (u, _), _, begin, _ in transfers:
                tasks.append((where[u], begin, begin + self._send(where[u])))
        return any(
            d == e and not (b <= x or y <= a)
            for i, (d, a, b) in enumerate(tasks)
            for e, x, y in tasks[:i]
        )

    def _too_early(
        self,
        where: Sequence[int],
        start: Sequence[Fraction],
        end: Sequence[Fraction],
        transfers: Sequence[Transfer],
    ) -> bool:
        """Rule 3."""
        arrival = {(tensor, e): time for tensor, e, _, time in transfers}
        return any(
            start[v] < (end[u] if where[u] == where[v] else arrival[tensor, where[v]])
            for u, v, tensor in self.edges
        )

    def _link_shared(self, where: Sequence[int], transfers: Sequence[Transfer]) -> bool:
        """The communication model."""
        kind = self.model.get("communication", "delay")
        moves = [(where[tensor[0]], e, begin, end) for tensor, e, begin, end in transfers]
        if kind == "link":
            return any(
                (d, e) == (f, g) and not (b <= x or y <= a)
                for i, (d, e, a, b) in enumerate(moves)
                for f, g, x, y in moves[:i]
            )
        if kind == "port":
            most = self.model.get("channels", 1)
            return any(
                _most([(a, b) for *ends, a, b in moves if ends[side] == d]) > most
                for side in (0, 1)
                for d in range(len(self.devices))
            )
        return False

    def peaks(
        self, where: Sequence[int], start: Sequence[Fraction], transfers: Sequence[Transfer]
    ) -> list[Fraction]:
        """Return the most that each device ever holds, all 0 where memory does not count."""
        kind = self.model.get("memory", "none")
        end = [start[v] + self._run(v, d) for v, d in enumerate(where)]
        always = [Fraction(0)] * len(self.devices)
        held: list[list[tuple[Fraction, Fraction, Fraction]]] = [[] for _ in self.devices]
        began = {(tensor, e): begin for tensor, e, begin, _ in transfers}
        arrived = {(tensor, e): time for tensor, e, _, time in transfers}
        if kind in ("estimate", "refcount"):
            for v, d in enumerate(where):
                always[d] += self.resident[v]
        if kind == "estimate":
            for (v, _), size in self.size.items():
                always[where[v]] += size
            for v, tensor in {(v, tensor) for _, v, tensor in self.edges}:
                always[where[v]] += self.size[tensor]
        elif kind == "edges":
            for u, v, tensor in self.edges:
                at = where[v]
                arrival = end[u] if where[u] == at else arrived[tensor, at]
                held[at].append((arrival, start[v], self.size[tensor]))
        elif kind == "refcount":
            done = start if self.model.get("release") == "start" else end
            for (u, o), size in self.size.items():
                users = [v for _, v, tensor in self.edges if tensor == (u, o)]
                for d in {where[u], *(where[v] for v in users)}:
                    freed = [done[v] for v in users if where[v] == d]
                    if d == where[u]:
                        out = [t for (tensor, _), t in arrived.items() if tensor == (u, o)]
                        held[d].append((start[u], max(end[u], *freed, *out, end[u]), size))
                    else:
                        held[d].append((began[(u, o), d], max(freed), size))
        return [
            always[d]
            + max(
                (sum(size for a, b, size in spans if a <= now < b) for now, _, _ in spans),
                default=Fraction(0),
            )
            for d, spans in enumerate(held)
        ]

    def _overfull(
        self, where: Sequence[int], start: Sequence[Fraction], transfers: Sequence[Transfer]
    ) -> bool:
        """Rule 4."""
        return any(
            most is not None and peak > most
            for peak, most in zip(self.peaks(where, start, transfers), self.capacity, strict=True)
        )


def _most(spans: list[Span]) -> int:
    """Return the most spans that last at one moment; an instant lasts while others go on."""
    return max(
        (
            sum(a <= now < b for a, b in spans)
            if now < until
            else 1 + sum(a < now < b for a, b in spans)
            for now, until in spans
        ),
        default=0,
    )


def _number(value: Any) -> Fraction | None:
    return None if value is None else Fraction(value)


def _entry(matrix: Any, d: int, e: int) -> Fraction | None:
    return _number(matrix[d][e] if isinstance(matrix, list) else matrix)
