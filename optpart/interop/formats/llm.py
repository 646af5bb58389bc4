"""Large language models as chains of transformer blocks, wherever their weights are read from.

A reader (:mod:`~optpart.interop.formats.gguf`, :mod:`~optpart.interop.formats.hugging_face`,
:mod:`~optpart.interop.formats.llm_names`) says which weights a :class:`Transformer` has and where
they belong; :func:`chain` turns it into a workload of one :class:`Step`. All sizes are in bytes.

Vertices: ``embedding``, then ``block.0``, ``block.1``, … (or ``block.0.attention`` and
``block.0.mlp``, …), ``norm``, and ``head``, whose output is the logits. Of a mixture of experts,
``block.0.experts`` may be a vertex of its own, behind ``block.0.mlp`` with norm, router and shared
experts; or several groups of experts are, ``block.0.experts.0``, …, which need not wait for each
other, and ``block.0.sum`` adds up what they and the router hand on. The cache may be a vertex of
its own, too: ``block.0.attention`` with all projections hands queries, keys and values on to
``block.0.cache``, which attends, and hands what it finds on to ``block.0.output``. That is on the
device of ``block.0.attention``, from which it has the hidden states, and takes no time: the work
of the projection behind the cache counts with those before. Of a model with a vision tower,
``vision`` is a vertex before the embedding (:mod:`~optpart.interop.formats.llm_vision`), whose
edge to it is there if it has images. Each vertex hands its hidden
states on to the next: batch x tokens x hidden numbers; a router also hands on which experts every
token uses, and with what weights. A group reads the states of all tokens and hands on a sum for
each. Models of an encoder
alone have neither cache nor causal mask, and no norm or head if their weights have none. A model of
encoder and decoder has two such chains, ``encoder.embedding``, … and ``decoder.embedding``, …,
``head``; every block of the decoder reads what the encoder ends with. One step computes both.

Memory
    The weights of a vertex and, for attention, the keys and values of ``context`` positions of
    every sequence; under a sliding window, those of the window only. Blocks of a decoder also
    hold keys and values of what the encoder read. If the head uses the matrix of the embedding,
    they share a device and the embedding alone holds it, or each holds a copy. Buffers for
    intermediate results are counted apart, as a reserve of every device: they are those of
    llama.cpp with flash attention, for as many tokens as it computes at a time.

Work
    :mod:`~optpart.interop.formats.operator_cost` defines what counts. Every token is multiplied
    with every matrix, of a mixture of experts with those of the experts that it uses. Attention
    counts for each query, head and position that the causal mask and the window admit. Convolutions
    of an embedding (images, sound) count; rows of a table are only read. Other elementwise
    operations inside blocks (norms, activation functions, rotations) are not counted: together they
    are less than a hundredth. The final norm is a vertex and counts.

Bytes
    A vertex reads its weights once, of the embedding only the rows of the tokens, of experts as
    many as the tokens can use, or are expected to use by counts
    (:mod:`~optpart.interop.formats.llm_experts`). It reads its input and writes its output.
    Attention also reads the positions that it attends to and writes those of new tokens.
    Intermediate results inside a vertex stay in caches, as fused kernels keep them.

*Decoding* computes ``tokens`` new tokens per sequence (1) at the end of ``context`` positions:
every weight is read for few operations. *Prefilling* computes ``tokens`` tokens (``context``) from
an empty cache: each weight read serves them all. A decoding step may read part of a prompt beside
(``prefill_tokens``), so that the weights serve both.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.limits import MOST_EXPERT_GROUPS, MOST_TOKENS, check_size
from optpart.base.rounding import number as shortened
from optpart.interop.formats.llm_experts import UNIFORM, Counts, Group, use_of
from optpart.interop.formats.llm_vision import Tower, sight
from optpart.interop.formats.operator_cost import (
    NORMALIZATION,
    RMS_NORMALIZATION,
    attention,
    contraction,
)
from optpart.interop.formats.parsing import is_whole
from optpart.problem.graph import GraphBuilder
from optpart.problem.rational import shown
from optpart.problem.units import quantity
from optpart.problem.workload import Work, Workload

#: Elements and bytes of a block of each type. Names of quantised types are those of GGML.
TYPES = {
    "float64": (1, 8), "float32": (1, 4), "float16": (1, 2), "bfloat16": (1, 2), "float8": (1, 1),
    "int64": (1, 8), "int32": (1, 4), "int16": (1, 2), "int8": (1, 1),
    "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34),
    "q2_K": (256, 84), "q3_K": (256, 110), "q4_K": (256, 144), "q5_K": (256, 176),
    "q6_K": (256, 210),
    "iq1_s": (256, 50), "iq1_m": (256, 56), "iq2_xxs": (256, 66), "iq2_xs": (256, 74),
    "iq2_s": (256, 82), "iq3_xxs": (256, 98), "iq3_s": (256, 110), "iq4_nl": (32, 18),
    "iq4_xs": (256, 136), "tq1_0": (256, 54), "tq2_0": (256, 66),
    "mxfp4": (32, 17), "nvfp4": (64, 36),
}  # fmt: skip

_SAME = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "fp32": "float32", "fp16": "float16", "fp8": "float8",
}  # fmt: skip
_TYPE_OF = {name.lower(): name for name in TYPES} | _SAME

EMBEDDING, ATTENTION, CROSS, MLP, NORM, HEAD = PLACES = (
    "embedding", "attention", "cross", "mlp", "norm", "head",
)  # fmt: skip
#: The part of a feed-forward that is a mixture of experts.
EXPERTS = "experts"
_SUM = "sum"
VISION = "vision"

BLOCKS, HALVES, THIRDS = ("block", "attention+mlp", "attention+mlp+experts")
#: The cache of a block may be apart from its attention.
CACHE, OUTPUT = "cache", "output"
_APART = f"+{CACHE}"
GRANULARITIES = (
    BLOCKS, HALVES, THIRDS, *(each.replace("+", f"{_APART}+", 1) for each in (HALVES, THIRDS)),
)  # fmt: skip

#: Far beyond any model; a count is a few digits in a file.
MOST_LAYERS = 10_000

#: Bytes that a runtime takes on a device for itself: what llama.cpp leaves free (``--fit-target``).
RUNTIME = 2**30
#: Tokens that llama.cpp computes at a time (``--ubatch-size``).
_AT_A_TIME = 512
#: Parts of a prompt that its devices work on at a time (``GGML_SCHED_MAX_COPIES``).
_COPIES = 4

_CONTEXT = 4096
_LOGITS = "float32"  # as samplers take them

#: Kind of each norm, and its operations per element.
_NORMS = {
    "layer": ("LayerNormalization", NORMALIZATION),
    "rms": ("RMSNormalization", RMS_NORMALIZATION),
}


class Weight(NamedTuple):
    """A tensor of weights.

    Attributes
    ----------
    place : str
        One of :data:`PLACES`; ``cross`` for what makes keys and values of the encoder's output.
    layer : int or None
        The block that holds it; ``None`` outside of blocks, or if every block holds a copy.
    shape : tuple of int
        The last axis is contiguous.
    type : str
        One of :data:`TYPES`.
    experts : bool
        Whether it belongs to experts of a mixture, alike, of which a token uses some.
    uses : int
        How often a convolution of the embedding is applied for each position.
    """

    place: str
    layer: int | None
    shape: tuple[int, ...]
    type: str
    experts: bool = False
    uses: int = 1

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return size(self.type, self.shape)

    @property
    def is_matrix(self) -> bool:
        """True if tokens are multiplied with it; vectors are added or scale."""
        return len(self.shape) > 1


class Layer(NamedTuple):
    """The attention of a block.

    Attributes
    ----------
    heads, kv_heads : int
    key_width, value_width : int
        Elements per head.
    window : int or None
        How many positions a token attends to at most, itself included.
    latent : int or None
        Elements of a position in the cache, if keys and values of all heads are made of them.
    chunked : bool
        Whether windows stand side by side: a token attends to those before it in its own one.
    """

    heads: int
    kv_heads: int
    key_width: int
    value_width: int
    window: int | None = None
    latent: int | None = None
    chunked: bool = False


@dataclass(frozen=True)
class Transformer:
    """An embedding, blocks of attention and feed-forward, a norm, a head.

    Attributes
    ----------
    name, source : str
    hidden, vocab : int
        ``vocab`` is 0 if it reads no words.
    layers : tuple of Layer
    weights : tuple of Weight
        Without a matrix at the head, the head uses that of the embedding.
    norm : {"rms", "layer"}
    activations : str
        Type of the hidden states.
    experts, experts_used : int
        Of a mixture; 0 otherwise.
    longest : int or None
        Positions that the model was trained for.
    parallel : bool
        Whether attention and feed-forward of a block read the same input.
    causal : bool
        Whether a token attends to earlier ones only; otherwise it is an encoder.
    positions : int or None
        Positions of every input, of models of images and sound.
    encoder : Transformer or None
        What the decoder attends to beside its own tokens.
    head_tied : bool or None
        Whether the head uses the matrix of the embedding; by default if it has none of its own.
    copied : bool
        Whether its runtime gives such a head a copy.
    apart : bool
        Whether its runtime can place the experts of a block apart from the rest.
    vision : Tower or None
        What makes hidden states of images.
    assumed : tuple of str
    """

    name: str
    source: str
    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    weights: tuple[Weight, ...]
    norm: str
    activations: str
    experts: int = 0
    experts_used: int = 0
    longest: int | None = None
    parallel: bool = False
    causal: bool = True
    positions: int | None = None
    encoder: Transformer | None = None
    head_tied: bool | None = None
    copied: bool = False
    apart: bool = False
    vision: Tower | None = None
    assumed: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """Number of parameters of what reads words.

        A matrix that embedding and head share counts once.
        """
        own = sum(weight.elements for weight in self.weights)
        return own + (self.encoder.parameters if self.encoder else 0)

    @property
    def active_parameters(self) -> int:
        """Number of parameters that one token uses."""
        expert = sum(weight.elements for weight in self.weights if weight.experts)
        return self.parameters - expert + _share(expert, self.experts_used, self.experts)

    @property
    def tied(self) -> bool:
        """True if the head uses the matrix of the embedding."""
        if self.head_tied is not None:
            return self.head_tied
        return not any(each.place == HEAD and each.is_matrix for each in self.weights)


@dataclass(frozen=True)
class Step:
    """The tokens that are computed at a time.

    Attributes
    ----------
    mode : {"decode", "prefill"}, optional
        By default ``decode``; encoders know nothing else than reading all at once.
    batch : int
        Sequences, ≥ 1.
    tokens : int, optional
        New tokens per sequence, ≥ 1: by default 1 if decoding, or else ``context``.
    context : int, optional
        Positions per sequence that the cache has room for, ≥ ``tokens``; a decoding step ends
        with a full one. By default 4,096, or what the model was trained for if that is less.
    kv_dtype : str
        Type of keys and values.
    activations : str, optional
        Type of the hidden states; by default the model's.
    granularity : {"block", "attention+mlp", "attention+mlp+experts"}, optional
        One, two or, of a mixture of experts, three vertices per block; by default as the runtime
        of the file can place them. With ``attention+cache``, the cache of a block is apart.
    tied : {"share", "copy"}, optional
        If the head uses the matrix of the embedding: whether they share a device, or both hold
        it; by default as the runtime of the file does.
    logits : {"last", "all"}
        Whether the head computes the logits of the last token only, or of all new ones.
    reserve : int or str, optional
        Memory that is kept free on every device, in bytes or as in ``"2 GiB"``; by default
        :data:`RUNTIME` and room for intermediate results.
    prefill_tokens : int, optional
        Tokens of the prompt of one more sequence that a decoding step reads beside its new ones:
        the last ones of ``context`` positions (chunked prefill).
    expert_use : path, ``"uniform"``, or sequence of sequence of int, optional
        How often each expert of each mixture was used
        (:mod:`~optpart.interop.formats.llm_experts`); by default, the tokens of a step use as many
        different ones as they can.
    expert_groups : int, optional
        Vertices that the experts of a block are split into, ≥ 2.
    images : int, optional
        Images in the prompt of every sequence, ≥ 0: their tokens are among those that are read. By
        default none; the vision tower is held where it is part of a file, with 0 also elsewhere.
    image_size : int, optional
        Pixels of a side of an image; by default as the model says.
    words_only : bool
        Whether the vision tower is left out.

    Raises
    ------
    InputError
        If a value is not one of these.
    """

    mode: str | None = None
    batch: int = 1
    tokens: int | None = None
    context: int | None = None
    kv_dtype: str = "float16"
    activations: str | None = None
    granularity: str | None = None
    tied: str | None = None
    logits: str = "last"
    reserve: int | str | None = None
    prefill_tokens: int | None = None
    expert_use: str | Path | Counts | None = None
    expert_groups: int | None = None
    images: int | None = None
    image_size: int | None = None
    words_only: bool = False

    def __post_init__(self) -> None:
        if self.reserve is not None:
            quantity(self.reserve, "size", "reserve")
        for place, value, choices in (
            ("mode", self.mode, (None, "decode", "prefill")),
            ("granularity", self.granularity, (None, *GRANULARITIES)),
            ("tied", self.tied, (None, "copy", "share")),
            ("logits", self.logits, ("last", "all")),
        ):
            if value not in choices:
                remedy = " or ".join(repr(each) for each in choices if each)
                raise InputError(place, f"{shown(value)}", f"give {remedy}")
        for place, count in (
            ("batch", self.batch),
            ("tokens", self.tokens),
            ("context", self.context),
            ("prefill_tokens", self.prefill_tokens),
            ("images", self.images),
            ("image_size", self.image_size),
        ):
            least = 0 if place == "images" else 1
            if count is not None and not is_whole(count, least, MOST_TOKENS):
                remedy = f"give a whole number of {least} to {MOST_TOKENS}"
                raise InputError(place, shown(count), remedy)
        if self.words_only and self.images is not None:
            raise InputError("words_only", "images are given", "leave one of both out")
        if self.image_size is not None and not self.images:
            raise InputError("image_size", "there are no images", "give images, or leave it out")
        if self.expert_groups is not None and not is_whole(
            self.expert_groups, 2, MOST_EXPERT_GROUPS
        ):
            remedy = f"give a whole number of 2 to {MOST_EXPERT_GROUPS}"
            raise InputError("expert_groups", shown(self.expert_groups), remedy)


def type_named(name: str, place: str) -> str:
    """Return the name in :data:`TYPES` of a type, in upper or lower case or short."""
    found = _TYPE_OF.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise InputError(place, f"no type {shown(name)}", choice(name, TYPES))
    return found


def size(type: str, shape: Sequence[int]) -> int:
    """Return the bytes of a tensor; each row is filled up to whole blocks."""
    block, stored = TYPES[type]
    row = shape[-1] if shape else 1
    return math.prod(shape[:-1]) * -(-row // block) * stored


def check_keys(
    tensors: Mapping[str, Weight], named: re.Pattern[str], layers: Sequence[Layer], said: str
) -> None:
    """Compare the matrices of the keys with what is said of heads.

    Parameters
    ----------
    named : pattern
        Of the names of these matrices; its group is the number of the block.
    said : str
        Who says so.
    """
    for name, weight in tensors.items():
        found = named.fullmatch(name)
        if found and int(found[1]) < len(layers):
            layer = layers[int(found[1])]
            expected = layer.kv_heads * layer.key_width
            if weight.shape[0] != expected:
                problem = f"has {weight.shape[0]} rows, but {said} {expected}"
                raise InputError(f"tensor {shown(name)}", problem, "correct one of them")


def check(model: Transformer) -> Transformer:
    """Return a model if its parts fit each other, as far as shapes tell.

    Raises
    ------
    InputError
        Names the part that does not.
    """
    if not is_whole(len(model.layers), 1, MOST_LAYERS):
        problem, remedy = f"{len(model.layers)} blocks", f"give 1 to {MOST_LAYERS}"
        raise InputError(model.name, problem, remedy)
    check_size(2 * len(model.layers) + 3, place=model.name)
    for what, value, least in (
        ("hidden size", model.hidden, 1),
        ("vocabulary", model.vocab, int(model.causal)),
    ):
        if not is_whole(value, least, MOST_TOKENS):
            remedy = f"give a whole number of 1 to {MOST_TOKENS}"
            raise InputError(model.name, f"the {what} is {shown(value)}", remedy)
    for number, layer in enumerate(model.layers):
        for what, count in layer._asdict().items():
            absent = count is None and what in ("window", "latent")
            if not absent and what != "chunked" and not is_whole(count, 1, MOST_TOKENS):
                problem = f"{what.replace('_', ' ')}: {shown(count)}"
                remedy = f"give a whole number of 1 to {MOST_TOKENS}"
                raise InputError(f"{model.name}, block {number}", problem, remedy)
    if any(weight.experts for weight in model.weights) and not (
        is_whole(model.experts_used, 1, MOST_TOKENS)
        and is_whole(model.experts, model.experts_used, MOST_TOKENS)
    ):
        problem = f"{shown(model.experts_used)} of {shown(model.experts)} experts are used"
        raise InputError(model.name, problem, "say how many there are and how many a token uses")
    held = {(weight.place, weight.layer) for weight in model.weights if weight.is_matrix}
    for number in range(len(model.layers)):
        for place in (ATTENTION, MLP):
            if (place, number) not in held:
                remedy = "give the whole model, of attention and feed-forward in every block"
                raise InputError(f"{model.name}, block {number}", f"has no {place} matrix", remedy)
    if model.vocab:
        _words(model)
    for weight in model.weights:
        if (
            model.causal
            and weight.place == HEAD
            and weight.is_matrix
            and set(weight.shape) != {*_table(model)}
        ):
            problem = f"the head is a matrix of {_by(weight.shape)}"
            raise InputError(model.name, problem, f"give one of {_by(_table(model))}")
        if weight.layer is not None and weight.layer >= len(model.layers):
            problem = f"has weights of block {weight.layer}, but {len(model.layers)} blocks"
            raise InputError(model.name, problem, "correct the number of blocks")
    return model


def chain(model: Transformer, step: Step) -> Workload:
    """Return the workload of one step of a model.

    Raises
    ------
    InputError
        If the model's parts do not fit each other, a value of the step does not fit the model,
        or a count is beyond 2^63.
    """
    if step.images is not None and model.vision is None:
        raise InputError("images", "the model has no vision tower", "leave the option out")
    if model.vision is not None and step.words_only:
        count = model.vision.parameters
        said = (
            f"Left out: {count:,} parameters of the vision tower; --images N, also 0, holds them."
        )
        model = replace(model, vision=None, assumed=(*model.assumed, said))
    encoder = None
    if model.encoder is not None:
        encoder = _Chain(check(model.encoder), replace(step, tied=None), "encoder.")
    chains = [_Chain(check(model), step, "decoder." if encoder else "", encoder)]
    if encoder is not None:
        chains.insert(0, encoder)
    builder, vertices = GraphBuilder(), [vertex for each in chains for vertex in each.vertices]
    check_size(len(vertices), place=model.name)
    for vertex in vertices:
        if max(vertex.flops, vertex.read, vertex.written, vertex.memory) >= 2**63:
            raise InputError(
                f"{model.name}, {vertex.name}",
                "more than 2^63 operations or bytes",
                "give smaller sizes, or fewer tokens",
            )
        outputs = [vertex.output, *([vertex.beside] if vertex.beside else [])]
        builder.vertex(vertex.name, vertex.flops, memory=vertex.memory, outputs=outputs)
    for each in chains:
        for v, vertex in enumerate(each.vertices):
            for back in vertex.reads:
                source = each.vertices[v - back]
                # What jumps over a cache is what it does not need.
                builder.edge(source.name, vertex.name, int(back > 1 and source.beside > 0))
                if back > 1 and source.beside:
                    builder.colocate(source.name, vertex.name)
        if each.shared:
            builder.colocate(*each.shared)
    if encoder is not None:
        for vertex in chains[1].vertices:
            if vertex.crosses:
                builder.edge(encoder.vertices[-1].name, vertex.name)
        if not encoder.held[EMBEDDING, None]:
            builder.colocate(encoder.vertices[0].name, chains[1].vertices[0].name)
    buffers = max(each.buffers() for each in chains)
    if step.reserve is None:
        reserve, what = RUNTIME + buffers, "the runtime (1 GiB) and intermediate results"
    else:
        reserve, what = math.ceil(quantity(step.reserve, "size", "reserve")), "the runtime"
    return Workload(
        graph=builder.build(),
        reserve=reserve,
        reserved_for=what,
        cached=tuple(vertex.cached for vertex in vertices),
        sequences=chains[-1].sequences if model.causal else 0,
        context=chains[-1].context if model.causal else 0,
        work=Work.of(
            (vertex.kind for vertex in vertices),
            (vertex.precision for vertex in vertices),
            [(vertex.flops, vertex.read, vertex.written) for vertex in vertices],
        ),
        name=f"{model.name}-{chains[-1].mode}" if model.causal else model.name,
        source=model.source,
        assumed=(*model.assumed, *(said for each in chains for said in each.assumed())),
    )


class _Cost(NamedTuple):
    """A vertex: its kind and precision, operations, bytes read and written, memory, output.

    ``crosses`` says whether it reads what the encoder ends with, ``cached`` which part of the
    memory are keys and values, ``reads`` how far before it those are whose output it reads, and
    ``beside`` the size of a second output, for the vertex after the next.
    """

    name: str
    kind: str
    precision: str
    flops: int
    read: int
    written: int
    memory: int
    output: int
    crosses: bool = False
    cached: int = 0
    reads: tuple[int, ...] = (1,)
    beside: int = 0


class _Chain:
    """Costs the vertices of one step of an encoder or a decoder.

    Parameters
    ----------
    prefix : str
        Of the names of vertices.
    encoder : _Chain, optional
        What blocks attend to beside the tokens.
    """

    def __init__(
        self, model: Transformer, step: Step, prefix: str = "", encoder: _Chain | None = None
    ) -> None:
        self.model, self.step = model, step
        self.prefix, self.encoder = prefix, encoder
        self.mode = (step.mode or "decode") if model.causal else "prefill"
        if step.mode == "decode" and not model.causal and not prefix:
            problem = "'decode', but the model is an encoder, which reads all positions at once"
            raise InputError("mode", problem, "leave the option out")
        self.batch = step.batch
        self.context = step.context or min(_CONTEXT, model.longest or _CONTEXT)
        self.tokens = step.tokens or (1 if self.mode == "decode" else self.context)
        if not model.causal:
            self.tokens = self.context = self._read_at_once()
        if self.tokens > self.context:
            problem = f"{self.tokens}, but the context has room for {self.context}"
            raise InputError("tokens", problem, "give fewer tokens, or a longer context")
        self.past = self.context - self.tokens if self.mode == "decode" else 0
        self.prompt = self._prompt()
        self.sequences = self.batch + bool(self.prompt)
        self.computed = self.batch * self.tokens + self.prompt
        self.kv_dtype = type_named(step.kv_dtype, "kv_dtype")
        self.activations = type_named(step.activations or model.activations, "activations")
        if step.tied is not None and not model.tied:
            raise InputError("tied", "the head has a matrix of its own", "leave the option out")
        self.shares = model.tied and (step.tied or ("copy" if model.copied else "share")) == "share"
        every = step.logits == "all" or not model.causal
        self.positions = self.computed if every else self.sequences
        #: Blocks with a mixture, by their order.
        mixtures = sorted({w.layer for w in model.weights if w.experts and w.layer is not None})
        self.mixture = {number: m for m, number in enumerate(mixtures)}
        self._check_granularity()
        apart = mixtures and (model.apart or step.expert_groups)
        asked = step.granularity or (THIRDS if apart else BLOCKS)
        self.cache, self.granularity = _APART in asked, asked.replace(_APART, "")
        size_of = model.experts, model.experts_used
        self.use = use_of(step.expert_use, size_of, len(mixtures), self.computed)
        self.hidden = self._states(self.computed)
        self.held: dict[tuple[str, int | None], list[Weight]] = defaultdict(list)
        for weight in model.weights:
            self.held[weight.place, weight.layer].append(weight)
        #: How many images the step sees, and what each takes.
        self.images = (step.images or 0) * (self.batch if self.mode == "prefill" else 1)
        sees = model.vision if self.images else None
        self.seen = sees and sight(sees, step.image_size)
        self.vertices = [*self._vision(), *self._costed()]
        self.shared = (self._named(EMBEDDING), self._named(HEAD)) if self.shares else ()

    def _check_granularity(self) -> None:
        groups, asked = self.step.expert_groups, self.step.granularity or ""
        granularity = asked.replace(_APART, "")
        if granularity == THIRDS and not self.mixture:
            remedy = f"give {BLOCKS} or {asked.removesuffix(f'+{EXPERTS}')}"
            raise InputError("granularity", "the model has no experts", remedy)
        if granularity != asked and (not self.model.causal or self.prefix):
            problem = "no decoder alone, with a cache of what it reads"
            raise InputError("granularity", problem, f"give {granularity}")
        if groups and granularity not in ("", THIRDS):
            problem = f"{groups}, but blocks are split into {asked}"
            raise InputError("expert_groups", problem, f"give the granularity {THIRDS}")
        if groups and groups > self.model.experts:
            problem = f"{groups} groups of {self.model.experts} experts"
            raise InputError("expert_groups", problem, "give fewer, or leave the option out")

    def _prompt(self) -> int:
        """Return the tokens of a prompt that are read beside."""
        prompt = self.step.prefill_tokens or 0
        if prompt and (self.mode != "decode" or self.encoder is not None):
            problem = "only a decoding step of a decoder alone reads a prompt beside"
            raise InputError("prefill_tokens", problem, "leave the option out")
        if prompt > self.context:
            problem = f"{prompt}, but the context has room for {self.context}"
            raise InputError("prefill_tokens", problem, "give fewer tokens, or a longer context")
        return prompt

    def _read_at_once(self) -> int:
        """Return the positions that an encoder reads."""
        fixed = self.model.positions
        if fixed is None:
            return self.context if self.prefix else self.tokens
        if not self.prefix:
            for option in ("tokens", "context"):
                if getattr(self.step, option) not in (None, fixed):
                    problem = f"the model reads {fixed:,} positions, no more and no fewer"
                    raise InputError(option, problem, "leave the option out")
        return fixed

    def _costed(self) -> list[_Cost]:
        vertices = [self._embedding()]
        for number in range(len(self.model.layers)):
            vertices += self._block(number)
        # Of the last block, only what the head needs is handed on.
        vertices[-1] = vertices[-1]._replace(output=self._states(self.positions))
        if self.model.causal or self.held[NORM, None]:
            vertices.append(self._norm())
        if self.model.causal or self.held[HEAD, None]:
            vertices.append(self._head())
        return [each._replace(name=self._named(each.name)) for each in vertices]

    def _named(self, name: str) -> str:
        return name if name == HEAD else f"{self.prefix}{name}"

    def _states(self, tokens: int) -> int:
        return size(self.activations, (tokens, self.model.hidden))

    def _vision(self) -> list[_Cost]:
        """Return the vertex that makes hidden states of images, if the model sees."""
        tower, step, seen = self.model.vision, self.step, self.seen
        if tower is None:
            return []
        if seen is None or not step.images:  # nothing is handed on, and nobody waits for it
            return [_Cost(VISION, "NoOp", tower.type, 0, 0, 0, tower.bytes, 0, reads=())]
        room = self.tokens if self.mode == "prefill" else self.prompt
        if step.images * seen.tokens > room:
            problem = f"{step.images} are {step.images * seen.tokens:,} tokens"
            what = f"the step reads {room:,} of a prompt" if room else "decoding reads none"
            remedy = "give mode prefill, or prefill_tokens, with room for them"
            raise InputError("images", f"{problem}, but {what}", remedy)
        pixels = size(self.activations, (self.images * 3 * seen.side**2,))
        states = size(self.activations, (self.images * seen.states,))
        tokens = self._states(self.images * seen.tokens)
        read, written = tower.bytes + pixels + states, states + tokens
        return [
            _Cost(
                name=VISION,
                kind="TransformerBlock",
                precision=tower.type,
                flops=self.images * seen.flops,
                read=read,
                written=written,
                memory=tower.bytes,
                output=tokens,
                reads=(),
            )
        ]

    def _embedding(self) -> _Cost:
        held = self.held[EMBEDDING, None]
        tokens = self.computed
        tables = [weight for weight in held if len(weight.shape) == 2]
        rows = sum(
            min(tokens, weight.shape[0]) * (weight.bytes // weight.shape[0]) for weight in tables
        )
        filters = [weight for weight in held if len(weight.shape) > 2]
        others = _bytes([weight for weight in held if len(weight.shape) != 2])
        return _Cost(
            name=EMBEDDING,
            kind="Conv" if filters else "Gather",
            precision=_words(self.model).type if self.model.vocab else self._precision(held),
            flops=sum(contraction(tokens * weight.uses, weight.elements) for weight in filters),
            read=rows + others if held else self.hidden,
            written=self.hidden,
            memory=_bytes(held),
            output=self.hidden,
            reads=(1,) if self.images else (),
        )

    def _block(self, number: int) -> list[_Cost]:
        attention, mlp = self._attention(number), self._of_block(MLP, number)
        if self.granularity == BLOCKS:
            return [self._whole(number, attention, self._feed_forward(number, MLP, mlp))]
        attend = self._apart(number, attention) if self.cache else [attention]
        experts = [weight for weight in mlp if weight.experts]
        if self.granularity == HALVES or not experts:
            return [*attend, self._feed_forward(number, MLP, mlp)]
        # A number and a weight of 4 bytes for each expert that a token uses.
        chosen = self.computed * self.model.experts_used * 8
        router = self._feed_forward(number, MLP, [w for w in mlp if not w.experts])
        router = router._replace(written=router.written + chosen, output=router.output + chosen)
        groups = self.use.groups(self.mixture[number], self.step.expert_groups or 1)
        names = [f"{EXPERTS}.{g}" for g in range(len(groups))] if len(groups) > 1 else [EXPERTS]
        parts = [
            self._feed_forward(number, name, experts, group)
            for name, group in zip(names, groups, strict=True)
        ]
        parts = [
            part._replace(read=part.read + chosen, reads=(back,))
            for back, part in enumerate(parts, 1)
        ]
        return [*attend, router, *parts, *([self._sum(number, router, parts)] * (len(parts) > 1))]

    def _apart(self, number: int, whole: _Cost) -> list[_Cost]:
        """Return the projections of an attention, its cache, and what hands on what that finds."""
        layer = self.model.layers[number]
        flops, weights = self._product(self._of_block(ATTENTION, number))
        new = layer.latent or layer.kv_heads * (layer.key_width + layer.value_width)
        asks = size(self.activations, (self.computed, layer.heads * layer.key_width + new))
        finds = size(self.activations, (self.computed, layer.heads * layer.value_width))
        return [
            whole._replace(
                flops=flops,
                read=weights + self.hidden + finds,
                written=asks + self.hidden,
                memory=whole.memory - whole.cached,
                cached=0,
                output=asks,
                beside=self.hidden,
            ),
            whole._replace(
                name=f"block.{number}.{CACHE}",
                precision=self.kv_dtype,
                flops=whole.flops - flops,
                read=asks + whole.read - weights - self.hidden,
                written=finds + whole.written - self.hidden,
                memory=whole.cached,
                output=finds,
            ),
            _Cost(
                name=f"block.{number}.{OUTPUT}",
                kind="NoOp",
                precision=self.activations,
                flops=0,
                read=0,
                written=0,
                memory=0,
                output=self.hidden,
                reads=(1, 2),
            ),
        ]

    def _sum(self, number: int, router: _Cost, groups: Sequence[_Cost]) -> _Cost:
        return _Cost(
            name=f"block.{number}.{_SUM}",
            kind="Add",
            precision=self.activations,
            flops=len(groups) * self.computed * self.model.hidden,
            read=router.output + sum(group.output for group in groups),
            written=self.hidden,
            memory=0,
            output=self.hidden,
            reads=tuple(range(1, len(groups) + 2)),
        )

    def _whole(self, number: int, attention: _Cost, mlp: _Cost) -> _Cost:
        held = [w for place in (ATTENTION, CROSS, MLP) for w in self._of_block(place, number)]
        return _Cost(
            name=f"block.{number}",
            kind="TransformerBlock",
            precision=self._precision(held),
            flops=attention.flops + mlp.flops,
            read=attention.read + mlp.read - self.hidden,
            written=attention.written + mlp.written - self.hidden,
            memory=attention.memory + mlp.memory,
            cached=attention.cached,
            output=self.hidden,
            crosses=attention.crosses,
        )

    def _of_block(self, place: str, number: int) -> list[Weight]:
        return self.held[place, number] + self.held[place, None]

    def _attention(self, number: int) -> _Cost:
        layer, held = self.model.layers[number], self._of_block(ATTENTION, number)
        flops, weights = self._product(held)
        end = self.past + self.tokens
        window = layer.window or self.context
        attended = self.batch * _attended(layer, self.past, end)
        if self.prompt:
            attended += _attended(layer, self.context - self.prompt, self.context)
        cached = size(self.kv_dtype, (layer.kv_heads * layer.key_width,))
        cached += size(self.kv_dtype, (layer.kv_heads * layer.value_width,))
        if layer.latent is not None:
            cached = size(self.kv_dtype, (layer.latent,))
        elif not self.model.causal:
            cached = 0
        width = layer.key_width + layer.value_width
        # Scores that the causal mask hides are not computed at all, so that nothing is masked.
        pairs = _pairs(layer, self.past, end) if self.model.causal else self.tokens**2
        pairs = self.batch * pairs + _pairs(layer, self.context - self.prompt, self.context)
        scores = layer.heads * pairs
        cost = _Cost(
            name=f"block.{number}.attention",
            kind="Attention",
            precision=self._precision(held),
            flops=flops + attention(scores * width, scores, masked=False),
            read=weights + self.hidden + attended * cached,
            written=self.hidden + self.computed * cached,
            memory=_bytes(held) + self.sequences * min(self.context, window) * cached,
            cached=self.sequences * min(self.context, window) * cached,
            output=self.hidden,
        )
        return cost if self.encoder is None else self._crossing(cost, number, cached)

    def _crossing(self, own: _Cost, number: int, cached: int) -> _Cost:
        """Add the attention to what the encoder ends with, whose keys are computed once."""
        held, layer = self._of_block(CROSS, number), self.model.layers[number]
        if not held or self.encoder is None:
            return own
        there = self.batch * self.encoder.tokens
        scores = self.tokens * there * layer.heads
        work = contraction(there, sum(weight.elements for weight in held if weight.is_matrix))
        work += attention(scores * (layer.key_width + layer.value_width), scores, masked=False)
        return own._replace(
            flops=own.flops + work,
            read=own.read + _bytes(held) + self.encoder.hidden + there * cached,
            written=own.written + there * cached,
            memory=own.memory + _bytes(held) + there * cached,
            cached=own.cached + there * cached,
            crosses=True,
        )

    def _feed_forward(
        self, number: int, part: str, held: list[Weight], group: Group | None = None
    ) -> _Cost:
        if group is None and number in self.mixture:
            (group,) = self.use.groups(self.mixture[number])
        flops, weights = self._product(held, group)
        return _Cost(
            name=f"block.{number}.{part}",
            kind="FeedForward",
            precision=self._precision(held),
            flops=flops,
            read=weights + self.hidden,
            written=self.hidden,
            memory=self._held(held, group),
            output=self.hidden,
        )

    def _norm(self) -> _Cost:
        kind, per_element = _NORMS[self.model.norm]
        memory = _bytes(self.held[NORM, None])
        states = self._states(self.positions)
        return _Cost(
            name=NORM,
            kind=kind,
            precision=self.activations,
            flops=per_element * self.positions * self.model.hidden,
            read=memory + states,
            written=states,
            memory=memory,
            output=states,
        )

    def _head(self) -> _Cost:
        held, model = self.held[HEAD, None], self.model
        memory = read = _bytes(held)
        matrices = [weight for weight in held if weight.is_matrix]
        # A class is predicted of one position, words at every one.
        predicts = model.tied or any(model.vocab in weight.shape for weight in matrices)
        positions = self.positions if predicts else self.batch
        elements = sum(weight.elements for weight in matrices)
        if model.tied:
            words = _words(model)
            elements += words.elements
            read += words.bytes
            memory += 0 if self.shares else words.bytes
        width = model.vocab if predicts else matrices[-1].shape[0] if matrices else model.hidden
        logits = size(_LOGITS, (positions, width))
        return _Cost(
            name=HEAD,
            kind="MatMul",
            precision=_words(model).type if model.tied else self._precision(held),
            flops=contraction(positions, elements),
            read=read + self._states(positions),
            written=logits,
            memory=memory,
            output=logits,
        )

    def buffers(self) -> int:
        """Return the bytes of intermediate results that a device holds at most at a time.

        llama.cpp keeps them in float32, and the mask in float16, one for each kind of window. Of
        the mask and of the hidden states from the device before, there are four copies, so that
        devices may work on several parts of a prompt at a time. Live at a time are up to eight more
        copies of the hidden states (before and after the norm, what is added) with small inputs
        and holes between them, and

        - queries, keys, values, and what the attention makes of them; or
        - both factors of a feed-forward and their product, and what every expert adds; or
        - the logits, of all tokens since any may be asked for.

        The vision tower has its own, of one image at a time.
        """
        model, positions = self.model, self.sequences * self.context
        tokens = min(_AT_A_TIME, positions) if model.causal else self.batch * self.tokens
        masks = len({layer.window for layer in model.layers}) * tokens * positions * 2
        most = model.vocab
        for number, layer in enumerate(model.layers):
            width = max(layer.key_width, layer.value_width)
            most = max(most, (3 * layer.heads + 4 * layer.kv_heads) * width)
            for weight in self._of_block(MLP, number):
                if weight.is_matrix:
                    live = 3 * (weight.elements // model.hidden)
                    if weight.experts:
                        live = _share(live, model.experts_used, model.experts)
                        live += model.experts_used * model.hidden
                    most = max(most, live)
        of_words = _COPIES * masks + 4 * tokens * (most + (_COPIES + 8) * model.hidden)
        return max(of_words, 4 * self.seen.live if self.seen else 0)

    def _product(self, held: list[Weight], group: Group | None = None) -> tuple[int, int]:
        """Return the operations of all tokens with some weights, and the bytes of weights read."""
        model = self.model
        dense = [weight for weight in held if not weight.experts]
        expert = [weight for weight in held if weight.experts]
        elements = sum(weight.elements for weight in dense if weight.is_matrix)
        read = _bytes(dense)
        if expert and group is not None:
            matrices = sum(weight.elements for weight in expert if weight.is_matrix)
            elements += math.ceil(matrices * model.experts_used * group.work / model.experts)
            read += math.ceil(_bytes(expert) * group.used / model.experts)
        return contraction(self.computed, elements), read

    def _held(self, held: list[Weight], group: Group | None) -> int:
        """Return the bytes of weights, of experts those of a group."""
        experts = _bytes([weight for weight in held if weight.experts])
        shared = group.experts if group is not None else self.model.experts
        return _bytes(held) - experts + _share(experts, shared, self.model.experts)

    def _precision(self, held: list[Weight]) -> str:
        """Return the type of most elements of the matrices."""
        count: Counter[str] = Counter()
        for weight in held:
            if weight.is_matrix:
                count[weight.type] += weight.elements
        return count.most_common(1)[0][0] if count else self.activations

    def assumed(self) -> Iterable[str]:
        model, step = self.model, self.step
        if not model.causal:
            each = f"of {self.batch:,} inputs" if self.batch > 1 else "of one input"
            yield f"The encoder reads {self.tokens:,} positions {each} at once."
            return
        sequences = "1 sequence" if self.batch == 1 else f"each of {self.batch:,} sequences"
        news = "1 new token" if self.tokens == 1 else f"{self.tokens:,} new tokens"
        yield (
            f"One step computes {news} of {sequences} after {self.past:,} others; the cache has "
            f"room for {self.context:,} positions in {self.kv_dtype}."
        )
        if model.vision is not None:
            seen, sees = self.seen, model.vision
            held = f"{sees.parameters:,} parameters in {sees.type}"
            if seen is None:
                yield (
                    f"The vision tower ({held}) is held, and sees nothing; --images N gives it "
                    "images."
                )
            else:
                images = "An image" if self.images == 1 else f"Each of {self.images:,} images"
                yield (
                    f"{images} of {seen.side:,} by {seen.side:,} pixels is {seen.patches:,} "
                    f"patches for the vision tower ({held}), and {seen.tokens:,} of the tokens "
                    "that are read."
                )
        if self.prompt:
            yield (
                f"It also reads the last {self.prompt:,} of {self.context:,} tokens of a prompt, "
                "whose keys and values take as much memory as those of a sequence."
            )
        if model.longest is not None and self.context > model.longest:
            yield f"The model was trained for {model.longest:,} positions only."
        windows = {layer.window for layer in model.layers if layer.window} - {None}
        if any(window < self.context for window in windows if window):
            count = sum(1 for layer in model.layers if (layer.window or MOST_TOKENS) < self.context)
            what = "chunks" if any(layer.chunked for layer in model.layers) else "a window"
            yield (
                f"{count} of {len(model.layers)} blocks attend to {what} of "
                f"{' or '.join(f'{window:,}' for window in sorted(filter(None, windows)))} "
                f"positions, and hold {'one' if what == 'chunks' else 'these'} only."
            )
        if model.tied:
            where = "they share a device" if self.shares else "each of the two holds a copy"
            yield f"The head uses the matrix of the embedding; {where}."
        yield from self._said_of_experts()
        if model.experts and self.computed > 1 and step.expert_use is None:
            most = min(model.experts, self.computed * model.experts_used)
            yield f"Its tokens use {most} of {model.experts} experts: different ones if possible."
        if self.granularity == THIRDS and step.granularity is None and not step.expert_groups:
            yield (
                "The experts of a block are a vertex of their own, since they may be on another "
                f"device than its attention; --granularity {BLOCKS} keeps blocks whole."
            )
        if self.cache:
            yield (
                "The cache of a block, which attends, may be on another device than its "
                "projections, whose work all counts before it."
            )
        if model.parallel and self.granularity != BLOCKS:
            yield (
                "Attention and feed-forward of a block, which the model computes side by side, "
                "come one after the other."
            )
        mixed = sorted({weight.type for weight in model.weights if weight.is_matrix})
        if len(mixed) > 1:
            yield f"A vertex computes in the type of most of its weights: {', '.join(mixed)}."

    def _said_of_experts(self) -> Iterable[str]:
        experts, given, groups = self.model.experts, self.step.expert_use, self.step.expert_groups
        if given is not None:
            each = [self.use.groups(mixture)[0].used for mixture in self.mixture.values()]
            few, many = (shortened(x, up=True, digits=4) for x in (min(each), max(each)))
            which = "uniformly" if str(given) == UNIFORM else "as often as was counted"
            yield (
                f"Its tokens are expected to use {few} {'' if few == many else f'to {many} '}of "
                f"{experts} experts in a block: each one {which}, and independently."
            )
        if groups:
            counted = given is not None and str(given) != UNIFORM
            yield (
                f"The experts of a block are {groups} groups of {experts // groups}"
                f"{' or one more' if experts % groups else ''}"
                f"{', those used most first' if counted else ''}; each gets the states of all "
                "tokens and hands on a sum for each."
            )


def _pairs(layer: Layer, past: int, end: int) -> int:
    """Count the pairs of a new token and a position that it attends to."""
    window = layer.window or end

    def before(position: int) -> int:
        whole, rest = divmod(position, window) if layer.chunked else (0, min(position, window))
        beyond = 0 if layer.chunked else (position - rest) * window
        return whole * (window * (window + 1) // 2) + rest * (rest + 1) // 2 + beyond

    return before(end) - before(past)


def _attended(layer: Layer, past: int, end: int) -> int:
    """Count the positions that any new token attends to."""
    if layer.window is None:
        return end
    first = past // layer.window * layer.window if layer.chunked else past + 1 - layer.window
    return end - max(0, first)


def _share(whole: int, part: int, of: int) -> int:
    return -(-whole * part // of) if of else whole


def _bytes(weights: list[Weight]) -> int:
    return sum(weight.bytes for weight in weights)


def _table(model: Transformer) -> tuple[int, int]:
    return model.vocab, model.hidden


def _by(shape: Sequence[int]) -> str:
    return " by ".join(f"{length}" for length in shape)


def _words(model: Transformer) -> Weight:
    """Return the matrix that has a row for every token."""
    for weight in model.weights:
        if weight.place == EMBEDDING and weight.shape == _table(model):
            return weight
    remedy = f"give one of {_by(_table(model))}"
    raise InputError(model.name, "has no embedding matrix of its vocabulary", remedy)
