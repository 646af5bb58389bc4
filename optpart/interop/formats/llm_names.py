"""Language models by name, of published sizes: ``llm_names.toml`` lists them with their sources.

The weights follow from the sizes: of attention the matrices of queries, keys, values and output;
of a feed-forward two matrices, or three with a gate, for every expert of a mixture, whose router
has a matrix as well; vectors of norms and biases. See :mod:`~optpart.interop.formats.llm` for
vertices, sizes in bytes, and what counts as work.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from optpart.base.choices import choice
from optpart.base.errors import InputError
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
    type_named,
)
from optpart.interop.formats.llm_vision import PATCH, TABLE, TOKEN, Eye, Tower, tower
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

#: Types of a part of the weights as they were released.
_RELEASED = ("experts_type", "blocks_type")


def names() -> tuple[str, ...]:
    """Return the names of all models."""
    return tuple(_table())


def sniff(name: str) -> bool:
    """Return whether a model has this name."""
    return name in _table()


def read(name: str | Path, step: Step | None = None, *, weights: str | None = None) -> Workload:
    """Return what one step of a model computes.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    step : Step, optional
        By default, decoding one token of one sequence.
    weights : str, optional
        Type of the matrices, one of :data:`~optpart.interop.formats.llm.TYPES`; by default as they
        were released. With a quantised type, vectors are in float32.

    Raises
    ------
    InputError
        If there is no such model or type, or the step does not fit it.
    """
    step = step or Step()
    model, sees = transformer(str(name), weights=weights), _table()[str(name)].get("vision")
    if sees is not None:
        model = replace(model, vision=_tower(sees, model.activations))
    return chain(model, replace(step, words_only=step.images is None))


def transformer(name: str, *, weights: str | None = None) -> Transformer:
    """Return a model that reads words; see :func:`read`."""
    sizes = _table().get(name)
    if sizes is None:
        raise InputError("", f"no model {shown(name)}", choice(name, names()))
    if weights is not None:
        sizes = {key: value for key, value in sizes.items() if key not in _RELEASED}
    matrices = type_named(weights or sizes["activations"], "weights")
    vectors = matrices if TYPES[matrices][0] == 1 else "float32"
    experts = sizes.get("experts", 0)
    period = sizes.get("window_period", 0)
    layer = _layer(sizes)
    return Transformer(
        name=name,
        source=sizes["source"],
        hidden=sizes["hidden"],
        vocab=sizes["vocab"],
        layers=tuple(
            layer._replace(window=None, chunked=False)
            if period and number % period == period - 1
            else layer
            for number in range(sizes["layers"])
        ),
        weights=tuple(_weights(sizes, layer, matrices, vectors)),
        norm=sizes["norm"],
        activations=sizes["activations"],
        experts=experts,
        experts_used=sizes.get("experts_used", 0),
        longest=sizes["longest"],
        parallel=sizes.get("parallel", False),
    )


def published(name: str) -> int:
    """Return the published number of parameters of a model."""
    count: int = _table()[name]["parameters"]
    return count


def architecture(instance: str) -> str | None:
    """Return how modules are called of the model after which an instance is called, if any is."""
    name = instance.removesuffix("-decode").removesuffix("-prefill")
    found: str | None = _table()[name].get("modules", "llama") if name in _table() else None
    return found


@functools.cache
def _table() -> Mapping[str, Any]:
    text = files("optpart.interop.formats").joinpath("llm_names.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _layer(sizes: Mapping[str, Any]) -> Layer:
    heads = sizes["heads"]
    if "latent" in sizes:
        latent, rotated = sizes["latent"], sizes["rotated"]
        # Every head reads the same latent vector, and a part that is rotated.
        return Layer(heads, heads, latent + rotated, latent, latent=latent + rotated)
    width = sizes.get("head_width", sizes["hidden"] // heads)
    kv_heads, window = sizes.get("kv_heads", heads), sizes.get("window")
    return Layer(heads, kv_heads, width, width, window, chunked=sizes.get("chunked", False))


def _tower(sizes: Mapping[str, Any], type: str) -> Tower:
    """Return a vision tower: of blocks with biases and two norms that also shift."""
    width, ffn, blocks = sizes["width"], sizes["ffn"], sizes["layers"]
    eye = Eye(
        width,
        blocks,
        sizes["heads"],
        sizes["patch"],
        sizes["merge"],
        sizes["image"],
        sizes.get("classes", 0),
    )
    rows = (sizes["image"] // sizes["patch"]) ** 2 + eye.classes
    shapes = [
        (PATCH, (width, 3 * sizes["patch"] ** 2)),
        (TABLE, (rows, width)),
        (TABLE, (sizes["vectors"] * width,)),
        *[(PATCH, (blocks * width, width))] * 4,
        *[(PATCH, (blocks * ffn, width))] * 2,
        (TABLE, (blocks * (9 * width + ffn),)),
        *[(TOKEN, tuple(shape)) for shape in sizes["projection"]],
    ]
    return tower(((place, Weight("", None, shape, type)) for place, shape in shapes), lambda: eye)


def _is_mixture(sizes: Mapping[str, Any], number: int) -> bool:
    period = sizes.get("mixture_period", 1)
    later = number >= sizes.get("dense", 0) and number % period == period - 1
    return "experts" in sizes and later


def _weights(
    sizes: Mapping[str, Any], layer: Layer, matrices: str, vectors: str
) -> Iterator[Weight]:
    hidden = sizes["hidden"]
    norm: list[tuple[int, ...]] = [(hidden,)] * (2 if sizes["norm"] == "layer" else 1)
    yield Weight(EMBEDDING, None, (sizes["vocab"], hidden), matrices)
    if "positions" in sizes:
        yield Weight(EMBEDDING, None, (sizes["positions"], hidden), matrices)
    for number in range(sizes["layers"]):
        inside = sizes.get("blocks_type", matrices)
        for shape in _attention(sizes, layer):
            yield Weight(ATTENTION, number, shape, vectors if len(shape) == 1 else inside)
        if _is_mixture(sizes, number):
            yield Weight(MLP, number, (sizes["experts"], hidden), matrices)
        yield from _feed_forward(sizes, number, inside, vectors)
        for count in range(sizes.get("norms", 2)):
            for vector in norm:
                yield Weight(MLP if count % 2 else ATTENTION, number, vector, vectors)
    for vector in norm:
        yield Weight(NORM, None, vector, vectors)
    if not sizes.get("tied"):
        yield Weight(HEAD, None, (sizes["vocab"], hidden), matrices)


def _attention(sizes: Mapping[str, Any], layer: Layer) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of all weights of an attention but its norms."""
    hidden, biases, heads = sizes["hidden"], sizes.get("biases", ()), layer.heads
    if "latent" in sizes:
        queries, latent, rotated = sizes["latent_queries"], sizes["latent"], sizes["rotated"]
        width = sizes["head_width"]
        yield from ((queries, hidden), (queries,), (heads * (width + rotated), queries))
        yield from ((latent + rotated, hidden), (latent,), (2 * heads * width, latent))
        yield (hidden, heads * width)
        return
    keys, values = layer.kv_heads * layer.key_width, layer.kv_heads * layer.value_width
    for rows in (heads * layer.key_width, keys, values):
        yield (rows, hidden)
        if "qkv" in biases:
            yield (rows,)
    yield (hidden, heads * layer.value_width)
    if "output" in biases:
        yield (hidden,)
    if "sinks" in biases:
        yield (heads,)
    for _ in range(2 * sizes.get("head_norms", False)):
        yield (layer.key_width,)


def _feed_forward(
    sizes: Mapping[str, Any], number: int, matrices: str, vectors: str
) -> Iterator[Weight]:
    hidden, biases, experts = sizes["hidden"], sizes.get("biases", ()), sizes.get("experts", 0)
    width = sizes["ffn"]
    if experts and not _is_mixture(sizes, number):
        experts, width = 0, sizes["dense_ffn"]
    if experts and "router" in biases:
        yield Weight(MLP, number, (experts,), vectors)

    def shapes(width: int) -> list[tuple[int, int]]:
        return [(width, hidden)] * (2 if sizes.get("gated") else 1) + [(hidden, width)]

    for shape in shapes(width):
        whole = (experts, *shape) if experts else shape
        type = sizes.get("experts_type", matrices) if experts else matrices
        yield Weight(MLP, number, whole, type, experts=bool(experts))
        if "ffn" in biases:
            vector = (experts, *shape[:1]) if experts else shape[:1]
            yield Weight(MLP, number, vector, vectors, experts=bool(experts))
    if experts and "shared_ffn" in sizes:
        for shape in shapes(sizes["shared_ffn"]):
            yield Weight(MLP, number, shape, matrices)
