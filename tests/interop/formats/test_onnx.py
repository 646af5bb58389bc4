import random
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from oracles import convnets

from optpart.base.errors import InputError
from optpart.interop.costs.drawn import unit
from optpart.interop.formats import native
from optpart.interop.formats.onnx import read, sniff
from optpart.interop.formats.onnx_operators import multiply_adds
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload

onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def node(op, inputs, outputs, name="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name, **attributes)


def weight(name, *dims, kind=FLOAT):
    """An initializer that has a shape and no data, which no shape depends on."""
    return TensorProto(name=name, dims=dims, data_type=kind)


def whole(name, *values):
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def model(nodes, inputs, weights=(), outputs=(), value_info=(), opset=17, functions=()):
    """Inputs and outputs are (name, dims) or (name, dims, type); all of ``nodes`` are computed."""

    def declared(values):
        return [
            helper.make_tensor_value_info(name, kind[0] if kind else FLOAT, dims)
            for name, dims, *kind in values
        ]

    graph = helper.make_graph(
        list(nodes), "g", declared(inputs), declared(outputs), list(weights),
        value_info=declared(value_info),
    )  # fmt: skip
    domains = {"": opset} | {each.domain: 1 for each in (*nodes, *functions) if each.domain}
    imports = [helper.make_opsetid(*each) for each in domains.items()]
    return helper.make_model(graph, opset_imports=imports, functions=functions)


@pytest.fixture
def load(tmp_path):
    def call(*arguments, shapes=None, **keywords) -> Workload:
        given = arguments[0]
        made = given if isinstance(given, onnx.ModelProto) else model(*arguments, **keywords)
        path = tmp_path / "model.onnx"
        path.write_bytes(made.SerializeToString())
        return read(path, shapes=shapes)

    return call


def refusal(load, *arguments, **keywords) -> str:
    with pytest.raises(InputError) as fault:
        load(*arguments, **keywords)
    text = str(fault.value)
    assert "model.onnx: " in text
    assert "\n" not in text
    return text.split("model.onnx: ")[1]


def edges(workload: Workload) -> set[tuple[str, str, int]]:
    graph = workload.graph
    return {
        (graph.names[u], graph.names[v], int(graph.tensor_output[t]))
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
    }


def memory(workload: Workload) -> dict[str, int]:
    return dict(zip(workload.graph.names, map(int, workload.graph.memory), strict=True))


def sizes(workload: Workload) -> dict[str, int]:
    graph = workload.graph
    return {graph.tensor_name(t): int(graph.tensor_size[t]) for t in range(graph.tensors)}


# The graph


def test_nodes_are_vertices_and_what_they_compute_are_tensors(load):
    workload = load(
        [
            node("Conv", "x w b", "y", "conv"),
            node("Split", "y", "left right", "split", axis=1),
            node("Mul", "left right", "z", "mul"),
        ],
        [("x", [1, 3, 8, 8])],
        [weight("w", 6, 3, 3, 3), weight("b", 6)],
        [("z", None)],
        opset=13,
    )
    assert edges(workload) == {("conv", "split", 0), ("split", "mul", 0), ("split", "mul", 1)}
    assert sizes(workload) == {
        "conv:0": 4 * 216, "split:0": 4 * 108, "split:1": 4 * 108, "mul:0": 4 * 108,
    }  # fmt: skip
    assert memory(workload) == {"conv": 4 * (162 + 6), "split": 0, "mul": 0}
    work = workload.work
    assert work.kinds == ("Conv", "Split", "Mul")
    assert work.flops.tolist() == [2 * 216 * 27, 0, 108]
    assert work.read.tolist() == [4 * (192 + 168), 4 * 216, 4 * 216]
    assert work.written.tolist() == [4 * 216, 4 * 216, 4 * 108]
    assert work.precisions == ("float32",) * 3
    assert [int(each) for each in workload.graph.ops] == work.flops.tolist()


def test_an_output_that_nothing_reads_takes_no_memory_unless_it_is_the_first(load):
    nodes = [node("LSTM", "x w r", "y h c", "lstm", hidden_size=4), node("Relu", "h", "z", "relu")]
    workload = load(nodes, [("x", [10, 2, 3])], [weight("w", 1, 16, 3), weight("r", 1, 16, 4)])
    assert sizes(workload) == {"lstm:0": 4 * 80, "lstm:1": 4 * 8, "relu:0": 4 * 8}
    assert edges(workload) == {("lstm", "relu", 1)}


def test_unnamed_nodes_are_called_after_their_first_output(load):
    workload = load([node("Relu", "x", "y"), node("Relu", "y", "z")], [("x", [4])])
    assert workload.graph.names == ("y", "z")


def test_double_names_get_numbers_that_no_other_node_has(load):
    names = ["a", "a", "a_2", "", "a"]
    nodes = [node("Relu", f"x{i}", f"x{i + 1}", name) for i, name in enumerate(names)]
    workload = load(nodes, [("x0", [4])])
    assert workload.graph.names == ("a", "a_3", "a_2", "x4", "a_4")
    assert any("same name are numbered: 'a'" in each for each in workload.assumed)


def test_placements_that_the_file_suggests_are_named(load):
    placed = node("Relu", "x", "y", "act")
    if not hasattr(placed, "device_configurations"):
        pytest.skip("this version of ONNX has no device configurations")
    placed.device_configurations.add().configuration_id = "two GPUs"
    workload = load([placed], [("x", [2])])
    assert "device configurations do not bind: 'act'" in workload.assumed


def test_inputs_are_no_vertices_and_lie_ready(load):
    workload = load([node("Add", "x y", "z", "add")], [("x", [4]), ("y", [4])])
    assert workload.graph.names == ("add",)
    assert workload.assumed == ("the inputs lie ready on every device: 'x', 'y'",)


def test_an_input_with_an_initializer_is_a_constant(load):
    workload = load([node("Add", "x w", "z", "add")], [("x", [4]), ("w", [4])], [weight("w", 4)])
    assert memory(workload) == {"add": 16}
    assert workload.assumed == ("the inputs lie ready on every device: 'x'",)


# Constants


def test_what_depends_on_no_input_is_resident_memory_of_what_reads_it(load):
    nodes = [
        node("ConstantOfShape", "shape", "ones"),
        node("Constant", "", "two", value=numpy_helper.from_array(np.float32([2, 2, 2]))),
        node("Mul", "ones two", "twos"),
        node("Unsqueeze", "twos axis", "row"),
        node("Mul", "x row", "z", "mul"),
    ]
    workload = load(nodes, [("x", [2, 3])], [whole("shape", 3), whole("axis", 0)])
    assert workload.graph.names == ("mul",)
    assert memory(workload) == {"mul": 12}


def test_a_constant_that_an_operation_reads_twice_is_there_once(load):
    workload = load([node("Sum", "x w w", "z", "sum")], [("x", [4])], [weight("w", 4)])
    assert memory(workload) == {"sum": 16}


def test_tied_weights_are_counted_at_each_operation_and_named(load):
    nodes = [
        node("Gather", "wte ids", "e", "embed"),
        node("Transpose", "wte", "wet", perm=[1, 0]),
        node("MatMul", "e wet", "z", "head"),
    ]
    workload = load(nodes, [("ids", [5], INT64)], [weight("wte", 1000, 8)])
    assert memory(workload) == {"embed": 32_000, "head": 32_000}
    assert "counted at each, 32000 bytes in excess: 'wte'" in workload.assumed[1]


def test_a_weight_in_parts_is_not_counted_twice(load):
    nodes = [
        node("Split", "w", "a b", axis=0),
        node("Add", "x a", "y", "first"),
        node("Add", "y b", "z", "second"),
    ]
    workload = load(nodes, [("x", [4])], [weight("w", 8)], opset=13)
    assert memory(workload) == {"first": 16, "second": 16}
    assert len(workload.assumed) == 1


def test_initializers_that_nothing_reads_are_named(load):
    workload = load([node("Relu", "x", "y")], [("x", [4])], [weight("old", 4)])
    assert "initializers that no operation reads take no memory: 'old'" in workload.assumed


def test_quantised_weights_stay_quantised(load):
    nodes = [node("DequantizeLinear", "q scale", "w", "dq"), node("MatMul", "x w", "y", "mm")]
    weights = [weight("q", 8, 8, kind=TensorProto.INT4), weight("scale")]
    workload = load(nodes, [("x", [2, 8])], weights, opset=21)
    assert memory(workload) == {"dq": 32 + 4, "mm": 0}
    assert edges(workload) == {("dq", "mm", 0)}
    assert workload.work.precisions == ("int4", "float32")


def test_random_numbers_are_no_constants(load):
    nodes = [node("RandomNormal", "", "noise", "noise", shape=[4]), node("Add", "x noise", "z")]
    assert load(nodes, [("x", [4])]).graph.names == ("noise", "z")


def test_weights_in_other_files_are_not_read(load):
    huge = weight("w", 2**17, 2**15)
    huge.data_location = TensorProto.EXTERNAL
    huge.external_data.add(key="location", value="there/is/none.bin")
    workload = load([node("MatMul", "x w", "y", "mm")], [("x", [1, 2**17])], [huge])
    assert memory(workload) == {"mm": 2**34}


# Shapes


def reshaping():
    """Heads split off as exporters write it: the shape is computed from that of ``x``."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "batch", axis=0),
        node("Unsqueeze", "batch axis", "b"),
        node("Concat", "b rest", "shape", axis=0),
        node("Reshape", "x shape", "heads", "split"),
        node("Softmax", "heads", "y", "softmax"),
    ]
    zero = numpy_helper.from_array(np.array(0, dtype=np.int64), "zero")
    weights = [zero, whole("axis", 0), whole("rest", -1, 4, 8)]
    return model(nodes, [("x", ["batch", "seq", 32])], weights)


def test_arithmetic_on_shapes_is_no_work(load):
    workload = load(reshaping(), shapes={"batch": 2, "seq": 5})
    assert workload.graph.names == ("split", "softmax")
    assert sizes(workload) == {"split:0": 4 * 2 * 5 * 32, "softmax:0": 4 * 2 * 5 * 32}
    assert workload.work.flops.tolist() == [0, 5 * 2 * 5 * 32]


def test_open_sizes_are_named_together_with_how_to_give_them(load):
    text = refusal(load, reshaping(), shapes={"batch": 2})
    assert "'x' depends on the open 'seq'; give them as in --shape seq=1" in text
    text = refusal(load, reshaping())
    assert "--shape batch=1 --shape seq=1" in text


def test_a_size_that_the_model_does_not_have_is_refused(load):
    text = refusal(load, reshaping(), shapes={"bach": 2})
    assert text == "shape 'bach': the model has no such size; choose one of 'batch', 'seq'"


@pytest.mark.parametrize("size", [-1, 2.0, True, "2", 2**63])
def test_a_size_that_is_none_is_refused(load, size):
    assert "shape 'batch': size" in refusal(load, reshaping(), shapes={"batch": size})


@pytest.mark.parametrize("dim", [None, -1, 0])
def test_an_open_size_without_a_name_is_called_after_its_input(load, dim):
    made = model([node("Relu", "x", "y")], [("x", [dim, 4])])
    assert "--shape x.0=1" in refusal(load, made)
    assert sizes(load(made, shapes={"x.0": 3})) == {"y:0": 48}


def test_an_open_size_that_does_not_matter_may_stay_open(load):
    workload = load([node("Relu", "x", "y")], [("x", [4]), ("unused", ["n"])])
    assert len(workload.graph) == 1


def test_a_shape_that_depends_on_data_must_be_stated(load):
    nodes = [node("NonZero", "x", "at", "find"), node("Cast", "at", "y", "cast", to=FLOAT)]
    text = refusal(load, nodes, [("x", [3, 4])])
    assert text.startswith("node 'find' (NonZero): the shape of 'at' is unknown; ")
    made = model(nodes, [("x", [3, 4])], value_info=[("at", [2, "found"], INT64)])
    assert "the open 'found'" in refusal(load, made)
    assert sizes(load(made, shapes={"found": 5})) == {"find:0": 80, "cast:0": 40}


def test_a_stated_shape_that_is_another_than_the_inferred_is_named(load):
    workload = load([node("Relu", "x", "y")], [("x", [4])], outputs=[("y", [5])])
    assert sizes(workload) == {"y:0": 16}
    assert "shapes that the file states differently are inferred: 'y'" in workload.assumed


def test_an_unknown_operator_counts_as_elementwise_if_its_shape_is_stated(load):
    made = model([node("Twist", "x", "y", "t", domain="my.own")], [("x", [4])])
    text = refusal(load, made)
    assert text.startswith("node 't' (my.own.Twist): type and shape of 'y' are unknown; state them")
    made.graph.value_info.append(helper.make_tensor_value_info("y", FLOAT, [6]))
    workload = load(made)
    assert workload.work.kinds == ("my.own.Twist",)
    assert workload.work.flops.tolist() == [6]
    assert any(each.endswith("per output element: 'my.own.Twist'") for each in workload.assumed)


def operator(op, inputs, outputs=1, **attributes):
    names = " ".join(f"y{k}" for k in range(outputs))
    return node(op, inputs, names, "n", **attributes)


@pytest.mark.parametrize(
    ("opset", "nodes", "inputs", "weights", "shapes"),
    [
        (18, [operator("ReduceMean", "x axes")], [("x", [2, 3, 4])], [whole("axes", 1)], [8]),
        (18, [operator("Split", "x", 2, num_outputs=2, axis=1)], [("x", [2, 9])], [], [10, 8]),
        (18, [operator("Resize", "x none none to", mode="linear", axes=[2])],
         [("x", [1, 1, 4])], [whole("to", 8)], [8]),
        (19, [operator("Pad", "x pads none axes")], [("x", [2, 3])],
         [whole("pads", 1, 1), whole("axes", 1)], [10]),
        (21, [operator("GroupNormalization", "x s b", num_groups=2)], [("x", [1, 4, 3])],
         [weight("s", 4), weight("b", 4)], [12]),
        (23, [operator("Attention", "q k v", q_num_heads=4, kv_num_heads=2)],
         [("q", [1, 5, 32]), ("k", [1, 7, 16]), ("v", [1, 7, 16])], [], [160]),
        (23, [operator("RMSNormalization", "x s")], [("x", [2, 8])], [weight("s", 8)], [16]),
        (23, [operator("RotaryEmbedding", "x c s")], [("x", [1, 4, 5, 8])],
         [weight("c", 1, 5, 4), weight("s", 1, 5, 4)], [160]),
    ],
)  # fmt: skip
def test_operators_are_read_as_their_opset_has_them(load, opset, nodes, inputs, weights, shapes):
    for each in nodes:
        each.input[:] = ["" if name == "none" else name for name in each.input]
    outputs = [(name, None) for name in nodes[0].output]
    workload = load(nodes, inputs, weights, outputs, opset=opset)
    assert [*sizes(workload).values()] == [4 * elements for elements in shapes]
    assert not [each for each in workload.assumed if "unknown" in each]


# Control flow


def graph(nodes, inputs=(), outputs=(), weights=()):
    """A body; values are scalars of truth (``?``), whole numbers (``#``), or rows of four."""

    def info(name):
        kind = {"?": TensorProto.BOOL, "#": INT64}.get(name[-1], FLOAT)
        return helper.make_tensor_value_info(name, kind, [] if name[-1] in "?#" else [4])

    return helper.make_graph(nodes, "body", [*map(info, inputs)], [*map(info, outputs)], weights)


CHEAP = graph([node("Relu", "h", "cheap")], outputs=["cheap"])
DEAR = graph(
    [node("MatMul", "h own", "product"), node("Add", "product shared", "dear")],
    outputs=["dear"],
    weights=[weight("own", 4, 4)],
)
CHOICE = [
    node("Tanh", "x", "h"),
    node("If", "c", "y", "choose", then_branch=CHEAP, else_branch=DEAR),
]


def test_of_two_branches_the_one_with_more_operations_counts(load):
    bools = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    made = model(CHOICE, [("x", [4])], weights=[weight("shared", 4)])
    made.graph.input.append(bools)
    workload = load(made)
    assert workload.graph.names == ("h", "choose")
    assert edges(workload) == {("h", "choose", 0)}
    assert workload.work.flops.tolist()[1] == 2 * 4 * 4 + 4
    assert memory(workload) == {"h": 0, "choose": 4 * 16 + 4 * 4}
    assert "of branches, the one with more operations counts: 'choose'" in workload.assumed
    known = model(CHOICE, [("x", [4])], weights=[weight("shared", 4)])
    known.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    assert load(known).work.flops.tolist()[1] == 4


def loop(rounds, body):
    made = model([helper.make_node("Loop", ["n", "", "x"], ["y"], "ctl", body=body)], [("x", [4])])
    if rounds is None:
        made.graph.input.append(helper.make_tensor_value_info("n", INT64, []))
    else:
        made.graph.initializer.append(numpy_helper.from_array(np.array(rounds), "n"))
    return made


STEP = [node("Relu", "v", "w")]


def test_a_loop_counts_all_its_rounds(load):
    go_on = [node("Identity", "go?", "on?")]
    workload = load(loop(7, graph(STEP + go_on, ["i#", "go?", "v"], ["on?", "w"])))
    assert workload.work.flops.tolist() == [7 * 4]
    assert sizes(workload) == {"ctl:0": 16}
    assert not [each for each in workload.assumed if "loops" in each]
    stop = [
        node("ReduceMax", "w", "most", keepdims=0),
        node("Cast", "most", "on?", to=TensorProto.BOOL),
    ]
    workload = load(loop(7, graph(STEP + stop, ["i#", "go?", "v"], ["on?", "w"])))
    assert "loops that may end early run as often as they can: 'ctl'" in workload.assumed


def test_a_scan_has_a_round_per_slice(load):
    body = graph([node("Add", "s v", "t"), node("Relu", "t", "w")], ["s", "v"], ["t", "w"])
    nodes = [node("Scan", "x rows", "y all", "ctl", body=body, num_scan_inputs=1)]
    made = model(nodes, [("x", [4]), ("rows", [5, 4])], outputs=[("y", [4]), ("all", [5, 4])])
    workload = load(made)
    assert workload.work.flops.tolist() == [5 * 8]
    assert sizes(workload) == {"ctl:0": 16, "ctl:1": 80}


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (loop(None, graph(STEP, ["i#", "go?", "v"], ["go?", "w"])),
         "how often its body runs depends on the data; give a model whose loop has a constant"),
        (loop(2, graph(STEP, ["i#", "v"], ["w"])), "its body has 2 inputs, not 3; "),
        (loop(2, graph([], ["i#", "go?", "v"], ["go?", "i#"])), "changes from one round to the"),
        (loop(2, graph(STEP, ["i#", "go?", "v"], ["go?", "u"])), "reads 'u', which is no"),
        (loop(2, graph([node("Relu", "u", "w", "r")], ["i#", "go?", "v"], ["go?", "w"])),
         "node 'ctl' (Loop): reads 'u', which is no input"),
        (loop(2, graph([node("Relu", "w", "u", "r"), *STEP], ["i#", "go?", "v"], ["go?", "u"])),
         "node 'ctl' (Loop), node 'r' (Relu): reads 'w', which is no input"),
        (loop(2, graph(STEP, ["i#", "go?", "v"], ["go?", "w", "w"])), "1 outputs, and its body 2"),
        (model([node("If", "x", "y", "ctl", then_branch=graph([]))], [("x", [1])]),
         "has no then_branch and else_branch"),
        (model([node("Scan", "x", "y", "ctl", body=graph([]))], [("x", [1])]),
         "its inputs and num_scan_inputs do not fit"),
        (model([node("Own", "x", "y", "ctl", body=graph([]))], [("x", [1])]),
         "contains a subgraph, and how often it runs is unknown; give one of If, Loop, Scan"),
    ],
)  # fmt: skip
def test_bodies_that_do_not_fit_are_refused_by_name(load, made, message):
    assert message in refusal(load, made)


