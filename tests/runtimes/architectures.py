"""Small models of many architectures of transformers, with random weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_SIZES = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 64,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_GPT2 = {
    "vocab_size": 128, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 64,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """A model type of transformers, the class that makes it, and its settings."""

    model_type: str
    settings: dict[str, Any] = field(default_factory=dict)
    automatic: str = "AutoModelForCausalLM"
    sizes: dict[str, Any] = field(default_factory=lambda: _SIZES)

    def model(self, seed: int = 0) -> Any:
        """Return it with random weights."""
        import torch
        import transformers

        torch.manual_seed(seed)
        config = transformers.CONFIG_MAPPING[self.model_type](**{**self.sizes, **self.settings})
        model = getattr(transformers, self.automatic).from_config(config).eval()
        config.architectures = [type(model).__name__]
        return model

    def inputs(self) -> dict[str, Any]:
        """Return an input of one sequence, image or sound."""
        import torch

        torch.manual_seed(1)
        words = torch.randint(3, 128, (1, 12))
        if self.automatic == "AutoModelForImageClassification":
            return {"pixel_values": torch.randn(1, 3, 32, 32)}
        if self.automatic == "AutoModelForSpeechSeq2Seq":
            return {"input_features": torch.randn(1, 80, 60), "decoder_input_ids": words}
        if self.automatic == "AutoModelForSeq2SeqLM":
            return {"input_ids": words, "decoder_input_ids": words[:, :5]}
        return {"input_ids": words}


_MIXTURE = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
_ROWS = {
    "llama": Architecture("llama"),
    "llama-tied": Architecture("llama", {"tie_word_embeddings": True}),
    "mistral": Architecture("mistral", {"sliding_window": 8}),
    "mixtral": Architecture("mixtral", {"num_local_experts": 4}),
    "qwen2": Architecture("qwen2"),
    "qwen3": Architecture("qwen3", {"head_dim": 16}),
    "qwen3-moe": Architecture("qwen3_moe", {"num_experts": 4, "head_dim": 16, **_MIXTURE}),
    "gemma2": Architecture("gemma2", {"head_dim": 16, "sliding_window": 8}),
    "gemma3": Architecture("gemma3_text", {"head_dim": 16, "sliding_window": 8}),
    "phi": Architecture("phi"),
    "phi3": Architecture("phi3"),
    "gpt2": Architecture("gpt2", sizes=_GPT2),
    "gpt-neox": Architecture("gpt_neox"),
    "opt": Architecture(
        "opt", {"ffn_dim": 128, "word_embed_proj_dim": 64, "num_key_value_heads": 4}
    ),
    "bloom": Architecture("bloom", {"hidden_size": 64}, sizes=_GPT2),
    "falcon": Architecture("falcon"),
    "gpt-oss": Architecture(
        "gpt_oss", {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16}
    ),
    "deepseek-v3": Architecture(
        "deepseek_v3",
        {
            "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "q_lora_rank": 32,
            "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16,
            "first_k_dense_replace": 1, "num_key_value_heads": 4, **_MIXTURE,
        },
    ),
    "bert": Architecture("bert", automatic="AutoModelForMaskedLM"),
    "t5": Architecture(
        "t5",
        automatic="AutoModelForSeq2SeqLM",
        sizes={
            "vocab_size": 128, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2,
            "num_decoder_layers": 3, "num_heads": 4, "decoder_start_token_id": 0, "n_positions": 16,
        },
    ),
    "whisper": Architecture(
        "whisper",
        automatic="AutoModelForSpeechSeq2Seq",
        sizes={
            "vocab_size": 128, "d_model": 64, "encoder_layers": 2, "decoder_layers": 3,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
            "decoder_ffn_dim": 128, "max_source_positions": 30, "pad_token_id": 0,
            "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
        },
    ),
    "vit": Architecture(
        "vit",
        {"image_size": 32, "patch_size": 8},
        automatic="AutoModelForImageClassification",
        sizes={
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
            "num_attention_heads": 4,
        },
    ),
}  # fmt: skip

#: By the name of the test.
ARCHITECTURES = dict(_ROWS)
