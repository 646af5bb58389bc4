"""Which part of a language model a vertex is, whatever it is called.

The one place that knows names: as :mod:`optpart.interop.formats.llm` gives them (``vision``,
``embedding``, ``block.3`` or ``block.3.attention`` and ``block.3.mlp``, ``norm``, ``head``), or as
modules are called in transformers (``model.embed_tokens``, ``model.layers.3``, ``model.norm``,
``lm_head``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from optpart.base.errors import InputError

VISION, EMBEDDING, BLOCK, NORM, HEAD = PLACES = ("vision", "embedding", "block", "norm", "head")

#: What to do about a name that is no part of a model.
REMEDY = "give a language model that optpart read, or name vertices after modules"

_BLOCK = re.compile(r"(?:.*\.)?(?:blocks?|blk|layers?|h)\.(\d+)(?:\.(.+))?")
_OTHERS = (
    (VISION, re.compile(r"(?:.*\.)?(?:vision|vision_tower|vision_model|visual)")),
    (
        EMBEDDING,
        re.compile(r"(?:.*\.)?(?:embeddings?|embed_tokens|embed_in|wte|wpe|tok_embeddings)"),
    ),
    (NORM, re.compile(r"(?:.*\.)?(?:final_layer_?norm|norm|ln_f)")),
    (HEAD, re.compile(r"(?:.*\.)?(?:head|lm_head|embed_out|output)")),
)


class Part(NamedTuple):
    """One of :data:`PLACES`; of a block its number, and which part of it, such as ``mlp``."""

    place: str
    number: int = 0
    half: str = ""


def part_of(name: str) -> Part:
    """Return the part that a vertex is by its name; raise :class:`InputError` if it is none."""
    block = _BLOCK.fullmatch(name)
    if block is not None:
        if len(block[1]) > 6:
            raise InputError(f"vertex {name!r}", "has a number beyond any block", REMEDY)
        return Part(BLOCK, int(block[1]), block[2] or "")
    for place, pattern in _OTHERS:
        if pattern.fullmatch(name):
            return Part(place)
    raise InputError(f"vertex {name!r}", "is no part of a language model", REMEDY)
