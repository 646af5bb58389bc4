from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from optpart.errors import InputError
from optpart.testing.chains import chain, cluster
from optpart.training import graph_file
from optpart.training.opening import open_model
from optpart.training.strategy_file import Reading

CLUSTER = """
bandwidth = 1
[[device]]
name = "a"
type = "a"
count = 2
speed = 1
server = "s"
"""
PROFILE = """node1 -- Conv2d(3, 8) -- forward_compute_time=2.000, backward_compute_time=4.000, \
activation_size=800.0, parameter_size=40.000
node2 -- ReLU() -- forward_compute_time=1.000, backward_compute_time=1.000, \
activation_size=800.0, parameter_size=0.000
\tnode1 -- node2
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(CLUSTER)
    return path


def test_a_model_and_a_cluster_of_the_package() -> None:
    found = open_model("vgg19", "heterog-4")
    assert (len(found.graph.parameters) > 0, len(found.cluster)) == (True, 4)
    assert any("datasheets" in remark for remark in found.remarks)


def test_a_graph_in_json_on_a_cluster_of_ones_own(tmp_path: Path, two: Path) -> None:
    path = tmp_path / "chain.json"
    graph_file.write(chain(2), path)
    found = open_model(path, two)
    assert found.graph.name == "chain"
    assert found.cluster.names == ("a0", "a1")
    assert any("nanoseconds and bytes" in remark for remark in found.remarks)


def test_a_profile_needs_to_be_told_what_it_leaves_open(tmp_path: Path, two: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(PROFILE)
    with pytest.raises(InputError, match="samples: is missing"):
        open_model(path, two, Reading(slowness={"a": Fraction(1)}))
    with pytest.raises(InputError, match="slowness: of 'a' is missing"):
        open_model(path, two, Reading(samples=8))
    with pytest.raises(InputError, match="slowness: no kind 'b' in the cluster; it has a"):
        open_model(path, two, Reading(8, {"b": Fraction(1)}))
    found = open_model(path, two, Reading(8, {"a": Fraction(2)}))
    assert found.graph.operations[0].times[0].beta == 2 * 2_000_000 / Fraction(8)


def test_an_onnx_model_with_its_symbol_for_samples(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")
    make = onnx.helper
    weights = make.make_tensor("w", onnx.TensorProto.FLOAT, [4, 3], [0.5] * 12)
    x, y = (
        make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size])
        for name, size in (("x", 4), ("y", 3))
    )
    node = make.make_node("MatMul", ["x", "w"], ["y"], "product")
    graph = make.make_graph([node], "one", [x], [y], [weights])
    path = tmp_path / "one.onnx"
    onnx.save(make.make_model(graph), path)
    with pytest.raises(InputError, match="samples: is missing; give the model's symbol"):
        open_model(path, "heterog-4")
    found = open_model(path, "heterog-4", Reading(samples="n"))
    assert [o.role for o in found.graph.operations] == ["forward", "backward", "apply"]
    assert [parameter.size for parameter in found.graph.parameters] == [48]


def test_fitted_costs_replace_those_of_model_and_cluster(tmp_path: Path, two: Path) -> None:
    costs = tmp_path / "costs.json"
    costs.write_text(
        '{"format": "optpart-costs/1", "source": "times.csv", "operations": '
        '[{"op": "f0", "kind": "a", "alpha": 7, "beta": 3}], '
        '"transfers": [{"sender": "a0", "receiver": "a1", "alpha": 5, "beta": "1/4"}]}'
    )
    found = open_model(chain(2), two, Reading(costs=str(costs)))
    assert found.graph.operations[0].times[0].at(2) == 13
    assert found.cluster.transfer(0, 1, Fraction(8)) == 7
    said = " ".join(found.remarks)
    assert "Times were fitted to times.csv." in said
    assert "Links were fitted to times.csv." in said


@pytest.mark.parametrize(
    ("model", "reading", "said"),
    [
        ("vgg9", Reading(), "model: no model 'vgg9'; did you mean vgg19"),
        ("none.json", Reading(), "none.json: no such file"),
        ("vgg19", Reading(samples=8), "samples: means nothing to the model vgg19"),
        ("vgg19", Reading(), "cluster: gives no figures of 'a', by which the model"),
    ],
)
def test_faults_are_one_line(two: Path, model: str, reading: Reading, said: str) -> None:
    with pytest.raises(InputError, match=said):
        open_model(model, two, reading)


def test_an_unknown_cluster() -> None:
    with pytest.raises(InputError, match="heterog-9: no such file; name a file, or one of heterog"):
        open_model("vgg19", "heterog-9")


def test_an_unknown_kind_of_device() -> None:
    with pytest.raises(InputError, match="no times are known for its kind 'b'; the graph has a"):
        open_model(chain(2), cluster(("a", "b")))


def test_a_file_of_no_known_format(tmp_path: Path, two: Path) -> None:
    path = tmp_path / "model.xyz"
    path.write_text("?")
    with pytest.raises(InputError, match=r"no model in a \.xyz file; give \.json, "):
        open_model(path, two)
