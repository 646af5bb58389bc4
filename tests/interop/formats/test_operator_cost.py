"""An operation costs the same whichever format its model is read from."""

from __future__ import annotations

import pytest

from optpart.interop.formats import onnx_operators, pytorch_operators
from optpart.interop.formats.llm import (
    ATTENTION,
    EMBEDDING,
    HEAD,
    MLP,
    NORM,
    TYPES,
    Layer,
    Step,
    Transformer,
    Weight,
    chain,
)
from optpart.interop.formats.operator_cost import GRU, LSTM, RNN, Cost, cost_by

Shape = tuple[int, ...]


def onnx_cost(kind: str, inputs: list[Shape], output: Shape, **attributes) -> tuple[int, int, int]:
    tensors = [onnx_operators.Tensor("float", shape) for shape in (*inputs, output)]
    *read, written = tensors
    operation = onnx_operators.Operation(kind, tuple(read), (written,), attributes)
    return onnx_operators.cost(operation)


def pytorch_cost(
    kind: str, inputs: dict[str, Shape | list[Shape]], output: Shape, **values
) -> tuple[int, int, int]:
    tensors = {
        name: tuple(
            pytorch_operators.Tensor("float32", shape)
            for shape in (given if isinstance(given, list) else [given])
        )
        for name, given in inputs.items()
    }
    written = pytorch_operators.Tensor("float32", output)
    operation = pytorch_operators.Operation(f"aten.{kind}", tensors, values, (written,))
    return pytorch_operators.cost(operation)


X, ROW = (4, 6, 8), (8,)
IMAGE, CHANNEL = (2, 4, 6, 6), (4,)
STATISTICS = ("weight", "bias", "running_mean", "running_var")


@pytest.mark.parametrize(
    ("onnx", "pytorch", "inputs", "output"),
    [
        ("Softmax", "_softmax", {"self": X}, X),
        ("LogSoftmax", "_log_softmax", {"self": X}, X),
        ("ReduceLogSumExp", "logsumexp", {"self": X}, (4, 6)),
        ("LayerNormalization", "layer_norm", {"input": X, "weight": ROW, "bias": ROW}, X),
        ("GroupNormalization", "group_norm", {"input": X, "weight": (6,), "bias": (6,)}, X),
        ("InstanceNormalization", "instance_norm", {"input": X, "weight": (6,), "bias": (6,)}, X),
        ("RMSNormalization", "rms_norm", {"input": X, "weight": ROW}, X),
        (
            "BatchNormalization",
            "batch_norm",
            {"input": IMAGE} | dict.fromkeys(STATISTICS, CHANNEL),
            IMAGE,
        ),
        ("ReduceL2", "linalg_vector_norm", {"self": X}, (4, 6)),
        ("ReduceMean", "mean", {"self": X}, (4, 6)),
        ("GlobalAveragePool", "adaptive_avg_pool2d", {"self": IMAGE}, (2, 4, 1, 1)),
        ("MatMul", "matmul", {"self": X, "other": (8, 5)}, (4, 6, 5)),
        ("Gemm", "addmm", {"mat1": (6, 8), "mat2": (8, 5), "self": (5,)}, (6, 5)),
        ("Conv", "conv2d", {"input": IMAGE, "weight": (5, 4, 3, 3), "bias": (5,)}, (2, 5, 4, 4)),
        (
            "ConvTranspose",
            "conv_transpose2d",
            {"input": IMAGE, "weight": (4, 5, 3, 3)},
            (2, 5, 8, 8),
        ),
        ("Add", "add", {"self": X, "other": ROW}, X),
        ("Gelu", "gelu", {"self": X}, X),
        ("Concat", "cat", {"tensors": [X, X]}, (8, 6, 8)),
        ("Gather", "embedding", {"weight": (100, 8), "indices": (3,)}, (3, 8)),
        ("Reshape", "view", {"self": X}, (24, 8)),
        ("made.up.Operator", "made_up", {"self": X}, X),
    ],
)
def test_onnx_and_pytorch_agree(onnx, pytorch, inputs, output):
    shapes = [
        each
        for given in inputs.values()
        for each in (given if isinstance(given, list) else [given])
    ]
    assert onnx_cost(onnx, shapes, output) == pytorch_cost(pytorch, inputs, output)


def test_onnx_and_pytorch_agree_on_normalisation_by_statistics_of_a_batch():
    inputs = {"input": IMAGE} | dict.fromkeys(STATISTICS, CHANNEL)
    found = onnx_cost("BatchNormalization", [*inputs.values()], IMAGE, training_mode=1)
    assert found == pytorch_cost("batch_norm", inputs, IMAGE, training=True)


def test_onnx_and_pytorch_agree_on_pools():
    found = onnx_cost("AveragePool", [IMAGE], (2, 4, 3, 3), kernel_shape=[2, 2])
    assert found == pytorch_cost("avg_pool2d", {"self": IMAGE}, (2, 4, 3, 3), kernel_size=[2, 2])


@pytest.mark.parametrize("mask", [{}, {"is_causal": 1}])
def test_onnx_and_pytorch_agree_on_attention(mask):
    query, key, value, out = (2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 10), (2, 3, 4, 10)
    inputs = {"query": query, "key": key, "value": value}
    found = onnx_cost("Attention", [query, key, value], out, **mask)
    assert found == pytorch_cost("scaled_dot_product_attention", inputs, out, **mask)


