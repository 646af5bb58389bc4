from fractions import Fraction

from optpart.training.cluster_file import specs_of
from optpart.training.graph import Layout, Role
from optpart.training.models import network


def test_counts_are_those_published() -> None:
    """torchvision.models.VGG19_Weights: 143,667,240 parameters, 19.632 G multiply-adds."""
    net = network("vgg19")
    assert net.parameters == 143_667_240
    assert round(net.multiply_adds / 10**9, 3) == 19.632


def test_multiply_adds_agree_with_a_closed_form() -> None:
    """A convolution of 3 × 3 on n × n images: 9 · n² · in · out."""
    blocks = [(224, 3, 64, 2), (112, 64, 128, 2), (56, 128, 256, 4), (28, 256, 512, 4)]
    blocks.append((14, 512, 512, 4))
    products = sum(9 * n**2 * (i * o + (k - 1) * o * o) for n, i, o, k in blocks)
    products += 49 * 512 * 4096 + 4096**2 + 4096 * 1000
    assert network("vgg19").multiply_adds == products


def test_the_training_graph() -> None:
    net = network("vgg19")
    graph = net.training_graph(specs_of("v100-16gb", "gtx-1080ti"))
    roles = [operation.role for operation in graph.operations]
    assert (roles.count(Role.FORWARD), roles.count(Role.APPLY)) == (25, 19)
    # Nothing before the first convolution needs a gradient, and all that follows does.
    assert roles.count(Role.BACKWARD) == 25
    assert sum(p.size for p in graph.parameters) == sum(graph.resident) == 4 * net.parameters
    gradients = [
        output.size.alpha
        for operation in graph.operations
        for output in operation.outputs
        if output.layout is Layout.SUMMED
    ]
    assert sum(gradients) == 4 * net.parameters


def test_the_backward_pass_takes_twice_as_long_but_for_the_first_layer() -> None:
    graph = network("vgg19").training_graph(specs_of("v100-16gb"))
    time = {operation.name: operation.times[0] for operation in graph.operations}
    assert time["conv3_2/backward"].beta == 2 * time["conv3_2"].beta
    assert time["conv1_1/backward"] == time["conv1_1"]
    assert time["pool1/backward"] == time["pool1"]


def test_the_times_of_a_convolution_are_those_of_its_roofline() -> None:
    """At 60% of 15.7 TFLOP/s and 80% of 900 GB/s."""
    graph = network("vgg19").training_graph(specs_of("v100-16gb"))
    line = graph.operations[graph.index["conv3_2"]].times[0]
    assert line.beta == Fraction(2 * 9 * 56**2 * 256 * 256) / (15_700 * Fraction(3, 5))
    assert line.alpha == 5000 + Fraction(4 * (9 * 256 * 256 + 256), 720)
