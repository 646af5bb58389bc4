"""Base models against published figures."""

from __future__ import annotations

import pytest

from optpart import InputError
from optpart.applications.ordering.models import MODELS, base_model
from optpart.applications.ordering.models.operations import base_model_of
from optpart.applications.training.layers import Activation, Network


@pytest.mark.parametrize(
    ("name", "parameters", "tensors"),
    [
        # TF-slim's alexnet_v2, one tower on 224 × 224: 191.9 MiB. The network split over two
        # devices has 61 million.
        ("alexnet", 50_303_912, 16),
        ("vgg16", 138_357_544, 32),
        ("inception-v2", 11_178_336, 141),
        # Without the auxiliary head, and without batch normalisation's scales, moving means and
        # variances; 94 convolutions.
        ("inception-v3", 23_817_352, 190),
        ("inception-v3-aux", 27_143_152, 196),
        ("resnet-50", 25_557_032, 161),
        ("par-32", 32 * 1024**2, 32),
        ("seq-32", 32 * 1024**2, 32),
    ],
)
def test_parameters(name: str, parameters: int, tensors: int) -> None:
    model = base_model(name)
    assert model.size == parameters
    assert len(model.parameters) == tensors
    assert len({parameter.name for parameter in model.parameters}) == tensors


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("alexnet", 0.74e9),
        ("vgg16", 15.5e9),
        ("inception-v2", 1.94e9),
        ("inception-v3", 5.72e9),
        # With the stride in the 3 × 3 convolutions.
        ("resnet-50", 4.09e9),
    ],
)
def test_multiply_adds(name: str, published: float) -> None:
    assert base_model(name).multiply_adds == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize("name", MODELS)
def test_ops_are_in_topological_order_and_end_in_one_loss(name: str) -> None:
    model = base_model(name)
    seen: set[str] = set()
    read: set[str] = set()
    for op in model.ops:
        assert seen.issuperset(op.inputs)
        assert op.name not in seen
        seen.add(op.name)
        read.update(op.inputs)
    assert seen - read == {"loss"}
    assert model.ops[-1].name == "loss"


def test_the_results_of_inception_modules_have_the_published_channels() -> None:
    """A concatenation has as many operations as elements."""
    ops = {op.name: op.operations for op in base_model("inception-v3").ops}
    assert ops["Mixed_5d/concat"] == 35 * 35 * 288
    assert ops["Mixed_6e/concat"] == 17 * 17 * 768
    assert ops["Mixed_7c/concat"] == 8 * 8 * 2048
    ops = {op.name: op.operations for op in base_model("inception-v2").ops}
    assert ops["Mixed_3c/concat"] == 28 * 28 * 320
    assert ops["Mixed_4e/concat"] == 14 * 14 * 576
    assert ops["Mixed_5c/concat"] == 7 * 7 * 1024


class TestLayers:
    def test_a_convolution_counts_what_it_multiplies(self) -> None:
        net = Network("one")
        image = Activation(None, (3, 5, 7))
        options = {"stride": 2, "padding": 0, "bias": True, "normalised": False}
        result = net.convolution("conv", image, 4, (3, 1), activated=False, **options)
        assert result.shape == (4, 2, 4)
        conv, bias = base_model_of(net).ops[1:]
        assert conv.multiply_adds == 2 * 4 * 4 * 3 * 3
        assert conv.operations == 2 * conv.multiply_adds
        assert bias.operations == 2 * 4 * 4
        assert base_model_of(net).size == 3 * 3 * 4 + 4

    def test_a_normalised_layer_is_three_ops(self) -> None:
        net = Network("one")
        net.convolution("conv", Activation(None, (3, 8, 8)), 5, 3)
        for learnt in (("beta",), ("gamma", "beta")):
            _, *ops = base_model_of(net, learnt).ops
            assert [op.name for op in ops] == ["conv/Conv2D", "conv/BatchNorm", "conv/Relu"]
            assert [op.operations for op in ops] == [2 * 64 * 5 * 27, 2 * 64 * 5, 64 * 5]
            assert [p.size for p in ops[1].parameters] == [5] * len(learnt)


def test_an_unknown_model_lists_all() -> None:
    with pytest.raises(InputError, match=r"no model 'lenet'; .* alexnet, vgg16"):
        base_model("lenet")
