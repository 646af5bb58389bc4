"""Plans for times that vary, against all placements, orders and choices of deviating vertices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from commandline import Run

import optpart as op
from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, Status
from optpart.interop.formats import native
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Task
from optpart.solution.schedule import crossings, retime
from optpart.solution.verifier import verify
from optpart.study.robust.clockwork import Clockwork, Plan
from optpart.study.robust.search import dispatch
from optpart.study.robust.variation import variation
from optpart.testing.draw import random_instance

F = Fraction


def orders(instance: Instance, placement: np.ndarray) -> Iterator[tuple[Task, ...]]:
    """Yield every sequence of vertices and transfers in which producers come first."""
    graph = instance.graph
    needs: dict[Task, set[Task]] = {v: set() for v in range(len(graph))}
    moves = crossings(instance, placement) if instance.model.queues else []
    for tensor, target in moves:
        needs[tensor, target] = {int(graph.tensor_vertex[tensor])}
    for u, v, tensor in graph.edges():
        crossing = (tensor, int(placement[v]))
        needs[v].add(crossing if crossing in needs else u)

    def extend(done: tuple[Task, ...]) -> Iterator[tuple[Task, ...]]:
        if len(done) == len(needs):
            yield done
        for task, before in needs.items():
            if task not in done and before <= {*done}:
                yield from extend((*done, task))

    return extend(())


def plans(instance: Instance) -> Iterator[Plan]:
    """Yield every plan that is valid at the instance's own times."""
    for devices in product(range(instance.devices), repeat=instance.vertices):
        placement = np.array(devices, dtype=np.int32)
        if all(instance.allowed[u, d] for u, d in zip(instance.unit_of, devices, strict=True)):
            for order in orders(instance, placement):
                try:
                    schedule = retime(instance, placement, order)
                except InputError:  # no link
                    break
                if verify(instance, schedule):
                    if not instance.model.timed_memory:
                        break  # no order is valid
                    continue
                yield Plan(placement, order)


def spans(plan: Plan, cases: list[Instance]) -> list[Fraction] | None:
    found = []
    for case in cases:
        schedule = retime(case, plan.placement, plan.order)
        if verify(case, schedule):
            return None
        found.append(schedule.makespan(case))
    return found


def deviating(low: Instance, high: Instance, most: int) -> list[Instance]:
    """Return the instance with every choice of at most so many vertices at their upper ends."""
    return [
        replace(low, durations=[
            [(high if v in chosen else low).duration(v, d) if low.vertex_allowed[v, d] else None
             for d in range(low.devices)] for v in range(low.vertices)
        ])
        for count in range(most + 1) for chosen in combinations(range(low.vertices), count)
    ]  # fmt: skip


CASES = [
    (seed, communication, memory)
    for seed in range(2)
    for communication, memory in (
        ("delay", "none"), ("delay", "estimate"), ("sendrecv", "none"), ("link", "estimate"),
        ("port", "none"), ("delay", "refcount"),
    )
]  # fmt: skip


@pytest.mark.parametrize(("seed", "communication", "memory"), CASES)
def test_no_plan_is_better(seed: int, communication: Communication, memory: Memory) -> None:
    n = 4 if communication == "delay" else 3
    instance = random_instance(np.random.default_rng(seed), n, 2, communication, memory)
    instance = replace(instance, model=replace(instance.model, channels=1))
    known = [*plans(instance)]
    goal = "mean" if seed % 2 else "worst"
    if memory != "refcount" and goal == "worst":
        varies = variation(instance, spread="30%")
        assert varies.high is not None
        found = op.robust(instance, spread="30%", deviations=1, seconds=20)
        cases = deviating(varies.instance, varies.high, 1)
    else:
        found = op.robust(instance, spread="30%", draws=3, goal=goal, seconds=20)
        cases = [*variation(instance, spread="30%", draws=3).samples]
    valid = [times for plan in known if (times := spans(plan, [instance, *cases])) is not None]
    if not valid:
        assert found.value is None
        return
    values = [
        (sum(t[1:], F(0)) / len(cases) if goal == "mean" else max(t[1:]), t[0]) for t in valid
    ]
    assert found.value is not None
    assert found.bound is not None
    assert found.bound <= min(values)[0] <= found.value
    if memory != "refcount":  # there, orders that the model allows may need more memory
        assert found.status is Status.OPTIMAL
        assert found.value == min(values)[0]
        assert found.outcome is not None
        assert found.outcome.nominal >= min(values)[1]
        if found.shortest:
            assert found.outcome.nominal == min(values)[1]


