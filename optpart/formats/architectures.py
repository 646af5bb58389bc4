"""Architectures of language models: in what they differ, and how programs name their parts.

To add an architecture, add a row to :data:`ARCHITECTURES`; names of tensors, modules and settings
that no other has go into the tables of the program that writes them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from optpart.errors import InputError
from optpart.formats.json import is_whole
from optpart.formats.llm import ATTENTION, EMBEDDING, HEAD, MLP, MOST_LAYERS, NORM, Layer, Weight
from optpart.problem.rational import shown


class Modules(NamedTuple):
    """Names of modules in transformers; that of a block is a format of its number."""

    embedding: tuple[str, ...]
    block: str
    norm: str
    head: str


@dataclass(frozen=True)
class Architecture:
    """In what an architecture differs from others.

    Attributes
    ----------
    names : tuple of str
        ``model_type`` in config.json, ``general.architecture`` in GGUF, and what users say.
    window_period : int
        Of so many blocks, all but the last have a window; 0 if all have it.
    parallel : bool
        Whether attention and feed-forward of a block read the same input.
    modules : Modules, optional
        Those of the architectures that others follow.
    """

    names: tuple[str, ...]
    window_period: int = 0
    parallel: bool = False
    modules: Modules | None = None

    def window(self, size: int, number: int) -> int | None:
        """Return the window of a block; ``size`` is 0 if the model has none."""
        period = self.window_period
        return None if not size or (period and number % period == period - 1) else size


ROWS = (
    Architecture(
        ("llama",),
        modules=Modules(
            ("model.embed_tokens", "model.rotary_emb"), "model.layers.{}", "model.norm", "lm_head"
        ),
    ),
    Architecture(
        ("gpt2",),
        modules=Modules(
            ("transformer.wte", "transformer.wpe"),
            "transformer.h.{}",
            "transformer.ln_f",
            "lm_head",
        ),
    ),
    Architecture(
        ("gpt-neox", "gpt_neox", "gptneox"),
        modules=Modules(
            ("gpt_neox.embed_in", "gpt_neox.rotary_emb"),
            "gpt_neox.layers.{}",
            "gpt_neox.final_layer_norm",
            "embed_out",
        ),
    ),
    Architecture(("falcon",), parallel=True),
    Architecture(("phi", "phi2"), parallel=True),
    Architecture(("gptj",), parallel=True),
    Architecture(("cohere", "command-r"), parallel=True),
    Architecture(("cohere2",), window_period=4, parallel=True),
    Architecture(("gemma2",), window_period=2),
    Architecture(("gemma3", "gemma3_text"), window_period=6),
    Architecture(("gpt_oss", "gpt-oss"), window_period=2),
)

#: By each of their names.
ARCHITECTURES = {name: row for row in ROWS for name in row.names}

#: Names of modules outside of blocks, and of the lists of blocks.
MODULES = {
    EMBEDDING: "embed_tokens|wte|wpe|embed_positions|word_embeddings|embed_in"
    "|word_embeddings_layernorm",
    NORM: "norm|ln_f|final_layer_?norm",
    HEAD: "lm_head|embed_out",
}
BLOCKS = "layers?|h|blocks?|blk"


def architecture(name: object) -> Architecture:
    """Return the architecture of a name; one that is not listed has nothing of its own."""
    plain = Architecture(("",))
    return ARCHITECTURES.get(name, plain) if isinstance(name, str) else plain


class Stored(NamedTuple):
    """Shape and type of a tensor in a file."""

    shape: tuple[int, ...]
    type: str


@dataclass(frozen=True)
class Naming:
    """The names of tensors.

    Attributes
    ----------
    block : pattern
        Of tensors in blocks: the number of the block, and the rest.
    inside : tuple of (str, str)
        Places by the beginning of the rest; the empty place is refused.
    outside : tuple of (str, str)
        Places by a pattern of the whole name.
    experts, keys : pattern
        Of the rest: tensors of experts, and the matrix of the keys.
    """

    block: re.Pattern[str]
    inside: tuple[tuple[str, str], ...]
    outside: tuple[tuple[str, str], ...]
    experts: re.Pattern[str]
    keys: re.Pattern[str]

    def weights(self, tensors: Mapping[str, Stored], layers: Sequence[Layer]) -> list[Weight]:
        """Return the weights that some tensors are.

        Raises
        ------
        InputError
            If a tensor is of no known part, or the keys are not those of the attention.
        """
        return [self._weight(name, tensor, layers) for name, tensor in tensors.items()]

    def _weight(self, name: str, tensor: Stored, layers: Sequence[Layer]) -> Weight:
        inside = self.block.fullmatch(name)
        number, rest = (int(inside[1]), inside[2]) if inside else (None, "")
        if inside:
            place = next((place for start, place in self.inside if rest.startswith(start)), "")
        else:
            place = next((p for form, p in self.outside if re.fullmatch(form, name)), "")
        if not place or name.endswith((".qweight", ".qzeros")):
            problem = "is of no attention, feed-forward, norm, embedding or head"
            remedy = "give a decoder of blocks with attention and feed-forward, not quantised apart"
            raise InputError(f"tensor {shown(name)}", problem, remedy)
        if number is not None and number < len(layers) and self.keys.fullmatch(rest):
            expected = layers[number].kv_heads * layers[number].key_width
            if tensor.shape[0] != expected:
                problem = f"has {tensor.shape[0]} rows, but the settings say {expected}"
                raise InputError(f"tensor {shown(name)}", problem, "correct one of them")
        experts = bool(self.experts.match(rest))
        return Weight(place, number, tensor.shape, tensor.type, experts)


GGUF = Naming(
    block=re.compile(r"blk\.(\d{1,6})\.(.+)"),
    inside=(
        # Latent attention; a state-space layer has ssm_….
        ("attn_kv_", ""), ("attn_q_a", ""), ("attn_q_b", ""), ("attn_k_b", ""), ("attn_v_b", ""),
        ("attn_", ATTENTION), ("post_attention_norm", ATTENTION),
        ("ffn_", MLP), ("post_ffw_norm", MLP), ("exp_probs_b", MLP), ("layer_output_norm", MLP),
    ),
    outside=(
        (r"(token_embd|position_embd|token_types).*", EMBEDDING),
        (r"output_norm.*", NORM), (r"output\..*", HEAD),
        (r"(rope_freqs|rope_factors).*", ATTENTION),  # every block holds a copy
    ),
    experts=re.compile(r"ffn_(gate|up|down|gate_up)(_exps|\.\d+)\."),
    keys=re.compile(r"attn_k\.weight"),
)  # fmt: skip

_INNER = r"(?:(?:model|transformer|decoder|gpt_neox|language_model)\.)*"

TRANSFORMERS = Naming(
    block=re.compile(rf"(?:.*\.)?(?:{BLOCKS})\.(\d{{1,6}})\.(.+)"),
    inside=(
        ("self_attn_layer_norm", ATTENTION), ("self_attn", ATTENTION),
        ("self_attention", ATTENTION),
        ("attn", ATTENTION), ("attention", ATTENTION), ("input_layernorm", ATTENTION),
        ("ln_1.", ATTENTION), ("ln_attn", ATTENTION),
        ("mlp", MLP), ("block_sparse_moe", MLP), ("feed_forward", MLP), ("fc1.", MLP),
        ("fc2.", MLP), ("ffn", MLP), ("ln_2.", MLP), ("ln_mlp", MLP), ("final_layer_norm", MLP),
        ("post_attention_layernorm", MLP), ("pre_feedforward_layernorm", MLP),
        ("post_feedforward_layernorm", MLP),
    ),
    outside=tuple((rf"{_INNER}(?:{names})\.(?:weight|bias)", p) for p, names in MODULES.items()),
    experts=re.compile(r"(?:mlp|block_sparse_moe|ffn)\.experts\."),
    keys=re.compile(r"self_attn\.k_proj\.weight"),
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a file says of a model besides its tensors.

    Attributes
    ----------
    values : mapping
        ``None`` counts as absent.
    keys : mapping from str to tuple of str
        Keys of each setting, in the order in which they count.
    """

    values: Mapping[str, Any]
    keys: Mapping[str, tuple[str, ...]]

    def value(self, what: str) -> tuple[str, Any]:
        """Return the key and the value of a setting."""
        names = self.keys[what]
        key = next((name for name in names if self.values.get(name) is not None), names[0])
        return key, self.values.get(key)

    def whole(self, what: str, default: int | None = None) -> int:
        """Return a whole number; only one whose default is 0 may be 0."""
        key, value = self.value(what)
        return self.checked(key, what, default if value is None else value, int(default != 0))

    def checked(self, key: str, what: str, value: Any, least: int = 1) -> int:
        """Return a value if it is a whole number."""
        if not is_whole(value, least, 10**9):
            problem = f"the {what} is {'missing' if value is None else shown(value)}"
            raise InputError(key, problem, "give a whole number of a decoder with attention")
        return int(value)

    def blocks(self) -> int:
        """Return the number of blocks."""
        blocks = self.whole("number of blocks")
        if blocks > MOST_LAYERS:
            key, _ = self.value("number of blocks")
            raise InputError(key, f"{blocks} blocks", f"give at most {MOST_LAYERS}")
        return blocks


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its beginning; a fault is an :class:`InputError`."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError("", "is no file", "name a file")
        with open(path, "rb") as stream:
            yield stream
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise InputError("", problem, "name a readable file") from None
    except ValueError:  # a null byte in the path
        raise InputError("", "cannot be the name of a file", "name a readable file") from None
