"""Features without units, and a tree that can be followed by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from commandline import Run

import optpart as op
from bench.recommend import DRAWN, STRATEGIES, case, measured
from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.interop.generate.small import small
from optpart.problem.rational import RationalArray
from optpart.study import recommend as module
from optpart.study.recommend import features, recommend
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance


def three() -> Instance:
    """a to b and c, with b and c together; y is twice as fast, and c needs it."""
    builder = GraphBuilder().vertex("a", 4, memory=2, outputs=[6]).vertex("b", 8, memory=2)
    builder.vertex("c", 8, memory=2, devices=["y"]).edge("a", "b").edge("a", "c")
    builder.colocate("b", "c")
    devices = [Device("x", 1, memory=20), Device("y", 2, memory=20)]
    return Instance(builder.build(), Cluster.of(devices, 2), Model("link", "estimate"))


def test_features_by_hand() -> None:
    assert features(three()) == {
        "devices": 2,
        "vertices per device": 1.5,
        "depth": 2 / 3,
        "width": 2 / 3,
        "edges per vertex": 2 / 3,
        "ccr": pytest.approx(3 / (13 / 3)),  # run times: 3, 6 and 4
        "spread of run times": pytest.approx(np.std([3, 6, 4]) / (13 / 3)),
        "spread of delays": 0,
        "unlike devices": pytest.approx(5 / 3),
        "memory": (6 + 6 + 2 * 6) / 40,
        "colocated": 2 / 3,
        "restricted": pytest.approx(1 / 6),
        "queues": 1,
    }


@pytest.mark.parametrize("seed", range(4))
def test_units_do_not_matter(seed: int) -> None:
    instance = small(12, 3, seed=seed, ccr=2, memory="tight", groups=True)
    graph = instance.graph

    def times(values: RationalArray, factor: int) -> RationalArray:
        return RationalArray.from_fractions(factor * value for value in values.fractions())

    # Sizes count as times and as memory.
    other = replace(
        graph, ops=times(graph.ops, 7), tensor_size=times(graph.tensor_size, 7),
        memory=times(graph.memory, 7),
    )  # fmt: skip
    cluster = replace(
        instance.cluster,
        memory=tuple(7 * c if c is not None else c for c in instance.cluster.memory),
    )
    scaled = replace(instance, graph=other, cluster=cluster)
    assert features(scaled) == pytest.approx(features(instance))


@pytest.mark.parametrize("seed", range(20))
def test_every_instance_has_a_recommendation(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed), 5, 3)
    found = recommend(instance)
    assert all(np.isfinite(value) for value in features(instance).values())
    assert op.solve(instance, found.strategy, seconds=5).method == found.strategy


def test_the_empty_graph_has_one() -> None:
    empty = Instance(GraphBuilder().build(), Cluster.uniform(2))
    assert "vertices per device" in recommend(empty).beyond


def test_the_tree_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = {"instances": 9, "mean_log": [0.0, 0.5]}
    other = {"instances": 7, "mean_log": [1.0, 0.25]}
    tree = {
        "strategies": ["heft", "etf"], "held_out": {},
        "ranges": {name: [0, 1] for name in features(three())},
        "root": {"feature": "queues", "limit": 0.5, "low": leaf, "high": other},
    }  # fmt: skip
    monkeypatch.setattr(module, "_tree", lambda: tree)
    found = recommend(three())
    assert (found.strategy, found.instances, found.because) == ("etf", 7, ("queues > 0.5",))
    assert found.expected == pytest.approx({"etf": np.exp(0.25), "heft": np.e})
    assert found.beyond == ("devices", "vertices per device", "unlike devices")
    assert recommend(replace(three(), model=Model())).strategy == "heft"


def test_the_tree_was_grown_on_many_instances_and_helps() -> None:
    tree = module._tree()
    assert tree["instances"] > 5000
    assert tree["families"] == sorted(DRAWN)
    assert 6 <= len(tree["strategies"]) <= 10
    for means in tree["held_out"].values():
        assert 1 <= means["oracle"] <= means["tree"] < means["single"]

    def leaves(node: dict[str, object]) -> int:
        if "feature" not in node:
            return int(str(node["instances"]))
        return leaves(node["low"]) + leaves(node["high"])  # type: ignore[arg-type]

    assert leaves(tree["root"]) == tree["instances"]


def test_cases_are_the_same_again_and_measured_against_the_optimum() -> None:
    number = 3  # a small one, of six vertices
    family, instance = case(number)
    assert (family, instance) == case(number)
    _, best, *found = measured(number).split(",")
    assert len(found) == len(STRATEGIES)
    assert all(Fraction(value) >= Fraction(best) for value in found if value)
    free = replace(instance, model=replace(instance.model, communication="delay"))
    least = optimum(free)
    assert least is not None
    assert least.makespan <= Fraction(best)


class TestCommand:
    def test_prints_the_strategy_and_the_error(self, run: Run) -> None:
        shown = run("recommend", "heft-10")
        assert shown.code == 0
        assert shown.out.startswith(f"heft-10: {op.recommend('heft-10').strategy} (")
        assert "by seed: 1.0" in shown.out
        assert "by family: 1." in shown.out

    def test_says_what_it_has_not_seen(self, run: Run) -> None:
        shown = run("recommend", "resnet-50-edge-tight")
        assert "outside of what the tree has seen: vertices per device" in shown.out

    def test_json(self, run: Run) -> None:
        document = json.loads(run("recommend", "heft-10", "--json").out)
        assert document["strategy"] == min(document["expected"], key=document["expected"].get)
