"""The names, types and shapes of tensors in safetensors files, of which only headers are read.

Layout: the length of the header (u64, little-endian), the header, the data. The header is a JSON
object from the name of each tensor to ``{"dtype": "BF16", "shape": [rows, columns],
"data_offsets": [begin, end]}``; ``"__metadata__"`` is skipped. Nothing need be behind the header.
``model.safetensors.index.json`` lists the files of a model: its ``weight_map`` names a file beside
it for every tensor.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import opened
from optpart.interop.formats.json import parse_json, read_json
from optpart.interop.formats.llm import TYPES, Weight
from optpart.interop.formats.parsing import is_whole
from optpart.problem.rational import shown

INDEX = ".index.json"
#: Parsed JSON takes up to twenty times its length; headers of thousands of tensors take 1 MB.
_MOST_HEADER = 2**25
_MOST_TENSORS = 200_000
_MOST_FILES = 1_000
_MOST_AXES = 5  # of filters over images in turn

_TENSOR_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8", "F8_E5M2": "float8",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "int8", "BOOL": "int8",
}  # fmt: skip

_WHOLE = "give a file as safetensors.torch.save_file writes it"


def tensors(path: Path) -> dict[str, Weight]:
    """Read the tensors of a file, or of all files of an index; their places are not known yet."""
    with FaultsOf(path):
        return _indexed(path) if path.name.lower().endswith(INDEX) else _tensors(path)


def _indexed(path: Path) -> dict[str, Weight]:
    """Read the tensors of all files of an index; places are not known yet."""
    document = read_json(path)
    files = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(files, dict) or not files:
        raise InputError("weight_map", "missing", 'give {"weight_map": {tensor: file, …}}')
    names: dict[str, None] = {}
    for tensor, name in files.items():
        # A file of the model stands beside its index; nothing else is opened.
        if not isinstance(name, str) or not re.fullmatch(r"[^/\\\0]{1,255}", name) or name == "..":
            problem = f"{shown(name)} is no name of a file"
            raise InputError(f"weight_map.{shown(tensor)}", problem, "name a file in this folder")
        names[name] = None
    if len(names) > _MOST_FILES:
        raise InputError("weight_map", f"{len(names)} files", f"give at most {_MOST_FILES}")
    found: dict[str, Weight] = {}
    for name in names:
        for tensor, weight in _tensors(path.parent / name).items():
            if files.get(tensor) != name:
                problem = f"{tensor!r} is in {name!r}, where the index does not have it"
                raise InputError("weight_map", problem, "give the index of these files")
            found[tensor] = weight
    missing = next((tensor for tensor in files if tensor not in found), None)
    if missing is not None:
        problem = f"{missing!r} is not in {files[missing]!r}"
        raise InputError("weight_map", problem, "give the index of these files")
    return found


def _tensors(path: Path) -> dict[str, Weight]:
    """Read the header of a file; places are not known yet."""
    with FaultsOf(path):
        document = parse_json(_header(path))
        if not isinstance(document, dict):
            raise InputError("", "its header is no object", _WHOLE)
        document.pop("__metadata__", None)
        if not 0 < len(document) <= _MOST_TENSORS:
            remedy = f"give 1 to {_MOST_TENSORS}"
            raise InputError("", f"{len(document)} tensors", remedy)
        return {name: _tensor(name, entry) for name, entry in document.items()}


def _header(path: Path) -> str:
    with opened(path) as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= _MOST_HEADER:
            problem = f"is no safetensors file (its header would have {length} bytes)"
            raise InputError("", problem, _WHOLE)
        content = stream.read(length)
    if len(content) < length:
        raise InputError("", "ends within its header", _WHOLE)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InputError("", "is no safetensors file", _WHOLE) from None


def _tensor(name: str, entry: Any) -> Weight:
    place = f"tensor {shown(name)}"
    if not isinstance(entry, dict):
        raise InputError(place, "not an object", _WHOLE)
    known = entry.get("dtype")
    type_ = _TENSOR_TYPES.get(known) if isinstance(known, str) else None
    if type_ is None:
        remedy = f"give one of {', '.join(_TENSOR_TYPES)}"
        raise InputError(place, f"unknown type {shown(known)}", remedy)
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if (
        not isinstance(shape, list)
        or len(shape) > _MOST_AXES
        or not all(is_whole(length, 1, 2**40) for length in shape)
    ):
        remedy = f"give at most {_MOST_AXES} lengths of 1 to 2^40"
        raise InputError(place, f"shape {shown(shape)}", remedy)
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(is_whole(offset, 0, 2**63) for offset in offsets)
        or offsets[1] - offsets[0] != math.prod(shape) * TYPES[type_][1]
    ):
        problem = f"offsets {shown(offsets)} do not fit its type and shape"
        raise InputError(place, problem, _WHOLE)
    return Weight("", None, tuple(shape), type_)
