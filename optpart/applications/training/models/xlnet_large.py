"""XLNet-large: Z. Yang and others: XLNet, 2019."""

from __future__ import annotations

from optpart.applications.training.attention import attention, embedding, feed_forward, projection
from optpart.applications.training.layers import Activation, Network

WIDTH, INNER, HEADS, LAYERS = 1024, 4096, 16, 24
VOCABULARY = 32_000

#: Tokens of a sample, as for BERT-large.
LENGTH = 128


def xlnet_large(length: int = LENGTH) -> Network:
    """Build XLNet-large as it is fine-tuned: the content stream, a head for spans, no memory.

    Keys of relative positions are computed for each sample, as in the authors' code.

    Parameters
    ----------
    length : int
        Tokens of a sample.
    """
    net = Network("xlnet_large", f"XLNet-large for spans, {length} tokens")
    net.assumed.append("Gradients of embeddings are as large as the whole table.")
    x = embedding(net, "embedding", length, WIDTH, {"embedding/word": VOCABULARY * WIDTH})
    positions = Activation(None, (2 * length, WIDTH))
    for i in range(LAYERS):
        x = _layer(net, f"layer{i}", x, positions)
    net.loss(net.dense("span", x, 2))
    return net


def _layer(net: Network, name: str, x: Activation, positions: Activation) -> Activation:
    qkv = net.dense(f"{name}/qkv", x, 3 * WIDTH, bias=False)
    relative = net.dense(f"{name}/relative", positions, WIDTH, bias=False)
    # Biases of content, position and segment, and the two segment embeddings.
    biases = {f"{name}/biases": 3 * WIDTH, f"{name}/segments": 2 * WIDTH}
    y = attention(
        net,
        f"{name}/attention",
        qkv,
        qkv,
        width=WIDTH,
        heads=HEADS,
        relative=relative,
        weights=biases,
    )
    x = projection(net, f"{name}/projection", y, x, bias=False)
    return feed_forward(net, f"{name}/feed", x, INNER, gelu=True)
