"""Plans that recompute and offload: brute force on small draws, chains by hand, forged plans."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from ortools.sat.python import cp_model

import optpart as op
from optpart.applications.recompute.plan import (
    BACK,
    SECOND,
    Offload,
    Plan,
    Problem,
    makespan,
    violations,
)
from optpart.applications.recompute.plan import Run as Execution
from optpart.applications.recompute.recompute import Answer, Recomputation, faults, find, write
from optpart.applications.recompute.rules import Order, greedy, knapsack, sqrt_checkpoints
from optpart.base.errors import ContradictionError, FailureError
from optpart.interop.formats.native import from_dict

#: With two in which only an offload pays.
SEEDS = [*range(12, 38), 50, 69]


class Brute:
    """All plans of a tiny instance, task by task in the order of their starts.

    All times are whole, so whole starts suffice, without a moment at which nothing goes on. A task
    is an execution ``(v, j)``, or a transfer ``("out", t)`` or ``("back", t)``. What is held is
    counted from what was started so far, which is never too much.
    """

    def __init__(self, problem: Problem) -> None:
        instance = problem.instance
        self.instance, self.host, graph = instance, problem.host, instance.graph
        self.n, self.k = instance.vertices, instance.devices
        self.edges = graph.edges()
        self.maker = graph.tensor_vertex.tolist()
        self.size = graph.tensor_size.fractions()
        self.weight = graph.memory.fractions()
        self.limit = [math.inf if limit is None else limit for limit in instance.cluster.memory]
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
        for v, d in enumerate(on):
            near = {t for u, w, t in self.edges if v in (u, w)}
            near |= {t for t, u in enumerate(self.maker) if u == v}
            need = sum(self.size[t] for t in near)
            need += sum(self.weight[w] for w, e in enumerate(on) if d == e)
            if need > self.limit[d]:  # while it runs
                return best
        self.best = best
        self.latest = (
            sum(self.length.values())
            + sum(
                max(self.over(t, on[u], on[v]) or 0 for u, v, s in self.edges if s == t)
                for t in {t for _, _, t in self.edges}
            )
            * 2
        )
        self.extend([], {}, {}, tasks)
        return self.best

    def extend(
        self, done: list[Any], start: dict[Any, int], reads: dict[Any, Any], left: Any
    ) -> None:
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
        for what, j in left:
            if isinstance(what, int) and j == 0:
                if now + self.tail(what) > top:
                    return
            else:  # a copy that nobody is left to read only takes time and memory
                again = isinstance(what, int)
                made = {t for t, u in enumerate(self.maker) if (u == what if again else t == j)}
                if not any((v, i) in left for _, v, t in self.edges if t in made for i in (0, 1)):
                    return
        for task in left:
            for read in self.choices(task, start):
                ready = max([now, *(self.ready(task, t, copy, start) for t, copy in read)])
                if task[1] == 1 and isinstance(task[0], int):
                    ready = max(ready, start[task[0], 0] + self.length[task[0], 0])
                for other in done:
                    if self.uses[other] == self.uses[task]:
                        ready = max(ready, start[other] + self.length[other])
                idle = max([ready, *(self.quiet(x, start) for x in done)])  # nothing goes on then
                for at in range(ready, min(idle, top - self.length[task]) + 1):
                    top = self.latest if self.best is None else self.best - 1
                    if at + self.length[task] > top:
                        break
                    start[task], reads[task] = at, read
                    if self.fits(start, reads):
                        rest = [x for x in left if x != task]
                        self.extend([*done, task], start, reads, rest)
                    del start[task], reads[task]

    def quiet(self, task: Any, start: dict[Any, int]) -> int:
        """Return when a task and all transfers of what it makes have ended."""
        sent = [self.over(t, self.on[u], self.on[v]) or 0 for u, v, t in self.edges if u == task[0]]
        return start[task] + self.length[task] + max(sent, default=0)

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
    builder, sizes = (
        op.GraphBuilder(),
        [rng.randint(*each) for each in ((2, 5), (1, 4), (1, 4), (0, 2))],
    )
    weights = [rng.randint(0, 1) for _ in range(4)]
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    edges += [edge for edge in ((0, 2), (1, 3)) if rng.random() < 0.15]
    for v, size in enumerate(sizes):
        outputs = [size, 0] if rng.random() < 0.2 else [size]
        builder.vertex(f"v{v}", 0, memory=weights[v], outputs=outputs)
    for u, v in edges:
        builder.edge(f"v{u}", f"v{v}", None if rng.random() < 0.05 else 0)
    if rng.random() < 0.5:
        builder.colocate("v0", f"v{rng.randint(1, 3)}")
    if rng.random() < 0.1:
        builder.separate("v2", "v3")
    run = [[rng.choice((1, 1, 2)), rng.choice((1, 2, 4, 6))] for _ in range(4)]
    run[0] = rng.choice(([1, 2], [3, 6], [4, 6]))
    need = max(sizes[v] + sum(sizes[u] for u, w in edges if w == v) for v in range(4))
    limits = [need + sum(weights) + rng.randint(-1, 1), rng.choice((None, need, need // 2))]
    cluster = op.Cluster.of(
        [op.Device(f"d{d}", memory=limit) for d, limit in enumerate(limits)],
        None, rng.choice((0, 1)),
    )  # fmt: skip
    instance = op.Instance(builder.build(), cluster, op.Model(memory="refcount"), durations=run)
    return Problem.of(instance, "d1" if rng.random() < 0.5 else None)


def restricted(seed: int) -> Problem:
    """Draw one in which vertices may be on one device only, and a link may be missing or slow."""
    problem, rng = drawn(seed), random.Random(-seed)
    document = problem.instance.to_dict()
    for vertex in document["vertices"]:
        if rng.random() < 0.25:
            vertex["devices"] = [rng.choice(["d0", "d1"])]
    ways = rng.choice([None, [[0, 1], [0, 0]], [[0, 0], [1, 0]], [[0, 2], [1, 0]]])
    if ways is not None:
        document["bandwidth"] = ways
    return Problem.of(from_dict(document), None if problem.host is None else "d1")


@cache
def answered(draw: Callable[[int], Problem], seed: int) -> tuple[Problem, Any]:
    problem = draw(seed)
    return problem, find(problem, 60)


@pytest.mark.parametrize(
    ("draw", "seed"), [*product([drawn], SEEDS), *product([restricted], range(1000, 1012))]
)
def test_makespans_are_those_of_brute_force_and_of_solve(
    draw: Callable[[int], Problem], seed: int
) -> None:
    problem, found = answered(draw, seed)
    keep, best = Brute(problem).least()
    assert (found.keep.makespan, found.best.makespan) == (keep, best)
    assert found.best.status == ("INFEASIBLE" if best is None else "OPTIMAL")
    assert found.keep.status == ("INFEASIBLE" if keep is None else "OPTIMAL")
    if seed % 3 == 0:
        assert op.solve(problem.instance, "cpsat").makespan == keep
    for plan in (found.best.plan, found.keep.plan, *found.rules.values()):
        assert plan is None or not violations(problem, plan)


def test_the_draws_need_second_executions_and_offloads() -> None:
    problems, found = zip(*(answered(drawn, seed) for seed in SEEDS), strict=True)
    alone = [
        answer.best if problem.host is None else find(Problem(problem.instance, None), 60).best
        for problem, answer in zip(problems, found, strict=True)
    ]
    assert (
        sum(one.makespan != each.keep.makespan for one, each in zip(alone, found, strict=True)) > 4
    )
    assert any(one.makespan != each.best.makespan for one, each in zip(alone, found, strict=True))
    assert any(each.keep.plan is None and each.best.plan is not None for each in found)


def chain(memory: int | None, layers: int = 3, **model: Any) -> op.Instance:
    """Return layers forward and back; each hands on 4, and gradients 1.

    A backward pass reads the output of its layer and of the one before. Forward passes take 2,
    backward passes 4. The host takes a tensor of 4 in 1.
    """
    builder = op.GraphBuilder()
    for i in range(layers):
        builder.vertex(f"F{i}", 2, outputs=[4], devices=["gpu"])
        if i:
            builder.edge(f"F{i - 1}", f"F{i}")
    for i in reversed(range(layers)):
        builder.vertex(f"B{i}", 4, outputs=[1], devices=["gpu"])
        builder.edge(f"F{i}", f"B{i}")
        if i:
            builder.edge(f"F{i - 1}", f"B{i}")
        if i + 1 < layers:
            builder.edge(f"B{i + 1}", f"B{i}")
    cluster = op.Cluster.of([op.Device("gpu", memory=memory), op.Device("cpu")], 4)
    return op.Instance(builder.build(), cluster, op.Model(**{"memory": "refcount", **model}))


def test_a_chain_by_hand() -> None:
    """While B2 runs, all three outputs and a gradient are 13; without that of F0, 9."""
    enough = op.recompute(chain(13))
    assert (enough.best.makespan, enough.keep.makespan) == (18, 18)
    again = op.recompute(chain(12))
    assert (again.keep.status, again.keep.plan) == ("INFEASIBLE", None)
    assert again.best.makespan == 18 + 2  # F0 once more
    assert {makespan(again.problem, plan) for plan in again.rules.values() if plan} == {20}
    moved = op.recompute(chain(12), offload_to="cpu")
    assert moved.best.makespan == 18 + 1  # F0 comes back when B2 has ended
    assert moved.best.plan is not None
    assert [each.tensor for each in moved.best.plan.offloads] == [0]
    assert len(moved.best.plan.runs) == 6
    assert op.recompute(chain(8)).best.status == "INFEASIBLE"


def test_rules_drop_what_they_say() -> None:
    """Outputs of the first layers wait for their backward passes; segments of two keep one."""
    problem = Problem.of(chain(17, layers=4), None)
    plan = find(problem, 60).best.plan
    assert plan is not None
    order = Order(problem, plan)
    assert [*order.waiting] == [0, 1]
    assert [*sqrt_checkpoints(order)] == [[0]]
    assert [*greedy(order)] == [[], [0], [0, 1]]
    assert [len(each) for each in knapsack(order)][::8] == [2, 1, 0]
    again = order.plan([0, 1])
    assert not violations(problem, again)
    assert [problem.instance.graph.names[run.vertex] for run in again.runs] == [
        "F0", "F1", "F2", "F3", "B3", "F0", "F1", "B2", "B1", "B0",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of the chain and of two plans for it."""
    folder = tmp_path_factory.mktemp("made")
    op.save(chain(12), folder / "chain.json")
    starts = {"again.json": (0, 2, 4, 6, 12, 16), "moved.json": (0, 2, 4, 6, 11, 15)}
    for name, at in starts.items():
        host, copy = (None, SECOND) if name == "again.json" else ("cpu", BACK)
        problem = Problem.of(chain(12), host)
        reads = [{}, {0: 0}, {1: 0}, {2: 0, 1: 0}, {1: 0, 0: copy, 3: 0}, {0: copy, 4: 0}]
        runs = [Execution(v, Fraction(t), reads[v]) for v, t in enumerate(at)]
        runs += [] if host else [Execution(0, Fraction(10), {})]
        offloads = (Offload(0, Fraction(2), Fraction(10)),) if host else ()
        length = Fraction(19 if host else 20)
        best = Answer(Plan((0,) * 6, tuple(runs), offloads), length, length)
        write(Recomputation(problem, best, best, {}, 0.0), folder / name)
    return folder


