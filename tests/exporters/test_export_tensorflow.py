"""A TensorFlow graph with devices is the graph that was read, but for its devices."""

from pathlib import Path

import pytest

from optpart.base.errors import InputError
from optpart.exporters import tensorflow
from optpart.exporters.plan import Plan
from optpart.interop.formats.tensorflow import read_graph, read_message

NAMES = {"g": "/GPU:0", "c": "/job:worker/task:1/device:CPU:0"}


def field(number: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    assert len(raw) < 128
    return bytes([number << 3 | 2, len(raw)]) + raw


def node(name: str, *inputs: str, device: str = "") -> bytes:
    content = field(1, name) + field(2, "Op") + b"".join(field(3, text) for text in inputs)
    dtype = field(5, field(1, "dtype") + field(2, b"\x30\x01"))  # which the reader does not know
    return field(1, content + (field(4, device) if device else b"") + dtype)


VERSIONS = field(4, b"\x08\x19")  # producer 25


def graph(folder: Path, *nodes: bytes) -> Path:
    path = folder / "graph.pb"
    path.write_bytes(b"".join(nodes) + VERSIONS)
    return path


def plan(**devices: str) -> Plan:
    return Plan("toy", "", devices, {name: k for k, name in enumerate(devices)})


def test_nodes_get_devices_and_keep_what_the_reader_does_not_know(tmp_path: Path) -> None:
    source = graph(tmp_path, node("a", device="/GPU:7"), node("b", "a", "^a"))
    output = tmp_path / "out.pb"
    remarks = tensorflow.write(plan(a="g", b="c"), source, output, names=NAMES)
    expected = node("a", device="/GPU:0"), node("b", "a", "^a", device=NAMES["c"])
    # Protobuf writes fields by number, and those that it does not know last.
    found = read_message(output)
    assert [each.device for each in found.node] == ["/GPU:0", NAMES["c"]]
    assert sorted(output.read_bytes()) == sorted(b"".join(expected) + VERSIONS)
    assert "the order of the plan is not kept" in remarks[0]
    placed, _ = read_graph(output)
    assert placed.device_types == ("GPU", "CPU")


@pytest.mark.parametrize(
    ("devices", "names", "message"),
    [
        ({"a": "g"}, {"g": "/GPU:0"}, "node 'b': is not in the plan"),
        ({"a": "g", "b": "c", "z": "c"}, NAMES, "vertex 'z': is no node of the model"),
        ({"a": "g", "b": "c"}, {"g": "/GPU:0"}, r"device 'c': is called 'c', which .* c=/GPU:0"),
        ({"a": "g", "b": "c"}, {"g": "GPU:0", "c": "/CPU:0"}, "'GPU:0', which the target"),
    ],
)
def test_other_plans_and_names_are_refused(devices, names, message, tmp_path: Path) -> None:
    source = graph(tmp_path, node("a"), node("b", "a"))
    with pytest.raises(InputError, match=message):
        tensorflow.write(plan(**devices), source, tmp_path / "out.pb", names=names)
    assert not (tmp_path / "out.pb").exists()


def test_text_is_refused_as_fields_would_be_lost(tmp_path: Path) -> None:
    source = tmp_path / "graph.pbtxt"
    source.write_text('node { name: "a" op: "Op" attr { key: "dtype" value { type: DT_FLOAT } } }')
    with pytest.raises(InputError, match="write it binary"):
        tensorflow.write(plan(a="g"), source, tmp_path / "out.pb", names={"g": "/GPU:0"})
    binary = graph(tmp_path, node("a"))
    with pytest.raises(InputError, match=r"name a \.pb file"):
        tensorflow.write(plan(a="g"), binary, tmp_path / "out.pbtxt", names={"g": "/GPU:0"})
