"""accelerate takes our ``device_map`` of every architecture, and computes what it did before."""

import json

import pytest
from architectures import ARCHITECTURES
from tight import on_two

import optpart as op
from optpart.interop.formats.detect import read_workload

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
modeling = pytest.importorskip("accelerate.utils.modeling")

NAMES = {"near": "cpu", "far": "disk"}


@pytest.fixture(params=ARCHITECTURES)
def architecture(request):
    return ARCHITECTURES[request.param]


def planned(folder):
    """Return the proven plan for two devices, none of which holds the whole model."""
    result = op.solve(on_two(read_workload(folder, reserve=0), 3), seconds=20)
    assert result.status == "OPTIMAL"
    assert {*result.placement.values()} == {"near", "far"}
    return result


def test_the_parts_of_a_split_model_compute_the_logits_of_the_whole(architecture, tmp_path):
    model, inputs = architecture.model(), architecture.inputs()
    alone, whole = tmp_path / "alone", tmp_path / "whole"
    model.config.save_pretrained(alone)
    model.save_pretrained(whole)
    plan = planned(alone)
    assert plan.placement == planned(whole).placement
    found = json.loads(op.export(plan, "device-map", names=NAMES, model=whole).text)
    assert {*found.values()} == {"cpu", "disk"}

    modeling.check_device_map(model, found)
    modeling.check_tied_parameters_on_same_device(modeling.find_tied_parameters(model), found)
    covered = [
        [name for name in found if tensor == name or tensor.startswith(f"{name}.")]
        for tensor in model.state_dict()
    ]
    assert all(len(names) == 1 for names in covered)
    blocks = {
        name for name, module in model.named_modules()
        if type(module).__name__ in (model._no_split_modules or ())
    }  # fmt: skip
    assert not [name for name in found for block in blocks if name.startswith(f"{block}.")]

    split = type(model).from_pretrained(whole, device_map=found, offload_folder=tmp_path / "off")
    with torch.no_grad():
        expected, given = model(**inputs).logits, split.eval()(**inputs).logits
    assert torch.equal(expected, given)


def test_weights_and_shapes_are_those_of_the_model(architecture, tmp_path):
    model = architecture.model()
    model.config.save_pretrained(tmp_path)
    graph = read_workload(tmp_path).graph
    parameters = sum(each.numel() * each.element_size() for each in model.parameters())
    cache = sum(int(each) for each in graph.memory.fractions()) - parameters
    if architecture.automatic in ("AutoModelForMaskedLM", "AutoModelForImageClassification"):
        assert cache == 0
    else:  # keys and values of all positions
        assert cache > 0
