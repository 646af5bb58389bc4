"""Device maps of accelerate: every module once, on a device, and no block split."""

import json
from fractions import Fraction

import pytest
from transformer_folders import small_llama

from optpart.base.errors import InputError
from optpart.exporters.device_map import device_map
from optpart.exporters.plan import Plan

OURS = "embedding block.0 block.1 norm head"
THEIRS = "model.embed_tokens model.layers.0 model.layers.1 model.norm lm_head"
HALVES = "embedding block.0.attention block.0.mlp block.1 norm head"


def plan(devices, names=OURS):
    placed = dict(zip(names.split(), devices.split(), strict=True))
    return Plan("toy", "by hand", placed, {name: Fraction(k) for k, name in enumerate(placed)})


def written(placed, **options):
    names = {
        device: name for device, name in {"a": "0", "b": "1"}.items() if device in placed.devices
    }
    return json.loads(device_map(placed, names=names, **options).text)


@pytest.fixture
def model(tmp_path):
    return small_llama(tmp_path)


def test_it_covers_every_module_of_the_architecture() -> None:
    assert written(plan("a a b b b"), architecture="llama") == {
        "model.embed_tokens": 0,
        "model.rotary_emb": 0,
        "model.layers.0": 0,
        "model.layers.1": 1,
        "model.norm": 1,
        "lm_head": 1,
    }
    assert [*written(plan("a a b b b"), architecture="gpt2")] == [
        *("transformer.wte", "transformer.wpe", "transformer.h.0", "transformer.h.1"),
        *("transformer.ln_f", "lm_head"),
    ]
    assert "lm_head" in written(plan("a a b b b"), architecture="gpt-neox")
    with pytest.raises(InputError, match="choose one of llama, gpt2, gpt-neox"):
        written(plan("a a b b b"), architecture="bert")


def test_no_architecture_is_taken_for_another() -> None:
    with pytest.raises(InputError, match=r"is not known; give --architecture .* or .* --model"):
        written(plan("a a b b b"))


def test_where_weights_on_the_processor_are_computed_is_said() -> None:
    names = {"a": "0", "b": "cpu"}
    text, remarks = device_map(plan("a a b a a"), names=names, architecture="llama")
    assert json.loads(text)["model.layers.1"] == "cpu"
    assert remarks[0] == "The order of execution is not part of a device_map."
    assert "computes them on 0" in remarks[1]


def test_vertices_that_are_modules_keep_their_names() -> None:
    text, remarks = device_map(plan("a a b b b", THEIRS), names={"a": "0", "b": "1"})
    assert json.loads(text) == dict(zip(THEIRS.split(), [0, 0, 1, 1, 1], strict=True))
    assert "share their weights" in remarks[-1]
    with pytest.raises(InputError, match="called after modules already"):
        written(plan("a a b b b", THEIRS), architecture="llama")


def test_halves_of_a_block_on_one_device_are_the_block_and_on_two_are_refused(model) -> None:
    for options in ({"architecture": "llama"}, {"model": model}):
        assert written(plan("a b b a a a", HALVES), **options)["model.layers.0"] == 1
    halves = "model.layers.0.self_attn model.layers.0.mlp"
    assert written(plan("a a", halves)) == {"model.layers.0": 0}
    with pytest.raises(InputError, match="block 0: is split between a and b, and accelerate"):
        written(plan("a a b b b a", HALVES), architecture="llama")
    with pytest.raises(InputError, match=r"block\.0: is split between a and b, and accelerate"):
        written(plan("a a b b b a", HALVES), model=model)


def test_the_model_names_its_modules(model) -> None:
    assert written(plan("a a b b a"), model=model) == {
        "model.embed_tokens": 0,
        "model.layers.0": 0,
        "model.layers.1": 1,
        "model.norm": 1,
        "lm_head": 0,
    }


def test_a_plan_that_accelerate_would_not_run_is_refused(model) -> None:
    with pytest.raises(InputError, match=r"module 'lm_head': .* share a tensor.*--tied share"):
        written(plan("a a b b b"), model=model)
    with pytest.raises(InputError, match=r"part 'block\.1' of the model: is not in the plan"):
        written(plan("a a b b", "embedding block.0 norm head"), model=model)
    with pytest.raises(InputError, match=r"vertex 'block\.2': is no part of the model"):
        written(plan("a a b b b b", "embedding block.0 block.1 block.2 norm head"), model=model)
    with pytest.raises(InputError, match="architecture: means nothing beside a model"):
        written(plan("a a b b a"), model=model, architecture="llama")
