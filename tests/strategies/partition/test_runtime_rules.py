"""The rules of runtimes, on small models by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
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

RULES = [name for name, part in PARTITIONERS.rows.items() if part.special]
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


class TestTensorSplit:
    def test_a_layer_is_where_its_begin_is_in_all_memory(self) -> None:
        """Four blocks and the output begin at 0, 1/5, …, 4/5; a has 3/10 of the memory."""
        instance = model([4, 4, 4, 4], card("a", 9), card("b", 21), CPU)
        assert plan("llama-tensor-split", instance) == "c1 a2 b4"

    def test_a_card_that_cannot_hold_its_part_is_said(self) -> None:
        instance = model([4, 4, 4, 4], card("a", 7), card("b", 21), CPU)
        with pytest.raises(NoPlacementError, match=r"^exceeds the memory of a$"):
            plan("llama-tensor-split", instance)

    def test_without_cards_all_is_on_the_processor(self) -> None:
        assert plan("llama-tensor-split", model([4, 4], CPU)) == "c5"


class TestFit:
    def test_what_fits_as_it_is_stays(self) -> None:
        instance = model([4, 4, 4, 4], card("a", 9), card("b", 21), CPU)
        assert plan("llama-fit", instance) == "c1 a2 b4"

    def test_otherwise_cards_are_filled_from_the_last_to_the_first(self) -> None:
        """b holds the output and two blocks of 4, a one, and the processor the other two."""
        instance = model([4, 4, 4, 4, 4], card("a", 5), card("b", 10), CPU)
        assert plan("llama-fit", instance) == "c3 a1 b4"
        assert plan("llama-fit", instance, margin=1) == "c3 a1 b4"

    def test_a_margin_is_kept_free(self) -> None:
        instance = model([4, 4, 4, 4, 4], card("a", 5), card("b", 10), CPU)
        assert plan("llama-fit", instance, margin=2) == "c5 b3"

    def test_experts_come_after_all_else(self) -> None:
        """3 x 2 + 1 are 7 without experts, and 23 with those of two blocks."""
        instance = model([2, 2, 2], card("a", 24), CPU, experts=8)
        assert plan("llama-fit", instance) == "c1 a8 c1 a2"

    def test_and_the_first_card_takes_the_first_whole_blocks(self) -> None:
        """All of a is the first block; of those of b, the output counts as one without experts."""
        instance = model([2, 2, 2], card("a", 10), card("b", 14), CPU, experts=8)
        assert plan("llama-fit", instance) == "c1 a3 b5 c1 b2"

    def test_blocks_without_experts_that_do_not_fit_are_on_the_processor(self) -> None:
        """The last block is whole, since the output counts as the layer without experts."""
        instance = model([4, 4, 4], card("a", 10), CPU, experts=5)
        assert plan("llama-fit", instance) == "c7 a5"


class TestCpuMoe:
    def test_moves_the_experts_of_as_few_first_blocks_as_it_must(self) -> None:
        instance = model([2, 2, 2], card("a", 24), CPU, experts=8)
        assert plan("llama-cpu-moe", instance) == "c1 a2 c1 a8"

    def test_a_model_without_experts_is_refused(self) -> None:
        instance = model([2, 2], card("a", 24), CPU)
        assert "has no experts" in registry.supports("llama-cpu-moe", instance)


class TestOllama:
    def test_a_card_of_which_four_fifths_hold_the_model_has_it_alone(self) -> None:
        """All take 10 of 13, but 10 of 12 are more than 80%."""
        assert plan("ollama", model([4, 4], card("a", 12), card("b", 13), CPU)) == "c1 b4"
        assert plan("ollama", model([4, 4], card("a", 12), card("b", 12), CPU)) == "c1 a2 b2"

    def test_else_all_cards_are_filled_as_llama_cpp_does(self) -> None:
        instance = model([4, 4], card("a", 12), card("b", 12), CPU)
        assert plan("ollama", instance) == plan("llama-fit", instance) == "c1 a2 b2"


class TestExoRing:
    def test_blocks_are_shared_by_memory_and_the_rest_goes_to_the_largest_remainder(self) -> None:
        """7 blocks in 10 : 12 : 20 are 1 2/3, 2 and 3 1/3, so 2, 2 and 3."""
        computers = [card("a", 10), card("b", 12), card("d", 20)]
        assert plan("exo-ring", model([4] * 7, *computers, ends=(1, 4))) == "a3 b2 d5"

    def test_on_the_fewest_computers_that_hold_it(self) -> None:
        """Of 7 blocks, b's part of 12 in 32 is 2 5/8."""
        computers = [card("a", 10), card("b", 12), card("d", 20)]
        assert plan("exo-ring", model([3] * 7, *computers)) == "b4 d6"
        assert plan("exo-ring", model([4, 4], card("a", 9), card("b", 12))) == "b5"

    def test_by_bandwidth_the_share_is_that_of_speed(self) -> None:
        instance = model([3] * 4, card("a", 10, 1), card("b", 10, 3))
        assert plan("exo-ring-bandwidth", instance) == "a2 b5"

    def test_a_computer_that_cannot_hold_its_blocks_is_said(self) -> None:
        with pytest.raises(NoPlacementError, match=r"^exceeds the memory of all devices together$"):
            plan("exo-ring", model([9, 9], card("a", 9), card("b", 9)))
        with pytest.raises(NoPlacementError, match=r"^exceeds the memory of a$"):
            plan("exo-ring", model([9, 1], card("a", 8), card("b", 8)))

    def test_cards_are_no_computers(self) -> None:
        said = registry.supports("exo-ring", model([4], card("a", 9), CPU))
        assert said == "has processors and cards, and exo counts computers"


