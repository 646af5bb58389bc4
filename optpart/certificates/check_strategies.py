"""Judge of bounds of training strategies: does no strategy take less time than this?

    python -m optpart.certificates.check_strategies DIRECTORY...

It accepts and rejects as ``check.py`` beside it does, whose first section, on numbers and files, is
all that it needs, apart from Python's standard library; it hands other certificates to that judge.
The argument for each rule stands beside it; ``docs/certificates.md`` gives the format.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate, chain, pairwise, product
from pathlib import Path
from typing import Any

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from optpart.certificates import check as schedules
from optpart.certificates.check import (
    Allowance,
    calculating,
    common_denominator,
    demand,
    integer,
    judged,
    length,
    list_of,
    main,
    multiplying,
    not_negative,
    number,
    object_of,
    optional,
    read_document,
    shown,
    topological,
    typed,
)

STRATEGIES = "optpart-strategy-bound/1"
MAX_MULTIPLIER = 2**128  # of a row, and of a message

Span = tuple[Fraction, Fraction]  # samples as a half-open part of [0, 1)
WHOLE: Span = (Fraction(0), Fraction(1))


class Strategies:
    """All strategies that choose one of the listed decisions for every group of operations.

    Times are on a grid of ticks: rounded up to ``tick`` as the rules say, or, if there is no tick,
    down to thousandths of a nanosecond, which only makes strategies faster.

    ``edges`` have a producer, an output (−1: it only waits) and a consumer. ``spans`` are the
    distinct layouts: the samples of each device. ``actions`` are the layout and the synchronisation
    of each action of each group, and ``home`` is the group of each operation.
    """

    def __init__(self, document: dict[str, Any], allowance: Allowance) -> None:
        self.allowance = allowance
        options = object_of(document.get("options"), "tick auxiliary memory slots", "options")
        tick = options.get("tick")
        self.tick = None if tick is None else number(tick)
        demand(self.tick is None or self.tick > 0, "tick is not positive")
        self.scale = Fraction(1000) if self.tick is None else 1 / self.tick
        demand(options.get("auxiliary") in ("memory", "free"), "unknown auxiliary")
        demand(options.get("memory") in ("refcount", "none"), "unknown memory")
        self.free = options["auxiliary"] == "free"
        self.slots = integer(options.get("slots"), 0, 1000, "slots")
        self.batch = integer(document.get("batch"), 1, 2**40, "batch")
        self._read_cluster(document.get("cluster"), options["memory"] == "none")
        self._read_graph(document)
        self._read_actions(document)
        self._read_memory(document.get("parameters"))
        self._estimate()
        self._known: dict[object, Any] = {}
        self._exclude()

    # What the file says.

    def _read_cluster(self, value: object, unlimited: bool) -> None:
        cluster = object_of(value, "kinds servers memory copying latency rate", "cluster")
        self.kinds = [integer(x, 0, 10**6, "kind") for x in list_of(cluster.get("kinds"), "kinds")]
        self.k = k = len(self.kinds)
        demand(k, "no devices")
        servers = list_of(cluster.get("servers"), "servers", k)
        self.servers = [integer(x, 0, 10**6, "server") for x in servers]
        self.memory = [optional(x) for x in list_of(cluster.get("memory"), "memory", k)]
        if unlimited:
            self.memory = [None] * k
        self.copying = [optional(x) for x in list_of(cluster.get("copying"), "copying", k)]
        demand(all(x is None or x > 0 for x in self.copying), "a copying rate is 0")
        rows = [list_of(row, "latency", k) for row in list_of(cluster.get("latency"), "latency", k)]
        self.latency = [[not_negative(x) for x in row] for row in rows]
        rows = [list_of(row, "rate", k) for row in list_of(cluster.get("rate"), "rate", k)]
        self.rate = [[optional(x) for x in row] for row in rows]

    def _read_graph(self, document: dict[str, Any]) -> None:
        self.operations: list[dict[str, Any]] = []
        # By text, since many fractions can share one hash.
        kinds: dict[str, int] = {}
        for item in list_of(document.get("operations"), "operations"):
            operation = object_of(item, "name role times outputs splittable", "an operation")
            times = [
                [not_negative(x) for x in list_of(line, "a time", 2)]
                for line in list_of(operation.get("times"), "times")
            ]
            demand(all(kind < len(times) for kind in self.kinds), "a kind has no times")
            outputs = []
            for output in list_of(operation.get("outputs"), "outputs"):
                layout, alpha, beta = list_of(output, "an output", 3)
                demand(layout in ("batched", "summed", "whole"), "unknown layout")
                sizes = not_negative(alpha), not_negative(beta)
                demand(layout == "batched" or not sizes[1], "a size grows with the batch")
                kind = kinds.setdefault(f"{layout} {sizes[0]} {sizes[1]}", len(kinds))
                outputs.append((layout, *sizes, kind))
            role, splittable = operation.get("role"), operation.get("splittable")
            demand(role in ("forward", "backward", "apply"), "unknown role")
            demand(type(splittable) is bool, "splittable is not true or false")
            kept = {"role": role, "times": times, "outputs": outputs, "splittable": splittable}
            self.operations.append(kept)
        n = len(self.operations)
        demand(n, "no operations")
        self.edges = []
        self.out: list[list[int]] = [[] for _ in range(n)]
        self.into: list[list[int]] = [[] for _ in range(n)]
        self.allowance.spend(0, 300 * len(list_of(document.get("edges"), "edges")) + 500 * n)
        for e, item in enumerate(document["edges"]):
            producer, output, consumer = list_of(item, "an edge", 3)
            p = integer(producer, 0, n - 1, "producer")
            i = integer(output, -1, len(self.operations[p]["outputs"]) - 1, "output")
            c = integer(consumer, 0, n - 1, "consumer")
            self.edges.append((p, i, c))
            self.out[p].append(e)
            self.into[c].append(e)
        topological(n, ((p, c) for p, _, c in self.edges))

    def _read_actions(self, document: dict[str, Any]) -> None:
        decisions = []
        self.spans: list[dict[int, Span]] = []
        layouts: dict[str, int] = {}
        for item in list_of(document.get("decisions"), "decisions"):
            decision = object_of(item, "replicas sync", "a decision")
            counts = list_of(decision.get("replicas"), "replicas", self.k)
            counts = [integer(x, 0, self.batch, "replicas") for x in counts]
            total, sync = sum(counts), decision.get("sync")
            used = [d for d, count in enumerate(counts) if count]
            demand(0 < total <= self.batch, "more replicas than samples, or none")
            if len(used) == 1:
                demand(sync is None, "a single device synchronises")
            elif sync != "allreduce":
                demand(integer(sync, 0, self.k - 1, "sync") in used, "a server without a replica")
            common = math.gcd(*counts)
            key = " ".join(str(count // common) for count in counts)
            if key not in layouts:
                self.allowance.spend(30 * len(used), 400 * len(used))
                ends = [Fraction(end, total) for end in accumulate(counts, initial=0)]
                layouts[key] = len(self.spans)
                self.spans.append({d: (ends[d], ends[d + 1]) for d in used})
            decisions.append((layouts[key], sync))
        groups = [list_of(group, "a group") for group in list_of(document.get("groups"), "groups")]
        home: dict[int, int] = {}
        for g, group in enumerate(groups):
            for o in group:
                integer(o, 0, len(self.operations) - 1, "member")
                demand(o not in home, "an operation is in two groups")
                home[o] = g
        demand(len(home) == len(self.operations), "an operation is in no group")
        self.home = [home[o] for o in range(len(home))]
        self.actions = []
        for row in list_of(document.get("actions"), "actions", len(groups)):
            numbers = [integer(x, 0, len(decisions) - 1, "action") for x in list_of(row, "actions")]
            demand(numbers, "a group has no action")
            self.actions.append([decisions[x] for x in numbers])
        self.layouts = [sorted({layout for layout, _ in row}) for row in self.actions]
        for p, i, c in self.edges:
            summed = i >= 0 and self.operations[p]["outputs"][i][0] == "summed"
            inside = self.home[p] == self.home[c]
            demand(not summed or inside, "a gradient is read in another group")

    def _read_memory(self, value: object) -> None:
        """Count what a replica holds throughout: parameters, and the optimiser's at an apply."""
        held: list[tuple[int, Fraction]] = []
        for item in list_of(value, "parameters"):
            parameter = object_of(item, "size users", "a parameter")
            last = len(self.operations) - 1
            users = list_of(parameter.get("users"), "users")
            users = [integer(o, 0, last, "user") for o in users]
            demand(users, "a parameter is used by nothing")
            applies = [o for o in users if self.operations[o]["role"] == "apply"]
            size = not_negative(parameter.get("size"))
            held.append((applies[0], size * (1 + self.slots)) if applies else (users[0], size))
        sizes = [size for _, size in held]
        common = common_denominator(sizes, self.allowance)  # so that sums stay short
        bits = 2 * common.bit_length() + length(sizes) + 20
        self.allowance.spend((len(held) + len(self.operations)) * calculating(2 * bits))
        self.resident = [Fraction(0)] * len(self.operations)
        for o, size in held:
            self.resident[o] += size

    def _estimate(self) -> None:
        """Estimate the steps of computing a time, and of going through layouts."""
        times = chain(*(chain(*operation["times"]) for operation in self.operations))
        sizes = (x for each in self.operations for output in each["outputs"] for x in output[1:3])
        links = length(chain(*self.rate, *self.latency, self.copying))
        bits = length(times) + length(sizes) + 2 * links + length([self.scale]) + 400
        #: Steps of one of the operations that compute a time.
        self.calculation = calculating(bits)
        # Up to here, adding two times takes one step.
        demand(bits < 2048, "numbers are too long")
        self.multiplying = multiplying(bits + MAX_MULTIPLIER.bit_length())
        #: Per group, the devices of all its layouts; by actions; and their squares by actions.
        self.devices = [sum(len(self.spans[a]) for a in row) for row in self.layouts]
        self.replicas = [sum(len(self.spans[a]) for a, _ in row) for row in self.actions]
        self.squares = [sum(len(self.spans[a]) ** 2 for a, _ in row) for row in self.actions]

    def going(self, e: int, each: int = 3) -> int:
        """Return the steps of going through an edge, with ``each`` for a device of a layout."""
        p, _, c = self.edges[e]
        g, h = self.home[p], self.home[c]
        if g != h:
            i, j = len(self.layouts[g]), len(self.layouts[h])
            m, n = self.devices[g], self.devices[h]
            return 50 * i * j + each * (m * j + n * i) + 4 * m * n
        count = len(self.actions[g])
        steps = 12 * count + 2 * each * self.replicas[g] + 4 * self.squares[g]
        if self.sums(e):
            steps += count * (50 + self.k * self.k + 12 * self.k * self.calculation)
        return steps

    # Times in ticks.

    def ticks(self, time: Fraction) -> int:
        """Return a time in ticks: rounded up to the tick, or down if there is none."""
        return math.floor(time * self.scale) if self.tick is None else math.ceil(time * self.scale)

    def moving(self, d: int, e: int, size: Fraction) -> int | None:
        """Return the ticks of a transfer; ``None`` without a link."""
        if d == e:
            return 0
        rate = self.rate[d][e]
        if rate == 0:
            return None
        return self.ticks(self.latency[d][e] + (size / rate if rate is not None else 0))

    def copied(self, d: int, size: Fraction) -> int:
        """Return the ticks in which a device reads and writes some bytes."""
        rate = self.copying[d]
        return 0 if self.free or rate is None else self.ticks(2 * size / rate)

    def run(self, o: int, layout: int, d: int) -> int:
        """Return the ticks of an operation on a device of a layout; 0 without a replica."""
        key = "run", o, layout, d
        if key not in self._known:
            self.allowance.spend(8 * self.calculation, 400)
            span = self.spans[layout].get(d)
            time = Fraction(0)
            if span is not None:
                if not self.operations[o]["splittable"]:
                    span = WHOLE
                alpha, beta = self.operations[o]["times"][self.kinds[d]]
                time = alpha + beta * (span[1] - span[0]) * self.batch
            self._known[key] = self.ticks(time)
        return self._known[key]  # type: ignore[no-any-return]

    def allreduce(self, devices: list[int], size: Fraction) -> int | None:
        """Return the ticks of the better of two AllReduces; ``None`` if links are missing.

        One ring over all devices, those of a server side by side; or a ring in every server, and
        one over the first devices of the servers.
        """

        def ring(members: list[int]) -> Fraction | None:
            n = len(members)
            if n < 2:
                return Fraction(0)
            pairs = [*pairwise(members), (members[-1], members[0])]
            rates = [self.rate[d][e] for d, e in pairs]
            if 0 in rates:
                return None
            finite = [rate for rate in rates if rate is not None]
            slowest = max(self.latency[d][e] for d, e in pairs)
            return 2 * (n - 1) * (slowest + (size / (n * min(finite)) if finite else 0))

        first = {server: self.servers.index(server) for server in self.servers}
        order = sorted(devices, key=lambda d: (first[self.servers[d]], d))
        inside: dict[int, list[int]] = {}
        for d in order:
            inside.setdefault(self.servers[d], []).append(d)
        flat, between = ring(order), ring([members[0] for members in inside.values()])
        local = [ring(members) for members in inside.values()]
        known = [] if flat is None else [flat]
        if between is not None and None not in local:
            known.append(between + max(time for time in local if time is not None))
        return self.ticks(min(known)) if known else None

    # What an edge takes: ``reads`` by layouts of both ends, ``sums`` by action of the group.

    def reads(self, e: int, a: int, b: int) -> dict[tuple[int, int], tuple[int, int, int]] | None:
        """Return Split, transfer and Concat by device of the producer and of the consumer.

        A batched tensor is read in slices, where samples overlap. Of copies, a consumer reads its
        own, or the one that would arrive first. Waiting is for all replicas. ``None`` if a link is
        missing.
        """
        p, i, c = self.edges[e]
        producer, consumer = self.operations[p], self.operations[c]
        output = None if i < 0 else producer["outputs"][i]
        kind = None if output is None else output[3]
        key = "reads", kind, producer["splittable"], consumer["splittable"], a, b
        if key not in self._known:
            m, n = len(self.spans[a]), len(self.spans[b])
            pieces = m + n  # slices, or one copy for each
            if output is None or (output[0] == "batched" and not consumer["splittable"]):
                pieces = m * n
            steps = 50 + (3 * m * n + 12 * pieces) * self.calculation
            self.allowance.spend(steps, 600 + 400 * pieces)
            self._known[key] = self._read(producer, consumer, output, a, b)
        return self._known[key]  # type: ignore[no-any-return]

    def _read(
        self, producer: dict[str, Any], consumer: dict[str, Any], output: Any, a: int, b: int
    ) -> dict[tuple[int, int], tuple[int, int, int]] | None:
        holders, readers = self.spans[a], self.spans[b]

        def size(span: Span) -> Fraction:
            return Fraction(output[1] + output[2] * (span[1] - span[0]) * self.batch)

        found: dict[tuple[int, int], tuple[int, int, int]] = {}
        for e, span in readers.items():
            pieces: list[tuple[int, Span, Span]] = []  # from, what is held there, what is read
            if output is None:
                pieces = [(f, WHOLE, WHOLE) for f in holders]
            elif output[0] == "batched" and producer["splittable"]:
                wanted = span if consumer["splittable"] else WHOLE
                for f, held in holders.items():
                    part = max(held[0], wanted[0]), min(held[1], wanted[1])
                    if part[0] < part[1]:
                        pieces.append((f, held, part))
            else:
                wanted = span if output[0] == "batched" and consumer["splittable"] else WHOLE
                nearest = e
                if e not in holders:
                    linked = [f for f in holders if self.rate[f][e] != 0]
                    if not linked:
                        return None
                    nearest = min(linked, key=lambda f: (self._arrival(f, e, size(wanted)), f))
                pieces = [(nearest, WHOLE, wanted)]
            joined = 0
            if output is not None and len(pieces) > 1:
                joined = self.copied(e, size(span if consumer["splittable"] else WHOLE))
            for f, held, part in pieces:
                bytes_read = Fraction(0) if output is None else size(part)
                time = self.moving(f, e, bytes_read)
                if time is None:
                    return None
                found[f, e] = (self.copied(f, size(held)) if part != held else 0, time, joined)
        return found

    def _arrival(self, f: int, e: int, size: Fraction) -> Fraction:
        rate = self.rate[f][e]
        return self.latency[f][e] + (size / rate if rate else 0)

    def sums(self, e: int) -> bool:
        """Return whether an edge carries a gradient."""
        p, i, _ = self.edges[e]
        return i >= 0 and self.operations[p]["outputs"][i][0] == "summed"

    def synchronised(self, e: int, action: tuple[int, Any]) -> dict[str, Any] | None:
        """Return how a gradient reaches the applies; ``None`` if a link is missing.

        ``delay`` by both devices, ``link`` by both devices, ``device`` and ``nccl`` in ticks.
        """
        p, i, _ = self.edges[e]
        layout, sync = action
        devices, size = list(self.spans[layout]), self.operations[p]["outputs"][i][1]
        nothing: dict[str, Any] = {"link": {}, "device": {}, "nccl": 0}
        if len(devices) == 1 or not self.operations[p]["splittable"]:
            return {**nothing, "delay": {(d, d): 0 for d in devices}}
        if sync == "allreduce":
            time = self.allreduce(devices, size)
            if time is None:
                return None
            delay = {(f, d): time for f in devices for d in devices}
            return {**nothing, "delay": delay, "nccl": time}
        adding = self.copied(sync, size)
        links: dict[tuple[int, int], int] = {}
        for d in devices:
            if d != sync:
                for f, t in ((d, sync), (sync, d)):
                    time = self.moving(f, t, size)
                    if time is None:
                        return None
                    links[f, t] = time
        to = {f: links.get((f, sync), 0) + adding for f in devices}
        delay = {(f, d): to[f] + links.get((sync, d), 0) for f in devices for d in devices}
        return {**nothing, "delay": delay, "link": links, "device": {sync: adding}}

    # Sums of functions of one action, and of two layouts.

    def _exclude(self) -> None:
        """Note what lacks a link, and actions whose parameters alone exceed a device's memory."""
        self.allowance.spend(sum(20 + 20 * square for square in self.squares))
        self.fine = [[True] * len(row) for row in self.actions]
        self.bad: dict[tuple[int, int], set[tuple[int, int]]] = {}
        held = [Fraction(0)] * len(self.actions)
        for o, size in enumerate(self.resident):
            held[self.home[o]] += math.floor(size)
        for g, row in enumerate(self.actions):
            for j, (layout, _) in enumerate(row):
                for d in self.spans[layout]:
                    limit = self.memory[d]
                    self.fine[g][j] &= limit is None or held[g] <= limit
        for e, (p, _, c) in enumerate(self.edges):
            g, h = self.home[p], self.home[c]
            self.allowance.spend(self.going(e))
            if g != h:
                if (min(g, h), max(g, h)) not in self.bad:
                    self.allowance.spend(0, 150 * len(self.layouts[g]) * len(self.layouts[h]) + 400)
                bad = self.bad.setdefault((min(g, h), max(g, h)), set())
                for a, b in product(self.layouts[g], self.layouts[h]):
                    if self.reads(e, a, b) is None:
                        bad.add((a, b) if g < h else (b, a))
                continue
            for j, action in enumerate(self.actions[g]):
                if self.sums(e):
                    self.fine[g][j] &= self.synchronised(e, action) is not None
                else:
                    self.fine[g][j] &= self.reads(e, action[0], action[0]) is not None

    def per_edge(
        self, total: Sums, e: int, value: Callable[[Any, int, int], int], each: int = 3
    ) -> None:
        """Add a function of what an edge takes, and of the layouts of both ends."""
        self.allowance.spend(self.going(e, each))
        p, _, c = self.edges[e]
        g, h = self.home[p], self.home[c]
        if g != h:
            for a, b in product(self.layouts[g], self.layouts[h]):
                what = self.reads(e, a, b)
                if what is not None:
                    total.pair(g, h, a, b, value(what, a, b))
            return
        for j, action in enumerate(self.actions[g]):
            a = action[0]
            taken: Any = self.synchronised(e, action) if self.sums(e) else self.reads(e, a, a)
            if taken is not None:
                total.one[g][j] += value(taken, a, a)

    def device_of(self, layout: int, sample: Fraction) -> int:
        """Return the device of a sample."""
        return next(d for d, (a, b) in self.spans[layout].items() if a <= sample < b)

    def follows(self, o: int, sample: Fraction | None) -> bool:
        """Return whether a path follows the replica of the sample, not the one that ends first."""
        return sample is not None and bool(self.operations[o]["splittable"])

    def step(self, total: Sums, e: int, sample: Fraction | None, backwards: bool) -> None:
        """Add the ticks from the end of an edge's producer to the end of its consumer.

        Forwards: between the replicas of a sample, or, where there is none, from the replica that
        ends first to the replica that ends first. Backwards: from any replica to one that reads it.
        """
        p, _, c = self.edges[e]
        right = self.returns(e) if backwards else self.usable(e, sample)
        demand(right, "a path takes a wrong edge")

        def value(what: Any, a: int, b: int) -> int:
            delay: dict[tuple[int, int], int]
            delay = what["delay"] if self.sums(e) else {x: sum(y) for x, y in what.items()}
            ends = {(f, d): time + self.run(c, b, d) for (f, d), time in delay.items()}
            sources, targets = [*self.spans[a]], [*self.spans[b]]
            if backwards:
                return min(max(ends[f, d] for d in targets if (f, d) in ends) for f in sources)
            if sample is not None and self.follows(p, sample):
                sources = [self.device_of(a, sample)]
            if sample is not None and self.follows(c, sample):
                targets = [self.device_of(b, sample)]
            return min(max(ends[f, d] for f in sources if (f, d) in ends) for d in targets)

        # A sample is compared with the samples of a device.
        each = 3 if sample is None else 2 * calculating(length([sample]) + 200)
        self.per_edge(total, e, value, each)

    def usable(self, e: int, sample: Fraction | None) -> bool:
        """Return whether the replica of a sample is surely read by that of the same sample."""
        p, i, _ = self.edges[e]
        copies = i >= 0 and self.operations[p]["outputs"][i][0] == "whole"
        return not (copies and self.follows(p, sample))

    def returns(self, e: int) -> bool:
        """Return whether every replica of the producer is surely read."""
        p, i, _ = self.edges[e]
        producer = self.operations[p]
        return i < 0 or bool(producer["splittable"] and producer["outputs"][i][0] != "whole")

    def after(self, o: int, sample: Fraction | None) -> list[int]:
        """Return an operation and everything that waits for its end."""
        self.allowance.spend(10 * (len(self.operations) + len(self.edges)))
        seen, stack = {o}, [o]
        while stack:
            for e in self.out[stack.pop()]:
                c = self.edges[e][2]
                if c not in seen and self.usable(e, sample):
                    seen.add(c)
                    stack.append(c)
        return sorted(seen)

    def before(self, o: int) -> list[int]:
        """Return an operation and everything whose replicas are all read on the way to it."""
        self.allowance.spend(10 * (len(self.operations) + len(self.edges)))
        seen, stack = {o}, [o]
        while stack:
            for e in self.into[stack.pop()]:
                p = self.edges[e][0]
                if p not in seen and self.returns(e):
                    seen.add(p)
                    stack.append(p)
        return sorted(seen)

    def on(self, total: Sums, o: int, resource: tuple[str, int, int]) -> None:
        """Add the ticks of an operation on a device."""
        if resource[0] == "device":
            g = self.home[o]
            self.allowance.spend(4 * len(self.actions[g]))
            for j, (layout, _) in enumerate(self.actions[g]):
                total.one[g][j] += self.run(o, layout, resource[1])

    def moved(self, total: Sums, e: int, resource: tuple[str, int, int]) -> None:
        """Add the ticks that reading an edge takes on a resource."""
        kind, d, target = resource

        def value(what: Any, a: int, b: int) -> int:
            if self.sums(e):
                where = {"link": (d, target), "device": d}.get(kind)
                return int(what["nccl"] if kind == "nccl" else what[kind].get(where, 0))
            if kind == "link":
                return int(what[d, target][1]) if (d, target) in what else 0
            if kind == "nccl":
                return 0
            # One Split serves all slices, and one Concat takes all of them.
            splits = max((x[0] for (f, _), x in what.items() if f == d), default=0)
            return splits + max((x[2] for (_, t), x in what.items() if t == d), default=0)

        self.per_edge(total, e, value)

    def ways(self, o: int) -> list[list[int]]:
        """Return, by output, one edge for every way in which it is read.

        Consumers of one group read the same, unless only some of them can split. Of several ways,
        only one is counted at a time: two groups may share what they read. Ways that never take
        any time are left out where there are others.
        """
        self.allowance.spend(10 + 15 * len(self.out[o]))
        found: dict[int, dict[tuple[int, bool], int]] = {}
        for e in self.out[o]:
            _, i, c = self.edges[e]
            key = self.home[c], self.operations[c]["splittable"]
            found.setdefault(i, {}).setdefault(key, e)
        rows = [list(row.values()) for row in found.values()]
        return [[e for e in row if self.costly(e)] or row[:1] for row in rows]

    def costly(self, e: int) -> bool:
        """Return whether reading an edge takes time in any layouts."""
        p, i, c = self.edges[e]
        if self.sums(e):
            return True
        g, h = self.home[p], self.home[c]
        kind = self.operations[p]["outputs"][i][3] if i >= 0 else None
        split = self.operations[p]["splittable"], self.operations[c]["splittable"]
        key = "costly", kind, split, g, h
        if key not in self._known:
            self.allowance.spend(self.going(e), 400)
            pairs = product(self.layouts[g], self.layouts[h])
            what = (self.reads(e, a, b) for a, b in pairs if g != h or a == b)
            self._known[key] = any(any(map(any, x.values())) for x in what if x is not None)
        return bool(self._known[key])


