"""What single operations cost, counted by hand."""

import pytest

from optpart.interop.formats.onnx_operators import Operation, Tensor, cost, known

Shape = tuple[int, ...]


def f32(*shape: int) -> Tensor:
    return Tensor("float", shape)


def i64(*shape: int) -> Tensor:
    return Tensor("int64", shape)


def operation(kind, inputs, outputs, **attributes) -> Operation:
    return Operation(kind, tuple(inputs), tuple(outputs), attributes)


def flops(kind, inputs, output, **attributes) -> int:
    return cost(operation(kind, inputs, [output], **attributes))[0]


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "attributes", "expected"),
    [
        # Every output element is a sum over 3 channels and 7 x 7 places.
        ("Conv", [f32(1, 3, 9, 9), f32(8, 3, 7, 7)], f32(1, 8, 3, 3), {}, 2 * 72 * 147),
        ("Conv", [f32(2, 3, 9), f32(8, 3, 7)], f32(2, 8, 3), {}, 2 * 48 * 21),
        # In groups: over the channels of one group.
        ("Conv", [f32(1, 8, 5, 5), f32(6, 4, 3, 3)], f32(1, 6, 3, 3), {"group": 2}, 2 * 54 * 36),
        # Depthwise: over one channel.
        ("Conv", [f32(1, 8, 5, 5), f32(8, 1, 3, 3)], f32(1, 8, 3, 3), {"group": 8}, 2 * 72 * 9),
        # A bias is the first summand.
        ("Conv", [f32(1, 1, 1), f32(1, 1, 1), f32(1)], f32(1, 1, 1), {}, 2),
        ("ConvInteger", [f32(1, 1, 5), f32(2, 1, 3)], f32(1, 2, 3), {}, 2 * 6 * 3),
        (
            "QLinearConv",
            [f32(1, 1, 5), f32(), f32(), f32(2, 1, 3), f32(), f32(), f32(), f32()],
            f32(1, 2, 3),
            {},
            2 * 6 * 3,
        ),
        # Transposed: every input element is spread over 2 channels and 3 x 3 places.
        ("ConvTranspose", [f32(1, 4, 5, 5), f32(4, 2, 3, 3)], f32(1, 2, 7, 7), {}, 2 * 100 * 18),
        ("Gemm", [f32(2, 5), f32(5, 3)], f32(2, 3), {}, 2 * 6 * 5),
        ("Gemm", [f32(5, 2), f32(3, 5), f32(3)], f32(2, 3), {"transA": 1, "transB": 1}, 2 * 6 * 5),
        ("MatMul", [f32(2, 5), f32(5, 3)], f32(2, 3), {}, 2 * 6 * 5),
        ("MatMul", [f32(5), f32(5)], f32(), {}, 2 * 5),
        # Batched, with 7 broadcast.
        ("MatMul", [f32(4, 1, 2, 5), f32(7, 5, 3)], f32(4, 7, 2, 3), {}, 2 * 4 * 7 * 6 * 5),
        ("com.microsoft.FusedMatMul", [f32(5, 2), f32(5, 3)], f32(2, 3), {"transA": 1}, 60),
        ("com.microsoft.MatMulNBits", [f32(2, 5)], f32(2, 3), {"K": 5, "N": 3}, 60),
        ("Einsum", [f32(2, 5), f32(5, 3)], f32(2, 3), {"equation": b"ij,jk->ik"}, 60),
        ("Einsum", [f32(4, 2, 5), f32(5, 3)], f32(4, 2, 3), {"equation": b"...j, jk"}, 240),
        ("Einsum", [f32(4), f32(5)], f32(4, 5), {"equation": b"i,j->ij"}, 20),
        ("Einsum", [f32(4, 5)], f32(5, 4), {"equation": b"ij->ji"}, 0),
        # 10 steps, batch 2: 4 gates of width 3, from inputs of 5 and states of 3; then the rest.
        (
            "LSTM",
            [f32(10, 2, 5), f32(1, 12, 5), f32(1, 12, 3)],
            f32(10, 1, 2, 3),
            {},
            20 * (2 * (60 + 36) + 17 * 3),
        ),
        (
            "GRU",
            [f32(10, 2, 5), f32(2, 9, 5), f32(2, 9, 3)],
            f32(10, 2, 2, 3),
            {},
            20 * (2 * 2 * (45 + 27) + 14 * 2 * 3),
        ),
        (
            "RNN",
            [f32(10, 2, 5), f32(1, 3, 5), f32(1, 3, 3)],
            f32(10, 1, 2, 3),
            {},
            20 * (2 * (15 + 9) + 3 * 3),
        ),
        # 2 sequences, 3 heads, 4 queries on 6 keys: products of width 8 twice; scale and softmax.
        (
            "Attention",
            [f32(2, 3, 4, 8), f32(2, 3, 6, 8), f32(2, 3, 6, 8)],
            f32(2, 3, 4, 8),
            {},
            2 * 3 * 24 * (2 * 16 + 6),
        ),
        (
            "Attention",
            [f32(2, 4, 24), f32(2, 6, 24), f32(2, 6, 24)],
            f32(2, 4, 24),
            {"q_num_heads": 3, "kv_num_heads": 3},
            2 * 3 * 24 * (2 * 16 + 6),
        ),
        # The same with one group of keys for all heads, 5 of the keys from before, and a mask.
        (
            "Attention",
            [f32(2, 4, 24), f32(2, 1, 8), f32(2, 1, 8), None, f32(2, 1, 5, 8), f32(2, 1, 5, 8)],
            f32(2, 4, 24),
            {"q_num_heads": 3, "kv_num_heads": 1, "is_causal": 1},
            2 * 3 * 24 * (2 * 16 + 7),
        ),
        (
            "com.microsoft.MultiHeadAttention",
            [f32(2, 4, 24), f32(2, 6, 24), f32(2, 6, 24)],
            f32(2, 4, 24),
            {"num_heads": 3},
            2 * 3 * 24 * (2 * 16 + 6),
        ),
        (
            "com.microsoft.GroupQueryAttention",
            [f32(2, 4, 24), f32(2, 4, 8), f32(2, 4, 8), f32(2, 1, 2, 8), f32(2, 1, 2, 8)],
            f32(2, 4, 24),
            {"num_heads": 3, "kv_num_heads": 1},
            2 * 3 * 24 * (2 * 16 + 7),
        ),
        (
            "com.microsoft.Attention",
            [f32(2, 6, 10), f32(10, 72), f32(72)],
            f32(2, 6, 24),
            {"num_heads": 3},
            2 * 12 * 10 * 72 + 2 * 3 * 36 * (2 * 16 + 6),
        ),
        ("MaxPool", [f32(1, 8, 6, 6)], f32(1, 8, 2, 2), {"kernel_shape": [3, 3]}, 32 * 9),
        ("GlobalAveragePool", [f32(1, 8, 6, 6)], f32(1, 8, 1, 1), {}, 288),
        ("BatchNormalization", [f32(1, 8, 6, 6)], f32(1, 8, 6, 6), {}, 2 * 288),
        ("BatchNormalization", [f32(1, 8, 6)], f32(1, 8, 6), {"training_mode": 1}, 7 * 48),
        ("LayerNormalization", [f32(4, 8), f32(8)], f32(4, 8), {}, 7 * 32),
        ("InstanceNormalization", [f32(1, 4, 8)], f32(1, 4, 8), {}, 7 * 32),
        ("RMSNormalization", [f32(4, 8), f32(8)], f32(4, 8), {}, 4 * 32),
        ("LRN", [f32(1, 8, 2, 2)], f32(1, 8, 2, 2), {"size": 5}, 9 * 32),
        ("Softmax", [f32(4, 8)], f32(4, 8), {}, 5 * 32),
        ("ReduceSum", [f32(4, 8)], f32(4), {}, 32),
        ("ReduceL2", [f32(4, 8)], f32(4), {}, 64),
        ("ArgMax", [f32(4, 8)], i64(4), {}, 32),
        ("Add", [f32(4, 1), f32(8)], f32(4, 8), {}, 32),
        ("Sum", [f32(4), f32(4), f32(4)], f32(4), {}, 8),
        ("Mean", [f32(4), f32(4), f32(4)], f32(4), {}, 12),
        ("Relu", [f32(4, 8)], f32(4, 8), {}, 32),
        ("Transpose", [f32(4, 8)], f32(8, 4), {}, 0),
        ("Resize", [f32(1, 2, 4, 4)], f32(1, 2, 8, 8), {"mode": b"linear"}, 2 * 128 * 4),
        ("Resize", [f32(1, 2, 4, 4)], f32(1, 2, 8, 4), {"mode": b"cubic"}, 2 * 64 * 4),
        ("Resize", [f32(1, 2, 4, 4)], f32(1, 2, 8, 8), {}, 0),
        ("made.up.Operator", [f32(4, 8)], f32(4, 8), {}, 32),
    ],
)
def test_operations_by_hand(kind, inputs, output, attributes, expected):
    assert flops(kind, inputs, output, **attributes) == expected


