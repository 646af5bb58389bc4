from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from optpart import Graph, InputError, Instance, Model
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.draw import distinct
from optpart.interop.generate.layered import Decay, layered, level_starts

SHAPE: dict[str, Any] = {"levels": 30, "width": (3, 12)}


def levels_of(graph: Graph, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(starts, np.arange(len(graph)), side="right") - 1


def distances(graph: Graph, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    level = levels_of(graph, starts)
    return level[graph.edge_target] - level[graph.edge_source]


def edges(graph: Graph) -> set[tuple[int, int]]:
    return set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))


def same(a: Graph, b: Graph) -> bool:
    return (
        edges(a) == edges(b)
        and np.array_equal(a.ops.numerators, b.ops.numerators)
        and np.array_equal(a.memory.numerators, b.memory.numerators)
        and np.array_equal(a.tensor_size.numerators, b.tensor_size.numerators)
        and a.device_types == b.device_types
        and a.colocation == b.colocation
    )


def everything(seed: int) -> Graph:
    return layered(
        seed,
        **SHAPE,
        edge_probability=0.05,
        random_edges=40,
        cpu_probability=0.2,
        gpu_probability=0.3,
        colocated=50,
    )


# --- levels --------------------------------------------------------------------------------


def test_widths_are_within_their_range() -> None:
    widths = np.diff(level_starts(1, levels=500, width=(3, 7)))
    assert set(widths.tolist()) == {3, 4, 5, 6, 7}


@pytest.mark.parametrize("vertices", [60, 61, 150, 239, 240])
def test_an_exact_number_of_vertices_is_met_within_the_range(vertices: int) -> None:
    widths = np.diff(level_starts(1, levels=30, width=(2, 8), vertices=vertices))
    assert widths.sum() == vertices
    assert widths.min() >= 2
    assert widths.max() <= 8


def test_one_seed_gives_the_levels_of_its_graph() -> None:
    graph = layered(5, **SHAPE, edge_probability=0.1, level_limit=1)
    assert set(distances(graph, level_starts(5, **SHAPE)).tolist()) == {1}


# --- edges ---------------------------------------------------------------------------------


def test_equal_seeds_give_equal_graphs_and_different_seeds_different_ones() -> None:
    assert same(everything(3), everything(3))
    assert not same(everything(3), everything(4))


def test_a_generator_advances_from_graph_to_graph() -> None:
    rng = np.random.default_rng(3)
    assert same(
        layered(rng, **SHAPE, edge_probability=0.1), layered(3, **SHAPE, edge_probability=0.1)
    )
    assert not same(
        layered(rng, **SHAPE, edge_probability=0.1), layered(3, **SHAPE, edge_probability=0.1)
    )


@pytest.mark.parametrize("level_limit", [1, 2, 5])
def test_no_level_based_edge_is_longer_than_the_limit_and_all_lengths_occur(
    level_limit: int,
) -> None:
    graph = layered(2, **SHAPE, edge_probability=0.3, level_limit=level_limit)
    assert set(distances(graph, level_starts(2, **SHAPE)).tolist()) == set(
        range(1, level_limit + 1)
    )


def test_every_edge_leads_to_a_higher_level_and_none_is_duplicated() -> None:
    graph = layered(2, **SHAPE, edge_probability=0.2, random_edges=500)
    assert distances(graph, level_starts(2, **SHAPE)).min() >= 1
    assert len(edges(graph)) == len(graph.edge_source)


def test_the_number_of_edges_agrees_with_their_probability() -> None:
    graph = layered(1, levels=100, width=(10, 10), edge_probability=0.1)
    pairs = 10 * 10 * 100 * 99 / 2
    assert len(graph.edge_source) == pytest.approx(0.1 * pairs, rel=0.02)


