import json
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.base.errors import InputError
from optpart.interop.formats import moirai
from optpart.methods import registry
from optpart.solution.result import Budget, Status

MOIRAI = Path(__file__).resolve().parents[3] / "../shared/data/moirai"

NODES = [{"id": 4, "p": [2.0, 3.0], "mem": 5.0}, {"id": 7, "p": [0.25, 6], "mem": 2}]
EDGES = [{"src": 4, "dst": 7, "comm_task": 5, "comm": [[0.0, 1.5], [4.0, 0.0]]}]
DOCUMENT = {"name": "two", "devices": 2, "capacity": [6, 8.0], "nodes": NODES, "edges": EDGES}


def write(folder: Path, document: object) -> Path:
    path = folder / "file.json"
    path.write_text(json.dumps(document))
    return path


def test_nodes_have_run_times_per_device_and_memory(tmp_path):
    instance = moirai.read(write(tmp_path, DOCUMENT))
    assert instance.name == "two"
    assert instance.graph.names == ("4", "7")
    times = [[str(instance.duration(v, d)) for d in range(2)] for v in range(2)]
    assert times == [["2", "3"], ["1/4", "6"]]
    assert instance.static_memory.fractions() == [5, 2]
    assert instance.cluster.memory == (6, 8)


def test_edges_have_transfer_times_per_sender_and_receiver(tmp_path):
    instance = moirai.read(write(tmp_path, DOCUMENT))
    assert str(instance.delay(0, 0, 1)) == "3/2"
    assert instance.delay(0, 1, 0) == 4


def test_capacity_is_kept(tmp_path):
    # Together they fit device 1 only; apart, the tensor crosses from 0 to 1, or from 1 to 0.
    instance = moirai.read(write(tmp_path, DOCUMENT))
    assert str(registry.get("cpsat")(instance, budget=Budget(10)).makespan) == "29/4"


def test_a_file_without_a_name_lends_its_own(tmp_path):
    document = {key: value for key, value in DOCUMENT.items() if key != "name"}
    assert moirai.read(write(tmp_path, document)).name == "file"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"devices": 3}, "capacity: 2 entries; give 3"),
        ({"devices": 2.5}, "devices: 2.5; give a whole number from 1 to 1000"),
        ({"devices": 10**6}, "devices: the number is 1000000"),
        ({"capacity": [6, -8]}, "capacity[1]: -8 is negative"),
        ({"colocation": []}, "unknown key 'colocation'; "),
        ({"nodes": [NODES[0] | {"memory": 1}]}, "nodes[0]: unknown key 'memory'; "),
        ({"edges": [EDGES[0] | {"size": 1}]}, "edges[0]: unknown key 'size'; "),
        ({"nodes": None}, "nodes: is null; give a list"),
        ({"nodes": [1]}, "nodes[0]: is a number; give an object"),
        ({"nodes": [{"p": [1, 2], "mem": 0}]}, "nodes[0]: no 'id'"),
        ({"nodes": [{"id": [], "p": [1, 2], "mem": 0}]}, "nodes[0].id: cannot be []"),
        ({"nodes": [NODES[0], NODES[0]]}, "nodes[1].name: '4' is already"),
        ({"nodes": [NODES[0] | {"p": [1]}]}, "nodes[0].p: 1 entries; give 2"),
        ({"nodes": [NODES[0] | {"p": [1, "x"]}]}, "nodes[0].p[1]: 'x' is not a number"),
        ({"nodes": [NODES[0] | {"mem": -1}]}, "nodes[0].mem: -1 is negative"),
        ({"edges": [EDGES[0] | {"dst": 8}]}, "edges[0].dst: no node '8'"),
        ({"edges": [EDGES[0] | {"dst": 4}]}, "cycle 4 → 4"),
        ({"edges": [EDGES[0] | {"comm": [[0, 1]]}]}, "edges[0].comm: 1 rows; give 2"),
        ({"edges": [EDGES[0] | {"comm": [[0, 1], [2]]}]}, "edges[0].comm[1]: 1 entries"),
        ({"edges": [EDGES[0] | {"comm": [[0, -1], [2, 0]]}]}, "edges[0].comm[0][1]: -1 is neg"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, change, part):
    path = write(tmp_path, DOCUMENT | change)
    with one_line_fault(path, part):
        moirai.read(path)


@pytest.mark.parametrize("key", ["devices", "capacity", "nodes", "edges"])
def test_missing_keys_are_named(tmp_path, key):
    document = {other: value for other, value in DOCUMENT.items() if other != key}
    with pytest.raises(InputError, match=f"no '{key}'"):
        moirai.read(write(tmp_path, document))


@pytest.mark.skipif(not MOIRAI.exists(), reason=f"{MOIRAI} is not here")
def test_the_published_optimum_is_reproduced():
    instance = moirai.read(MOIRAI / "example-1.json")
    result = registry.get("cpsat")(instance, budget=Budget(20))
    assert (result.status, result.makespan) == (Status.OPTIMAL, 30)


@pytest.mark.skipif(not MOIRAI.exists(), reason=f"{MOIRAI} is not here")
def test_a_published_network_is_read():
    instance = moirai.read(MOIRAI / "GoogLeNet.json")
    found = instance.vertices, len(instance.graph.edge_source), instance.devices
    assert found == (141, 167, 4)
