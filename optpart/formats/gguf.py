"""GGUF files, in which llama.cpp keeps language models: their headers only.

Layout, versions 2 and 3, little-endian::

    "GGUF"  version: u32  tensors: u64  entries: u64
    entry:  key: string  type: u32  value
    tensor: name: string  axes: u32  length of each axis: u64, contiguous one first
            type: u32  offset of its data: u64

A string is its length (u64) and its bytes; an array is the type of its elements (u32), their
number (u64), and they themselves. Nothing behind the header is read, and it need not be there: a
file that was cut off after its header is as good. Of a model that was split
(``NAME-00001-of-00003.gguf``), any part names the others, which must lie beside it.

The sizes come from the types and shapes of the tensors, as they are quantised. The number of heads
and what else shapes do not tell come from the entries ``general.architecture`` and
``ARCHITECTURE.…``. Any decoder whose tensors have llama.cpp's names for attention and
feed-forward is read; state-space and latent attention layers are refused. See
:mod:`~optpart.formats.llm` for vertices, sizes in bytes, and what counts as work.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from optpart.errors import FaultsOf, InputError
from optpart.formats.architectures import GGUF, Settings, Stored, architecture, opened
from optpart.formats.json import is_whole
from optpart.formats.llm import MOST_LAYERS, TYPES, Layer, Step, Transformer, chain
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_TENSOR_TYPES = {
    0: "float32", 1: "float16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0",
    10: "q2_K", 11: "q3_K", 12: "q4_K", 13: "q5_K", 14: "q6_K", 16: "iq2_xxs", 17: "iq2_xs",
    18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs",
    24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 29: "iq1_m",
    30: "bfloat16", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4", 40: "nvfp4",
}  # fmt: skip
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9

#: Headers with the largest vocabularies take 20 MB. Counts are few digits, and loops behind them.
_MOST_HEADER = 2**28
_MOST_STRINGS = 4_000_000
_MOST_TENSORS = 200_000
_MOST_ENTRIES = 100_000
_MOST_NAME = 65_535
_MOST_AXES = 4
_MOST_PARTS = 1_000
#: Longer arrays hold vocabularies, which do not matter here.
_KEPT = MOST_LAYERS

_WHOLE = "give a GGUF file with its whole header"
_PART = re.compile(r"(.+-)(\d{5})(-of-)(\d{5})(\.gguf)", re.IGNORECASE)

#: Keys of the entries of an architecture.
_KEYS = {
    "number of blocks": "block_count", "hidden size": "embedding_length",
    "number of heads": "attention.head_count",
    "number of key-value heads": "attention.head_count_kv",
    "width of a key": "attention.key_length", "width of a value": "attention.value_length",
    "window": "attention.sliding_window", "number of experts": "expert_count",
    "number of experts used": "expert_used_count", "number of positions": "context_length",
}  # fmt: skip


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as a GGUF file does."""
    return content.startswith(_MAGIC)


def read(path: str | Path, step: Step | None = None) -> Workload:
    """Read what one step of a model computes.

    Parameters
    ----------
    step : Step, optional
        By default, decoding one token of one sequence.

    Raises
    ------
    InputError
        If the file is no GGUF file or a faulty one, the model is no decoder of attention and
        feed-forward, or the step does not fit it.
    """
    with FaultsOf(path):
        return chain(_transformer(_merged(Path(path)), Path(path)), step or Step())


@dataclass(frozen=True)
class _Header:
    entries: Mapping[str, Any]
    tensors: dict[str, Stored]


