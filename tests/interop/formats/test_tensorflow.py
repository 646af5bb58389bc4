from contextlib import suppress
from pathlib import Path

import pytest
from faults import one_line_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.costs.drawn import unit
from optpart.interop.formats.tensorflow import Counts, read_graph
from optpart.problem.graph import CONTROL, Graph

NETWORKS = Path(__file__).resolve().parents[3] / "../shared/data/tensorflow_graphs"


def field(number: int, content: bytes | str) -> bytes:
    """One length-delimited protobuf field, written by hand so that field numbers are checked."""
    raw = content.encode() if isinstance(content, str) else content
    length, size = b"", len(raw)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + raw


def node(name: str, *inputs: str, device: str = "", loc: str = "", op: str = "Op") -> bytes:
    content = field(1, name) + field(2, op) + b"".join(field(3, text) for text in inputs)
    if device:
        content += field(4, device)
    dtype = field(1, "dtype") + field(2, b"\x30\x01")  # DT_FLOAT: a field the reader skips
    content += field(5, dtype)
    if loc:
        colocation = field(1, field(2, f"loc:@{loc}"))
        content += field(5, field(1, "_class") + field(2, colocation))
    return field(1, content)


def write(folder: Path, *nodes: bytes, name: str = "graph.pb") -> Path:
    path = folder / name
    path.write_bytes(b"".join(nodes))
    return path


def edges(graph: Graph) -> set[tuple[str, str, int]]:
    return {
        (graph.names[u], graph.names[v], int(graph.tensor_output[t]))
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
    }


SMALL = (
    node("a", loc="c", device="/device:CPU:0"),
    node("b", "a", "a:2", "a"),
    node("c", "b:0", "^a", "^b"),
)


def test_data_and_control_edges_consume_their_outputs_and_doubles_are_merged(tmp_path):
    graph, counts = read_graph(write(tmp_path, *SMALL))
    assert edges(graph) == {
        ("a", "b", 0), ("a", "b", 2), ("b", "c", 0), ("a", "c", CONTROL), ("b", "c", CONTROL),
    }  # fmt: skip
    assert counts == Counts(vertices=3, inputs=6, edges=5, pairs=3, groups=1, largest_group=2)


def test_a_vertex_has_the_outputs_that_its_highest_consumed_one_needs(tmp_path):
    graph, _ = read_graph(write(tmp_path, *SMALL))
    outputs = [
        int(v) for v, k in zip(graph.tensor_vertex, graph.tensor_output, strict=True) if k >= 0
    ]
    assert [outputs.count(v) for v in range(3)] == [3, 1, 0]


def test_all_costs_are_zero(tmp_path):
    graph, _ = read_graph(write(tmp_path, *SMALL))
    assert graph.ops.sum() == graph.memory.sum() == graph.tensor_size.sum() == 0


def test_vertices_that_name_a_vertex_share_its_device_transitively(tmp_path):
    path = write(tmp_path, node("x"), node("a", loc="x"), node("b", loc="a"), node("c"))
    graph, counts = read_graph(path)
    assert graph.colocation == ((0, 1, 2),)
    assert (counts.groups, counts.largest_group) == (1, 3)


def test_a_label_that_is_not_a_vertex_colocates_those_that_name_it(tmp_path):
    path = write(tmp_path, node("a", loc="gone"), node("b", loc="gone"), node("c", loc="alone"))
    graph, counts = read_graph(path)
    assert graph.colocation == ((0, 1),)
    assert (counts.groups, counts.largest_group) == (1, 2)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("", None),
        ("/device:GPU:0", "GPU"),
        ("/gpu:0", "GPU"),
        ("/CPU:*", "CPU"),
        ("/device:CPU:*", "CPU"),
        ("/device:TPU", "TPU"),
        ("/job:worker/replica:0/task:1/device:GPU:0", "GPU"),
        ("/job:worker/task:1/cpu:0", "CPU"),
        ("/job:worker/task:1", None),
        ("/device:XLA_GPU:0", "XLA_GPU"),
    ],
)
def test_a_device_specification_gives_its_type(tmp_path, spec, kind):
    graph, _ = read_graph(write(tmp_path, node("a", device=spec)), ["d0", "d1"])
    assert graph.device_types == (kind,)
    assert not graph.allowed_devices