class Sums:
    """A number for every action of every group, and for two layouts of two groups."""

    def __init__(self, strategies: Strategies) -> None:
        self.strategies, self.allowance, self._held = strategies, strategies.allowance, 0
        actions = sum(len(row) for row in strategies.actions)
        self.allowance.spend(2 * len(strategies.actions) + actions)
        self._hold(100 * len(strategies.actions) + 40 * actions)
        self.one = [[0] * len(row) for row in strategies.actions]
        self.two: dict[tuple[int, int], dict[tuple[int, int], int]] = {}

    def _hold(self, size: int) -> None:
        self.allowance.spend(0, size)
        self._held += size

    def close(self) -> None:
        """Give back the memory."""
        self.allowance.spend(0, -self._held)

    def cells(self, g: int, h: int) -> dict[tuple[int, int], int]:
        """Return the numbers of two groups by their layouts."""
        if (g, h) not in self.two:
            layouts = self.strategies.layouts
            self._hold(400 + 200 * len(layouts[g]) * len(layouts[h]))
            self.two[g, h] = {}
        return self.two[g, h]

    def pair(self, g: int, h: int, a: int, b: int, value: int) -> None:
        """Add a value for two layouts; the order of the groups does not matter."""
        if g > h:
            g, h, a, b = h, g, b, a
        cells = self.cells(g, h)
        cells[a, b] = cells.get((a, b), 0) + value

    def add(self, other: Sums, factor: int) -> None:
        """Add a multiple of other numbers."""
        each = 10 + 2 * self.strategies.multiplying
        for mine, row in zip(self.one, other.one, strict=True):
            self.allowance.spend(each * len(row))
            for j, value in enumerate(row):
                mine[j] += factor * value
        for (g, h), cells in other.two.items():
            self.allowance.spend(each * len(cells))
            for (a, b), value in cells.items():
                self.pair(g, h, a, b, factor * value)


