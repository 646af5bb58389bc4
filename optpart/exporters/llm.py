"""Plans for large language models, as their runtimes want them.

The rules are those of vLLM (``get_pp_indices``) and Megatron Core
(``PipelineParallelLayerLayout``), as their sources were in 2026.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, InputError
from optpart.base.files import Kind, begins
from optpart.base.languages import to_shell
from optpart.exporters.chain import Chain, Link, chain_of, ends
from optpart.exporters.plan import NO_ORDER, Plan, Text, named
from optpart.interop.formats import llm_names
from optpart.interop.formats.llm_parts import BLOCK, EMBEDDING, HEAD, NORM, VISION


class Modules(NamedTuple):
    """Names of modules in transformers; blocks and their halves as formats of the number."""

    embedding: tuple[str, ...]
    block: str
    norm: str
    head: str


#: By the name of the architecture, or rather of the one that others follow.
ARCHITECTURES = {
    "llama": Modules(
        ("model.embed_tokens", "model.rotary_emb"), "model.layers.{}", "model.norm", "lm_head"
    ),
    "gpt2": Modules(
        ("transformer.wte", "transformer.wpe"), "transformer.h.{}", "transformer.ln_f", "lm_head"
    ),
    "gpt-neox": Modules(
        ("gpt_neox.embed_in", "gpt_neox.rotary_emb"),
        "gpt_neox.layers.{}",
        "gpt_neox.final_layer_norm",
        "lm_head",
    ),
    "bloom": Modules(
        ("transformer.word_embeddings", "transformer.word_embeddings_layernorm"),
        "transformer.h.{}",
        "transformer.ln_f",
        "lm_head",
    ),
    "falcon": Modules(
        ("transformer.word_embeddings", "transformer.rotary_emb"),
        "transformer.h.{}",
        "transformer.ln_f",
        "lm_head",
    ),
    "opt": Modules(
        ("model.decoder.embed_tokens", "model.decoder.embed_positions"),
        "model.decoder.layers.{}",
        "model.decoder.final_layer_norm",
        "lm_head",
    ),
    "phi": Modules(
        ("model.embed_tokens", "model.rotary_emb"),
        "model.layers.{}",
        "model.final_layernorm",
        "lm_head",
    ),
}

_WORDS = "import the model with --words-only"

VLLM = Kind(
    "settings of vLLM",
    begins(rb"(CUDA_VISIBLE_DEVICES=.*\n)?VLLM_PP_LAYER_PARTITION=.*\n(#.*\n)*\Z"),
)
MEGATRON = Kind("options of Megatron", begins(rb"--pipeline-model-parallel-size \d+ --.*\n\Z"))

_WHOLE = "import the model with whole blocks as vertices"


def modules_of(chain: Chain, plan: Plan, architecture: str | None) -> list[tuple[str, Link]]:
    """Return the module of every link, of whole blocks.

    Raises
    ------
    InputError
        If vertices are not called as modules are, and neither the architecture is given nor the
        instance is called after a model that is known by name.
    """
    if architecture is not None and architecture not in ARCHITECTURES:
        remedy = choice(architecture, ARCHITECTURES)
        raise ArgumentError("architecture", f"unknown {architecture!r}", remedy)
    if not chain.own_names:
        if architecture is not None:
            problem = "the vertices are called after modules already"
            raise InputError("architecture", problem, "leave it out")
        return _distinct([(_module(each), each) for each in chain.links])
    architecture = architecture or llm_names.architecture(plan.instance)
    if architecture is None:
        problem = "what the modules of the model are called is not known"
        remedy = f"give --architecture {', '.join(ARCHITECTURES)}, or for device-map --model FOLDER"
        raise InputError("architecture", problem, remedy)
    if chain.devices_of(VISION):
        problem, remedy = "its modules are called otherwise in every model", "give --model FOLDER"
        raise InputError(VISION, problem, remedy)
    modules = ARCHITECTURES[architecture]
    of_place = {
        EMBEDDING: modules.embedding,
        BLOCK: (modules.block,),
        NORM: (modules.norm,),
        HEAD: (modules.head,),
    }
    found = [
        (module.format(each.number), each)
        for each in chain.links
        for module in of_place[each.place]
    ]
    return _distinct(found)


def _distinct(modules: list[tuple[str, Link]]) -> list[tuple[str, Link]]:
    """Keep each module once."""
    return list({module: (module, link) for module, link in reversed(modules)}.values())[::-1]


def _module(link: Link) -> str:
    """Return the module of a vertex that is called after one; of a half of a block, the block."""
    return link.vertex.removesuffix(f".{link.half}") if link.half else link.vertex


def _blocks(links: Sequence[Link]) -> int:
    """Count blocks, each once even if its parts are vertices of their own."""
    return len({each.number for each in links if each.place == BLOCK})


def vllm(plan: Plan, *, names: Mapping[str, str] | None = None) -> Text:
    """Return environment and options of vLLM for a pipeline of unequal stages.

    Parameters
    ----------
    names : mapping from str to str, optional
        CUDA's numbers of the devices; without them, rank 0 must find the first device of the
        pipeline first.
    """
    chain = chain_of(plan)
    remedy = "use --to device-map or --to llama.cpp-ot, or solve again with fewer devices"
    stages = chain.contiguous("vLLM", remedy)
    ends(chain, stages, "vLLM", remedy)
    counts = [_blocks(links) for _, links in stages]
    lines = [f"VLLM_PP_LAYER_PARTITION={','.join(map(str, counts))}"]
    lines += [f"# vllm serve MODEL --pipeline-parallel-size {len(stages)}"]
    remarks = [NO_ORDER.format("vLLM")]
    order = [device for device, _ in stages]
    if names:
        known = named(plan, names, valid=r"\d+", example="0")
        lines.insert(0, f"CUDA_VISIBLE_DEVICES={','.join(known[device] for device in order)}")
    else:
        remarks.append(f"Rank 0 and those after it must be {', '.join(order)}, in this order.")
    return Text("\n".join(lines) + "\n", remarks)


def megatron(plan: Plan) -> Text:
    """Return options of Megatron for a pipeline, with virtual stages where devices take turns."""
    chain = chain_of(plan)
    remedy = "solve again with devices in a fixed order, or use --to device-map"
    stages = chain.stages("Megatron", remedy)
    devices = chain.devices
    if chain.devices_of(VISION):
        raise InputError(VISION, "a layout of Megatron has no place for it", _WORDS)
    for i, (device, links) in enumerate(stages):
        if device != devices[i % len(devices)]:
            problem = f"has {links[0].vertex!r} out of turn; Megatron's devices take turns"
            raise InputError(f"device {device!r}", problem, remedy)
    if len(stages) % len(devices):
        problem = f"has no stage in the last of {len(stages) // len(devices) + 1} turns"
        raise InputError(f"device {devices[-1]!r}", f"{problem}; Megatron needs one", remedy)
    for place, name in ((EMBEDDING, "embedding"), (HEAD, "head")):
        if len(split := chain.devices_of(place)) > 1:
            problem = f"is split between {' and '.join(split)}; a layout of Megatron names it once"
            raise InputError(name, problem, remedy)
    remarks = [
        NO_ORDER.format("Megatron"),
        f"Pipeline ranks 0 and after must be {', '.join(devices)}, in this order.",
    ]
    norm, head = chain.devices_of(NORM), chain.devices_of(HEAD)
    if norm and head and norm != head:
        if norm != chain.devices_of(BLOCK, chain.blocks - 1):
            problem = "is on another device than the last block and the head"
            raise InputError("norm", problem, remedy)
        remarks.append(f"Megatron computes the norm with the head, on {head[0]}.")
    texts = []
    for i, (_, links) in enumerate(stages):
        count = _blocks(links)
        # Embedding and loss are there also where the plan has no vertex for them.
        start = any(each.place == EMBEDDING for each in links) or (
            i == 0 and not chain.devices_of(EMBEDDING)
        )
        end = any(each.place == HEAD for each in links) or (
            i == len(stages) - 1 and not chain.devices_of(HEAD)
        )
        repeated = f"t*{count}" if count > 1 else "t" * count
        texts.append("E" * start + repeated + "L" * end)
    options = ["--pipeline-model-parallel-size", str(len(devices))]
    options += ["--pipeline-model-parallel-layout", "|".join(texts)]
    return Text(to_shell(options) + "\n", remarks)