def test_names_in_bodies_are_texts(tmp_path):
    made = loop(2, graph(STEP, ["i#", "GO?", "v"], ["GO?", "w"])).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(made.replace(b"GO?", b"\xff\xfe?"))
    with pytest.raises(InputError, match=r"node 'ctl' \(Loop\): the name .* is no UTF-8 text"):
        read(path)


# Functions, and what is refused


def twice(name, inner):
    """A function that calls another one two times."""
    nodes = [
        helper.make_node(inner, ["a"], ["b"], domain="" if inner == "Relu" else "own"),
        helper.make_node(inner, ["b"], ["c"], domain="" if inner == "Relu" else "own"),
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["c"], nodes, opsets)


def test_functions_of_the_model_are_replaced_by_their_bodies(load):
    functions = [twice("Two", "Relu"), twice("Four", "Two")]
    workload = load([node("Four", "x", "y", domain="own")], [("x", [4])], functions=functions)
    assert workload.work.kinds == ("Relu",) * 4


def test_functions_that_call_themselves_or_grow_without_measure_are_refused(load):
    call = [node("F0", "x", "y", domain="own")]
    circle = [twice("F0", "F1"), twice("F1", "F0")]
    assert "calls itself" in refusal(load, call, [("x", [4])], functions=circle)
    tower = [twice(f"F{i}", f"F{i + 1}") for i in range(40)] + [twice("F40", "Relu")]
    assert "vertices" in refusal(load, call, [("x", [4])], functions=tower)
    chain = [twice(f"F{i}", f"F{i + 1}") for i in range(200)] + [twice("F200", "Relu")]
    assert "deep" in refusal(load, call, [("x", [4])], functions=chain)