def check_row(strategies: Strategies, value: object) -> tuple[Sums, int | None]:
    """Return what a row says; the second is the limit of a memory row, otherwise ``None``.

    Every strategy, in every order, has a makespan of at least the sum of its actions:

    - ``load``: everything on one device, link, or the queue of collectives takes turns;
    - ``path``: an edge's consumer ends at least a step after its producer;
    - ``head``: a path, and then everything on a resource that waits for its end. If the path
      follows a sample, other samples need not wait; but a collective waits for all replicas;
    - ``tail``: everything on a resource that is read on the way to an operation, whatever its
      replica, and then a path from any replica.

    ``memory`` says that the sum is at most what the device has.
    """
    row = object_of(value, "kind resource start edges sample consumer", "a row")
    kind, total = row.get("kind"), Sums(strategies)
    demand(kind in ("load", "path", "head", "tail", "memory"), f"unknown row {shown(kind)}")
    resource = ("", 0, 0)
    if kind != "path":
        name, d, e = list_of(row.get("resource"), "resource", 3)
        demand(name in ("device", "link", "nccl"), "unknown resource")
        last = strategies.k - 1
        resource = (name, integer(d, 0, last, "device"), integer(e, 0, last, "device"))
        demand(name != "link" or d != e, "a link from a device to itself")
    if kind == "memory":
        demand(resource[0] == "device", "memory of what is no device")
        limit = strategies.memory[resource[1]]
        demand(limit is not None, "memory of a device without a limit")
        assert limit is not None
        for o, size in enumerate(strategies.resident):
            g = strategies.home[o]
            strategies.allowance.spend(10 + 5 * len(strategies.actions[g]))
            for j, (layout, _) in enumerate(strategies.actions[g]):
                if resource[1] in strategies.spans[layout]:
                    total.one[g][j] += math.floor(size)
        return total, math.floor(limit)
    strategies.allowance.spend(5 * len(strategies.operations))
    counted: Iterable[int] = range(len(strategies.operations))
    skipped, readers = None, None
    if kind != "load":
        sample = None if row.get("sample") is None else number(row["sample"])
        demand(sample is None or 0 <= sample < 1, "no such sample")
        demand(kind != "tail" or sample is None, "a tail follows no sample")
        demand(
            kind != "head" or sample is None or resource[0] == "nccl",
            "a head that follows a sample is for collectives only",
        )
        start = integer(row.get("start"), 0, len(strategies.operations) - 1, "start")
        g, end = strategies.home[start], start
        comparing = 10 if sample is None else 2 * calculating(length([sample]) + 200)
        held = sum(len(strategies.spans[a]) for a, _ in strategies.actions[g])
        strategies.allowance.spend(20 * len(strategies.actions[g]) + held * comparing)
        for j, (layout, _) in enumerate(strategies.actions[g]):
            devices: Iterable[int] = strategies.spans[layout]
            if sample is not None and strategies.follows(start, sample):
                devices = [strategies.device_of(layout, sample)]
            total.one[g][j] += min(strategies.run(start, layout, d) for d in devices)
        for item in list_of(row.get("edges"), "edges"):
            e = integer(item, 0, len(strategies.edges) - 1, "edge")
            demand(strategies.edges[e][0] == end, "a path is not connected")
            strategies.step(total, e, sample, kind == "tail")
            end = strategies.edges[e][2]
        if kind == "path":
            return total, None
        counted = strategies.after(end, sample) if kind == "head" else strategies.before(start)
        skipped = end if kind == "head" else start
        readers = set(counted) if kind == "tail" else None
    consumer = integer(row.get("consumer"), 0, 10**6, "consumer")
    for o in counted:
        if o != skipped:
            strategies.on(total, o, resource)
        for ways in strategies.ways(o):
            e = ways[consumer % len(ways)]
            if readers is None or strategies.edges[e][2] in readers:
                strategies.moved(total, e, resource)
    return total, None


