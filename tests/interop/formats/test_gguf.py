"""Files are written by llama.cpp's own library; what it does not write is written by hand."""

import math
import random
import re
import struct

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import gguf, llm_names, native
from optpart.interop.formats.llm import Step
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance

writer = pytest.importorskip("gguf")
TYPE = writer.GGMLQuantizationType


def llama(blocks=2, hidden=256, ffn=512, vocab=320, kv_width=128, type_=TYPE.Q4_K):
    """Return names, shapes and types of the tensors of a Llama, as llama.cpp names them."""
    norm = TYPE.F32
    tensors = [("token_embd.weight", (vocab, hidden), type_)]
    for number in range(blocks):
        tensors += [
            (f"blk.{number}.{name}.weight", shape, kind)
            for name, shape, kind in (
                ("attn_norm", (hidden,), norm),
                ("attn_q", (hidden, hidden), type_),
                ("attn_k", (kv_width, hidden), type_),
                ("attn_v", (kv_width, hidden), TYPE.Q6_K if type_ == TYPE.Q4_K else type_),
                ("attn_output", (hidden, hidden), type_),
                ("ffn_norm", (hidden,), norm),
                ("ffn_gate", (ffn, hidden), type_),
                ("ffn_up", (ffn, hidden), type_),
                ("ffn_down", (hidden, ffn), type_),
            )
        ]
    return [
        *tensors,
        ("output_norm.weight", (hidden,), norm),
        ("output.weight", (vocab, hidden), type_),
        ("rope_freqs.weight", (32,), norm),
    ]


SETTINGS = {
    "block_count": 2,
    "context_length": 4096,
    "embedding_length": 256,
    "feed_forward_length": 512,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}


def write(path, tensors=None, settings=(), words=0, architecture="llama", split=None, **arrays):
    """Write a header, and nothing behind it."""
    out = writer.GGUFWriter(None, architecture)
    out.add_name("Tiny")
    for key, value in {**SETTINGS, **dict(settings)}.items():
        if isinstance(value, bool):
            out.add_bool(f"{architecture}.{key}", value)
        elif value is not None:
            out.add_uint32(f"{architecture}.{key}", value)
    for key, values in arrays.items():
        out.add_array(f"{architecture}.attention.{key}", values)
    out.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-5)
    if split:
        out.add_uint16("split.count", split)
    if words:
        out.add_token_list([f"word {number}" for number in range(words)])
        out.add_token_scores([0.0] * words)
    for name, shape, type_ in llama() if tensors is None else tensors:
        block, stored = writer.GGML_QUANT_SIZES[type_]
        row = shape[-1] // block * stored  # the library wants bytes here
        bytes_ = math.prod(shape[:-1]) * row
        given = (*shape[:-1], row)
        out.add_tensor_info(name, given, np.dtype(np.uint8), bytes_, raw_dtype=type_)
    out.write_header_to_file(path)
    out.write_kv_data_to_file()
    out.write_ti_data_to_file()
    out.close()
    return path


def test_sizes_are_those_of_the_quantised_tensors(tmp_path):
    found = gguf.read(write(tmp_path / "tiny.gguf"), Step(context=1, kv_dtype="float16"))
    assert found.name == "Tiny-decode"
    assert found.graph.names == ("embedding", "block.0", "block.1", "norm", "head")
    q4, q6, f32 = 144 / 256, 210 / 256, 4
    attention = (2 * 256 * 256 + 128 * 256) * q4 + 128 * 256 * q6 + (256 + 32) * f32
    mlp = 3 * 512 * 256 * q4 + 256 * f32
    cache = 2 * 2 * 64 * 2
    assert [*map(int, found.graph.memory)] == [
        320 * 256 * q4,
        attention + mlp + cache,
        attention + mlp + cache,
        256 * f32,
        320 * 256 * q4,
    ]
    assert set(found.work.precisions) == {"q4_K", "float32"}
    assert [*map(int, found.graph.tensor_size)] == [4 * 256] * 4 + [4 * 320]


def test_work_is_that_of_the_elements(tmp_path):
    found = gguf.read(write(tmp_path / "tiny.gguf"), Step(context=1))
    matrices = 2 * 256 * 256 + 2 * 128 * 256 + 3 * 512 * 256
    scores = 4 * (2 * 2 * 64 + 6)
    assert int(found.work.flops[1]) == 2 * matrices + scores
    assert int(found.work.flops[4]) == 2 * 320 * 256


