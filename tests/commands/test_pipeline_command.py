"""``optpart pipeline``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Run

from optpart import Cluster, GraphBuilder, Instance, Model, plan
from optpart.interop.formats import native

THROUGHPUT = {
    "maxFPGAs": 2, "maxCPUs": 0, "maxSizePerFPGA": 9,
    "nodes": [{"id": i, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": i, "size": 4}
              for i in (1, 2, 3)],
    "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}, {"sourceId": 2, "destId": 3, "cost": 0.5}],
}  # fmt: skip


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Four vertices of 4, 3, 2 and 1 operations in a row, on two devices."""
    graph = GraphBuilder()
    for name, ops in zip("abcd", (4, 3, 2, 1), strict=True):
        graph.vertex(name, ops, memory=2)
    for source, target in ("ab", "bc", "cd"):
        graph.edge(source, target, None)
    path = tmp_path / "chain.json"
    native.write(Instance(graph.build(), Cluster.uniform(2, bandwidth=4), name="chain"), path)
    return path


def test_stages_and_their_loads(run: Run, chain: Path) -> None:
    found = run("pipeline", chain)
    assert found.code == 0
    first, _, *rows = found.out.splitlines()
    assert first.startswith("chain: OPTIMAL, bottleneck 6, lower bound 6, 2 stages, ")
    assert [row.split() for row in rows] == [
        ["1", "d0", "4", "0", "1", "a"],
        ["2", "d1", "6", "0", "3", "b", "c", "d"],
    ]


def test_many_vertices_of_a_stage_are_shown_by_the_ends(run: Run, tmp_path: Path) -> None:
    graph = GraphBuilder()
    for v in range(12):
        graph.vertex(f"vertex{v}", 1)
    path = tmp_path / "many.json"
    native.write(Instance(graph.build(), Cluster.uniform(1), name="many"), path)
    assert run("pipeline", path).out.splitlines()[-1].split()[-3:] == ["vertex0", "…", "vertex11"]


def test_replicas_share_a_stage_and_may_have_to_synchronise(run: Run, chain: Path) -> None:
    assert "bottleneck 5," in run("pipeline", chain, "--replicas", 2).out
    # Two replicas send 8 / 2 twice, at 4 per time, or at 16.
    alone = run("pipeline", chain, "--replicas", 2, "--sync-rate", "links").out
    assert "bottleneck 6," in alone
    assert "bottleneck 5.5," in run("pipeline", chain, "--replicas", 2, "--sync-rate", 16).out


def test_a_plan_is_written_and_checked(run: Run, chain: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert run("pipeline", chain, "-o", path).code == 0
    assert run("pipeline", chain, "--check", path).code == 0
    document = json.loads(path.read_text())
    document["bottleneck"] = "5"
    path.write_text(json.dumps(document))
    wrong = run("pipeline", chain, "--check", path)
    assert (wrong.code, wrong.out) == (1, "bottleneck is 6, not 5\n")
    assert run("pipeline", chain, "--check", path, "--sync-rate", "links").code == 1


def test_json_is_the_plan(run: Run, chain: Path) -> None:
    document = json.loads(run("pipeline", chain, "--device-order", "d1,d0", "--json").out)
    assert (document["format"], document["order"]) == ("optpart-pipeline/1", ["d1", "d0"])
    assert [stage["devices"] for stage in document["stages"]] == [["d1"], ["d0"]]


def test_a_throughput_file_is_read_as_its_authors_mean_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text(json.dumps(THROUGHPUT))
    assert "net: OPTIMAL, bottleneck 3.5, lower bound 3.5, 2 stages" in run("pipeline", path).out
    path.write_text(json.dumps(THROUGHPUT | {"maxSizePerFPGA": 4}))
    none = run("pipeline", path)
    assert none.code == 3
    assert none.out.startswith("net: INFEASIBLE: no split into stages satisfies ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--device-order", "d0,d7"], "--device-order: no device 'd7'; choose one of d0, d1"),
        (["--device-order", "d0,d0"], "--device-order: names 'd0' twice"),
        (["--sync-rate", "0"], "--sync-rate: 0 is not above 0; give a size per time"),
    ],
)
def test_faults_are_one_line(run: Run, chain: Path, options: list[str], said: str) -> None:
    found = run("pipeline", chain, *options)
    assert found.code == 2
    assert said in found.err


def test_a_model_with_transfers_is_refused(run: Run, tmp_path: Path) -> None:
    graph = GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 1).edge("a", "b").build()
    path = tmp_path / "link.json"
    native.write(Instance(graph, Cluster.uniform(2, bandwidth=1), Model("link")), path)
    found = run("pipeline", path)
    assert found.code == 2
    assert "use delay, or solve with --objective bottleneck" in found.err


def test_the_same_from_python(chain: Path) -> None:
    found = plan(chain, replicas=2, device_order=["d1", "d0"])
    assert (found.bottleneck, found.bound) == (5, 5)
