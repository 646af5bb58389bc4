"""Every operator whose work a reader of models counts belongs to a class."""

import pytest

from optpart.interop.costs.efficiency import OTHER, defaults
from optpart.interop.formats import llm_names
from optpart.interop.formats.llm import Step
from optpart.interop.formats.pytorch_operators import OPERATORS


@pytest.mark.parametrize("granularity", ["block", "attention+mlp"])
@pytest.mark.parametrize("name", ["gpt2", "llama-2-7b"])
def test_vertices_of_language_models(name, granularity):
    kinds = llm_names.read(name, Step(granularity=granularity)).work.kinds
    assert OTHER not in {defaults().class_of(kind) for kind in kinds}


def test_operators_of_pytorch():
    assert [kind for kind in OPERATORS if defaults().class_of(f"aten.{kind}") == OTHER] == []
