"""A model that is cut by a plan computes what the whole one does, bit for bit."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from optpart.costs import registry
from optpart.errors import InputError
from optpart.export import onnx_parts
from optpart.export.plan import Plan, plan_of
from optpart.formats import cluster_toml
from optpart.formats.onnx import read, read_nodes
from optpart.kernels.compiled import whole_memory
from optpart.methods.solve import ask
from optpart.problem.instance import Instance

onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")
ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
MODELS = sorted(LIGHT.glob("*.onnx"))

CLUSTER = """
default_link = "ethernet-1g"
[[device]]
of = "rtx-3090"
name = "gpu"
memory = "{memory} B"
[[device]]
of = "jetson-orin-nano"
name = "board"
memory = "{memory} B"
[[device]]
of = "epyc-7763"
name = "cpu"
memory = "{memory} B"
"""


def unlike(folder: Path, memory: int) -> Path:
    path = folder / "cluster.toml"
    path.write_text(CLUSTER.format(memory=memory))
    return path


def with_random_weights(path: Path, rng: np.random.Generator) -> "onnx.ModelProto":
    """Give a light model, whose weights are all the same, weights that tell operations apart.

    Large ones become products of a column and a row, which are computed when the model runs. What
    a softmax reads is an output too, since the softmax itself may say little more than 0 and 1.
    """
    model = onnx.load(path)
    graph = model.graph
    shapes = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]

    def weight(name, dims, scale):
        # Vectors may be variances.
        values = scale * rng.standard_normal(dims) if len(dims) > 1 else rng.random(dims) + 0.5
        values = values.astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(values, name))
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))

    for node in reversed(graph.node):
        if node.op_type == "ConstantOfShape":
            name, dims = node.output[0], shapes[node.input[0]].tolist()
            scale = (2 / max(1, np.prod(dims[1:]))) ** 0.5
            if np.prod(dims) < 100_000:
                weight(name, dims, scale)
            else:
                weight(f"{name}.column", [dims[0], *[1] * (len(dims) - 1)], scale)
                weight(f"{name}.row", [1, *dims[1:]], 1.0)
                product = helper.make_node("Mul", [f"{name}.column", f"{name}.row"], [name])
                nodes.insert(0, product)
    for node in nodes:
        if node.op_type == "Softmax":
            dims = [dim.dim_value for dim in graph.output[0].type.tensor_type.shape.dim]
            logits = helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, dims)
            graph.output.append(logits)
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def plain():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return options


def inputs_of(path: Path, rng: np.random.Generator) -> dict[str, np.ndarray]:
    graph = onnx.load(path, load_external_data=False).graph
    given = {each.name for each in graph.initializer}
    return {
        each.name: rng.random(
            [dim.dim_value for dim in each.type.tensor_type.shape.dim], np.float32
        )
        for each in graph.input
        if each.name not in given
    }


def whole(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = ort.InferenceSession(str(path), plain(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def heuristic_plan(path: Path, folder: Path) -> Plan:
    """HEFT on three unlike devices, each with memory for about half of the model."""
    workload = read(path)

    def instance_of(memory: int) -> Instance:
        named = cluster_toml.read_named(unlike(folder, memory))
        options = registry.Options(memory="estimate")
        return registry.apply("roofline", workload, named, options).instance

    need, _ = whole_memory(instance_of(10**12), relax=False)
    instance = instance_of(max(11 * int(need.max()) // 10, int(need.sum()) // 2))
    result = ask(instance, "heft+pct").answer(None)
    assert result.schedule is not None, result.reason
    return plan_of(result)


def random_plan(path: Path, devices: int, rng: np.random.Generator) -> Plan:
    """Any devices, in any topological order."""
    graph = read(path).graph
    rank = rng.random(len(graph))
    waiting = np.zeros(len(graph), int)
    follow = {v: [] for v in range(len(graph))}
    for u, v in {*zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)}:
        follow[u].append(v)
        waiting[v] += 1
    ready, order = [v for v in range(len(graph)) if not waiting[v]], []
    while ready:
        u = min(ready, key=lambda v: rank[v])
        ready.remove(u)
        order.append(u)
        for v in follow[u]:
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(v)
    names = graph.names
    return Plan(
        "random",
        "random",
        {name: f"d{rng.integers(devices)}" for name in names},
        {names[v]: position for position, v in enumerate(order)},
    )


def agree(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> bool:
    assert found.keys() == expected.keys()
    return all(found[name].tobytes() == expected[name].tobytes() for name in expected)


@pytest.mark.parametrize("light", MODELS, ids=lambda path: path.stem)
def test_the_parts_compute_what_the_whole_model_does(light: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    model = tmp_path / "model.onnx"
    onnx.save(with_random_weights(light, rng), model)
    inputs = inputs_of(model, rng)
    expected = whole(model, inputs)
    *_, informative = expected.values()
    assert np.isfinite(informative).all()
    assert len(np.unique(informative)) > 500
    for plan in (heuristic_plan(model, tmp_path), random_plan(model, 3, rng)):
        onnx_parts.write(plan, model, tmp_path / "parts")
        assert len(plan.devices) > 1
        assert agree(onnx_parts.run(tmp_path / "parts", inputs, plain()), expected)
