from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from optpart.applications.training.cluster_file import specs_of
from optpart.applications.training.graph import Line, Role
from optpart.applications.training.readers.pipedream import read
from optpart.base.errors import InputError

DATA = Path(__file__).resolve().parents[4] / "../shared/data/pipedream"

TINY = """node2 -- Conv2d(3, 64) -- forward_compute_time=2.5, backward_compute_time=4.25, activation_size=800.0, parameter_size=70.0
node3 -- ReLU -- forward_compute_time=1, backward_compute_time=0.5, activation_size=800.0, parameter_size=0
node1 -- Input -- forward_compute_time=6, backward_compute_time=0.0, activation_size=150.0, parameter_size=0.0
\tnode1 -- node2
\tnode2 -- node3
"""  # noqa: E501


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "tiny.txt").write_text(TINY)
    return tmp_path / "tiny.txt"


def test_times_and_sizes_are_proportional_to_samples(tiny: Path) -> None:
    graph = read(tiny, minibatch=10, slowness={"gpu": 1, "old": "3/2"})
    assert graph.kinds == ("gpu", "old")
    conv, relu, *_ = graph.operations
    assert conv.times == (Line(beta=Fraction(250_000)), Line(beta=Fraction(375_000)))
    assert conv.outputs[0].size == Line(beta=Fraction(80))
    backward = graph.operations[graph.index["node2/backward"]]
    assert backward.times[0] == Line(beta=Fraction(425_000))
    assert backward.outputs[0].size == Line(Fraction(70))
    assert relu.name == "node3"
    assert [o.times for o in graph.operations if o.role is Role.APPLY] == [(Line(), Line())]


def test_what_was_assumed_is_said(tiny: Path) -> None:
    said = " ".join(read(tiny, minibatch=10, slowness={"gpu": 1, "old": 1.5}).assumed)
    assert "1 Input node dropped" in said
    assert "proportional to samples, 10 of which were measured" in said
    assert "1 (gpu), 1.5 (old), which was given, not measured" in said
    assert "Updates were not measured and take no time." in said


def test_updates_may_be_timed_by_the_figures_of_devices(tiny: Path) -> None:
    figures = specs_of("v100-16gb")
    graph = read(tiny, minibatch=10, slowness={"v100-16gb": 1}, figures=figures, slots=2)
    line = graph.operations[graph.index["node2/apply"]].times[0]
    assert line == Line(5000 + 7 * 70 / (900 * Fraction(4, 5)))


def test_faults(tiny: Path) -> None:
    with pytest.raises(InputError, match="minibatch: 0; give a whole number from 1"):
        read(tiny, minibatch=0, slowness={"gpu": 1})
    with pytest.raises(InputError, match=r"slowness.old: 0; give a number > 0"):
        read(tiny, minibatch=1, slowness={"old": 0})


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/pipedream")
def test_a_whole_iteration_takes_what_was_measured() -> None:
    graph = read(DATA / "vgg16.txt", minibatch=128, slowness={"gpu": 1})
    # 138,357,544 parameters: torchvision's VGG16.
    assert sum(graph.resident) == 4 * 138_357_544
    total = sum(o.times[0].at(128) for o in graph.operations) / 10**6
    assert float(total) == pytest.approx(672.535)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/pipedream")
def test_all_profiles_can_be_read() -> None:
    files = sorted(DATA.glob("*.txt"))
    assert files
    for path in files:
        assert len(read(path, minibatch=64, slowness={"gpu": 1})) > 50
