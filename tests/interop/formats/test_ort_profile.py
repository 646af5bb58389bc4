"""Profiles of ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mutations import read_mutated

from optpart.base.errors import InputError
from optpart.interop.formats import profile
from optpart.interop.formats.ort_profile import from_document, read, sniff

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def node(name: str, kind: str, index: int, dur: Any, provider: str = CPU) -> dict[str, Any]:
    return {
        "cat": "Node", "pid": 1, "tid": 1, "ts": 5, "ph": "X", "name": name + "_kernel_time",
        "dur": dur, "args": {"op_name": kind, "node_index": str(index), "provider": provider},
    }  # fmt: skip


def run(*times: Any) -> list[dict[str, Any]]:
    conv, relu, first, second = times
    return [
        node("conv1", "Conv", 0, conv),
        node("Relu_1", "Relu", 1, relu),
        node("Add_2", "Add", 2, first),
        node("Add_10", "Add", 10, second),
        {"cat": "Session", "name": "model_run", "ph": "X", "dur": 99, "ts": 1, "args": {}},
        {"cat": "Node", "name": "conv1_fence_before", "ph": "X", "dur": 1, "ts": 1},
    ]


DOCUMENT = run(123, 12, 3, 4) + run(23.5, 5, 3, 4)


def test_every_execution_is_a_measurement_in_microseconds() -> None:
    found = from_document(DOCUMENT)
    assert found.times == {
        "conv1": (123000, 23500),
        "Relu_1": (12000, 5000),
        "Add_2": (3000, 3000),
        "Add_10": (4000, 4000),
    }
    assert found.remarks == ()


def test_names_made_up_of_kind_and_index_are_in_the_order_of_the_graph() -> None:
    found = from_document(DOCUMENT)
    assert found.unnamed == {"Relu": ("Relu_1",), "Add": ("Add_2", "Add_10")}


def test_a_name_of_two_nodes_tells_nothing() -> None:
    found = from_document([*DOCUMENT, node("Add_10", "Add", 3, 7)])
    assert "Add_10" not in found.times
    assert found.unmatched == ("Add_10",)
    assert found.unnamed["Add"] == ("Add_2",)


def test_providers_are_told_of() -> None:
    found = from_document([*DOCUMENT, node("gemm", "Gemm", 4, 1, CUDA)])
    assert found.remarks == (
        f"nodes ran with several providers, and all count: {CPU} 4, {CUDA} 1.",
        f"times with {CUDA} end when the call of the node returns, which may be before its kernels "
        "end.",
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "is an object; give a list"),
        ([], "no event of a node; run the model before the session ends its profiling"),
        ([node("a", "A", 0, -1)], "event 0, dur: -1 is negative; give a number ≥ 0"),
        ([node("a", "A", 0, None)], "event 0, dur: None is not a number"),
        ([node("a", "A", -1, 1)], "event 0, node_index: '-1' is no index; give a whole number"),
        ([node("a", "A", 0, 1) | {"args": 3}], "event 0, args: is not an object; give an object"),
        ([node("a", "A", 0, 1) | {"args": {}}], "event 0, args: no 'op_name'; give the key"),
    ],
)
def test_a_faulty_profile_is_one_line(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as fault:
        read(path)
    assert message in str(fault.value)
    assert str(fault.value).startswith(f"{path}: ")


def test_old_releases_tell_no_index(tmp_path: Path) -> None:
    event = node("Add_2", "Add", 2, 7)
    del event["args"]["node_index"]
    found = from_document([event])
    assert found.times == {"Add_2": (7000,)}
    assert found.unnamed == {}


def test_a_file_too_long_to_be_parsed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "MOST_BYTES", 2**20)
    path = tmp_path / "profile.json"
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match=r"profile.json: is longer than 1 MiB; profile fewer runs"):
        read(path)


def test_it_is_told_from_other_json() -> None:
    assert sniff(DOCUMENT)
    assert not sniff({"traceEvents": DOCUMENT})
    assert not sniff([3])


def test_any_mutation_is_read_or_refused(tmp_path: Path) -> None:
    content = json.dumps(DOCUMENT).encode()
    for times in read_mutated(lambda path: read(path).times, tmp_path / "mutated", content):
        assert all(found and min(found) >= 0 for found in times.values())
