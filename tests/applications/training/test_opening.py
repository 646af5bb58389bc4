from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart.applications.training import graph_file
from optpart.applications.training.opening import open_model
from optpart.applications.training.strategy_file import Reading
from optpart.base.errors import InputError
from optpart.testing.chains import chain, cluster

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


@pytest.fixture
def sailor(tmp_path: Path) -> Path:
    """A folder of two networks of one layer, one of them measured on one type of GPU."""
    folder = tmp_path / "sailor"
    layer = {"params_bytes": 100, "act_output_bytes": 80, "act_mem_bytes": 80}
    info = {name: {"2": {"0": layer}} for name in ("M", "N")}
    profile = folder / "profiles" / "M" / "GH" / "profile.json"
    profile.parent.mkdir(parents=True)
    (folder / "llm_info.json").write_text(json.dumps(info))
    profile.write_text(json.dumps({"1": {"2": {"0": [3e-9, 7e-9, 5e-9]}}}))
    return folder


def test_a_folder_by_sailor_with_network_degree_and_types_of_gpu(sailor: Path, two: Path) -> None:
    found = open_model(sailor, two, Reading(network="M", tensor_parallel=2, gpus={"a": "GH"})).graph
    assert (found.name, found.kinds) == ("M", ("a",))
    assert found.operations[0].times[0].at(1) == 3


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (Reading(), "network: is missing; choose one of M, N"),
        (Reading(network="O"), "network: no network 'O'; choose one of M, N"),
        (Reading(network="M"), "gpus: M was not measured on 'a', the type of 'a'; .*: GH"),
        (Reading(network="M", gpus={"a": "GH"}), "tensor_parallel: is missing"),
        (Reading(network="M", gpus={"b": "GH"}), "gpus: no kind 'b' in the cluster; it has a"),
        (Reading(network="M", gpus={"a": "GH"}, tensor_parallel=4), "no degree '4'; choose one"),
        (Reading(network="N", gpus={"a": "GH"}, tensor_parallel=2), "holds no GPU/profile.json"),
        (Reading(samples=8), "samples: means nothing to a folder of Sailor"),
    ],
)
def test_faults_of_a_folder_by_sailor(sailor: Path, two: Path, reading: Reading, said: str) -> None:
    with pytest.raises(InputError, match=said):
        open_model(sailor, two, reading)


def test_two_kinds_may_be_one_type_of_gpu(sailor: Path, tmp_path: Path) -> None:
    path = tmp_path / "kinds.toml"
    other = CLUSTER.replace('"a"', '"b"').replace("bandwidth = 1", "")
    path.write_text(CLUSTER + other)
    gpus = {"a": "GH", "b": "GH"}
    found = open_model(sailor, path, Reading(network="M", tensor_parallel=2, gpus=gpus)).graph
    assert found.kinds == ("a", "b")


@pytest.fixture
def amp(tmp_path: Path) -> Path:
    """A folder of GPT-2 on one type of GPU, and of a network without sizes."""
    folder = tmp_path / "amp"
    folder.mkdir()
    np.save(folder / "gpt2_P3_2.npy", np.full(30, 1e-3))
    np.save(folder / "other_P3_2.npy", np.full(30, 1e-3))
    return folder


def test_a_folder_by_amp(amp: Path, two: Path) -> None:
    found = open_model(amp, two, Reading(network="gpt2", tensor_parallel=2, gpus={"a": "P3"})).graph
    assert (found.name, found.kinds) == ("gpt2", ("a",))
    assert found.operations[0].times[0].at(3) == 3_000_000


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (Reading(), "network: is missing; choose one of gpt2, other"),
        (Reading(network="other"), "network: the files hold times of 'other', but no sizes"),
        (Reading(network="gpt2"), "tensor_parallel: is missing"),
        (
            Reading(network="gpt2", tensor_parallel=2),
            "gpus: no times of gpt2 on 'a', the type of 'a', with degree 2; those of P3 2 are",
        ),
        (
            Reading(network="gpt2", tensor_parallel=4, gpus={"a": "P3"}),
            "gpus: no times of gpt2 on 'P3', the type of 'a', with degree 4",
        ),
    ],
)
def test_faults_of_a_folder_by_amp(amp: Path, two: Path, reading: Reading, said: str) -> None:
    with pytest.raises(InputError, match=said):
        open_model(amp, two, reading)


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


def test_what_is_unknown_is_named(tmp_path: Path, two: Path) -> None:
    path = tmp_path / "model.xyz"
    path.write_text("?")
    with pytest.raises(InputError, match="heterog-9: no such file; did you mean heterog"):
        open_model("vgg19", "heterog-9")
    with pytest.raises(InputError, match="no times are known for its kind 'b'; the graph has a"):
        open_model(chain(2), cluster(("a", "b")))
    with pytest.raises(InputError, match="no folder of profiles; give one by Sailor"):
        open_model(tmp_path, two)
    with pytest.raises(InputError, match=r"no model in a \.xyz file; give \.json, "):
        open_model(path, two)
