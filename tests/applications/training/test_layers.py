"""Shapes, counts and kernels of single layers."""

from __future__ import annotations

import pytest

from optpart.applications.training.attention import attention, embedding, gelu_dense, projection
from optpart.applications.training.cluster_file import specs_of
from optpart.applications.training.graph import Line, Role
from optpart.applications.training.layers import Activation, Layer, Network, update_lines


@pytest.fixture
def net() -> Network:
    return Network("net", "by hand")


def image(*shape: int) -> Activation:
    return Activation(None, shape)


def last(net: Network) -> Layer:
    return net.layers[-1]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "expected"),
    [(224, 3, 1, None, 224), (224, 7, 2, None, 112), (299, 3, 2, 0, 149), (8, 1, 2, None, 4)],
)
def test_sizes_of_convolutions(
    net: Network, size: int, kernel: int, stride: int, padding: int | None, expected: int
) -> None:
    y = net.convolution("c", image(3, size, size), 5, kernel, stride=stride, padding=padding)
    assert y.shape == (5, expected, expected)
    assert last(net).multiply_adds == 5 * 3 * kernel**2 * expected**2


def test_a_convolution_and_what_follows_it_is_one_layer(net: Network) -> None:
    net.convolution("c", image(3, 8, 8), 5, (1, 3))
    layer = last(net)
    assert layer.weights == {"c/weights": 45, "c/normalisation": 10}
    assert [k.kind for k in layer.kernels] == ["Conv", "BatchNormalization"]
    assert layer.kernels[0].moved == 4 * (3 + 5) * 64
    assert layer.saved == 5 * 64  # what is normalised
    assert layer.products == 2


def test_a_depthwise_convolution_has_a_filter_for_each_channel(net: Network) -> None:
    net.convolution("c", image(6, 8, 8), 6, 3, groups=6, normalised=False)
    assert last(net).weights == {"c/weights": 54}
    assert last(net).multiply_adds == 54 * 64
    assert last(net).kernels[0].kind == "DepthwiseConv2dNative"
    assert last(net).saved == 0


def test_products_flatten_images_and_keep_places_of_sequences(net: Network) -> None:
    assert net.dense("a", image(3, 4, 4), 10).shape == (10,)
    assert last(net).weights == {"a/weights": 480, "a/bias": 10}
    assert net.dense("b", image(7, 48), 10, bias=False).shape == (7, 10)
    assert last(net).multiply_adds == 7 * 480
    assert last(net).kernels[0].weights == 4 * 480


def test_shared_weights_count_once(net: Network) -> None:
    x = embedding(net, "in", 3, 4, {"table": 40})
    net.dense("out", x, 10, bias=False, weights="table")
    assert net.parameters == 40
    graph = net.training_graph(specs_of("v100-16gb"))
    assert [o.name for o in graph.operations if o.role is Role.APPLY] == ["in/apply"]


def test_pooling(net: Network) -> None:
    assert net.pool("p", image(4, 147, 147), 3, stride=2).shape == (4, 73, 73)
    assert last(net).needs_output
    assert net.pool("q", image(4, 35, 35), 3, padding=1, average=True).shape == (4, 35, 35)
    assert not last(net).needs_reads
    assert net.mean("m", image(4, 35, 35)).shape == (4,)


def test_sums_and_concatenations(net: Network) -> None:
    x = net.convolution("a", image(3, 8, 8), 5, 1)
    y = net.convolution("b", image(3, 8, 8), 5, 1)
    assert net.sum("s", [x, y, x], activated=False).shape == (5, 8, 8)
    assert last(net).reads == (0, 1)
    assert net.concatenation("c", [x, y]).shape == (10, 8, 8)
    assert last(net).kernels[0].moved == 2 * 4 * 640
    with pytest.raises(AssertionError, match="t"):
        net.sum("t", [x, image(4, 8, 8)], activated=False)


def test_attention_multiplies_activations_and_keeps_probabilities(net: Network) -> None:
    queries = net.dense("q", image(6, 32), 16)
    keys = net.dense("kv", image(9, 32), 32)
    assert attention(net, "a", queries, keys, width=16, heads=4).shape == (6, 16)
    assert last(net).multiply_adds == 2 * 6 * 9 * 16
    assert last(net).saved == 4 * 6 * 9
    assert last(net).products == 2
    assert not last(net).weights
    relative = net.dense("r", image(18, 32), 16)
    attention(net, "b", queries, keys, width=16, heads=4, relative=relative)
    assert last(net).multiply_adds == 2 * 6 * 9 * 16 + 6 * 18 * 16


def test_a_projection_adds_the_residual_and_normalises(net: Network) -> None:
    x = net.dense("x", image(6, 32), 16)
    y = projection(net, "p", gelu_dense(net, "g", x, 64), x)
    assert y.shape == (6, 16)
    assert [k.kind for k in last(net).kernels] == ["Gemm", "Add", "LayerNormalization"]
    assert sum((last(net).weights or {}).values()) == 64 * 16 + 16 + 32
    assert last(net).reads == (1, 0)
    assert net.layers[1].saved == 6 * 64  # what the GELU reads


def test_updates_read_and_write_weights_gradients_and_slots() -> None:
    specs = specs_of("v100-16gb")
    for slots in (0, 1, 2):
        ((line,),) = update_lines([720], specs, slots)
        assert line == Line(5000 + (3 + 2 * slots))


def test_the_loss_ends_the_forward_pass(net: Network) -> None:
    net.loss(net.dense("d", image(8), 10))
    graph = net.training_graph(specs_of("v100-16gb"))
    assert [o.name for o in graph.operations] == [
        "d", "loss", "loss/backward", "d/backward", "d/apply",
    ]  # fmt: skip