def chain(memory: int | None = None) -> Instance:
    """a, then b and c, on two devices; c runs on y only."""
    builder = GraphBuilder().vertex("a", 4, memory=1, outputs=[2]).vertex("b", 4, memory=1)
    builder.vertex("c", 6, memory=1, devices=["y"]).edge("a", "b").edge("a", "c")
    devices = [Device(name, 1, memory=memory) for name in "xy"]
    model = Model(memory="none" if memory is None else "estimate")
    return Instance(builder.build(), Cluster.of(devices, 1), model, name="chain")


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("seed", range(3))
def test_plans_are_timed_as_by_retiming_at_all_times(
    seed: int, communication: Communication
) -> None:
    instance = random_instance(np.random.default_rng(seed), 6, 3, communication)
    instance = replace(instance, model=replace(instance.model, channels=1))
    varies = variation(instance, spread="40%", draws=3, seed=seed)
    bounded = variation(instance, spread="40%")
    assert bounded.high is not None
    result = op.solve(instance, "heft")
    if result.schedule is None:
        return
    placement = result.schedule.placement
    for order in [
        next(orders(instance, placement)),
        tuple(instance.graph.topological_order.tolist()),
    ]:
        plan = Plan(placement, order)
        clockwork = Clockwork([varies.instance, *varies.samples])
        ticks = clockwork.makespans(plan)
        assert ticks is not None
        known = spans(plan, [varies.instance, *varies.samples])
        assert [F(int(t), clockwork.scale) for t in ticks] == known
        # The worst choice of up to two vertices is the worst of all choices, and as long.
        clockwork = Clockwork([bounded.instance], bounded.high, 2)
        ticks = clockwork.makespans(plan)
        assert ticks is not None
        cases = [spans(plan, [case]) for case in deviating(bounded.instance, bounded.high, 2)]
        assert F(int(ticks[2]), clockwork.scale) == max(case[0] for case in cases if case)
        chosen = clockwork.worst(plan)
        assert len(chosen) <= 2


def test_plans_without_a_schedule_have_no_makespan() -> None:
    instance = variation(chain(), spread=0).instance
    clockwork = Clockwork([instance])
    here, there = np.array([0, 0, 1], np.int32), np.array([1, 1, 1], np.int32)
    assert clockwork.makespans(Plan(here, (1, 0, 2))) is None  # b before a
    assert clockwork.makespans(Plan(there, (0, 1, 2))) == [14]


def test_times_that_are_too_large_for_the_machine_are_exact() -> None:
    instance = (
        GraphBuilder().vertex("a", F(10**40, 3), outputs=[0]).vertex("b", F(1, 7)).edge("a", "b")
    )
    made = Instance(instance.build(), Cluster.uniform(1), name="far")
    found = op.robust(made, spread="50%", seconds=10)
    assert found.value == found.bound == F(3, 2) * (F(10**40, 3) + F(1, 7))


class TestByHand:
    def test_the_worst_case_of_intervals_is_at_their_upper_ends(self) -> None:
        # a, then c on y; b on x, after 2 for the crossing
        found = op.robust(chain(), spread="50%", seconds=10)
        assert found.status is Status.OPTIMAL
        assert (found.value, found.bound) == (15, 15)
        assert found.result.makespan == 10
        assert found.outcome is not None
        assert found.outcome.least == 6  # the crossing takes 2 all the same

    def test_few_deviations(self) -> None:
        values = [op.robust(chain(), spread="50%", deviations=g, seconds=10) for g in range(4)]
        assert [found.value for found in values] == [10, 13, 15, 15]
        assert all(found.status is Status.OPTIMAL for found in values)

    def test_memory_moves_a_vertex(self) -> None:
        # Each of them needs 3, so that no device of 8 holds all.
        found = op.robust(chain(8), spread="50%", seconds=10)
        assert found.result.schedule is not None
        held = np.bincount(found.result.schedule.placement, minlength=2) * 3
        assert held.max() <= 8
        assert op.verify(chain(8), found.result) == []

    def test_samples_of_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "times.csv"
        path.write_text("name,device,time\na,,4\na,,8\nb,x,4\nb,x,4\nb,y,4\nb,y,1\n")
        worst = op.robust(chain(), samples=path, seconds=10)
        mean = op.robust(chain(), samples=path, goal="mean", seconds=10)
        assert (worst.value, worst.status) == (14, Status.OPTIMAL)
        assert (mean.value, mean.status) == (12, Status.OPTIMAL)
        assert worst.outcome is not None
        assert worst.outcome.makespans == (10, 14)

    def test_an_infeasible_instance(self) -> None:
        found = op.robust(chain(2), spread="50%", seconds=10)
        assert found.status is Status.INFEASIBLE
        assert found.value is None