@pytest.mark.parametrize("type_", [*{*gguf._TENSOR_TYPES} - {24, 25, 26, 27, 28}])
def test_every_type_of_the_library_has_its_size(tmp_path, type_):
    kind = TYPE(type_)
    found = gguf.read(write(tmp_path / "x.gguf", llama(type_=kind)), Step(context=1))
    block, stored = writer.GGML_QUANT_SIZES[kind]
    assert int(found.graph.memory[0]) == 320 * 256 // block * stored


def test_a_large_model_is_its_header(tmp_path):
    shapes = llama(80, 8192, 28672, 128256, 1024, TYPE.F16)
    settings = {
        "block_count": 80,
        "embedding_length": 8192,
        "attention.head_count": 64,
        "attention.head_count_kv": 8,
    }
    path = write(tmp_path / "big.gguf", shapes, settings, words=128256)
    assert path.stat().st_size < 4_000_000
    found = gguf.read(path, Step(context=1))
    named = llm_names.read("llama-3-70b", Step(context=1, activations="float32"), weights="float16")
    assert [*map(int, found.work.flops)] == [*map(int, named.work.flops)]
    # The file has the norms in float32 and frequencies of rotations.
    excess = sum(map(int, found.graph.memory)) - sum(map(int, named.graph.memory))
    assert excess == 161 * 8192 * 2 + 80 * 32 * 4


def test_experts_are_read_as_they_are_used(tmp_path):
    tensors = [
        (name.replace(".weight", "_exps.weight"), (8, *shape), kind)
        if "ffn_" in name and "norm" not in name
        else (name, shape, kind)
        for name, shape, kind in llama(type_=TYPE.F16)
    ]
    tensors += [(f"blk.{number}.ffn_gate_inp.weight", (8, 256), TYPE.F32) for number in range(2)]
    settings = {"expert_count": 8, "expert_used_count": 2}
    path = write(tmp_path / "moe.gguf", tensors, settings)
    found = gguf.read(path, Step(context=1, granularity="attention+mlp"))
    expert = 3 * 512 * 256
    assert int(found.work.flops[2]) == 2 * (2 * expert + 8 * 256)
    assert int(found.graph.memory[2]) == 8 * expert * 2 + (8 * 256 + 256) * 4
    assert int(found.work.read[2]) == 2 * expert * 2 + (8 * 256 + 256) * 4 + 256 * 4
    # llama.cpp can place the experts apart, so that they are vertices unless told otherwise.
    apart = gguf.read(path, Step(context=1))
    assert apart.graph.names[2:4] == ("block.0.mlp", "block.0.experts")
    assert int(apart.graph.memory[2]) == (8 * 256 + 256) * 4
    assert int(apart.graph.memory[3]) == 8 * expert * 2


def test_without_an_output_matrix_the_head_uses_the_embedding(tmp_path):
    tensors = [each for each in llama() if each[0] != "output.weight"]
    found = gguf.read(write(tmp_path / "tied.gguf", tensors), Step(tied="share"))
    assert found.graph.colocation == ((0, 4),)
    assert int(found.graph.memory[4]) == 0


def test_heads_may_be_given_block_by_block(tmp_path):
    tensors = [
        (name, (64, 256) if name in ("blk.1.attn_k.weight", "blk.1.attn_v.weight") else shape, kind)
        for name, shape, kind in llama(type_=TYPE.F16)
    ]
    settings = {"attention.head_count_kv": None}
    path = write(tmp_path / "x.gguf", tensors, settings, head_count_kv=[2, 1])
    one, two = (gguf.read(path, Step(context=c)).graph.memory for c in (1, 2))
    assert [int(b) - int(a) for a, b in zip(one, two, strict=True)] == [0, 512, 256, 0, 0]


def test_all_but_some_blocks_of_gemma_have_a_window(tmp_path):
    settings = {"attention.sliding_window": 10}
    path = write(tmp_path / "x.gguf", settings=settings, architecture="gemma2")
    found = gguf.read(path, Step(context=100))
    cached = 2 * 2 * 64 * 2
    assert int(found.graph.memory[2]) - int(found.graph.memory[1]) == 90 * cached
    everywhere = gguf.read(write(tmp_path / "y.gguf", settings=settings), Step(context=100))
    assert int(everywhere.graph.memory[2]) == int(everywhere.graph.memory[1])


