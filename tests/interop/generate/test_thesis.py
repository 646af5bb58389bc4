import numpy as np
import pytest

from optpart import InputError
from optpart.interop.generate import thesis

# [L] table 7.1: nodes, edges, random, level based, levels, least and greatest width, level limit,
# colocated nodes.
TABLE_7_1 = [
    (1, 36319, 16076, 8003, 8073, 300, 50, 200, 20, 5200),
    (2, 18168, 25148, 5015, 20133, 300, 20, 100, 20, 2762),
    (3, 7475, 49510, 0, 49510, 1000, 5, 10, 3, 263),
    (4, 9899, 42486, 21099, 21387, 200, 20, 80, 10, 1945),
    (5, 10440, 47414, 23535, 23879, 200, 20, 80, 10, 4768),
    (6, 26887, 107144, 53423, 53721, 500, 10, 100, 20, 4214),
]


@pytest.mark.parametrize("row", TABLE_7_1, ids=lambda row: f"thesis-{row[0]}")
def test_the_counts_are_those_of_table_7_1(row: tuple[int, ...]) -> None:
    number, vertices, edges, random, level_based, levels, least, greatest, limit, colocated = row
    graph, starts = thesis.graph(number, seed=1), thesis.levels(number, seed=1)
    assert len(graph) == starts[-1] == vertices
    assert len(graph.edge_source) == edges == random + level_based

    widths = np.diff(starts)
    assert len(widths) == levels
    assert least <= widths.min() <= widths.max() <= greatest

    level = np.searchsorted(starts, np.arange(vertices), side="right") - 1
    distance = level[graph.edge_target] - level[graph.edge_source]
    assert distance.min() >= 1
    assert np.count_nonzero(distance <= limit) >= level_based
    assert np.count_nonzero(distance > limit) <= random

    assert sum(map(len, graph.colocation)) == colocated
    assert len(set().union(*graph.colocation)) == colocated


@pytest.mark.parametrize("row", TABLE_7_1, ids=lambda row: f"thesis-{row[0]}")
def test_weights_are_from_1_to_100(row: tuple[int, ...]) -> None:
    graph = thesis.graph(row[0])
    for numbers in (graph.ops, graph.memory, graph.tensor_size):
        assert numbers.denominator == 1
        assert numbers.numerators.min() == 1
        assert numbers.numerators.max() == 100


def test_random_edges_can_exceed_the_level_limit() -> None:
    graph, starts = thesis.graph(1), thesis.levels(1)
    level = np.searchsorted(starts, np.arange(len(graph)), side="right") - 1
    distance = level[graph.edge_target] - level[graph.edge_source]
    # Of all pairs of 300 levels, most are farther than 20 levels apart.
    assert np.count_nonzero(distance > 20) > 0.8 * 8003


def test_one_seed_gives_one_graph() -> None:
    one, again, other = thesis.graph(3, 1), thesis.graph(3, 1), thesis.graph(3, 2)
    assert np.array_equal(one.edge_target, again.edge_target)
    assert np.array_equal(one.ops.numerators, again.ops.numerators)
    assert not np.array_equal(one.edge_target, other.edge_target)


def test_an_instance_has_its_name_100_devices_and_the_graph_of_its_seed() -> None:
    instance = thesis.instance(3, seed=1)
    assert instance.name == "thesis-3"
    assert instance.devices == 100
    assert instance.model.memory == "estimate"
    assert np.array_equal(instance.graph.edge_target, thesis.graph(3, 1).edge_target)


def test_without_memory_everything_else_is_the_same() -> None:
    instance, without = thesis.instance(3, 10, 1), thesis.instance(3, 10, 1, memory=False)
    assert without.model.memory == "none"
    assert set(without.cluster.memory) == {None}
    assert np.array_equal(
        instance.cluster.bandwidth.numerators, without.cluster.bandwidth.numerators
    )


@pytest.mark.parametrize(("number", "devices"), [(1, 100), (3, 2), (4, 50), (5, 100), (3, 300)])
def test_memory_suffices_for_a_greedy_placement(number: int, devices: int) -> None:
    instance = thesis.instance(number, devices)
    need = [int(amount) for amount in instance.static_memory.fractions()]
    room = np.array([int(memory or 0) for memory in instance.cluster.memory])
    # About three times the need for many devices, and in every case twice.
    assert room.sum() >= 2 * sum(need)
    for unit, amount in enumerate(need):
        possible = np.flatnonzero(instance.allowed[unit] & (room >= amount))
        assert len(possible)
        room[possible[0]] -= amount


def test_a_hundred_devices_hold_about_three_times_the_need() -> None:
    instance = thesis.instance(4)
    room = [memory or 0 for memory in instance.cluster.memory]
    assert float(sum(room) / instance.static_memory.sum()) == pytest.approx(3, abs=0.3)


@pytest.mark.parametrize(
    ("number", "devices", "place"), [(0, 5, "number"), (7, 5, "number"), (3, 1, "devices")]
)
def test_an_error_names_its_parameter(number: int, devices: int, place: str) -> None:
    with pytest.raises(InputError) as caught:
        thesis.instance(number, devices)
    assert caught.value.place == place
