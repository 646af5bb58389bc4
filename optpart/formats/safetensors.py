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
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text
from optpart.formats.json import parse_json
from optpart.formats.llm import (
    ATTENTION,
    EMBEDDING,
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
    is_whole,
)
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

SUMMARY = "language models of Hugging Face (safetensors and config.json)"
SUFFIXES = (".safetensors", ".safetensors.index.json")

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
_CONFIG_TYPES = {
    "float32": "float32", "float16": "float16", "bfloat16": "bfloat16", "float64": "float64",
}  # fmt: skip

_WHOLE = "give a file as safetensors.torch.save_file writes it"

_IN_BLOCK = re.compile(r"(?:.*\.)?(?:layers|h|blocks)\.(\d{1,6})\.(.+)")
_EXPERT = re.compile(r"(?:mlp|block_sparse_moe|ffn)\.experts\.")
#: What transformers computes today; old files still hold it.
_COMPUTED = re.compile(r"(.*\.)?(rotary_emb\.inv_freq|masked_bias|attn\.bias|attention\.bias)")
#: Tensors in blocks, by the beginning of the rest of their names.
_INSIDE = (
    ("self_attn_layer_norm", ATTENTION), ("self_attn", ATTENTION), ("self_attention", ATTENTION),
    ("attn", ATTENTION), ("attention", ATTENTION), ("input_layernorm", ATTENTION),
    ("ln_1.", ATTENTION), ("ln_attn", ATTENTION),
    ("mlp", MLP), ("block_sparse_moe", MLP), ("feed_forward", MLP), ("fc1.", MLP), ("fc2.", MLP),
    ("ffn", MLP), ("ln_2.", MLP), ("ln_mlp", MLP), ("final_layer_norm", MLP),
    ("post_attention_layernorm", MLP), ("pre_feedforward_layernorm", MLP),
    ("post_feedforward_layernorm", MLP),
)  # fmt: skip
#: Tensors outside of blocks, by the end of their names.
_OUTSIDE = re.compile(
    r"(?:(?:model|transformer|decoder|gpt_neox|language_model)\.)*(?:"
    r"(?P<embedding>(?:embed_tokens|wte|wpe|embed_positions|word_embeddings|embed_in"
    r"|word_embeddings_layernorm)\.(?:weight|bias))"
    r"|(?P<norm>(?:norm|ln_f|final_layer_norm|final_layernorm)\.(?:weight|bias))"
    r"|(?P<head>(?:lm_head|embed_out)\.(?:weight|bias)))"
)
_OUTSIDE_PLACES = {"embedding": EMBEDDING, "norm": NORM, "head": HEAD}

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

#: Of so many blocks, all but the last have a window; elsewhere all have it.
_WINDOW_PERIODS = {"gemma2": 2, "gpt_oss": 2, "cohere2": 4, "gemma3_text": 6}
_PARALLEL = frozenset({"phi", "gptj", "cohere", "cohere2"})


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
            found = parse_json(read_text(config))
            if not isinstance(found, dict):
                raise InputError("", "not an object", "give the config.json of a model")
            settings = _Config(found)
        return chain(_transformer(tensors, settings, path), step or Step())


