"""Prefilling and decoding apart: brute force on small draws, simple proofs, and forged plans."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from ortools.sat.python import cp_model
from transformer_folders import small_llama

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
of = "mi210"
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
    """Draw like vertices between two ends, on devices of which some are not linked."""
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
    return Request((prefill, decode), moves, tuple(weights), tuple(cached), tied, room, limit, {})


def brute_force(request: Request, together: bool) -> int | None:
    """Try all plans, with arithmetic of its own."""
    n, cluster = len(request.weights), request.moves.cluster
    devices = range(len(cluster))
    both = [
        [[int(each.duration(v, d)) for d in devices] for v in range(n)] for each in request.phases
    ]
    outputs = [each.graph.tensor_size.fractions() for each in request.phases]

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


@pytest.mark.parametrize("seed", range(12))
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
    assert any((each.same.times.token or 0) > (each.apart.times.token or 99) for each in found)
    assert any(each.apart.plan and not each.same.plan for each in found)


def test_a_state_may_be_left_and_come_back_to() -> None:
    """From 0 to 2 there is a way by 1 only, which has room for one vertex of four at a time."""
    cluster = op.Cluster.of([op.Device(f"d{d}") for d in range(3)],
                            [[None, None, 0], [None, None, None], [0, None, None]])  # fmt: skip
    run = [[1, 9, 99]] + [[1, 9, 1]] * 4 + [[99, 9, 1]]
    each = phase(run, [0] * 6, cluster)
    request = Request((each, each), moving(each, (0,) * 6, 1), (1,) * 6, ((0, 0),) * 6, 0,
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
    slow = phase([[2**53] * request.moves.devices] * len(request.weights),
                 [0] * len(request.weights), request.moves.cluster)  # fmt: skip
    with pytest.raises(op.InputError, match=r"a token takes .* give faster devices"):
        solve(replace(request, phases=(request.phases[0], slow)), now() + 60, together=False)
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a cluster and of plans for it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "two.toml").write_text(TWO)
    write(find(asked(folder), 60), folder / "plan.json")
    return folder


def asked(folder: Path, **options: Any) -> Request:
    given = {"prompt": 4096, "context": 16384, "first": "320ms", **options}
    return read("qwen3-8b", folder / "two.toml", **given)


def test_prefilling_is_where_operations_are_fast_and_decoding_where_memory_is(made: Path) -> None:
    found = op.apart(
        "qwen3-8b", made / "two.toml", prompt=4096, context=16384, first="320ms", seconds=60
    )
    document = json.loads((made / "plan.json").read_text())
    assert (found.apart.status, found.same.status) == ("OPTIMAL", "OPTIMAL")
    assert str(found.apart.times.token) == document["apart"]["token"]
    assert (found.apart.times.token or 0) < (found.same.times.token or 0)
    plan = found.apart.plan
    assert plan is not None
    assert plan.prefill.count(0) > plan.decode.count(0)
    request = found.request
    assert held(request, plan, 0) + held(request, plan, 1) > sum(request.weights)
    everywhere = Plan((0,) * 39, (1,) * 39)
    assert held(request, everywhere, 0) == sum(request.weights) + sum(p for p, _ in request.cached)
    assert held(request, everywhere, 1) == sum(request.weights) + sum(c for _, c in request.cached)
    assert faults(request, made / "plan.json")[0] == []


def test_a_matrix_of_embedding_and_head_counts_once_on_a_device(made: Path) -> None:
    request = read("gemma-2-9b", made / "two.toml", prompt=64, context=128, first="9s", batch=2)
    assert request.tied == request.weights[0] > 0
    assert request.remarks[-1].startswith("On a device that has both")
    n = len(request.weights)
    both, one = Plan((0,) * n, (0,) * n), Plan((0,) * n, (*(0,) * (n - 1), 1))
    parameters = sum(request.weights) - request.tied
    assert held(request, both, 0) == parameters + sum(context for _, context in request.cached)
    assert held(request, one, 0) + held(request, one, 1) == held(request, both, 0) + request.tied
    assert request.moves.graph.tensor_size[n] == 8


def test_a_folder_of_hugging_face_is_read(made: Path, tmp_path: Path) -> None:
    folder = small_llama(tmp_path)
    given = {"prompt": 64, "context": 128, "first": "9s", "kv_dtype": "q8_0"}
    for model in (folder, folder / "model.safetensors"):
        found = op.apart(model, made / "two.toml", **given)
        assert found.apart.status == "OPTIMAL"
        assert found.request.tied == found.request.weights[0] == 320
    with pytest.raises(op.InputError, match="weights: means nothing to the format"):
        read(folder, made / "two.toml", weights="q4_K", **given)


@pytest.mark.parametrize(
    ("mutate", "fault"),
    [
        (lambda d: d["apart"].update(token="5"), "apart: token is "),
        (lambda d: d["apart"].update(first="5"), "apart: first is "),
        (lambda d: d["same"].update(first=None), "same: first is "),
        (lambda d: d["apart"].update(bound="5"), "apart: status is FEASIBLE, not OPTIMAL"),
        (lambda d: d["apart"].update(bound=str(10**10)), "apart: the plan refutes the bound"),
        (lambda d: d["apart"].update(bound=None), "apart: the plan refutes the bound"),
        (lambda d: d["same"].update(status="FEASIBLE"), "same: status is OPTIMAL, not FEASIBLE"),
        (lambda d: d["apart"].update(proof="path"), "proof 'path' does not prove"),
        (lambda d: d["apart"].update(proof="memory"), "proof 'memory' does not prove"),
        (lambda d: d["apart"].update(proof="faith"), "proof 'faith' does not prove"),
        (lambda d: d["same"].update(d["apart"]), "same: the placements of both phases differ"),
        (lambda d: d["apart"].update(d["same"]), ""),
        (lambda d: d["apart"].update(prefill=["memory"] * 39), "the first token takes "),
        (lambda d: forget(d, "apart", "path"), "apart: the proof 'path' does not prove"),
        (lambda d: forget(d, "apart", "solver"), "apart: the plan with one placement refutes"),
    ],
)
def test_forged_plans_are_rejected(
    made: Path, tmp_path: Path, mutate: Callable[[dict[str, Any]], None], fault: str, run: Run
) -> None:
    document = json.loads((made / "plan.json").read_text())
    mutate(document)
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(document))
    wrong, _ = faults(asked(made), path)
    assert any(fault in each for each in wrong) == bool(fault)


def forget(document: dict[str, Any], which: str, proof: str) -> None:
    """Claim that there is no plan."""
    none = {"token": None, "first": None, "bound": None, "prefill": [], "decode": []}
    document[which].update(none, status="INFEASIBLE", proof=proof)


@pytest.mark.parametrize(
    ("mutate", "fault"),
    [
        (lambda d: d.update(format="optpart-serving/1"), "format: is 'optpart-serving/1'"),
        (lambda d: d["request"].update(prompt=1), "request: is of another request"),
        (lambda d: d["vertices"].pop(), "vertices: is of another request"),
        (lambda d: d.pop("same"), "same: is missing"),
        (lambda d: d["apart"].pop("proof"), "apart.proof: is missing"),
        (lambda d: d["apart"]["prefill"].pop(), "apart: has too many or too few devices"),
        (lambda d: d["apart"].update(decode=["gpu"] * 39), "apart: there is no 'gpu'"),
        (lambda d: d["apart"].update(bound="much"), "apart.bound: "),
    ],
)
def test_files_about_something_else_are_one_line(
    made: Path, tmp_path: Path, mutate: Callable[[dict[str, Any]], None], fault: str
) -> None:
    document = json.loads((made / "plan.json").read_text())
    mutate(document)
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises(op.InputError, match=rf"other\.json: {fault}"):
        faults(asked(made), tmp_path / "other.json")


def test_a_plan_without_links_or_memory_breaks_rules(made: Path) -> None:
    request = asked(made)
    n = len(request.weights)
    cluster = op.Cluster.of([op.Device("compute"), op.Device("memory")], 0)
    apart = replace(request, room=(10, None), moves=replace(request.moves, cluster=cluster))
    broken = [*violations(apart, Plan((0,) * n, (1,) * n))]
    assert "no link takes keys and values of block.0 from compute to memory" in broken
    assert "no link takes the next token from compute to memory" in broken
    assert any(each.startswith("compute holds") for each in broken)
    assert times(apart, Plan((0,) * n, (1,) * n)).first is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"first": "600"}, "first: '600' has no unit"),
        ({"first": "600 apples"}, "'apples' is no unit of time"),
        ({"prompt": 16384}, "prompt: 16384 of 16384 positions leave no token"),
        ({"weights": "q9"}, "weights: no type 'q9'"),
        ({"kv_dtype": "x"}, "kv_dtype: no type 'x'"),
        ({"reserve": "9 TB"}, "has no more memory than"),
    ],
)
def test_faults_of_requests_are_one_line(made: Path, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(op.InputError, match=fault):
        asked(made, **change)


def test_what_is_no_decoder_on_computing_devices_is_refused(made: Path, tmp_path: Path) -> None:
    given = {"prompt": 64, "context": 128, "first": "1s"}
    (tmp_path / "graph.dot").write_text("digraph { a -> b }")
    with pytest.raises(op.InputError, match="is no language model"):
        read(tmp_path / "graph.dot", made / "two.toml", **given)
    more = '[[device]]\nof = "l40s"\nname = "disk"\ncomputes_on = "compute"\n'
    (tmp_path / "disk.toml").write_text(TWO + more)
    with pytest.raises(op.InputError, match="computes_on: means nothing here"):
        read("qwen3-8b", tmp_path / "disk.toml", **given)
    (tmp_path / "many.toml").write_text(TWO + '[[device]]\nof = "l4"\nname = "l4"\ncount = 11\n')
    with pytest.raises(op.InputError, match="13; give at most 12"):
        op.apart("qwen3-8b", tmp_path / "many.toml", **given)


def test_the_command(made: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    asks = ("apart", *SMALL, "--first")
    shown = run(*asks, "320ms", "-o", "new.json")
    two, one, *table = shown.out.splitlines()
    assert (shown.code, two.partition(",")[0]) == (0, "two placements: OPTIMAL")
    assert "; two save " in one
    assert len(table) == 3
    assert "The time to first token ends when" in shown.err
    printed = run(*asks, "320ms", "--json")
    document = json.loads(printed.out)
    assert document["apart"]["token"] == json.loads(Path("new.json").read_text())["apart"]["token"]
    checked = run(*asks, "320ms", "--check", "new.json")
    assert (checked.code, checked.out.count("\n")) == (0, 1)
    assert "CP-SAT alone claims the bounds of: apart, same" in checked.out
    document["apart"]["token"] = "1"
    Path("forged.json").write_text(json.dumps(document))
    assert run(*asks, "320ms", "--check", "forged.json").code == 1
    assert run(*asks, "700ms", "--check", "new.json").code == 2
    late = run(*asks, "1ms", "-o", "none.json")
    assert (late.code, late.out.count("INFEASIBLE (by path: no prompt is read in less")) == (3, 2)
    assert run(*asks, "1ms", "--check", "none.json").code == 0
    full = run(*asks, "9s", "--batch", "400")
    assert (full.code, full.out.count("INFEASIBLE (by memory: weights, keys and")) == (3, 2)
    for bad in (("1",), ("1s", "--prompt", "32k"), ("1s", "--batch", "0"), ("1s", "--prompt", "0")):
        ran = run(*asks, *bad)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), bad
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: cp_model.UNKNOWN)
    monkeypatch.setattr(cp_model.CpSolver, "best_objective_bound", 0.0)
    assert run(*asks, "320ms").code == 4
