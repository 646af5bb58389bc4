"""From a model to the command that runs it by the plan."""

import json
import re

import pytest
from transformer_folders import small_llama

import optpart as op
from optpart.base.errors import InputError
from optpart.interop.costs.detection import Detected
from optpart.interop.formats import native
from optpart.placing import runtimes

DESK = """
default_link = "pcie-4-x16"
[[device]]
of = "rtx-3090"
name = "cuda0"
[[device]]
of = "rtx-3070"
name = "cuda1"
[[device]]
of = "ryzen-9-7950x"
name = "cpu"
memory = "64 GB"
"""


@pytest.fixture
def desk(tmp_path):
    path = tmp_path / "desk.toml"
    path.write_text(DESK)
    return path


def test_a_model_by_name_is_split_for_llama_cpp(desk):
    told = []
    found = runtimes.place_model("llama-2-13b", desk, seconds=30, say=told.append)
    assert found.result.status == "OPTIMAL"
    assert found.runtime == "llama.cpp"
    assert found.command.startswith(
        "llama-server --model llama-2-13b --parallel 1 --ctx-size 4096 --n-gpu-layers 41 "
    )
    assert "--device CUDA0,CUDA1" in found.command
    assert told == found.remarks
    assert any("assumed" in line for line in told)


def test_every_runtime_that_takes_a_format_can_be_asked_for(desk):
    found = runtimes.place_model("llama-2-13b", desk, "vllm", seconds=30)
    assert found.result.status == "OPTIMAL"
    settings, _, serve = found.command.partition(" vllm serve ")
    assert re.fullmatch(r"CUDA_VISIBLE_DEVICES=1,0 VLLM_PP_LAYER_PARTITION=\d+,\d+", settings)
    assert serve == ("llama-2-13b --pipeline-parallel-size 2 --max-model-len 4096 --max-num-seqs 1")
    with pytest.raises(InputError, match=r"onnxruntime takes no model of the format llm; use"):
        runtimes.place_model("llama-2-13b", desk, "onnxruntime")
    (desk.parent / "heft-10.json").write_text(native.dumps(op.load("heft-10")))
    with pytest.raises(InputError, match="is an instance"):
        runtimes.place_model(desk.parent / "heft-10.json", desk)


def test_the_plan_is_compared_with_the_rule_of_the_runtime(desk):
    found = runtimes.place_model("llama-2-13b", desk, seconds=30)
    assert found.rule.method == "llama-fit"
    assert found.speed == "21.83 tokens/s in the cost model; llama.cpp --fit: 20.88, 4.36% less"
    assert found.result.makespan <= found.rule.makespan
    found = runtimes.place_model("llama-2-13b", desk, "vllm", seconds=30)
    assert found.speed.endswith(" tokens/s in the cost model; vLLM by default exceeds the memory")
    found = runtimes.place_model("llama-3.2-1b", desk, "megatron", seconds=30)
    assert found.rule is None
    assert found.speed.endswith(" tokens/s in the cost model")


def test_equal_plans_are_as_fast(tmp_path):
    (tmp_path / "one.toml").write_text('[[device]]\nof = "rtx-3090"\nname = "0"\n')
    found = runtimes.place_model("llama-3.2-1b", tmp_path / "one.toml", "vllm", seconds=30)
    assert re.fullmatch(r"(\S+) tokens/s .*; vLLM by default: \1, as fast", found.speed)


def test_all_tokens_of_a_prompt_count(desk):
    found = runtimes.place_model("llama-3.2-1b", desk, mode="prefill", context=512, batch=2)
    tokens = float(found.speed.partition(" tokens/s")[0].replace(",", ""))
    assert tokens == pytest.approx(1024 * 1e9 / float(found.result.makespan), rel=1e-3)


def test_experts_are_placed_apart_where_the_runtime_can(desk):
    options = {"weights": "q2_K", "seconds": 5}
    for granularity, apart in (({}, True), ({"granularity": "block"}, False)):
        found = runtimes.place_model("mixtral-8x7b", desk, **options, **granularity)
        assert ("block.0.experts" in found.result.placement) is apart
        assert found.result.makespan <= found.rule.makespan


