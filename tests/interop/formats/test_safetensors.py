"""Headers are written by hand, as the format's specification has them."""

import json
import math
import random
import re

import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import hugging_face, llm_names, native
from optpart.interop.formats.llm import Step
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance

BYTES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "U8": 1}


def llama(blocks=2, hidden=64, ffn=128, vocab=100, kv_width=32):
    """Return names and shapes of the tensors of a Llama."""
    shapes = {"model.embed_tokens.weight": (vocab, hidden)}
    for number in range(blocks):
        shapes |= {
            f"model.layers.{number}.{name}.weight": shape
            for name, shape in {
                "input_layernorm": (hidden,),
                "self_attn.q_proj": (hidden, hidden),
                "self_attn.k_proj": (kv_width, hidden),
                "self_attn.v_proj": (kv_width, hidden),
                "self_attn.o_proj": (hidden, hidden),
                "post_attention_layernorm": (hidden,),
                "mlp.gate_proj": (ffn, hidden),
                "mlp.up_proj": (ffn, hidden),
                "mlp.down_proj": (hidden, ffn),
            }.items()
        }
    return shapes | {"model.norm.weight": (hidden,), "lm_head.weight": (vocab, hidden)}


CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}


def header(shapes, type_="BF16"):
    """Return the entries of tensors that follow one another."""
    entries, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        end = at + math.prod(shape) * BYTES[type_]
        entries[name] = {"dtype": type_, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return entries


def packed(document):
    text = (document if isinstance(document, str) else json.dumps(document)).encode()
    return len(text).to_bytes(8, "little") + text


def write(folder, shapes=None, config=(), name="model.safetensors", type_="BF16"):
    """Write the header of a file, nothing behind it, and a configuration beside it."""
    settings = {key: value for key, value in {**CONFIG, **dict(config)}.items() if value != "none"}
    (folder / "config.json").write_text(json.dumps(settings))
    path = folder / name
    path.write_bytes(packed(header(llama() if shapes is None else shapes, type_)))
    return path


def test_sizes_and_work_are_those_of_the_tensors(tmp_path):
    found = hugging_face.read(write(tmp_path), Step(context=1))
    attention, mlp = 2 * 64 * 64 + 2 * 32 * 64, 3 * 128 * 64
    assert found.graph.names == ("embedding", "block.0", "block.1", "norm", "head")
    block = 2 * (attention + mlp + 128) + 2 * 2 * 16 * 2
    memory = [2 * 6400, block, block, 128, 2 * 6400]
    assert [*map(int, found.graph.memory)] == memory
    assert int(found.work.flops[1]) == 2 * (attention + mlp) + 4 * (2 * 32 + 6)
    assert found.work.kinds[3] == "RMSNormalization"
    assert set(found.work.precisions) == {"bfloat16"}
    assert [*map(int, found.graph.tensor_size)] == [128] * 4 + [400]


def test_a_large_model_in_files_is_its_headers(tmp_path):
    shapes = llama(80, 8192, 28672, 128256, 1024)
    config = {
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    }
    names = [*shapes]
    parts = {"a.safetensors": names[:300], "b.safetensors": names[300:]}
    for part, held in parts.items():
        write(tmp_path, {name: shapes[name] for name in held}, config, part)
    index = tmp_path / "model.safetensors.index.json"
    weight_map = {name: part for part, held in parts.items() for name in held}
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    found = hugging_face.read(index, Step(context=9))
    named = llm_names.read("llama-3-70b", Step(context=9))
    for part in ("flops", "read", "written"):
        assert [*getattr(found.work, part)] == [*getattr(named.work, part)]
    assert [*found.graph.memory] == [*named.graph.memory]


def test_a_tied_head_is_counted_once(tmp_path):
    without = {name: shape for name, shape in llama().items() if name != "lm_head.weight"}
    for shapes, tied in ((without, True), (without, "none"), (llama(), True)):
        path = write(tmp_path, shapes, {"tie_word_embeddings": tied})
        assert int(hugging_face.read(path, Step(tied="share")).graph.memory[4]) == 0
    with pytest.raises(InputError, match="has no matrix of the head"):
        hugging_face.read(write(tmp_path, without, {"tie_word_embeddings": False}))


def test_gpt2_names_and_masks(tmp_path):
    shapes = {"wte.weight": (100, 64), "wpe.weight": (32, 64), "ln_f.weight": (64,)}
    for number in range(2):
        shapes |= {
            f"h.{number}.ln_1.weight": (64,),
            f"h.{number}.attn.bias": (1, 1, 32, 32),
            f"h.{number}.attn.c_attn.weight": (64, 192),
            f"h.{number}.attn.c_proj.weight": (64, 64),
            f"h.{number}.ln_2.weight": (64,),
            f"h.{number}.mlp.c_fc.weight": (64, 256),
            f"h.{number}.mlp.c_proj.weight": (256, 64),
        }
    config = {
        "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32, "num_key_value_heads": "none",
        "hidden_size": "none", "num_hidden_layers": "none", "num_attention_heads": "none",
        "rms_norm_eps": "none", "max_position_embeddings": "none",
    }  # fmt: skip
    found = hugging_face.read(write(tmp_path, shapes, config, type_="F32"), Step(context=1))
    assert found.work.kinds[3] == "LayerNormalization"
    assert int(found.work.flops[1]) == 2 * (64 * 256 + 2 * 64 * 256) + 4 * (2 * 32 + 6)
    assert int(found.graph.memory[0]) == 132 * 64 * 4
    assert "Left out as computed: h.0.attn.bias, h.1.attn.bias." in found.assumed


def test_experts_are_files_tensors_of_their_own(tmp_path):
    shapes = {name: shape for name, shape in llama().items() if ".mlp." not in name}
    for number in range(2):
        moe = f"model.layers.{number}.block_sparse_moe"
        shapes[f"{moe}.gate.weight"] = (4, 64)
        for expert in range(4):
            shapes |= {
                f"{moe}.experts.{expert}.w1.weight": (128, 64),
                f"{moe}.experts.{expert}.w2.weight": (64, 128),
                f"{moe}.experts.{expert}.w3.weight": (128, 64),
            }
    path = write(tmp_path, shapes, {"num_local_experts": 4, "num_experts_per_tok": 2})
    found = hugging_face.read(path, Step(granularity="attention+mlp"))
    expert = 3 * 128 * 64
    # The norm before experts belongs to their vertex.
    assert int(found.graph.memory[2]) == 2 * (4 * expert + 4 * 64 + 64)
    assert int(found.work.flops[2]) == 2 * (2 * expert + 4 * 64)
    assert int(found.work.read[2]) == 2 * (2 * expert + 4 * 64 + 64) + 128


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        ({"sliding_window": 10}, [True, True]),
        ({"sliding_window": 10, "use_sliding_window": False}, [False, False]),
        ({"sliding_window": None}, [False, False]),
        ({"sliding_window": 10, "max_window_layers": 1}, [False, True]),
        ({"sliding_window": 10, "model_type": "gemma2"}, [True, False]),
        (
            {"sliding_window": 10, "layer_types": ["full_attention", "sliding_attention"]},
            [False, True],
        ),
    ],
)
def test_windows_are_those_of_the_configuration(tmp_path, config, windows):
    path = write(tmp_path, config=config)
    short, long = (hugging_face.read(path, Step(context=c)).graph.memory for c in (10, 50))
    grown = [int(long[v]) == int(short[v]) for v in (1, 2)]
    assert grown == windows


