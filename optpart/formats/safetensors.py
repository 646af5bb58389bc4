"""Language models as safetensors, with the ``config.json`` of Hugging Face beside them.

Layout: the length of the header (u64, little-endian), the header, the data. The header is a JSON
object from the name of each tensor to ``{"dtype": "BF16", "shape": [rows, columns],
"data_offsets": [begin, end]}``; ``"__metadata__"`` is skipped. Only headers are read, and nothing
need be behind them. Of a model in several files, name ``model.safetensors.index.json``, whose
``weight_map`` names a file beside it for every tensor.

``config.json`` tells what shapes do not: heads, mixtures of experts, windows, tied embeddings,
under the names that the models of Hugging Face's transformers use. Which part of a block a tensor
belongs to follows from its name. Masks and rotations that old files hold are skipped, since they
are computed today. Models that were quantised into tensors of other shapes (GPTQ, AWQ,
bitsandbytes) and latent attention are refused. See :mod:`~optpart.formats.llm` for vertices, sizes
in bytes, and what counts as work.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text
from optpart.formats.architectures import TRANSFORMERS, Settings, Stored, architecture, opened
from optpart.formats.json import Entry, is_whole, parse_json
from optpart.formats.llm import EMBEDDING, HEAD, TYPES, Layer, Step, Transformer, Weight, chain
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

_INDEX = ".index.json"
#: Parsed JSON takes up to twenty times its length; headers of thousands of tensors take 1 MB.
_MOST_HEADER = 2**25
_MOST_TENSORS = 200_000
_MOST_FILES = 1_000
_MOST_AXES = 4

_TENSOR_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8", "F8_E5M2": "float8",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "int8", "BOOL": "int8",
}  # fmt: skip

_WHOLE = "give a file as safetensors.torch.save_file writes it"

#: What transformers computes today; old files still hold it.
_COMPUTED = re.compile(r"(.*\.)?(rotary_emb\.inv_freq|masked_bias|attn\.bias|attention\.bias)")
#: Keys of config.json, in the order in which they count.
_KEYS = {
    "hidden size": ("hidden_size", "n_embd", "d_model"),
    "number of blocks": ("num_hidden_layers", "n_layer", "n_layers"),
    "number of heads": ("num_attention_heads", "n_head", "n_heads"),
    "number of key-value heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "vocabulary": ("vocab_size",),
    "width of a head": ("head_dim",),
    "window": ("sliding_window",),
    "number of experts": ("num_local_experts", "num_experts"),
    "number of experts used": ("num_experts_per_tok",),
    "number of positions": ("max_position_embeddings", "n_positions", "n_ctx"),
}


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as a safetensors file does, with a length and a JSON object."""
    return len(content) > 9 and content[8:9] == b"{" and content[4:8] == bytes(4)


def read(path: str | Path, step: Step | None = None) -> Workload:
    """Read what one step of a model computes.

    Parameters
    ----------
    path : str or Path
        A file of tensors, or the index of several.
    step : Step, optional
        By default, decoding one token of one sequence.

    Raises
    ------
    InputError
        If a file is faulty or missing, the model is no decoder of attention and feed-forward, or
        the step does not fit it.
    """
    path = Path(path)
    with FaultsOf(path):
        tensors = _indexed(path) if path.name.lower().endswith(_INDEX) else _tensors(path)
        config = path.parent / "config.json"
        if not os.path.isfile(config):
            problem = "no config.json beside it, which says how many heads there are"
            raise InputError("", problem, "put the model's config.json into the same folder")
        with FaultsOf(config):
            settings = _settings(Entry(parse_json(read_text(config))).content)
        return chain(_transformer(tensors, settings, path), step or Step())


def _indexed(path: Path) -> dict[str, Stored]:
    """Read the tensors of all files of an index."""
    document = parse_json(read_text(path))
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
    found: dict[str, Stored] = {}
    for name in names:
        for tensor, stored in _tensors(path.parent / name).items():
            if files.get(tensor) != name:
                problem = f"{tensor!r} is in {name!r}, where the index does not have it"
                raise InputError("weight_map", problem, "give the index of these files")
            found[tensor] = stored
    missing = next((tensor for tensor in files if tensor not in found), None)
    if missing is not None:
        problem = f"{missing!r} is not in {files[missing]!r}"
        raise InputError("weight_map", problem, "give the index of these files")
    return found


def _tensors(path: Path) -> dict[str, Stored]:
    """Read the header of a file."""
    with FaultsOf(path):
        document = Entry(parse_json(_header(path)))
        tensors = {
            name: entry for name, entry in document.content.items() if name != "__metadata__"
        }
        if not 0 < len(tensors) <= _MOST_TENSORS:
            raise InputError("", f"{len(tensors)} tensors", f"give 1 to {_MOST_TENSORS}")
        return {name: _tensor(Entry(tensors[name], f"tensor {shown(name)}")) for name in tensors}


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