def test_functions_of_more_nodes_than_a_float_counts_are_refused(load):
    def many(i):
        inner = "Relu" if i == 98 else f"F{i + 1}"
        nodes = [node(inner, "a", f"b{k}", domain="" if i == 98 else "own") for k in range(1400)]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        return helper.make_function("own", f"F{i}", ["a"], ["b0"], nodes, opsets)

    call = [node("F0", "x", "y", domain="own")]
    made = model(call, [("x", [4])], functions=[many(i) for i in range(99)])
    assert "vertices" in refusal(load, made)


def relu(*inputs, weights=(), **keywords):
    return model([node("Relu", "x", "y", "r")], inputs or [("x", [4])], weights, **keywords)


def one(op, data, weights, **attributes):
    """A model of one operation on data and weights of these shapes."""
    return model([node(op, "x w", "y", "n", **attributes)], [("x", data)], [weight("w", *weights)])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (model([node("Relu", "z", "y", "r")], []), "node 'r' (Relu): reads 'z', which is no input"),
        (
            model([node("Add", "x b", "a", "p"), node("Relu", "a", "b", "q")], [("x", [4])]),
            "node 'p' (Add): reads 'b', which is no input and computed by no node before it",
        ),
        (model([node("Relu", "x", "x", "r")], [("x", [4])]), "computes 'x', which is there"),
        (model([node("Relu", "x", "y y", "r")], [("x", [4])]), "computes 'y', which is there"),
        (model([node("Relu", "x", "", "r")], [("x", [4])]), "node 'r' (Relu): has no output"),
        (model([], [("x", [4])]), "graph: no operation depends on an input"),
        (relu(weights=[weight("w", 4), weight("w", 4)]), "initializer 'w': is there twice"),
        (
            model([node("Identity", "x", "y")], [("x", [4], TensorProto.STRING)]),
            "'x' has elements of type string",
        ),
        (relu(("x", [2**40, 2**40])), "'x' has the shape 1099511627776x1099511627776"),
        (relu(("x", [1] * 65)), "'x' has the shape 1x1x1x1x1x1x1x1x…"),
        (relu(outputs=[("z", [4])]), "output 'z': is computed by no node"),
        (relu(("x", None)), "the shape of 'x' is unknown"),
        (relu(opset=2**40), "opset_import of domain '': version 1099511627776"),
        (relu(weights=[weight("w", -4)]), "tensor 'w': 'w' has the shape -4"),
        (one("MatMul", [4, 5], [4, 5]), "node 'n' (MatMul): [ShapeInferenceError]"),
        (one("Conv", [1, 3, 2, 9], [8, 3, 7, 7]), "node 'n' (Conv): 'y' has the shape 1x8x-4x3"),
        (one("Conv", [1, 3, 9], [8, 4, 7]), "(Conv): its shapes or attributes do not fit"),
        (one("Conv", [1, 3, 9], [8, 3, 7], group="2"), "Mismatched attribute type in 'n : group'"),
        (
            one("LayerNormalization", [4, 4], [4], axis=2**31),
            "node 'n' (LayerNormalization): axis is beyond 64",
        ),
        (
            model([node("Split", "x", "y z", "s", num_outputs=2**40)], [("x", [4])], opset=18),
            "node 's' (Split): num_outputs is 1099511627776",
        ),
        (
            model([node("Expand", "x s", "y", "e")], [("x", [4]), ("s", [2**40], INT64)]),
            "node 'e' (Expand): an output with more than 64 axes",
        ),
        (
            model([node("SequenceEmpty", "", "s"), node("SequenceLength", "s", "n")], []),
            "node 0 (SequenceEmpty): 's' is a sequence_type",
        ),
    ],
)
def test_faulty_models_are_refused_in_one_line(load, made, message):
    assert message in refusal(load, made)