def forged(made: Path, path: Path, plan: str, mutate: Callable[[dict[str, Any]], object]) -> Path:
    document = json.loads((made / plan).read_text())
    mutate(document)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("plan", "mutate", "fault"),
    [
        ("again", lambda d: d.update(makespan="19"), "makespan is 20"),
        ("again", lambda d: d.update(bound="21"), "the plan refutes the bound"),
        ("again", lambda d: d.update(bound=None), "the plan refutes the bound"),
        ("again", lambda d: d.update(bound="3"), "status is FEASIBLE"),
        ("again", lambda d: d["placement"].update(F0="cpu"), "F0 must not be on cpu"),
        ("again", lambda d: d["executions"].pop(), "is not executed once or twice"),
        ("again", lambda d: d["executions"].append(d["executions"][0]), "F0 is not executed"),
        ("again", lambda d: d["executions"][1][2].clear(), "F1 is not executed"),
        ("again", lambda d: d["executions"][0].__setitem__(1, "-1"), "F0 starts before 0"),
        ("again", lambda d: d["executions"][1].__setitem__(1, "1"), "before F0:0 is there"),
        ("again", lambda d: d["executions"][0].__setitem__(1, "1"), "F0 and F1 overlap on gpu"),
        ("again", lambda d: first(d, "first"), "gpu holds "),
        ("again", lambda d: first(d, "back"), "reads a copy of F0:0 that is not there"),
        ("moved", lambda d: d["offloads"].clear(), "reads a copy of F0:0 that is not there"),
        ("moved", lambda d: d["offloads"].append(d["offloads"][0]), "or not twice"),
        ("moved", lambda d: d["offloads"][0].__setitem__(1, "1"), "offloaded before it is there"),
        ("moved", lambda d: d["offloads"][0].__setitem__(2, "2"), "offloaded before it is there"),
        ("moved", lambda d: d["offloads"][0].__setitem__(1, "10"), "offloaded before it is there"),
        ("moved", lambda d: d["offloads"][0].__setitem__(2, "13"), "before F0:0 is there"),
        ("moved", lambda d: d["offloads"].append(["F1:0", "4", "21/2"]), "overlap on a link"),
        ("moved", lambda d: first(d, "first"), "gpu holds "),
    ],
)
def test_forged_plans_are_rejected(
    made: Path, tmp_path: Path, plan: str, mutate: Callable[[Any], object], fault: str
) -> None:
    path = forged(made, tmp_path / "forged.json", f"{plan}.json", mutate)
    host = "cpu" if plan == "moved" else None
    problem = Problem.of(chain(12), host)
    assert faults(problem, made / f"{plan}.json") == []
    assert any(fault in each for each in faults(problem, path)), faults(problem, path)


