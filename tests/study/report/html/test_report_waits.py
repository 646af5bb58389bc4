"""What a schedule waits for: the critical path, and idle times with their causes."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Model
from optpart.solution.metrics import peak_memory
from optpart.solution.schedule import Schedule, retime
from optpart.study.report.html.detail import memory_curves
from optpart.study.report.html.waits import Waits
from optpart.testing.draw import random_instance


def chain(communication: Communication = "delay") -> Instance:
    """Return a → b and a → c, where every vertex takes 2 and a transfer 3."""
    builder = GraphBuilder()
    for name in "abc":
        builder.vertex(name, 2, outputs=[3])
    builder.edge("a", "b")
    builder.edge("a", "c")
    model = Model(communication=communication, send_ops=Fraction(1))
    return Instance(builder.build(), Cluster.uniform(3, 1, 1), model, name="chain")


def test_the_critical_path_leads_back_through_the_last_transfer() -> None:
    waits = Waits(chain(), retime(chain(), [0, 0, 1], [0, 1, 2]))
    assert waits.makespan == 7
    assert waits.critical_path() == [("vertex", 0), ("transfer", 0), ("vertex", 2)]


def test_a_device_waits_for_the_transfer_that_arrives_last() -> None:
    waits = Waits(chain(), retime(chain(), [0, 0, 1], [0, 1, 2]))
    idle = [(gap.device, gap.start, gap.end, gap.cause, gap.next) for gap in waits.idle()]
    assert idle == [(0, 4, 7, "end", -1), (1, 0, 5, "transfer", 2), (2, 0, 7, "unused", -1)]


def test_a_send_is_part_of_the_path_and_keeps_its_device_busy() -> None:
    instance = chain("sendrecv")
    waits = Waits(instance, retime(instance, [0, 0, 1], [0, (0, 1), 1, 2]))
    assert [run[:2] for run in waits.runs[0]] == [(0, 2), (2, 3), (3, 5)]
    assert waits.critical_path() == [("vertex", 0), ("transfer", 0), ("vertex", 2)]


def test_a_vertex_that_starts_late_ends_the_path() -> None:
    schedule = retime(chain(), [0, 0, 0], [0, 1, 2])
    late = Schedule(
        schedule.placement,
        type(schedule.start).from_fractions([Fraction(0), Fraction(2), Fraction(5)]),
        schedule.transfers,
    )
    waits = Waits(chain(), late)
    assert waits.critical_path() == [("vertex", 2)]
    first = waits.idle()[0]
    assert (first.cause, first.start, first.end) == ("held", 4, 5)


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
def test_every_schedule_of_earliest_starts_has_a_path_from_0(communication: Communication) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        instance = random_instance(rng, 8, 3, communication)
        schedule = drawn(instance, rng)
        if schedule is None:
            continue
        waits = Waits(instance, schedule)
        path = waits.critical_path()
        times = {"vertex": (waits.start, waits.end), "transfer": (waits.begin, waits.arrival)}
        assert times[path[0][0]][0][path[0][1]] == 0
        assert path[-1][0] == "vertex"
        assert waits.end[path[-1][1]] == waits.makespan


def test_busy_and_idle_times_fill_every_device() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        instance = random_instance(rng, 8, 3, "sendrecv")
        schedule = drawn(instance, rng)
        if schedule is None:
            continue
        waits = Waits(instance, schedule)
        spent = [sum((end - start for start, end, _ in row), Fraction(0)) for row in waits.runs]
        for gap in waits.idle():
            spent[gap.device] += gap.end - gap.start
        assert spent == [waits.makespan] * instance.devices


@pytest.mark.parametrize("memory", ["edges", "refcount"])
def test_curves_of_memory_reach_the_peak(memory: Literal["edges", "refcount"]) -> None:
    rng = np.random.default_rng(6)
    seen = 0
    for _ in range(30):
        instance = random_instance(rng, 8, 3, memory=memory)
        schedule = drawn(instance, rng)
        if schedule is None:
            continue
        curves = memory_curves(instance, schedule)
        assert curves is not None
        peaks = [max(amount for _, amount in curve) for curve in curves]
        assert peaks == peak_memory(instance, schedule, memory, instance.model.release)
        seen += any(peaks)
    assert seen > 5


def test_without_a_memory_model_there_are_no_curves() -> None:
    assert memory_curves(chain(), retime(chain(), [0, 0, 1], [0, 1, 2])) is None


def drawn(instance: Instance, rng: np.random.Generator) -> Schedule | None:
    """Return a schedule with random devices; ``None`` where they are not linked."""
    placement = rng.integers(instance.devices, size=len(instance.units))[instance.unit_of]
    try:
        return retime(instance, placement, instance.graph.topological_order.tolist())
    except InputError:
        return None
