"""Instances of real models with scarce memory, and the tables of what methods prove on them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bench.real import instances, memory, tables
from bench.real.__main__ import selected
from bench.real.runs import Run, contradiction
from bench.store import RESULTS
from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance

INDEX = RESULTS / "real" / "instances.csv"


def units(sizes: list[int], limits: list[int]) -> Instance:
    builder = GraphBuilder()
    for number, size in enumerate(sizes):
        builder.vertex(f"v{number}", 1, memory=size)
    devices = [Device(f"d{d}", memory=limit) for d, limit in enumerate(limits)]
    return Instance(builder.build(), Cluster.of(devices))


def run(method: str, value: str | None, bound: str | None, status: str = "FEASIBLE") -> Run:
    instance = ("networks", "vgg-19-edge-very-tight-port", "", 46, 46, 3)
    return Run(*instance, "makespan", method, 60.0, 2, status, value, bound, 1.0, "", "", "")


# --- memory --------------------------------------------------------------------------------------


def test_limits_that_just_fit_are_found_to_a_thousandth_of_the_need() -> None:
    # 12 bytes in all; two devices hold half each. 5 + 4 + 3 leaves 7 on one of them: 7 / 6.
    real = units([5000, 4000, 3000], [100, 100])
    assert memory.just_fits(real) == 1167
    assert memory.limits(real, 1167) == (7002, 7002)
    assert not memory.fits(real, memory.limits(real, 1166))


def test_limits_keep_the_proportions_of_the_real_memory() -> None:
    real = units([1000] * 12, [30, 60, 90])
    assert memory.just_fits(real) == 1001
    tight = memory.limited(real, "tight")
    assert tight.cluster.memory == (2669, 5338, 8008)  # 4/3 of 1001 thousandths of 2000, …
    assert (tight.model.memory, tight.model.communication) == ("estimate", "delay")
    very = memory.limited(real, "very-tight")
    assert very.cluster.memory == (2102, 4204, 6306)  # 21/20 of them


def test_the_largest_unit_may_decide_what_just_fits() -> None:
    real = units([9000, 1000], [100, 100])
    assert memory.just_fits(real) == 1800


def test_devices_that_a_unit_may_not_use_do_not_count() -> None:
    builder = GraphBuilder().vertex("a", 1, memory=6000, devices=["d0"])
    graph = builder.vertex("b", 1, memory=6000, devices=["d0"]).build()
    cluster = Cluster.of([Device("d0", memory=1), Device("d1", memory=1)])
    assert memory.just_fits(Instance(graph, cluster)) == 2000


def test_estimate_counts_outputs_and_inputs_as_well() -> None:
    builder = GraphBuilder().vertex("a", 1, memory=5, outputs=[2]).vertex("b", 1, memory=7)
    graph = builder.edge("a", "b").build()
    real = Instance(graph, Cluster.of([Device("d0", memory=1)]))
    assert memory.needs(real) == [5 + 2, 7 + 2]


def test_free_memory_has_no_limits() -> None:
    free = memory.limited(units([1], [1]), "free")
    assert (free.cluster.memory, free.model.memory) == ((None,), "none")


# --- instances -----------------------------------------------------------------------------------


def test_every_network_runs_on_every_cluster_in_all_variants() -> None:
    names = [case.name for case in instances.networks()]
    assert len(set(names)) == 9 * 3 * 3 * 2
    assert {"squeezenet-edge-free", "vgg-19-server-very-tight-port"} <= set(names)


@pytest.mark.parametrize("step", ["decode", "prefill"])
def test_a_chain_has_alike_blocks_between_embedding_and_head(step: str) -> None:
    chain = instances.base("chains", f"llm-8-4-{step}")
    names = chain.graph.names
    assert names == ("embedding", *(f"block.{i}" for i in range(8)), "norm", "head")
    for d in range(4):
        assert len({chain.duration(v, d) for v in range(1, 9)}) == 1
    assert chain.cluster.names == instances.FLEET[:4]
    assert instances.articulations("chains", f"llm-8-4-{step}") == 11


def test_devices_of_one_server_are_closer() -> None:
    cluster = instances.base("chains", "llm-8-4-decode").cluster
    assert cluster.bandwidth[0, 1] == cluster.bandwidth[2, 3] > cluster.bandwidth[1, 2]


def test_an_articulation_is_passed_by_every_path() -> None:
    # squeezenet's modules branch once between their articulations
    assert instances.articulations("networks", "squeezenet-edge") == 34
    assert instances.articulations("networks", "inception-v1-edge") == 26


def test_names_of_instances_choose_them() -> None:
    chosen = {case.name for case in selected(["llm-8-2-*", "alexnet-edge-free"])}
    assert "llm-8-2-prefill-tight" in chosen
    assert "alexnet-edge-free" in chosen
    assert len(chosen) == 5
    assert len(list(selected(["chains"]))) == 60
    with pytest.raises(InputError, match="no instance 'vgg'"):
        list(selected(["vgg"]))


@pytest.mark.skipif(not INDEX.exists(), reason="a source distribution leaves it out")
def test_the_committed_index_is_of_these_instances() -> None:
    chosen = selected(["alexnet-edge-*", "vgg-19-server-*", "llm-8-8-*"])
    listed = INDEX.read_text(encoding="utf-8").splitlines()
    assert set(tables.index(chosen).splitlines()) <= set(listed)
    assert len(listed) == 1 + len(list(instances.cases()))


# --- tables --------------------------------------------------------------------------------------


def test_methods_prove_together_what_none_proves_alone() -> None:
    (each,) = tables.together([run("cpsat", "8", "7"), run("search", "7", "5")])
    assert each.proven
    assert (each.value, each.by("value"), each.by("bound")) == (Fraction(7), "search", "cpsat")


def test_a_portfolio_names_the_member_that_found_or_proved() -> None:
    auto = replace(run("auto", "7", "7", "OPTIMAL"), value_by="hybrid", bound_by="cpsat")
    (each,) = tables.together([auto])
    assert (each.by("value"), each.by("bound")) == ("auto (hybrid)", "auto (cpsat)")


def test_runs_of_different_limits_are_not_mixed() -> None:
    long = run("cpsat", "7", "7", "OPTIMAL")
    assert len(tables.together([long, replace(long, seconds=10.0)])) == 2


def test_a_bound_above_a_value_is_a_contradiction() -> None:
    runs = [run("cpsat", "9", "8"), run("search", "7", None)]
    (fault,) = tables.contradictions(runs)
    assert fault == "vgg-19-edge-very-tight-port, makespan: a bound of 8, and a value of 7"
    assert "**Contradictions:**" in tables.report(runs)
    assert not tables.contradictions([run("cpsat", "9", "8"), run("search", "8", None)])


def test_a_contiguous_schedule_counts_for_any() -> None:
    best = replace(run("cpsat", "6", "6", "OPTIMAL"), goal="contiguous makespan")
    assert not tables.contradictions([best, run("cpsat", "5", "5", "OPTIMAL")])
    (fault,) = tables.contradictions([best, run("cpsat", "7", "7", "OPTIMAL")])
    assert fault.endswith(", makespan: a bound of 7, and a value of 6")


def test_infeasible_and_a_value_are_a_contradiction() -> None:
    rows = [vars(run("cpsat", None, None, "INFEASIBLE")), vars(run("search", "7", None))]
    assert contradiction(rows) == "infeasible, and a value of 7"


def test_a_method_without_a_placement_is_worse_than_a_split_that_has_one() -> None:
    runs = [
        run(tables.SPLIT, "9", None),
        run("search", None, None),
        run("cpsat", "8", "8", "OPTIMAL"),
    ]
    text = tables.report(runs)
    assert "| very tight, port | `search` | 1 | 0 | – | 1 | 1 | 1.0 |" in text
    assert "| very tight, port | `cpsat` | 1 | 1 | – | 0 | 0 | 1.0 |" in text
    assert "| very tight, port | together | 1 | 1 | – | 0 | | |" in text
    assert "| cpsat | proven | 12.5% |" in text
