"""Transformers as safetensors, with the ``config.json`` of Hugging Face beside them.

Layout: the length of the header (u64, little-endian), the header, the data. The header is a JSON
object from the name of each tensor to ``{"dtype": "BF16", "shape": [rows, columns],
"data_offsets": [begin, end]}``; ``"__metadata__"`` is skipped. Only headers are read, and nothing
need be behind them. Of a model in several files, name ``model.safetensors.index.json``, whose
``weight_map`` names a file beside it for every tensor; or name the folder. Of a folder that holds
``config.json`` alone, transformers itself, if it is installed, makes the model without its numbers
and tells tensors and shapes.

``config.json`` tells what shapes do not: heads, mixtures of experts, windows, tied embeddings,
under the names that the models of Hugging Face's transformers use. Of models that also see, the
vision tower and its projector are a vertex of their own. Which part of a block a tensor
belongs to follows from its name: decoders (Llama, Mixtral, GPT-2, …), encoders (BERT, ViT), and
both together (T5, Whisper). Masks and rotations that old files hold are skipped, since they are
computed today, and so are blocks that predict further tokens. Under latent attention (DeepSeek),
the cache holds the latent vector. Models that were quantised into tensors of other shapes (GPTQ,
AWQ, bitsandbytes) are refused. See :mod:`~optpart.interop.formats.llm` for vertices, sizes
in bytes, and what counts as work.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats import transformers_model
from optpart.interop.formats.json import parse_json, read_json
from optpart.interop.formats.llm import (
    ATTENTION,
    CROSS,
    EMBEDDING,
    HEAD,
    MLP,
    MOST_LAYERS,
    NORM,
    VISION,
    Layer,
    Step,
    Transformer,
    Weight,
    chain,
    check_keys,
)
from optpart.interop.formats.llm_vision import PATCH, TABLE, TOKEN, Eye, tower
from optpart.interop.formats.parsing import is_whole, named
from optpart.interop.formats.safetensors import tensors as tensors_of
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

_CONFIG_TYPES = {
    "float32": "float32", "float16": "float16", "bfloat16": "bfloat16", "float64": "float64",
}  # fmt: skip

#: The stack that a tensor belongs to, the number of its block, and the rest of its name.
_IN_BLOCK = re.compile(r"((?:.*?\.)?(?:layers|layer|h|blocks|block))\.(\d{1,6})\.(.+)")
_ENCODER, _DECODER = (re.compile(rf"(?:model\.)?{stack}\..+") for stack in ("encoder", "decoder"))
_KEY_MATRIX = re.compile(r".*\.(\d{1,6})\.self_attn\.k_proj\.weight")
_EXPERT = re.compile(r"(?:mlp|block_sparse_moe|ffn|feed_forward)\.experts\.")
#: Settings of the parts of models that also see, and the tensors that they see with: those of
#: blocks and filters, and what is looked up.
_NESTED = ("text_config", "vision_config")
_SEEING = re.compile(
    r"(?:model\.)?(?:vision_tower|vision_model|visual|multi_modal_projector|connector)\..+"
)
_OF_PATCHES = re.compile(r".*(?:\.(?:layers?|blocks?|h)\.\d+\.|patch_?(?:emb|conv)).*")
_LOOKED_UP = re.compile(r".*(?:\.class_|cls_token|pos\w*_emb).*")
_FILTERS = re.compile(r".*patch_?(?:emb|conv).*\.weight")
#: What transformers computes today; old files still hold it.
_COMPUTED = re.compile(r"(.*\.)?(rotary_emb\.inv_freq|masked_bias|attn\.bias|attention\.bias)")
#: Tensors in blocks, by the beginning of the rest of their names.
_INSIDE = (
    ("self_attn_layer_norm", ATTENTION), ("self_attn", ATTENTION), ("self_attention", ATTENTION),
    ("attn", ATTENTION), ("attention", ATTENTION), ("input_layernorm", ATTENTION),
    ("ln_1.", ATTENTION), ("ln_attn", ATTENTION),
    ("layer.0.", ATTENTION), ("layernorm_before", ATTENTION), ("encoder_attn.k_proj", CROSS),
    ("encoder_attn.v_proj", CROSS), ("encoder_attn", ATTENTION),
    ("layer.1.EncDecAttention.k", CROSS), ("layer.1.EncDecAttention.v", CROSS),
    ("layer.1.EncDecAttention", ATTENTION), ("layer.1.", MLP), ("layer.2.", MLP),
    ("intermediate.", MLP), ("output.", MLP), ("layernorm_after", MLP),
    ("mlp", MLP), ("block_sparse_moe", MLP), ("feed_forward", MLP), ("fc1.", MLP), ("fc2.", MLP),
    ("ffn", MLP), ("ln_2.", MLP), ("ln_mlp", MLP), ("final_layer_norm", MLP),
    ("post_attention_layernorm", MLP), ("pre_feedforward_layernorm", MLP),
    ("post_feedforward_layernorm", MLP),
)  # fmt: skip
#: Tensors outside of blocks, by their names; the first that matches counts.
_OUTSIDE = (
    (re.compile(r"(?:.*\.)?(?:lm_head|embed_out|proj_out|classifier|qa_outputs|score)\..+"), HEAD),
    (re.compile(r"(?:.*\.)?(?:cls|pooler|pre_classifier|vocab_\w+)\..+"), HEAD),
    (
        re.compile(
            r"(?:.*\.)?(?:embeddings|embed_tokens|wte|wpe|embed_positions|word_embeddings|embed_in"
            r"|word_embeddings_layernorm|shared|conv[12])\..+"
        ),
        EMBEDDING,
    ),
    (re.compile(r"(?:.*\.)?(?:norm|ln_f|final_layer_?norm|layer_?norm)\.(?:weight|bias)"), NORM),
)

_CONFIG = "config.json"

#: Keys of config.json, in the order in which they count.
_KEYS = {
    "hidden size": ("hidden_size", "n_embd", "d_model"),
    "number of blocks": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "number of heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "number of key-value heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "vocabulary": ("vocab_size",),
    "width of a head": ("head_dim", "d_kv"),
    "window": ("attention_chunk_size", "sliding_window"),
    "number of experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "number of experts used": ("num_experts_per_tok",),
    "number of positions": ("max_position_embeddings", "n_positions", "n_ctx"),
    "rank of latent keys": ("kv_lora_rank",),
    "width of rotated keys": ("qk_rope_head_dim",),
}

#: Keys that hold for the encoder or the decoder of a model that has both, and what they replace.
_OF_STACK = {
    "encoder": {
        "encoder_layers": "num_hidden_layers",
        "encoder_attention_heads": "num_attention_heads",
        "max_source_positions": "max_position_embeddings",
    },
    "decoder": {
        "decoder_layers": "num_hidden_layers",
        "num_decoder_layers": "num_hidden_layers",
        "decoder_attention_heads": "num_attention_heads",
        "max_target_positions": "max_position_embeddings",
    },
}

#: Of so many blocks, all but the last have a window; elsewhere all have it.
_WINDOW_PERIODS = {"gemma2": 2, "gpt_oss": 2, "cohere2": 4, "gemma3_text": 6, "llama4_text": 4}
#: Models that are encoders though their blocks are not called so, and those whose norm is RMS
#: under another key.
_ENCODERS = frozenset({"vit", "deit", "dinov2"})
_RMS = frozenset({"t5", "mt5", "umt5"})
_ENCODER_BLOCK = re.compile(r"(?:\w+\.)?encoder\.(?:layer|layers|block)\.\d")
#: A matrix that makes words of states.
_WORDS = re.compile(
    r"(?:language_model\.)?(?:lm_head|embed_out|proj_out|cls\.predictions\.decoder)\.weight"
)
_EMBEDDED = re.compile(r"(?:.*\.)?(?:embed_tokens|wte|word_embeddings|embed_in|shared)\.weight")
_PARALLEL = frozenset({"phi", "gptj", "cohere", "cohere2"})


def sniff(content: bytes | str | Path) -> bool:
    """Return whether a folder holds ``config.json``, or bytes begin as a safetensors file does.

    No other format has such a folder; the file begins with a length and a JSON object.
    """
    if isinstance(content, bytes):
        return len(content) > 9 and content[8:9] == b"{" and content[4:8] == bytes(4)
    return os.path.isfile(os.path.join(content, _CONFIG))


def read(path: str | Path, step: Step | None = None) -> Workload:
    """Read what one step of a model computes.

    Parameters
    ----------
    path : str or Path
        A folder, a file of tensors, or the index of several.
    step : Step, optional
        By default, decoding one token of one sequence, or reading all at once of encoders.

    Raises
    ------
    InputError
        If a file is faulty or missing, the model does not consist of blocks of attention and
        feed-forward, or the step does not fit it.
    """
    path = Path(path)
    with FaultsOf(path):
        config, tensors = _opened(path)
        return chain(_transformer(tensors, config, path), step or Step())


def class_of(folder: str | Path) -> str | None:
    """Return the class of transformers that ``config.json`` names, if it is a name."""
    found = parse_json(read_text(Path(folder) / _CONFIG)).get("architectures")
    first = found[0] if isinstance(found, list) and found else None
    return first if isinstance(first, str) and first.isidentifier() else None


@dataclass(frozen=True)
class Modules:
    """The modules of a model, as a ``device_map`` names them.

    Attributes
    ----------
    vertices : mapping from str to str
        The vertex, of whole blocks, that computes each module: the largest ones that belong to one
        vertex. Every tensor is in one of them.
    shared : tuple of (str, str)
        Pairs of modules that share a tensor.
    confirmed : bool
        Whether transformers itself named them; otherwise, the files did.
    """

    vertices: Mapping[str, str]
    shared: tuple[tuple[str, str], ...]
    confirmed: bool


def modules(path: str | Path) -> Modules:
    """Return the modules of a model.

    Parameters
    ----------
    path : str or Path
        A folder, a file of tensors, or the index of several.

    Raises
    ------
    InputError
        As :func:`read`.
    """
    path = Path(path)
    with FaultsOf(path):
        confirmed = transformers_model.is_there()
        if confirmed:
            names = transformers_model.names(path if path.is_dir() else path.parent)
        else:
            tensors = [name for name in _opened(path)[1] if not _COMPUTED.fullmatch(name)]
            names = {**{name: name for name in tensors}, **dict(_unwritten(tensors))}
        vertices = _parts(names)
        inside: dict[str, set[str]] = {}
        for name, vertex in vertices.items():
            for module in _around(name):
                inside.setdefault(module, set()).add(vertex)
        found = {
            name: next((each for each in _around(name) if len(inside[each]) == 1), name)
            for name in names
        }
        shared = {(found[name], found[of]) for name, of in names.items()}
        return Modules(
            {module: vertices[name] for name, module in found.items()},
            tuple(sorted(pair for pair in shared if pair[0] != pair[1])),
            confirmed,
        )


def _around(tensor: str) -> list[str]:
    """Return the modules that a tensor is in, the outermost first."""
    return [tensor[:i] for i, sign in enumerate(tensor) if sign == "."]


def _unwritten(tensors: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names under which files do not repeat a matrix, and the name that they hold."""
    words = next(filter(_EMBEDDED.fullmatch, tensors), None)
    if words is None:
        return
    if not any(_WORDS.fullmatch(name) or "predictions" in name for name in tensors):
        yield "lm_head.weight", words
    if words == "shared.weight":
        yield from ((f"{stack}.embed_tokens.weight", words) for stack in ("encoder", "decoder"))


