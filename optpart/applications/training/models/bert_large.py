"""BERT-large: J. Devlin and others: BERT, 2019."""

from __future__ import annotations

from optpart.applications.training.attention import embedding, encoder_layer
from optpart.applications.training.layers import Network

WIDTH, INNER, HEADS, LAYERS = 1024, 4096, 16, 24
VOCABULARY, POSITIONS, SEGMENTS = 30_522, 512, 2

#: Tokens of a sample, as in the artifact of [G].
LENGTH = 128


def bert_large(length: int = LENGTH) -> Network:
    """Build BERT-large with a head that finds the span of an answer (SQuAD), as in [G].

    Parameters
    ----------
    length : int
        Tokens of a sample, at most 512.
    """
    net = Network("bert_large", f"BERT-large (uncased) for SQuAD, {length} tokens")
    net.assumed.append("Gradients of embeddings are as large as the whole table.")
    tables = {
        "embeddings/word": VOCABULARY * WIDTH,
        "embeddings/position": POSITIONS * WIDTH,
        "embeddings/segment": SEGMENTS * WIDTH,
    }
    x = embedding(net, "embeddings", length, WIDTH, tables, tables=3, normalised=True)
    for i in range(LAYERS):
        x = encoder_layer(net, f"layer{i}", x, heads=HEADS, inner=INNER, gelu=True)
    net.loss(net.dense("span", x, 2))
    return net