def test_three_of_four_blocks_of_llama_4_attend_to_chunks(tmp_path):
    tensors = [
        each if ".ffn_" not in each[0] or int(each[0].split(".")[1]) % 2 == 0 else
        (each[0].replace("up.", "up_exps."), (4, *each[1]), each[2])
        if "up." in each[0] else (each[0].replace("gate.", "gate_shexp."), *each[1:])
        for each in llama(4)
    ]  # fmt: skip
    settings = {"block_count": 4, "expert_count": 4, "expert_used_count": 1}
    path = write(tmp_path / "tiny.gguf", tensors, settings, architecture="llama4")
    step = Step(context=10_000, granularity="block")
    cached = gguf.read(path, step).cached
    assert [each // (2 * 128 * 2) for each in cached[1:5]] == [8192] * 3 + [10_000]
    names = gguf.read(path).graph.names
    assert "block.1.experts" in names
    assert "block.0.experts" not in names
    none = write(tmp_path / "none.gguf", tensors, settings | {"attention.sliding_window": 0},
                 architecture="llama4")  # fmt: skip
    assert {each // (2 * 128 * 2) for each in gguf.read(none, step).cached[1:5]} == {10_000}


def test_any_part_of_a_split_model_names_the_others(tmp_path):
    tensors = llama()
    first = write(tmp_path / "m-00001-of-00002.gguf", tensors[:9], split=2)
    second = write(tmp_path / "m-00002-of-00002.gguf", tensors[9:], split=2)
    whole = gguf.read(write(tmp_path / "whole.gguf"))
    for part in (first, second):
        assert [*gguf.read(part).work.read] == [*whole.work.read]
    first.unlink()
    with pytest.raises(InputError, match=r"00001-of-00002.gguf: cannot be read \(No such file"):
        gguf.read(second)
    with pytest.raises(InputError, match="which its name does not tell"):
        gguf.read(second.rename(tmp_path / "other.gguf"))


def test_the_native_format_keeps_it(tmp_path):
    graph = gguf.read(write(tmp_path / "tiny.gguf")).graph
    instance = Instance(graph, Cluster.uniform(2), name="tiny")
    native.write(instance, tmp_path / "tiny.json")
    assert native.dumps(native.read(tmp_path / "tiny.json")) == native.dumps(instance)


def test_the_first_bytes_tell_the_format(tmp_path):
    assert gguf.sniff(write(tmp_path / "tiny.gguf").read_bytes()[:64])
    assert not gguf.sniff(b"GGML" + bytes(60))


def changed(tensors, name, entry):
    """Replace one tensor."""
    return [entry if each[0] == name else each for each in tensors]


@pytest.mark.parametrize(
    ("tensors", "settings", "fault"),
    [
        (
            [*llama(), ("blk.0.ssm_in.weight", (8, 8), TYPE.F16)],
            {},
            "tensor 'blk.0.ssm_in.weight': is of no attention, feed-forward, norm, embedding or",
        ),
        (
            changed(llama(), "blk.1.attn_k.weight", ("blk.1.attn_k.weight", (64, 256), TYPE.F16)),
            {},
            "tensor 'blk.1.attn_k.weight': has 64 rows, but the entries say 128; correct one of",
        ),
        (llama()[1:], {}, "has no matrix 'token_embd.weight'; give a language model, or the first"),
        (llama(1), {}, "Tiny, block 1: has no attention matrix; give the whole model"),
        (llama(3), {}, "Tiny: has weights of block 2, but 2 blocks; correct the number of blocks"),
        (None, {"attention.head_count": None}, "entry 'llama.attention.head_count': missing; "),
        (None, {"block_count": 10**6}, "entry 'block_count': 1000000; give at most 10000"),
        (None, {"attention.causal": False}, "is an encoder, whose tokens attend to later ones; "),
        (None, {"attention.kv_lora_rank": 4}, "has attention with latent keys, whose cache is"),
    ],
)
def test_what_is_no_decoder_is_refused(tmp_path, tensors, settings, fault):
    path = write(tmp_path / "x.gguf", tensors, settings)
    with pytest.raises(InputError) as caught:
        gguf.read(path)
    assert str(caught.value).startswith(f"{path}: {fault}"[:200])


def raw(*parts):
    """Join numbers of 8 bytes, texts behind their lengths, and bytes."""
    packed = b""
    for part in parts:
        if isinstance(part, str):
            packed += struct.pack("<Q", len(part)) + part.encode()
        else:
            packed += struct.pack("<Q", part) if isinstance(part, int) else part
    return packed


def u32(number):
    return struct.pack("<I", number)


HEAD = b"GGUF" + u32(3)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "its mark: the file ends within its header; give a GGUF file with its whole"),
        (b"GGML" + bytes(20), "is no GGUF file; "),
        (b"GGUF" + u32(1) + bytes(16), "version: version 1; this program reads versions 2 and 3"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(16), "version: is big-endian; "),
        (HEAD + raw(0, 0), "entry 'general.architecture': missing; give a language model"),
        (HEAD + raw(2**60, 0), "1152921504606846976 tensors; give at most"),
        (HEAD + raw(9, 0), "tensors: the file ends within its header"),
        (HEAD + raw(0, 1, 2**40) + bytes(9), "1099511627776 bytes in a name of entry 0; "),
        (HEAD + raw(0, 1, "k", u32(99)), "entry 'k': a value of unknown type 99; "),
        (HEAD + raw(0, 1, "k", u32(9), u32(9), 1), "entry 'k': a value of unknown type 9; "),
        (HEAD + raw(0, 1, "k", u32(9), u32(8), 2**40), "1099511627776 strings in entry 'k'; "),
        (HEAD + raw(0, 1, "k", u32(9), u32(0), 2**20), "elements in entry 'k': the file ends"),
        (HEAD + raw(0, 2, "k", u32(4), u32(1), "k", u32(4), u32(1)), "entry 'k': is there twice"),
        (HEAD + raw(0, 1, "k", u32(8), 1, b"\xff"), "entry 'k': a text that is not UTF-8; "),
        (HEAD + raw(1, 0, "t", u32(9)) + bytes(99), "tensor 't': 9 axes; give 1 to 4"),
        (HEAD + raw(1, 0, "t", u32(1), 0) + bytes(99), "tensor 't': axes of [0]; "),
        (HEAD + raw(1, 0, "t", u32(1), 32, u32(4), 0), "tensor 't': unknown type 4; give one of"),
        (
            HEAD + raw(1, 0, "t", u32(1), 32, u32(12), 0),
            "tensor 't': rows of 32 elements, but q4_K has blocks of 256; give rows of whole",
        ),
    ],
)
def test_a_faulty_header_ends_in_one_line(tmp_path, content, fault):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        gguf.read(path)
    assert str(caught.value).startswith(f"{path}: {fault}"[:200])


