import json
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.base.errors import InputError
from optpart.interop.formats import native, pipedream
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload
from optpart.testing.mutate import refusals

DATA = Path(__file__).resolve().parents[3] / "../shared/data/pipedream"


def node(name: str, operator: str, forward: str, backward: str, size: str, weights: str) -> str:
    return (
        f"{name} -- {operator} -- forward_compute_time={forward}, backward_compute_time={backward},"
        f" activation_size={size}, parameter_size={weights}\n"
    )


SMALL = (
    node("node1", "Input", "600.5", "0.0", "50.0", "0.0")
    + node("node2", "Conv2d(3, 64 -- x)", "2.211", "4.5", "800.0", "70.0")
    + node("node3", "LSTM(2, 1)", "0.5", "0.25", "[6.0; 2.0; 2.0]", "30.000")
    + node("node4", "Add", "0.000", "0.000", "7", "0")
    + "\tnode1 -- node2\n\tnode2 -- node3\n\tnode2 -- node4\n\tnode3 -- node4\n"
)


def read(folder: Path, text: str, **options: bool) -> Workload:
    path = folder / "graph.txt"
    path.write_text(text)
    return pipedream.read(path, **options)


def test_times_are_nanoseconds_and_the_input_is_dropped(tmp_path: Path) -> None:
    workload = read(tmp_path, SMALL)
    assert workload.graph.names == ("node2", "node3", "node4")
    assert workload.measured == {"gpu": (2_211_000, 500_000, 0)}
    assert workload.graph.memory.fractions() == [70, 30, 0]
    assert workload.assumed == ("1 Input node dropped, with 600.5 ms of loading data.",)
    assert workload.work is None


def test_training_adds_the_backward_pass(tmp_path: Path) -> None:
    assert read(tmp_path, SMALL, training=True).measured == {"gpu": (6_711_000, 750_000, 0)}


def test_activations_are_one_tensor_of_their_total_size(tmp_path: Path) -> None:
    graph = read(tmp_path, SMALL).graph
    assert graph.tensor_size.fractions() == [800, 10, 7]
    found = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    assert graph.edge_tensor.tolist() == [0, 0, 1]


def test_an_instance_of_it_survives_native_json(tmp_path: Path) -> None:
    workload = read(tmp_path, SMALL)
    rows = [[time, time] for time in workload.measured["gpu"]]
    instance = Instance(workload.graph, Cluster.uniform(2, bandwidth=5), durations=rows)
    assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256


def test_its_first_line_tells_it_from_other_texts() -> None:
    assert pipedream.sniff("\n" + SMALL)
    assert not pipedream.sniff("10 3\n0 5\n")
    assert not pipedream.sniff("")


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("\tnode1 -- node2", "\tnode1", "line 5: no edge; write a tab and node1 -- node2"),
        ("\tnode2 -- node3", "\tnode2 -- node9", "line 6: no vertex 'node9'"),
        ("\tnode2 -- node3", "\tnode2 -- node1", "line 6: an edge into the input 'node1'"),
        ("\tnode2 -- node3", "\tnode4 -- node3", "cycle node3 → node4 → node3"),
        ("node4 -- Add --", "node4 Add", "line 4: neither a node nor an edge"),
        ("node4 -- Add", "node3 -- Add", "line 4.name: 'node3' is already"),
        ("time=0.5,", "time=-0.5,", "line 3, forward_compute_time: -1/2 is negative"),
        ("time=0.5,", "time=fast,", "line 3, forward_compute_time: 'fast' is not a number"),
        ("[6.0; 2.0; 2.0]", "[6.0; ]", "line 3, activation_size: ' ' is not a number"),
        ("[6.0; 2.0; 2.0]", "[6.0, 2.0]", "line 3: '2.0]' is no key=number"),
        ("parameter_size=70.0", "weights=70.0", "line 2: unknown 'weights'"),
        ("parameter_size=70.0", "parameter_size=70.0, colour=1", "line 2: unknown 'colour'"),
        (", parameter_size=70.0", "", "line 2: no parameter_size"),
        ("=70.0\n", "=70.0 -- stage_id=1\n", "line 2: the node has a stage_id"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_line(
    tmp_path: Path, old: str, new: str, part: str
) -> None:
    assert old in SMALL
    with one_line_fault(tmp_path / "graph.txt", part):
        read(tmp_path, SMALL.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "\n \n", SMALL.split("node2")[0]])
def test_a_file_without_nodes_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="holds no nodes but inputs"):
        read(tmp_path, text)


def test_damaged_files_are_read_or_refused_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"

    def damaged(content: bytes, seed: int) -> None:
        path.write_bytes(content)
        pipedream.read(path, training=seed % 2 == 0)

    faults = refusals(SMALL.encode(), range(300), damaged)
    assert len(faults) > 100
    assert not any("\n" in fault for fault in faults)


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
def test_published_profiles_are_read() -> None:
    read = {path.stem: pipedream.read(path) for path in sorted(DATA.glob("*.txt"))}
    found = {name: (len(w.graph), len(w.graph.edge_source)) for name, w in read.items()}
    assert found["vgg16"] == (40, 40)
    assert found["gnmt"] == (45, 54)
    assert found["nasnetalarge"] == (1250, 1467)
    assert len(read) == 11
    # 138,357,544 parameters of four bytes (Simonyan and Zisserman 2015, network D)
    assert read["vgg16"].graph.memory.sum() == 4 * 138_357_544
