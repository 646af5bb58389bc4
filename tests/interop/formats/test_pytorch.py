"""Files are built by hand after PyTorch's schema, but those in ``WRITTEN``, which PyTorch wrote.

``tests/runtimes/written.py`` makes them.
"""

import json
import random
import re
import zipfile
from pathlib import Path

import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import native, pytorch
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance

WRITTEN = Path(__file__).parent / "pytorch"


def meta(*sizes, dtype=7):
    """Return the meta data of a tensor; texts are expressions."""
    return {
        "dtype": dtype,
        "sizes": [
            {"as_int": size}
            if isinstance(size, int)
            else {"as_expr": {"expr_str": size, "hint": {"as_int": 4}}}
            for size in sizes
        ],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": 1} for _ in sizes],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def argument(value):
    """Return an argument: a text is the name of a tensor."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, str):
        return {"as_tensor": {"name": value}}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, dict):
        return value
    if value and isinstance(value[0], str):
        return {"as_tensors": [{"name": name} for name in value]}
    return {"as_ints": value}


def node(target, outputs, **inputs):
    """Return a node of an aten operator."""
    return {
        "target": target if target.startswith("torch.") else f"torch.ops.aten.{target}",
        "inputs": [
            {"name": name.removesuffix("_"), "arg": argument(value), "kind": 1}
            for name, value in inputs.items()
        ],
        "outputs": [argument(name) for name in outputs.split()],
        "metadata": {"stack_trace": "File model.py"},
        "is_hop_single_tensor_return": None,
    }


def program(nodes, tensors, inputs=("x",), outputs=None, version=(8, 17), **changes):
    """Return an ExportedProgram; tensors that begin with p_ are parameters, with b_ buffers."""
    specs = []
    for name in tensors:
        if name.startswith("p_"):
            spec = {"arg": {"name": name}, "parameter_name": name[2:]}
            specs.append({"parameter": spec})
        elif name.startswith("b_"):
            spec = {"arg": {"name": name}, "buffer_name": name[2:], "persistent": True}
            specs.append({"buffer": spec})
    specs += [{"user_input": {"arg": argument(name)}} for name in inputs]
    last = [nodes[-1]["outputs"][0]] if outputs is None else [argument(name) for name in outputs]
    return {
        "graph_module": {
            "graph": {
                "inputs": [],
                "outputs": last,
                "nodes": nodes,
                "tensor_values": tensors,
                "sym_int_values": {},
                "sym_bool_values": {},
                "is_single_tensor_return": False,
                "custom_obj_values": {},
                "sym_float_values": {},
            },
            "signature": {
                "input_specs": specs,
                "output_specs": [{"user_output": {"arg": each}} for each in last],
            },
            "module_call_graph": [],
            "metadata": {},
        },
        "opset_version": {"aten": 10},
        "range_constraints": {"s0": {"min_val": 2, "max_val": 64}},
        "schema_version": {"major": version[0], "minor": version[1]},
        "verifiers": ["TRAINING"],
        "torch_version": "2.11.0",
        **changes,
    }


def write(folder, document, name="net/models/model.json", compression=zipfile.ZIP_STORED):
    """Write an archive as PyTorch lays it out."""
    path = folder / "net.pt2"
    content = document if isinstance(document, str | bytes) else json.dumps(document)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("net/archive_format", "pt2")
        archive.writestr(name, content)
        archive.writestr("net/data/weights/weight_0", bytes(8))
    return path


def network(batch=2):
    """Return convolution, batch norm, activation, pooling, and a linear layer."""
    nodes = [
        node(
            "convolution.default", "conv", input="x", weight="p_w", bias="p_b", stride=[1, 1],
            padding=[1, 1], dilation=[1, 1], transposed=False, output_padding=[0, 0], groups=1,
        ),
        node(
            "_native_batch_norm_legit_no_training.default", "norm norm_unused_1 norm_unused_2",
            input="conv", weight="p_g", bias="p_g2", running_mean="b_m", running_var="b_v",
        ),
        node("relu.default", "relu", self="norm"),
        node(
            "max_pool2d_with_indices.default", "pool pool_unused_1",
            self="relu", kernel_size=[2, 2], stride=[2, 2],
        ),
        node("view.default", "view", self="pool", size=[batch, 64]),
        node("permute.default", "wt", self="p_l", dims=[1, 0]),
        node("addmm.default", "addmm", self="p_c", mat1="view", mat2="wt"),
    ]  # fmt: skip
    tensors = {
        "p_w": meta(4, 3, 3, 3), "p_b": meta(4), "p_g": meta(4), "p_g2": meta(4),
        "b_m": meta(4), "b_v": meta(4), "p_l": meta(10, 64), "p_c": meta(10),
        "x": meta(batch, 3, 8, 8), "conv": meta(batch, 4, 8, 8), "norm": meta(batch, 4, 8, 8),
        "norm_unused_1": meta(0), "norm_unused_2": meta(0), "relu": meta(batch, 4, 8, 8),
        "pool": meta(batch, 4, 4, 4), "pool_unused_1": meta(batch, 4, 4, 4, dtype=5),
        "view": meta(batch, 64), "wt": meta(64, 10), "addmm": meta(batch, 10),
    }  # fmt: skip
    return program(nodes, tensors)


def one(folder, nodes, tensors, **options):
    """Read a model; return operations, bytes read and bytes written of its vertices by name."""
    work = (found := pytorch.read(write(folder, program(nodes, tensors, **options)))).work
    columns = zip(work.flops.tolist(), work.read.tolist(), work.written.tolist(), strict=True)
    return dict(zip(found.graph.names, columns, strict=True))


def test_a_network_is_counted_by_hand(tmp_path):
    found = pytorch.read(write(tmp_path, network()))
    graph, work = found.graph, found.work
    assert graph.names == ("conv", "norm", "relu", "pool", "view", "addmm")
    assert work.kinds == (
        "aten.convolution", "aten._native_batch_norm_legit_no_training", "aten.relu",
        "aten.max_pool2d_with_indices", "aten.view", "aten.addmm",
    )  # fmt: skip
    assert set(work.precisions) == {"float32"}
    maps = 2 * 4 * 8 * 8
    assert work.flops.tolist() == [
        2 * maps * 27, 2 * maps, maps, 2 * 64 * 4, 0, 2 * 2 * 10 * 64,
    ]  # fmt: skip
    assert [*map(int, graph.memory)] == [4 * (108 + 4), 4 * 16, 0, 0, 0, 4 * (640 + 10)]
    assert work.read.tolist()[:2] == [4 * (384 + 112), 4 * (maps + 16)]
    assert work.written.tolist() == [4 * maps, 4 * maps, 4 * maps, 512, 0, 80]
    assert [*map(int, graph.tensor_size)] == [4 * maps, 4 * maps, 4 * maps, 512, 512, 80]
    edges = zip(graph.edge_source, graph.edge_target, strict=True)
    assert [*edges] == [(v, v + 1) for v in range(5)]
    assert found.assumed == ("The inputs lie ready on every device: 'x'.",)


@pytest.mark.parametrize("version", [(5, 1), (6, 0), (7, 3), (8, 99)])
@pytest.mark.parametrize(
    "name", ["models/model.json", "net/models/other.json", "serialized_exported_program.json"]
)
def test_layouts_and_versions(tmp_path, version, name):
    document = network() | {"schema_version": {"major": version[0], "minor": version[1]}}
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert len(pytorch.read(write(tmp_path, document, name, compression)).graph) == 6


X = {"x": meta(4, 6, 8)}


@pytest.mark.parametrize(
    ("nodes", "tensors", "expected"),
    [
        (
            [node("linear.default", "y", input="x", weight="p_w", bias=None)],
            {"p_w": meta(5, 8), "y": meta(4, 6, 5)},
            (2 * 24 * 5 * 8, 4 * (192 + 40), 4 * 120),
        ),
        (
            [node("matmul.default", "y", self="x", other="p_w")],
            {"p_w": meta(8, 5), "y": meta(4, 6, 5)},
            (2 * 24 * 5 * 8, 4 * (192 + 40), 4 * 120),
        ),
        (
            [node("bmm.default", "y", self="x", mat2="p_w")],
            {"p_w": meta(4, 8, 5), "y": meta(4, 6, 5)},
            (2 * 24 * 5 * 8, 4 * (192 + 160), 4 * 120),
        ),
        (
            [node("einsum.default", "y", equation={"as_string": "bij,jk->bik"},
                  tensors=["x", "p_w"])],
            {"p_w": meta(8, 5), "y": meta(4, 6, 5)},
            (2 * 24 * 5 * 8, 4 * (192 + 40), 4 * 120),
        ),
        (
            [node("conv1d.default", "y", input="x", weight="p_w", groups=2)],
            {"p_w": meta(4, 3, 3), "y": meta(4, 4, 6)},
            (2 * 96 * 9, 4 * (192 + 36), 4 * 96),
        ),
        (
            [node("convolution.default", "y", input="x", weight="p_w", transposed=True)],
            {"p_w": meta(6, 5, 2), "y": meta(4, 5, 9)},
            (2 * 192 * 10, 4 * (192 + 60), 4 * 180),
        ),
        (
            [node("layer_norm.default", "y", input="x", normalized_shape=[8], weight="p_w")],
            {"p_w": meta(8), "y": meta(4, 6, 8)},
            (7 * 192, 4 * 200, 4 * 192),
        ),
        ([node("_softmax.default", "y", self="x")], {"y": meta(4, 6, 8)}, (960, 768, 768)),
        ([node("gelu_.default", "y", self="x")], {"y": meta(4, 6, 8)}, (192, 768, 768)),
        ([node("mean.dim", "y", self="x", dim=[2])], {"y": meta(4, 6)}, (192, 768, 96)),
        ([node("dropout.default", "y", input="x", train=False)], {"y": meta(4, 6, 8)}, (0, 0, 0)),
        ([node("slice.Tensor", "y", self="x")], {"y": meta(2, 6, 8)}, (0, 0, 0)),
        ([node("cat.default", "y", tensors=["x", "x"])], {"y": meta(8, 6, 8)}, (0, 1536, 1536)),
        (
            [node("embedding.default", "y", weight="p_w", indices="x")],
            {"p_w": meta(1000, 16), "y": meta(4, 6, 8, 16), "x": meta(4, 6, 8, dtype=5)},
            (0, 4 * 3072 + 8 * 192, 4 * 3072),
        ),
        (
            [node("avg_pool2d.default", "y", self="x", kernel_size=[2])],
            {"y": meta(4, 3, 4)},
            (48 * 4, 768, 192),
        ),
    ],
)  # fmt: skip
def test_operators_are_counted_by_hand(tmp_path, nodes, tensors, expected):
    assert one(tmp_path, nodes, X | tensors)["y"] == expected


@pytest.mark.parametrize(("causal", "per_score"), [(False, 6), (True, 7)])
def test_attention_is_two_products_and_a_softmax(tmp_path, causal, per_score):
    nodes = [
        node(
            "scaled_dot_product_attention.default", "y",
            query="q", key="k", value="v", is_causal=causal,
        )
    ]  # fmt: skip
    tensors = {name: meta(2, 4, 10 if name in "kv" else 6, 8) for name in "qkvy"}
    found = one(tmp_path, nodes, tensors, inputs=("q", "k", "v"))
    assert found["y"][0] == 2 * 4 * 6 * 10 * (2 * 16 + per_score)


def test_open_sizes_are_given(tmp_path):
    nodes = [
        node("relu.default", "y", self="x"),
        node("cat.default", "z", tensors=["y", "y"]),
    ]
    tensors = {"x": meta("s0", 3), "y": meta("s0", 3), "z": meta("2*s0", "Max(1, (s0 - 1)//2)")}
    path = write(tmp_path, program(nodes, tensors))
    found = pytorch.read(path, shapes={"s0": 10})
    assert [*map(int, found.graph.tensor_size)] == [4 * 30, 4 * 20 * 4]
    for shapes, fault in (
        ({}, "depends on the open 's0'; give it as in --shape s0=4"),
        ({"s0": 65}, "shape 's0': 65 is not what was exported; give 2 to 64"),
        ({"s0": -1}, "shape 's0': size -1; give a whole number"),
        ({"s1": 1}, "shape 's1': the model has no such size; choose one of 's0' (x.0)"),
    ):
        with pytest.raises(InputError) as caught:
            pytorch.read(path, shapes=shapes)
        assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("s0", 10), ("3*s0/2", 15), ("s0**2 + 1", 101), ("-s0 + 12", 2), ("Mod(s0, 4)", 2),
        ("FloorDiv(s0, 3)", 3), ("CeilDiv(s0, 3)", 4), ("Min(s0, 7, 9)", 7), ("s0 % 3", 1),
    ],
)  # fmt: skip
def test_expressions_of_sizes(tmp_path, expression, value):
    tensors = {"x": meta(1), "y": meta(expression)}
    path = write(tmp_path, program([node("relu.default", "y", self="x")], tensors))
    assert int(pytorch.read(path, shapes={"s0": 10}).graph.tensor_size[0]) == 4 * value


@pytest.mark.parametrize(
    "expression",
    ["s0/3", "1/0", "s0.real", "f(s0)", "9**99", "'a'", "2*", "(" * 300, "s0 - 11", "1" * 1001],
)
def test_expressions_of_no_size_are_refused(tmp_path, expression):
    tensors = {"x": meta(1), "y": meta(expression)}
    path = write(tmp_path, program([node("relu.default", "y", self="x")], tensors))
    with pytest.raises(InputError, match="size"):
        pytorch.read(path, shapes={"s0": 10})


def test_what_depends_on_no_input_is_memory_of_its_readers(tmp_path):
    nodes = [
        node("permute.default", "wt", self="p_w", dims=[1, 0]),
        node("arange.default", "steps", end=8),
        node("mm.default", "y", self="x", mat2="wt"),
        node("add.Tensor", "z", self="y", other="steps"),
        node("mm.default", "u", self="z", mat2="wt"),
    ]
    tensors = {
        "x": meta(2, 8), "p_w": meta(8, 8), "wt": meta(8, 8), "steps": meta(8),
        "y": meta(2, 8), "z": meta(2, 8), "u": meta(2, 8),
    }  # fmt: skip
    found = pytorch.read(write(tmp_path, program(nodes, tensors)))
    assert found.graph.names == ("y", "z", "u")
    assert [*map(int, found.graph.memory)] == [256, 32, 256]
    assert found.assumed[1] == (
        "Constants that several operations read are counted at each, 256 bytes in excess: 'wt'."
    )


def test_only_outputs_that_are_read_count(tmp_path):
    nodes = [
        node("split.Tensor", "", self="x") | {"outputs": [argument(["a", "b", "c"])]},
        node("add.Tensor", "y", self="a", other="c"),
    ]
    tensors = {name: meta(2, 2) for name in "abcy"} | {"x": meta(6, 2)}
    found = pytorch.read(write(tmp_path, program(nodes, tensors)))
    assert [*map(int, found.graph.tensor_size)] == [16, 16, 16]
    assert found.graph.names == ("a", "y")


def test_what_is_changed_in_place_is_read_as_changed(tmp_path):
    nodes = [
        node("mul.Tensor", "y", self="x", other="x"),
        node("add_.Tensor", "y2", self="y", other="x"),
        node("relu_.default", "y3", self="y"),
        node("neg.default", "z", self="y2"),
    ]
    tensors = {name: meta(2) for name in ("x", "y", "y2", "y3", "z")}
    found = pytorch.read(write(tmp_path, program(nodes, tensors)))
    edges = zip(found.graph.edge_source, found.graph.edge_target, strict=True)
    assert [*edges] == [(0, 1), (1, 2), (2, 3)]
    assert "Operations in place count as computing a new tensor" in found.assumed[1]


def test_operators_that_are_not_known_are_said(tmp_path):
    nodes = [
        node("torch.ops.mylib.warp.default", "y", x="x"),
        node("torch.ops.aten._assert_tensor_metadata.default", "", a="y"),
    ]
    document = program(nodes, {"x": meta(3), "y": meta(3)}, outputs=["y"])
    found = pytorch.read(write(tmp_path, document))
    assert found.work.kinds == ("mylib.warp",)
    assert found.assumed[0] == (
        "An operation that hands on no tensor is left out: aten._assert_tensor_metadata."
    )
    assert found.assumed[2] == (
        "Operators whose work is unknown count one operation per output element: 'mylib.warp'."
    )


def test_of_several_models_one_is_chosen(tmp_path):
    path = write(tmp_path, network())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("net/models/large.json", json.dumps(network(batch=7)))
    assert int(pytorch.read(path, model="large").graph.tensor_size[5]) == 7 * 40
    for model, fault in (
        (None, r"holds several models \('model', 'large'\); say which one with --model"),
        ("small", "holds no model 'small'; choose one of 'model', 'large'"),
    ):
        with pytest.raises(InputError, match=fault):
            pytorch.read(path, model=model)


def test_the_native_format_keeps_it(tmp_path):
    graph = pytorch.read(write(tmp_path, network())).graph
    instance = Instance(graph, Cluster.uniform(2), name="net")
    native.write(instance, tmp_path / "net.json")
    assert native.dumps(native.read(tmp_path / "net.json")) == native.dumps(instance)


def test_the_first_bytes_tell_the_format(tmp_path):
    assert pytorch.sniff(write(tmp_path, network()).read_bytes()[:64])
    assert not pytorch.sniff(b"GGUF")


RELU = [node("relu.default", "y", self="x")]
SHAPES = {"x": meta(3), "y": meta(3)}


def changed(path, value, document=None):
    """Replace what a path of keys leads to."""
    document = json.loads(json.dumps(document or program(RELU, SHAPES)))
    *before, last = path.split(".")
    at = document
    for key in before:
        at = at[int(key)] if isinstance(at, list) else at[key]
    at[int(last) if isinstance(at, list) else last] = value
    return document


GRAPH = "graph_module.graph"


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ("{", "line 1, column 2: is not JSON"),
        ("[]", "is not an object; give an object with 'schema_version'"),
        (changed("schema_version", {"major": 9, "minor": 1}),
         "schema_version: major version 9; this program reads 5 to 8"),
        (changed("schema_version", 4), "schema_version: major version 4; "),
        (changed("graph_module", {}), "graph_module: no 'graph'; "),
        (changed(f"{GRAPH}.nodes", 1), "graph.nodes: is a number; give a list"),
        (changed(f"{GRAPH}.nodes", []), "graph: no operation depends on an input; "),
        (changed(f"{GRAPH}.nodes.0.target", 1), "graph.nodes[0].target: is a number; "),
        (changed(f"{GRAPH}.nodes.0.inputs.0.arg", argument("z")),
         "graph.nodes[0] (torch.ops.aten.relu.default): reads 'z', which is computed by no node"),
        (changed(f"{GRAPH}.nodes.0.inputs.0.arg", {"as_graph": {}}),
         "graph.nodes[0] (torch.ops.aten.relu.default): contains a subgraph, whose work"),
        (changed(f"{GRAPH}.nodes.0.outputs", [argument("x")]),
         "graph.nodes[0] (torch.ops.aten.relu.default): computes 'x', which is there; "),
        (changed(f"{GRAPH}.nodes.0.outputs", [argument("q")]),
         "graph.nodes[0] (torch.ops.aten.relu.default): 'q' has no entry in tensor_values; "),
        (changed(f"{GRAPH}.tensor_values.y.dtype", 99),
         "tensor_values.'y': unknown type 99; give a ScalarType"),
        (changed(f"{GRAPH}.tensor_values.y.sizes.0", {"as_int": -1}),
         "tensor_values.'y': a size of -1; give whole numbers"),
        (changed(f"{GRAPH}.tensor_values.y.sizes", [{"as_int": 2**40}] * 2),
         "graph.nodes[0] (torch.ops.aten.relu.default): takes more than 2^63 operations; "),
        (changed(f"{GRAPH}.nodes.0.target", "torch.ops.aten.linear.default"),
         "graph.nodes[0] (torch.ops.aten.linear.default): its shapes or arguments do not fit"),
        (changed("graph_module.signature.input_specs.0", {"gift": {"arg": {}}}),
         "signature.input_specs[0]: unknown kind 'gift'; "),
        (changed(f"{GRAPH}.outputs", "a" * 10) | {"range_constraints": [1]},
         "range_constraints: not an object; "),
        (json.dumps(changed(f"{GRAPH}.nodes.0.inputs.0.arg", "@")).replace(
            '"@"', '{"as_optional_tensors": [' * 450 + "]}" * 450), "is nested too deeply; "),
    ],
)  # fmt: skip
def test_a_faulty_document_ends_in_one_line(tmp_path, document, fault):
    path = write(tmp_path, document)
    with pytest.raises(InputError) as caught:
        pytorch.read(path)
    assert str(caught.value).startswith(f"{path}, net/models/model.json: {fault}"[:200])


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is no zip archive, or damaged (File is not a zip file); "),
        (b"PK\x03\x04" + bytes(100), "is no zip archive, or damaged (File is not a zip file); "),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path, content, fault):
    path = tmp_path / "x.pt2"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        pytorch.read(path)
    assert str(caught.value).startswith(f"{path}: {fault}")


def test_an_archive_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no exported model"):
        pytorch.read(write(tmp_path, "{}", name="net/data.pkl"))
    for path, fault in ((tmp_path, "is no file"), ("\0", "is no zip"), ("no.pt2", "cannot be")):
        with pytest.raises(InputError, match=fault):
            pytorch.read(path)


def test_a_small_archive_of_a_huge_document_is_refused(tmp_path):
    path = write(tmp_path, b" " * (2**25 + 1), compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**20
    with pytest.raises(InputError, match=r"model\.json: is longer than 33554432 bytes; "):
        pytorch.read(path)


def test_an_archive_of_very_many_files_is_refused(tmp_path):
    path = write(tmp_path, network())
    content = bytearray(path.read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 12 : end + 16] = (2**24).to_bytes(4, "little")  # length of the list
    content[0:0] = bytes(2**24)
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds too many files"):
        pytorch.read(path)


@pytest.mark.parametrize("seed", range(3))
def test_of_a_damaged_file_every_fault_is_one_line(tmp_path, seed):
    draw = random.Random(seed)
    for _ in range(100):
        write_damaged(tmp_path / "net.pt2", draw)
        fault = ""
        try:
            pytorch.read(tmp_path / "net.pt2")
        except InputError as error:
            fault = str(error)
        assert re.fullmatch(r"([^\n]+; [^\n]+)?", fault)


def write_damaged(path, draw):
    """Damage the document of an archive, or the archive."""
    content = json.dumps(network()).encode()
    if draw.randrange(4):
        content = damaged(content, draw)
    compression = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    whole = write(path.parent, content, compression=compression).read_bytes()
    if not draw.randrange(3):
        whole = damaged(whole, draw)
    path.write_bytes(whole)


def damaged(content, draw):
    """Change some bytes, leave some out, or put other values or names in their place."""
    content = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(max(1, len(content)))
        match draw.randrange(6):
            case 0:
                content[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del content[at : at + draw.randint(1, 40)]
            case 2:
                content[at : at + 1] = draw.choice([b"9" * 30, b"-1", b"null", b"[", b"{}", b"1e9"])
            case 3 | 4:
                pattern = draw.choice([rb"\d+", rb'"\w+"', rb"true|false|null"])
                spans = [match.span() for match in re.finditer(pattern, content)]
                if spans:
                    start, end = draw.choice(spans)
                    other = draw.choice(spans)
                    values = [b"0", b"-1", b"1" * 25, b"true", b"0.5", content[slice(*other)]]
                    content[start:end] = draw.choice(values)
            case _:
                content = content[: max(1, at)] if not draw.randrange(3) else content
    return bytes(content)


@pytest.mark.parametrize("shapes", [{"s77": 5}, {"x.0": 5}, {"batch": 5}])
def test_an_open_size_goes_by_symbol_by_place_or_by_any_name_if_it_is_the_only_one(shapes):
    found = pytorch.read(WRITTEN / "perceptron.pt2", shapes=shapes)
    assert found.graph.names == (
        "linear", "relu", "linear_1", "relu_1", "linear_2", "relu_2", "linear_3", "flatten",
    )  # fmt: skip
    flops = [2 * 5 * 8 * 16, 5 * 16, *[2 * 5 * 16 * 16, 5 * 16] * 2, 2 * 5 * 16 * 4, 0]
    assert found.work.flops.tolist() == flops
    said = "The file does not keep the names of sizes: 'batch' was taken for 's77', the only open "
    assert any(each.startswith(said) for each in found.assumed) == ("batch" in shapes)


def test_sizes_that_a_symbol_determines_are_given_by_input_and_axis():
    path = WRITTEN / "attention.pt2"
    found = pytorch.read(path, shapes={"ids.0": 2, "ids.1": 24})
    assert pytorch.read(path, shapes={"s23": 2, "s44": 12}).graph == found.graph
    graph = found.graph
    size = {graph.tensor_name(t): int(graph.tensor_size[t]) for t in range(graph.tensors)}
    assert size["pad:0"] == 4 * 2 * (24 + 24 + 24 // 3 + 1) * 8


@pytest.mark.parametrize(
    ("name", "shapes", "fault"),
    [
        ("perceptron", {}, "its shape depends on the open 's77'; give it as in --shape s77=4"),
        ("perceptron", {"batch": 65}, "shape 'batch': 65 is not what was exported; give 2 to 64"),
        ("perceptron", {"s0": 5}, "shape 's0': the model has no such size; choose one of 's77'"),
        ("attention", {"batch": 5}, "choose one of 's23' (ids.0), 's44' (ids.1)"),
        ("attention", {"ids.1": 7}, "shape 'ids.1': 7 is not what was exported; "),
        ("attention", {"ids.1": 24, "s44": 5}, "shape 's44': 5, but 12 by another name; "),
        ("choice", {}, "(torch.ops.higher_order.cond): contains a subgraph, whose work depends"),
    ],
)
def test_faulty_sizes_of_files_that_pytorch_wrote(name, shapes, fault):
    with pytest.raises(InputError) as caught:
        pytorch.read(WRITTEN / f"{name}.pt2", shapes=shapes)
    assert fault in str(caught.value)