def test_data_of_another_length_than_the_shape_says_are_refused(load):
    short = weight("w", 5)
    short.raw_data = b"\0" * 16
    assert "tensor 'w': 16 bytes of data; give 20" in refusal(load, relu(weights=[short]))


@pytest.mark.parametrize("good", [b"Relu", b"xx", b"yy", b"node", b"size"])
def test_a_name_that_is_no_text_is_refused(tmp_path, good):
    made = model([node("Relu", "xx", "yy", "node")], [("xx", ["size"])])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString().replace(good, b"\xff" * len(good)))
    with pytest.raises(InputError, match="is no UTF-8 text"):
        read(path, shapes={"size": 1})


def test_sparse_constants_are_refused(load):
    made = relu()
    made.graph.sparse_initializer.add()
    assert "graph: has sparse initializers" in refusal(load, made)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x08\x07", b"\xff" * 100])
def test_what_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no ONNX model"):
        read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.onnx")


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"needs the library onnx; install optpart\[onnx\]"):
        read(tmp_path / "model.onnx")


def test_a_newer_opset_than_the_library_knows_is_an_assumption(load):
    assert "operators of opset 999 are as in opset" in load(relu(opset=999)).assumed[0]


def test_models_begin_alike():
    assert sniff(relu().SerializeToString())
    assert not sniff(b"")
    assert not sniff(b"{}\n")
    assert not sniff(b"\x0a\x05hello")


