"""Plans for language models, as runtimes want them: what they get, and what they cannot express."""

import json
import re
import shlex
from fractions import Fraction

import numpy as np
import pytest

from optpart.errors import InputError
from optpart.exporters import llm
from optpart.exporters.chain import chain_of
from optpart.exporters.plan import Plan
from optpart.formats import llm_names
from optpart.formats.llm import Step

GPUS = {"a": "CUDA0", "b": "CUDA1"}


def plan(devices: str, *, embedding="", norm="", head="", halves=False) -> Plan:
    """A device per block, or two per block; the ends go with the first and the last."""
    words = devices.split()
    blocks = [each.split("/") for each in words]
    placed = {"embedding": embedding or blocks[0][0]}
    for number, block in enumerate(blocks):
        if len(block) == 1 and not halves:
            placed[f"block.{number}"] = block[0]
        else:
            placed[f"block.{number}.attention"] = block[0]
            placed[f"block.{number}.mlp"] = block[-1]
    placed["norm"] = norm or blocks[-1][-1]
    placed["head"] = head or blocks[-1][-1]
    return Plan("toy", "by hand", placed, {name: Fraction(k) for k, name in enumerate(placed)})


def modules(names: str, devices: str) -> Plan:
    placed = dict(zip(names.split(), devices.split(), strict=True))
    return Plan("toy", "by hand", placed, {name: Fraction(k) for k, name in enumerate(placed)})


LLAMA = "model.embed_tokens model.layers.0 model.layers.1 model.norm lm_head"


# Names


def test_vertices_of_the_reader_and_modules_form_the_same_chain() -> None:
    ours, theirs = chain_of(plan("a b")), chain_of(modules(LLAMA, "a a b b b"))
    assert [(e.place, e.number, e.device) for e in ours.links] == [
        (e.place, e.number, e.device) for e in theirs.links
    ]
    assert (ours.own_names, theirs.own_names) == (True, False)
    assert ours.blocks == theirs.blocks == 2


@pytest.mark.parametrize("granularity", ["block", "attention+mlp"])
def test_models_of_the_library_are_chains(granularity: str) -> None:
    workload = llm_names.read("llama-3-8b", Step(granularity=granularity))
    chain = chain_of(modules(" ".join(workload.graph.names), "a " * len(workload.graph)))
    assert [each.vertex for each in chain.links] == list(workload.graph.names)
    assert (chain.blocks, chain.own_names) == (32, True)


