"""The base Transformer: A. Vaswani and others: Attention is all you need, 2017."""

from __future__ import annotations

from optpart.applications.training.attention import (
    attention,
    embedding,
    encoder_layer,
    feed_forward,
    projection,
)
from optpart.applications.training.layers import Activation, Network

WIDTH, INNER, HEADS, LAYERS = 512, 2048, 8, 6

#: Subwords of WMT 2014 English-German in Tensor2Tensor and TensorFlow's official model; the paper
#: has "about 37000".
VOCABULARY = 33_708

#: Words of a sentence, as in the artifact of [G].
LENGTH = 10


def transformer(length: int = LENGTH) -> Network:
    """Build the base Transformer for pairs of sentences.

    One matrix embeds source and target and makes the logits, as in the paper; projections of the
    attention have no bias, as in its code.

    Parameters
    ----------
    length : int
        Words of source and target.
    """
    net = Network(
        "transformer", f"Transformer (base), vocabulary of {VOCABULARY:,}, pairs of {length} words"
    )
    net.assumed.append("Gradients of embeddings are as large as the whole table.")
    shared = {"embedding": VOCABULARY * WIDTH}
    memory = embedding(net, "source", length, WIDTH, shared)
    for i in range(LAYERS):
        memory = encoder_layer(net, f"encoder{i}", memory, heads=HEADS, inner=INNER, bias=False)
    x = embedding(net, "target", length, WIDTH, shared)
    for i in range(LAYERS):
        x = _decoder_layer(net, f"decoder{i}", x, memory)
    net.loss(net.dense("logits", x, VOCABULARY, bias=False, weights="embedding"))
    return net


def _decoder_layer(net: Network, name: str, x: Activation, memory: Activation) -> Activation:
    qkv = net.dense(f"{name}/qkv", x, 3 * WIDTH, bias=False)
    y = attention(net, f"{name}/attention", qkv, qkv, width=WIDTH, heads=HEADS)
    x = projection(net, f"{name}/projection", y, x, bias=False)
    queries = net.dense(f"{name}/cross/queries", x, WIDTH, bias=False)
    keys = net.dense(f"{name}/cross/keys", memory, 2 * WIDTH, bias=False)
    y = attention(net, f"{name}/cross/attention", queries, keys, width=WIDTH, heads=HEADS)
    x = projection(net, f"{name}/cross/projection", y, x, bias=False)
    return feed_forward(net, f"{name}/feed", x, INNER)