# Published figures

#: Of the networks in the library's wheel: the table of layers with the sizes that the file has,
#: scalars per normalised channel (mean, variance, factor, summand; and the last two once more where
#: a Mul and an Add repeat them), and entries of shapes that Reshapes read.
NINE = {
    # The file reads 224 x 224 instead of 227 x 227, and its stages have 54, 26 and 12.
    "bvlc_alexnet": (convnets.alexnet((54, 26, 12)), 0, 2),
    "densenet121": (convnets.densenet121(), 6, 0),
    # The file rounds down where it pools: 55, 27, 13 and 6 instead of 56, 28, 14 and 7.
    "inception_v1": (convnets.inception_v1((55, 27, 13, 6)), 0, 2),
    # The file has 96 channels behind the pools of modules 4c and 4d, not 128.
    "inception_v2": (convnets.inception_v2(96), 6, 2),
    "resnet50": (convnets.resnet50(), 4, 2),
    # Not the network of the publication, which has bottlenecks. It reshapes in order to shuffle.
    "shufflenet": (convnets.shufflenet(), 4, 2 + 16 * (5 + 4)),
    "squeezenet": (convnets.squeezenet(), 0, 0),
    "vgg19": (convnets.vgg19(), 0, 2),
    "zfnet512": (convnets.zfnet512(), 0, 2),
}


