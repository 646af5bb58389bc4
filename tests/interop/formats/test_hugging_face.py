"""Encoders, and encoders with decoders, of Hugging Face, by headers that are written by hand."""

from dataclasses import replace
from math import prod

import pytest
from language_plans import by_hand
from transformer_folders import write

from optpart.base.errors import InputError
from optpart.exporters.device_map import device_map
from optpart.interop.formats import detect, hugging_face, transformers_model
from optpart.interop.formats.llm import Step


def attention(at, names):
    return {f"{at}.{name}.weight": [8, 8] for name in names}


@pytest.fixture
def folder(tmp_path):
    common = {"num_attention_heads": 2, "hidden_size": 8, "vocab_size": 20}
    return lambda shapes, **config: write(tmp_path, shapes, "F32", **{**common, **config})


def bert(blocks=2):
    shapes = {"bert.embeddings.word_embeddings.weight": [20, 8],
              "bert.embeddings.position_embeddings.weight": [16, 8],
              "bert.embeddings.LayerNorm.weight": [8]}  # fmt: skip
    for i in range(blocks):
        at = f"bert.encoder.layer.{i}"
        shapes |= attention(f"{at}.attention.self", ("query", "key", "value"))
        shapes |= {f"{at}.attention.output.dense.weight": [8, 8],
                   f"{at}.intermediate.dense.weight": [32, 8],
                   f"{at}.output.dense.weight": [8, 32]}  # fmt: skip
    return shapes | {"cls.predictions.transform.dense.weight": [8, 8], "cls.predictions.bias": [20]}


def t5(blocks=2):
    shapes = {"shared.weight": [20, 8]}
    for stack in ("encoder", "decoder"):
        for i in range(blocks):
            at = f"{stack}.block.{i}.layer"
            shapes |= attention(f"{at}.0.SelfAttention", "qkvo")
            if stack == "decoder":
                shapes |= attention(f"{at}.1.EncDecAttention", "qkvo")
            last = 2 if stack == "decoder" else 1
            shapes |= {f"{at}.{last}.DenseReluDense.wi.weight": [16, 8],
                       f"{at}.{last}.DenseReluDense.wo.weight": [8, 16]}  # fmt: skip
        shapes[f"{stack}.final_layer_norm.weight"] = [8]
    return shapes


def held(workload):
    return dict(zip(workload.graph.names, map(int, workload.graph.memory.fractions()), strict=True))


def edges(workload):
    graph = workload.graph
    joined = zip(graph.edge_source, graph.edge_target, strict=True)
    return {(graph.names[u], graph.names[v]) for u, v in joined}


def test_an_encoder_reads_all_positions_at_once_and_keeps_no_cache(folder):
    path = folder(bert(), model_type="bert", num_hidden_layers=2, max_position_embeddings=16)
    found = hugging_face.read(path)
    block = 4 * (4 * 8 * 8 + 2 * 32 * 8)
    memory = held(found)
    assert (memory["block.0"], memory["block.1"]) == (block, block)
    assert sum(memory.values()) == 4 * sum(prod(shape) for shape in bert().values())
    # 16 positions, two operations per weight and position, and attention from all to all.
    work = dict(zip(found.graph.names, found.work.flops, strict=True))
    assert int(work["block.0"]) == 2 * 16 * block // 4 + 16 * 16 * (4 * 8 + 6 * 2)


def test_only_a_decoder_alone_has_a_cache_apart(folder):
    step = Step(granularity="attention+cache+mlp")
    for shapes, model in ((bert(), "bert"), (t5(), "t5")):
        path = folder(shapes, model_type=model, num_hidden_layers=2, num_layers=2, d_model=8)
        with pytest.raises(
            InputError, match=r"granularity: no decoder alone, .*give attention.mlp"
        ):
            hugging_face.read(path, step)


def test_an_encoder_has_no_step_of_decoding(folder):
    path = folder(bert(), model_type="bert", num_hidden_layers=2, max_position_embeddings=16)
    with pytest.raises(InputError, match="mode"):
        hugging_face.read(path, Step(mode="decode"))


def test_an_encoder_and_a_decoder_are_two_chains_that_attention_joins(folder):
    config = {"d_kv": 4, "num_heads": 2, "d_model": 8, "num_layers": 2, "num_decoder_layers": 2}
    found = hugging_face.read(folder(t5(), model_type="t5", **config), Step(context=16))
    assert {"encoder.block.0", "encoder.block.1", "decoder.block.0", "decoder.block.1", "head"} <= {
        *found.graph.names
    }
    joined = edges(found)
    assert ("encoder.block.0", "encoder.block.1") in joined
    assert ("decoder.block.1", "decoder.norm") in joined
    memory = held(found)
    assert memory["decoder.block.0"] - memory["encoder.block.0"] >= 4 * 4 * 8 * 8  # cross attention