def test_what_has_no_row_is_not_known():
    assert known("Conv")
    assert not known("made.up.Operator")
    assert not known("made.up.Conv")


def test_an_operation_reads_all_inputs_and_writes_all_outputs():
    _, read, written = cost(
        operation("Conv", [f32(1, 3, 9, 9), f32(8, 3, 7, 7), f32(8)], [f32(1, 8, 3, 3)])
    )
    assert (read, written) == (4 * (243 + 1176 + 8), 4 * 72)


@pytest.mark.parametrize(
    "kind", ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"]
)
def test_a_change_of_shape_moves_nothing(kind):
    assert cost(operation(kind, [f32(4, 8), i64(2)], [f32(32)])) == (0, 0, 0)


def test_data_movement_reads_and_writes_and_computes_nothing():
    assert cost(operation("Transpose", [f32(4, 8)], [f32(8, 4)])) == (0, 128, 128)
    assert cost(operation("Concat", [f32(4), f32(6)], [f32(10)])) == (0, 40, 40)


def test_an_embedding_reads_only_the_rows_that_it_picks():
    picked = operation("Gather", [f32(50_000, 8), i64(3)], [f32(3, 8)])
    assert cost(picked) == (0, 3 * 8 * 4 + 3 * 8, 3 * 8 * 4)


