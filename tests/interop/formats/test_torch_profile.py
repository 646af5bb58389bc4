"""Profiles of PyTorch: operators and ranges of the host, and the work that they launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mutations import read_mutated

from optpart.base.errors import InputError
from optpart.interop.formats.torch_profile import from_document, read, sniff

NAMES = ["conv2d", "relu", "relu_1", "head"]


def event(cat: str, name: str, ts: Any, dur: Any, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def step(number: int, at: int) -> list[dict[str, Any]]:
    """One step: conv2d [0, 20] around convolution, relu twice, and the range head [60, 80]."""
    first = 100 * number
    return [
        event("user_annotation", f"ProfilerStep#{number}", at, 90),
        event("cpu_op", "aten::convolution", at + 1, 18, **{"External id": first + 1}),
        event("cpu_op", "aten::conv2d", at, 20, **{"External id": first}),
        event("cpu_op", "aten::relu", at + 30, 5, **{"External id": first + 2}),
        event("cpu_op", "aten::relu", at + 40, 6 + number, **{"External id": first + 3}),
        event("user_annotation", "head", at + 60, 20),
        event("cpu_op", "aten::linear", at + 61, 10, **{"External id": first + 4}),
    ]


HOST = [*step(0, 1000), *step(1, 2000)]


def kernels(number: int, at: int) -> list[dict[str, Any]]:
    first = 100 * number
    return [
        event("cuda_runtime", "cudaLaunchKernel", at + 5, 1, correlation=first + 10),
        event("cuda_runtime", "cudaLaunchKernel", at + 7, 1, correlation=first + 11),
        event("kernel", "sgemm", at + 500, 3.25, 9, correlation=first + 10, device=0),
        event("gpu_memset", "Memset", at + 510, 1, 9, correlation=first + 11, device=0),
        event("kernel", "relu", at + 520, 2, 9, device=0, **{"External id": first + 2}),
        event("cuda_runtime", "cudaLaunchKernel", at + 65, 1, correlation=first + 12),
        event("kernel", "gemm", at + 530, 4 + number, 9, correlation=first + 12, device=0),
    ]


DEVICE = [*HOST, *kernels(0, 1000), *kernels(1, 2000)]


def test_operators_that_no_other_encloses_are_called_as_torch_fx_does() -> None:
    found = from_document({"traceEvents": HOST}, NAMES)
    assert found.times == {
        "conv2d": (20000, 20000),
        "head": (20000, 20000),
        "relu": (5000, 5000),
        "relu_1": (6000, 7000),
    }
    assert found.unmatched == ("linear",)
    assert found.remarks == (
        "times are those of the calls on the host.",
        "2 steps were profiled.",
    )


def test_work_on_a_device_counts_where_it_was_launched() -> None:
    found = from_document({"traceEvents": DEVICE}, NAMES)
    assert found.times == {
        "conv2d": (4250, 4250),
        "head": (4000, 5000),
        "relu": (2000, 2000),
        "relu_1": (0, 0),
    }
    assert found.remarks == (
        "times are sums of the kernels, copies and fills that were launched.",
        "1 of the vertices launched nothing and take no time.",
        "2 steps were profiled.",
    )


def test_operators_match_only_if_the_graph_has_as_many() -> None:
    found = from_document({"traceEvents": HOST}, ["conv2d", "relu", "relu_1", "relu_2", "head"])
    assert set(found.times) == {"conv2d", "head"}
    assert found.unmatched == ("linear", "relu")


#: Written by torch.profiler 2.13 around three calls of a small exported model, without ``step()``;
#: only the operators, and of these only what is read.
TRACE = Path(__file__).parent / "data" / "torch_trace.json"
EXPORTED = ["linear", "relu", "chunk", "cat", "view", "linear_1", "add", "layer_norm", "softmax"]


def test_a_trace_without_steps_holds_whole_runs_of_the_model() -> None:
    found = read(TRACE, EXPORTED)
    assert {name: len(times) for name, times in found.times.items()} == dict.fromkeys(EXPORTED, 3)
    assert found.unmatched == ()
    assert found.remarks[-1] == "no steps are marked; taken as 3 runs of the model."


def test_operators_are_calls_of_the_vertices_of_their_kind_whatever_these_are_called() -> None:
    kinds = [f"aten.{name.removesuffix('_1')}" for name in EXPORTED]
    found = read(TRACE, [f"v{i}" for i in range(len(kinds))], kinds)
    assert {name: len(times) for name, times in found.times.items()} == {
        f"v{i}": 3 for i in range(len(kinds))
    }
    assert found.times["v5"] == read(TRACE, EXPORTED).times["linear_1"]


def test_the_operators_of_a_decomposed_graph_are_found_within_others() -> None:
    operators = ["cpu_op aten::linear 0 9", "cpu_op aten::addmm 1 7", "cpu_op aten::t 0 1"]
    events = [
        event(*text.split()[:2], 100 * run + int(text.split()[2]), int(text.split()[3]))
        for run in range(2)
        for text in [*operators, "cpu_op aten::relu 20 2", "cpu_op aten::arange 40 1"]
    ]
    found = from_document(events, ["product", "relu"], ["aten.addmm", "aten.relu"])
    assert found.times == {"product": (7000, 7000), "relu": (2000, 2000)}
    assert found.unmatched == ("arange",)


def test_the_number_of_runs_is_what_most_operators_agree_on() -> None:
    found = read(TRACE, [*EXPORTED, "linear_2"])
    assert {len(times) for times in found.times.values()} == {3}
    assert found.unmatched == ("linear",)


def test_operators_of_which_as_many_disagree_match_only_once_each() -> None:
    found = read(TRACE, ["linear", "relu"])
    assert found.times == {}
    assert {"linear", "relu"} <= {*found.unmatched}


def test_work_without_a_launch_and_outside_of_vertices_is_told_of() -> None:
    found = from_document(
        [
            *DEVICE,
            event("kernel", "lost", 1, 5, 9, correlation=999),
            event("cuda_runtime", "cudaLaunchKernel", 1055, 1, correlation=998),
            event("kernel", "other", 1, 5, 9, correlation=998),
        ],
        NAMES,
    )
    assert found.remarks[2:4] == (
        "1 launches were in the range of no vertex.",
        "1 pieces of work on the device name no launch in the file.",
    )


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (3, "traceEvents: missing; give a Chrome trace: a list of events"),
        ([*DEVICE, event("kernel", "k", 1, 1, device=1)], "traceEvents: work on devices 0, 1;"),
        ([event("cpu_op", "a", 1, -1)], "traceEvents[0].dur: -1 is negative"),
        ([event("cpu_op", "a", "x", 1)], "traceEvents[0].ts: 'x' is not a number"),
        ([event("cpu_op", "", 1, 1)], "traceEvents[0].name: '' is no name; name the event"),
        (
            [*HOST, event("user_annotation", "head", 2085, 2)],
            "range 'head': ran 3 times in 2 steps; run every vertex once a step",
        ),
        (
            [*HOST, event("user_annotation", "head", 1001, 2)],
            "range 'head': lies within 'conv2d', and both are vertices; name only one",
        ),
        (
            [*HOST, event("kernel", "k", 1, 1, correlation=1)],
            "no work was launched in the range of a vertex; profile the activities CPU and CUDA",
        ),
    ],
)
def test_a_faulty_profile_is_one_line(tmp_path: Path, events: Any, message: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    with pytest.raises(InputError) as fault:
        read(path, NAMES)
    assert str(fault.value).startswith(f"{path}: {message}")


def test_it_is_told_from_other_json() -> None:
    assert sniff({"traceEvents": HOST})
    assert sniff(HOST)
    assert not sniff({"traceEvents": [{"cat": "Node"}, {"cat": []}, 3]})


def test_any_mutation_is_read_or_refused(tmp_path: Path) -> None:
    content = json.dumps({"traceEvents": DEVICE}).encode()
    for times in read_mutated(lambda path: read(path, NAMES).times, tmp_path / "mutated", content):
        assert all(found and min(found) >= 0 for found in times.values())