@pytest.mark.parametrize("name", NINE)
def test_multiply_adds_and_weights_are_those_of_the_tables_of_layers(name):
    oracle, per_channel, entries = NINE[name]
    workload = read(LIGHT / f"light_{name}.onnx")
    assert multiply_adds(workload.work) == oracle.multiply_adds
    floats = oracle.weights + per_channel * oracle.normalised
    assert int(workload.graph.memory.sum()) == 4 * floats + 8 * entries


#: Multiply-adds and trained weights in millions. Statistics of normalisation are not trained.
#: Sze et al. is "Efficient processing of deep neural networks" (2017), table II.
PUBLISHED = [
    pytest.param(convnets.alexnet(), 724, 61, id="alexnet, Sze et al."),
    pytest.param(convnets.inception_v1((55, 27, 13, 6)), 1430, 7, id="inception_v1, Sze et al."),
    pytest.param(convnets.densenet121(), 2834, 7.979, id="densenet121, torchvision"),
    pytest.param(convnets.resnet50(), 4089, 25.557, id="resnet50, torchvision"),
    pytest.param(convnets.squeezenet(), 349, 1.2355, id="squeezenet 1.1, torchvision"),
    pytest.param(convnets.vgg19(), 19632, 143.667, id="vgg19, torchvision"),
]