class _Reader:
    """Reads a header from a file, number by number."""

    def __init__(self, stream: BinaryIO, length: int) -> None:
        self._stream = stream
        self._left = min(length, _MOST_HEADER)
        self._long = length > _MOST_HEADER
        self._strings = _MOST_STRINGS

    def header(self) -> _Header:
        if self._take(4, "its mark") != _MAGIC:
            raise InputError("", "is no GGUF file", _WHOLE)
        version = self._number("I", "its version")
        if version not in _VERSIONS:
            known = "this program reads versions 2 and 3, little-endian"
            what = "is big-endian" if version & 0xFFFF == 0 and version else f"version {version}"
            raise InputError("version", what, known)
        tensors = self._count("Q", "tensors", 24, _MOST_TENSORS)
        entries = self._count("Q", "entries", 13, _MOST_ENTRIES)
        found: dict[str, Any] = {}
        for number in range(entries):
            key = self._string(f"entry {number}")
            place = f"entry {shown(key)}"
            if key in found:
                raise InputError(place, "is there twice", "give it once")
            found[key] = self._value(self._number("I", place), place)
        stored: dict[str, Stored] = {}
        for number in range(tensors):
            name = self._string(f"tensor {number}")
            tensor = self._tensor(f"tensor {shown(name)}")
            if name in stored:
                raise InputError(f"tensor {name!r}", "is there twice", "give it once")
            stored[name] = tensor
        return _Header(found, stored)

    def _tensor(self, place: str) -> Stored:
        axes = self._number("I", place)
        if not 1 <= axes <= _MOST_AXES:
            raise InputError(place, f"{axes} axes", f"give 1 to {_MOST_AXES}")
        lengths = [self._number("Q", place) for _ in range(axes)]
        if not all(is_whole(length, 1, 2**40) for length in lengths):
            raise InputError(place, f"axes of {lengths}", "give lengths of 1 to 2^40")
        number = self._number("I", place)
        type_ = _TENSOR_TYPES.get(number)
        if type_ is None:
            remedy = f"give one of {', '.join(_TENSOR_TYPES.values())}"
            raise InputError(place, f"unknown type {number}", remedy)
        block = TYPES[type_][0]
        if lengths[0] % block:
            problem = f"rows of {lengths[0]} elements, but {type_} has blocks of {block}"
            raise InputError(place, problem, "give rows of whole blocks")
        self._number("Q", place)
        shape = lengths[::-1]
        while len(shape) > 1 and shape[0] == 1:  # writers may fill up with ones
            del shape[0]
        return Stored(tuple(shape), type_)

    def _value(self, type_: int, place: str) -> Any:
        """Return a value, or ``None`` of a long array."""
        if type_ == _STRING:
            return self._string(place, most=_MOST_HEADER)
        if type_ != _ARRAY:
            return self._number(self._scalar(type_, place), place)
        type_ = self._number("I", place)
        if type_ == _STRING:
            count = self._count("Q", f"strings in {place}", 8, self._strings)
            self._strings -= count
            for _ in range(count):
                self._take(self._count("Q", f"bytes in {place}", 1, _MOST_HEADER), place)
            return None
        scalar = "<" + self._scalar(type_, place)
        width = struct.calcsize(scalar)
        content = self._take(
            width * self._count("Q", f"elements in {place}", width, _MOST_HEADER), place
        )
        if len(content) > _KEPT * width:
            return None
        return [value for (value,) in struct.iter_unpack(scalar, content)]

    def _scalar(self, type_: int, place: str) -> str:
        if type_ not in _SCALARS:
            raise InputError(place, f"a value of unknown type {type_}", _WHOLE)
        return _SCALARS[type_]

    def _string(self, place: str, most: int = _MOST_NAME) -> str:
        content = self._take(self._count("Q", f"bytes in a name of {place}", 1, most), place)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise InputError(place, "a text that is not UTF-8", _WHOLE) from None

    def _count(self, kind: str, what: str, width: int, most: int) -> int:
        """Take a count of things that take ``width`` bytes at least."""
        count: int = self._number(kind, what)
        if count > most:
            raise InputError("", f"{count} {what}", f"give at most {most}")
        if count * width > self._left:
            self._end(what)
        return count

    def _number(self, kind: str, place: str) -> Any:
        layout = "<" + kind
        (value,) = struct.unpack(layout, self._take(struct.calcsize(layout), place))
        return value

    def _take(self, count: int, place: str) -> bytes:
        if count > self._left:
            self._end(place)
        self._left -= count
        content = self._stream.read(count)
        if len(content) < count:
            self._end(place)
        return content

    def _end(self, place: str) -> None:
        if self._long:
            problem = f"its header is longer than {_MOST_HEADER} bytes"
            raise InputError(place, problem, "give a file with a shorter one")
        raise InputError(place, "the file ends within its header", _WHOLE)


