from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from optpart import InputError, Instance, retime
from optpart.interop.generate.small import Tightness, small
from optpart.solution.verifier import verify

GRID = list(product((8, 20, 50), (2, 4), (0.1, 1, 10)))


def plain(
    vertices: int = 20,
    devices: int = 4,
    seed: int = 1,
    ccr: float = 1.0,
    types: bool = False,
    groups: bool = False,
    memory: Tightness = "none",
) -> Instance:
    return small(vertices, devices, seed=seed, ccr=ccr, types=types, groups=groups, memory=memory)


def delays(instance: Instance) -> list[Fraction]:
    pairs = [(d, e) for d in range(instance.devices) for e in range(instance.devices) if d != e]
    found = [instance.delay(t, d, e) for t in range(instance.graph.tensors) for d, e in pairs]
    return [delay for delay in found if delay is not None]


def capacities(instance: Instance) -> list[Fraction]:
    return [memory for memory in instance.cluster.memory if memory is not None]


def durations(instance: Instance) -> list[Fraction]:
    return [
        instance.duration(v, d) for v in range(instance.vertices) for d in range(instance.devices)
    ]


def packing(instance: Instance) -> list[int]:
    """Pack units with the fewest devices first, then the largest, each onto the emptiest device."""
    need = instance.static_memory.fractions()
    used = [Fraction(0)] * instance.devices
    home: dict[int, int] = {}
    for unit in sorted(range(len(need)), key=lambda u: (instance.allowed[u].sum(), -need[u])):
        home[unit] = min(np.flatnonzero(instance.allowed[unit]).tolist(), key=lambda d: used[d])
        used[home[unit]] += need[unit]
    return [home[unit] for unit in instance.unit_of.tolist()]


@pytest.mark.parametrize(("vertices", "devices", "ccr"), GRID)
def test_all_times_are_whole_numbers(vertices: int, devices: int, ccr: float) -> None:
    instance = plain(vertices, devices, ccr=ccr)
    assert all(time.denominator == 1 for time in delays(instance) + durations(instance))
    assert min(delays(instance) + durations(instance)) >= 1


@pytest.mark.parametrize(("vertices", "devices", "ccr"), [*GRID, (20, 3, 0.001), (20, 3, 1000)])
def test_the_ratio_of_communication_to_computation_is_met(
    vertices: int, devices: int, ccr: float
) -> None:
    instance = plain(vertices, devices, ccr=ccr)
    ratio = np.mean([float(x) for x in delays(instance)]) / np.mean(
        [float(x) for x in durations(instance)]
    )
    assert ratio == pytest.approx(ccr, rel=0.04)


def test_the_name_contains_the_parameters() -> None:
    assert plain(types=True, groups=True, memory="tight").name == "small-20-4-ccr1-t-g-tight-s1"
    assert plain(8, 2, seed=7, ccr=0.1).name == "small-8-2-ccr0.1-s7"
    assert plain(types=True, memory="loose").name == "small-20-4-ccr1-t-loose-s1"


def test_types_groups_and_memory_are_optional() -> None:
    without = plain(50)
    assert set(without.graph.device_types) == {None}
    assert without.graph.colocation == ()
    assert without.model.memory == "none"
    assert set(without.cluster.memory) == {None}
    asked = plain(50, types=True, groups=True, memory="loose")
    assert set(asked.graph.device_types) == {None, "CPU", "GPU"}
    assert sum(map(len, asked.graph.colocation)) == 10
    assert asked.model.memory == "estimate"
    assert None not in asked.cluster.memory


def test_one_seed_gives_one_instance() -> None:
    assert plain(seed=1).sha256 == plain(seed=1).sha256
    assert plain(seed=1).sha256 != plain(seed=2).sha256


def test_the_other_parameters_leave_graph_and_cluster_as_they_are() -> None:
    one = plain(ccr=0.1, devices=3)
    other = plain(ccr=10, devices=3, types=True, groups=True, memory="tight")
    more = plain(devices=5)
    assert np.array_equal(one.graph.edge_target, other.graph.edge_target)
    assert np.array_equal(one.graph.edge_target, more.graph.edge_target)
    assert np.array_equal(one.cluster.bandwidth.numerators, other.cluster.bandwidth.numerators)
    assert one.cluster.types == other.cluster.types


@pytest.mark.parametrize("memory", ["loose", "tight"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("vertices", [1, 2, 8, 30])
def test_a_placement_fits_into_the_memory(vertices: int, seed: int, memory: Tightness) -> None:
    instance = plain(vertices, 3, seed=seed, types=True, groups=True, memory=memory)
    schedule = retime(instance, packing(instance), instance.graph.topological_order.tolist())
    assert list(verify(instance, schedule)) == []


def test_tight_memory_is_a_tenth_more_than_an_even_share() -> None:
    tight, loose = plain(50, memory="tight"), plain(50, memory="loose")
    need = tight.static_memory.sum()
    assert float(sum(capacities(tight)) / need) == pytest.approx(1.1, abs=0.01)
    assert float(sum(capacities(loose)) / need) == pytest.approx(2, abs=0.01)
    assert max(capacities(tight)) < need / 3


def test_graphs_are_connected_enough_to_matter() -> None:
    edges = [len(plain(30, seed=seed).graph.edge_source) for seed in range(10)]
    assert min(edges) >= 30
    assert max(edges) <= 90


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"vertices": 0}, "vertices"),
        ({"devices": 1}, "devices"),
        ({"ccr": 0}, "ccr"),
        ({"ccr": float("nan")}, "ccr"),
        ({"memory": "snug"}, "memory"),
        ({"seed": -1}, "seed"),
    ],
)
def test_an_error_names_its_parameter(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        plain(**wrong)
    assert caught.value.place == place