@pytest.mark.parametrize("decay", [0.5, lambda distance: 2.0 ** (1 - distance)])
def test_decay_halves_the_edges_per_further_level(decay: Decay) -> None:
    graph = layered(1, levels=100, width=(30, 30), edge_probability=0.4, decay=decay)
    count = Counter((graph.edge_target // 30 - graph.edge_source // 30).tolist())
    for distance in (1, 2, 3):
        share = count[distance + 1] / (99 - distance) / (count[distance] / (100 - distance))
        assert share == pytest.approx(0.5, rel=0.05)


def test_probability_one_links_all_pairs_and_zero_none() -> None:
    shape: dict[str, Any] = {"levels": 4, "width": (5, 5)}
    assert len(layered(1, **shape, edge_probability=1.0).edge_source) == 6 * 25
    assert len(layered(1, **shape, edge_probability=1.0, level_limit=1).edge_source) == 3 * 25
    assert len(layered(1, **shape, edge_probability=0.0).edge_source) == 0


def test_exact_numbers_of_edges_are_met_and_random_ones_ignore_the_limit() -> None:
    graph = layered(7, **SHAPE, level_edges=300, level_limit=2, random_edges=200)
    lengths = distances(graph, level_starts(7, **SHAPE))
    assert len(lengths) == 500
    assert np.count_nonzero(lengths <= 2) >= 300
    assert lengths.max() > 10


def test_random_edges_can_use_every_remaining_pair() -> None:
    shape: dict[str, Any] = {"levels": 4, "width": (5, 5)}
    graph = layered(1, **shape, level_edges=60, level_limit=1, random_edges=90)
    assert len(edges(graph)) == 6 * 25


def test_one_level_has_no_edges() -> None:
    assert len(layered(1, levels=1, width=(6, 6), edge_probability=1.0).edge_source) == 0


@pytest.mark.parametrize("size", [3, 17])
def test_every_free_number_is_drawn_equally_often(size: int) -> None:
    rng = np.random.default_rng(1)
    taken = np.array([0, 19])
    drawn = [distinct(rng, 20, size, taken).tolist() for _ in range(2000)]
    assert all(len(set(numbers)) == size for numbers in drawn)
    count = Counter(number for numbers in drawn for number in numbers)
    assert set(count) == set(range(1, 19))
    for number in count.values():
        assert number == pytest.approx(2000 * size / 18, rel=0.25)


# --- vertices ------------------------------------------------------------------------------


def test_numbers_fill_their_ranges() -> None:
    graph = layered(
        1,
        levels=100,
        width=(10, 10),
        edge_probability=0,
        ops=(1, 5),
        sizes=(10, 12),
        memory=(0, 2),
    )
    assert set(graph.ops.numerators.tolist()) == {1, 2, 3, 4, 5}
    assert set(graph.tensor_size.numerators.tolist()) == {10, 11, 12}
    assert set(graph.memory.numerators.tolist()) == {0, 1, 2}


def test_every_vertex_has_one_output_that_its_out_edges_consume() -> None:
    graph = everything(1)
    assert np.array_equal(graph.tensor_vertex, np.arange(len(graph)))
    assert np.array_equal(graph.edge_tensor, graph.edge_source)


def test_device_types_occur_with_their_probabilities() -> None:
    graph = layered(
        1,
        levels=100,
        width=(50, 50),
        edge_probability=0,
        cpu_probability=0.2,
        gpu_probability=0.3,
    )
    count = Counter(graph.device_types)
    assert count["CPU"] / 5000 == pytest.approx(0.2, abs=0.02)
    assert count["GPU"] / 5000 == pytest.approx(0.3, abs=0.02)
    assert count[None] / 5000 == pytest.approx(0.5, abs=0.02)


def test_later_parameters_leave_the_edges_as_they_are() -> None:
    plain = layered(3, **SHAPE, edge_probability=0.05, random_edges=40)
    assert edges(plain) == edges(everything(3))


# --- colocation ----------------------------------------------------------------------------


@pytest.mark.parametrize("colocated", [0, 2, 3, 4, 5, 77, 1000])
def test_exactly_this_many_vertices_are_colocated_each_in_one_group(colocated: int) -> None:
    graph = layered(1, levels=10, width=(100, 100), edge_probability=0, colocated=colocated)
    members = [v for group in graph.colocation for v in group]
    assert len(members) == len(set(members)) == colocated
    assert all(len(group) >= 2 for group in graph.colocation)


def test_most_groups_are_small_and_few_are_large() -> None:
    graph = layered(1, levels=100, width=(200, 200), edge_probability=0, colocated=10_000)
    sizes = np.array([len(group) for group in graph.colocation])
    assert np.mean(sizes <= 4) > 0.6
    assert 0 < np.mean(sizes >= 20) < 0.1
    assert sizes.max() <= 101


def test_the_members_of_a_group_are_in_nearby_levels() -> None:
    graph = layered(1, levels=100, width=(50, 50), edge_probability=0, colocated=2500)
    for group in graph.colocation:
        assert (group[-1] - group[0]) // 50 <= 1 + len(group) // 10


def test_a_group_agrees_on_its_device_type() -> None:
    graph = everything(1)
    assert graph.colocation
    for group in graph.colocation:
        assert len({graph.device_types[v] for v in group}) == 1


# --- faults --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"levels": 0}, "levels"),
        ({"width": (0, 3)}, "width"),
        ({"width": (5, 3)}, "width"),
        ({"width": (1, 2**31)}, "width"),
        ({"vertices": 361}, "vertices"),
        ({"edge_probability": 1.5}, "edge_probability"),
        ({"edge_probability": float("nan")}, "edge_probability"),
        ({"level_edges": 5}, "level_edges"),
        ({"edge_probability": None, "level_edges": 10**6}, "level_edges"),
        ({"edge_probability": None, "level_edges": 5, "decay": 0.5}, "level_edges"),
        ({"level_limit": 0}, "level_limit"),
        ({"decay": 2.0}, "decay"),
        ({"decay": lambda distance: distance}, "decay(2)"),
        ({"random_edges": -1}, "random_edges"),
        ({"random_edges": 10**6}, "random_edges"),
        ({"ops": (-1, 3)}, "ops"),
        ({"sizes": (3, 2)}, "sizes"),
        ({"memory": (0, 2**63)}, "memory"),
        ({"cpu_probability": -0.1}, "cpu_probability"),
        ({"cpu_probability": 0.6, "gpu_probability": 0.6}, "cpu_probability + gpu_probability"),
        ({"colocated": 1}, "colocated"),
        ({"colocated": 1000}, "colocated"),
        ({"seed": -1}, "seed"),
        ({"levels": 10**5, "width": (10, 10), "edge_probability": 0.5}, "edge_probability"),
    ],
)
def test_an_error_names_its_parameter(wrong: dict[str, Any], place: str) -> None:
    parameters: dict[str, Any] = {"seed": 1, **SHAPE, "edge_probability": 0.1} | wrong
    with pytest.raises(InputError) as caught:
        layered(**parameters)
    assert caught.value.place == place


