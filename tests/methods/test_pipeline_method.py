"""The method ``pipeline``: its scope, its proofs, and agreement with the other exact methods."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.clock import TimeUpError
from optpart.methods import registry
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Model
from optpart.solution.goal import Goal, Objective
from optpart.solution.result import Budget, Result, Status
from optpart.solution.schedule import retime
from optpart.solution.termination import Termination
from optpart.testing.draw import draw_instance

PIPELINE = registry.get("pipeline")


def blocks(count: int, devices: int) -> Instance:
    """A language model: an embedding, unlike blocks and a head, on unlike devices."""
    builder = GraphBuilder()
    names = ["embedding", *(f"block.{i}" for i in range(count)), "norm", "head"]
    for i, name in enumerate(names):
        builder.vertex(name, 1000 + 37 * (i % 11), memory=1 + i % 3, outputs=[1])
        if i:
            builder.edge(names[i - 1], name)
    cluster = Cluster.of(
        [
            Device(f"d{d}", speed=1 + d, memory=6 * (count + devices) // devices)
            for d in range(devices)
        ],
        bandwidth=[[None if d == e else 1 + d for e in range(devices)] for d in range(devices)],
    )
    return Instance(builder.build(), cluster, Model(memory="estimate"))


@pytest.mark.parametrize("objective", ["bottleneck", "makespan"])
@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("in_order", [True, False])
def test_language_models_are_proven(
    objective: Objective, communication: Communication, in_order: bool
) -> None:
    tight = blocks(128, 8)
    model = Model(communication=communication, memory="estimate", send_ops=Fraction(3))
    instance = replace(tight, model=model)
    order = tuple(range(8)) if in_order else ()
    goal = Goal(objective, contiguous=True, device_order=order)
    result = PIPELINE(instance, goal=goal)  # type: ignore[call-arg]
    assert result.status is Status.OPTIMAL
    assert len(set((result.placement or {}).values())) > 4


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("in_order", [True, False])
def test_it_agrees_with_enumeration(communication: str, in_order: bool) -> None:
    proven = 0
    for seed in range(12):
        instance = draw_instance(seed, communication, "estimate", vertices=(3, 6), devices=(2, 3))  # type: ignore[arg-type]
        order = tuple(range(instance.devices)) if in_order else ()
        goal = Goal("bottleneck", contiguous=True, device_order=order)
        result = PIPELINE(instance, goal=goal)  # type: ignore[call-arg]
        other = registry.get("enumerate")(instance, goal=goal)  # type: ignore[call-arg]
        if result.status.proven:
            proven += 1
            assert (result.status, result.bottleneck) == (other.status, other.bottleneck)
        elif other.bottleneck is not None and result.bottleneck is not None:
            assert result.bottleneck_bound is not None
            assert result.bottleneck_bound <= other.bottleneck <= result.bottleneck
    assert proven == 12 if in_order else proven


def test_a_given_placement_is_kept() -> None:
    instance = blocks(6, 2)
    free = Instance(instance.graph, Cluster.uniform(2, bandwidth=1))
    goal = Goal("bottleneck", placement={0: 1, 4: 1}, contiguous=True)
    result = PIPELINE(free, goal=goal)  # type: ignore[call-arg]
    assert result.status is Status.OPTIMAL
    assert result.placement is not None
    assert {result.placement[free.graph.names[v]] for v in range(5)} == {"d1"}


def test_a_better_start_is_kept() -> None:
    """Blocks that wait for each other both ways, which the programme does not search."""
    graph = (
        GraphBuilder().vertex("a1", 5).vertex("a2", 1).vertex("b1", 1).vertex("b2", 5)
        .edge("a1", "a2", None).edge("b1", "b2", None).separate("a1", "b2").build()
    )  # fmt: skip
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
    goal = Goal("bottleneck", contiguous=True)
    start = retime(instance, [0, 1, 0, 1], [0, 2, 1, 3])
    result = PIPELINE(instance, goal=goal, start=start)  # type: ignore[call-arg]
    assert result.bottleneck == 6
    assert result.status is Status.OPTIMAL


def test_an_infeasible_order_is_proven() -> None:
    graph = (
        GraphBuilder().vertex("a", 1, devices=["d1"]).vertex("b", 1, devices=["d0"])
        .edge("a", "b", None).build()
    )  # fmt: skip
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
    goal = Goal("bottleneck", device_order=(0, 1))
    assert PIPELINE(instance, goal=goal).status is Status.INFEASIBLE  # type: ignore[call-arg]
    free = Goal("bottleneck", contiguous=True)
    assert PIPELINE(instance, goal=free).status is Status.OPTIMAL  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (Goal(), "pipeline places contiguous blocks only"),
        (Goal("bottleneck"), "pipeline places contiguous blocks only"),
        (Goal("traffic", contiguous=True), "pipeline does not minimise traffic"),
        (Goal("bottleneck", contiguous=True, order=((0, 1),)), "no given order and no limits"),
        (Goal("bottleneck", contiguous=True, traffic=1), "no given order and no limits"),  # type: ignore[arg-type]
        (Goal(contiguous=True), "only chains"),
    ],
)
def test_what_is_out_of_scope_is_refused(goal: Goal, said: str) -> None:
    graph = GraphBuilder().vertex("a", 1).vertex("b", 1).build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
    assert said in registry.supports("pipeline", instance, goal)
    with pytest.raises(UnsupportedError):
        PIPELINE(instance, goal=goal)  # type: ignore[call-arg]


def test_too_many_downsets_are_refused() -> None:
    builder = GraphBuilder()
    for i in range(40):
        builder.vertex(f"v{i}", 1)
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    with pytest.raises(UnsupportedError, match="more than 50,000 downsets"):
        PIPELINE(instance, goal=Goal("bottleneck", contiguous=True))  # type: ignore[call-arg]


class TestTimeLimit:
    """Time may be up at any look at the clock; what has been found by then counts."""

    @staticmethod
    def fork(communication: Communication = "delay", size: int = 1) -> Instance:
        """Branches without an order; where transfers cost no more than 4, the optimum is 4."""
        builder = GraphBuilder().vertex("s", 1, outputs=[size])
        for name in "abc":
            builder.vertex(name, 2).edge("s", name)
        model = Model(communication=communication)
        return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), model)

    @staticmethod
    def cut(result: Result) -> None:
        """It says that time was up, and proves no more than holds."""
        assert (result.termination, result.reason) == (Termination.TIME_LIMIT, "time limit")
        assert result.bottleneck_bound is not None
        assert 0 < result.bottleneck_bound <= 4

    @pytest.mark.parametrize("communication", ["delay", "port"])
    def test_without_time_there_is_a_bound(self, communication: Communication) -> None:
        goal = Goal("bottleneck", contiguous=True)
        result = PIPELINE(self.fork(communication), budget=Budget(0, 1), goal=goal)  # type: ignore[call-arg]
        assert (result.status, result.schedule) == (Status.UNKNOWN, None)
        self.cut(result)

    def test_without_time_the_start_is_kept(self) -> None:
        start = retime(self.fork(), [0, 0, 0, 0], [0, 1, 2, 3])
        goal = Goal("bottleneck", contiguous=True)
        result = PIPELINE(self.fork(), budget=Budget(0, 1), goal=goal, start=start)  # type: ignore[call-arg]
        assert (result.status, result.bottleneck) == (Status.FEASIBLE, 7)
        self.cut(result)

    def test_no_infeasibility_is_claimed(self) -> None:
        chain = blocks(3, 2)
        result = PIPELINE(chain, budget=Budget(0, 1), goal=Goal(contiguous=True))  # type: ignore[call-arg]
        assert (result.status, result.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)

    @pytest.mark.parametrize("order", [(), (0, 1)])
    def test_the_best_split_of_one_order_is_left(
        self, order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("optpart.exact.pipeline.splits.downsets_of", time_up)
        goal = Goal("bottleneck", contiguous=True, device_order=order)
        result = PIPELINE(self.fork(), goal=goal)  # type: ignore[call-arg]
        assert (result.status, result.bottleneck) == (Status.FEASIBLE, 4)
        self.cut(result)

    def test_what_is_best_without_transfers_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("optpart.exact.pipeline.solve.best_labelled", time_up)
        goal = Goal("bottleneck", device_order=(0, 1))
        result = PIPELINE(self.fork("port", 5), goal=goal)  # type: ignore[call-arg]
        assert (result.status, result.bottleneck) == (Status.FEASIBLE, 5)
        self.cut(result)


def time_up(*_: object, **__: object) -> None:
    """Stand in for a function that finds that time is up."""
    raise TimeUpError
