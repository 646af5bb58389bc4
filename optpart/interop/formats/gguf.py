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
:mod:`~optpart.interop.formats.llm` for vertices, sizes in bytes, and what counts as work. A vision
tower (tensors ``v.…`` and ``mm.…``) is in the same file, or in one of its own (``mmproj``).
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import opened
from optpart.interop.formats.llm import (
    ATTENTION,
    EMBEDDING,
    EXPERTS,
    HEAD,
    MLP,
    MOST_LAYERS,
    NORM,
    TYPES,
    Layer,
    Step,
    Transformer,
    Weight,
    chain,
    check_keys,
)
from optpart.interop.formats.llm_vision import PATCH, TABLE, TOKEN, Eye, Tower, tower
from optpart.interop.formats.parsing import is_whole
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
_IN_BLOCK = re.compile(r"blk\.(\d{1,6})\.(.+)")
_KEYS = re.compile(r"blk\.(\d{1,6})\.attn_k\.weight")

#: Tensors outside of blocks, by the beginning of their names.
_OUTSIDE = (
    ("token_embd", EMBEDDING), ("position_embd", EMBEDDING), ("token_types", EMBEDDING),
    ("output_norm", NORM), ("output.", HEAD),
    ("rope_freqs", ATTENTION), ("rope_factors", ATTENTION),  # every block holds a copy
)  # fmt: skip
#: Tensors in blocks; a state-space layer has ssm_…, latent attention attn_kv_a_….
_INSIDE = (
    ("attn_kv_", ""), ("attn_q_a", ""), ("attn_q_b", ""), ("attn_k_b", ""), ("attn_v_b", ""),
    ("attn_", ATTENTION), ("post_attention_norm", ATTENTION),
    ("ffn_", MLP), ("post_ffw_norm", MLP), ("exp_probs_b", MLP), ("layer_output_norm", MLP),
)  # fmt: skip
_OF_EXPERTS = r"ffn_(gate|up|down|gate_up)(_exps|\.\d+)\."
_EXPERTS = re.compile(_OF_EXPERTS)


def _beginnings(place: str) -> str:
    return f"({'|'.join(re.escape(start) for start, at in (*_OUTSIDE, *_INSIDE) if at == place)})"


#: Pattern of the names of tensors by where they belong; in blocks, of what follows the number.
TENSORS = {place: _beginnings(place) for place in (EMBEDDING, ATTENTION, MLP, NORM, HEAD)} | {
    EXPERTS: _OF_EXPERTS
}

#: Architectures that compute attention and feed-forward of the same input.
_PARALLEL = frozenset({"falcon", "phi2", "gptj", "command-r", "cohere2"})
#: Of so many blocks, all but the last have a window; elsewhere all have it.
_WINDOW_PERIODS = {"gemma2": 2, "gpt-oss": 2, "cohere2": 4, "gemma3": 6, "llama4": 4}
#: Architectures whose windows stand side by side, and their length if the file has none.
_CHUNKS = {"llama4": 8192}