def test_the_native_format_keeps_it(tmp_path):
    graph = hugging_face.read(write(tmp_path)).graph
    instance = Instance(graph, Cluster.uniform(2), name="tiny")
    native.write(instance, tmp_path / "tiny.json")
    assert native.dumps(native.read(tmp_path / "tiny.json")) == native.dumps(instance)


def test_the_first_bytes_tell_the_format(tmp_path):
    assert hugging_face.sniff(write(tmp_path).read_bytes()[:64])
    assert not hugging_face.sniff(b'{"weight_map": {}}')
    assert not hugging_face.sniff(b"GGUF" + bytes(60))


def without(entries, *names):
    return {name: entry for name, entry in entries.items() if name not in names}


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"num_attention_heads": "none"}, "num_attention_heads: the number of heads is missing; "),
        ({"hidden_size": -1}, "hidden_size: the hidden size is -1; give a whole number"),
        ({"num_hidden_layers": 10**5}, "num_hidden_layers: 100000 blocks; give at most 10000"),
        ({"num_hidden_layers": 3}, "model, block 2: has no attention matrix; "),
        ({"num_key_value_heads": 4}, "tensor 'model.layers.0.self_attn.k_proj.weight': has 32 "),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim: the width of rotated keys is missing; "),
        (
            {"quantization_config": {"quant_method": "gptq"}},
            "quantization_config: was quantised by 'gptq', into tensors of other shapes; ",
        ),
        ({"layer_types": ["a"], "sliding_window": 9}, "layer_types: ['a']; give a list of 2"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(tmp_path, config, fault):
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(InputError) as caught:
        hugging_face.read(write(folder, config=config))
    assert fault in str(caught.value)


def test_without_a_configuration_it_is_refused(tmp_path):
    path = write(tmp_path)
    for content, fault in ((None, "no config.json beside it"), ("[]", "not an object")):
        (tmp_path / "config.json").unlink()
        if content:
            (tmp_path / "config.json").write_text(content)
        with pytest.raises(InputError, match=fault):
            hugging_face.read(path)
        (tmp_path / "config.json").write_text("")


ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is no safetensors file (its header would have 0 bytes); "),
        (b"\xff" * 9, "is no safetensors file (its header would have 18446744073709551615 bytes"),
        (packed("{}")[:-1], "ends within its header; "),
        (packed("{}"), "0 tensors; give 1 to"),
        (packed("[]"), "its header is no object; "),
        (packed("{x}"), "line 1, column 2: is not JSON"),
        ((2).to_bytes(8, "little") + b"{\xff", "is no safetensors file; "),
        (packed({"a": 1}), "tensor 'a': not an object; "),
        (packed({"a": ENTRY | {"dtype": "F5"}}), "tensor 'a': unknown type 'F5'; give one of F64"),
        (packed({"a": ENTRY | {"dtype": []}}), "tensor 'a': unknown type []; "),
        (packed({"a": ENTRY | {"shape": [-1]}}), "tensor 'a': shape [-1]; give at most 5 lengths"),
        (packed({"a": ENTRY | {"shape": [True]}}), "tensor 'a': shape [True]; "),
        (packed({"a": ENTRY | {"data_offsets": [0, 9]}}), "tensor 'a': offsets [0, 9] do not fit"),
        (packed({"a": ENTRY}), "tensor 'a': is of no attention, feed-forward, norm, embedding or"),
    ],
)
def test_a_faulty_header_ends_in_one_line(tmp_path, content, fault):
    path = write(tmp_path)
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        hugging_face.read(path)
    assert str(caught.value).startswith(f"{path}: {fault}"[:200])