def test_what_is_no_file_is_refused(tmp_path):
    for path, fault in (
        (tmp_path, "is no file"),
        (tmp_path / "no.gguf", r"cannot be read \(No such"),
        ("\0", "cannot be the name"),
    ):
        with pytest.raises(InputError, match=fault):
            gguf.read(path)


@pytest.mark.parametrize("seed", range(3))
def test_of_a_damaged_file_every_fault_is_one_line(tmp_path, seed):
    draw = random.Random(seed)
    whole = write(tmp_path / "whole.gguf", words=3).read_bytes()
    path = tmp_path / "x.gguf"
    for _ in range(100):
        path.write_bytes(damaged(whole, draw))
        fault = ""
        try:
            gguf.read(path)
        except InputError as error:
            fault = str(error)
        assert re.fullmatch(r"([^\n]+; [^\n]+)?", fault)


def damaged(content, draw):
    """Change some bytes, leave some out, or put numbers in their place."""
    content = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(max(1, len(content)))
        match draw.randrange(4):
            case 0:
                content[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del content[at : at + draw.randint(1, 40)]
            case 2:
                big = draw.choice([0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1])
                content[at : at + 8] = struct.pack("<Q", big)
            case _:
                content = content[: max(1, at)]
    return bytes(content)


def mmproj(path, tensors=(), projector="gemma3", **settings):
    """Write the file of a vision tower: two blocks of 64 numbers, and a projection to 256."""
    out = writer.GGUFWriter(None, "clip")
    out.add_string("clip.projector_type", projector)
    given = {"block_count": 2, "embedding_length": 64, "attention.head_count": 4,
             "image_size": 224, "patch_size": 14, **settings}  # fmt: skip
    for key, value in given.items():
        out.add_uint32(f"clip.vision.{key}", value)
    shapes = {"v.patch_embd.weight": (64, 3, 14, 14), "v.position_embd.weight": (256, 64),
              "mm.input_projection.weight": (64, 256), "v.post_ln.weight": (64,)}  # fmt: skip
    for number in range(2):
        shapes |= {f"v.blk.{number}.attn_q.weight": (64, 64),
                   f"v.blk.{number}.ffn_up.weight": (128, 64)}  # fmt: skip
    for name, shape in {**shapes, **dict(tensors)}.items():
        size = 2 * math.prod(shape)
        out.add_tensor_info(name, shape, np.dtype(np.float16), size, raw_dtype=TYPE.F16)
    out.write_header_to_file(path)
    out.write_kv_data_to_file()
    out.write_ti_data_to_file()
    out.close()
    return path


def test_what_sees_is_in_a_file_of_its_own(tmp_path):
    model, sees = write(tmp_path / "m.gguf"), mmproj(tmp_path / "mmproj.gguf")
    found = gguf.read(model, Step(mode="prefill", images=3), mmproj=sees)
    inside = 588 * 64 + 2 * (64 + 128) * 64
    flops = 2 * 256 * inside + 2 * 256**2 * (4 * 64 + 6 * 4) + 2 * 16 * 64 * 256
    assert found.graph.names[0] == "vision"
    assert found.work.flops[0] == 3 * flops
    assert found.graph.memory[0] == 2 * (inside + 256 * 64 + 64 * 256 + 64)
    assert found.graph.tensor_size[0] == 3 * 16 * 256 * 4
    held = gguf.read(model, mmproj=sees)
    assert (held.work.flops[0], held.graph.memory[0]) == (0, found.graph.memory[0])
    both = [(name, shape, TYPE.F16) for name, shape in
            (("v.blk.0.attn_q.weight", (64, 64)), ("mm.0.weight", (256, 64)))]  # fmt: skip
    assert gguf.read(write(tmp_path / "b.gguf", [*llama(), *both])).graph.memory[0] == 2 * 320 * 64
    (tmp_path / "q.gguf").write_bytes(mmproj(tmp_path / "x.gguf", projector="qwen2vl_merger",
                                             n_wa_pattern=2).read_bytes())  # fmt: skip
    step = Step(mode="prefill", images=1, image_size=224)
    windows = gguf.read(model, step, mmproj=tmp_path / "q.gguf")
    pairs = 256**2 + (8 * 8) ** 2 * 4
    assert windows.work.flops[0] == (
        2 * 256 * inside + pairs * (4 * 64 + 6 * 4) + 2 * 64 * 64 * 256
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"projector": "other"}, "vision tower, merge: 0; give the whole model, or leave --im"),
        (
            {"tensors": {"a.blk.0.attn_q.weight": (64, 64)}},
            "'a.blk.0.attn_q.weight': is of an audio tower",
        ),
        ({"tensors": {"mm.input_projection.weight": (64, 128)}}, "makes no states of 256 numbers"),
    ],
)
def test_what_does_not_see_for_this_model_is_refused(tmp_path, change, fault):
    model, sees = write(tmp_path / "m.gguf"), mmproj(tmp_path / "mmproj.gguf", **change)
    with pytest.raises(InputError) as error:
        gguf.read(model, Step(mode="prefill", images=1), mmproj=sees)
    assert fault in str(error.value)


def test_what_sees_alone_is_no_language_model(tmp_path):
    model, sees = write(tmp_path / "m.gguf"), mmproj(tmp_path / "mmproj.gguf")
    with pytest.raises(
        InputError, match="holds a vision tower alone; give the language model, and thi"
    ):
        gguf.read(sees)
    with pytest.raises(InputError, match="holds no vision tower"):
        gguf.read(model, mmproj=model)
    with pytest.raises(InputError, match="images: the model has no vision tower; leave the opt"):
        gguf.read(model, Step(images=0))
