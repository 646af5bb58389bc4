"""The throughput files of dnn-partitioning, read as their authors mean them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from naive_pipelines import plans

from optpart.base.errors import InputError
from optpart.exact.pipeline.downsets import downsets_of, items_of
from optpart.exact.pipeline.plan import plan_pipeline
from optpart.exact.pipeline.throughput import is_throughput, read_throughput, throughput_from
from optpart.solution.result import Status

DATA = Path(__file__).resolve().parents[3] / "../shared/data/dnn-partitioning/throughput"


def document(**changed: Any) -> dict[str, Any]:
    """Two layers and their gradients, ``1 → 2 → 4 → 3`` with 3 of the class of 1, and 4 of 2."""
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "size": 5,
         "isBackwardNode": i > 2, "colorClass": 1 if i in (1, 3) else 2}
        for i in (1, 2, 3, 4)
    ]  # fmt: skip
    edges = [
        {"sourceId": 1, "destId": 2, "cost": 0.25},
        {"sourceId": 1, "destId": 3, "cost": 0.25},
        {"sourceId": 2, "destId": 4, "cost": 1},
        {"sourceId": 4, "destId": 3, "cost": 0.5},
    ]
    top = {"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 10, "nodes": nodes, "edges": edges}
    return top | changed


def test_training_is_split_by_forward_nodes_and_accelerators_pay_both_ends() -> None:
    pipeline = throughput_from(document(), "training")
    assert pipeline.edges == ((0, 1),)
    found = plan_pipeline(pipeline)
    assert found.status is Status.OPTIMAL
    # Each accelerator has one layer with its gradient, and pays 1 → 2 and 4 → 3.
    assert found.bottleneck == 2 + 2 + Fraction(1, 4) + Fraction(1, 2)
    assert [stage.vertices for stage in found.stages] == [(0, 2), (1, 3)]
    assert found.bottleneck == min(value for _, value in plans(pipeline, 1))


def test_a_cpu_pays_no_transfers_and_has_no_memory_limit() -> None:
    found = plan_pipeline(throughput_from(document(maxFPGAs=0), "one CPU"))
    assert found.bottleneck == 80
    assert plan_pipeline(throughput_from(document(maxSizePerFPGA=9), "small")).bottleneck == 80


def test_replicas_share_the_load_and_exchange_sizes() -> None:
    found = plan_pipeline(throughput_from(document(maxSizePerFPGA=20), "both"), replicas=2)
    assert found.bottleneck == 4
    pipeline = throughput_from(document(maxSizePerFPGA=20), "both", Fraction(100))
    assert plan_pipeline(pipeline, replicas=2).bottleneck == 4 + Fraction(20, 100)


def test_backward_classes_without_forward_nodes_follow_reversed_edges() -> None:
    top = document()
    for i, color in ((2, 3), (3, 4)):
        top["nodes"][i]["colorClass"] = color
    assert throughput_from(top, "orphans").edges == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        ({"sourceId": 1, "destId": 4, "cost": 0.3}, "edges[4].cost: 3/10 differs from 1/4"),
        ({"sourceId": 3, "destId": 2, "cost": 0}, "lead from the backward node 3"),
    ],
)
def test_faults_are_one_line(tmp_path: Path, edge: dict[str, Any], said: str) -> None:
    top = document()
    if edge["sourceId"] == 3:
        top["edges"].pop()
        top["edges"].pop()
    top["edges"].append(edge)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(top))
    assert is_throughput(path)
    with pytest.raises(InputError) as error:
        read_throughput(path)
    said = said.replace("edges[4]", f"edges[{len(top['edges']) - 1}]")
    assert f"{path}: " in str(error.value)
    assert said in str(error.value)


@pytest.mark.skipif(not DATA.is_dir(), reason="the published files are not here")
class TestPublishedFiles:
    def test_downsets_are_as_many_as_their_authors_count(self) -> None:
        pipeline = read_throughput(DATA / "layer-gnmt_inference.json")
        assert len(downsets_of(items_of(pipeline))) == 17_914

    def test_layers_are_split_optimally(self) -> None:
        found = plan_pipeline(read_throughput(DATA / "layer-bert24_inference.json"))
        assert found.status is Status.OPTIMAL
        assert found.bottleneck == Fraction("17.78990625")

    def test_transfers_of_layers_are_a_thousand_times_faster_than_those_of_operators(self) -> None:
        def rate(name: str) -> float:
            edges = json.loads((DATA / name).read_text())["edges"]
            rates = [edge["size"] / edge["cost"] for edge in edges if edge["cost"]]
            return sorted(rates)[len(rates) // 2]

        layers, operators = "layer-bert24_inference.json", "operator-bert_l-3_inference.json"
        assert rate(layers) == pytest.approx(1000 * rate(operators))
