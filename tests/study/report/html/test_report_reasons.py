"""Why no schedule is shorter: the evidence of each bound, in exact times."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import optpart as op
from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.study.report.html.reasons import Reason, reasons_of
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance


def reasons(instance: Instance, makespan: int | None = None) -> dict[str, Reason]:
    known = None if makespan is None else Fraction(makespan)
    return {reason.name: reason for reason in reasons_of(instance, known)}


def fan(devices: int, link: Fraction) -> Instance:
    """Three vertices of 10 before one of 1."""
    builder = GraphBuilder().vertex("sink", 1)
    for name in "abc":
        builder.vertex(name, 10, outputs=[1]).edge(name, "sink")
    return Instance(builder.build(), Cluster.uniform(devices, 1, link))


def test_one_machine_names_the_device_the_vertices_and_both_cases() -> None:
    found = reasons(fan(4, Fraction(1, 15)))["one-machine"]
    assert found.value == 26
    (interval,) = found.intervals
    assert (interval.start, interval.end, interval.rest, interval.elsewhere) == (0, 30, 0, 25)
    assert (interval.side, interval.of) == ("before", 0)
    assert sorted(interval.vertices) == [(1, 10), (2, 10), (3, 10)]
    assert found.path == [(0, interval.device)]


def test_after_a_vertex_times_count_from_the_end() -> None:
    builder = GraphBuilder().vertex("source", 1, outputs=[1])
    for name in "abc":
        builder.vertex(name, 10).edge("source", name)
    instance = Instance(builder.build(), Cluster.uniform(4, 1, Fraction(1, 15)))
    found = reasons(instance)["one-machine"]
    (interval,) = found.intervals
    assert (interval.side, interval.of, interval.elsewhere) == ("after", 0, 25)
    assert (interval.start, interval.end) == (found.value - 30, found.value)


def test_colocated_vertices_run_one_at_a_time() -> None:
    builder = GraphBuilder().vertex("a", 3).vertex("b", 4).vertex("c", 1).colocate("a", "b")
    found = reasons(Instance(builder.build(), Cluster.of([Device("d"), Device("e", 2)])))
    load, machine = found["load"], found.get("one-machine")
    assert machine is None or machine.value > load.value
    builder = GraphBuilder().vertex("a", 3).vertex("b", 4).colocate("a", "b")
    machine = reasons(Instance(builder.build(), Cluster.uniform(2)))["one-machine"]
    (interval,) = machine.intervals
    assert (machine.value, interval.side, interval.start, interval.end) == (7, "together", 0, 7)


def test_energy_names_the_intervals_and_what_they_lack() -> None:
    found = reasons(op.load("kwok-ahmad-9-2"))["energy"]
    assert (found.value, found.length) == (16, 15)
    assert (found.required, found.room) == (28, 26)
    assert {(one.device, one.start, one.end, one.weight) for one in found.intervals} == {
        (0, 2, 15, 1), (1, 2, 15, 1),
    }  # fmt: skip


def test_load_names_the_devices_that_count() -> None:
    builder = GraphBuilder()
    for v in range(6):
        builder.vertex(f"v{v}", 6)
    devices = [Device("a"), Device("b", 2)]
    found = reasons(Instance(builder.build(), Cluster.of(devices)))["load"]
    assert found.value == 12
    # One unit of time of the faster device is worth two of the slower one.
    assert [d for d, _ in found.devices] == [1, 0]
    assert round(float(found.devices[1][1]), 4) == 0.5


def test_bounds_that_reach_no_further_are_left_out() -> None:
    found = reasons_of(op.load("heft-10"), Fraction(73))
    values = [reason.value for reason in found[1:]]
    assert [reason.name for reason in found[:2]] == ["critical-path", "load"]
    assert values == sorted(set(values))
    assert values[-1] == 73
    assert "series" in {reason.name for reason in found}
    # Where the path is as long as the schedule, nothing else is asked.
    assert [reason.name for reason in reasons_of(op.load("laich-2.5"), Fraction(14))] == [
        "critical-path", "load",
    ]  # fmt: skip


def test_memory_counts_where_it_proves_the_bound() -> None:
    builder = GraphBuilder()
    for v in range(4):
        builder.vertex(f"v{v}", 4, memory=1)
    cluster = Cluster.of([Device("small", 4, memory=1), Device("large")])
    found = reasons(Instance(builder.build(), cluster, Model(memory="estimate")))
    assert found["load"].memory == (0,)
    # Beside a head of 2, four vertices need an interval of the large device and the memory of the
    # small one, which admits one of them.
    builder.vertex("first", 2)
    for v in range(4):
        builder.edge("first", f"v{v}", None)
    found = reasons(Instance(builder.build(), cluster, Model(memory="estimate")))
    assert found["energy"].memory == (0,)


def test_no_bound_exceeds_an_optimum() -> None:
    rng = np.random.default_rng(18)
    names = set()
    for _ in range(40):
        instance = random_instance(rng, 6, 3)
        best = optimum(instance)
        if best is None:
            continue
        for reason in reasons_of(instance, best.makespan, 5.0):
            names.add(reason.name)
            assert reason.value <= best.makespan
            for one in reason.intervals:
                assert one.start <= one.end
                assert reason.length is None or one.end <= reason.length
            if reason.required is not None and reason.room is not None:
                assert reason.required > reason.room
    assert "one-machine" in names
