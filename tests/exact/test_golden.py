"""Optima that the literature or independent solvers know, proven again."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from task_graphs import task_graph

from optpart import Cluster, Instance, retime
from optpart.interop.formats import native
from optpart.methods.cpsat import cpsat
from optpart.methods.registry import get
from optpart.solution.result import Budget, Status
from optpart.solution.verifier import verify

SHARED = Path(__file__).parents[2].parent / "shared"


def proven(instance: Instance) -> Fraction | None:
    """The makespan that CP-SAT proves optimal."""
    result = cpsat(instance, budget=Budget(60, 2))
    assert result.status is Status.OPTIMAL
    assert result.schedule is not None
    assert verify(instance, result.schedule) == []
    assert result.lower_bound == result.makespan
    assert result.gap == 0
    return result.makespan


class TestHeft2002:
    def instance(self, classic: Any) -> Instance:
        data = classic["heft2002"]
        graph = task_graph([0] * len(data["cost"]), data["edges"], 3).graph
        return Instance(graph, Cluster.uniform(3, bandwidth=1), durations=data["cost"])

    def test_heft_takes_80(self, classic: Any) -> None:
        assert classic["heft2002"]["heft"] == 80
        assert get("heft")(self.instance(classic)).makespan == 80

    def test_the_optimum_is_73(self, classic: Any) -> None:
        assert classic["heft2002"]["optimum"] == 73
        assert proven(self.instance(classic)) == 73


@pytest.mark.parametrize(("devices", "optimum"), [(2, 17), (3, 16), (9, 16)])
def test_kwok_ahmad_nine_nodes(classic: Any, devices: int, optimum: int) -> None:
    data = classic["kwok_ahmad_9"]
    assert data["optimum"][str(devices)] == optimum
    assert proven(task_graph(data["w"], data["edges"], devices)) == optimum


class TestGraham1969:
    """Fewer constraints, shorter tasks or more machines make a list schedule longer."""

    def instance(self, classic: Any, variant: str) -> Instance:
        data = classic["graham1969"]
        weights = [w - 1 for w in data["w"]] if variant == "durations-1" else data["w"]
        without = [[4, 5], [4, 6]] if variant == "without_4-5_4-6" else []
        edges = [edge for edge in data["edges"] if edge not in without]
        return task_graph(weights, edges, 4 if variant == "m4" else 3)

    @pytest.mark.parametrize(
        ("variant", "makespan"),
        [
            ("base_m3", 12),
            ("m4", 15),
            ("durations-1", 13),
            ("without_4-5_4-6", 16),
            ("list_1,2,4,5,6,3,9,7,8", 14),
        ],
    )
    def test_list_schedules(self, classic: Any, variant: str, makespan: int) -> None:
        assert classic["graham1969"]["list_len"][variant] == makespan
        _, _, listed = variant.partition("list_")
        order = [int(task) - 1 for task in listed.split(",")] if listed else list(range(9))
        assert list_schedule(self.instance(classic, variant), order) == makespan

    @pytest.mark.parametrize(
        ("variant", "optimum"),
        [("base_m3", 12), ("m4", 12), ("durations-1", 10), ("without_4-5_4-6", 12)],
    )
    def test_optima(self, classic: Any, variant: str, optimum: int) -> None:
        assert classic["graham1969"]["optimum"][variant] == optimum
        assert proven(self.instance(classic, variant)) == optimum


@pytest.mark.parametrize("case", range(3))
def test_longest_processing_time_first_at_its_worst(classic: Any, case: int) -> None:
    data = classic["lpt"][case]
    instance = task_graph(data["w"], [], data["m"])
    longest_first = sorted(range(len(data["w"])), key=lambda v: -data["w"][v])
    assert list_schedule(instance, longest_first) == data["lpt"]
    assert proven(instance) == data["opt"]


def list_schedule(instance: Instance, order: list[int]) -> Fraction:
    """Graham's rule: a machine that falls idle takes the first task of the list that is ready."""
    graph = instance.graph
    before = [set(graph.edge_source[graph.edge_target == v].tolist()) for v in range(len(graph))]
    free = [Fraction(0)] * instance.devices
    end: dict[int, Fraction] = {}
    placement, taken = [0] * len(graph), []
    left = list(order)
    while left:
        now = min(free)
        ready = [v for v in left if all(u in end and end[u] <= now for u in before[v])]
        machine = free.index(now)
        if not ready:
            free[machine] = min(time for time in end.values() if time > now)
            continue
        v = ready[0]
        left.remove(v)
        taken.append(v)
        placement[v] = machine
        end[v] = free[machine] = now + instance.duration(v, machine)
    schedule = retime(instance, placement, taken)
    assert verify(instance, schedule) == []
    assert schedule.makespan(instance) == max(end.values())
    return schedule.makespan(instance)


@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("rand-8-2-1", 920),
        ("rand-12-3-2-t", 330),
        ("rand-16-3-3-g2", 390),
        ("rand-20-4-4-t-g2-m", 466),
        ("rand-24-3-5", 730),
    ],
)
def test_random_instances(name: str, optimum: int) -> None:
    """Optima of a model independent of this one."""
    folder = SHARED / "instances"
    if not folder.exists():
        pytest.skip(f"no instances at {folder}")
    with (folder / "optimum.csv").open(newline="") as file:
        known = {row["instance"]: int(row["optimum"]) for row in csv.DictReader(file)}
    assert known[name] == optimum
    assert proven(native.read(folder / f"{name}.json")) == optimum