#: The vision tower, what it looks up, and what every token is multiplied with.
_SEEING = re.compile(r"(?:v|mm)\..+")
_LOOKED_UP, _OF_TOKENS = re.compile(r"v\.(?:position_embd|class_embd).*"), re.compile(r"mm\..+")
#: Patches of a side of the square that becomes a token, where the file does not tell.
_MERGES = {
    "mlp": 1, "gemma3": 4, "llama4": 2, "pixtral": 1, "qwen2vl_merger": 2, "qwen2.5vl_merger": 2,
}  # fmt: skip
_WINDOW = 112  # pixels of a side, where some blocks have windows


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as a GGUF file does."""
    return content.startswith(_MAGIC)


def read(
    path: str | Path, step: Step | None = None, *, mmproj: str | Path | None = None
) -> Workload:
    """Read what one step of a model computes.

    Parameters
    ----------
    step : Step, optional
        By default, decoding one token of one sequence.
    mmproj : path, optional
        The file of the vision tower, if the model's own does not hold it.

    Raises
    ------
    InputError
        If the file is no GGUF file or a faulty one, the model is no decoder of attention and
        feed-forward, or the step does not fit it.
    """
    with FaultsOf(path):
        header = _merged(Path(path))
        words = {name: w for name, w in header.tensors.items() if not _SEEING.fullmatch(name)}
        vision = _tower(header)
        if vision is not None and "token_embd.weight" not in words:
            problem = "holds a vision tower alone"
            raise InputError("", problem, "give the language model, and this file with --mmproj")
        if vision is not None and mmproj is not None:
            raise InputError("mmproj", "the model itself holds its vision tower", "leave it out")
        model = _transformer(replace(header, tensors=words), Path(path))
        if mmproj is not None:
            vision = _beside(Path(mmproj), model.hidden)
        return chain(replace(model, vision=vision), step or Step())


@dataclass(frozen=True)
class _Header:
    """Entries, and tensors by name, whose places are not known yet."""

    entries: Mapping[str, Any]
    tensors: Mapping[str, Weight]


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
            if key in found:
                raise InputError(f"entry {shown(key)}", "is there twice", "give it once")
            place = f"entry {shown(key)}"
            found[key] = self._value(self._number("I", place), place)
        infos: dict[str, Weight] = {}
        for number in range(tensors):
            name, weight = self._tensor(f"tensor {number}")
            if name in infos:
                raise InputError(f"tensor {name!r}", "is there twice", "give it once")
            infos[name] = weight
        return _Header(found, infos)

    def _tensor(self, place: str) -> tuple[str, Weight]:
        name = self._string(place)
        place = f"tensor {shown(name)}"
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
        return name, Weight("", None, tuple(shape), type_)

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
    tensors = {name: each for header in headers for name, each in header.tensors.items()}
    if len(tensors) < sum(len(header.tensors) for header in headers):
        raise InputError("", "its parts have tensors of the same name", "give parts of one model")
    stated = headers[0].entries.get("split.tensors.count", len(tensors))
    if stated != len(tensors):
        problem = f"its parts have {len(tensors)} tensors, not {shown(stated)}"
        raise InputError("", problem, "give parts of one model")
    return _Header(headers[0].entries, tensors)


class _Entries:
    """The entries of one architecture."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        architecture = entries.get("general.architecture")
        if not isinstance(architecture, str):
            raise InputError("entry 'general.architecture'", "missing", "give a language model")
        self.architecture = architecture

    def __contains__(self, key: str) -> bool:
        return f"{self.architecture}.{key}" in self._entries

    def whole(self, key: str, default: int | None = None, least: int = 1) -> int:
        """Return a whole number; with a default, that one if there is none."""
        value = self._entries.get(f"{self.architecture}.{key}", default)
        return self._checked(key, value, least)

    def per_block(self, key: str, blocks: int, default: list[int] | None = None) -> list[int]:
        """Return a whole number for each block, which the file gives for all or one by one."""
        value = self._entries.get(f"{self.architecture}.{key}")
        if value is None and default is not None:
            return default
        if not isinstance(value, list):
            return [self._checked(key, value, 1)] * blocks
        if len(value) < blocks:
            raise InputError(self._place(key), f"{len(value)} values", f"give {blocks}")
        return [self._checked(key, each, 1) for each in value[:blocks]]

    def _checked(self, key: str, value: object, least: int) -> int:
        if not is_whole(value, least, 10**9):
            problem = "missing" if value is None else shown(value)
            remedy = "give a decoder with attention, and a whole number here"
            raise InputError(self._place(key), problem, remedy)
        return value

    def _place(self, key: str) -> str:
        return f"entry {shown(f'{self.architecture}.{key}')}"


def _beside(path: Path, hidden: int) -> Tower:
    """Read the vision tower of a model with so many hidden numbers from a file of its own."""
    with FaultsOf(path):
        header = _header(path)
        found = _tower(header)
        if found is None:
            raise InputError("", "holds no vision tower (v.…)", "give the mmproj file of a model")
        shapes = [w.shape for name, w in header.tensors.items() if _OF_TOKENS.fullmatch(name)]
        if shapes and not any(hidden in shape for shape in shapes):
            problem = f"makes no states of {hidden} numbers, as the model has them"
            raise InputError("", problem, "give the mmproj file of the same model")
        return found