def test_dispatch_passes_by_what_waits() -> None:
    # On x: b waits for a from y, late in this sample, and c is ready.
    builder = GraphBuilder().vertex("a", 2, devices=["y"], outputs=[0])
    builder.vertex("b", 3, devices=["x"])
    builder.vertex("c", 3, devices=["x"]).edge("a", "b")
    instance = Instance(builder.build(), Cluster.of([Device("x"), Device("y")], None))
    plan = Plan(np.array([1, 0, 0], np.int32), (0, 1, 2))
    assert retime(instance, plan.placement, plan.order).makespan(instance) == 8
    assert dispatch(instance, plan).makespan(instance) == 6


def test_the_curve_rises() -> None:
    found = op.robust(chain(), spread="50%", deviations=1, curve=True, seconds=20)
    points = [(int(point.parameter), point.value, point.nominal) for point in found.curve]
    assert points == [(0, 10, 10), (1, 13, 10), (2, 15, 10), (3, 15, 10)]
    assert all(point.proven for point in found.curve)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "spread: missing"),
        ({"spread": 0.2, "samples": "x.csv"}, "samples: given with spread"),
        ({"samples": "x.csv", "draws": 3}, "draws: given with samples"),
        ({"spread": "200%"}, "spread: '200%' is out of range"),
        ({"spread": 0.2, "draws": 0}, "draws: 0 is out of range"),
        ({"spread": 0.2, "draws": 2, "deviations": 1}, "deviations: given with samples"),
        ({"spread": 0.2, "deviations": 4}, "deviations: 4 is out of range"),
        ({"spread": 0.2, "goal": "mean"}, "goal: intervals have no mean"),
        ({"spread": 0.2, "goal": "best"}, "goal: no goal 'best'"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        op.robust(chain(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,time\n", "line 1: the header is 'name,time'"),
        ("name,device,time\n", "has no measurement"),
        ("name,device,time\nd,x,3\n", "line 2: no vertex 'd'"),
        ("name,device,time\na,z,3\n", "line 2: no device 'z'"),
        ("name,device,time\nc,x,3\n", "line 2: 'c' may not run on 'x'"),
        ("name,device,time\na,x,-3\n", "line 2, time: -3 is negative"),
        ("name,device,time\na,x,3\na,x,4\nb,x,3\n", "1 times of 'b' on 'x', 2 of 'a' on 'x'"),
        ("name,device,low,high\na,x,5,6\n", "line 2: 'a' on 'x' takes 4, which is not within"),
        ("name,device,low,high\na,x,3,6\na,,3,6\n", "line 3: a second interval for 'a' on 'x'"),
    ],
)
def test_faulty_files_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(text)
    kind = "intervals" if "low" in text else "samples"
    with pytest.raises(InputError) as error:
        variation(chain(), **{kind: path})  # type: ignore[arg-type]
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_models_without_a_worst_case_at_the_ends_are_refused() -> None:
    held = replace(chain(8), model=Model(memory="refcount"))
    with pytest.raises(op.UnsupportedError, match="memory depends on time"):
        op.robust(held, spread="20%")
    ports = replace(chain(), model=Model("port", channels=2))
    with pytest.raises(op.UnsupportedError, match="several channels"):
        op.robust(ports, spread="20%", draws=2)


class TestCommand:
    def test_prints_the_answer_and_writes_the_plan(self, run: Run, tmp_path: Path) -> None:
        source, target = tmp_path / "chain.json", tmp_path / "plan.json"
        native.write(chain(8), source)
        shown = run("robust", source, "--spread", "20%", "--draws", 3, "--time-limit", 20,
                    "--picture", tmp_path / "price.svg", "-o", target)  # fmt: skip
        assert shown.code == 0
        assert shown.out.startswith("chain: OPTIMAL, worst case ")
        assert "3 samples, log-normal, spread 20%, seed 0" in shown.out
        assert "weight" in shown.out
        assert (tmp_path / "price.svg").read_text().startswith("<?xml")
        assert op.verify(chain(8), target) == []

    def test_json(self, run: Run, tmp_path: Path) -> None:
        native.write(chain(), tmp_path / "chain.json")
        shown = run(
            "robust", tmp_path / "chain.json", "--spread", "1/2", "--deviations", 1, "--json"
        )
        document = json.loads(shown.out)
        assert (document["status"], document["value"], document["bound"]) == ("OPTIMAL", "13", "13")

    def test_no_schedule_has_an_exit_code(self, run: Run, tmp_path: Path) -> None:
        native.write(chain(2), tmp_path / "full.json")
        shown = run("robust", tmp_path / "full.json", "--spread", "1/2", "-o", tmp_path / "no.json")
        assert shown.code == 3
        assert not (tmp_path / "no.json").exists()

    def test_faults_are_one_line(self, run: Run) -> None:
        shown = run("robust", "heft-10", "--deviations", 2)
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith("optpart: --spread: missing")
        assert shown.err.count("\n") == 1