@pytest.mark.parametrize(("oracle", "multiply_adds", "weights"), PUBLISHED)
def test_the_tables_of_layers_give_the_published_figures(oracle, multiply_adds, weights):
    assert oracle.multiply_adds == pytest.approx(multiply_adds * 1e6, rel=0.002)
    trained = oracle.weights + 2 * oracle.normalised
    assert trained == pytest.approx(weights * 1e6, rel=0.002)


# Round trip, and files that anything may have happened to


def test_with_costs_it_becomes_an_instance_that_its_file_gives_back(tmp_path):
    workload = read(LIGHT / "light_squeezenet.onnx")
    instance = Instance(unit(workload.graph), Cluster.uniform(2), name=workload.name)
    native.write(instance, tmp_path / "a.json")
    again = native.read(tmp_path / "a.json")
    assert again.to_dict() == instance.to_dict()
    assert again.vertices == len(workload.graph) == 66


def test_sizes_and_work_survive_the_native_format(tmp_path):
    workload = read(LIGHT / "light_squeezenet.onnx")
    instance = Instance(workload.graph, Cluster.uniform(2), name=workload.name)
    native.write(instance, tmp_path / "a.json")
    assert native.read(tmp_path / "a.json").to_dict() == instance.to_dict()


EXTREME = (0, 1, -1, 65, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))