def _tensor(entry: Entry) -> Stored:
    known = entry.get("dtype")
    type_ = _TENSOR_TYPES.get(known) if isinstance(known, str) else None
    if type_ is None:
        remedy = f"give one of {', '.join(_TENSOR_TYPES)}"
        raise InputError(entry.place, f"unknown type {shown(known)}", remedy)
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not _are_whole(shape, 1, 2**40) or len(shape) > _MOST_AXES:
        remedy = f"give at most {_MOST_AXES} lengths of 1 to 2^40"
        raise InputError(entry.place, f"shape {shown(shape)}", remedy)
    if (
        not _are_whole(offsets, 0, 2**63)
        or len(offsets) != 2
        or offsets[1] - offsets[0] != math.prod(shape) * TYPES[type_][1]
    ):
        problem = f"offsets {shown(offsets)} do not fit its type and shape"
        raise InputError(entry.place, problem, _WHOLE)
    return Stored(tuple(shape), type_)


def _are_whole(values: Any, least: int, most: int) -> bool:
    return isinstance(values, list) and all(is_whole(each, least, most) for each in values)


def _settings(document: Mapping[str, Any]) -> Settings:
    """Return the settings of a model in ``config.json``."""
    # Models that also see have those of language apart.
    nested = document.get("text_config")
    values = {**document, **nested} if isinstance(nested, dict) else document
    quantised = values.get("quantization_config")
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    if quantised is not None and method != "fp8":
        problem = f"was quantised by {shown(method)}, into tensors of other shapes"
        raise InputError("quantization_config", problem, "give the model as it was before")
    if "kv_lora_rank" in values:
        problem = "attention with latent keys, whose cache is different"
        raise InputError("kv_lora_rank", problem, "give a model with keys and values per head")
    return Settings(values, _KEYS)


def _layers(settings: Settings) -> tuple[Layer, ...]:
    """Return the attention of every block."""
    given, blocks, heads = settings.values, settings.blocks(), settings.whole("number of heads")
    width = settings.whole("width of a head", max(1, settings.whole("hidden size") // heads))
    kv_heads = settings.whole("number of key-value heads", heads)
    if given.get("model_type") == "falcon" and not given.get("new_decoder_architecture"):
        kv_heads = heads if given.get("multi_query") is False else 1
    size = settings.whole("window", 0)
    if given.get("use_sliding_window") is False:
        size = 0
    own = architecture(given.get("model_type"))
    kinds, from_block = given.get("layer_types"), given.get("max_window_layers")
    if size and kinds is not None:
        if not isinstance(kinds, list) or len(kinds) != blocks:
            raise InputError("layer_types", shown(kinds), f"give a list of {blocks}")
        windows = [size if kind == "sliding_attention" else None for kind in kinds]
    elif isinstance(from_block, int) and is_whole(from_block, 0, 10**9):
        windows = [size if size and number >= from_block else None for number in range(blocks)]
    else:
        windows = [own.window(size, number) for number in range(blocks)]
    return tuple(Layer(heads, kv_heads, width, width, window) for window in windows)


def _transformer(tensors: Mapping[str, Stored], settings: Settings, path: Path) -> Transformer:
    layers, given = _layers(settings), settings.values
    # A bias of attention has the name of an old mask, but one axis.
    skipped = [
        name
        for name, tensor in tensors.items()
        if _COMPUTED.fullmatch(name) and (len(tensor.shape) != 1 or "inv_freq" in name)
    ]
    kept = {name: tensor for name, tensor in tensors.items() if name not in {*skipped}}
    weights = TRANSFORMERS.weights(kept, layers)
    has_head = any(weight.place == HEAD and weight.is_matrix for weight in weights)
    assumed = []
    if has_head and given.get("tie_word_embeddings") is True:
        weights = [each for each in weights if each.place != HEAD or not each.is_matrix]
        assumed.append("The head's matrix in the file is that of the embedding, and counts once.")
    elif not has_head and given.get("tie_word_embeddings") is False:
        problem = "has no matrix of the head, which config.json does not tie to the embedding"
        raise InputError("", problem, "give all files of the model, by its index")
    if skipped:
        some = ", ".join(skipped[:3])
        more = f" and {len(skipped) - 3} more" if len(skipped) > 3 else ""
        assumed.append(f"Left out as computed: {some}{more}.")
    activations = given.get("dtype") or given.get("torch_dtype")
    if activations not in ("float64", "float32", "float16", "bfloat16"):
        activations = "bfloat16"
        assumed.append("config.json names no type of hidden states: bfloat16.")
    parallel = given.get("parallel_attn"), given.get("use_parallel_residual")
    own = architecture(given.get("model_type")).parallel
    return Transformer(
        name=path.resolve().parent.name or "unnamed",
        source=f"safetensors file {path.name}",
        hidden=settings.whole("hidden size"),
        vocab=_rows(weights, settings),
        layers=layers,
        weights=tuple(weights),
        norm="layer" if given.get("rms_norm_eps") is None else "rms",
        activations=activations,
        experts=settings.whole("number of experts", 0),
        experts_used=settings.whole("number of experts used", 0),
        longest=settings.whole("number of positions", 0) or None,
        parallel=any(parallel) or (own and False not in parallel),
        assumed=tuple(assumed),
    )


def _rows(weights: Iterable[Weight], settings: Settings) -> int:
    """Return the rows of the embedding, which may be filled up beyond the vocabulary."""
    vocab, hidden = settings.whole("vocabulary"), settings.whole("hidden size")
    rows = [
        weight.shape[0]
        for weight in weights
        if weight.place == EMBEDDING and weight.is_matrix and weight.shape[1:] == (hidden,)
    ]
    return min((count for count in rows if count >= vocab), default=vocab)
