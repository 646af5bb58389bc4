"""Families of graphs that papers use: their sizes have closed forms, their edges a meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import comb, log2
from typing import Any

import numpy as np
import pytest

from optpart import InputError, Instance
from optpart.interop.generate.families import (
    cholesky,
    fft,
    fork_join,
    gauss,
    gnp,
    stencil,
    stg_layers,
    tree,
)

FAMILIES: dict[str, Callable[..., Instance]] = {
    "fork-join": fork_join,
    "tree": tree,
    "fft": fft,
    "gauss": gauss,
    "cholesky": cholesky,
    "stencil": stencil,
    "gnp": gnp,
    "stg-layers": stg_layers,
}
every_family = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)


def edges(instance: Instance) -> set[tuple[str, str]]:
    graph = instance.graph
    ends = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    return {(graph.names[u], graph.names[v]) for u, v in ends}


def size(instance: Instance) -> tuple[int, int]:
    """Number of tasks and of edges, all of which are distinct."""
    assert len(edges(instance)) == len(instance.graph.edge_source)
    return instance.vertices, len(instance.graph.edge_source)


def degrees(instance: Instance) -> tuple[Counter[str], Counter[str]]:
    """In-degrees and out-degrees by name."""
    pairs = edges(instance)
    return Counter(v for _, v in pairs), Counter(u for u, _ in pairs)


class TestSizes:
    @pytest.mark.parametrize("width", [1, 2, 7])
    @pytest.mark.parametrize("stages", [1, 2, 5])
    def test_of_fork_join_graphs(self, width: int, stages: int) -> None:
        made = fork_join(width, stages)
        assert size(made) == (stages * (width + 1) + 1, 2 * stages * width)

    @pytest.mark.parametrize("direction", ["in", "out"])
    @pytest.mark.parametrize("branching", [2, 3, 5])
    @pytest.mark.parametrize("levels", [1, 2, 4])
    def test_of_trees(self, direction: Any, branching: int, levels: int) -> None:
        tasks = (branching**levels - 1) // (branching - 1)
        assert size(tree(direction, levels, branching)) == (tasks, tasks - 1)

    def test_of_a_tree_without_branches(self) -> None:
        assert size(tree("in", 6, 1)) == (6, 5)

    @pytest.mark.parametrize("points", [1, 2, 4, 8, 64])
    def test_of_fourier_transforms(self, points: int) -> None:
        tasks = 2 * points - 1 + points * log2(points)
        assert size(fft(points)) == (tasks, 2 * points - 2 + 2 * points * log2(points))

    @pytest.mark.parametrize("m", [2, 3, 5, 12])
    def test_of_gaussian_elimination(self, m: int) -> None:
        assert size(gauss(m)) == ((m * m + m - 2) // 2, m * (m - 1) - 1)

    def test_of_the_elimination_in_the_paper(self) -> None:
        """Figure 12 of Topcuoglu et al. 2002 shows the 14 tasks of a matrix of size 5."""
        assert gauss(5).vertices == 14

    @pytest.mark.parametrize("t", [1, 2, 3, 4, 9])
    def test_of_cholesky_factorisations(self, t: int) -> None:
        made = cholesky(t)
        assert size(made) == (t * (t + 1) * (t + 2) // 6, (t - 1) * t * (t + 1) // 2)
        kinds = Counter(name.partition("_")[0] for name in made.graph.names)
        of_kinds = {"potrf": t, "trsm": comb(t, 2), "syrk": comb(t, 2), "gemm": comb(t, 3)}
        assert kinds == {kind: count for kind, count in of_kinds.items() if count}

    @pytest.mark.parametrize("width", [1, 2, 6])
    @pytest.mark.parametrize("steps", [1, 2, 5])
    def test_of_stencils(self, width: int, steps: int) -> None:
        assert size(stencil(width, steps)) == (width * steps, (steps - 1) * (3 * width - 2))

    @pytest.mark.parametrize("tasks", [1, 2, 30])
    def test_of_random_graphs_at_the_ends(self, tasks: int) -> None:
        assert size(gnp(tasks, 0.0)) == (tasks, 0)
        assert size(gnp(tasks, 1.0)) == (tasks, tasks * (tasks - 1) // 2)

    def test_of_random_graphs_agrees_with_the_probability(self) -> None:
        assert size(gnp(400, 0.3))[1] == pytest.approx(0.3 * 400 * 399 / 2, rel=0.02)

    @pytest.mark.parametrize(("layers", "width", "q"), [(1, 4, 1), (2, 5, 2), (6, 4, 4), (9, 7, 3)])
    def test_of_layers(self, layers: int, width: int, q: int) -> None:
        made = stg_layers(layers, width, q)
        tasks, count = size(made)
        last = degrees(made)[0]["exit"]
        assert (tasks, count) == (layers * width + 2, width + (layers - 1) * width * q + last)
        assert last >= width


class TestEdges:
    def test_the_join_of_a_stage_is_the_fork_of_the_next(self) -> None:
        incoming, outgoing = degrees(fork_join(3, 2))
        assert (incoming["fork_1"], outgoing["fork_1"]) == (3, 3)
        assert (outgoing["fork_0"], incoming["join"], outgoing["join"]) == (3, 3, 0)

    def test_an_in_tree_is_an_out_tree_turned_round(self) -> None:
        assert edges(tree("in")) == {(v, u) for u, v in edges(tree("out"))}
        assert max(degrees(tree("in"))[1].values()) == 1

    def test_every_input_of_a_fourier_transform_reaches_every_output(self) -> None:
        made = fft(8)
        names = made.graph.names
        reached: dict[str, set[str]] = {name: set() for name in names}
        for v in made.graph.topological_order.tolist():
            name = names[v]
            before = {u for u, w in edges(made) if w == name}
            leaf = name.startswith("call_") and int(name[5:]) >= 7
            reached[name] = {name} if leaf else set().union(*(reached[u] for u in before))
        assert all(len(reached[f"butterfly_2_{i}"]) == 8 for i in range(8))

    def test_elimination_of_a_matrix_of_size_three(self) -> None:
        assert edges(gauss(3)) == {
            ("pivot_1", "update_1_2"),
            ("pivot_1", "update_1_3"),
            ("update_1_2", "pivot_2"),
            ("update_1_3", "update_2_3"),
            ("pivot_2", "update_2_3"),
        }

    def test_factorisation_of_three_by_three_tiles(self) -> None:
        assert edges(cholesky(3)) == {
            ("potrf_0", "trsm_1_0"),
            ("potrf_0", "trsm_2_0"),
            ("trsm_1_0", "syrk_1_0"),
            ("trsm_1_0", "gemm_2_1_0"),
            ("trsm_2_0", "gemm_2_1_0"),
            ("trsm_2_0", "syrk_2_0"),
            ("syrk_1_0", "potrf_1"),
            ("potrf_1", "trsm_2_1"),
            ("gemm_2_1_0", "trsm_2_1"),
            ("trsm_2_1", "syrk_2_1"),
            ("syrk_2_0", "syrk_2_1"),
            ("syrk_2_1", "potrf_2"),
        }

    def test_a_cell_needs_its_neighbours(self) -> None:
        before = {u for u, v in edges(stencil(4, 2)) if v == "cell_1_0"}
        assert before == {"cell_0_0", "cell_0_1"}
        assert degrees(stencil(4, 2))[0]["cell_1_1"] == 3

    def test_random_edges_are_equally_likely(self) -> None:
        drawn = Counter(pair for seed in range(300) for pair in edges(gnp(6, 0.5, seed=seed)))
        assert len(drawn) == 15
        assert all(int(u[1:]) < int(v[1:]) for u, v in drawn)
        assert min(drawn.values()) > 110
        assert max(drawn.values()) < 190

    def test_layers_have_an_entry_and_an_exit_that_cost_nothing(self) -> None:
        made = stg_layers(4, 5, 2)
        incoming, outgoing = degrees(made)
        assert [name for name in made.graph.names if not incoming[name]] == ["entry"]
        assert [name for name in made.graph.names if not outgoing[name]] == ["exit"]
        assert {incoming[f"t_{i}_{j}"] for i in range(1, 4) for j in range(5)} == {2}
        ops, sizes = made.graph.ops.fractions(), made.graph.tensor_size.fractions()
        assert [v for v, (c, s) in enumerate(zip(ops, sizes, strict=True)) if not c and not s] == [
            0,
            made.vertices - 1,
        ]
        assert min(ops[1:-1]) > 0


class TestCosts:
    @every_family
    def test_all_times_are_whole_numbers(self, make: Callable[..., Instance]) -> None:
        made = make(ccr=0.3, seed=5)
        for v in range(made.vertices):
            for d in range(made.devices):
                assert made.duration(v, d).denominator == 1
        for tensor in range(made.graph.tensors):
            delay = made.delay(tensor, 0, 1)
            assert delay is not None
            assert delay.denominator == 1

    @every_family
    @pytest.mark.parametrize("ccr", [0.1, 1, 10])
    def test_the_ratio_of_communication_to_computation_is_met(
        self, make: Callable[..., Instance], ccr: float
    ) -> None:
        made = make(ccr=ccr, seed=1)
        k = made.devices
        run = [float(made.duration(v, d)) for v in range(made.vertices) for d in range(k)]
        delays = [
            float(delay)
            for tensor in range(made.graph.tensors)
            for d in range(k)
            for e in range(k)
            if d != e and (delay := made.delay(tensor, d, e)) is not None
        ]
        assert np.mean(delays) / np.mean(run) == pytest.approx(ccr, rel=0.06)

    @every_family
    def test_one_seed_gives_one_instance(self, make: Callable[..., Instance]) -> None:
        assert make(seed=3).sha256 == make(seed=3).sha256
        assert make(seed=3).sha256 != make(seed=4).sha256

    @every_family
    def test_the_ratio_and_the_devices_leave_the_graph_as_it_is(
        self, make: Callable[..., Instance]
    ) -> None:
        assert edges(make(ccr=0.1)) == edges(make(ccr=10, devices=2))

    def test_the_name_contains_the_parameters(self) -> None:
        assert fork_join(3, 2).name == "fork-join-w3-t2-d4-ccr1-s0"
        assert tree("out", ccr=0.5, seed=7).name == "out-tree-h4-b2-d4-ccr0.5-s7"
        assert gnp(9, 0.25, 2).name == "gnp-n9-p0.25-d2-ccr1-s0"


@pytest.mark.parametrize(
    ("make", "wrong", "place"),
    [
        (fork_join, {"width": 0}, "width"),
        (fork_join, {"stages": 0}, "stages"),
        (fork_join, {"width": 10**6, "stages": 10**6}, "tasks, edges and devices"),
        (tree, {"direction": "up"}, "direction"),
        (tree, {"levels": 0}, "levels"),
        (tree, {"levels": 60}, "tasks, edges and devices"),
        (fft, {"points": 6}, "points"),
        (fft, {"points": 0}, "points"),
        (gauss, {"size": 1}, "size"),
        (gauss, {"size": 10**6}, "tasks, edges and devices"),
        (cholesky, {"tiles": 0}, "tiles"),
        (cholesky, {"tiles": 10**6}, "tasks, edges and devices"),
        (stencil, {"steps": 0}, "steps"),
        (gnp, {"tasks": 0}, "tasks"),
        (gnp, {"probability": 1.5}, "probability"),
        (gnp, {"tasks": 10**6, "probability": 0.5}, "tasks, edges and devices"),
        (stg_layers, {"predecessors": 7}, "predecessors"),
        (stg_layers, {"layers": 0}, "layers"),
        (fork_join, {"devices": 1}, "devices"),
        (fork_join, {"ccr": 0}, "ccr"),
        (fork_join, {"ccr": float("nan")}, "ccr"),
        (fork_join, {"seed": -1}, "seed"),
    ],
)
def test_an_error_names_its_parameter(
    make: Callable[..., Instance], wrong: dict[str, Any], place: str
) -> None:
    with pytest.raises(InputError) as caught:
        make(**wrong)
    assert caught.value.place == place