def _tower(header: _Header) -> Tower | None:
    """Return the vision tower, if the file holds one."""
    sees = {name: weight for name, weight in header.tensors.items() if _SEEING.fullmatch(name)}
    if not any(weight.is_matrix for weight in sees.values()):
        return None
    hears = next((name for name in header.tensors if name.startswith("a.")), None)
    if hears is not None:
        raise InputError(
            f"tensor {shown(hears)}", "is of an audio tower", "give the vision tower alone"
        )
    entries, own = header.entries, header.entries.get("general.architecture")

    def told(key: str) -> Any:
        return entries.get(f"{own}.vision.{key}", entries.get(f"clip.vision.{key}"))

    def eye() -> Eye:
        type_ = str(
            entries.get("clip.vision.projector_type", entries.get("clip.projector_type", own))
        )
        merges = told("projector.scale_factor"), told("spatial_merge_size"), _MERGES.get(type_)
        blocks, patch, pattern = told("block_count"), told("patch_size"), told("n_wa_pattern")
        window = told("window_size") or _WINDOW
        windows = all(is_whole(each, 1, 10**6) for each in (blocks, patch, pattern, window))
        return Eye(
            told("embedding_length"),
            blocks,
            told("attention.head_count"),
            patch,
            next((each for each in merges if each), 0),
            None if type_.startswith("qwen") else told("image_size"),
            int("v.class_embd" in sees),
            window // patch if windows else 0,
            blocks // pattern if windows else 0,
        )

    return tower(
        (
            (
                TABLE if _LOOKED_UP.fullmatch(name)
                else TOKEN if _OF_TOKENS.fullmatch(name)
                else PATCH,
                weight,
            )
            for name, weight in sees.items()
        ),
        eye,
    )  # fmt: skip


def _transformer(header: _Header, path: Path) -> Transformer:
    entries = _Entries(header.entries)
    blocks = entries.whole("block_count")
    if blocks > MOST_LAYERS:
        raise InputError("entry 'block_count'", f"{blocks}", f"give at most {MOST_LAYERS}")
    if "attention.kv_lora_rank" in entries:
        problem = "has attention with latent keys, whose cache is different"
        raise InputError("", problem, "give a model with keys and values per head")
    if header.entries.get(f"{entries.architecture}.attention.causal") is False:
        problem = "is an encoder, whose tokens attend to later ones"
        raise InputError("", problem, "give a decoder")
    hidden = entries.whole("embedding_length")
    heads = entries.per_block("attention.head_count", blocks)
    kv_heads = entries.per_block("attention.head_count_kv", blocks, default=heads)
    width = hidden // heads[0]
    key_width = entries.whole("attention.key_length", width)
    value_width = entries.whole("attention.value_length", width)
    chunk = _CHUNKS.get(entries.architecture, 0)
    window = entries.whole("attention.sliding_window", chunk, least=0)
    period = _WINDOW_PERIODS.get(entries.architecture, 0)
    limited = {n for n in range(blocks) if window and not (period and n % period == period - 1)}
    layers = tuple(
        Layer(
            heads[number],
            kv_heads[number],
            key_width,
            value_width,
            window if number in limited else None,
            chunked=bool(chunk) and number in limited,
        )
        for number in range(blocks)
    )
    check_keys(header.tensors, _KEYS, layers, "the entries say")
    words = header.tensors.get("token_embd.weight")
    if words is None or len(words.shape) != 2:
        problem = "has no matrix 'token_embd.weight'"
        raise InputError("", problem, "give a language model, or the first part of one")
    name = header.entries.get("general.name")
    return Transformer(
        name=name if isinstance(name, str) and name else path.stem,
        source=f"GGUF file {path.name}",
        hidden=hidden,
        vocab=words.shape[0],
        layers=layers,
        weights=tuple(_placed(name, weight) for name, weight in header.tensors.items()),
        norm="layer" if "attention.layer_norm_epsilon" in entries else "rms",
        activations="float32",  # llama.cpp keeps hidden states in float32
        experts=entries.whole("expert_count", 0, least=0),
        experts_used=entries.whole("expert_used_count", 0, least=0),
        copied=True,
        apart=True,
        longest=entries.whole("context_length") if "context_length" in entries else None,
        parallel=entries.architecture in _PARALLEL
        or bool(header.entries.get(f"{entries.architecture}.use_parallel_residual")),
    )


def _placed(name: str, weight: Weight) -> Weight:
    inside = _IN_BLOCK.fullmatch(name)
    rest, rows = (inside[2], _INSIDE) if inside else (name, _OUTSIDE)
    place = next((place for start, place in rows if rest.startswith(start)), "")
    if not place:
        problem = "is of no attention, feed-forward, norm, embedding or head"
        remedy = "give a decoder of blocks with attention and feed-forward"
        raise InputError(f"tensor {shown(name)}", problem, remedy)
    layer = int(inside[1]) if inside else None
    return weight._replace(place=place, layer=layer, experts=bool(inside and _EXPERTS.match(rest)))