def check_strategies(content: bytes, head: dict[str, Any], allowance: Allowance) -> str:
    """Check a lower bound on the time of all strategies; return what it proves, in words.

    A multiple of every row gives ``makespan · Σ multipliers ≥ Σ multiples``, where what memory rows
    say beyond their limits is at most 0. The right side is a sum of functions of one action and of
    two layouts. A *message* adds a number to a layout of one group, and takes it from all pairs
    with that layout, which changes nothing. So it is at least the sum of the least values.
    """
    document = object_of(
        head,
        "format name bound batch options cluster operations edges parameters groups decisions "
        "actions rows messages",
        "certificate",
    )
    strategies = Strategies(document, allowance)
    claimed = not_negative(document.get("bound"))
    total, parts, constant = Sums(strategies), 0, 0
    rows = list_of(document.get("rows"), "rows")
    for item in rows:
        multiplier, row = list_of(item, "a row", 2)
        factor = integer(multiplier, 1, MAX_MULTIPLIER, "multiplier")
        sums, limit = check_row(strategies, row)
        total.add(sums, factor)
        sums.close()
        if limit is None:
            parts += factor
        else:
            constant -= factor * limit
    demand(parts > 0, "no row bounds the makespan")
    for item in list_of(document.get("messages"), "messages"):
        g, h, one, two = list_of(item, "a message", 4)
        groups = [integer(x, 0, len(strategies.actions) - 1, "group") for x in (g, h)]
        demand(g < h, "a message between groups in the wrong order")
        given = []
        allowance.spend(
            sum(10 * len(strategies.actions[x]) for x in groups)
            + 15 * len(strategies.layouts[g]) * len(strategies.layouts[h])
        )
        for group, side in zip(groups, (one, two), strict=True):
            known = strategies.layouts[group]
            values = list_of(side, "a message", len(known))
            values = [integer(x, -MAX_MULTIPLIER, MAX_MULTIPLIER, "message") for x in values]
            given.append(dict(zip(known, values, strict=True)))
            for j, (layout, _) in enumerate(strategies.actions[group]):
                total.one[group][j] += given[-1][layout]
        for a, b in product(given[0], given[1]):
            total.pair(g, h, a, b, -given[0][a] - given[1][b])
    for row, fine in zip(total.one, strategies.fine, strict=True):
        possible = [value for value, good in zip(row, fine, strict=True) if good]
        demand(possible, "a group has no possible action, and a certificate is not for that")
        constant += min(possible)
    for (g, h), cells in total.two.items():
        bad = strategies.bad.get((g, h), set())
        allowance.spend(10 * len(strategies.layouts[g]) * len(strategies.layouts[h]))
        pairs = product(strategies.layouts[g], strategies.layouts[h])
        values = [cells.get(cell, 0) for cell in pairs if cell not in bad]
        demand(values, "two groups have no possible layouts, and a certificate is not for that")
        constant += min(values)
    proven = max(0, -(-constant // parts)) / strategies.scale
    demand(claimed <= proven, f"the rows prove {shown(proven)} ns, not {shown(claimed)}")
    name = shown(typed(document.get("name"), "text", "name"))
    digest = hashlib.sha256(content).hexdigest()
    counts = [len(row) for row in strategies.actions]
    return (
        f"{name}: no strategy takes less than {shown(claimed)} ns if {len(counts)} groups choose "
        f"among {min(counts)} to {max(counts)} actions ({len(rows)} rows; sha256 {digest})"
    )


def check(directory: str, instance: str | None = None) -> str:
    """Check the certificate in a directory, of strategies or not; return what it proves."""
    return judged(_check, directory, instance)


def _check(directory: str, instance: str | None) -> str:
    allowance = Allowance()
    content, head = read_document(directory, "certificate.json", allowance)
    if not isinstance(head, dict) or head.get("format") != STRATEGIES:
        return schedules.check(directory, instance)
    demand(instance is None, "a bound of strategies is about no instance")
    return check_strategies(content, head, allowance)


if __name__ == "__main__":
    sys.exit(main(judge=check))