# --- all together --------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    levels=st.integers(6, 12),
    low=st.integers(2, 6),
    spread=st.integers(0, 6),
    edge_probability=st.floats(0, 0.8),
    level_limit=st.none() | st.integers(1, 15),
    decay=st.none() | st.floats(0, 1),
    random_edges=st.sampled_from([0, 1, 3]),
    colocated=st.sampled_from([0, 2, 3, 7, 12]),
    types=st.floats(0, 0.5),
    devices=st.integers(2, 6),
    cpu=st.floats(0.01, 0.99),
)
def test_any_sensible_parameters_give_an_instance(
    seed: int,
    levels: int,
    low: int,
    spread: int,
    edge_probability: float,
    level_limit: int | None,
    decay: float | None,
    random_edges: int,
    colocated: int,
    types: float,
    devices: int,
    cpu: float,
) -> None:
    rng = np.random.default_rng(seed)
    graph = layered(
        rng,
        levels=levels,
        width=(low, low + spread),
        edge_probability=edge_probability,
        level_limit=level_limit,
        decay=decay,
        random_edges=random_edges,
        colocated=colocated,
        cpu_probability=types,
        gpu_probability=types,
    )
    instance = Instance(
        graph, drawn_cluster(rng, devices, cpu=cpu, memory=(1, 9)), Model(memory="estimate")
    )
    assert instance.allowed.any(axis=1).all()
    assert sum(len(unit) > 1 for unit in instance.units) == len(graph.colocation)
