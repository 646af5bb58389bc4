"""Sizes in a GraphDef, written field by field so that field numbers are checked."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import native
from optpart.interop.formats.tensorflow import read as read_workload
from optpart.interop.formats.tensorflow import read_graph
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload
from optpart.testing.mutate import refusals

NETWORKS = Path(__file__).resolve().parents[3] / "../shared/data/tensorflow_graphs"

FLOAT, INT64, STRING, BOOL, HALF, FLOAT_REF = 1, 9, 7, 10, 19, 101


def number(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def field(tag: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return number(tag << 3 | 2) + number(len(raw)) + raw


def shape(*dimensions: int) -> bytes:
    return b"".join(
        field(2, number(1 << 3) + number(size % 2**64)) if size else field(2, b"")
        for size in dimensions
    )


def kind(value: int) -> bytes:
    return number(6 << 3) + number(value)


def node(name: str, op: str, inputs: Sequence[str] = (), **attributes: bytes) -> bytes:
    content = field(1, name) + field(2, op) + b"".join(field(3, text) for text in inputs)
    for key, value in attributes.items():
        content += field(5, field(1, key) + field(2, value))
    return field(1, content)


def tensor(*dimensions: int) -> bytes:
    return field(8, number(1 << 3) + number(FLOAT) + field(2, shape(*dimensions)))


def shapes(*each: bytes) -> bytes:
    return field(1, b"".join(field(7, one) for one in each))


SMALL = (
    node("weights", "VariableV2", shape=field(7, shape(10, 3)), dtype=kind(FLOAT)),
    node("constant", "Const", value=tensor(2, 2), dtype=kind(HALF)),
    node("batch", "Placeholder", shape=field(7, shape(8, 10)), dtype=kind(INT64)),
    node(
        "product", "MatMul", ["batch", "weights"],
        T=kind(FLOAT_REF), _output_shapes=shapes(shape(8, 3)),
    ),
    node("less", "Less", ["product"], T=kind(FLOAT), _output_shapes=shapes(shape(8, 3))),
    node("odd", "Unheard", ["less"], T=kind(FLOAT), _output_shapes=shapes(shape(8, 3))),
    node("sink", "NoOp", ["odd", "constant", "^batch", "product"]),
)  # fmt: skip


def read(folder: Path, *nodes: bytes) -> Workload:
    path = folder / "graph.pb"
    path.write_bytes(b"".join(nodes))
    return read_workload(path)


def sizes(workload: Workload) -> dict[str, list[int]]:
    graph = workload.graph
    found: dict[str, list[int]] = {}
    for v, k, size in zip(
        graph.tensor_vertex, graph.tensor_output, graph.tensor_size.fractions(), strict=True
    ):
        if k >= 0:
            found.setdefault(graph.names[v], []).append(int(size))
    return found


def test_sizes_are_bytes_where_the_file_tells_them(tmp_path: Path) -> None:
    workload = read(tmp_path, *SMALL)
    assert sizes(workload) == {
        "weights": [120],
        "constant": [8],
        "batch": [640],
        "product": [96],
        "less": [24],  # booleans
        "odd": [0],  # of an operation whose data types are unknown
    }
    assert workload.assumed[:1] == (
        "The sizes of 5 of 6 consumed outputs are known; the others count as 0.",
    )


def test_variables_and_constants_hold_memory(tmp_path: Path) -> None:
    graph = read(tmp_path, *SMALL).graph
    held = dict(zip(graph.names, graph.memory.fractions(), strict=True))
    assert {name: int(size) for name, size in held.items() if size} == {
        "weights": 120,
        "constant": 8,
    }
    handle = node("v", "VarHandleOp", shape=field(7, shape(5)), dtype=kind(FLOAT))
    assert read(tmp_path, handle).graph.memory.fractions() == [20]


@pytest.mark.parametrize(
    ("dimensions", "type_", "size"),
    [
        ((8, -1), FLOAT, None),
        ((), FLOAT, None),  # a placeholder without dimensions takes any shape
        ((0, 2**40, 2**40), FLOAT, 0),
        ((3,), STRING, None),
        ((3,), BOOL, 3),
        ((3,), 77, None),
    ],
)
def test_what_is_open_is_unknown(
    tmp_path: Path, dimensions: tuple[int, ...], type_: int, size: int | None
) -> None:
    given = field(7, shape(*dimensions))
    placeholder = node("x", "Placeholder", shape=given, dtype=kind(type_))
    workload = read(tmp_path, placeholder, node("y", "NoOp", ["x"]))
    assert sizes(workload) == {"x": [size or 0]}
    assert f"of {int(size is not None)} of 1 consumed" in workload.assumed[0]


def test_calls_of_the_files_functions_are_named(tmp_path: Path) -> None:
    library = field(2, field(1, field(1, field(1, "body"))))
    nodes = (
        node("direct", "body"),
        node("partitioned", "PartitionedCall", f=field(10, field(1, "body"))),
        node("cases", "Case", branches=field(1, field(9, field(1, "body")))),
        node("none", "NoOp", ["cases"]),
    )
    said = (
        "A call of a function of the file is one vertex, without the operations inside: "
        "'direct', 'partitioned', 'cases'."
    )
    assert read(tmp_path, *nodes, library).assumed[2:] == (said,)
    assert said not in read(tmp_path, *nodes).assumed


def test_a_tensor_beyond_all_memory_is_refused(tmp_path: Path) -> None:
    big = node("x", "Placeholder", shape=field(7, shape(2**40, 2**40)), dtype=kind(FLOAT))
    with pytest.raises(InputError, match=r"graph.pb: node 'x': has a tensor of more than 2\^62"):
        read(tmp_path, big)


def test_text_names_data_types(tmp_path: Path) -> None:
    path = tmp_path / "graph.pbtxt"
    path.write_text(
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } }'
        ' attr { key: "shape" value { shape { dim { size: 4 } } } } }'
        'node { name: "y" op: "NoOp" input: "x" }'
    )
    assert sizes(read_workload(path)) == {"x": [32]}


def test_the_graph_alone_has_no_costs(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(b"".join(SMALL))
    graph, counts = read_graph(path)
    assert graph.tensor_size.sum() == graph.memory.sum() == 0
    assert counts.vertices == 7


def test_an_instance_of_it_survives_native_json(tmp_path: Path) -> None:
    instance = Instance(read(tmp_path, *SMALL).graph, Cluster.uniform(2, bandwidth=5))
    assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256


def test_damaged_files_are_read_or_refused_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"

    def damaged(content: bytes, seed: int) -> None:
        path.write_bytes(content)
        read_workload(path, break_cycles=seed % 2 == 0)

    faults = refusals(b"".join(SMALL), range(300), damaged)
    assert len(faults) > 100
    assert not any("\n" in fault for fault in faults)


@pytest.mark.skipif(not NETWORKS.exists(), reason=f"{NETWORKS} is not here")
@pytest.mark.parametrize(
    ("name", "told", "weights"),
    [
        ("convolutional_network", "120 of 296", 39_303_308),
        ("recurrent_network", "256 of 2829", 987_316),
        ("dynamic_rnn", "513 of 5177", 71_216),
    ],
)
def test_published_networks_tell_their_constants_and_variables(
    name: str, told: str, weights: int
) -> None:
    workload = read_workload(NETWORKS / f"{name}.pb", break_cycles=True)
    assert f"The sizes of {told} consumed outputs" in workload.assumed[0]
    assert int(workload.graph.memory.sum()) == weights
