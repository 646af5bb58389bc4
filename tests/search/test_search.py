"""The method ``search``: verified, never worse than its start, repeatable, safe to interrupt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import optpart
from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.base import clock
from optpart.base.children.worker import LOCAL, Channel, Pool, Worker
from optpart.base.errors import InputError
from optpart.exact.enumeration import enumerate_all
from optpart.interop.formats import result as results
from optpart.methods import registry
from optpart.methods.fingerprint import fingerprint
from optpart.methods.search import search
from optpart.problem.model import Communication, Memory
from optpart.search import checkpoint
from optpart.search import search as module
from optpart.search.layout import layout_of, read_start
from optpart.search.plan import Layout
from optpart.search.searcher import searcher
from optpart.search.searcher_process import SearcherProcess
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget, Progress, Result, Status
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance, random_instance

#: One worker and thousands of moves: the same in every run.
COUNTED = Budget(seconds=60, workers=1, deterministic=3)

COMBINATIONS: list[tuple[Communication, Memory]] = list(
    product(get_args(Communication), get_args(Memory))
)


def medium(seed: int, communication: Communication = "delay", memory: Memory = "none") -> Instance:
    return draw_instance(seed, communication, memory, vertices=25, devices=3)


@pytest.mark.parametrize(("communication", "memory"), COMBINATIONS)
@pytest.mark.parametrize("seed", [11])
def test_every_model_gives_a_valid_schedule_no_worse_than_any_heuristic(
    communication: Communication, memory: Memory, seed: int
) -> None:
    instance = draw_instance(seed, communication, memory, vertices=10, devices=3)
    found = search(instance, budget=COUNTED)
    heuristic = [registry.get(name)(instance).makespan for name in registry.starts()]
    least = min((value for value in heuristic if value is not None), default=None)
    if found.schedule is None:
        assert least is None
        return
    assert verify(instance, found.schedule) == []
    assert found.makespan is not None
    assert least is None or found.makespan <= least
    assert found.lower_bound is not None
    assert found.lower_bound <= found.makespan


def test_tiny_optima_are_mostly_reached() -> None:
    reached = total = 0
    for (communication, memory), seed in product(COMBINATIONS, range(2)):
        instance = draw_instance(seed, communication, memory, vertices=5)
        best = enumerate_all(instance, budget=Budget(20, 1)).makespan
        reached += search(instance, budget=COUNTED).makespan == best
        total += 1
    assert reached >= 0.85 * total


@pytest.mark.parametrize("objective", ["makespan", "traffic", "lexicographic"])
def test_each_objective_improves_its_value(objective: str) -> None:
    instance = medium(45)
    goal = Goal(objective=objective)  # type: ignore[arg-type]
    found = search(instance, budget=COUNTED, goal=goal)
    heft = registry.get("heft")(instance)
    assert found.traffic is not None
    assert found.makespan is not None
    assert heft.traffic is not None
    assert heft.makespan is not None
    if objective == "traffic":
        assert found.traffic <= heft.traffic
        assert found.traffic_bound == 0
    else:
        assert found.makespan <= heft.makespan


def test_a_given_placement_is_kept() -> None:
    instance = medium(45)
    heft = registry.get("heft")(instance).schedule
    assert heft is not None
    given = {v: int(heft.placement[v]) for v in range(0, instance.vertices, 2)}
    found = search(instance, budget=COUNTED, goal=Goal(placement=given))
    assert found.schedule is not None
    assert all(found.schedule.placement[v] == d for v, d in given.items())
    assert found.given == f"the placement of {len(given)} vertices"


def test_a_given_order_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="goal: an order or a limit is not supported"):
        search(medium(1), goal=Goal(order=((0, 1),)))


@pytest.mark.parametrize("communication", get_args(Communication))
def test_same_seed_and_moves_give_the_same_schedule(communication: Communication) -> None:
    instance = medium(11, communication)
    one = search(instance, budget=COUNTED, seed=7)
    other = search(instance, budget=COUNTED, seed=7)
    if one.schedule is None or other.schedule is None:
        assert one.schedule is other.schedule
        return
    assert one.schedule.placement.tolist() == other.schedule.placement.tolist()
    assert one.schedule.start.fractions() == other.schedule.start.fractions()


def test_a_proven_optimum_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "searcher", lambda *_, **__: pytest.fail("it goes on"))
    graph = GraphBuilder().vertex("a", 3).vertex("b", 3).build()
    found = search(Instance(graph, Cluster.uniform(2)), budget=Budget(60, 1))
    assert found.status is Status.OPTIMAL


def test_an_empty_graph_is_optimal() -> None:
    found = search(Instance(GraphBuilder().build(), Cluster.uniform(2)), budget=COUNTED)
    assert found.status is Status.OPTIMAL
    assert found.makespan == 0


def test_an_infeasible_instance_says_why() -> None:
    graph = GraphBuilder().vertex("a", 1, memory=5).build()
    cluster = Cluster.of([Device("d", memory=4)])
    found = search(Instance(graph, cluster, Model(memory="estimate")), budget=COUNTED)
    assert found.status is Status.INFEASIBLE
    assert "needs memory 5" in found.reason


def test_an_interrupt_returns_the_verified_best() -> None:
    def stop(step: Progress) -> None:
        steps.append(step)
        if len(steps) == 3:
            raise KeyboardInterrupt

    steps: list[Progress] = []
    instance = medium(49)
    found = search(instance, budget=COUNTED, watch=stop)
    assert found.termination is Termination.INTERRUPTED
    assert found.schedule is not None
    assert verify(instance, found.schedule) == []


def test_exact_timing_takes_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    instance = medium(49)
    start = worse_start(instance).schedule
    assert start is not None
    job = Job(instance, budget=Budget(200, 1))
    run = module._Search("search", job, None, lambda *_, **__: iter(()), LOCAL)
    own = searcher(
        "search",
        instance,
        "makespan",
        layout_of(instance, start),
        np.random.default_rng(0),
        seconds=None,
    )
    timed = []

    def slow(layout: Layout) -> Schedule:
        now[0] += 1.0
        timed.append(now[0])
        return start

    monkeypatch.setattr(own.evaluator, "schedule", slow)
    while now[0] < 200.0:
        now[0] += 0.1
        own.best = own.best._replace()
        run._take(own)
    assert 3 <= len(timed) <= 0.04 * now[0]


def worse_start(instance: Instance) -> Result:
    return registry.get("fastest+fifo")(instance)


def test_the_result_is_never_worse_than_the_start() -> None:
    instance = medium(49)
    best = search(instance, budget=Budget(60, 1, 20))
    again = search(instance, budget=Budget(60, 1, 1), seed=9, start=best.schedule)
    assert best.makespan is not None
    assert again.makespan is not None
    assert again.makespan <= best.makespan


@pytest.mark.parametrize(("limit", "expected"), [(Budget(1e-6, 1), 1), (COUNTED, 4)])
def test_one_heuristic_is_tried_even_if_it_takes_all_the_time(limit: Budget, expected: int) -> None:
    """A budget of moves tries all."""
    instance, tried = medium(49), []

    def starts(instance: Instance, seed: int, *, fast_only: bool) -> Iterator[Schedule | None]:
        for name in ("heft", "contiguous-split", "hash+pct", "hash+fifo"):
            tried.append(name)
            yield registry.get(name)(instance, seed=seed).schedule

    module.run_search("search", Job(instance, budget=limit), starts=starts)
    assert len(tried) == expected


def test_a_start_of_another_instance_is_matched_by_names_and_repaired(tmp_path: Path) -> None:
    graph = (
        GraphBuilder()
        .vertex("a", 2, outputs=[1])
        .vertex("b", 3)
        .vertex("c", 1)
        .edge("a", "b")
        .build()
    )
    old = Instance(graph, Cluster.uniform(3, bandwidth=1))
    results.write(worse_start(old), tmp_path / "old.json")
    new = Instance(graph, Cluster.of([Device("d7"), Device("d0", speed=Fraction(1, 2))]))
    start = read_start(tmp_path / "old.json", new)
    found = search(new, budget=COUNTED, start=start)
    assert found.schedule is not None
    assert verify(new, found.schedule) == []


def test_a_start_from_a_file_keeps_its_transfers_and_is_never_made_worse(tmp_path: Path) -> None:
    instance = medium(45)
    best = search(instance, budget=COUNTED)
    assert best.schedule is not None
    assert len(best.schedule.transfers) > 0
    results.write(best, tmp_path / "best.json")
    start = read_start(tmp_path / "best.json", instance)
    assert verify(instance, start) == []
    found = search(instance, budget=Budget(60, 1, deterministic=0.01), start=start)
    assert found.makespan is not None
    assert best.makespan is not None
    assert found.makespan <= best.makespan
    assert "repaired" not in found.reason


def test_a_start_of_another_graph_is_one_clear_line(tmp_path: Path) -> None:
    instance = medium(45)
    results.write(worse_start(instance), tmp_path / "r.json")
    other = Instance(GraphBuilder().vertex("zz", 1).build(), Cluster.uniform(1))
    with pytest.raises(InputError, match=r"r\.json: schedule\.placement: names no vertex"):
        read_start(tmp_path / "r.json", other)


# --- workers -----------------------------------------------------------------------------------


def test_two_workers_give_a_valid_schedule() -> None:
    instance = medium(45)
    found = search(instance, budget=Budget(2, 2))
    assert found.schedule is not None
    assert found.workers == 2
    assert verify(instance, found.schedule) == []


def test_no_more_workers_run_than_there_are_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    born: list[SearcherProcess] = []
    start = SearcherProcess.__init__

    def count(self: SearcherProcess, pool: Pool, number: int) -> None:
        born.append(self)
        start(self, pool, number)

    monkeypatch.setattr(SearcherProcess, "__init__", count)
    monkeypatch.setattr("optpart.base.children.worker.available_processors", lambda: 2)
    found = search(medium(45), budget=Budget(1, 1024))
    assert len(born) == 1
    assert found.workers == 1024
    assert found.reason == "time limit; used 2 of 1024 workers, one per processor"


class Doomed:
    """A pool of processes that are killed as soon as they are hired."""

    remote, workers = True, 3

    def hire(self, module: str, threads: int = 1) -> Channel:
        worker = Worker(module)
        worker.process.kill()
        return worker


def test_a_worker_that_dies_costs_only_its_own_work_and_is_told() -> None:
    instance = medium(45)
    found = search(instance, budget=Budget(1, 3), pool=Doomed())
    assert found.schedule is not None
    assert verify(instance, found.schedule) == []
    assert found.status is not Status.OPTIMAL
    for number in (2, 3):
        assert f"searcher {number} failed: its process died (signal 9)" in found.reason
    assert found.reason.endswith("; 0 of 2 searchers elsewhere began")


# --- checkpoints -------------------------------------------------------------------------------


def test_a_resumed_search_continues_from_the_checkpoint(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    first = search(instance, budget=COUNTED, checkpoint=file)
    kept = checkpoint.read(file, instance)
    assert kept.moves == 3000
    longer = Budget(60, 1, 6)
    second = search(instance, budget=longer, seed=1, checkpoint=file, resume=True)
    assert first.makespan is not None
    assert second.makespan is not None
    assert second.makespan <= first.makespan
    assert checkpoint.read(file, instance).moves == 6000


def test_a_checkpoint_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    file.touch()  # an empty file holds no state
    search(instance, budget=COUNTED, checkpoint=file)
    before = file.read_bytes()
    for call in (search, partial(optpart.solve, method="search")):
        with pytest.raises(InputError) as caught:
            call(instance, checkpoint=file)
        assert str(caught.value) == (
            f"checkpoint: {file} exists; go on from it with `resume`, or name another file"
        )
    assert file.read_bytes() == before


def test_a_resumed_search_without_time_left_says_so_and_spends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    first = search(instance, budget=COUNTED, checkpoint=file)
    document = json.loads(file.read_text())
    document["seconds"] = 90.0
    file.write_text(json.dumps(document))
    monkeypatch.setattr("optpart.search.search.searcher", lambda *_, **__: pytest.fail("searched"))
    before = file.read_bytes()
    second = search(instance, budget=Budget(60, 1), checkpoint=file, resume=True)
    assert second.makespan == first.makespan
    assert second.lower_bound
    assert second.termination is Termination.TIME_LIMIT
    assert "with 0.0 s left: to go on, give a time limit above 90.0 s" in second.reason
    assert file.read_bytes() == before


def forged(file: Path, instance: Instance, bound: Fraction) -> None:
    """Write a bound as anybody can, with the digest that earlier versions believed."""
    document = json.loads(file.read_text())
    digest = sha256(f"{instance.sha256} {bound}".encode()).hexdigest()
    file.write_text(json.dumps(document | {"bound": str(bound), "bound_sha256": digest}))


def test_a_bound_in_a_checkpoint_makes_nothing_optimal(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    first = search(instance, budget=COUNTED, checkpoint=file)
    assert first.makespan is not None
    forged(file, instance, first.makespan)
    second = search(instance, budget=Budget(60, 1, 6), checkpoint=file, resume=True)
    assert second.status is Status.FEASIBLE
    assert second.lower_bound is not None
    assert second.lower_bound < first.makespan
    assert second.termination is Termination.MOVE_LIMIT  # it ended no search either
    assert second.claim is not None
    assert second.claim.lower_bound == first.makespan


def test_a_bound_above_a_schedule_is_told_and_not_kept(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    first = search(instance, budget=COUNTED, checkpoint=file)
    assert first.makespan is not None
    forged(file, instance, first.makespan + 1)
    second = search(instance, budget=Budget(60, 1, 6), checkpoint=file, resume=True)
    assert f"shorter than the bound {first.makespan + 1} of the checkpoint" in second.reason
    assert second.claim is None
    assert checkpoint.read(file, instance).bound == second.lower_bound


def test_the_claim_of_a_checkpoint_is_told_with_its_origin_and_kept(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    first = search(instance, budget=COUNTED, checkpoint=file)
    assert first.lower_bound is not None
    bound = first.lower_bound + Fraction(1, 7)
    forged(file, instance, bound)
    second = search(instance, budget=Budget(60, 1, 4), checkpoint=file, resume=True)
    assert second.claim is not None
    assert second.claim.lower_bound == bound
    assert str(second.claim).startswith(f"claimed by {file} (optpart ")
    assert results.to_dict(second)["claimed"]["lower_bound"] == str(bound)
    assert checkpoint.read(file, instance).bound == bound


def test_a_checkpoint_tells_the_code_of_its_bound(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    search(instance, budget=COUNTED, checkpoint=file)
    assert checkpoint.read(file, instance).code == fingerprint("search")
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"code": "optpart 1"}))
    told = search(instance, budget=COUNTED, checkpoint=file, resume=True).reason
    assert "the bound in the checkpoint is by other code, optpart 1" in told
    del document["code"]
    file.write_text(json.dumps(document))
    told = search(instance, budget=COUNTED, checkpoint=file, resume=True).reason
    assert "the bound in the checkpoint is by other code, which it does not name" in told


def test_a_resumed_search_keeps_the_claim_and_says_what_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    first = search(instance, budget=COUNTED, checkpoint=file)
    for bound in ("critical_path_bound", "load_bound"):
        monkeypatch.setattr(module, bound, lambda *_: Fraction(0))
    second = search(instance, budget=COUNTED, checkpoint=file, resume=True)
    assert first.lower_bound
    assert second.lower_bound == 0
    assert second.claim is not None
    assert second.claim.lower_bound == first.lower_bound
    assert "resumed after" in second.reason
    assert "s left" in second.reason


def test_a_bound_for_a_given_placement_is_not_kept(tmp_path: Path) -> None:
    instance, file = medium(49), tmp_path / "state.json"
    goal = Goal(placement={0: 0})
    found = search(instance, budget=COUNTED, checkpoint=file, goal=goal)
    assert found.lower_bound
    assert checkpoint.read(file, instance).bound == 0


@pytest.mark.parametrize(
    "content",
    ["", "{}", '{"format": "optpart-search/1"}', "[1]", '{"format": "optpart-search/2"}', "\0"],
)
def test_a_broken_checkpoint_is_one_clear_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(content)
    with pytest.raises(InputError) as error:
        search(medium(49), budget=COUNTED, checkpoint=file, resume=True)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_checkpoint_of_another_instance_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    instance = medium(49)
    heft = registry.get("heft")(instance).schedule
    assert heft is not None
    checkpoint.write(file, instance, checkpoint.Checkpoint(layout_of(instance, heft), 1.0, 10))
    with pytest.raises(InputError, match="belongs to another instance"):
        checkpoint.read(file, medium(14))


@pytest.mark.parametrize("seed", range(12))
def test_random_instances_with_every_feature(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed), 8, 3)
    found = search(instance, budget=Budget(60, 1, 1))
    assert found.schedule is None or verify(instance, found.schedule) == []