@pytest.mark.parametrize(
    ("kind", "elements", "size"),
    [
        ("float", 3, 12), ("double", 3, 24), ("float16", 3, 6), ("bfloat16", 3, 6), ("int8", 3, 3),
        ("uint8", 3, 3), ("int64", 3, 24), ("bool", 3, 3), ("float8e4m3fn", 3, 3), ("int4", 3, 2),
        ("uint4", 4, 2), ("float4e2m1", 5, 3), ("int2", 5, 2), ("complex64", 3, 24),
    ],
)  # fmt: skip
def test_sizes_follow_from_types_and_small_elements_are_packed(kind, elements, size):
    assert Tensor(kind, (elements,)).bytes == size


def test_precisions_name_their_width():
    assert Tensor("float", ()).precision == "float32"
    assert Tensor("double", ()).precision == "float64"
    assert Tensor("bfloat16", ()).precision == "bfloat16"


@pytest.mark.parametrize(
    ("kind", "inputs", "output"),
    [
        ("Conv", [f32(1, 3, 9), f32(8, 4, 7)], f32(1, 8, 3)),
        ("Conv", [f32(), f32()], f32()),
        ("Gemm", [f32(5), f32(5)], f32(5)),
        ("Einsum", [f32(5)], f32()),
        ("MaxPool", [f32(1, 1, 4)], f32(1, 1, 2)),
    ],
)
def test_shapes_that_do_not_fit_raise(kind, inputs, output):
    with pytest.raises((LookupError, ValueError)):
        flops(kind, inputs, output)
