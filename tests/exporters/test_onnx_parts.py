"""A model that is cut by a plan computes what the whole one does, bit for bit."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.exporters import onnx_parts
from optpart.exporters.plan import Plan, plan_of
from optpart.interop.costs import registry
from optpart.interop.formats import cluster_toml
from optpart.interop.formats.onnx import read, read_nodes
from optpart.kernels.compiled import whole_memory
from optpart.methods.solve import ask
from optpart.problem.instance import Instance

onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")
ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT = TensorProto.FLOAT
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
#: They have every operator that any light model has: branches, residual sums, shuffled channels.
MODELS = ["light_densenet121", "light_inception_v1", "light_shufflenet"]

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


@pytest.mark.parametrize("light", MODELS)
def test_the_parts_compute_what_the_whole_model_does(light: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    model = tmp_path / "model.onnx"
    onnx.save(with_random_weights(LIGHT / f"{light}.onnx", rng), model)
    inputs = inputs_of(model, rng)
    expected = whole(model, inputs)
    *_, informative = expected.values()
    assert np.isfinite(informative).all()
    assert len(np.unique(informative)) > 500
    for plan in (random_plan(model, 3, rng),):
        onnx_parts.write(plan, model, tmp_path / "parts")
        assert len(plan.devices) > 1
        assert agree(onnx_parts.run(tmp_path / "parts", inputs, plain()), expected)


# Where a plan is cut


def node(op, inputs, outputs, name="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name, **attributes)


def written(folder, nodes, inputs, outputs, weights=(), opset=17, **keywords) -> Path:
    """Write a model; inputs and outputs are (name, dims), weights (name, values)."""

    def declared(values):
        return [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in values]

    tensors = [numpy_helper.from_array(np.array(v, np.float32), name) for name, v in weights]
    graph = helper.make_graph(nodes, "g", declared(inputs), declared(outputs), tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, **keywords)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def placed(text: str) -> Plan:
    """A plan such as ``a@g b@h``, in this order."""
    pairs = [word.split("@") for word in text.split()]
    return Plan("toy", "by hand", dict(pairs), {name: k for k, (name, _) in enumerate(pairs)})


def cut(folder: Path, model: Path, plan: Plan, **options) -> list[tuple[str, set[str], list[str]]]:
    """Return device, vertices and inputs of every part."""
    onnx_parts.write(plan, model, folder / "parts", **options)
    found = []
    for part in json.loads((folder / "parts/plan.json").read_text())["parts"]:
        graph = onnx.load(folder / "parts" / part["file"]).graph
        vertices = {each.name for each in graph.node if each.name in plan.device}
        found.append((part["device"], vertices, part["inputs"]))
    return found


def check(folder: Path, model: Path, seed: int = 0) -> None:
    """The parts compute what the model does."""
    inputs = inputs_of(model, np.random.default_rng(seed))
    assert agree(onnx_parts.run(folder / "parts", inputs, plain()), whole(model, inputs))


def relus(edges: str):
    """Nodes that add what they read, such as ``x>a a>b ab>c``."""
    return [
        node("Sum", " ".join(f"v{each}" if each != "x" else "x" for each in read), f"v{made}", made)
        for read, made in (edge.split(">") for edge in edges.split())
    ]


@pytest.mark.parametrize(
    ("edges", "plan", "parts"),
    [
        ("x>a a>b b>c", "a@g b@g c@g", ["g:abc"]),
        ("x>a a>b b>c", "a@g b@h c@g", ["g:a", "h:b", "g:c"]),
        # c does not wait for b, so it runs with a although the plan runs b before it.
        ("x>a a>b a>c bc>d", "a@g b@h c@g d@h", ["g:ac", "h:bd"]),
        ("x>a a>b a>c bc>d", "a@g b@h c@g d@g", ["g:ac", "h:b", "g:d"]),
        # Both ends of g would wait for both ends of h.
        ("x>a x>b a>c b>d", "a@g b@h c@h d@g", ["g:a", "h:bc", "g:d"]),
        # With d, p comes to wait for s, and so does r, which waited for p before; e waits for r.
        ("x>a a>b x>c c>d b>e", "a@p b@r c@s d@p e@s", ["s:c", "p:ad", "r:b", "s:e"]),
    ],
)
def test_a_part_is_as_long_as_no_other_one_waits_for_it(
    edges: str, plan: str, parts: list[str], tmp_path: Path
) -> None:
    nodes = relus(edges)
    outputs = [(nodes[-1].output[0], [2]), (nodes[-2].output[0], [2])]
    model = written(tmp_path, nodes, [("x", [2])], outputs)
    found = cut(tmp_path, model, placed(plan))
    assert [f"{device}:{''.join(sorted(names))}" for device, names, _ in found] == parts
    check(tmp_path, model)


def test_any_graph_can_be_cut_by_any_plan(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for seed in range(15):
        n = int(rng.integers(2, 12))
        nodes = []
        for v in range(n):
            sources = [f"v{u}" for u in range(v) if rng.random() < 0.3] or ["x"]
            nodes.append(node("Sum", " ".join(sources), f"s{v}", f"sum{v}"))
            nodes.append(node("Mul", f"s{v} w{v}", f"v{v}", f"mul{v}"))
        weights = [(f"w{v}", rng.random(3)) for v in range(n)]
        used = {name for each in nodes for name in each.input}
        outputs = [(f"v{v}", [3]) for v in range(n) if f"v{v}" not in used]
        model = written(tmp_path, nodes, [("x", [3])], outputs, weights)
        plan = random_plan(model, int(rng.integers(1, 4)), rng)
        found = cut(tmp_path, model, plan)
        of_device: dict[str, list[str]] = {}
        for device, vertices, _ in found:
            of_device.setdefault(device, []).extend(plan.in_order(vertices))
        for vertices in of_device.values():
            assert vertices == plan.in_order(vertices)
        check(tmp_path, model, seed)


# What is in a part


def test_weights_and_constant_nodes_are_where_they_are_read(tmp_path: Path) -> None:
    model = written(
        tmp_path,
        [
            node("Exp", "w", "e"),
            node("Add", "e only", "f"),
            node("Mul", "x e", "y", "left"),
            node("Mul", "y f", "z", "right"),
        ],
        [("x", [2])],
        [("z", [2])],
        [("w", [1, 2]), ("only", [3, 4])],
    )
    assert [inputs for _, _, inputs in cut(tmp_path, model, placed("left@g right@h"))] == [
        ["x"],
        ["y"],
    ]
    left, right = (onnx.load(tmp_path / f"parts/part_{i}.onnx").graph for i in range(2))
    assert [each.op_type for each in left.node] == ["Exp", "Mul"]
    assert [each.op_type for each in right.node] == ["Exp", "Add", "Mul"]
    assert {each.name for each in left.initializer} == {"w"}
    assert {each.name for each in right.initializer} == {"w", "only"}
    check(tmp_path, model)


def test_a_shape_is_not_computed_from_a_tensor_of_another_device(tmp_path: Path) -> None:
    nodes = [
        node("Relu", "x", "y", "relu"),
        node("Shape", "y", "shape"),
        node("Reshape", "z shape", "r", "reshape"),
    ]
    model = written(tmp_path, nodes, [("x", ["n", 2]), ("z", [6])], [("y", None), ("r", None)])
    plan, folder = placed("relu@g reshape@h"), tmp_path / "parts"
    remarks = onnx_parts.write(plan, model, folder, shapes={"n": 3})
    assert "The parts hold for these sizes only: n = 3." in remarks
    parts = json.loads((folder / "plan.json").read_text())["parts"]
    assert [part["inputs"] for part in parts] == [["x"], ["z"]]
    given = {"x": np.ones((3, 2), np.float32), "z": np.arange(6, dtype=np.float32)}
    assert agree(onnx_parts.run(folder, given, plain()), whole(model, given))


def test_outputs_that_are_constant_or_read_by_others_are_handed_out(tmp_path: Path) -> None:
    constant = numpy_helper.from_array(np.array([5], np.float32))
    nodes = [
        node("Constant", "", "five", value=constant),
        node("Neg", "five", "minus"),
        node("Relu", "x", "y", "a"),
        node("Exp", "y", "z", "b"),
        node("Abs", "y", "dead", "c"),
    ]
    model = written(tmp_path, nodes, [("x", [1])], [("y", [1]), ("minus", [1]), ("z", [1])])
    assert len(cut(tmp_path, model, placed("a@g b@h c@i"))) == 3
    check(tmp_path, model)


def test_inputs_and_outputs_that_are_left_out_cross_nowhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    lstm = helper.make_node(
        "LSTM", ["x", "w", "r", "", "", "h"], ["", "last"], name="a", hidden_size=2
    )
    nodes = [
        lstm,
        node("Split", "last", "left right", "b", axis=2),
        helper.make_node("Clip", ["left", "", "most"], ["c"], name="c"),
        helper.make_node("Clip", ["right", "", "most"], ["d"], name="d"),
    ]
    weights = [("w", rng.random((1, 8, 3))), ("r", rng.random((1, 8, 2))), ("most", 0.25)]
    inputs = [("x", [4, 1, 3]), ("h", [1, 1, 2])]
    outputs = [("c", [1, 1, 1]), ("d", [1, 1, 1])]
    model = written(tmp_path, nodes, inputs, outputs, weights, opset=13)
    found = cut(tmp_path, model, placed("a@g b@h c@g d@h"))
    assert sum(len(inputs) for _, _, inputs in found) == 4
    check(tmp_path, model)


def test_an_initializer_that_is_an_input_stays_one(tmp_path: Path) -> None:
    nodes = [node("Mul", "x w", "y", "a"), node("Add", "y w", "z", "b")]
    model = written(tmp_path, nodes, [("x", [2]), ("w", [2])], [("z", [2])], [("w", [1, 2])])
    cut(tmp_path, model, placed("a@g b@h"))
    for i in range(2):
        graph = onnx.load(tmp_path / f"parts/part_{i}.onnx").graph
        assert "w" in {each.name for each in graph.input}
        assert "w" in {each.name for each in graph.initializer}
    assert json.loads((tmp_path / "parts/plan.json").read_text())["inputs"] == ["x"]
    check(tmp_path, model)


def test_operator_sets_and_metadata_are_kept_and_functions_inlined(tmp_path: Path) -> None:
    twice = helper.make_function(
        "own", "Twice", ["a"], ["c"],
        [node("Add", "a a", "b", "add"), node("Relu", "b", "c", "relu")],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    nodes = [node("Twice", "x", "y", "one", domain="own"), node("Exp", "y", "z", "two")]
    model = written(tmp_path, nodes, [("x", [2])], [("z", [2])], functions=[twice])
    loaded = onnx.load(model)
    loaded.metadata_props.add(key="author", value="me")
    onnx.save(loaded, model)
    names = [name for name in read_nodes(model).vertices if name is not None]
    assert len(names) == 3
    plan = Plan(
        "toy", "", dict(zip(names, "ghg", strict=True)), {name: k for k, name in enumerate(names)}
    )
    assert len(cut(tmp_path, model, plan)) == 3
    part = onnx.load(tmp_path / "parts/part_1.onnx")
    assert (part.opset_import[0].version, part.ir_version) == (17, 8)
    assert [(each.key, each.value) for each in part.metadata_props] == [("author", "me")]
    check(tmp_path, model)


def test_every_part_is_a_valid_model(tmp_path: Path) -> None:
    light = LIGHT / "light_squeezenet.onnx"
    plan = random_plan(light, 3, np.random.default_rng(3))
    for part in range(len(cut(tmp_path, light, plan))):
        onnx.checker.check_model(tmp_path / f"parts/part_{part}.onnx", full_check=True)


def test_weights_in_files_of_their_own_are_in_a_file_per_part(tmp_path: Path) -> None:
    nodes = [node("Mul", "x v", "y", "a"), node("Add", "y w", "z", "b")]
    weights = [("v", range(2000)), ("w", range(2000, 4000))]
    model = written(tmp_path, nodes, [("x", [2000])], [("z", [2000])], weights)
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="all.data")
    assert (tmp_path / "all.data").stat().st_size >= 16_000
    cut(tmp_path, model, placed("a@g b@h"))
    sizes = [(tmp_path / f"parts/part_{i}.onnx.data").stat().st_size for i in range(2)]
    assert max(sizes) < 16_000
    check(tmp_path, model)
    (tmp_path / "all.data").unlink()
    with pytest.raises(InputError, match="weights in files of their own: cannot be read"):
        onnx_parts.write(placed("a@g b@h"), model, tmp_path / "more")
    assert not (tmp_path / "more").exists()
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


# The folder


def chain_of_two(folder: Path) -> Path:
    nodes = [node("Relu", "x", "y", "a"), node("Exp", "y", "z", "b")]
    return written(folder, nodes, [("x", [2])], [("z", [2])])


def test_the_plan_names_device_and_execution_provider(tmp_path: Path) -> None:
    model = chain_of_two(tmp_path)
    names = {"g": "CUDAExecutionProvider:1"}
    remarks = onnx_parts.write(placed("a@g b@h"), model, tmp_path / "parts", names=names)
    assert remarks[0] == "2 parts on 2 devices"
    assert "devices of the plan work at the same time" in remarks[1]
    assert json.loads((tmp_path / "parts/plan.json").read_text()) == {
        "format": "optpart-parts/1",
        "instance": "toy",
        "method": "by hand",
        "inputs": ["x"],
        "outputs": ["z"],
        "parts": [
            {
                "file": "part_0.onnx",
                "device": "g",
                "provider": ["CUDAExecutionProvider", {"device_id": "1"}],
                "inputs": ["x"],
                "outputs": ["y"],
            },
            {
                "file": "part_1.onnx",
                "device": "h",
                "provider": ["CPUExecutionProvider", {}],
                "inputs": ["y"],
                "outputs": ["z"],
            },
        ],
    }
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        with pytest.raises(InputError, match=r"part_0.onnx: this onnxruntime has no CUDA"):
            onnx_parts.run(tmp_path / "parts", {"x": np.ones(2, np.float32)})


def test_run_py_runs_on_its_own(tmp_path: Path) -> None:
    onnx_parts.write(placed("a@g b@h"), chain_of_two(tmp_path), tmp_path / "parts")
    np.savez(tmp_path / "in.npz", x=np.zeros(2, np.float32))
    code = tmp_path / "parts/run.py"
    assert "optpart" not in {
        line.split()[1] for line in code.read_text().splitlines() if "import" in line
    }
    assert len(code.read_text().splitlines()) <= 80
    command = [sys.executable, "-I", str(code), "in.npz", "out.npz"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with np.load(tmp_path / "out.npz") as found:
        assert found["z"].tolist() == [1, 1]


def test_an_earlier_cut_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    model, parts = chain_of_two(tmp_path), tmp_path / "parts"
    onnx_parts.write(placed("a@g b@h"), model, parts)
    onnx_parts.write(placed("a@g b@g"), model, parts)
    assert sorted(each.name for each in parts.iterdir()) == [
        "manifest.json", "part_0.onnx", "plan.json", "run.py",
    ]  # fmt: skip
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "plan.json").write_text('{"format": "optpart-parts/1"}')  # any plan may be called so
    for place, problem in ((mine, "plan.json: is there"), (model, "is not a folder")):
        with pytest.raises(InputError, match=problem):
            onnx_parts.write(placed("a@g b@h"), model, place)
    assert [each.name for each in mine.iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        ("a@g b@h c@g", {}, r"vertex 'c': is no node of the model; give the model"),
        ("a@g", {}, r"node 'b': is not in the plan"),
        ("b@g a@h", {}, r"vertex 'b': starts before 'a', whose output it reads"),
        ("a@g b@h", {"names": {"g": "GPU"}}, r"'GPU', which the target does not know"),
        ("a@g b@h", {"shapes": {"n": 3}}, r"shape 'n': the model has no such size"),
    ],
)
def test_what_cannot_be_cut_is_refused(plan, options, message, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        onnx_parts.write(placed(plan), chain_of_two(tmp_path), tmp_path / "parts", **options)
    assert not (tmp_path / "parts").exists()


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    onnx_parts.write(placed("a@g b@h"), chain_of_two(tmp_path), tmp_path / "parts")
    with pytest.raises(InputError, match=r"the inputs are \['x'\], not \['y'\]"):
        onnx_parts.run(tmp_path / "parts", {"y": np.ones(2, np.float32)})
    with pytest.raises(InputError, match="give a folder of 'optpart export --to onnx'"):
        onnx_parts.run(tmp_path, {})


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_a_node_with_bodies_is_cut_with_all_that_they_read(
    beside: bool, positive: bool, tmp_path: Path
) -> None:
    def branch(op: str, reads: str, weights=()):
        out = [helper.make_tensor_value_info("out", FLOAT, [2])]
        return helper.make_graph([node(op, reads, "out")], "branch", [], out, weights)

    inner = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    nodes = [
        node("Neg", "x", "h", "neg"),
        node("ReduceSum", "x", "sum", "total", keepdims=0),
        node("Less", "zero sum", "c", "less"),
        node("If", "c", "y", "choose", then_branch=branch("Add", "h w", [inner]),
             else_branch=branch("Mul", "h outer")),
        node("Abs", "y", "z", "abs"),
    ]  # fmt: skip
    weights = [("zero", 0), ("outer", [3, 4])]
    model = written(tmp_path, nodes, [("x", [2])], [("z", [2])], weights)
    if beside:
        onnx.save(
            onnx.load(model), model, save_as_external_data=True, location="all.data",
            size_threshold=0, convert_attribute=True,
        )  # fmt: skip
    plan = placed("neg@g total@h less@h choose@g abs@h")
    found = cut(tmp_path, model, plan)
    assert [device for device, *_ in found] == ["h", "g", "h"]
    given = {"x": np.array([1, 2] if positive else [-1, -2], np.float32)}
    assert agree(onnx_parts.run(tmp_path / "parts", given, plain()), whole(model, given))
