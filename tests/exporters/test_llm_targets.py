"""Plans for language models, as runtimes want them: what they get, and what they cannot express."""

import json
import re
import shlex
from dataclasses import replace

import pytest
from language_plans import by_hand, plan

from optpart.errors import InputError
from optpart.exporters import llm
from optpart.exporters.chain import chain_of
from optpart.exporters.device_map import device_map
from optpart.exporters.plan import Plan
from optpart.exporters.registry import Options, export, target
from optpart.formats import llm_names
from optpart.formats.llm import Step


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
    with pytest.raises(InputError, match=r"name 'c': there is no such device; choose one of a"):
        device_map(replace(plan("a a"), types={"a": "GPU"}), names=options.names)


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


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_of_a_block_on_one_device_are_the_block(parts: int) -> None:
    placed = plan(" ".join("/".join([device] * parts) for device in "aab"))
    assert "VLLM_PP_LAYER_PARTITION=2,1\n" in llm.vllm(placed).text
    assert llm.megatron(placed).text.endswith(" 'Et*2|tL'\n")
    assert "'model.layers.2'" in llm.torch_split(placed, architecture="llama").text
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
