"""Expected uses by enumeration of all draws; vertices of groups by hand."""

import json
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import prod

import pytest
from tiny_decoders import MLP_BYTES, decoder, vertex, with_experts

from optpart.base.errors import InputError
from optpart.interop.formats import llm_names
from optpart.interop.formats.llm import Step, chain
from optpart.interop.formats.llm_experts import Use, read, use_of

THIRDS = "attention+mlp+experts"
COUNTS = [[2, 1, 4, 1], [3, 3, 3, 3]]


@pytest.mark.parametrize("tokens", [1, 2, 3, 4])
def test_expected_use_is_that_of_all_draws(tokens):
    # What a token may use, and how many of 20 do.
    draws = dict(zip(combinations(range(4), 2), (7, 5, 4, 2, 1, 1), strict=True))
    counts = Counter(e for pair, times in draws.items() for e in pair for _ in range(times))
    row = [counts[e] for e in range(4)]
    found = Use(4, 2, tokens, [row])
    for number in (1, 2, 4):
        order = sorted(range(4), key=lambda e: -row[e])
        for g, group in enumerate(found.groups(0, number)):
            inside = {*order[g * 4 // number : (g + 1) * 4 // number]}
            expected = sum(
                Fraction(prod(draws[pair] for pair in drawn), 20**tokens)
                * len(inside & {e for pair in drawn for e in pair})
                for drawn in product(draws, repeat=tokens)
            )
            assert group.experts == 4 // number
            assert abs(group.used - expected) <= Fraction(1, 2 * 10**9)
            assert group.work == Fraction(sum(row[e] for e in inside), 40)


def test_without_counts_tokens_use_as_many_as_they_can():
    assert [tuple(each) for each in Use(8, 2, 3).groups(0, 3)] == [
        (3, Fraction(3, 8), Fraction(6 * 3, 8)),
        (3, Fraction(3, 8), Fraction(6 * 3, 8)),
        (2, Fraction(2, 8), Fraction(6 * 2, 8)),
    ]
    uniform = use_of("uniform", (8, 2), 1, 3).groups(0)
    assert uniform == [(8, 1, 8 * (1 - Fraction(3, 4) ** 3))]


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_file_has_a_row_for_every_mixture(tmp_path, suffix):
    path = tmp_path / f"use{suffix}"
    rows = "\n\n".join(", ".join(map(str, row)) for row in COUNTS) + "\n"
    path.write_text(json.dumps(COUNTS) if suffix == ".json" else rows)
    assert read(path) == COUNTS
    model = with_experts(decoder(), experts=4, used=1)
    step = Step(batch=2, expert_use=path, granularity=THIRDS)
    found = chain(model, step)
    read_ = [vertex(found, f"block.{i}.experts")[1] - 2 * 16 - 2 * 8 for i in range(2)]
    expected = 4 - (Fraction(6**2 + 7**2 + 4**2 + 7**2, 64)), 4 - 4 * Fraction(9, 16)
    assert read_ == [MLP_BYTES * each for each in expected]
    assert vertex(found, "block.0.experts")[0] == 2 * 2 * 512  # as every token uses one
    assert any("expected to use 1.657 to 1.75 of 4 experts" in said for said in found.assumed)
    whole = chain(model, Step(batch=2, expert_use=COUNTS))
    assert vertex(whole, "block.1")[1] - vertex(chain(model, Step(batch=2)), "block.1")[1] == (
        MLP_BYTES * (Fraction(7, 4) - 2)
    )


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("[[1, 2, 4, 1]]", "expert use: 1 rows, but 2 blocks have experts; give a row for each"),
        ("[[1, 2, 4], [1, 1, 1, 1]]", "row 1: 3 counts, but 4 experts; give one for each"),
        ("[[1, 2, 4, 1], [1, 1, -1, 1]]", "row 2, column 3: -1; give a whole number of 0 to"),
        ("[[1, 2, 4, 1], 5]", "row 2: is a number; give a list"),
        ("[[0, 0, 0, 0], [1, 1, 1, 1]]", "row 1: an expert has 0 of 0 uses, but tokens use some"),
        ("[[1, 1, 9, 1], [1, 1, 1, 1]]", "row 1: an expert has 9 of 12 uses, but a token uses 2"),
        ("1,2,3,4\n1,2,x,4", "row 2, column 3: 'x'; give a whole number"),
    ],
)
def test_counts_that_a_model_cannot_have_are_refused(tmp_path, content, fault):
    path = tmp_path / ("use.json" if content[0] == "[" else "use.csv")
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        chain(with_experts(decoder(), experts=4, used=2), Step(expert_use=path))
    assert str(caught.value).startswith(f"{path}: {fault}")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"expert_groups": 1}, "expert_groups: 1; give a whole number of 2 to"),
        ({"expert_groups": 9}, "expert_groups: 9 groups of 4 experts; "),
        ({"expert_groups": 2, "granularity": "block"}, "expert_groups: 2, but blocks are split"),
    ],
)
def test_groups_that_a_model_cannot_have_are_refused(options, fault):
    with pytest.raises(InputError) as caught:
        chain(with_experts(decoder(), experts=4, used=2), Step(**options))
    assert str(caught.value).startswith(fault)
    with pytest.raises(InputError, match="expert_use: the model has no experts"):
        chain(decoder(), Step(expert_use="uniform"))


def test_groups_run_beside_each_other_between_router_and_sum():
    model = with_experts(decoder(), experts=4, used=1)
    step = Step(batch=3, expert_use=COUNTS, expert_groups=2)
    found, whole = chain(model, step), chain(model, Step(batch=3, granularity=THIRDS))
    names, graph = found.graph.names, found.graph
    assert names[1:6] == (
        "block.0.attention", "block.0.mlp", "block.0.experts.0", "block.0.experts.1", "block.0.sum",
    )  # fmt: skip
    joined = zip(graph.edge_source, graph.edge_target, strict=True)
    assert sorted((int(u), int(v)) for u, v in joined if v in range(2, 7)) == [
        (1, 2), (2, 3), (2, 4), (2, 5), (3, 5), (4, 5), (5, 6),
    ]  # fmt: skip
    states, chosen = 3 * 16, 3 * 8
    hot = 2 - Fraction(4**3 + 6**3, 8**3)
    assert vertex(found, "block.0.experts.0") == (
        2 * 3 * 512 * 3 // 4, MLP_BYTES * hot + states + chosen, states, 2 * MLP_BYTES, states,
    )  # fmt: skip
    assert vertex(found, "block.0.sum") == (2 * 3 * 8, 3 * states + chosen, states, 0, states)
    for row in (0, 3):  # work and memory stay the same
        both = (vertex(found, f"block.1.experts.{g}")[row] for g in range(2))
        assert sum(both) == vertex(whole, "block.1.experts")[row]
    assert sum(map(int, graph.memory)) == sum(map(int, whole.graph.memory))
    assert any("2 groups of 2, those used most first; each" in said for said in found.assumed)


def test_only_some_blocks_of_a_named_model_have_groups():
    names = llm_names.read("llama-4-maverick", Step(expert_groups=4)).graph.names
    assert sum(".experts." in name for name in names) == 24 * 4
    assert sum(name.endswith(".sum") for name in names) == 24