def _indexed(path: Path) -> dict[str, Weight]:
    """Read the tensors of all files of an index; places are not known yet."""
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
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError("", "is no file", "name a file")
        with open(path, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MOST_HEADER:
                problem = f"is no safetensors file (its header would have {length} bytes)"
                raise InputError("", problem, _WHOLE)
            content = stream.read(length)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise InputError("", problem, "name a readable file") from None
    except ValueError:  # a null byte in the path
        raise InputError("", "cannot be the name of a file", "name a readable file") from None
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


class _Config:
    """The settings of a model in ``config.json``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        # Models that also see have those of language apart.
        nested = document.get("text_config")
        self._document = {**document, **nested} if isinstance(nested, dict) else document
        quantised = self._document.get("quantization_config")
        method = quantised.get("quant_method") if isinstance(quantised, dict) else None
        if quantised is not None and method != "fp8":
            problem = f"was quantised by {shown(method)}, into tensors of other shapes"
            raise InputError("quantization_config", problem, "give the model as it was before")
        if "kv_lora_rank" in self._document:
            problem = "attention with latent keys, whose cache is different"
            raise InputError("kv_lora_rank", problem, "give a model with keys and values per head")

    def __getitem__(self, key: str) -> Any:
        return self._document.get(key)

    def whole(self, what: str, default: int | None = None) -> int:
        """Return a whole number by its name in :data:`_KEYS`; ``null`` counts as absent."""
        names = _KEYS[what]
        key = next((name for name in names if self[name] is not None), names[0])
        value = default if self[key] is None else self[key]
        if value == default and default is not None:
            return default
        if not is_whole(value, 1, 10**9):
            problem = f"the {what} is {'missing' if value is None else shown(value)}"
            raise InputError(key, problem, "give a whole number of a decoder with attention")
        return int(value)  # type: ignore[arg-type]

    def layers(self) -> tuple[Layer, ...]:
        """Return the attention of every block."""
        blocks, heads = self.whole("number of blocks"), self.whole("number of heads")
        if blocks > MOST_LAYERS:
            problem = f"{blocks} blocks"
            raise InputError("num_hidden_layers", problem, f"give at most {MOST_LAYERS}")
        width = self.whole("width of a head", max(1, self.whole("hidden size") // heads))
        window = self.whole("window", 0)
        if self["use_sliding_window"] is False:
            window = 0
        return tuple(
            Layer(
                heads,
                self._kv_heads(heads),
                width,
                width,
                window if window and self._has_window(number, blocks) else None,
            )
            for number in range(blocks)
        )

    def _kv_heads(self, heads: int) -> int:
        if self["model_type"] == "falcon" and not self["new_decoder_architecture"]:
            return 1 if self["multi_query"] is not False else heads
        return self.whole("number of key-value heads", heads)

    def _has_window(self, number: int, blocks: int) -> bool:
        kinds = self["layer_types"]
        if kinds is not None:
            if not isinstance(kinds, list) or len(kinds) != blocks:
                raise InputError("layer_types", shown(kinds), f"give a list of {blocks}")
            return bool(kinds[number] == "sliding_attention")
        from_block = self["max_window_layers"]
        if is_whole(from_block, 0, 10**9):
            return number >= int(from_block)
        model = self["model_type"]
        period = _WINDOW_PERIODS.get(model, 0) if isinstance(model, str) else 0
        return not (period and number % period == period - 1)


def _transformer(tensors: Mapping[str, Weight], config: _Config, path: Path) -> Transformer:
    layers = config.layers()
    skipped = [name for name in tensors if _COMPUTED.fullmatch(name)]
    # A bias of attention has the name of an old mask, but one axis.
    skipped = [name for name in skipped if len(tensors[name].shape) != 1 or "inv_freq" in name]
    weights = [_placed(name, weight) for name, weight in tensors.items() if name not in {*skipped}]
    for name, weight in tensors.items():
        _check_keys(name, weight, layers)
    has_head = any(weight.place == HEAD and weight.is_matrix for weight in weights)
    assumed = []
    if has_head and config["tie_word_embeddings"] is True:
        weights = [each for each in weights if each.place != HEAD or not each.is_matrix]
        assumed.append("The head's matrix in the file is that of the embedding, and counts once.")
    elif not has_head and config["tie_word_embeddings"] is False:
        problem = "has no matrix of the head, which config.json does not tie to the embedding"
        raise InputError("", problem, "give all files of the model, by its index")
    if skipped:
        assumed.append(f"Left out as computed: {_listed(skipped)}.")
    type_ = config["dtype"] or config["torch_dtype"]
    activations = _CONFIG_TYPES.get(type_) if isinstance(type_, str) else None
    if activations is None:
        activations = "bfloat16"
        assumed.append("config.json names no type of hidden states: bfloat16.")
    model_type = config["model_type"]
    epsilon = config["rms_norm_eps"]
    return Transformer(
        name=path.resolve().parent.name or "unnamed",
        source=f"safetensors file {path.name}",
        hidden=config.whole("hidden size"),
        vocab=_rows(weights, config),
        layers=layers,
        weights=tuple(weights),
        norm="layer" if epsilon is None else "rms",
        activations=activations,
        experts=config.whole("number of experts", 0),
        experts_used=config.whole("number of experts used", 0),
        longest=config.whole("number of positions", 0) or None,
        parallel=bool(config["parallel_attn"] or config["use_parallel_residual"])
        or (isinstance(model_type, str) and model_type in _PARALLEL),
        assumed=tuple(assumed),
    )


def _rows(weights: Iterable[Weight], config: _Config) -> int:
    """Return the rows of the embedding, which may be filled up beyond the vocabulary."""
    vocab, hidden = config.whole("vocabulary"), config.whole("hidden size")
    rows = [
        weight.shape[0]
        for weight in weights
        if weight.place == EMBEDDING and weight.is_matrix and weight.shape[1:] == (hidden,)
    ]
    return min((count for count in rows if count >= vocab), default=vocab)


def _placed(name: str, weight: Weight) -> Weight:
    inside = _IN_BLOCK.fullmatch(name)
    place = ""
    experts = False
    if inside:
        rest = inside[2]
        place = next((place for start, place in _INSIDE if rest.startswith(start)), "")
        experts = bool(_EXPERT.match(rest))
    elif outside := _OUTSIDE.fullmatch(name):
        place = _OUTSIDE_PLACES[str(outside.lastgroup)]
    if not place or name.endswith((".qweight", ".qzeros")):
        problem = "is of no attention, feed-forward, norm, embedding or head"
        remedy = "give a decoder of blocks with attention and feed-forward, not quantised"
        raise InputError(f"tensor {shown(name)}", problem, remedy)
    return weight._replace(place=place, layer=int(inside[1]) if inside else None, experts=experts)


def _check_keys(name: str, weight: Weight, layers: tuple[Layer, ...]) -> None:
    """Compare the matrix of the keys with what the configuration says of heads."""
    named = re.fullmatch(r".*\.(\d{1,6})\.self_attn\.k_proj\.weight", name)
    if named and int(named[1]) < len(layers):
        layer = layers[int(named[1])]
        expected = layer.kv_heads * layer.key_width
        if weight.shape[0] != expected:
            problem = f"has {weight.shape[0]} rows, but config.json says {expected}"
            raise InputError(f"tensor {shown(name)}", problem, "correct one of them")


def _listed(names: list[str]) -> str:
    some = ", ".join(names[:3])
    return some if len(names) <= 3 else f"{some} and {len(names) - 3} more"
