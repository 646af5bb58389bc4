"""The models that the onnx wheel brings for its tests, with drawn weights.

In the wheel, every weight is a constant that one node makes. Here it is an initializer with seeded
values, and what else is constant is folded, so that the nodes left are the vertices of the
workload, and each is called as its vertex.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bench.reality.runtime import options
from optpart.interop.formats.onnx import read_nodes

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = tuple(path.stem.removeprefix("light_") for path in sorted(FOLDER.glob("*.onnx")))

Floats = NDArray[np.float32]


def write(name: str, path: Path) -> None:
    """Write a model with its weights in a file beside it."""
    nodes = read_nodes(FOLDER / f"light_{name}.onnx")
    model, vertices = nodes.model, nodes.vertices
    graph = model.graph
    constant = [n for n, vertex in zip(graph.node, vertices, strict=True) if vertex is None]
    kept = []
    for node, vertex in zip(graph.node, vertices, strict=True):
        if vertex is not None:
            node.name = vertex
            kept.append(node)
    known: dict[str, TensorProto] = {each.name: each for each in graph.initializer}
    known |= nodes.sizes
    rest = []
    for node in constant:
        if node.op_type == "ConstantOfShape":
            shape = numpy_helper.to_array(known[node.input[0]])
            known[node.output[0]] = numpy_helper.from_array(
                weights(tuple(shape.tolist()), f"{name}/{node.output[0]}"), node.output[0]
            )
        elif node.output[0] not in known:
            rest.append(node)
    read = dict.fromkeys(value for node in kept for value in node.input if value)
    made = {value for node in rest for value in node.output}
    known |= _folded(model, rest, known, [value for value in read if value in made])
    used = [known[value] for value in read if value in known]
    inputs = [each for each in graph.input if each.name in nodes.inputs]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(kept)
    graph.initializer.extend(used)
    graph.input.extend(inputs)
    onnx.save_model(model, str(path), save_as_external_data=True, location=f"{path.name}.data")


def write_row(path: Path, size: int, count: int) -> None:
    """Write a row of operations, each of which reads and writes so many bytes."""
    shape = [size // 4]
    values = [f"x{i}" for i in range(count + 1)]
    nodes = [helper.make_node("Relu", [one], [two], one) for one, two in pairwise(values)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name in (values[0], values[-1])
    ]
    graph = helper.make_graph(nodes, "row", ends[:1], ends[1:])
    opset = helper.make_opsetid("", 17)
    onnx.save_model(helper.make_model(graph, opset_imports=[opset], ir_version=10), str(path))


def weights(shape: tuple[int, ...], name: str) -> Floats:
    """Draw weights that neither vanish nor overflow in depth, nor are negative variances."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if len(shape) < 2:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    fan_in = int(np.prod(shape[1:]))
    drawn: Floats = rng.standard_normal(shape, dtype=np.float32) * np.float32((2 / fan_in) ** 0.5)
    return drawn


def inputs(session: Any) -> dict[str, Floats]:
    """Draw the inputs of a session."""
    rng = np.random.default_rng(0)
    return {each.name: rng.standard_normal(each.shape, np.float32) for each in session.get_inputs()}


def _folded(
    model: ModelProto, nodes: list[Any], known: Mapping[str, TensorProto], wanted: list[str]
) -> dict[str, TensorProto]:
    """Compute constants of constants."""
    if not wanted:
        return {}
    made = {value for node in nodes for value in node.output}
    given = {v for node in nodes for v in node.input if v and v not in made}
    graph = helper.make_graph(
        nodes,
        "constants",
        [],
        [helper.make_empty_tensor_value_info(value) for value in wanted],
        [known[value] for value in given],
    )
    part = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    part = onnx.shape_inference.infer_shapes(part)
    session = onnxruntime.InferenceSession(
        part.SerializeToString(), options(threads=1), providers=["CPUExecutionProvider"]
    )
    values = session.run(wanted, {})
    return {
        value: numpy_helper.from_array(array, value)
        for value, array in zip(wanted, values, strict=True)
    }
