"""A model that says where its nodes run."""

from pathlib import Path

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.exporters import onnx_layers
from optpart.exporters.plan import Plan

onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")
ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

KEY = "session.layer_assignment_settings"


def plan(**devices: str) -> Plan:
    return Plan("toy", "", devices, {name: k for k, name in enumerate(devices)})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """``z = exp(x · eʷ)``, where ``eʷ`` is constant."""
    x, z = (helper.make_tensor_value_info(each, TensorProto.FLOAT, [400]) for each in "xz")
    weight = numpy_helper.from_array(np.linspace(0, 1, 400, dtype=np.float32), "w")
    nodes = [
        helper.make_node("Exp", ["w"], ["e"], name="constant"),
        helper.make_node("Mul", ["x", "e"], ["y"], name="a"),
        helper.make_node("Exp", ["y"], ["z"], name="b"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [z], [weight])
    path = tmp_path / "model.onnx"
    imports = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    return path


def annotations(path: Path) -> dict[str, dict[str, str]]:
    nodes = onnx.load(path, load_external_data=False).graph.node
    return {each.name: {p.key: p.value for p in each.metadata_props} for each in nodes}


def test_vertices_are_annotated_and_the_option_maps_annotations_to_devices(
    model: Path, tmp_path: Path
) -> None:
    loaded = onnx.load(model)
    loaded.graph.node[1].metadata_props.add(key="layer_ann", value="old")
    loaded.graph.node[1].metadata_props.add(key="mine", value="kept")
    onnx.save(loaded, model)
    output = tmp_path / "out.onnx"
    names = {"g": "cuda", "c": "cpu"}
    remarks = onnx_layers.write(plan(a="g", b="c"), model, output, names=names)
    assert remarks[0] == f'{KEY} = "cuda(=device_0); cpu(=device_1)"'
    assert "orders operations by itself" in remarks[1]
    assert annotations(output) == {
        "constant": {},
        "a": {"layer_ann": "device_0", "mine": "kept"},
        "b": {"layer_ann": "device_1"},
    }


def session(path: Path, settings: str):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry(KEY, settings)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def test_onnx_runtime_takes_model_and_option(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    remarks = onnx_layers.write(plan(a="c", b="c"), model, output, names={"c": "cpu"})
    settings = remarks[0].partition(" = ")[2].strip('"')
    onnx.checker.check_model(output)
    given = {"x": np.linspace(0, 1, 400, dtype=np.float32)}
    plain = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    (found,), (expected,) = session(output, settings).run(None, given), plain.run(None, given)
    assert found.tobytes() == expected.tobytes()
    with pytest.raises(Exception, match="Invalid layering config"):
        session(output, "cpu device_0")


def test_two_accelerators_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="g and h: are several accelerators") as fault:
        onnx_layers.write(
            plan(a="g", b="h"), model, tmp_path / "out.onnx", names={"g": "gpu:0", "h": "gpu:1"}
        )
    assert "use --to onnx" in str(fault.value)
    with pytest.raises(InputError, match="vertex 'z': is no node of the model"):
        onnx_layers.write(plan(a="cpu", b="cpu", z="cpu"), model, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


def test_weights_in_files_of_their_own_stay_where_they_are(model: Path, tmp_path: Path) -> None:
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="w.data")
    onnx_layers.write(plan(a="cpu", b="cpu"), model, tmp_path / "out.onnx")
    assert len(onnx.load(tmp_path / "out.onnx").graph.initializer[0].raw_data) == 1600
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="keeps weights in files of their own; write into its"):
        onnx_layers.write(plan(a="cpu", b="cpu"), model, tmp_path / "other/out.onnx")
