"""Task graphs on networks in SAGA's JSON, read and written."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats import saga
from optpart.interop.formats.detect import read_instance
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.study import library

DAGBENCH = Path(__file__).resolve().parents[3] / "../shared/data/dagbench/workflows"

TASKS = [{"name": "a", "cost": 2.0}, {"name": "b", "cost": 1.5}]
EDGE = {"source": "a", "target": "b", "size": 3.0}
NODES = [{"name": "n1", "speed": 1.0}, {"name": "n2", "speed": 4.0}]
LINK = {"source": "n1", "target": "n2", "speed": 0.5}
OWN = {"source": "n1", "target": "n1", "speed": 1e9}


def document(**changes: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "tasks": TASKS, "dependencies": [EDGE], "nodes": NODES, "edges": [LINK, OWN],
    } | changes  # fmt: skip
    return {
        "name": "two",
        "task_graph": {key: parts[key] for key in ("tasks", "dependencies")},
        "network": {key: parts[key] for key in ("nodes", "edges")},
    }


def test_times_are_costs_over_speeds_and_sizes_over_links() -> None:
    instance = saga.from_dict(document(), "file")
    assert (instance.name, instance.graph.names) == ("two", ("a", "b"))
    assert [instance.duration(0, d) for d in range(2)] == [2, Fraction(1, 2)]
    assert instance.delay(0, 0, 1) == instance.delay(0, 1, 0) == 6
    assert instance.delay(0, 0, 0) == 0
    assert op.solve(instance).makespan == Fraction(7, 8)


def test_a_row_of_its_own_gives_the_opposite_direction() -> None:
    back = {"source": "n2", "target": "n1", "speed": 3}
    instance = saga.from_dict(document(edges=[LINK, back]), "file")
    assert (instance.delay(0, 0, 1), instance.delay(0, 1, 0)) == (6, 1)


def test_without_an_edge_there_is_no_link() -> None:
    instance = saga.from_dict(document(edges=[]), "file")
    assert instance.delay(0, 0, 1) is None


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"tasks": [TASKS[0] | {"memory": 1}]}, "task_graph.tasks[0]: unknown key 'memory'"),
        ({"tasks": [TASKS[0] | {"cost": -1}]}, "task_graph.tasks[0].cost: -1 is negative"),
        ({"tasks": [TASKS[0], TASKS[0]]}, "'a' is already"),
        ({"dependencies": [EDGE | {"target": "c"}]}, "task_graph.dependencies[0].target: no"),
        ({"dependencies": [EDGE | {"target": "a"}]}, "cycle a → a"),
        ({"nodes": [NODES[0] | {"speed": 0}, NODES[1]]}, "speed"),
        ({"edges": [LINK | {"source": "x"}]}, "network.edges[0].source: no"),
        ({"edges": [LINK, LINK]}, "network.edges[1]: an edge that another row gives"),
        ({"edges": [LINK, OWN | {"speed": 5}]}, "network.edges: the edge of 'n1' to itself"),
    ],
)
def test_a_fault_is_one_line_with_its_place(
    tmp_path: Path, changes: dict[str, Any], part: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(document(**changes)))
    with pytest.raises(InputError) as error:
        read_instance(path)
    assert part in str(error.value)
    assert str(error.value).count("\n") == 0


def test_what_is_written_is_read_as_the_same_instance(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "graph.saga.json"
    here = saga.from_dict(document(), "file")
    saga.write(here, place)
    assert read_instance(place) == here
    done = run("convert", place, "-o", tmp_path / "again.saga.json")
    assert done.code == 0, done.err
    assert (tmp_path / "again.saga.json").read_text() == place.read_text()


def fork(**changes: Any) -> Instance:
    return replace(saga.from_dict(document(), "file"), **changes)


def chain(**vertex: Any) -> Instance:
    graph = GraphBuilder().vertex("a", 1, outputs=[1], **vertex).vertex("b", 1).edge("a", "b")
    return Instance(graph.build(), Cluster.of([Device("x", type="gpu"), Device("y")], 1))


@pytest.mark.parametrize(
    "instance",
    [
        fork(model=Model(communication="port")),
        fork(model=Model(memory="estimate")),
        fork(cluster=Cluster.of([Device("x"), Device("y")])),
        fork(cluster=Cluster.of([Device("x"), Device("y")], 0)),
        fork(cluster=Cluster.of([Device("x"), Device("y")], 1, latency=1)),
        fork(cluster=Cluster.of([Device("x"), Device("y")], 10**10)),
        fork(cluster=Cluster.of([Device("x", Fraction(1, 3)), Device("y")], 1)),
        chain(device_type="gpu"),
        chain(devices=["x"]),
    ],
)
def test_what_the_format_cannot_say_is_refused(instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError):
        saga.write(instance, tmp_path / "x.saga.json")
    assert not (tmp_path / "x.saga.json").exists()


def test_groups_and_run_times_are_refused() -> None:
    for name in ("heft-10", "small-10-2-ccr0.1-g-s1"):
        with pytest.raises(UnsupportedError):
            saga.dumps(library.load(name))


@pytest.mark.skipif(not DAGBENCH.exists(), reason=f"{DAGBENCH} is not here")
def test_every_graph_of_dagbench_is_read() -> None:
    sizes = {}
    for path in sorted(DAGBENCH.glob("*/*/graph.json")):
        instance = read_instance(path)
        sizes[instance.name] = instance.vertices, len(instance.graph.edge_source), instance.devices
    assert len(sizes) == 84
    assert sizes["synthetic.random_xxlarge"] == (1118, 8450, 4)
