"""The search for worst cases: within the family, proven, and the same again for a seed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from commandline import Run

import optpart as op
from optpart.interop.formats import native
from optpart.methods.registry import forget
from optpart.study.worst import FAMILIES, worst
from optpart.study.worst.draft import OPS, RATES, SIZES, SPEEDS, Draft, changed, drawn
from optpart.study.worst.families import Edges
from optpart.testing.brute_force import optimum

LINE = "heft: makespan 613/60, optimum 28/5, ratio 613/336 (1.8244); 40 instances, seed 0\n"


def graph(n: int, edges: Edges) -> nx.DiGraph[int]:
    made: nx.DiGraph[int] = nx.DiGraph(sorted(edges))
    made.add_nodes_from(range(n))
    return made


def is_series_parallel(n: int, edges: Edges) -> bool:
    """Test for the forbidden order of four vertices, a < c, b < c, b < d and no others."""
    before = {*nx.transitive_closure_dag(graph(n, edges)).edges}
    return not any(
        {(a, c), (b, c), (b, d)} <= before
        and not {(a, d), (a, b), (b, a), (c, d), (d, c), (d, a)} & before
        for a, b, c, d in permutations(range(n), 4)
    )


def is_tree(n: int, edges: Edges) -> bool:
    made = graph(n, edges)
    return nx.is_arborescence(made) or nx.is_arborescence(made.reverse())


RULES: dict[str, Callable[[int, Edges], bool]] = {
    "general": lambda n, edges: True,
    "series-parallel": is_series_parallel,
    "tree": is_tree,
    "unit": lambda n, edges: True,
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("ccr", [Fraction(0), Fraction(1, 2), Fraction(10)])
def test_changes_stay_within_the_family_and_its_ranges(name: str, ccr: Fraction) -> None:
    rng, family = np.random.default_rng(0), FAMILIES[name]
    draft = drawn(family, 6, 3, ccr, rng)
    for _ in range(60):
        assert nx.is_directed_acyclic_graph(graph(6, frozenset(draft.sizes)))
        assert RULES[name](6, frozenset(draft.sizes))
        assert draft.ccr <= ccr
        for values, (low, high) in (
            (draft.ops, OPS), (draft.speeds, SPEEDS),
            (draft.sizes.values(), SIZES), (draft.rates.values(), RATES),
        ):  # fmt: skip
            assert all(low <= value <= high for value in values)
        if family.unit:
            assert {*draft.ops, *draft.speeds, *draft.rates.values()} == {1}
            assert {*draft.sizes.values()} <= {0, 1}
        draft = changed(draft, family, ccr, rng)


@pytest.mark.parametrize(
    ("name", "graphs"),
    # Forward edges; orders in series and parallel on three labelled vertices; rooted labelled trees
    # whose numbers rise from the root, in both directions.
    [("general", 8), ("unit", 8), ("series-parallel", 19), ("tree", 4)],
)
def test_changes_reach_every_graph_of_the_family(name: str, graphs: int) -> None:
    rng, family = np.random.default_rng(1), FAMILIES[name]
    edges, seen = family.draw(3, rng), set()
    for _ in range(600):
        edges = family.change(3, edges, rng)
        seen.add(edges)
    assert len(seen) == graphs


def test_the_ratio_of_communication_is_that_of_mean_delay_and_mean_run_time() -> None:
    draft = Draft((6, 2), {(0, 1): 10}, (1, 2), {(0, 1): 5})
    assert draft.ccr == Fraction(2) / (4 * Fraction(3, 4))
    assert draft.within(Fraction(1, 2)).sizes == {(0, 1): 7}
    instance = draft.instance("two")
    assert instance.duration(0, 1) == 3
    assert op.solve(instance, "enumerate").makespan == 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_ratio_is_that_of_the_method_and_of_brute_force(family: str) -> None:
    found = worst("heft", vertices=4, devices=2, family=family, tries=20, seed=3)
    assert found is not None
    assert found.makespan == op.solve(found.instance, "heft").makespan
    least = optimum(found.instance)
    assert least is not None
    assert found.optimum == least.makespan
    assert found.ratio == found.makespan / found.optimum >= 1
    assert found.tries == 20


def test_more_than_nine_vertices_are_proven_too() -> None:
    found = worst("hash+fifo", vertices=10, devices=2, tries=4)
    assert found is not None
    assert op.solve(found.instance, seconds=20).makespan == found.optimum


def test_exact_methods_have_no_worst_case() -> None:
    found = worst("enumerate", vertices=4, devices=2, tries=25)
    assert found is not None
    assert found.ratio == 1


def test_list_scheduling_stays_within_the_bound_of_graham() -> None:
    found = worst("etf", vertices=6, family="unit", ccr=Fraction(0), tries=60)
    assert found is not None
    assert found.ratio <= 2 - Fraction(1, 3)


def test_a_method_without_schedules_has_none() -> None:
    @op.register("gives-up")
    def gives_up(instance: op.Instance, **_: object) -> op.Result:
        return op.conclude(instance, "gives-up", None)

    try:
        assert worst("gives-up", tries=3) is None
    finally:
        forget("gives-up")


def test_an_interrupt_keeps_the_worst_so_far() -> None:
    def watch(tries: int, ratio: Fraction) -> None:
        if tries >= 3:
            raise KeyboardInterrupt

    found = worst("heft", vertices=4, tries=100, watch=watch)
    assert found is not None
    assert found.interrupted
    assert found.tries < 100


class TestCommand:
    def test_prints_one_line_and_writes_the_instance(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "worst.json"
        for _ in range(2):
            shown = run("worst", "heft", "--vertices", 5, "--tries", 40, "-o", path)
            assert (shown.code, shown.out) == (0, LINE)
        instance = native.read(path)
        assert op.solve(instance).makespan == Fraction(28, 5)
        assert op.solve(instance, "heft").makespan == Fraction(613, 60)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ("heftt", "METHOD: no method 'heftt'"),
            ("heft --family forest", "--family: no family 'forest'"),
            ("heft --vertices 17", "Invalid value for '--vertices': 17 is not in the range"),
            ("heft --devices 1", "Invalid value for '--devices': 1 is not in the range"),
            ("heft --ccr -1", "--ccr: -1 is negative"),
            ("heft --ccr much", "--ccr: 'much' is not a number"),
        ],
    )
    def test_refuses_in_one_line(self, run: Run, arguments: str, said: str) -> None:
        shown = run("worst", *arguments.split())
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith(f"optpart: {said}")
        assert shown.err.count("\n") == 1


def test_in_python_it_finds_what_the_command_finds() -> None:
    found = op.worst("heft", vertices=5, tries=40)
    assert found is not None
    assert (found.makespan, found.optimum, found.tries) == (Fraction(613, 60), Fraction(28, 5), 40)
    with pytest.raises(op.InputError, match="vertices: 17 is out of range; give a whole number"):
        op.worst("heft", vertices=17)
