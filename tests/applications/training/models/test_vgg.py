from fractions import Fraction

from optpart.applications.training.cluster_file import specs_of
from optpart.applications.training.graph import Layout, Role
from optpart.applications.training.models import network


def test_all_that_follows_the_first_convolution_has_a_gradient() -> None:
    net = network("vgg19")
    graph = net.training_graph(specs_of("v100-16gb", "gtx-1080ti"))
    roles = [operation.role for operation in graph.operations]
    assert (roles.count(Role.FORWARD), roles.count(Role.APPLY)) == (25, 19)
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
