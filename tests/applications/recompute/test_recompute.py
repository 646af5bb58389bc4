"""Plans that recompute and offload: brute force on small draws, chains by hand, forged plans."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart.applications.recompute.plan import Problem, makespan, violations
from optpart.applications.recompute.recompute import Recomputation, faults, find, write
from optpart.testing.draw import draw_instance


class Brute:
    """All plans of a tiny instance, task by task in the order of their starts.

    A task is an execution ``(v, j)``, or a transfer ``("out", t)`` or ``("back", t)``. What is held
    is counted from what was started so far, which is never too much.
    """

    def __init__(self, problem: Problem) -> None:
        instance = problem.instance
        self.instance, self.host, graph = instance, problem.host, instance.graph
        self.n, self.k = instance.vertices, instance.devices
        self.edges = graph.edges()
        self.maker = graph.tensor_vertex.tolist()
        self.size = graph.tensor_size.fractions()
        self.weight = graph.memory.fractions()
        self.limit = [
            math.inf if limit is None else limit for limit in instance.cluster.memory
        ]
        times = [instance.duration(v, d) for v in range(self.n) for d in range(self.k)]
        times += [
            instance.delay(t, d, e) or Fraction(0)
            for t in range(graph.tensors) for d in range(self.k) for e in range(self.k)
        ]  # fmt: skip
        self.scale = math.lcm(*(time.denominator for time in times))

    def over(self, t: int, d: int, e: int) -> int | None:
        time = self.instance.delay(t, d, e)
        return None if time is None else int(time * self.scale)

    def least(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the least makespan of plans that keep everything, and of all plans.

        With a limit of memory, nothing is shorter than the shortest plan without one.
        """
        limit, self.limit = self.limit, [math.inf] * self.k
        free, self.limit = self.search(None, None, extended=False), limit
        keep = self.search(None, free, extended=False)
        best = self.search(keep, free, extended=True)
        keep, best = (x if x is None else Fraction(x, self.scale) for x in (keep, best))
        return keep, best

    def search(self, best: int | None, free: int | None, *, extended: bool) -> int | None:
        graph = self.instance.graph
        read = {t for _, _, t in self.edges if extended and self.size[t]}
        again = [(0, 1) if v in {self.maker[t] for t in read} else (0,) for v in range(self.n)]
        moved = [(0, 1) if t in read else (0,) for t in range(graph.tensors)]
        for on in product(range(self.k), repeat=self.n):
            if (
                all(self.instance.vertex_allowed[v, d] for v, d in enumerate(on))
                and all(len({on[v] for v in group}) == 1 for group in graph.colocation)
                and all(on[a] != on[b] for a, b in graph.separation)
                and all(self.over(t, on[u], on[v]) is not None for u, v, t in self.edges)
            ):
                for twice, away in product(product(*again), product(*moved)):
                    if best is None or best != free:
                        best = self.shortest(on, twice, away, best)
        return best

    def shortest(
        self, on: tuple[int, ...], twice: tuple[int, ...], away: tuple[int, ...], best: int | None
    ) -> int | None:
        """Return the least makespan with these second executions and offloads, if below best."""
        tasks: list[tuple[Any, int]] = [(v, 0) for v in range(self.n)]
        tasks += [(v, 1) for v, again in enumerate(twice) if again]
        self.on, self.length, self.uses = on, {}, {}
        for v, j in tasks:
            self.length[v, j] = int(self.instance.duration(v, on[v]) * self.scale)
            self.uses[v, j] = on[v]
        for t, moved in enumerate(away):
            if moved:
                d, h = on[self.maker[t]], self.host
                if h is None or d == h:
                    return best
                out, back = self.over(t, d, h), self.over(t, h, d)
                if out is None or back is None:
                    return best
                for kind, time in (("out", out), ("back", back)):
                    tasks.append((kind, t))
                    self.length[kind, t], self.uses[kind, t] = time, (kind, d)
        for v, d in enumerate(on if self.instance.model.release == "end" else ()):
            near = {t for u, w, t in self.edges if v in (u, w)}
            near |= {t for t, u in enumerate(self.maker) if u == v}
            need = sum(self.size[t] for t in near)
            need += sum(self.weight[w] for w, e in enumerate(on) if d == e)
            if need > self.limit[d]:  # while it runs
                return best
        self.best = best
        self.latest = sum(self.length.values()) + sum(
            max(self.over(t, on[u], on[v]) or 0 for u, v, s in self.edges if s == t)
            for t in {t for _, _, t in self.edges}
        ) * 2
        self.extend([], {}, {}, tasks)
        return self.best

    def extend(self, done: list[Any], start: dict[Any, int], reads: dict[Any, Any], left: Any) -> None:
        """Start one more task, no earlier than the last one."""
        top = self.latest if self.best is None else self.best - 1
        if not left:
            self.best = max((start[task] + self.length[task] for task in start
                             if isinstance(task[0], int)), default=0)  # fmt: skip
            return
        now = start[done[-1]] if done else 0
        work: dict[Any, int] = defaultdict(lambda: now)
        for task in left:
            work[self.uses[task]] += self.length[task]
        if max(work.values()) > top:
            return
        for what, j in left:  # copies that nobody is left to read only take time and memory
            made = {j} if what in ("out", "back") else {t for t, u in enumerate(self.maker) if u == what}
            readers = {v for _, v, t in self.edges if t in made}
            if j != 0 and not readers & {x for x, _ in left} and isinstance(what, int):
                return
            if what in ("out", "back") and not readers & {x for x, _ in left}:
                return
            if isinstance(what, int) and j == 0 and now + self.tail(what) > top:
                return
        events = {start[x] for x in done} | {start[x] + self.length[x] for x in done}
        events |= {
            start[u, j] + self.length[u, j] + (self.over(t, self.on[u], d) or 0)
            for u, j in [x for x in done if isinstance(x[0], int)]
            for t, maker in enumerate(self.maker) if maker == u for d in range(self.k)
        }  # fmt: skip
        for task in left:
            for read in self.choices(task, start):
                ready = max([now, *(self.ready(task, t, copy, start) for t, copy in read)])
                if task[1] == 1 and isinstance(task[0], int):
                    ready = max(ready, start[task[0], 0] + self.length[task[0], 0])
                for other in done:
                    if self.uses[other] == self.uses[task]:
                        ready = max(ready, start[other] + self.length[other])
                for at in sorted({ready, *(event for event in events if event > ready)}):
                    top = self.latest if self.best is None else self.best - 1
                    if at + self.length[task] > top:
                        break
                    start[task], reads[task] = at, read
                    if self.fits(start, reads):
                        rest = [x for x in left if x != task]
                        self.extend([*done, task], start, reads, rest)
                    del start[task], reads[task]

    def tail(self, v: int) -> int:
        """Return the least time from the start of a vertex to the end of all that follow."""
        after = (
            self.tail(w) + (self.over(t, self.on[v], self.on[w]) or 0)
            for u, w, t in self.edges if u == v
        )  # fmt: skip
        return self.length[v, 0] + max(after, default=0)

    def choices(self, task: Any, start: dict[Any, int]) -> Iterator[tuple[tuple[int, Any], ...]]:
        """Yield which copies a task may read: of which execution, or "back"."""
        what, j = task
        if what == "out":
            yield from [((j, 0),)] if (self.maker[j], 0) in start else []
        elif what == "back":
            yield from [((j, "out"),)] if ("out", j) in start else []
        elif j == 0 or (what, 0) in start:
            options = [
                [(t, c) for c in (0, 1) if (u, c) in start]
                + [(t, "back")] * (("back", t) in start and self.on[u] == self.on[what])
                for u, v, t in self.edges if v == what
            ]  # fmt: skip
            yield from product(*options)

    def ready(self, task: Any, t: int, copy: Any, start: dict[Any, int]) -> int:
        u = self.maker[t]
        made = (copy, t) if isinstance(copy, str) else (u, copy)
        at = start[made] + self.length[made]
        crosses = isinstance(task[0], int) and not isinstance(copy, str)
        return at + ((self.over(t, self.on[u], self.on[task[0]]) or 0) if crosses else 0)

    def fits(self, start: dict[Any, int], reads: dict[Any, Any]) -> bool:
        """Return whether memory suffices at every moment so far."""
        span: dict[Any, list[int]] = {}

        def hold(t: int, copy: Any, d: int, since: int, until: int) -> None:
            known = span.setdefault((t, copy, d), [since, until])
            known[1] = max(known[1], until)

        for task, at in start.items():
            end = at + self.length[task]
            if task[0] == "out":
                hold(task[1], 0, self.on[self.maker[task[1]]], end, end)
                hold(task[1], "host", self.host or 0, at, end)
            elif task[0] == "back":
                hold(task[1], "back", self.on[self.maker[task[1]]], at, end)
                hold(task[1], "host", self.host or 0, at, end)
            else:
                for t, u in enumerate(self.maker):
                    if u == task[0]:
                        hold(t, task[1], self.on[u], at, end)
        for task, read in reads.items():
            if isinstance(task[0], int):
                free = start[task] + self.length[task]
                free = start[task] if self.instance.model.release == "start" else free
                for t, copy in read:
                    u, e = self.maker[t], self.on[task[0]]
                    if self.on[u] != e:
                        sent = start[u, copy] + self.length[u, copy]
                        hold(t, copy, self.on[u], sent, sent + (self.over(t, self.on[u], e) or 0))
                        hold(t, copy, e, sent, free)
                    else:
                        hold(t, copy, e, free, free)
        held: dict[int, Fraction] = defaultdict(Fraction)
        for v, d in enumerate(self.on):
            held[d] += self.weight[v]
        for d in range(self.k):
            for moment in {0, *(since for since, _ in span.values())}:
                total = held[d] + sum(
                    self.size[t] for (t, _, e), (since, until) in span.items()
                    if e == d and since <= moment < until
                )  # fmt: skip
                if total > self.limit[d]:
                    return False
        return True