CLUSTER = [
    "/job:worker/replica:0/task:0/device:CPU:0",
    "/job:worker/replica:0/task:0/device:GPU:0",
    "/job:worker/replica:0/task:1/device:GPU:0",
    "other",
]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        (CLUSTER[2], CLUSTER[2:3]),
        ("other", ["other"]),
        ("/job:worker/task:0", CLUSTER[:2]),
        ("/gpu:0", CLUSTER[1:3]),
        ("/job:worker/replica:0/task:1/gpu:0", CLUSTER[2:3]),
    ],
)
def test_a_specification_that_fits_names_of_the_cluster_allows_these(tmp_path, spec, allowed):
    graph, _ = read_graph(write(tmp_path, node("a", device=spec)), CLUSTER)
    assert graph.allowed_devices == {0: tuple(allowed)}
    assert graph.device_types == (None,)


def test_text_graphs_are_read_alike_and_unknown_fields_skipped(tmp_path):
    path = tmp_path / "graph.pbtxt"
    path.write_text("""
node { name: "a" op: "Const" device: "/device:CPU:0"
       attr { key: "_class" value { list { s: "loc:@c" } } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
                                            tensor_content: "\\000\\x41" } } } }
node { name: "b" op: "Split" input: "a" input: "a:2" input: "a"
       attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } }
node { name: "c" op: "Add" input: "b" input: "^a" input: "^b" }
library { function { signature { name: "f" } } }
versions { producer: 2000 }
""")
    text, counts = read_graph(path)
    binary, expected = read_graph(write(tmp_path, *SMALL))
    assert (edges(text), counts) == (edges(binary), expected)
    assert text.colocation == binary.colocation
    assert text.device_types == binary.device_types


@pytest.mark.parametrize(
    ("nodes", "part"),
    [
        ([], "has no nodes"),
        ([b"\xff\xff\xff"], "is not a binary GraphDef, or truncated"),
        ([b"PK\x03\x04 an archive"], "is not a binary GraphDef, or truncated"),
        ([b"\x08\x01" + field(2, "a SavedModel")], "is not a binary GraphDef, or truncated"),
        ([node("a"), node("b", "a")[:-3]], "truncated"),
        ([node("a"), node("a")], "node[1]: a second node 'a'"),
        ([node("")], "node[0]: cannot have the name ''"),
        ([node("a\nb")], "node[0]: cannot have the name 'a\\nb'"),
        ([node("a", "gone")], "input of node 'a': no vertex 'gone'"),
        ([node("a", "^")], "input of node 'a': no vertex ''"),
        ([node("a"), node("b", "a:x")], "node 'b': cannot have the input 'a:x'"),
        ([node("a"), node("b", "a:-1")], "node 'b': cannot have the input 'a:-1'"),
        ([node("a"), node("b", "a:999999999")], "node 'a': 1000000000 outputs"),
        ([node("a"), node("b", "a:" + "9" * 5000)], "node 'b': cannot have the input"),
        ([node("a", "b"), node("b", "a")], "cycle a → b → a"),
        ([node("a", "n"), node("n", "a", op="NextIteration")], "node 'n': NextIteration closes"),
        ([node("a", device="right here")], "device 'right here'"),
        ([node("a", device="/job:x/device:")], "device '/job:x/device:'"),
        ([node("a", device="/")], "device '/'"),
    ],
)
def test_a_fault_is_one_line_that_names_the_file(tmp_path, nodes, part):
    path = write(tmp_path, *nodes)
    with one_line_fault(path, part):
        read_graph(path)