class TestAccelerate:
    def test_every_card_but_the_last_gets_an_equal_share_and_a_buffer(self) -> None:
        """Of 26, 13 and 5/4 of a block are 18; the first card keeps room for a block."""
        instance = model([4] * 6, card("a", 100), card("b", 100), CPU)
        assert plan("accelerate", instance) == "a4 b5"

    def test_the_first_card_keeps_room_for_the_largest_to_come(self) -> None:
        """a has room for four blocks in 18, of which one is kept; the processor takes the rest."""
        instance = model([4] * 6, card("a", 18), CPU)
        assert plan("accelerate", instance) == "a4 c5"

    def test_what_would_go_to_disk_is_said(self) -> None:
        instance = model([4] * 6, card("a", 18), Device("c", type="CPU", memory=9))
        with pytest.raises(NoPlacementError, match="leaves the rest to disk"):
            plan("accelerate", instance)

    def test_a_shared_matrix_is_placed_where_it_comes_first(self) -> None:
        instance = model([4] * 6, card("a", 18), CPU, ends=(2, 0), tied=True)
        assert plan("accelerate", instance) == "a4 c4 a1"


class TestHalda:
    def test_the_fastest_devices_are_filled_first(self) -> None:
        """b has room for two blocks of 4, a for one; the head has the rest and the ends."""
        instance = model([4] * 5, card("a", 7, 20), card("b", 11, 30), CPU)
        assert plan("halda", instance) == "c3 a1 b2 c2"

    def test_memory_of_all_is_said(self) -> None:
        with pytest.raises(NoPlacementError, match="of all devices together"):
            plan("halda", model([4] * 5, card("a", 11), card("b", 11)))

    @pytest.mark.skipif(not DATA.exists(), reason="needs the profiles of distilp")
    def test_two_laptops_of_distilp(self) -> None:
        """Of Llama 3 70B in 4 bits, m2 holds 36 to 39 blocks, and is the faster; m1 has 9 more."""
        folder = DATA / "llama_3_70b" / "online"
        profile, *laptops = (
            json.loads((folder / f"{name}.json").read_text())
            for name in ("model_profile", "m1", "m2")
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


class TestVllm:
    def test_what_remains_goes_to_the_middle_from_behind(self) -> None:
        cards = [card(name, None) for name in "abde"]
        assert plan("vllm", model([1] * 10, *cards)) == "a3 b3 d3 e4"
        assert plan("vllm", model([1] * 11, *cards)) == "a4 b3 d3 e4"

    def test_the_processor_is_left_out(self) -> None:
        assert plan("vllm", model([1] * 4, card("a", 9), card("b", 9), CPU)) == "a3 b4"


@pytest.mark.parametrize("rule", RULES)
def test_a_graph_that_is_no_language_model_is_refused_in_one_line(rule: str) -> None:
    instance = op.load("heft-10")
    assert registry.supports(rule, instance) == "is no part of a language model"
    with pytest.raises(InputError, match=r"'n1': is no part of a language model; .* use auto"):
        op.solve(instance, rule)
    assert rule not in op.supporting(instance)
    assert rule not in registry.pairs()


@pytest.mark.parametrize("missing", ["block.0", "block.2"])
def test_blocks_must_be_there_and_in_one_chain(missing: str) -> None:
    graph = GraphBuilder().vertex("block.1", 1).vertex(missing, 1).vertex("x.block.1", 1).build()
    said = registry.supports("vllm", Instance(graph, Cluster.uniform(2)))
    assert said == (
        "is no language model with all its blocks"
        if missing == "block.2"
        else "has an encoder and a decoder, and rules of runtimes split a single chain"
    )


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
        placement = result.schedule.placement.tolist()
        used = [Fraction(0)] * instance.devices
        for v, d in enumerate(placement):
            used[d] += instance.graph.memory[v]
        limits = instance.cluster.memory
        assert all(held <= limit for held, limit in zip(used, limits, strict=True) if limit)
        names = instance.graph.names
        attention = [
            d
            for name, d in zip(names, placement, strict=True)
            if name.startswith("block.") and not name.endswith(("mlp", "experts"))
        ]
        assert len([*groupby(attention)]) == len({*attention})