def test_latent_attention_keeps_one_vector_for_all_heads(folder):
    shapes = {"model.embed_tokens": [20, 8], "model.norm": [8], "lm_head": [20, 8]}
    inside = {"self_attn.q_proj": [12, 8], "self_attn.kv_a_proj_with_mqa": [6, 8]}
    inside |= {"self_attn.kv_b_proj": [16, 4], "self_attn.o_proj": [8, 8]}
    inside |= {"mlp.up_proj": [16, 8], "mlp.down_proj": [8, 16]}
    shapes |= {f"model.layers.0.{name}": shape for name, shape in inside.items()}
    shapes = {f"{name}.weight": shape for name, shape in shapes.items()}
    config = {"kv_lora_rank": 4, "qk_rope_head_dim": 2, "num_hidden_layers": 1}
    path = folder(shapes, model_type="deepseek_v3", **config)
    without, cached = (held(hugging_face.read(path, Step(context=n)))["block.0"] for n in (1, 101))
    assert cached - without == 100 * (4 + 2) * 2


def llama_4():
    """Return the shapes of four blocks, every second a mixture, and of a vision tower."""
    at = "language_model.model"
    shapes = {f"{at}.embed_tokens.weight": [20, 8], f"{at}.norm.weight": [8]}
    shapes["language_model.lm_head.weight"] = [20, 8]
    for i in range(4):
        shapes |= attention(f"{at}.layers.{i}.self_attn", ("q_proj", "k_proj", "v_proj", "o_proj"))
        inside = f"{at}.layers.{i}.feed_forward"
        if i % 2:
            shapes |= {f"{inside}.router.weight": [4, 8],
                       f"{inside}.experts.gate_up_proj": [4, 8, 32],
                       f"{inside}.experts.down_proj": [4, 16, 8],
                       f"{inside}.shared_expert.down_proj.weight": [8, 16]}  # fmt: skip
        else:
            shapes[f"{inside}.down_proj.weight"] = [8, 32]
    return shapes | {"vision_model.model.layers.0.self_attn.k_proj.weight": [24, 24],
                     "multi_modal_projector.linear_1.weight": [8, 24]}  # fmt: skip


@pytest.mark.parametrize(
    "kinds",
    [
        {},
        {"no_rope_layers": [1, 1, 1, 0]},
        {"layer_types": ["chunked_attention"] * 3 + ["full_attention"]},
    ],
)
def test_llama_4_reads_words_in_chunks_and_holds_what_sees(folder, kinds):
    config = {
        "model_type": "llama4_text", "num_hidden_layers": 4, "num_local_experts": 4,
        "num_experts_per_tok": 1, "attention_chunk_size": 50, "tie_word_embeddings": False,
    }  # fmt: skip
    path = folder(llama_4(), model_type="llama4", text_config={**config, **kinds})
    step = Step(context=120, granularity="attention+mlp+experts")
    found = hugging_face.read(path, step)
    memory = held(found)
    cache = [memory[f"block.{i}.attention"] - 4 * 4 * 64 for i in range(4)]
    assert cache == [50 * 32] * 3 + [120 * 32]
    assert memory["block.1.experts"] == 4 * 4 * (8 * 32 + 16 * 8)
    assert memory["block.1.mlp"] == 4 * (4 * 8 + 8 * 16)
    assert "block.0.experts" not in memory
    assert memory["vision"] == 4 * (24 * 24 + 8 * 24)
    assert "vision" not in {name for edge in edges(found) for name in edge}
    said = (
        "The vision tower (768 parameters in float32) is held, and sees nothing; --images N gives "
        "it im"
    )
    assert any(each.startswith(said) for each in found.assumed)
    words = hugging_face.read(path, replace(step, words_only=True))
    assert "vision" not in words.graph.names
    assert any(
        each.startswith("Left out: 768 parameters of the vision tower") for each in words.assumed
    )
    with pytest.raises(InputError, match="vision tower, width: not known"):
        hugging_face.read(path, Step(mode="prefill", images=1))


