"""Prefilling and decoding apart: brute force on small draws, simple proofs, and forged plans."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from ortools.sat.python import cp_model

import optpart as op
from optpart.applications.serving.apart.apart import faults, find, write
from optpart.applications.serving.apart.bound import refuted, shortest
from optpart.applications.serving.apart.exact import solve
from optpart.applications.serving.apart.plan import Plan, held, times, violations
from optpart.applications.serving.apart.request import Request, moving, read
from optpart.base.clock import now
from optpart.base.errors import ContradictionError, FailureError

TWO = """
default_link = "ethernet-100g"
[[device]]
of = "l40s"
name = "compute"
[[device]]
of = "h20"
name = "memory"
"""
SMALL = ("qwen3-8b", "--cluster", "two.toml", "--prompt", "4k", "--context", "16k")


def phase(run: list[list[int]], sizes: list[int], cluster: op.Cluster) -> op.Instance:
    """Return a path of vertices with their run times and the sizes of what they hand on."""
    builder = op.GraphBuilder()
    for v, size in enumerate(sizes):
        builder.vertex(f"v{v}", 0, outputs=[size])
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    return op.Instance(builder.build(), cluster, durations=run)


def drawn(seed: int) -> Request:
    """Draw like vertices between two ends, on two or three devices, some of which are not linked."""
    rng = random.Random(seed)
    k = rng.choice((2, 2, 3))
    n = rng.randint(3, 6 if k == 2 else 4)
    alike = rng.random() < 0.7

    def spread(draw: Callable[[], Any]) -> list[Any]:
        inside = [draw()] * (n - 2) if alike else [draw() for _ in range(n - 2)]
        return [draw(), *inside, draw()]

    rows = [[rng.choice((0, 1, 1, None)) for _ in range(k)] for _ in range(k)]
    latency = [[rng.randint(0, 3) for _ in range(k)] for _ in range(k)]
    cluster = op.Cluster.of([op.Device(f"d{d}") for d in range(k)], rows, latency)
    prefill, decode = (
        phase(spread(lambda: [rng.randint(1, 20) for _ in range(k)]),
              spread(lambda: rng.randint(0, 2)), cluster)
        for _ in range(2)
    )  # fmt: skip
    weights = spread(lambda: rng.randint(1, 9))
    cached = spread(lambda: (c := rng.randint(0, 3), c + rng.randint(0, 2)))
    cached[0] = cached[-1] = (0, 0)
    room = tuple(rng.choice((None, rng.randint(5, 30))) for _ in range(k))
    moves = moving(prefill, tuple(prompt for prompt, _ in cached), 1)
    tied = rng.choice((0, min(weights[0], weights[-1])))
    limit = rng.randint(10, 20 * n)
    return Request(prefill, decode, moves, tuple(weights), tuple(cached), tied, room, limit, {})


def brute_force(request: Request, together: bool) -> int | None:
    """Try all plans, with arithmetic of its own."""
    n, cluster = len(request.weights), request.prefill.cluster
    devices = range(len(cluster))
    both = [
        [[int(each.duration(v, d)) for d in devices] for v in range(n)]
        for each in (request.prefill, request.decode)
    ]
    outputs = [each.graph.tensor_size.fractions() for each in (request.prefill, request.decode)]

    @cache
    def over(size: int, d: int, e: int) -> float:
        if d == e:
            return 0
        if cluster.infinite[d, e]:
            return int(cluster.latency[d, e])
        rate = cluster.bandwidth[d, e]
        return int(cluster.latency[d, e] + size / rate) if rate else float("inf")

    def passed(which: int, placement: tuple[int, ...]) -> float:
        pairs = enumerate(pairwise(placement))
        return sum(both[which][v][d] for v, d in enumerate(placement)) + sum(
            over(int(outputs[which][v]), d, e) for v, (d, e) in pairs
        )

    def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        for d in devices:
            used = 0
            for v in range(n):
                prompt, context = request.cached[v]
                used += request.weights[v] * (d in (a[v], b[v]))
                used += context if b[v] == d else prompt if a[v] == d else 0
            used -= request.tied * (d in (a[0], b[0]) and d in (a[-1], b[-1]))
            if used > (float("inf") if request.room[d] is None else request.room[d]) and (
                {d} & {*a, *b}
            ):
                return False
        return True

    best = float("inf")
    firsts = {a: passed(0, a) for a in product(devices, repeat=n)}
    tokens = {b: passed(1, b) + over(1, b[-1], b[0]) for b in product(devices, repeat=n)}
    for b, token in tokens.items():
        for a in (b,) if together else firsts:
            moved = sum(
                over(prompt, d, e)
                for d, e, (prompt, _) in zip(a, b, request.cached, strict=True)
                if prompt
            )
            first = firsts[a] + moved + over(1, a[-1], b[0])
            if token < best and first <= request.limit and fits(a, b):
                best = token
    return None if best == float("inf") else int(best)


@pytest.mark.parametrize("seed", range(40))
def test_plans_bounds_and_proofs_agree_with_brute_force(seed: int) -> None:
    request = drawn(seed)
    best, one = (brute_force(request, together) for together in (False, True))
    if refuted(request) is not None:
        assert best is None
    for together, value in ((False, best), (True, one)):
        plan, bound = solve(request, now() + 60, together=together)
        assert bound == value
        assert (plan is None) == (value is None)
        if plan is not None:
            assert [*violations(request, plan)] == []
            assert times(request, plan).token == value
            assert (shortest(request, 1) or 0) <= (value or 0)
            assert plan.prefill == plan.decode or not together
    found = find(request, 60)
    assert (found.apart.times.token, found.same.times.token) == (best, one)
    assert found.apart.status == ("INFEASIBLE" if best is None else "OPTIMAL")


def test_the_draws_have_all_kinds_of_answers() -> None:
    found = [find(drawn(seed), 60) for seed in range(40)]
    assert {each.apart.proof for each in found if each.apart.plan is None} >= {"path", "memory"}
    assert {each.apart.proof for each in found if each.apart.plan} == {"path", "solver"}
    assert any(each.saved for each in found)
    assert any(each.apart.plan and not each.same.plan for each in found)


def test_a_state_may_be_left_and_come_back_to() -> None:
    """From 0 to 2 there is a way by 1 only, which has room for one vertex of four at a time."""
    cluster = op.Cluster.of([op.Device(f"d{d}") for d in range(3)],
                            [[None, None, 0], [None, None, None], [0, None, None]])  # fmt: skip
    run = [[1, 9, 99]] + [[1, 9, 1]] * 4 + [[99, 9, 1]]
    each = phase(run, [0] * 6, cluster)
    request = Request(each, each, moving(each, (0,) * 6, 1), (1,) * 6, ((0, 0),) * 6, 0,
                      (3, None, None), 10**6, {})  # fmt: skip
    assert find(request, 60).apart.times.token == brute_force(request, False)


def test_only_the_solver_can_say_that_memory_and_time_together_are_too_little() -> None:
    seeds = (drawn(seed) for seed in range(200))
    request = next(r for r in seeds if refuted(r) is None and brute_force(r, False) is None)
    found = find(request, 60).apart
    assert (found.status, found.proof) == ("INFEASIBLE", "solver")
    assert found.reason.startswith("CP-SAT claims it")


def test_a_model_that_the_solver_refuses_and_times_beyond_doubles_are_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = next(r for r in map(drawn, range(99)) if brute_force(r, False) is not None)
    slow = phase([[2**53] * request.decode.devices] * len(request.weights),
                 [0] * len(request.weights), request.decode.cluster)  # fmt: skip
    with pytest.raises(op.InputError, match="a token may take"):
        solve(replace(request, decode=slow), now() + 60, together=False)
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: cp_model.MODEL_INVALID)
    with pytest.raises(FailureError, match="CP-SAT refuses the model"):
        find(request, 60)
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: cp_model.UNKNOWN)
    monkeypatch.setattr(cp_model.CpSolver, "best_objective_bound", float("-inf"))
    found = find(request, 60).apart
    assert (found.status, found.proof, found.gap) == ("UNKNOWN", "path", None)


def test_a_plan_that_contradicts_the_solver_stops_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = next(r for r in map(drawn, range(99)) if (brute_force(r, True) or 0) > 1)
    plan, bound = solve(request, now() + 60, together=True)
    answers = iter([(plan, bound), (None, None)])
    name = "optpart.applications.serving.apart.apart.solve"
    monkeypatch.setattr(name, lambda *_, **__: next(answers))
    with pytest.raises(ContradictionError):
        find(request, 60)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(TWO)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Request, dict[str, Any]]:
    """A request, and the document of its plans."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "two.toml").write_text(TWO)
    request = read("qwen3-8b", folder / "two.toml", prompt=4096, context=16384, first="600ms")
    write(find(request, 60), folder / "plan.json")
    document: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    return request, document


def test_prefilling_is_where_operations_are_fast_and_decoding_where_memory_is(
    made: tuple[Request, dict[str, Any]],
) -> None:
    request, document = made
    found = op.apart("qwen3-8b", read_cluster(request), prompt=4096, context=16384, first="600ms")
    assert (found.apart.status, found.same.status) == ("OPTIMAL", "OPTIMAL")
    assert str(found.apart.times.token) == document["apart"]["token"]
    assert {*document["apart"]["prefill"].values()} == {"compute"}
    assert {*document["apart"]["decode"].values()} == {"memory"}
    assert found.saved is not None
    assert 0 < found.saved < 1
    assert found.apart.plan is not None
    assert held(request, found.apart.plan, 0) < held(request, found.apart.plan, 1)


def read_cluster(request: Request) -> str:
    return str(Path(request.asked["cluster"])) if "cluster" in request.asked else "two.toml"
