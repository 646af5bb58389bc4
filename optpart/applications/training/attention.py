"""Layers of Transformers, for networks of :mod:`~optpart.applications.training.layers`."""

from __future__ import annotations

from collections.abc import Mapping

from optpart.applications.training.layers import (
    WIDTH,
    Activation,
    Layer,
    Network,
    normalisation,
    product,
)
from optpart.applications.training.lines import Kernel


def embedding(
    net: Network,
    name: str,
    length: int,
    width: int,
    weights: Mapping[str, int],
    *,
    tables: int = 1,
    normalised: bool = False,
) -> Activation:
    """Add the sum of embeddings of a sequence's tokens, maybe normalised.

    Parameters
    ----------
    weights : mapping from str to int
        Numbers of each table by name.
    tables : int
        From how many a row is read for every token.
    """
    out = length * width
    held = dict(weights)
    kernels = [Kernel("Gather", out * (tables - 1), (tables + 1) * out * WIDTH)]
    if normalised:
        held[f"{name}/normalisation"] = 2 * width
        kernels.append(normalisation("LayerNormalization", out, 2 * width))
    layer = Layer(name, kernels, weights=held, saved=out if normalised else 0)
    return net.add(layer, [], (length, width))


def attention(
    net: Network,
    name: str,
    queries: Activation,
    keys: Activation,
    *,
    width: int,
    heads: int,
    relative: Activation | None = None,
    weights: Mapping[str, int] | None = None,
) -> Activation:
    """Add scaled dot-product attention.

    Parameters
    ----------
    queries, keys : Activation
        What holds queries, and what holds keys and values; they may be the same.
    relative : Activation, optional
        Keys of relative positions, which the queries are multiplied with, too.
    weights : mapping from str to int, optional
        Biases of the queries and other small weights.
    """
    rows, columns = queries.shape[0], keys.shape[0]
    scores = heads * rows * columns
    products = 2 * rows * columns * width
    inputs = [queries, keys]
    read = rows * width + 2 * columns * width
    if relative is not None:
        products += rows * relative.shape[0] * width
        inputs.append(relative)
        read += relative.count
    kernels = [
        product("MatMul", products, read + 2 * scores + rows * width, 0),
        Kernel("Softmax", 5 * scores, 2 * scores * WIDTH),
    ]
    # The probabilities are kept.
    layer = Layer(name, kernels, products, weights or {}, saved=scores, products=2)
    return net.add(layer, inputs, (rows, width))


def projection(
    net: Network, name: str, x: Activation, residual: Activation, *, bias: bool = True
) -> Activation:
    """Add a product with weights, then the residual, and normalise the sum."""
    length, depth = x.shape
    width = residual.shape[1]
    out, products = length * width, length * depth * width
    weights = {f"{name}/weights": depth * width} | ({f"{name}/bias": width} if bias else {})
    kernels = [
        product("Gemm", products, x.count + out, sum(weights.values())),
        Kernel("Add", out, 3 * out * WIDTH),
        normalisation("LayerNormalization", out, 2 * width),
    ]
    weights[f"{name}/normalisation"] = 2 * width
    layer = Layer(name, kernels, products, weights, saved=out)
    return net.add(layer, [x, residual], (length, width))


def feed_forward(
    net: Network, name: str, x: Activation, width: int, *, gelu: bool = False
) -> Activation:
    """Add the two products of a Transformer's feed-forward part, residual and normalisation."""
    if gelu:
        return projection(net, f"{name}2", gelu_dense(net, f"{name}1", x, width), x)
    return projection(net, f"{name}2", net.dense(f"{name}1", x, width, activated=True), x)


def gelu_dense(net: Network, name: str, x: Activation, width: int) -> Activation:
    """Add a product with weights and a GELU, whose input is kept for the backward pass."""
    length, depth = x.shape
    out, products = length * width, length * depth * width
    weights = {f"{name}/weights": depth * width, f"{name}/bias": width}
    kernels = [
        product("Gemm", products, x.count + out, sum(weights.values())),
        Kernel("Gelu", 8 * out, 2 * out * WIDTH),
    ]
    layer = Layer(name, kernels, products, weights, saved=out)
    return net.add(layer, [x], (length, width))


def encoder_layer(
    net: Network,
    name: str,
    x: Activation,
    *,
    heads: int,
    inner: int,
    bias: bool = True,
    gelu: bool = False,
) -> Activation:
    """Add a layer of an encoder: self-attention and feed-forward part, normalised afterwards."""
    width = x.shape[1]
    qkv = net.dense(f"{name}/qkv", x, 3 * width, bias=bias)
    y = attention(net, f"{name}/attention", qkv, qkv, width=width, heads=heads)
    x = projection(net, f"{name}/projection", y, x, bias=bias)
    return feed_forward(net, f"{name}/feed", x, inner, gelu=gelu)
