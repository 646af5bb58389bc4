"""Small models of llama.cpp, with random weights."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np


def _tensors(
    blocks: int, hidden: int, kv: int, ffn: int, experts: int, shared: int, tied: bool, vocab: int
) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab, hidden)}
    for number in range(blocks):
        block: dict[str, tuple[int, ...]] = {
            "attn_norm": (hidden,), "attn_q": (hidden, hidden), "attn_k": (kv, hidden),
            "attn_v": (kv, hidden), "attn_output": (hidden, hidden), "ffn_norm": (hidden,),
        }  # fmt: skip
        if experts:
            block |= {
                "ffn_gate_inp": (experts, hidden), "ffn_gate_exps": (experts, ffn, hidden),
                "ffn_up_exps": (experts, ffn, hidden), "ffn_down_exps": (experts, hidden, ffn),
            }  # fmt: skip
            if shared:
                block |= {
                    "ffn_gate_inp_shexp": (hidden,), "ffn_gate_shexp": (shared, hidden),
                    "ffn_up_shexp": (shared, hidden), "ffn_down_shexp": (hidden, shared),
                }  # fmt: skip
        else:
            block |= {
                "ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden), "ffn_down": (hidden, ffn),
            }  # fmt: skip
        found |= {f"blk.{number}.{name}.weight": shape for name, shape in block.items()}
    found["output_norm.weight"] = (hidden,)
    if not tied:
        found["output.weight"] = (vocab, hidden)
    return found


def write(
    path: Path,
    *,
    blocks: int = 4,
    hidden: int = 64,
    ffn: int = 128,
    heads: int = 4,
    experts: int = 0,
    shared: int = 0,
    tied: bool = False,
    context: int = 128,
    vocab: int = 300,
    kv_heads: int = 0,
    hollow: bool = False,
) -> dict[str, int]:
    """Write a model of the architecture ``llama``, or with shared experts ``qwen2moe``.

    There are half as many heads of keys and values, unless said otherwise. A hollow model has a
    file of its size that takes no room, of zeros.

    Returns
    -------
    dict of str to int
        The bytes of every tensor.
    """
    import gguf

    architecture = "qwen2moe" if shared else "llama"
    out: Any = gguf.GGUFWriter(path, architecture)
    out.add_name("tiny")
    out.add_block_count(blocks)
    out.add_context_length(context)
    out.add_embedding_length(hidden)
    out.add_feed_forward_length(ffn)
    out.add_head_count(heads)
    kv_heads = kv_heads or heads // 2
    out.add_head_count_kv(kv_heads)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(hidden // heads)
    out.add_vocab_size(vocab)
    if experts:
        out.add_expert_count(experts)
        out.add_expert_used_count(2)
        out.add_expert_feed_forward_length(ffn)
    if shared:
        out.add_expert_shared_feed_forward_length(shared)
    kind = gguf.TokenType
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL] + [kind.BYTE] * 256
    words += [f"word{number}" for number in range(vocab - len(words))]
    kinds += [kind.NORMAL] * (vocab - len(kinds))
    out.add_tokenizer_model("llama")
    out.add_token_list(words)
    out.add_token_scores([0.0] * vocab)
    out.add_token_types(kinds)
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    rng = np.random.default_rng(0)
    kv, sizes = kv_heads * hidden // heads, {}
    for name, shape in _tensors(blocks, hidden, kv, ffn, experts, shared, tied, vocab).items():
        norm = "norm" in name
        type_ = np.dtype(np.float32 if norm or "gate_inp" in name else np.float16)
        sizes[name] = math.prod(shape) * type_.itemsize
        if hollow:
            out.add_tensor_info(name, shape, type_, sizes[name])
        else:
            values = np.ones(shape) if norm else rng.normal(0, shape[-1] ** -0.5, shape)
            out.add_tensor(name, values.astype(type_))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    if hollow:
        out.write_ti_data_to_file()
    else:
        out.write_tensors_to_file()
    out.close()
    if hollow:
        room = sum(-(-size // 32) * 32 for size in sizes.values())
        os.truncate(path, path.stat().st_size + 32 + room)
    return sizes
