"""The rules of runtimes, on small models by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optpart as op
from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.methods import registry
from optpart.methods.parts import PARTITIONERS
from optpart.strategies.base import NoPlacementError, Partition

RULES = [
    name for name, part in PARTITIONERS.rows.items() if part.scope.endswith(".layers:check_scope")
]
DATA = Path(__file__).parents[4] / "shared" / "data" / "distilp" / "test" / "profiles"


def model(
    blocks: Sequence[int],
    *devices: Device,
    ends: tuple[int, int] = (1, 1),
    experts: int | None = None,
    tied: bool = False,
) -> Instance:
    """A chain of blocks of given memory, each an operation per byte; of experts beside them."""
    builder = GraphBuilder()
    names = ["embedding"]
    builder.vertex("embedding", ends[0], memory=ends[0])
    for number, size in enumerate(blocks):
        halves = ("",) if experts is None else (".attention", ".mlp", ".experts")
        for half in halves:
            held = {"": size, ".attention": size, ".mlp": 0, ".experts": experts or 0}[half]
            names.append(f"block.{number}{half}")
            builder.vertex(names[-1], held, memory=held)
    names += ["norm", "head"]
    builder.vertex("norm", 0, memory=0).vertex("head", ends[1], memory=ends[1])
    for before, after in pairwise(names):
        builder.edge(before, after, None)
    if tied:
        builder.colocate("embedding", "head")
    return Instance(builder.build(), Cluster.of(devices), Model(memory="refcount"))


def card(name: str, memory: int | None, speed: int = 10) -> Device:
    return Device(name, speed, type="GPU", memory=memory)


CPU = Device("c", 1, type="CPU", memory=1000)


def plan(rule: str, instance: Instance, **options: object) -> str:
    """Run a rule, and say how many vertices in a row each device has."""
    found: Partition = registry.partitioner(rule)(instance, np.random.default_rng(0), **options)
    names = [instance.cluster.names[d] for d in found.placement[found.order]]
    return " ".join(f"{name}{len(list(run))}" for name, run in groupby(names))


A, B, D = (card(name, None) for name in "abd")
RING = [card("a", 10), card("b", 12), card("d", 20)]


@pytest.mark.parametrize(
    ("rule", "instance", "expected"),
    [
        # Four blocks and the output begin at 0, 1/5, …, 4/5; a has 3/10 of the memory.
        ("llama-tensor-split", model([4] * 4, card("a", 9), card("b", 21), CPU), "c1 a2 b4"),
        ("llama-tensor-split", model([4] * 4, card("a", 7), card("b", 21), CPU), "memory of a"),
        ("llama-tensor-split", model([4] * 2, CPU), "c5"),
        ("llama-fit", model([4] * 4, card("a", 9), card("b", 21), CPU), "c1 a2 b4"),
        # b holds the output and two blocks, a one, and the processor the other two.
        ("llama-fit", model([4] * 5, card("a", 5), card("b", 10), CPU), "c3 a1 b4"),
        # 3 · 2 + 1 are 7 without experts, and 23 with those of two blocks.
        ("llama-fit", model([2] * 3, card("a", 24), CPU, experts=8), "c1 a8 c1 a2"),
        # a has the first block; of those of b, the output counts as one without experts.
        (
            "llama-fit",
            model([2] * 3, card("a", 10), card("b", 14), CPU, experts=8),
            "c1 a3 b5 c1 b2",
        ),
        # Not all fit without experts. The output counts as the layer without.
        ("llama-fit", model([4] * 3, card("a", 10), CPU, experts=5), "c7 a5"),
        ("llama-cpu-moe", model([2] * 3, card("a", 24), CPU, experts=8), "c1 a2 c1 a8"),
        ("llama-cpu-moe", model([2] * 3, card("a", 6), CPU, experts=8), "memory of a"),
        # The model takes 10: less than 80% of 13, and more of 12.
        ("ollama", model([4] * 2, card("a", 12), card("b", 13), CPU), "c1 b4"),
        ("ollama", model([4] * 2, card("a", 12), card("b", 12), CPU), "c1 a2 b2"),
        # 7 blocks in 10 : 12 : 20 are 1 2/3, 2 and 3 1/3; in 12 : 20, 2 5/8 and 4 3/8.
        ("exo-ring", model([4] * 7, *RING, ends=(1, 4)), "a3 b2 d5"),
        ("exo-ring", model([3] * 7, *RING), "b4 d6"),
        ("exo-ring", model([4] * 2, card("a", 9), card("b", 12)), "b5"),
        ("exo-ring", model([9] * 2, card("a", 9), card("b", 9)), "memory of all devices together"),
        ("exo-ring", model([9, 1], card("a", 8), card("b", 8)), "memory of a"),
        ("exo-ring-bandwidth", model([3] * 4, card("a", 10, 1), card("b", 10, 3)), "a2 b5"),
        # A share and 5/4 of a block are 18, of which a keeps a block free; so does a in its 18.
        ("accelerate", model([4] * 6, A, B, CPU), "a4 b5"),
        ("accelerate", model([4] * 6, card("a", 18), CPU), "a4 c5"),
        ("accelerate", model([4] * 6, card("a", 18), card("b", 4)), "memory of all devices"),
        # What embedding and head share is placed where it comes first.
        ("accelerate", model([4] * 6, card("a", 18), CPU, ends=(2, 0), tied=True), "a4 c4 a1"),
        # b, the fastest, has room for two blocks, a for one; the head has the rest and the ends.
        ("halda", model([4] * 5, card("a", 7, 20), card("b", 11, 30), CPU), "c3 a1 b2 c2"),
        ("halda", model([4] * 5, card("a", 11), card("b", 11)), "memory of all devices together"),
        ("halda", model([4], card("a", 1)), "memory of a"),
        # What remains goes to the last card but one, and before it.
        ("vllm", model([1] * 7, A, B, D), "a3 b3 d4"),
        ("vllm", model([1] * 8, A, B, D, CPU), "a4 b3 d4"),
    ],
)
def test_by_hand(rule: str, instance: Instance, expected: str) -> None:
    if expected.startswith("memory"):
        with pytest.raises(NoPlacementError, match=f"^exceeds the {expected}"):
            plan(rule, instance)
    else:
        assert plan(rule, instance) == expected


def test_a_margin_is_kept_free() -> None:
    instance = model([4] * 5, card("a", 5), card("b", 10), CPU)
    assert plan("llama-fit", instance, margin=1) == "c3 a1 b4"
    assert plan("llama-fit", instance, margin=2) == "c5 b3"


@pytest.mark.parametrize(
    ("rule", "devices", "said"),
    [
        ("llama-cpu-moe", [A, CPU], "has no experts as vertices of their own"),
        ("exo-ring", [A, CPU], "has processors and cards, and exo counts computers"),
    ],
)
def test_where_a_rule_does_not_apply_it_is_said(
    rule: str, devices: list[Device], said: str
) -> None:
    assert registry.supports(rule, model([4], *devices)) == said


@pytest.mark.skipif(not DATA.exists(), reason="needs the profiles of distilp")
def test_halda_on_two_laptops_of_distilp() -> None:
    """Of Llama 3 70B in 4 bits, m2, the faster one, is full, and m1 has the ends and the rest."""
    folder = DATA / "llama_3_70b" / "online"
    profile, *laptops = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("model_profile", "m1", "m2")
    )
    devices = [
        card(f"m{i}", laptop["d_avail_metal"], int(laptop["T_metal"]))
        for i, laptop in enumerate(laptops, 1)
    ]
    block = int(max(profile["b"]))
    per_laptop = [device.memory // block for device in devices]
    most = sum(per_laptop) - 1
    instance = model([block] * most, *devices, ends=(0, 0))
    found = registry.get("halda")(instance)
    counts = [sum(d == name for d in found.placement.values()) for name in ("m1", "m2")]
    assert counts == [per_laptop[0] - 1 + 3, per_laptop[1]]
    with pytest.raises(NoPlacementError):
        plan("halda", model([block] * profile["L"], *devices))


@pytest.mark.parametrize("rule", RULES)
def test_a_graph_that_is_no_language_model_is_refused_in_one_line(rule: str) -> None:
    instance = op.load("heft-10")
    assert registry.supports(rule, instance) == "is no part of a language model"
    with pytest.raises(InputError, match=r"'n1': is no part of a language model; .* use auto"):
        op.solve(instance, rule)
    assert rule not in op.supporting(instance)
    assert rule not in registry.pairs()


def test_blocks_must_be_there_and_in_one_chain() -> None:
    for other, said in (("block.2", "no language model with all"), ("x.block.0", "a single chain")):
        graph = GraphBuilder().vertex("block.0", 1).vertex(other, 1).build()
        assert said in registry.supports("vllm", Instance(graph, Cluster.uniform(2)))


@given(
    blocks=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    cards=st.lists(st.integers(1, 60), min_size=0, max_size=4),
    host=st.integers(1, 120),
    experts=st.none() | st.integers(1, 9),
    tied=st.booleans(),
)
def test_every_vertex_is_placed_within_memory_or_that_is_said(
    blocks: list[int], cards: list[int], host: int, experts: int | None, tied: bool
) -> None:
    devices = [card(f"g{i}", memory) for i, memory in enumerate(cards)]
    instance = model(
        blocks, *devices, Device("c", type="CPU", memory=host), experts=experts, tied=tied
    )
    for rule in RULES:
        if registry.supports(rule, instance):
            continue
        result = registry.get(rule)(instance)
        if result.schedule is None:
            assert result.reason.startswith("exceeds the memory")
            continue
        names, placement = instance.graph.names, result.schedule.placement.tolist()
        for d, limit in enumerate(instance.cluster.memory):
            held = (instance.graph.memory[v] for v, device in enumerate(placement) if device == d)
            assert sum(held) <= limit
        blocks = [
            d
            for name, d in zip(names, placement, strict=True)
            if re.fullmatch(r"block\.\d+(\.attention)?", name)
        ]
        assert len([*groupby(blocks)]) == len({*blocks})  # adjacent on every device