def test_what_sees_is_placed_too(desk):
    options = {"weights": "q4_K", "images": 1, "mode": "prefill", "context": 512, "seconds": 20}
    found = runtimes.place_model("gemma-3-27b", desk, **options)
    assert found.result.status == "OPTIMAL"
    assert found.rule is None
    missing = "Not compared with llama.cpp --fit: the model has a vision tower, and rules"
    assert any(remark.startswith(missing) for remark in found.remarks)
    device = found.result.placement["vision"].upper()
    option = "--no-mmproj-offload" if device == "CPU" else f"--mmproj-device {device}"
    assert f" {option}" in found.command
    assert found.rule is None  # which splits what reads words
    with pytest.raises(InputError, match="vision: a layout of Megatron has no place for it; impor"):
        runtimes.place_model("gemma-3-27b", desk, "megatron", **options)
    stages = runtimes.place_model("gemma-3-27b", desk, "vllm", **options)
    assert stages.result.placement["vision"] == stages.result.placement["block.0"]


def test_the_devices_of_this_machine_are_those_that_are_found(monkeypatch):
    found = Detected(DESK, ["three devices"])
    monkeypatch.setattr(runtimes, "detect", lambda: found)
    placed = runtimes.place_model("llama-2-7b", seconds=30)
    assert placed.remarks[0] == "three devices"
    assert "CUDA0" in placed.command


def test_what_a_runtime_reads_is_written(desk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "model"
    model.mkdir()
    small_llama(model)
    found = runtimes.place_model(model, desk, seconds=30)
    assert found.runtime == "transformers"
    assert {*json.loads((tmp_path / found.file).read_text()).values()} <= {
        "cuda:0",
        "cuda:1",
        "cpu",
    }
    assert f"LlamaForCausalLM.from_pretrained({str(model)!r}, device_map=" in found.command
    compile(found.command, "command", "exec")
    assert "transformers.LlamaForCausalLM." in found.command


@pytest.mark.parametrize("named", [["x.y"], ["a; b"], "Class", [3], [], None])
def test_only_the_name_of_a_class_gets_into_the_program(desk, tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    config = small_llama(tmp_path) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"architectures": named}))
    found = runtimes.place_model(tmp_path, desk, seconds=5)
    assert "transformers.AutoModelForCausalLM.from_pretrained(" in found.command


def test_what_llama_cpp_cannot_have_is_solved_again_as_it_can(desk, monkeypatch):
    def solve(instance, device_order=None, **options):
        options.pop("start", None)
        wrong = ["cuda0", "cuda1", "cpu"]  # as good as another order, and llama.cpp has no such one
        return op.solve(instance, device_order=device_order or wrong, **options)

    monkeypatch.setattr(runtimes, "solve", solve)
    found = runtimes.place_model("llama-2-13b", desk, batch=4, seconds=30)
    plan = found.result.placement
    assert "--override-tensor" not in found.command
    assert "--parallel 4 --ctx-size 16384" in found.command
    assert any("Solved again" in line for line in found.remarks)
    devices = [plan[f"block.{number}"] for number in range(40)]
    assert "cpu" in devices
    assert devices == sorted(devices, key=lambda device: (device != "cpu", devices.index(device)))


def test_what_is_solved_again_is_no_slower_than_the_rule(desk, monkeypatch):
    def solve(instance, device_order=None, seconds=30, start=None, **options):
        if device_order is not None:  # as if there were no time left
            return op.conclude(instance, "auto", None)
        order = ["cuda0", "cuda1", "cpu"]  # llama.cpp has no such one
        wrong = op.solve(instance, device_order=order, **options)
        return op.conclude(instance, "auto", wrong.schedule, bound=1)

    monkeypatch.setattr(runtimes, "solve", solve)
    found = runtimes.place_model("llama-2-13b", desk, batch=4, seconds=30)
    assert found.result.method == "llama-fit"
    assert found.result.makespan == found.rule.makespan
    assert found.result.lower_bound == 1
    assert found.speed.endswith(", as fast")


def test_a_wrong_name_is_refused_before_anything_is_solved_again(desk, monkeypatch):
    solved = []

    def solve(instance, **options):
        solved.append(options)
        return op.solve(instance, **options)

    monkeypatch.setattr(runtimes, "solve", solve)
    with pytest.raises(InputError, match="device 'cuda0': is called 'a b', which the target"):
        runtimes.place_model("llama-2-13b", desk, names={"cuda0": "a b"}, seconds=30)
    assert len(solved) == 1