def first(document: dict[str, Any], copy: str) -> None:
    """Let every reader of F0 read this copy."""
    for _, _, reads in document["executions"]:
        reads.update({tensor: copy for tensor in reads if tensor == "F0:0"})


@pytest.mark.parametrize(
    ("mutate", "fault"),
    [
        (lambda d: d.update(format="optpart-apart/1"), "format: is 'optpart-apart/1'"),
        (lambda d: d.update(sha256=""), "sha256: is not"),
        (lambda d: d.update(offload_to="cpu"), "offload_to: is not None"),
        (lambda d: d.pop("bound"), "bound: is missing"),
        (lambda d: d["placement"].pop("F0"), "placement.F0: is missing"),
        (lambda d: d["placement"].update(F0="tpu"), "placement: no device 'tpu'"),
        (lambda d: d["executions"][0].pop(), r"executions\[0\]: has 2 entries"),
        (lambda d: d["executions"][0].__setitem__(0, "F9"), r"executions\[0\]: no vertex 'F9'"),
        (lambda d: d["executions"][0].__setitem__(1, "soon"), r"executions\[0\]: "),
        (lambda d: d["executions"][1][2].update(F9="first"), r"executions\[1\]: no tensor"),
        (lambda d: first(d, "third"), r"no copy 'third'"),
    ],
)
def test_files_about_something_else_are_one_line(
    made: Path, tmp_path: Path, mutate: Callable[[Any], object], fault: str
) -> None:
    path = forged(made, tmp_path / "other.json", "again.json", mutate)
    with pytest.raises(op.InputError, match=rf"other\.json: .*{fault}"):
        faults(Problem.of(chain(12), None), path)


