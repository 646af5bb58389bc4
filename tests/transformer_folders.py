"""Folders as transformers writes them: a configuration, and the header of a file of tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

BYTES = {"F32": 4, "BF16": 2}


def write(
    folder: Path, shapes: Mapping[str, Sequence[int]], type_: str = "BF16", **config: Any
) -> Path:
    """Write a folder; without shapes, the configuration alone."""
    entries, at = {}, 0
    for name, shape in shapes.items():
        end = at + BYTES[type_] * prod(shape)
        entries[name] = {"dtype": type_, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    if entries:
        header = json.dumps(entries).encode()
        content = len(header).to_bytes(8, "little") + header
        (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def small_llama(folder: Path) -> Path:
    """Write a Llama of two blocks whose head shares the matrix of its embedding."""
    block = {f"self_attn.{name}_proj": [8, 8] for name in "qvo"}
    block |= {"input_layernorm": [8], "mlp.up_proj": [16, 8], "mlp.down_proj": [8, 16]}
    shapes = {
        f"model.layers.{i}.{name}.weight": shape for i in (0, 1) for name, shape in block.items()
    }
    shapes |= {"model.embed_tokens.weight": [20, 8], "model.norm.weight": [8]}
    return write(
        folder,
        shapes,
        architectures=["LlamaForCausalLM"],
        model_type="llama",
        hidden_size=8,
        num_hidden_layers=2,
        vocab_size=20,
        num_attention_heads=2,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