@pytest.mark.parametrize(
    ("weight_map", "fault"),
    [
        (None, "weight_map: missing; "),
        ({"a": "../x.safetensors"}, "weight_map.'a': '../x.safetensors' is no name of a file; "),
        ({"a": ".."}, "weight_map.'a': '..' is no name of a file; "),
        ({"a": 1}, "weight_map.'a': 1 is no name of a file; "),
        ({"a": "gone"}, "cannot be read (No such file or directory); "),
        ({"a": "model.safetensors"}, "weight_map: 'model.embed_tokens.weight' is in "),
    ],
)
def test_a_faulty_index_ends_in_one_line(tmp_path, weight_map, fault):
    write(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(InputError) as caught:
        hugging_face.read(index)
    assert fault in str(caught.value)


def test_a_tensor_that_its_file_lacks_is_named(tmp_path):
    path = write(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    weight_map = dict.fromkeys([*llama(), "more"], path.name)
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(InputError, match=r"weight_map: .more. is not in"):
        hugging_face.read(index)


@pytest.mark.parametrize("seed", range(3))
def test_of_a_damaged_file_every_fault_is_one_line(tmp_path, seed):
    draw = random.Random(seed)
    files = [write(tmp_path), tmp_path / "config.json", tmp_path / "model.safetensors.index.json"]
    files[2].write_text(json.dumps({"weight_map": dict.fromkeys(llama(), files[0].name)}))
    whole = [path.read_bytes() for path in files]
    for _ in range(100):
        which = draw.randrange(3)
        files[which].write_bytes(damaged(whole[which], draw))
        fault = ""
        try:
            hugging_face.read(files[draw.choice([0, 2])])
        except InputError as error:
            fault = str(error)
        assert re.fullmatch(r"([^\n]+; [^\n]+)?", fault)
        files[which].write_bytes(whole[which])


def damaged(content, draw):
    """Change some bytes, leave some out, or put numbers in their place."""
    content = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(max(1, len(content)))
        match draw.randrange(5):
            case 0:
                content[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del content[at : at + draw.randint(1, 40)]
            case 2:
                content[at : at + 1] = draw.choice([b"9" * 30, b"-1", b"null", b"[", b"{}", b"1e9"])
            case 3:
                numbers = [match.span() for match in re.finditer(rb"\d+", content)]
                if numbers:
                    start, end = draw.choice(numbers)
                    content[start:end] = draw.choice([b"0", b"-1", b"1" * 25, b"true", b"0.5"])
            case _:
                content = content[: max(1, at)]
    return bytes(content)