def mutated_bytes(rng: random.Random, content: bytes) -> bytes:
    mutated = bytearray(content)
    for _ in range(rng.choice((1, 2, 5, 20))):
        at, length = rng.randrange(len(mutated) + 1), rng.choice((1, 4, 20))
        how = rng.randrange(4)
        if how == 0:
            mutated[at : at + length] = b""
        elif how == 1:
            mutated[at:at] = rng.randbytes(length)
        elif how == 2:
            mutated[at:at] = mutated[at : at + length]
        else:
            mutated[at : at + 1] = rng.randbytes(1)
    return bytes(mutated)


def mutated_fields(rng: random.Random, content: bytes) -> bytes:
    """Change what a model says and leave it a model."""
    made = onnx.ModelProto.FromString(content)
    graph = made.graph
    for _ in range(rng.choice((1, 1, 2, 4))):
        one, extreme = rng.choice(graph.node), rng.choice(EXTREME)
        how = rng.randrange(7)
        if how == 0 and one.input:
            one.input[rng.randrange(len(one.input))] = rng.choice(graph.node).output[0]
        elif how == 1:
            one.op_type = rng.choice(graph.node).op_type
        elif how == 2 and one.attribute:
            attribute = rng.choice(one.attribute)
            attribute.i = extreme
            if attribute.ints:
                attribute.ints[0] = extreme
        elif how == 3 and one.attribute:
            del one.attribute[0]
        elif how == 4 and graph.initializer:
            rng.choice(graph.initializer).dims.append(extreme)
        elif how == 5:
            rng.choice(graph.input).type.tensor_type.shape.dim.add().dim_value = extreme
        elif how == 6:
            rng.choice(graph.input).type.tensor_type.elem_type = rng.randrange(30)
    return made.SerializeToString()


@pytest.mark.parametrize("mutated", [mutated_bytes, mutated_fields])
@pytest.mark.parametrize("name", ["bvlc_alexnet", "squeezenet", "reshaping"])
def test_mutated_models_are_read_or_refused(tmp_path, mutated, name):
    rng = random.Random(f"{name} {mutated.__name__}")
    content = reshaping().SerializeToString()
    if name != "reshaping":
        content = (LIGHT / f"light_{name}.onnx").read_bytes()
    path, read_well = tmp_path / "model.onnx", 0
    for _ in range(50):
        path.write_bytes(mutated(rng, content))
        with suppress(InputError):
            read(path, shapes={"batch": 2, "seq": 3} if name == "reshaping" else None)
            read_well += 1
    assert read_well < 50