def _opened(path: Path) -> tuple[Mapping[str, Any], dict[str, Weight]]:
    """Read ``config.json`` and the tensors."""
    folder = path if path.is_dir() else path.parent
    file: Path | None = path
    if path.is_dir():
        indices = sorted(folder.glob("*.safetensors.index.json"))
        files = indices or sorted(folder.glob("*.safetensors"))
        if len(files) > 1:
            names = ", ".join(each.name for each in files[:4])
            problem = f"holds several models or parts of one ({names})"
            raise InputError("", problem, "name the file, or add the index of its parts")
        file = next(iter(files), None)
    config = folder / _CONFIG
    if not config.is_file():
        problem = f"no {_CONFIG} beside it, which says how many heads there are"
        raise InputError("", problem, f"put the model's {_CONFIG} into the same folder")
    with FaultsOf(config):
        found = read_json(config)
        if not isinstance(found, dict):
            raise InputError("", "not an object", f"give the {_CONFIG} of a model")
    return found, transformers_model.tensors(folder) if file is None else tensors_of(file)


class _Config:
    """The settings of a model in ``config.json``."""

    def __init__(
        self, document: Mapping[str, Any], of: Literal["encoder", "decoder"] = "decoder"
    ) -> None:
        # Models that also see have those of language apart.
        nested = document.get("text_config")
        own = {**document, **nested} if isinstance(nested, dict) else document
        of_stack = {name: own[key] for key, name in _OF_STACK[of].items() if own.get(key)}
        self._document = {**own, **of_stack}
        quantised = self._document.get("quantization_config")
        method = quantised.get("quant_method") if isinstance(quantised, dict) else None
        if quantised is not None and method not in ("fp8", "mxfp4"):
            problem = f"was quantised by {shown(method)}, into tensors of other shapes"
            raise InputError("quantization_config", problem, "give the model as it was before")

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
            raise InputError(key, problem, "give a whole number of a model with attention")
        return value

    def layers(self) -> tuple[Layer, ...]:
        """Return the attention of every block."""
        blocks, heads = self.whole("number of blocks"), self.whole("number of heads")
        if blocks > MOST_LAYERS:
            problem = f"{blocks} blocks"
            raise InputError("num_hidden_layers", problem, f"give at most {MOST_LAYERS}")
        width = self.whole("width of a head", max(1, self.whole("hidden size") // heads))
        rank = self.whole("rank of latent keys", 0)
        if rank:  # every head reads the same latent vector, and a part that is rotated
            key = rank + self.whole("width of rotated keys")
            return (Layer(heads, heads, key, rank, latent=key),) * blocks
        window = self.whole("window", 0)
        if self["use_sliding_window"] is False:
            window = 0
        limited = {each for each in range(blocks) if window and self._has_window(each, blocks)}
        chunked = self["attention_chunk_size"] is not None
        return tuple(
            Layer(
                heads,
                self._kv_heads(heads),
                width,
                width,
                window if number in limited else None,
                chunked=chunked and number in limited,
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
            return kinds[number] in ("sliding_attention", "chunked_attention")
        rotated = self["no_rope_layers"]  # which is 1 where positions are rotated
        if self["attention_chunk_size"] is not None and rotated:
            if not isinstance(rotated, list) or len(rotated) != blocks:
                raise InputError("no_rope_layers", shown(rotated), f"give a list of {blocks}")
            return bool(rotated[number])
        from_block = self["max_window_layers"]
        if is_whole(from_block, 0, 10**9):
            return number >= int(from_block)
        model = self["model_type"]
        period = _WINDOW_PERIODS.get(model, 0) if isinstance(model, str) else 0
        return not (period and number % period == period - 1)


def _transformer(
    tensors: Mapping[str, Weight], document: Mapping[str, Any], path: Path
) -> Transformer:
    seeing = [name for name in tensors if _SEEING.fullmatch(name)]
    if seeing and any(isinstance(document.get(each), dict) for each in _NESTED):
        sees = {name: tensors[name] for name in seeing}
        of_words = {name: weight for name, weight in tensors.items() if name not in sees}
        found = tower(
            ((_sees_with(name), weight) for name, weight in sees.items()),
            lambda: _eye(sees, document),
        )
        return replace(_transformer(of_words, document, path), vision=found)
    whole = _Stack(tensors, _Config(document), document, path)
    if not _has_both(tensors):
        return whole.transformer()
    encoder = {name: weight for name, weight in tensors.items() if _ENCODER.fullmatch(name)}
    decoder = {name: weight for name, weight in tensors.items() if name not in encoder}
    inner = _Stack(encoder, _Config(document, "encoder"), document, path).transformer(encoder=True)
    outer = _Stack(decoder, _Config(document), document, path).transformer()
    return replace(outer, encoder=inner)


def _sees_with(name: str) -> str:
    return TABLE if _LOOKED_UP.fullmatch(name) else PATCH if _OF_PATCHES.fullmatch(name) else TOKEN


def _eye(tensors: Mapping[str, Weight], document: Mapping[str, Any]) -> Eye:
    """Return how a model sees, by its configuration and the shapes of its filters."""
    nested = document.get("vision_config")
    config = nested if isinstance(nested, dict) else {}

    def told(*names: str, settings: Mapping[str, Any] = config) -> Any:
        found = map(settings.get, names)
        value = next((each for each in found if each is not None), None)
        return value[0] if isinstance(value, list) and value else value

    widths = [each.shape[0] for name, each in tensors.items() if _FILTERS.fullmatch(name)]
    blocks, patch = told("num_hidden_layers", "depth"), told("patch_size")
    image, joined = told("image_size"), {**document, **config}
    tokens = told("mm_tokens_per_image", settings=joined)
    merge = told("spatial_merge_size", settings=joined)
    shuffled = told("pixel_shuffle_ratio", "downsample_ratio", settings=joined)
    known = all(is_whole(each, 1, 10**6) for each in (patch, image, tokens))
    if merge is None and known:
        merge = math.isqrt((image // patch) ** 2 // tokens)
    elif merge is None and isinstance(shuffled, float) and 0 < shuffled <= 1:
        merge = round(1 / shuffled)
    elif merge is None:
        merge = told("scale_factor", settings=joined) or 1
    window, whole = told("window_size"), config.get("fullatt_block_indexes")
    windows = is_whole(window, 1, 10**6) and is_whole(patch, 1, 10**6)
    full = len(whole) if isinstance(whole, list) else 0
    return Eye(
        widths[0] if widths else told("hidden_size"),
        blocks,
        told("num_attention_heads", "num_heads", "attention_heads"),
        patch,
        merge,
        image,
        int(any(re.search(r"\.class_|cls_token", name) for name in tensors)),
        window // patch if windows else 0,
        full,
    )


def _has_both(tensors: Iterable[str]) -> bool:
    """Return whether there are blocks of an encoder and of a decoder."""
    inside = [name for name in tensors if _IN_BLOCK.fullmatch(name)]
    return all(any(map(each.fullmatch, inside)) for each in (_ENCODER, _DECODER))


@dataclass(frozen=True)
class _Stack:
    """The tensors and settings of an encoder or of a decoder."""

    tensors: Mapping[str, Weight]
    config: _Config
    document: Mapping[str, Any]
    path: Path

    def transformer(self, *, encoder: bool | None = None) -> Transformer:
        """Return the model; whether it is an encoder follows from its names if it is not said."""
        config, tensors = self.config, self.tensors
        model_type = config["model_type"] if isinstance(config["model_type"], str) else ""
        if encoder is None:
            encoder = model_type in _ENCODERS or any(map(_ENCODER_BLOCK.match, tensors))
        layers = config.layers()
        weights, assumed = self._weights(len(layers))
        check_keys(tensors, _KEY_MATRIX, layers, f"{_CONFIG} says")
        tied, weights = self._tied(weights, assumed, encoder=encoder)
        type_ = config["dtype"] or config["torch_dtype"]
        activations = _CONFIG_TYPES.get(type_) if isinstance(type_, str) else None
        if activations is None:
            activations = "bfloat16"
            assumed.append(f"{_CONFIG} names no type of hidden states: bfloat16.")
        placed = list(weights.values())
        hidden = config.whole("hidden size")
        epsilon = config["rms_norm_eps"]
        return Transformer(
            name=(self.path if self.path.is_dir() else self.path.parent).resolve().name
            or "unnamed",
            source=f"safetensors file {self.path.name}",
            hidden=hidden,
            vocab=_rows(placed, config, encoder=encoder),
            layers=layers,
            weights=tuple(placed),
            norm="rms" if epsilon is not None or model_type in _RMS else "layer",
            activations=activations,
            experts=config.whole("number of experts", 0),
            experts_used=config.whole("number of experts used", 0),
            longest=config.whole("number of positions", 0) or None,
            parallel=bool(config["parallel_attn"] or config["use_parallel_residual"])
            or model_type in _PARALLEL,
            causal=not encoder,
            positions=_positions(placed, hidden) if encoder else None,
            head_tied=tied if encoder else None,
            assumed=tuple(assumed),
        )

    def _weights(self, blocks: int) -> tuple[dict[str, Weight], list[str]]:
        """Return what is held, with its places, and what to say of the rest."""
        config, weights, assumed = self.config, dict[str, Weight](), list[str]()
        computed = [name for name, each in self.tensors.items() if _is_computed(name, each)]
        if computed:
            assumed.append(f"Left out as computed: {named(computed, 3)}.")
        further = blocks if config["num_nextn_predict_layers"] else MOST_LAYERS
        ahead, stacks = dict[int, None](), dict[str, None]()
        for name, weight in self.tensors.items():
            packed = name.removesuffix("_blocks")
            if name in computed or name.endswith("_scales"):
                continue
            if packed != name:  # two numbers in a byte, in blocks of 32 with a scale each
                *rows, count, half = weight.shape
                weight = weight._replace(shape=(*rows, count * half * 2), type="mxfp4")
            placed = _placed(packed, weight)
            if inside := _IN_BLOCK.fullmatch(packed):
                stacks[inside[1]] = None
            if placed.layer is not None and further <= placed.layer:
                ahead[placed.layer] = None
                continue
            weights[packed] = placed
        if len(stacks) > 1:
            problem = f"has more than one stack of blocks: {named(list(stacks), 3)}"
            raise InputError("", problem, "give the language model alone")
        if ahead:
            assumed.append(f"Left out: {len(ahead)} blocks that predict further tokens.")
        return weights, assumed

    def _tied(
        self, weights: dict[str, Weight], assumed: list[str], *, encoder: bool
    ) -> tuple[bool, dict[str, Weight]]:
        """Return whether the head uses the matrix of the embedding, and what is left then."""
        tied = self.config["tie_word_embeddings"]
        words = {
            name for name, each in weights.items()
            if each.place == HEAD and each.is_matrix and _WORDS.fullmatch(name)
        }  # fmt: skip
        if words and tied is True:
            weights = {name: each for name, each in weights.items() if name not in words}
            assumed.append(
                "The head's matrix in the file is that of the embedding, and counts once."
            )
            return True, weights
        if encoder:
            return not words and any("predictions" in name for name in weights), weights
        if not words and tied is False:
            problem = f"has no matrix of the head, which {_CONFIG} does not tie to the embedding"
            raise InputError("", problem, "give all files of the model, by its index")
        return not words, weights


def _is_computed(name: str, weight: Weight) -> bool:
    # A bias of attention has the name of an old mask, but one axis.
    return bool(_COMPUTED.fullmatch(name)) and (len(weight.shape) != 1 or "inv_freq" in name)


def _rows(weights: Iterable[Weight], config: _Config, *, encoder: bool) -> int:
    """Return the rows of the embedding, which may be filled up beyond the vocabulary."""
    tables = [each for each in weights if each.place == EMBEDDING and len(each.shape) == 2]
    if encoder and not (tables and config["vocab_size"]):
        return 0
    vocab, hidden = config.whole("vocabulary"), config.whole("hidden size")
    rows = [each.shape[0] for each in tables if each.shape[1] == hidden]
    found = min((count for count in rows if count >= vocab), default=0)
    return found if found or encoder else vocab


def _positions(weights: Iterable[Weight], hidden: int) -> int | None:
    """Return the positions of a table that has as many as an image or a sound."""
    filters = [each for each in weights if each.place == EMBEDDING and len(each.shape) > 2]
    tables = [
        each for each in weights
        if each.place == EMBEDDING and len(each.shape) in (2, 3) and each.shape[-1] == hidden
    ]  # fmt: skip
    return max((each.shape[-2] for each in tables), default=None) if filters else None


def _placed(name: str, weight: Weight) -> Weight:
    inside = _IN_BLOCK.fullmatch(name)
    place = ""
    experts = False
    if inside:
        rest = inside[3]
        place = next((place for start, place in _INSIDE if rest.startswith(start)), "")
        experts = bool(_EXPERT.match(rest))
        if "relative_attention_bias" in rest:  # a table, in which positions are looked up
            weight = weight._replace(shape=(weight.elements,))
    else:
        place = next((place for pattern, place in _OUTSIDE if pattern.fullmatch(name)), "")
        if name.endswith("encoder.conv1.weight"):  # the second halves the positions
            weight = weight._replace(uses=2)
    if not place or name.endswith((".qweight", ".qzeros")):
        problem = "is of no attention, feed-forward, norm, embedding or head"
        remedy = "give a model of blocks with attention and feed-forward, not quantised"
        raise InputError(f"tensor {shown(name)}", problem, remedy)
    return weight._replace(place=place, layer=int(inside[2]) if inside else None, experts=experts)


def _parts(names: Iterable[str]) -> dict[str, str]:
    """Return the vertex of every tensor, of whole blocks."""
    both = _has_both(names)
    found = {}
    for name in names:
        if _SEEING.fullmatch(name):
            found[name] = VISION
            continue
        placed = _placed(name, Weight("", None, (1, 1), "float32"))
        vertex = placed.place if placed.layer is None else f"block.{placed.layer}"
        if both and placed.place != HEAD:
            vertex = f"{'encoder' if _ENCODER.fullmatch(name) else 'decoder'}.{vertex}"
        found[name] = vertex
    return found
