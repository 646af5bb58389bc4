import json
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.base.errors import InputError
from optpart.interop.formats import dnn_partitioning, native
from optpart.methods import registry
from optpart.solution.result import Budget
from optpart.testing.mutate import refusals

DATA = Path(__file__).resolve().parents[3] / "../shared/data/dnn-partitioning"


def node(identity: int, cpu: float, fpga: float, size: float = 0, **more: object) -> dict:
    return {
        "id": identity,
        "supportedOnFpga": True,
        "cpuLatency": cpu,
        "fpgaLatency": fpga,
        "isBackwardNode": False,
        "size": size,
        **more,
    }


def edge(source: int, target: int, cost: float) -> dict:
    return {"sourceId": source, "destId": target, "cost": cost, "size": 10**6}


NODES = [
    node(1, 9, 1, 60, colorClass=5, name="embed"),
    node(3, 8, 0.5, 30, colorClass=5, name="attend"),
    node(2, 4, 2, 50, colorClass=6, name="project"),
    node(9, 3, 0, name="loss", supportedOnFpga=0),
]
EDGES = [edge(1, 3, 2.5), edge(1, 2, 2.5), edge(3, 9, 1), edge(2, 9, 1)]
DOCUMENT = {
    "maxFPGAs": 2,
    "maxCPUs": 2,
    "maxSizePerFPGA": 100.0,
    "nodes": NODES,
    "edges": EDGES,
}


def write(folder: Path, document: object) -> Path:
    path = folder / "model.json"
    path.write_text(json.dumps(document))
    return path


def test_accelerators_have_memory_and_cpus_have_no_limit(tmp_path):
    cluster = dnn_partitioning.read(write(tmp_path, DOCUMENT)).cluster
    assert cluster.names == ("fpga0", "fpga1", "cpu0", "cpu1")
    assert cluster.types == ("FPGA", "FPGA", "CPU", "CPU")
    assert cluster.memory == (100, 100, None, None)


def test_nodes_have_a_run_time_on_either_kind_if_supported(tmp_path):
    instance = dnn_partitioning.read(write(tmp_path, DOCUMENT))
    assert instance.name == "model"
    assert instance.graph.names == ("embed", "attend", "project", "loss")
    assert [str(instance.duration(1, d)) for d in range(4)] == ["1/2", "1/2", "8", "8"]
    assert instance.vertex_allowed[3].tolist() == [False, False, True, True]
    assert instance.static_memory.fractions() == [90, 50, 0]  # tensors take nothing


def test_color_classes_share_a_device(tmp_path):
    instance = dnn_partitioning.read(write(tmp_path, DOCUMENT))
    assert [unit.tolist() for unit in instance.units] == [[0, 1], [2], [3]]


@pytest.mark.parametrize("color", [{}, {"colorClass": None}])
def test_nodes_without_a_class_stand_alone(tmp_path, color):
    plain = {key: value for key, value in NODES[0].items() if key != "colorClass"}
    nodes = [plain | {"id": i, "name": str(i)} | color for i in range(3)]
    instance = dnn_partitioning.read(write(tmp_path, DOCUMENT | {"nodes": nodes, "edges": []}))
    assert len(instance.units) == 3


def test_a_tensor_costs_once_for_each_end_at_an_accelerator(tmp_path):
    instance = dnn_partitioning.read(write(tmp_path, DOCUMENT))
    times = [[instance.delay(0, d, e) for e in range(4)] for d in range(4)]
    assert [list(map(str, row)) for row in times] == [
        ["0", "5", "5/2", "5/2"],
        ["5", "0", "5/2", "5/2"],
        ["5/2", "5/2", "0", "0"],
        ["5/2", "5/2", "0", "0"],
    ]


def test_edges_of_one_node_and_cost_share_a_tensor(tmp_path):
    document = DOCUMENT | {"edges": [*EDGES, edge(1, 9, 7)]}
    graph = dnn_partitioning.read(write(tmp_path, document)).graph
    assert graph.tensor_vertex.tolist() == [0, 0, 1, 2]
    assert graph.edge_tensor.tolist() == [0, 0, 2, 3, 1]


def test_ids_are_names_where_a_name_is_missing_or_shared(tmp_path):
    for name in (NODES[0]["name"], "", None, 3):
        nodes = [*NODES[:3], NODES[3] | {"name": name}]
        instance = dnn_partitioning.read(write(tmp_path, DOCUMENT | {"nodes": nodes}))
        assert instance.graph.names == ("1", "3", "2", "9")


