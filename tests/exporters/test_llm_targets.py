"""Plans for language models, as runtimes want them: what they get, and what they cannot express."""

import json
import re
import shlex
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_plans import by_hand, plan

from optpart.base.errors import InputError
from optpart.exporters import llm
from optpart.exporters.chain import chain_of
from optpart.exporters.device_map import device_map
from optpart.exporters.plan import Plan
from optpart.exporters.registry import Options, export, target
from optpart.exporters.torch import torch_split
from optpart.interop.formats import llm_names
from optpart.interop.formats.llm import Step


def modules(names: str, devices: str) -> Plan:
    placed = dict(zip(names.split(), devices.split(), strict=True))
    return by_hand(placed)


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
        device_map(plan("a a"))
    with pytest.raises(InputError, match=r"'a' and 'b' are both called '0'"):
        device_map(plan("a b"), names={"a": "0", "b": "0"})


def test_a_name_of_a_device_that_is_not_used_is_ignored_and_said() -> None:
    options = Options(names={"a": "0", "c": "1"}, architecture="llama")
    found = export(plan("a a"), target("device-map"), options, None)
    assert found.remarks[-1] == "The plan uses no device 'c', whose name is ignored."
    with pytest.raises(InputError, match=r"name 'c': the cluster has no such device; .* one of a"):
        export(replace(plan("a a"), types={"a": "GPU"}), target("device-map"), options, None)


@pytest.mark.parametrize(
    ("device", "types", "hint"),
    [
        ("big", {"big": "GPU"}, "--name big=cuda:0"),
        ("host", {"host": "CPU"}, "--name host=cpu"),
        ("epyc-7763", {}, "--name epyc-7763=cpu"),
        ("cpu0", {}, "--name cpu0=cpu"),
        ("rtx-3090", {}, "--name rtx-3090=cuda:0"),
        ("d0", {}, "--name d0=cuda:0, or --name d0=cpu for a processor"),
    ],
)
def test_the_name_that_is_proposed_is_one_of_the_type_of_the_device(device, types, hint) -> None:
    with pytest.raises(InputError) as fault:
        device_map(replace(plan(device), types=types))
    assert str(fault.value).endswith(f"; give {hint}")


# Pipelines


def vllm_layers(partition: str, *, ranks: int, layers: int) -> list[int]:
    """The rank of every layer: a count per rank, which together are all layers."""
    counts = [int(count) for count in partition.split(",")]
    assert len(counts) == ranks
    assert sum(counts) == layers
    return [rank for rank, count in enumerate(counts) for _ in range(count)]


def megatron_stages(layout: str) -> list[str]:
    """Stages of single letters: a number after a star repeats the letter before it."""
    stages = [""]
    for letter, count in re.findall(r"([EtmL|])(?:\*(\d+))?", layout):
        for _ in range(int(count or 1)):
            if letter == "|":
                stages.append("")
            else:
                stages[-1] += letter
    assert re.fullmatch(r"([EtmL|](\*\d+)?)+", layout)
    return stages


def megatron_takes(stages: list[str], *, ranks: int, layers: int) -> bool:
    """Whether a layout passes: as many stages in every turn of the ranks, the embedding first, the
    loss last, both once, every decoder layer once; taking turns takes two ranks."""
    parts = "".join(stages)
    turns, left = divmod(len(stages), ranks)
    return (
        not left
        and (turns == 1 or ranks > 1)
        and (parts[0], parts[-1]) == ("E", "L")
        and [parts.count(part) for part in "ELtm"] == [1, 1, layers, 0]
    )


@pytest.mark.parametrize(
    "layout", ["Ett|t|L", "tE|tL", "Et|Et|L|", "Et|t", "Et|L|", "EtL|t", "Ett|tt|L|", "EtmtL|"]
)
def test_layouts_that_megatron_does_not_take(layout: str) -> None:
    assert megatron_takes(megatron_stages("Et*2|tL"), ranks=2, layers=3)
    assert not megatron_takes(megatron_stages(layout), ranks=2, layers=3)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_of_a_block_on_one_device_are_the_block(parts: int) -> None:
    placed = plan(" ".join("/".join([device] * parts) for device in "aab"))
    assert "VLLM_PP_LAYER_PARTITION=2,1\n" in llm.vllm(placed).text
    assert llm.megatron(placed).text.endswith(" 'Et*2|tL'\n")
    assert "'model.layers.2'" in torch_split(placed, architecture="llama").text
    names = {"a": "0", "b": "1"}
    found = json.loads(device_map(placed, names=names, architecture="llama").text)
    assert [found[f"model.layers.{number}"] for number in range(3)] == [0, 0, 1]
    if parts > 1:
        apart = plan("/".join(["a"] * (parts - 1) + ["b"]))
        for write in (llm.vllm, llm.megatron, device_map):
            options = {"names": names, "architecture": "llama"} if write is device_map else {}
            with pytest.raises(InputError, match="block 0: is split between a and b"):
                write(apart, **options)


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
    assert megatron_stages(shlex.split(layout)[0]) == stages
    assert megatron_takes(stages, ranks=int(size), layers="".join(stages).count("t"))


@pytest.mark.parametrize(
    ("placed", "message"),
    [
        (plan("a b c b"), "device 'b': has 'block.3' out of turn"),
        (plan("a b a"), "device 'b': has no stage in the last of 2 turns"),
        (plan("a/b b"), "block 0: is split between a and b"),
        (modules("wte wpe h.0 ln_f lm_head", "a b b b b"), "embedding: is split .* names it once"),
        (modules("wte h.0 head lm_head", "a a a b"), "head: is split between a and b"),
        (plan("a b", norm="c", head="d"), "norm: is on another device than the last block"),
    ],
)
def test_what_megatron_cannot_express_is_refused(placed: Plan, message: str) -> None:
    with pytest.raises(InputError, match=message):
        llm.megatron(placed)


def test_megatron_computes_the_norm_with_the_head() -> None:
    found = llm.megatron(plan("a a", head="b"))
    assert found.text.endswith(" 'Et*2|L'\n")
    assert found.remarks[-1] == "Megatron computes the norm with the head, on b."
    assert len(llm.megatron(plan("a b")).remarks) == 2


@given(
    blocks=st.lists(st.sampled_from(["a", "b", "c", "a/b"]), min_size=1, max_size=9),
    ends=st.tuples(*[st.sampled_from(["", "a", "b", "c"])] * 3),
)
def test_a_runtime_takes_what_is_not_refused(blocks: list[str], ends: tuple[str, ...]) -> None:
    placed = plan(" ".join(blocks), embedding=ends[0], norm=ends[1], head=ends[2])
    device = placed.device
    with suppress(InputError):
        variable, comment = llm.vllm(placed).text.splitlines()
        ranks = list(dict.fromkeys(device.values()))
        assert comment.split()[-1] == str(len(ranks))
        found = vllm_layers(variable.partition("=")[2], ranks=len(ranks), layers=len(blocks))
        assert [ranks[rank] for rank in found] == blocks
    with suppress(InputError):
        _, size, _, layout = shlex.split(llm.megatron(placed).text)
        ranks = list(dict.fromkeys(device.values()))
        stages = megatron_stages(layout)
        assert megatron_takes(stages, ranks=int(size), layers=len(blocks))
        there = [(ranks[i % len(ranks)], part) for i, stage in enumerate(stages) for part in stage]
        assert [rank for rank, part in there if part == "t"] == blocks
        assert (there[0], there[-1]) == ((device["embedding"], "E"), (device["head"], "L"))