def _header(path: Path) -> _Header:
    with FaultsOf(path), opened(path) as stream:
        return _Reader(stream, os.fstat(stream.fileno()).st_size).header()


def _merged(path: Path) -> _Header:
    """Read a header, and those of the other parts of a split model."""
    first = _header(path)
    parts = first.entries.get("split.count", 0)
    if not is_whole(parts, 0, _MOST_PARTS):
        remedy = f"give at most {_MOST_PARTS}"
        raise InputError("entry 'split.count'", f"{shown(parts)} parts", remedy)
    if parts < 2:
        return first
    named = _PART.fullmatch(path.name)
    if named is None or int(named[4]) != parts:
        problem = f"is one of {parts} parts, which its name does not tell"
        raise InputError("", problem, f"name it as in NAME-00001-of-{parts:05}.gguf")
    prefix, number, of, total, suffix = named.groups()
    headers = [
        first
        if part == int(number)
        else _header(path.with_name(f"{prefix}{part:05}{of}{total}{suffix}"))
        for part in range(1, parts + 1)
    ]
    tensors = {name: tensor for header in headers for name, tensor in header.tensors.items()}
    if len(tensors) < sum(len(header.tensors) for header in headers):
        raise InputError("", "its parts have tensors of the same name", "give parts of one model")
    stated = headers[0].entries.get("split.tensors.count", len(tensors))
    if stated != len(tensors):
        problem = f"its parts have {len(tensors)} tensors, not {shown(stated)}"
        raise InputError("", problem, "give parts of one model")
    return _Header(headers[0].entries, tensors)


def _transformer(header: _Header, path: Path) -> Transformer:
    entries = header.entries
    name = entries.get("general.architecture")
    if not isinstance(name, str):
        raise InputError("entry 'general.architecture'", "missing", "give a language model")
    settings = Settings(entries, {what: (f"{name}.{key}",) for what, key in _KEYS.items()})
    blocks = settings.blocks()
    if f"{name}.attention.kv_lora_rank" in entries:
        problem = "has attention with latent keys, whose cache is different"
        raise InputError("", problem, "give a model with keys and values per head")
    if entries.get(f"{name}.attention.causal") is False:
        problem = "is an encoder, whose tokens attend to later ones"
        raise InputError("", problem, "give a decoder")
    hidden, own = settings.whole("hidden size"), architecture(name)
    heads = _per_block(settings, "number of heads", blocks)
    kv_heads = _per_block(settings, "number of key-value heads", blocks, heads)
    width = hidden // heads[0]
    widths = settings.whole("width of a key", width), settings.whole("width of a value", width)
    size = settings.whole("window", 0)
    layers = tuple(
        Layer(heads[i], kv_heads[i], *widths, own.window(size, i)) for i in range(blocks)
    )
    words = header.tensors.get("token_embd.weight")
    if words is None or len(words.shape) != 2:
        problem = "has no matrix 'token_embd.weight'"
        raise InputError("", problem, "give a language model, or the first part of one")
    title = entries.get("general.name")
    return Transformer(
        name=title if isinstance(title, str) and title else path.stem,
        source=f"GGUF file {path.name}",
        hidden=hidden,
        vocab=words.shape[0],
        layers=layers,
        weights=tuple(GGUF.weights(header.tensors, layers)),
        norm="layer" if f"{name}.attention.layer_norm_epsilon" in entries else "rms",
        activations="float32",  # llama.cpp keeps hidden states in float32
        experts=settings.whole("number of experts", 0),
        experts_used=settings.whole("number of experts used", 0),
        longest=settings.whole("number of positions", 0) or None,
        parallel=own.parallel or bool(entries.get(f"{name}.use_parallel_residual")),
    )


def _per_block(
    settings: Settings, what: str, blocks: int, default: list[int] | None = None
) -> list[int]:
    """Return a whole number for each block, which the file gives for all or one by one."""
    key, value = settings.value(what)
    if value is None and default is not None:
        return default
    given = value if isinstance(value, list) else [value] * blocks
    if len(given) < blocks:
        raise InputError(key, f"{len(given)} values", f"give {blocks}")
    return [settings.checked(key, what, each) for each in given[:blocks]]
