"""A request to a language model: a prompt to read, and a token to compute at the end of a context.

Each vertex of the model (embedding, blocks, norm, head) has a device for prefilling and one for
decoding. Costs are those of the roofline.

Time to first token
    The prompt passes all vertices on their devices for prefilling. The keys and values of every
    block that decodes elsewhere then cross, all of them one after another, since transfers of a
    pair of devices share its link. The first token goes to where decoding begins.
Time per token
    A token passes all vertices on their devices for decoding, and the next one goes from the head
    to the embedding.
Memory
    A device holds the weights of what it does in either phase, once; the keys and values of the
    context of what it decodes, and of the prompt of what it only prefills. The reserve, and as much
    as the largest input and output of a vertex take, stay free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from optpart.base.errors import ArgumentError, InputError
from optpart.interop.costs.costed import whole_delays
from optpart.interop.costs.registry import Options, apply
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats.cluster_toml import opened
from optpart.interop.formats.detect import format_of, read_workload
from optpart.interop.formats.llm import BLOCKS
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import Number
from optpart.problem.units import has_unit, quantity
from optpart.problem.workload import Workload

#: Bytes of a token on its way: its number in the vocabulary.
TOKEN = 4

_DEFINED = (
    "The time to first token ends when the keys and values of blocks that decode elsewhere are "
    "there; they cross one after another once the prompt is read."
)
_TIED = "On a device that has both, the matrix of embedding and head counts once."


@dataclass(frozen=True, eq=False)
class Request:
    """Both phases of a model on the same devices, in whole nanoseconds and bytes.

    Attributes
    ----------
    phases : tuple of two Instances
        Prefilling and decoding, a path of n vertices each; vertex ``v`` hands on tensor ``v``.
    moves : Instance
        Tensor ``v`` is the keys and values of the prompt, and the last one the next token.
    weights : tuple of int, length n
    cached : tuple of (int, int), length n
        Of the keys and values of the prompt, and of the context.
    tied : int
        What of the head's weights counts once with the embedding's on a device that has both.
    room : tuple of (int or None), length k
        For weights, keys and values; ``None`` is unlimited.
    limit : int
        Of the time to first token.
    asked : mapping
        What a file of plans says it is about.
    """

    phases: tuple[Instance, Instance]
    moves: Instance
    weights: tuple[int, ...]
    cached: tuple[tuple[int, int], ...]
    tied: int
    room: tuple[int | None, ...]
    limit: int
    asked: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    def able(self, vertex: int, phase: int) -> list[int]:
        """Return the devices that have room for a vertex alone; the head may have the embedding."""
        need = self.weights[vertex] + self.cached[vertex][phase]
        need -= self.tied if vertex == len(self.weights) - 1 else 0
        return [d for d, room in enumerate(self.room) if room is None or need <= room]


def read(
    model: str | Path,
    cluster: Cluster | NamedCluster | str | Path,
    *,
    prompt: int,
    context: int,
    first: Number,
    **reading: Any,
) -> Request:
    """Read a model and its devices, as :func:`optpart.apart` takes them."""
    reading = {option: given for option, given in reading.items() if given is not None}
    if isinstance(first, str) and not has_unit(first):
        raise ArgumentError("first", f"{first!r} has no unit", "give a time such as 400ms")
    limit = math.floor(quantity(first, "time", "first"))
    if not 1 <= prompt < context:
        problem = f"{prompt} of {context} positions leave no token to decode"
        raise ArgumentError("prompt", problem, "give 1 or more, and a longer `context`")
    if "step" not in format_of(model).takes:
        remedy = "name one, or give GGUF, safetensors or the folder of Hugging Face"
        raise InputError("", "is no language model", remedy, str(model))
    devices = opened(cluster)
    if any(on is not None for on in devices.computes_on):
        raise InputError("computes_on", "means nothing here", "leave out what does not compute")
    asked = {"model": str(model), "prompt": prompt, "context": context, "first": limit, **reading}
    decoding = _path(model, mode="decode", context=context, **reading)
    shared = decoding.graph.memory[-1]
    if decoding.graph.colocation:  # a device that has only one of both needs a copy
        reading["tied"] = "copy"
        decoding = _path(model, mode="decode", context=context, **reading)
    tied = int(decoding.graph.memory[-1] - shared)
    prefilling = _path(model, mode="prefill", context=prompt, **reading)
    memory = Options(memory="estimate")  # of no effect, but what others say would be wrong here
    both = [apply("roofline", each, devices, memory) for each in (prefilling, decoding)]
    said = [
        remark if all(remark in each.remarks for each in both) else f"{phase}: {remark}"
        for phase, made in zip(("Prefilling", "Decoding"), both, strict=True)
        for remark in made.remarks
    ]
    prefill, decode = (made.instance for made in both)
    passed = (each.graph.tensor_size.fractions() for each in (prefill, decode))
    free = math.ceil(max(a + b for sizes in passed for a, b in pairwise([Fraction(0), *sizes])))
    limits = zip(prefill.cluster.memory, decode.cluster.memory, strict=True)
    resident = zip(decoding.graph.memory.fractions(), decoding.cached, strict=True)
    return Request(
        (prefill, decode),
        moving(decode, prefilling.cached, TOKEN * decoding.sequences),
        tuple(int(size) - own for size, own in resident),
        tuple(zip(prefilling.cached, decoding.cached, strict=True)),
        tied,
        tuple(None if a is None or b is None else math.floor(min(a, b)) - free for a, b in limits),
        limit,
        asked,
        tuple(dict.fromkeys((_DEFINED, *said, *((_TIED,) if tied else ())))),
    )


def _path(model: str | Path, **reading: Any) -> Workload:
    """Read one phase of a model, whose vertices must be a path."""
    found = read_workload(model, granularity=BLOCKS, words_only=True, **reading)
    edges = zip(found.graph.edge_source.tolist(), found.graph.edge_target.tolist(), strict=True)
    if {*edges} != {*pairwise(range(len(found.graph)))}:
        raise InputError("", "is more than one chain of blocks", "give a decoder alone", str(model))
    return found


def moving(phase: Instance, cached: tuple[int, ...], token: int) -> Instance:
    """Return the keys and values of all vertices, and a token, as tensors on a phase's devices."""
    builder, names = GraphBuilder(), [*phase.graph.names, "the next token"]
    for name, size in zip(names, (*cached, token), strict=True):
        builder.vertex(name, 0, outputs=[size])
    for name in names[:-1]:
        builder.edge(name, names[-1])
    builder.vertex("end", 0)
    builder.edge(names[-1], "end")
    graph, _ = whole_delays(builder.build(), phase.cluster)
    return Instance(graph, phase.cluster)
