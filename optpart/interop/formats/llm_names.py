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
from optpart.problem.rational import shown
from optpart.problem.workload import Workload


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
    return chain(transformer(str(name), weights=weights), step or Step())


def transformer(name: str, *, weights: str | None = None) -> Transformer:
    """Return a model; see :func:`read`."""
    sizes = _table().get(name)
    if sizes is None:
        raise InputError("", f"no model {shown(name)}", choice(name, names()))
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
            layer._replace(window=None) if period and number % period == period - 1 else layer
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
    width = sizes.get("head_width", sizes["hidden"] // heads)
    return Layer(heads, sizes.get("kv_heads", heads), width, width, sizes.get("window"))


def _weights(
    sizes: Mapping[str, Any], layer: Layer, matrices: str, vectors: str
) -> Iterator[Weight]:
    hidden, ffn, biases = sizes["hidden"], sizes["ffn"], sizes.get("biases", ())
    queries = layer.heads * layer.key_width
    keys, values = layer.kv_heads * layer.key_width, layer.kv_heads * layer.value_width
    norm: list[tuple[int, ...]] = [(hidden,)] * (2 if sizes["norm"] == "layer" else 1)
    yield Weight(EMBEDDING, None, (sizes["vocab"], hidden), matrices)
    if "positions" in sizes:
        yield Weight(EMBEDDING, None, (sizes["positions"], hidden), matrices)
    for number in range(sizes["layers"]):
        for rows in (queries, keys, values):
            yield Weight(ATTENTION, number, (rows, hidden), matrices)
            if "qkv" in biases:
                yield Weight(ATTENTION, number, (rows,), vectors)
        yield Weight(ATTENTION, number, (hidden, layer.heads * layer.value_width), matrices)
        if "output" in biases:
            yield Weight(ATTENTION, number, (hidden,), vectors)
        for _ in range(2 * sizes.get("head_norms", False)):
            yield Weight(ATTENTION, number, (layer.key_width,), vectors)
        experts = sizes.get("experts", 0)
        if experts:
            yield Weight(MLP, number, (experts, hidden), matrices)
        shapes = [(ffn, hidden)] * (2 if sizes.get("gated") else 1) + [(hidden, ffn)]
        for shape in shapes:
            whole = (experts, *shape) if experts else shape
            yield Weight(MLP, number, whole, matrices, experts=bool(experts))
            if "ffn" in biases:
                yield Weight(MLP, number, shape[:1], vectors)
        for count in range(sizes.get("norms", 2)):
            for vector in norm:
                yield Weight(MLP if count % 2 else ATTENTION, number, vector, vectors)
    for vector in norm:
        yield Weight(NORM, None, vector, vectors)
    if not sizes.get("tied"):
        yield Weight(HEAD, None, (sizes["vocab"], hidden), matrices)