@pytest.mark.parametrize(
    ("equation", "inputs", "output"),
    [
        ("ij,jk->ik", [(2, 5), (5, 3)], (2, 3)),
        ("ij,jk,kl->il", [(2, 5), (5, 3), (3, 4)], (2, 4)),
        ("i,j->ij", [(4,), (5,)], (4, 5)),
        ("ij->ji", [(4, 5)], (5, 4)),
        ("ij->i", [(4, 5)], (4,)),
    ],
)
def test_onnx_and_pytorch_agree_on_einstein_sums(equation, inputs, output):
    found = onnx_cost("Einsum", inputs, output, equation=equation.encode())
    assert found == pytorch_cost("einsum", {"tensors": inputs}, output, equation=equation)


@pytest.mark.parametrize(
    ("onnx", "pytorch", "gates", "rest"),
    [("LSTM", "lstm", 4, LSTM), ("GRU", "gru", 3, GRU), ("RNN", "rnn_tanh", 1, RNN)],
)
def test_onnx_and_pytorch_agree_on_recurrent_layers(onnx, pytorch, gates, rest):
    """10 steps of 2 sequences in 2 directions, from inputs of 5 and states of 3."""
    weights, recurrence, biases = (gates * 3, 5), (gates * 3, 3), (gates * 3,)
    found = onnx_cost(onnx, [(10, 2, 5), (2, *weights), (2, *recurrence)], (10, 2, 2, 3))
    params = [weights, recurrence, biases, biases] * 2
    inputs = {"input": (10, 2, 5), "params": params}
    assert found[0] == pytorch_cost(pytorch, inputs, (10, 2, 6))[0]
    assert found[0] == 20 * 2 * (2 * gates * 3 * (5 + 3) + rest * 3)


def decoder(norm: str) -> Transformer:
    """Return a decoder of one block: 8 hidden numbers, 2 heads of 4, 16 tokens."""
    matrices = [(ATTENTION, (8, 8))] * 4 + [(MLP, (32, 8)), (MLP, (8, 32))]
    return Transformer(
        name="tiny",
        source="by hand",
        hidden=8,
        vocab=16,
        layers=(Layer(2, 2, 4, 4),),
        weights=(
            Weight(EMBEDDING, None, (16, 8), "float32"),
            *(Weight(place, 0, shape, "float32") for place, shape in matrices),
            *[Weight(NORM, None, (8,), "float32")] * (2 if norm == "layer" else 1),
            Weight(HEAD, None, (16, 8), "float32"),
        ),
        norm=norm,
        activations="float32",
    )


def vertex(name: str, norm: str = "rms") -> tuple[int, int, int]:
    """Return operations and bytes of a vertex that decodes the tenth token of 3 sequences."""
    step = Step(batch=3, context=10, granularity="attention+mlp", kv_dtype="float32")
    found = chain(decoder(norm), step)
    v, work = found.graph.index[name], found.work
    return int(work.flops[v]), int(work.read[v]), int(work.written[v])


@pytest.mark.parametrize(
    ("norm", "kind", "weights"),
    [("layer", "LayerNormalization", [(8,), (8,)]), ("rms", "RMSNormalization", [(8,)])],
)
def test_the_norm_of_a_language_model_is_that_of_onnx(norm, kind, weights):
    assert vertex("norm", norm) == onnx_cost(kind, [(3, 8), *weights], (3, 8))


def test_the_head_of_a_language_model_is_a_matrix_product_of_onnx():
    assert vertex("head") == onnx_cost("MatMul", [(3, 8), (8, 16)], (3, 16))


def test_the_attention_of_a_language_model_is_that_of_onnx_behind_four_products():
    """A new token attends to all positions, so that nothing is masked."""
    product, _, _ = onnx_cost("MatMul", [(3, 8), (8, 8)], (3, 8))
    past = (3, 2, 10, 4)
    attention, _, _ = onnx_cost("Attention", [(3, 2, 1, 4), past, past], (3, 2, 1, 4))
    assert vertex("block.0.attention")[0] == 4 * product + attention


@pytest.mark.parametrize(
    ("onnx", "pytorch"),
    [
        ("float", "float32"),
        ("double", "float64"),
        ("float8e5m2", "float8_e5m2"),
        *((name, name) for name in ["float16", "bfloat16", "complex64", "complex128", "bool"]),
        *((name, name) for name in ["int8", "int16", "int32", "int64", "uint8", "uint16"]),
    ],
)
def test_an_element_has_the_same_size_in_every_format(onnx, pytorch):
    size = onnx_operators.Tensor(onnx, (1,)).bytes
    assert pytorch_operators.Tensor(pytorch, (1,)).bytes == size
    assert TYPES.get(pytorch, (1, size)) == (1, size)


def test_what_a_cost_leaves_open_is_all_inputs_and_all_outputs_that_there_are():
    tensor = onnx_operators.Tensor("float", (4,))
    operation = onnx_operators.Operation("any", (tensor, None, tensor), (None, tensor), {})
    assert cost_by({"any": lambda _: Cost(5)}, "any", operation) == (5, 32, 16)
    assert cost_by({"any": lambda _: Cost(5, 1)}, "any", operation) == (5, 1, 16)
    assert cost_by({"any": lambda _: Cost(5, 1, 0)}, "any", operation) == (5, 1, 0)


def test_an_operator_without_a_row_is_elementwise():
    operands = onnx_operators.Tensor("float", (4, 1)), onnx_operators.Tensor("float", (8,))
    result = onnx_operators.Tensor("float", (4, 8))
    operation = onnx_operators.Operation("any", operands, (result,), {})
    assert cost_by({}, "any", operation) == (32, 48, 128)
