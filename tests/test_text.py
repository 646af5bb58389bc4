"""What Python prints of the public objects: one short line each, also of the largest instance."""

from __future__ import annotations

from fractions import Fraction

import pytest

import optpart as op
from optpart.solution.goal import Goal
from optpart.study import library
from optpart.study.gap import Comparison, Reference, Spread
from optpart.study.report.simulation import Simulated


@pytest.fixture(scope="module")
def largest() -> op.Instance:
    return op.load(max(library.index().values(), key=lambda row: row.vertices).name)


@pytest.fixture(scope="module")
def objects(largest: op.Instance) -> list[object]:
    order = largest.graph.topological_order.tolist()
    device = [int(largest.vertex_allowed[v].argmax()) for v in range(largest.vertices)]
    schedule = op.retime(largest, device, order)
    result = op.Result(
        largest, "some-partitioning-strategy+scheduler", op.Status.FEASIBLE,
        {"makespan": Fraction(10**30, 3)}, {"makespan": Fraction(10**30, 7)}, schedule,
    )  # fmt: skip
    reference = Reference(Fraction(1), Fraction(1), "cpsat", "cpsat")
    comparison = Comparison(largest, reference, (result,) * 50)
    times = op.RationalArray.zeros(largest.vertices, largest.devices)
    return [
        largest, largest.graph, largest.cluster, largest.model, largest.graph.ops,
        largest.cluster.bandwidth, op.Durations(times, largest.vertex_allowed),
        schedule, schedule.transfers, result, comparison, reference,
        Spread(comparison, "heft", (result,) * 50), Simulated(result, schedule),
        Goal(placement=dict(enumerate(device))), op.Device("d0"), op.Budget(),
    ]  # fmt: skip


def test_every_object_prints_as_one_short_line(objects: list[object]) -> None:
    for each in objects:
        for text in (repr(each), str(each)):
            assert "\n" not in text
            assert len(text) <= 120, text


def test_an_instance_names_its_size_and_its_model() -> None:
    shown = repr(op.load("heft-10"))
    assert shown == "<Instance heft-10: 10 vertices, 3 devices, delay, memory none>"


def test_a_name_from_a_file_cannot_forge_a_line() -> None:
    graph = op.GraphBuilder().vertex("a", 1).build()
    instance = op.Instance(graph, op.Cluster.uniform(1), name="x\n\x1b[31m" * 100)
    assert "\n" not in repr(instance)
    assert "\x1b" not in repr(instance)
    assert len(repr(instance)) <= 120