def seeing(at, blocks, extra, **config):
    """Return shapes and settings of a small decoder, and of a tower: blocks of 24 numbers."""
    shapes = {"model.embed_tokens.weight": [20, 8], "lm_head.weight": [20, 8]}
    shapes |= attention("model.layers.0.self_attn", ("q_proj", "k_proj", "v_proj", "o_proj"))
    shapes |= {"model.layers.0.mlp.up_proj.weight": [16, 8], "model.norm.weight": [8], **extra}
    for i in range(blocks):
        shapes |= {f"{at}.{i}.attn.qkv.weight": [72, 24], f"{at}.{i}.mlp.fc1.weight": [48, 24]}
    sees = {"patch_size": 14, "num_heads": 2, "depth": blocks, **config}
    return shapes, {"num_hidden_layers": 1, "vision_config": sees}


def test_what_sees_reads_images_before_the_embedding(folder):
    at = "visual.merger.mlp"
    extra = {"visual.patch_embed.proj.weight": [24, 3, 2, 14, 14], f"{at}.0.weight": [8, 96]}
    shapes, config = seeing("visual.blocks", 3, extra, spatial_merge_size=2)
    path = folder(shapes, **config)
    step = {"mode": "prefill", "context": 40, "images": 2, "image_size": 112}
    found = hugging_face.read(path, Step(**step, batch=3))
    assert found.graph.names[:3] == ("vision", "embedding", "block.0")
    assert {("vision", "embedding"), ("embedding", "block.0")} <= edges(found)
    # Of 8 by 8 patches, each block multiplies with 120 x 24, and scores all pairs of both heads.
    filters, inside = 24 * 3 * 2 * 14 * 14, 3 * 120 * 24
    flops = 2 * 64 * (filters + inside) + 3 * 64**2 * (4 * 24 + 6 * 2) + 2 * 16 * 8 * 96
    assert found.work.flops[0] == 3 * 2 * flops
    assert held(found)["vision"] == 4 * (filters + inside + 8 * 96)
    assert found.graph.tensor_size[0] == 3 * 2 * 16 * 8 * 2
    assert found.work.written[0] == 3 * 2 * (16 * 8 + 3 * 64 * 24) * 2
    # In windows of 4 by 4 patches but for one block, 64 of 64 x 64 pairs are left.
    shapes, config = seeing("visual.blocks", 3, extra, spatial_merge_size=2,
                            window_size=56, fullatt_block_indexes=[1])  # fmt: skip
    windows = hugging_face.read(folder(shapes, **config), Step(**step, batch=3))
    fewer = 2 * (64**2 - 4 * 16**2) * (4 * 24 + 6 * 2)
    assert windows.work.flops[0] == 3 * 2 * (flops - fewer)
    assert hugging_face.modules(path).vertices["visual"] == "vision"
    placed = by_hand(dict.fromkeys(found.graph.names, "0") | {"vision": "cuda:1"})
    assert '"visual": "cuda:1"' in device_map(placed, model=path).text
    with pytest.raises(InputError, match=r"vision: its modules are called otherwise .*--model FO"):
        device_map(placed, architecture="llama")


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ({"image_size": 42}, "image_size: 42 pixels are 3 patches of 14; give a multiple of 28"),
        ({}, "image_size: is missing; the model sees images of any size"),
        ({"image_size": 784}, "images: 1 are 784 tokens, but the step reads 40 of a prompt"),
        ({"image_size": 28, "mode": "decode"}, "images: 1 are 1 tokens, but decoding reads none"),
    ],
)
def test_images_that_do_not_fit_are_refused(folder, step, fault):
    extra = {"visual.patch_embed.proj.weight": [24, 3, 14, 14]}
    shapes, config = seeing("visual.blocks", 1, extra, spatial_merge_size=2)
    step = Step(**{"mode": "prefill", "context": 40, "images": 1, **step})
    with pytest.raises(InputError) as error:
        hugging_face.read(folder(shapes, **config), step)
    assert fault in str(error.value)


def test_a_second_stack_of_blocks_is_refused(folder):
    shapes, config = seeing("vpm.encoder.layers", 1, {})
    with pytest.raises(InputError, match=r"more than one stack of blocks: model.layers, vpm.enc"):
        hugging_face.read(folder(shapes, **config))


def test_a_folder_with_a_configuration_alone_needs_transformers(folder, monkeypatch):
    monkeypatch.setattr(transformers_model, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"config.json alone, and transformers.*pip install"):
        hugging_face.read(folder({}, model_type="llama", num_hidden_layers=2))


def test_a_folder_is_told_by_its_configuration(folder):
    path = folder(bert(), model_type="bert", num_hidden_layers=2, max_position_embeddings=16)
    assert detect.read_workload(path).graph.names == hugging_face.read(path).graph.names
    (path / "config.json").unlink()
    (path / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"config\.json"):
        detect.read_workload(path)