@pytest.mark.parametrize("shared", ["block.10", "model.layers.10", "transformer.h.10", "blk.10"])
def test_blocks_are_in_the_order_of_their_numbers(shared: str) -> None:
    names = [shared.replace("10", str(number)) for number in range(11)]
    chain = chain_of(modules(" ".join(names), "a " * 11))
    assert [each.vertex for each in chain.links] == names


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("embedding block.0 loss", "vertex 'loss': is no part of a language model"),
        ("embedding block.0 block.2", "block 1: is not in the plan"),
        ("block.1 block.0", "vertex 'block.1': starts before 'block.0', which is before it"),
        ("block.0 block.9999999", "a number beyond any block"),
    ],
)
def test_other_plans_are_refused(names: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chain_of(modules(names, "a " * len(names.split())))


def test_devices_need_names_that_the_target_knows() -> None:
    with pytest.raises(InputError, match=r"device 'a': is called 'a', which .* --name a=cuda:0"):
        llm.device_map(plan("a a"))
    with pytest.raises(InputError, match=r"name 'c': the plan uses no such device"):
        llm.device_map(plan("a a"), names={"a": "0", "c": "1"})
    with pytest.raises(InputError, match=r"'a' and 'b' are both called '0'"):
        llm.device_map(plan("a b"), names={"a": "0", "b": "0"})


# Hugging Face


def test_a_device_map_covers_every_module() -> None:
    text, remarks = llm.device_map(plan("a b a"), names={"a": "0", "b": "cpu"})
    assert json.loads(text) == {
        "model.embed_tokens": 0,
        "model.rotary_emb": 0,
        "model.layers.0": 0,
        "model.layers.1": "cpu",
        "model.layers.2": 0,
        "model.norm": 0,
        "lm_head": 0,
    }
    assert remarks[0] == "The order of execution is not part of a device_map."
    assert "computes them on 0" in remarks[1]


def test_a_device_map_has_the_modules_of_the_architecture() -> None:
    text, _ = llm.device_map(plan("a b"), names={"a": "cuda:0", "b": "1"}, architecture="gpt2")
    assert json.loads(text) == {
        "transformer.wte": "cuda:0",
        "transformer.wpe": "cuda:0",
        "transformer.h.0": "cuda:0",
        "transformer.h.1": 1,
        "transformer.ln_f": 1,
        "lm_head": 1,
    }
    with pytest.raises(InputError, match="choose one of llama, gpt2, gpt-neox"):
        llm.device_map(plan("a a"), names={"a": "0"}, architecture="bert")


def test_vertices_that_are_modules_keep_their_names() -> None:
    names = {"a": "0", "b": "1"}
    text, remarks = llm.device_map(modules(LLAMA, "a a b b b"), names=names)
    assert json.loads(text) == dict(zip(LLAMA.split(), [0, 0, 1, 1, 1], strict=True))
    assert "share their weights" in remarks[-1]
    with pytest.raises(InputError, match="called after modules already"):
        llm.device_map(modules(LLAMA, "a a b b b"), names=names, architecture="llama")


def test_halves_of_a_block_on_one_device_are_the_block_and_on_two_are_refused() -> None:
    text, _ = llm.device_map(plan("a", halves=True), names={"a": "0"})
    assert json.loads(text)["model.layers.0"] == 0
    halves = "model.layers.0.self_attn model.layers.0.mlp"
    assert json.loads(llm.device_map(modules(halves, "a a"), names={"a": "0"}).text) == {
        "model.layers.0": 0
    }
    with pytest.raises(InputError, match="block 0: is split between a and b, and accelerate"):
        llm.device_map(plan("a/b"), names={"a": "0", "b": "1"})


# llama.cpp


def layers_of(options: str, blocks: int) -> list[str]:
    """Where llama.cpp computes the blocks and the output layer: ``load_tensors``, restated."""
    given = shlex.split(options)
    value = dict(zip(given[::2], given[1::2], strict=True))
    devices = value.get("--device", "").split(",")
    splits = np.array([float(each) for each in value.get("--tensor-split", "1").split(",")])
    bounds = np.cumsum(splits).astype(np.float32)
    bounds /= bounds[-1]
    on_gpu = int(value["--n-gpu-layers"])
    start, active = max(blocks + 1 - on_gpu, 0), min(on_gpu, blocks + 1)
    found = []
    for layer in range(blocks + 1):
        if layer < start or layer - start >= active:
            found.append("CPU")
            continue
        share = np.float32(layer - start) / np.float32(active)
        found.append(devices[int(np.searchsorted(bounds, share, side="right"))])
    return found


def test_tensor_split_counts_blocks_and_the_output_layer() -> None:
    text, remarks = llm.llama_cpp(plan("a a b"), names={"a": "CUDA1", "b": "CUDA0"})
    assert text == ("--n-gpu-layers 4 --split-mode layer --device CUDA1,CUDA0 --tensor-split 2,2\n")
    assert layers_of(text, 3) == ["CUDA1", "CUDA1", "CUDA0", "CUDA0"]
    assert "keeps the token embedding on the CPU; the plan has it on a" in remarks[1]


@pytest.mark.parametrize("seed", range(5))
def test_llama_cpp_places_layers_as_the_plan_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        counts = rng.integers(1, 40, size=int(rng.integers(1, 7))).tolist()
        names = ["CPU", "CUDA0", "CUDA1", "Vulkan0", "CUDA2", "ROCm0"][rng.integers(2) :]
        names = names[: len(counts)]
        devices = [f"d{i}" for i, n in enumerate(counts[: len(names)]) for _ in range(n)]
        placed = plan(" ".join(devices))
        known = {f"d{i}": name for i, name in enumerate(names)}
        expected = [known[each] for each in devices]
        text, _ = llm.llama_cpp(placed, names=known)
        assert layers_of(text, len(devices)) == [*expected, expected[-1]]


@pytest.mark.parametrize(
    ("placed", "message"),
    [
        (plan("a b a"), "device 'CUDA0': has block 2 after other devices"),
        (plan("a b", head="a", norm="a"), "device 'CUDA0': has the output layer after other"),
        (plan("a b", head="a"), "norm and head: are on b and a, and form one layer"),
        (plan("a/b a"), "block 0: is split between a and b"),
    ],
)
def test_what_tensor_split_cannot_express_is_for_override_tensor(placed, message) -> None:
    with pytest.raises(InputError, match=message) as fault:
        llm.llama_cpp(placed, names=GPUS)
    assert "use --to llama.cpp-ot" in str(fault.value)
    assert llm.llama_cpp_overrides(placed, names=GPUS).text


def test_the_processor_has_the_first_layers() -> None:
    text, remarks = llm.llama_cpp(plan("c a b"), names={**GPUS, "c": "CPU"})
    assert layers_of(text, 3) == ["CPU", "CUDA0", "CUDA1", "CUDA1"]
    assert len(remarks) == 1
    assert llm.llama_cpp(plan("c c"), names={"c": "CPU"}).text == "--n-gpu-layers 0\n"
    with pytest.raises(InputError, match="device 'CPU': has block 1 after other devices"):
        llm.llama_cpp(plan("a c"), names={"a": "CUDA0", "c": "CPU"})


def tensor_place(options: str, tensor: str) -> str:
    """The buffer of a tensor: that of the first pattern that is found in its name."""
    given = shlex.split(options)
    for override in given[given.index("--override-tensor") + 1].split(","):
        pattern, _, name = override.partition("=")
        if re.search(pattern, tensor):
            return name
    return ""


def test_override_tensor_names_every_tensor_of_the_model() -> None:
    text, remarks = llm.llama_cpp_overrides(plan("a b/a b a", head="b"), names=GPUS)
    assert text == (
        r"--n-gpu-layers 5 --device CUDA0,CUDA1 --override-tensor "
        r"'^blk\.1\.attn=CUDA1,^blk\.1\.=CUDA0,^blk\.(0|3)\.=CUDA0,^blk\.(2)\.=CUDA1,"
        r"^(token_embd|token_types|position_embd)=CUDA0,^output_norm=CUDA0,^output\.=CUDA1'"
        "\n"
    )
    for tensor, place in {
        "token_embd.weight": "CUDA0",
        "blk.0.ffn_down.weight": "CUDA0",
        "blk.1.attn_q.weight": "CUDA1",
        "blk.1.ffn_up_exps.weight": "CUDA0",
        "blk.2.attn_norm.weight": "CUDA1",
        "blk.3.attn_norm.weight": "CUDA0",
        "output_norm.weight": "CUDA0",
        "output.weight": "CUDA1",
    }.items():
        assert tensor_place(text, tensor) == place
    assert "keys and values stay" in remarks[1]
    alone = llm.llama_cpp_overrides(plan("c c"), names={"c": "CPU"}).text
    assert alone.startswith("--n-gpu-layers 0 --override-tensor")
    with pytest.raises(InputError, match="which the target does not know"):
        llm.llama_cpp_overrides(plan("c c"), names={"c": "RPC[a,b]"})


# Pipelines


def test_vllm_gets_the_blocks_of_every_rank() -> None:
    text, remarks = llm.vllm(plan("b b a"), names={"a": "0", "b": "3"})
    assert text == (
        "CUDA_VISIBLE_DEVICES=3,0\n"
        "VLLM_PP_LAYER_PARTITION=2,1\n"
        "# vllm serve MODEL --pipeline-parallel-size 2\n"
    )
    assert remarks == [
        "vLLM schedules batches by itself: the start times of the plan are not kept."
    ]
    assert "Rank 0 and those after it must be b, a" in llm.vllm(plan("b b a")).remarks[1]


@pytest.mark.parametrize(
    ("placed", "message"),
    [
        (plan("a b a"), "device 'a': has 'block.2' after other devices took over"),
        (plan("a a", embedding="b"), "device 'b': has 'embedding' only, and vLLM computes"),
        (plan("a a", norm="b", head="b"), "device 'b': has 'norm' and 'head' only"),
        (plan("a/b b"), "block 0: is split between a and b, and vLLM keeps it whole"),
    ],
)
def test_what_vllm_cannot_express_is_refused(placed: Plan, message: str) -> None:
    with pytest.raises(InputError, match=message) as fault:
        llm.vllm(placed)
    assert "use --to device-map" in str(fault.value)


def layout_of(options: str) -> tuple[int, list[str]]:
    """Ranks and stages: ``parse_str_to_list`` of Megatron, restated."""
    given = shlex.split(options)
    layout = re.sub(r"(.)\*(\d+)", lambda found: found[1] * int(found[2]), given[3])
    return int(given[1]), layout.split("|")


@pytest.mark.parametrize(
    ("placed", "text", "stages"),
    [
        (plan("a a b"), "2 'Et*2|tL'", ["Ett", "tL"]),
        (plan("a b b a b"), "2 'Et|t*2|t|tL'", ["Et", "tt", "t", "tL"]),
        (plan("a a", embedding="b", head="c", norm="c"), "3 'E|t*2|L'", ["E", "tt", "L"]),
        (plan("a"), "1 EtL", ["EtL"]),
        (modules("block.0 block.1", "a b"), "2 'Et|tL'", ["Et", "tL"]),
    ],
)
def test_megatron_gets_a_layout(placed: Plan, text: str, stages: list[str]) -> None:
    found = llm.megatron(placed).text
    size, _, layout = text.partition(" ")
    assert found == (
        f"--pipeline-model-parallel-size {size} --pipeline-model-parallel-layout {layout}\n"
    )
    assert layout_of(found) == (int(size), stages)


@pytest.mark.parametrize(
    ("placed", "message"),
    [
        (plan("a b c b"), "device 'b': has 'block.3' out of turn"),
        (plan("a b a"), "device 'b': has no stage in the last of 2 turns"),
        (plan("a/b b"), "block 0: is split between a and b"),
    ],
)
def test_what_megatron_cannot_express_is_refused(placed: Plan, message: str) -> None:
    with pytest.raises(InputError, match=message):
        llm.megatron(placed)
