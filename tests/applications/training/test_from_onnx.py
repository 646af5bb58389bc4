"""Training graphs from ONNX models, with an open and with a fixed number of samples."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optpart.applications.training.cluster_file import specs_of
from optpart.applications.training.from_model import from_onnx
from optpart.applications.training.graph import Layout, Line, TrainingGraph
from optpart.applications.training.models import network
from optpart.base.errors import InputError

onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")

from onnx import TensorProto, helper  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
V100 = specs_of("v100-16gb")
BANDWIDTH = 900 * Fraction(4, 5)


def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], name=output, **attributes)


def write(folder: Path, nodes: list[Any], weights: dict[str, tuple[int, ...]], batch: Any) -> Path:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", FLOAT, [batch, 40])],
        [],
        [TensorProto(name=name, dims=dims, data_type=FLOAT) for name, dims in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    return folder / "net.onnx"


#: Two layers; the second reads what the first returned, and itself once more.
PERCEPTRON = [
    node("Gemm", "x w1 b1", "h"),
    node("Relu", "h", "r"),
    node("MatMul", "r w2", "y"),
    node("Add", "y y", "z"),
]
WEIGHTS = {"w1": (40, 30), "b1": (30,), "w2": (30, 20)}


def line(graph: TrainingGraph, name: str) -> Line:
    return graph.operations[graph.index[name]].times[0]


@pytest.mark.parametrize("batch", ["n", 1])
def test_forward_backward_and_updates(batch: Any, tmp_path: Path) -> None:
    path = write(tmp_path, PERCEPTRON, WEIGHTS, batch)
    graph = from_onnx(path, V100, samples=batch)
    assert [o.name for o in graph.operations] == [
        "h", "r", "y", "z",
        "z/backward", "y/backward", "r/backward", "h/backward",
        "h/apply", "y/apply",
    ]  # fmt: skip
    assert {p.name: p.size for p in graph.parameters} == {
        "h/weights": 4 * (40 * 30 + 30),
        "y/weights": 4 * 30 * 20,
    }
    assert graph.operations[0].outputs[0].size == Line(beta=Fraction(120))
    assert line(graph, "h").alpha == 5000 + 4 * 1230 / BANDWIDTH
    assert line(graph, "h").beta == 4 * (40 + 30) / BANDWIDTH
    # Weights, and a gradient of inputs: twice. No gradient of inputs, or no weights: once.
    assert line(graph, "y/backward").beta == 2 * line(graph, "y").beta
    assert line(graph, "h/backward").beta == line(graph, "h").beta
    assert line(graph, "r/backward") == line(graph, "r")


def test_a_sum_needs_no_activations_for_its_gradient(tmp_path: Path) -> None:
    graph = from_onnx(write(tmp_path, PERCEPTRON, WEIGHTS, "n"), V100, samples="n")
    names = [o.name for o in graph.operations]
    reads = {(names[e.producer], names[e.consumer]) for e in graph.edges}
    assert ("y", "z/backward") not in reads
    assert ("h", "r/backward") in reads
    assert ("r", "y/backward") in reads
    assert ("z", "z/backward") in reads  # where the loss is computed


def test_a_product_of_activations_has_two_gradients(tmp_path: Path) -> None:
    nodes = [
        node("Gemm", "x w1 b1", "h"),
        node("Transpose", "h", "t", perm=[1, 0]),
        node("MatMul", "h t", "s"),
    ]
    path = write(tmp_path, nodes, {"w1": (40, 30), "b1": (30,)}, 4)
    graph = from_onnx(path, V100, samples=4)
    assert line(graph, "s/backward").beta == 2 * line(graph, "s").beta
    assert line(graph, "t/backward").beta == line(graph, "t").beta


def test_an_output_that_does_not_grow_needs_all_samples(tmp_path: Path) -> None:
    nodes = [*PERCEPTRON, node("ReduceMean", "z", "mean", axes=[0], keepdims=0)]
    graph = from_onnx(write(tmp_path, nodes, WEIGHTS, "n"), V100, samples="n")
    mean = graph.operations[graph.index["mean"]]
    assert not mean.splittable
    assert [o.layout for o in mean.outputs] == [Layout.WHOLE]
    assert not graph.operations[graph.index["mean/backward"]].splittable


def test_a_batch_of_eight_has_the_lines_of_one(tmp_path: Path) -> None:
    one = from_onnx(write(tmp_path, PERCEPTRON, WEIGHTS, "n"), V100, samples="n")
    eight = from_onnx(write(tmp_path, PERCEPTRON, WEIGHTS, 8), V100, samples=8)
    assert one.operations == eight.operations
    assert "Work and tensors are proportional to samples, 8 of which the file is for." in (
        eight.assumed
    )
    assert not any("proportional" in remark for remark in one.assumed)


def test_remarks_are_whole_sentences(tmp_path: Path) -> None:
    graph = from_onnx(write(tmp_path, PERCEPTRON, WEIGHTS, "n"), V100, samples="n")
    assert "The inputs lie ready on every device: 'x'." in graph.assumed
    assert all(remark[0].isupper() and remark.endswith(".") for remark in graph.assumed)


def test_what_grows_faster_than_samples_is_refused(tmp_path: Path) -> None:
    nodes = [node("Transpose", "x", "t", perm=[1, 0]), node("MatMul", "x t", "s")]
    path = write(tmp_path, nodes, {}, "n")
    with pytest.raises(InputError, match="vertex 's': its work grow from 80 to 320 when samples"):
        from_onnx(path, V100, samples="n")


def test_samples_are_positive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="samples: 0; give a whole number from 1"):
        from_onnx(write(tmp_path, PERCEPTRON, WEIGHTS, 1), V100, samples=0)


def test_constants_that_are_no_weights_are_said(tmp_path: Path) -> None:
    nodes = [
        node("Gemm", "x w1 b1", "h"),
        node("Mul", "h scale", "m"),
        node("Reshape", "m shape", "y"),
    ]
    path = write(tmp_path, nodes, {"w1": (40, 30), "b1": (30,), "scale": ()}, 2)
    model = onnx.load(path)
    model.graph.initializer.append(helper.make_tensor("shape", INT64, [3], [2, 5, 6]))
    onnx.save(model, path)
    graph = from_onnx(path, V100, samples=2)
    assert [p.name for p in graph.parameters] == ["h/weights"]
    assert "Not trained, and without memory: constants of 28 bytes, held by 2 operations." in (
        graph.assumed
    )


def test_vgg19_is_the_same_network_as_layer_by_layer() -> None:
    read = from_onnx(LIGHT / "light_vgg19.onnx", V100, samples=1)
    built = network("vgg19").training_graph(V100)
    assert sum(read.resident) == sum(built.resident) == 4 * 143_667_240

    def betas(graph: TrainingGraph) -> list[Fraction]:
        convolutions = (o for o in graph.operations if o.role == "forward" and len(o.outputs) == 1)
        slow = sorted((o.times[0].beta for o in convolutions), reverse=True)
        return slow[:15]

    assert betas(read) == betas(built)


@pytest.mark.parametrize("batch", ["n", 4])
def test_of_a_table_only_the_rows_are_read(batch: Any, tmp_path: Path) -> None:
    graph = helper.make_graph(
        [node("Gather", "table ids", "rows")],
        "net",
        [helper.make_tensor_value_info("ids", INT64, [batch, 5])],
        [],
        [TensorProto(name="table", dims=(100, 8), data_type=FLOAT)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    found = from_onnx(tmp_path / "net.onnx", V100, samples=batch)
    assert [p.size for p in found.parameters] == [4 * 100 * 8]
    assert line(found, "rows").alpha == 5000
    # Five indices of eight bytes, and five rows of eight numbers read and written.
    assert line(found, "rows").beta == (5 * 8 + 2 * 5 * 32) / (900 * Fraction(7, 10))
