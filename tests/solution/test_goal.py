"""Goals with contiguous blocks and orders of devices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from optpart import Cluster, Device, Goal, GraphBuilder, InputError, Instance, Model, retime
from optpart.base.errors import ArgumentError
from optpart.methods import registry
from optpart.solution.goal import Measure
from optpart.solution.result import Status, conclude

DEVICES = [Device("cpu", 1, "CPU"), Device("gpu", 2, "GPU"), Device("tpu", 3)]


def instance(model: Model | None = None) -> Instance:
    """A chain of a, b (which needs the GPU) and c (which is colocated with d)."""
    graph = GraphBuilder().vertex("a", 1, outputs=[1], devices=["cpu", "tpu"])
    graph.vertex("b", 1, outputs=[1], device_type="GPU").vertex("c", 1).vertex("d", 1)
    graph.edge("a", "b").edge("b", "c").colocate("c", "d")
    return Instance(graph.build(), Cluster.of(DEVICES, 1), model or Model())


INSTANCE = instance()


def test_devices_are_given_by_name() -> None:
    goal = Goal.of(INSTANCE, objective="bottleneck", device_order=["gpu", "cpu"])
    assert goal == Goal("bottleneck", device_order=(1, 0))
    assert goal.given == "blocks along an order of 2 devices"
    assert goal.blocks
    assert Goal.of(INSTANCE, contiguous=True).given == "contiguous blocks"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["cpu", "dsp"], "device_order: no device 'dsp'; name a device of the instance"),
        (["cpu", "gpu", "cpu"], "device_order: names 'cpu' twice; name every device once"),
        ([], "device_order: names no device; name the devices that may be used, in order"),
        ("cpu", "device_order: is of type str; give a list"),
    ],
)
def test_a_wrong_order_of_devices(names: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        Goal.of(INSTANCE, device_order=names)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("order", [(0, 0), (0, 3), (-1,)])
def test_numbers_are_checked(order: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"goal\.device_order: .* use devices below 3, each once"):
        Goal(device_order=order).check(INSTANCE)


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        (Goal(device_order=(1, 2)), ""),
        (Goal(device_order=(0, 2)), "b may run on none of cpu, tpu"),
        (Goal(device_order=(1,)), "a may run on none of gpu"),
        (
            Goal(placement={2: 0}, device_order=(1, 2)),
            "c is fixed to cpu, which is not in the order of devices",
        ),
        (Goal(placement={2: 0}, contiguous=True), ""),
        (
            Goal(placement={0: 0, 1: 1, 2: 0, 3: 0}, contiguous=True),
            "the path a → b → c leaves cpu and comes back to it",
        ),
    ],
)
def test_simple_contradictions_are_named(goal: Goal, reason: str) -> None:
    assert goal.contradiction(INSTANCE) == reason


def test_an_order_narrows_the_devices_of_every_vertex() -> None:
    narrowed = Goal(placement={2: 1}, device_order=(2, 1)).narrowed(INSTANCE)
    assert narrowed.vertex_allowed.tolist() == [
        [False, False, True],
        [False, True, False],
        [False, True, False],
        [False, True, True],
    ]
    assert Goal(device_order=(2, 1, 0)).narrowed(INSTANCE) is INSTANCE
    assert Goal(contiguous=True).narrowed(INSTANCE) is INSTANCE


@pytest.mark.parametrize(
    ("goal", "placement", "violation"),
    [
        (Goal(contiguous=True), [0, 1, 0, 0], "the path a → b → c leaves cpu and comes back to it"),
        (Goal(contiguous=True), [0, 1, 1, 1], ""),
        (
            Goal(device_order=(1, 0)),
            [0, 1, 0, 0],
            "the edge from a to b goes from cpu back to gpu",
        ),
        (Goal(device_order=(1, 0)), [2, 1, 1, 1], "a is on tpu, which is not in the order of "),
        (Goal(), [0, 1, 0, 0], ""),
    ],
)
def test_a_schedule_must_keep_the_blocks(goal: Goal, placement: list[int], violation: str) -> None:
    schedule = retime(INSTANCE, placement, [0, 1, 2, 3])
    assert goal.broken(INSTANCE, schedule).startswith(violation)
    result = conclude(INSTANCE, "test", schedule, goal=goal)
    assert (result.schedule is None) == bool(violation)
    goal.require_kept(INSTANCE, schedule)  # it may still be a starting point


class TestBottleneck:
    @pytest.mark.parametrize("memory", ["edges", "refcount"])
    def test_needs_memory_that_does_not_depend_on_time(self, memory: Any) -> None:
        Goal("bottleneck").check(instance(Model(memory=memory)))  # no device has a limit
        limited = Instance(
            INSTANCE.graph,
            Cluster.of([Device("cpu", 1, "CPU", 9), *DEVICES[1:]], 1),
            Model(memory=memory),
        )
        with pytest.raises(ArgumentError, match="bottleneck is not defined where memory depends"):
            Goal("bottleneck").check(limited)
        Goal(contiguous=True).check(limited)

    def test_of_equal_bottlenecks_the_shorter_schedule_is_better(self) -> None:
        rows = [(2, 9, 1), (3, 1, 1), (1, 1, 2)]
        measures: tuple[Measure, ...] = ("makespan", "traffic", "bottleneck")
        values = [dict(zip(measures, map(Fraction, row), strict=True)) for row in rows]
        for i, value in enumerate(values):
            for j, other in enumerate(values):
                assert Goal("bottleneck").better(value, other) == (i < j)


@pytest.mark.parametrize("method", ["cpsat", "milp", "enumerate", "auto"])
def test_no_schedule_has_negative_traffic(method: str) -> None:
    result = registry.get(method)(INSTANCE, goal=Goal(traffic=Fraction(-1)))
    assert result.status is Status.INFEASIBLE
    assert result.reason == "no schedule has less traffic than 0"
