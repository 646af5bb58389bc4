"""A small decoder, whose counts can be worked out by hand."""

from dataclasses import replace

from optpart.interop.formats.llm import (
    ATTENTION,
    EMBEDDING,
    HEAD,
    MLP,
    NORM,
    Layer,
    Transformer,
    Weight,
)


def decoder(blocks=2, **changes):
    """Return a decoder of 8 hidden numbers, 2 heads of 4, 1 of keys and values, 16 tokens."""
    weights = [Weight(EMBEDDING, None, (16, 8), "float16")]
    for number in range(blocks):
        weights += [
            Weight(ATTENTION, number, (8, 8), "float16"),
            Weight(ATTENTION, number, (4, 8), "float16"),
            Weight(ATTENTION, number, (4, 8), "float16"),
            Weight(ATTENTION, number, (8, 8), "float16"),
            Weight(ATTENTION, number, (8,), "float32"),
            Weight(MLP, number, (32, 8), "float16"),
            Weight(MLP, number, (8, 32), "float16"),
        ]
    weights += [Weight(NORM, None, (8,), "float32"), Weight(HEAD, None, (16, 8), "float16")]
    model = Transformer(
        name="tiny",
        source="by hand",
        hidden=8,
        vocab=16,
        layers=(Layer(2, 1, 4, 4),) * blocks,
        weights=tuple(weights),
        norm="rms",
        activations="float16",
        longest=64,
    )
    return replace(model, **changes)


def vertex(workload, name):
    """Return operations, bytes read and written, memory, and the size of the output."""
    v = workload.graph.index[name]
    work, graph = workload.work, workload.graph
    size = graph.tensor_size[graph.tensor_vertex.tolist().index(v)]
    numbers = (work.flops[v], work.read[v], work.written[v], graph.memory[v], size)
    return tuple(map(int, numbers))


#: Bytes of the weights of a block: 192 elements and 8 wider ones, and 512.
ATTENTION_BYTES, MLP_BYTES = 2 * 192 + 4 * 8, 2 * 512


def with_experts(model, experts, used):
    """Make the feed-forwards of a model experts."""
    weights = tuple(
        each._replace(shape=(experts, *each.shape), experts=True) if each.place == MLP else each
        for each in model.weights
    )
    return replace(model, weights=weights, experts=experts, experts_used=used)
