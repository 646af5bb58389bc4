from __future__ import annotations

import json

import pytest

from optpart.applications.training.compiled import Compiled
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.exporters.strategy import TARGETS, export
from optpart.testing.chains import chain, cluster

GRAPH = chain(3)
THREE = cluster(("a", "a", "a"), servers=(0, 0, 1), bandwidth=10)


def compiled(*decisions: Decision, batch: int = 12) -> Compiled:
    return compile_strategy(GRAPH, THREE, Strategy(batch, GRAPH.tied, decisions))


def on(*devices: int) -> Compiled:
    return compiled(*(Decision.on(d, 3) for d in devices))


def replicated(*counts: int, batch: int = 12) -> Compiled:
    return compiled(*[Decision(counts, "allreduce")] * 3, batch=batch)


def test_an_unknown_target() -> None:
    with pytest.raises(InputError, match=f"to: unknown 'x'; choose one of {', '.join(TARGETS)}"):
        export(on(0, 0, 0), "x")


def test_device_strings_are_those_of_the_distributed_graph() -> None:
    strategy = compiled(Decision.on(2, 3), Decision((1, 1, 0), "allreduce"), Decision.on(1, 3))
    found = export(strategy, "devices")
    strings = json.loads(found.text)
    names = zip(strategy.instance.graph.names, strategy.vertices, strict=True)
    of = {vertex.operation: strings[name] for name, vertex in names if name in strings}
    assert of[0] == "/job:worker/task:1/device:GPU:0"
    assert of[2] == "/job:worker/task:0/device:GPU:1"
    assert len(strings) == strategy.instance.vertices - 1
    assert "1 operations have no device of their own" in found.remarks[-1]


class TestStages:
    def test_the_first_operation_of_every_later_stage_is_a_split_point(self) -> None:
        found = export(on(1, 1, 0), "torch-stages")
        assert "# stages 0 to 1: a1, a0" in found.text
        assert "'f2': SplitPoint.BEGINNING" in found.text
        assert '"f1"' not in found.text

    def test_a_single_stage_splits_nothing(self) -> None:
        found = export(on(1, 1, 1), "torch-stages")
        assert "# a single stage: a1" in found.text
        assert found.remarks[-1] == "Rank 0 must be a1: nothing is split."

    def test_stages_are_contiguous(self) -> None:
        with pytest.raises(InputError, match="f1 → f2: goes from a1 to a0, against the order"):
            export(on(0, 1, 0), "torch-stages")

    def test_stages_have_one_device(self) -> None:
        with pytest.raises(InputError, match="operation f0: runs on a0, a1; the stages of"):
            export(replicated(1, 1, 0), "torch-stages")


class TestRanks:
    def test_gradients_are_weighted_by_samples(self) -> None:
        found = export(replicated(2, 1, 1), "ranks")
        rows = json.loads(found.text)["ranks"]
        assert [(row["device"], row["samples"], row["gradient_weight"]) for row in rows] == [
            ("a0", 6, "1/2"),
            ("a1", 3, "1/4"),
            ("a2", 3, "1/4"),
        ]
        assert len(found.remarks) == 1
        assert "a plain average" in found.remarks[0]

    def test_shares_that_are_no_whole_number_of_samples_are_said(self) -> None:
        found = export(replicated(2, 1, 1, batch=13), "ranks")
        rows = json.loads(found.text)["ranks"]
        assert [row["samples"] for row in rows] == [7, 3, 3]
        assert [row["gradient_weight"] for row in rows] == ["7/13", "3/13", "3/13"]
        assert "a0 13/2 → 7" in found.remarks[1]
        assert "a multiple of 4 has whole shares" in found.remarks[1]

    def test_only_the_whole_model_has_ranks(self) -> None:
        strategy = compiled(*[Decision((1, 1, 1), 0)] * 2, Decision.on(0, 3))
        with pytest.raises(InputError, match="groups: have 2 different placements or shares"):
            export(strategy, "ranks")
        with pytest.raises(InputError, match="groups: are all on a1"):
            export(on(1, 1, 1), "ranks")


class TestDTensor:
    def test_uneven_shares_are_refused_in_words(self) -> None:
        with pytest.raises(InputError, match=r"DTensor has no proportional split.*use --to ranks"):
            export(replicated(2, 1, 1), "dtensor")
        with pytest.raises(InputError, match="DTensor has no proportional split"):
            export(replicated(1, 1, 1, batch=13), "dtensor")

    def test_even_shares_are_a_shard(self) -> None:
        text = export(replicated(1, 1, 1), "dtensor").text
        assert "(3,)" in text
        assert "[Shard(0)]" in text