def drawn(seed: int) -> Problem:
    """Draw a chain whose first output is read again at its end, where memory is scarce."""
    rng = random.Random(seed)
    builder, sizes = op.GraphBuilder(), [rng.randint(*each) for each in ((2, 5), (1, 4), (1, 4), (0, 2))]
    weights = [rng.randint(0, 1) for _ in range(4)]
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    edges += [edge for edge in ((0, 2), (1, 3)) if rng.random() < 0.15]
    for v, size in enumerate(sizes):
        outputs = [size, 0] if rng.random() < 0.2 else [size]
        builder.vertex(f"v{v}", 0, memory=weights[v], outputs=outputs)
    for u, v in edges:
        builder.edge(f"v{u}", f"v{v}", None if rng.random() < 0.05 else 0)
    if rng.random() < 0.3:
        builder.colocate("v0", f"v{rng.randint(1, 3)}")
    if rng.random() < 0.1:
        builder.separate("v2", "v3")
    run = [[rng.choice((1, 1, 2)), rng.choice((1, 2, 4, 6))] for _ in range(4)]
    need = max(sizes[v] + sum(sizes[u] for u, w in edges if w == v) for v in range(4))
    limits = [need + sum(weights) + rng.randint(-1, 1), rng.choice((None, need, need // 2))]
    cluster = op.Cluster.of(
        [op.Device(f"d{d}", memory=limit) for d, limit in enumerate(limits)],
        rng.choice((1, 1, 2)), rng.choice((0, 1)),
    )  # fmt: skip
    model = op.Model(memory="refcount", release=rng.choice(("end", "end", "start")))
    instance = op.Instance(builder.build(), cluster, model, durations=run)
    return Problem.of(instance, "d1" if rng.random() < 0.5 else None)