LOOP = (
    node("start"),
    node("enter", "start", op="Enter"),
    node("limit", op="Const"),
    node("merge", "enter", "next", op="Merge"),
    node("switch", "merge", "limit", op="Switch"),
    node("body", "switch:1", "limit"),
    node("next", "body", op="NextIteration"),
    node("exit", "switch", op="Exit"),
)


def test_a_loop_is_refused_unless_it_may_be_broken(tmp_path):
    path = write(tmp_path, *LOOP)
    with pytest.raises(InputError, match="NextIteration closes a loop"):
        read_graph(path)
    graph, counts = read_graph(path, break_cycles=True)
    assert counts == Counts(8, 9, 8, 8, 0, 0, removed=(("next", 0, "merge"),))
    assert ("switch", "body", 1) in edges(graph)
    assert ("next", "merge", 0) not in edges(graph)


def test_any_other_cycle_is_broken_as_well_and_doubled_edges_listed_once(tmp_path):
    path = write(tmp_path, node("a", "^b", "b:1", "b:1"), node("b", "a"), node("c", "b"))
    with pytest.raises(InputError, match="cycle a → b → a"):
        read_graph(path)
    graph, counts = read_graph(path, break_cycles=True)
    assert counts.removed == (("b", None, "a"), ("b", 1, "a"))
    assert (counts.inputs, counts.edges, counts.pairs) == (5, 2, 2)
    assert edges(graph) == {("a", "b", 0), ("b", "c", 0)}


def test_a_graph_without_cycles_loses_nothing(tmp_path):
    path = write(tmp_path, *SMALL)
    assert read_graph(path, break_cycles=True)[1] == read_graph(path)[1]


def test_breaking_cycles_hides_no_fault(tmp_path):
    path = write(tmp_path, node("a", "gone"), node("b", "b"))
    with pytest.raises(InputError, match="input of node 'a': no vertex 'gone'"):
        read_graph(path, break_cycles=True)


@pytest.mark.parametrize("text", ["node {", 'node { name: "a" ', "{" * 5000, "a{" * 50000, "\x00"])
def test_a_faulty_text_graph_is_an_error(tmp_path, text):
    path = tmp_path / "graph.pbtxt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"graph\.pbtxt: .*complete GraphDef"):
        read_graph(path)


def test_an_empty_or_missing_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_graph(tmp_path / "gone.pb")
    for name in ("empty.pb", "empty.pbtxt"):
        with pytest.raises(InputError, match=f"{name}: has no nodes"):
            read_graph(write(tmp_path, name=name))


@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data(), name=st.sampled_from(["graph.pb", "graph.pbtxt"]))
def test_any_mutation_is_read_or_refused(tmp_path_factory, data, name):
    text = b'node{name:"a" device:"/gpu:0"}node{name:"b" input:"a:1" input:"^a" attr{key:"_class"}}'
    raw = bytearray(b"".join(SMALL) if name == "graph.pb" else text)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    path = write(tmp_path_factory.getbasetemp(), bytes(raw[:cut]), name=f"mutated-{name}")
    with suppress(InputError):
        read_graph(path)
    with suppress(InputError):
        read_graph(path, break_cycles=True)


def test_what_is_cut_off_the_end_is_noticed_unless_the_rest_is_a_graph_itself(tmp_path):
    whole = b"".join(SMALL)
    ends = {len(b"".join(SMALL[:i])) for i in range(1, 4)}
    for cut in set(range(len(whole))) - ends:
        with pytest.raises(InputError):
            read_graph(write(tmp_path, whole[:cut]))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("convolutional_network", Counts(367, 550, 550, 550, 30, 24)),
        ("recurrent_network", Counts(2927, 5167, 5167, 5139, 456, 28)),
        ("dynamic_rnn", Counts(5341, 9271, 9231, 9211, 666, 160)),
    ],
)
def test_the_three_networks(name, expected):
    path = NETWORKS / f"{name}.pb"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    graph, counts = read_graph(path)
    assert counts == expected
    assert len(graph) == expected.vertices
    assert len(graph.edge_source) == expected.edges
    assert unit(graph).ops.sum() == expected.vertices