def test_memory_drives_a_node_to_a_cpu(tmp_path):
    # embed and attend fill one accelerator (1.5); project meanwhile on a CPU, which the tensor
    # reaches at 1 + 2.5, then loss there.
    instance = dnn_partitioning.read(write(tmp_path, DOCUMENT | {"maxFPGAs": 1}))
    assert str(registry.get("cpsat")(instance, budget=Budget(10)).makespan) == "21/2"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"maxFPGAs": -1}, "maxFPGAs: the number is -1; give a whole number from 0 to 1000"),
        ({"maxFPGAs": True}, "maxFPGAs: True; give a whole number"),
        ({"maxFPGAs": 600, "maxCPUs": 600}, "maxCPUs: the number is 600"),
        ({"maxFPGAs": 0, "maxCPUs": 0}, "devices: no devices"),
        ({"maxSizePerFPGA": "big"}, "maxSizePerFPGA: 'big' is not a number"),
        ({"bandwidth": 3}, "unknown key 'bandwidth'; "),
        ({"nodes": [NODES[0] | {"memory": 1}]}, "nodes[0]: unknown key 'memory'; "),
        ({"edges": [EDGES[0] | {"latency": 1}]}, "edges[0]: unknown key 'latency'; "),
        ({"nodes": {}}, "nodes: is an object; give a list"),
        ({"nodes": [None]}, "nodes[0]: is not an object"),
        ({"nodes": [*NODES, NODES[0]]}, "nodes[4].id: a second node '1'"),
        ({"nodes": [NODES[0] | {"size": -1}]}, "nodes[0].size: -1 is negative"),
        ({"nodes": [node(1, 1, 1, colorClass=[1])], "edges": []}, "colorClass: cannot be [1]"),
        ({"edges": [edge(1, 4, 0)]}, "edges[0].destId: no node '4'"),
        ({"edges": [edge(1, 3, 0), edge(3, 1, 0)]}, "cycle"),
        ({"edges": [edge(1, 3, -2)]}, "edges[0].cost: -2 is negative"),
        ({"edges": ["1"]}, "edges[0]: is a string; give an object"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, change, part):
    path = write(tmp_path, DOCUMENT | change)
    with one_line_fault(path, part):
        dnn_partitioning.read(path)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"cpuLatency": -1}, "nodes[3].cpuLatency: -1 is negative"),
        ({"supportedOnFpga": 2}, "nodes[3].supportedOnFpga: cannot be 2; give true or false"),
        ({"supportedOnFpga": True, "fpgaLatency": "x"}, "nodes[3].fpgaLatency: 'x'"),
    ],
)
def test_a_fault_of_a_run_time_names_the_node(tmp_path, change, part):
    nodes = [*NODES[:3], NODES[3] | change]
    with pytest.raises(InputError) as error:
        dnn_partitioning.read(write(tmp_path, DOCUMENT | {"nodes": nodes}))
    assert part in str(error.value)


def test_matrices_that_outgrow_the_file_are_refused(tmp_path):
    document = DOCUMENT | {"maxFPGAs": 999, "maxCPUs": 1}
    edges = [edge(1, 3, cost) for cost in range(3)]
    with pytest.raises(InputError, match="3000000 transfer times, tensors times pairs of devices"):
        dnn_partitioning.read(write(tmp_path, document | {"edges": edges}))


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
@pytest.mark.parametrize("folder", ["latency/*", "throughput"])
def test_published_models_are_read(folder):
    paths = sorted(DATA.glob(f"{folder}/*.json"))
    assert len(paths) in (4, 8)
    for path in paths:
        instance = dnn_partitioning.read(path)
        document = json.loads(path.read_text())
        assert instance.vertices == len(document["nodes"])
        assert len(instance.graph.edge_source) == len(document["edges"])
        assert instance.devices == document["maxFPGAs"] + document["maxCPUs"]
        classes = [n["colorClass"] for n in document["nodes"] if n.get("colorClass") is not None]
        alone = len(document["nodes"]) - len(classes)
        assert len(instance.units) == alone + len(set(classes))
        assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
def test_a_published_training_pipeline_keeps_both_passes_of_a_layer_together():
    instance = dnn_partitioning.read(DATA / "throughput" / "layer-bert24_training.json")
    assert (instance.vertices, instance.devices, len(instance.units)) == (64, 7, 32)
    assert instance.cluster.memory == (17185374208,) * 6 + (None,)
    names = [[instance.graph.names[v] for v in unit] for unit in instance.units]
    assert all(backward == f"{forward}grad" for forward, backward in names)


def test_damaged_files_are_read_or_refused_on_one_line(tmp_path):
    path = tmp_path / "model.json"

    def damaged(content, _):
        path.write_bytes(content)
        dnn_partitioning.read(path)

    faults = refusals(json.dumps(DOCUMENT, indent=1).encode(), range(300), damaged)
    assert len(faults) > 100
    assert not any("\n" in fault for fault in faults)