@pytest.mark.parametrize(
    ("instance", "options", "fault"),
    [
        (lambda: many(2, memory="none"), {}, "model.memory: is 'none'"),
        (lambda: chain(12, communication="link"), {}, "model.communication: is 'link'"),
        (lambda: chain(12, release="start"), {}, "model.release: is 'start'"),
        (lambda: chain(12), {"offload_to": "disk"}, "offload_to: no device 'disk'"),
        (lambda: many(201), {}, "vertices: 201 of them; give at most 200"),
        (lambda: many(2, Fraction(1, 2**61 - 1)), {}, "no common tick"),
        (lambda: many(2, Fraction(1), 2**60), {}, "too fine together"),
    ],
)
def test_instances_that_are_not_defined_are_one_line(
    instance: Callable[[], op.Instance], options: dict[str, str], fault: str
) -> None:
    with pytest.raises(op.InputError, match=fault):
        op.recompute(instance(), **options)


def many(
    count: int, time: Fraction = Fraction(1), size: int = 1, memory: op.Memory = "refcount"
) -> op.Instance:
    builder = op.GraphBuilder()
    for v in range(count):
        builder.vertex(f"v{v}", [time, 1][v % 2], outputs=[size + v])
    cluster = op.Cluster.of([op.Device("gpu", memory=1)])
    return op.Instance(builder.build(), cluster, op.Model(memory=memory))


