"""Split points of PyTorch: of plans for language models, and for exported programs."""

import ast
from fractions import Fraction
from pathlib import Path

import pytest

from optpart.base.errors import InputError
from optpart.exporters.plan import Plan
from optpart.exporters.torch import torch_split
from optpart.interop.formats import pytorch

WRITTEN = Path(__file__).parents[1] / "interop" / "formats" / "pytorch"
PERCEPTRON = "linear relu linear_1 relu_1 linear_2 relu_2 linear_3 flatten"


def split(placed, **options):
    text = torch_split(placed, **options).text
    tree = ast.parse(text).body[1].value
    return [ast.literal_eval(key) for key in tree.keys]


def plan(names, devices):
    placed = dict(zip(names.split(), devices.split(), strict=True))
    return Plan("net", "by hand", placed, {name: Fraction(k) for k, name in enumerate(placed)})


OURS = "embedding block.0 block.1 block.2 norm head"
LLAMA = "model.embed_tokens model.layers.0 model.layers.1 model.norm lm_head"


def test_stages_of_a_language_model_begin_with_whole_blocks():
    text, remarks = torch_split(plan(OURS, "a a a b b c"), architecture="llama")
    assert text == (
        "from torch.distributed.pipelining import SplitPoint\n"
        "\n"
        "# stages 0 to 2: a, b, c\n"
        "split_spec = {\n"
        "    'model.layers.2': SplitPoint.BEGINNING,\n"
        "    'lm_head': SplitPoint.BEGINNING,\n"
        "}\n"
    )
    assert "Ranks 0 and after must be a, b, c" in remarks[1]
    assert split(plan(OURS, "a a b b b b"), architecture="gpt-neox") == ["gpt_neox.layers.1"]
    assert split(plan(LLAMA, "a a b b b")) == ["model.layers.1"]
    with pytest.raises(InputError, match=r"device 'a': has 'block.2' after other"):
        torch_split(plan(OURS, "a a b a a a"), architecture="llama")


GIVEN = {"model": WRITTEN / "perceptron.pt2", "shapes": {"batch": 4}}


@pytest.mark.parametrize(
    ("devices", "first"),
    [
        ("a a a a a a a a", []),
        ("a a b b b b b b", ["blocks.0"]),
        ("a a b b c c d d", ["blocks.0", "blocks.1", "last"]),
    ],
)
def test_stages_of_an_exported_program_begin_with_its_modules(devices, first):
    assert split(plan(PERCEPTRON, devices), **GIVEN) == first


def test_a_file_tells_where_modules_begin():
    found = pytorch.beginnings(WRITTEN / "perceptron.pt2", shapes={"batch": 4})
    assert {vertex: modules for vertex, modules in found.items() if modules} == {
        "linear": ("first",),
        "linear_1": ("blocks.0",),
        "linear_2": ("blocks.1",),
        "linear_3": ("last",),
    }


def test_modules_are_colocated_in_the_order_of_the_program():
    found = pytorch.read(
        WRITTEN / "attention.pt2", shapes={"ids.0": 2, "ids.1": 12}, granularity="module"
    ).graph
    assert [[found.names[v] for v in group] for group in found.colocation] == [
        ["linear", "view", "permute", "getitem", "scaled_dot_product_attention", "transpose",
         "reshape", "cat", "pad"],
    ]  # fmt: skip
    edges = {*zip(found.edge_source.tolist(), found.edge_target.tolist(), strict=True)}
    assert all((v, v + 1) in edges for v in range(len(found) - 1))


@pytest.mark.parametrize(
    ("placed", "options", "fault"),
    [
        (plan(PERCEPTRON, "a a a b b b b b"), {},
         "vertex 'relu_1': is the first on 'b', and begins no module that is called once; "),
        (plan(PERCEPTRON, "a a b b a a a a"), {},
         "vertex 'linear_2': is on 'a' again, after other devices took over from it; "),
        (plan("linear relu", "a a"), {}, "vertex 'linear_1': is not in the plan; "),
        (plan("linear loss", "a a"), {}, "vertex 'loss': is no vertex of the model"),
        (plan(PERCEPTRON, "a a a a a a a b"), {"architecture": "gpt2"},
         "architecture: the model tells what its modules are called; "),
        (plan(PERCEPTRON, "a a a a a a a b"), {"model": None}, "vertex 'linear': is no part of a "
         "language model; give a plan for a language model, or the .pt2"),
    ],
)  # fmt: skip
def test_what_is_no_pipeline_is_refused(placed, options, fault):
    with pytest.raises(InputError) as caught:
        torch_split(placed, **{**GIVEN, **options})
    assert fault in str(caught.value)


def test_unknown_granularities_are_refused():
    with pytest.raises(InputError, match="granularity: unknown 'modules'; did you mean module"):
        pytorch.read(WRITTEN / "choice.pt2", granularity="modules")