def test_the_command_says_what_is_proven(made: Path, tmp_path: Path, run: Run) -> None:
    plan, asked = tmp_path / "plan.json", str(made / "chain.json")
    done = run("recompute", asked, "-o", str(plan))
    assert done.code == 0, done.err
    assert done.out.startswith("unnamed: OPTIMAL (by CP-SAT), makespan 20, bound 20, ")
    assert "keep all (INFEASIBLE)         –    –           –          –\n" in done.out
    done = run("recompute", asked, "--check", str(plan))
    assert (done.code, "keeps every rule" in done.out) == (0, True)
    done = run("recompute", asked, "--check", str(made / "moved.json"))
    assert (done.code, done.err.count("\n")) == (2, 1)
    document = json.loads(run("recompute", asked, "--json", "--offload-to", "cpu").out)
    assert (document["makespan"], len(document["offloads"])) == ("19", 1)
    forged(made, plan, "again.json", lambda d: d.update(makespan="1"))
    assert run("recompute", asked, "--check", str(plan)).code == 1
    op.save(chain(8), tmp_path / "small.json")
    done = run("recompute", str(tmp_path / "small.json"))
    assert (done.code, "INFEASIBLE (by CP-SAT)" in done.out) == (3, True)


def test_what_the_solver_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(chain(12), None)
    monkeypatch.setattr(cp_model.CpSolver, "best_objective_bound", 99.0)
    with pytest.raises(ContradictionError):
        find(problem, 60)
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: cp_model.UNKNOWN)
    monkeypatch.setattr(cp_model.CpSolver, "best_objective_bound", -math.inf)
    assert find(Problem.of(chain(8), None), 60).best.status == "UNKNOWN"
    best = find(problem, 60).best  # of a rule
    assert (best.status, best.makespan, best.bound) == ("FEASIBLE", 20, 18)  # load and paths alone
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: cp_model.MODEL_INVALID)
    with pytest.raises(FailureError, match="CP-SAT refuses the model"):
        find(problem, 60)
