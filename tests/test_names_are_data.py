"""Every export and every written format, read by the real parser of its language, with any names.

The tables of readers below are compared with the registries: a new export or a new writer fails
here until its reader is added.
"""

from __future__ import annotations

import ast
import csv
import importlib
import json
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hostile import NAMES, UNSEEN, names
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import optpart as op
import optpart.interop.formats
from optpart.applications.training import graph_file
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.base.languages import from_csv
from optpart.exporters import registry, strategy
from optpart.exporters.chain import chain_of
from optpart.exporters.plan import Plan
from optpart.exporters.registry import Options, export
from optpart.exporters.trace import Scheduled
from optpart.interop.devices.spec import Coefficients, FittedSpec
from optpart.interop.formats import (
    calibration_toml,
    cluster_toml,
    native,
    saga,
    thesis_csv,
    wfformat,
)
from optpart.interop.formats import result as result_format
from optpart.problem.workload import Workload
from optpart.testing import chains

pairs = st.lists(names, min_size=2, max_size=2, unique=True)
few = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


# --- exports of plans ----------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    assert text.count("\n") == 1
    return shlex.split(text)


def _device_map(plan: Plan, text: str) -> None:
    found = json.loads(text)
    assert [*found] == [*plan.device]
    assert {*found.values()} == {0, "cpu"}


def _llama_cpp(plan: Plan, text: str) -> None:
    assert _words(text) == [
        "--n-gpu-layers", "3", "--rpc", "h.x:5", "--device", "CUDA0,RPC0",
        "--split-mode", "layer", "--tensor-split", "1,2",
    ]  # fmt: skip


def _overrides(plan: Plan, text: str) -> None:
    *_, option, value = _words(text)
    assert (option, value) == (
        "--override-tensor",
        "^(token_embd|position_embd|token_types)=CUDA0",
    )


def _vllm(plan: Plan, text: str) -> None:
    assert re.fullmatch("CUDA_VISIBLE_DEVICES=0,1\nVLLM_PP_LAYER_PARTITION=1,1\n#[ -~]*\n", text)


def _megatron(plan: Plan, text: str) -> None:
    assert _words(text)[::2] == [
        "--pipeline-model-parallel-size", "--pipeline-model-parallel-layout",
    ]  # fmt: skip


def _split_spec(text: str) -> list[str]:
    """Return the keys of a ``split_spec``, of which and an import a program consists."""
    bring, assign = ast.parse(text).body
    assert isinstance(bring, ast.ImportFrom)
    assert isinstance(assign, ast.Assign)
    assert isinstance(assign.value, ast.Dict)
    assert {ast.unparse(value) for value in assign.value.values} <= {"SplitPoint.BEGINNING"}
    return [ast.literal_eval(key) for key in assign.value.keys if key is not None]


def _torch(plan: Plan, text: str) -> None:
    second = plan.devices[1]
    assert _split_spec(text) == [next(v for v, d in plan.device.items() if d == second)]


#: What targets call two devices, and the parser of what they get.
PLANS: dict[str, tuple[tuple[str, str] | None, Callable[[Plan, str], None]]] = {
    "device-map": (("0", "cpu"), _device_map),
    "llama.cpp": (("CUDA0", "RPC0[h.x:5]"), _llama_cpp),
    "llama.cpp-ot": (("CUDA0", "RPC0[h.x:5]"), _overrides),
    "vllm": (("0", "1"), _vllm),
    "megatron": (None, _megatron),
    "torch": (None, _torch),
}
#: Targets with tests of their own below.
OTHERS = {"onnx", "onnx-layers", "tensorflow", "torch-schedule", "trace", "lp", "mps"}


def test_every_target_has_a_reader() -> None:
    assert {*PLANS} | OTHERS == {*registry.TARGETS}
    assert {*STRATEGIES} == {*strategy.TARGETS}


def _chain(prefix: str, devices: list[str]) -> Plan:
    modules = ["model.embed_tokens", "model.layers.0", "model.layers.1", "model.norm", "lm_head"]
    placed = dict(zip((f"{prefix}.{m}" if prefix else m for m in modules),
                      [devices[i] for i in (0, 0, 1, 1, 1)], strict=True))  # fmt: skip
    return Plan(prefix, prefix, placed, {v: Fraction(i) for i, v in enumerate(placed)})


@pytest.mark.parametrize("target", PLANS)
@few
@given(devices=pairs, prefix=names)
@example(devices=["d0\nimport os; os.system('x')\n#", "\r1"], prefix="\U0001f600")
def test_plans(target: str, devices: list[str], prefix: str) -> None:
    called, read = PLANS[target]
    options = Options(names=dict(zip(devices, called, strict=True)) if called else {})
    plan = _chain(prefix, devices)
    try:
        chain_of(plan)
    except InputError:  # its vertices are no parts of a model
        plan = _chain("", devices)
    found = export(plan, registry.TARGETS[target], options, None)
    assert not UNSEEN.search(found.text)
    read(plan, found.text)
    if called:  # as it is, no name of a device is taken
        with pytest.raises(InputError, match="which the target does not know"):
            export(_chain("", [f"x{d}" for d in devices]), registry.TARGETS[target],
                   Options(names={f"x{devices[0]}": called[0]}), None)  # fmt: skip


@given(name=names)
def test_a_name_of_llama_cpp_cannot_leave_its_quotes(name: str) -> None:
    called = {"a": f"RPC0[{name}]", "b": "CUDA0"}
    try:
        found = export(
            _chain("", ["a", "b"]), registry.TARGETS["llama.cpp-ot"], Options(names=called), None
        )
    except InputError:
        return
    assert re.fullmatch(r"[\w.-]+:\d+", name, re.ASCII)
    assert _words(found.text)[-1].endswith(f"={called['a']}")


# --- exports of instances and schedules ----------------------------------------------------------


def _instance(vertices: list[str], devices: list[str], name: str = "x", **more: Any) -> op.Instance:
    builder = op.GraphBuilder()
    for i, vertex in enumerate(vertices):
        builder.vertex(vertex, i + 1, outputs=[1], **more)
    for source, target in pairwise(vertices):
        builder.edge(source, target, 0)
    types = {"type": more["device_type"]} if more else {}
    cluster = op.Cluster.of([op.Device(d, **types) for d in devices], bandwidth=2)
    return op.Instance(builder.build(), cluster, name=name, source=name)


def _result(instance: op.Instance, method: str) -> op.Result:
    placement = [v % instance.devices for v in range(instance.vertices)]
    return op.conclude(instance, method, op.retime(instance, placement, range(len(placement))))


@few
@given(vertices=pairs, devices=pairs, name=names)
def test_traces(vertices: list[str], devices: list[str], name: str) -> None:
    instance = _instance(vertices, devices, name)
    target = registry.TARGETS["trace"]
    assert target.of == "schedule"
    result = _result(instance, name)
    assert result.schedule is not None
    found = export(Scheduled(instance, result.schedule, name), target, Options(), None)
    assert not UNSEEN.search(found.text)
    document = json.loads(found.text)
    assert document["otherData"]["instance"] == document["otherData"]["method"] == name
    events = document["traceEvents"]
    assert [e["name"] for e in events if e.get("cat") == "vertex" and e["ph"] == "B"] == vertices
    processes = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert processes[:2] == devices


@few
@given(devices=pairs)
def test_orders_of_passes(devices: list[str]) -> None:
    """Cells are passes alone, and devices are named in remarks only."""
    passes = dict(zip(("0F0", "1F0", "1B0", "0B0"), map(devices.__getitem__, (0, 1, 1, 0)),
                      strict=True))  # fmt: skip
    plan = Plan("x", "x", passes, {v: Fraction(i) for i, v in enumerate(passes)})
    found = export(plan, registry.TARGETS["torch-schedule"], Options(), None)
    assert [*csv.reader(found.text.splitlines())] == [["0F0", "0B0"], ["1F0", "1B0"]]


#: HiGHS cannot share a process with OR-Tools, which other tests load.
_HIGHS = """
import highspy, json, sys
found = []
for path in sys.argv[1:]:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(path) == highspy.HighsStatus.kOk
    highs.run()
    names = [highs.getColName(i)[1] for i in range(highs.getNumCol())]
    found.append([highs.getInfo().objective_function_value, names])
print(json.dumps(found))
"""


@pytest.mark.parametrize("ends", [["a b", "a_b"], [NAMES[0], NAMES[1]], ["头", "\u202e"]])
def test_programs(tmp_path: Path, ends: list[str]) -> None:
    """Names that are alike once they are labels, too, are different variables."""
    instance = _instance(ends, [ends[1], ends[0]], "".join(NAMES))
    for form in ("lp", "mps"):
        target = registry.TARGETS[form]
        assert target.of == "instance"
        text = export(instance, target, Options(), tmp_path / f"x.{form}").text
        assert text.isascii()
        assert not UNSEEN.search(text)
        assert max(map(len, text.splitlines())) < 510
    command = [sys.executable, "-P", "-c", _HIGHS, tmp_path / "x.lp", tmp_path / "x.mps"]
    said = subprocess.run(command, capture_output=True, check=True).stdout
    (one, its_names), (two, same_names) = json.loads(said.splitlines()[-1])
    assert one == two == 6  # half time units
    assert len({*its_names}) == len(its_names)
    assert sorted(its_names) == sorted(same_names)


# --- exports of models ---------------------------------------------------------------------------


@pytest.fixture
def onnx_model(tmp_path: Path) -> tuple[Path, list[str]]:
    """A chain of nodes with hostile names, whose values have them too."""
    onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")
    from onnx import TensorProto, helper

    vertices = [name for name in NAMES if len(name) < 100]
    value = ["x", *(f"{name} made" for name in vertices)]
    nodes = [
        helper.make_node("Exp", [value[i]], [value[i + 1]], name=name)
        for i, name in enumerate(vertices)
    ]
    ends = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [3]) for v in (value[0], value[-1])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    path = tmp_path / "model.onnx"
    imports = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    return path, vertices


def _alternating(vertices: list[str], name: str, devices: list[str]) -> Plan:
    placed = {v: devices[i * 2 // len(vertices)] for i, v in enumerate(vertices)}
    return Plan(name, name, placed, {v: Fraction(i) for i, v in enumerate(vertices)})


def test_onnx(onnx_model: tuple[Path, list[str]], tmp_path: Path) -> None:
    import onnx

    path, vertices = onnx_model
    plan = _alternating(vertices, "".join(NAMES), [NAMES[0], "$(id)"])
    target = registry.TARGETS["onnx"]
    found = export(plan, target, Options(model=path), tmp_path / "parts")
    option = next(each for each in found.remarks if "gives another" in each)
    words = shlex.split(option.partition("; ")[2])
    assert words[:2] == ["--name", f"{NAMES[0]}=..."]
    listed = (tmp_path / "parts" / "plan.json").read_text(encoding="utf-8")
    assert not UNSEEN.search(listed)
    document = json.loads(listed)
    assert [part["device"] for part in document["parts"]] == [NAMES[0], "$(id)"]
    written = []
    for part in document["parts"]:
        model = onnx.load(tmp_path / "parts" / part["file"])
        onnx.checker.check_model(model)
        written += [node.name for node in model.graph.node]
    assert written == vertices
    runner = Path(registry.__file__).with_name("onnx_runner.py").read_bytes()
    assert (tmp_path / "parts" / "run.py").read_bytes() == runner


def test_onnx_layers(onnx_model: tuple[Path, list[str]], tmp_path: Path) -> None:
    import onnx

    path, vertices = onnx_model
    plan = _alternating(vertices, "x", [NAMES[0], "$(id)"])
    called = {NAMES[0]: "cpu", "$(id)": "cuda"}
    target = registry.TARGETS["onnx-layers"]
    found = export(plan, target, Options(model=path, names=called), tmp_path / "out.onnx")
    assert '"cpu(=device_0); cuda(=device_1)"' in found.remarks[0]
    nodes = onnx.load(tmp_path / "out.onnx").graph.node
    assert [node.name for node in nodes] == vertices
    assert {p.value for node in nodes for p in node.metadata_props} == {"device_0", "device_1"}


def test_tensorflow(tmp_path: Path) -> None:
    from optpart.interop.formats.tensorflow import read_message

    vertices = [name for name in NAMES if name.isprintable() and len(name) < 60]
    content = b""
    for name in vertices:
        fields = b"\x0a" + bytes([len(name.encode())]) + name.encode() + b"\x12\x02Op"
        content += b"\x0a" + bytes([len(fields)]) + fields
    (tmp_path / "g.pb").write_bytes(content)
    plan = _alternating(vertices, "x", [NAMES[0], "$(id)"])
    options = Options(model=tmp_path / "g.pb", names={NAMES[0]: "/CPU:0", "$(id)": "/GPU:1"})
    export(plan, registry.TARGETS["tensorflow"], options, tmp_path / "out.pb")
    nodes = read_message(tmp_path / "out.pb").node
    assert [node.name for node in nodes] == vertices
    assert {node.device for node in nodes} == {"/CPU:0", "/GPU:1"}


@pytest.mark.parametrize("name", ["/GPU:٣", "/job:头/GPU:0", "/GPU:0\n"])
def test_targets_take_only_digits_and_letters_of_ascii(tmp_path: Path, name: str) -> None:
    options = Options(model=tmp_path / "g.pb", names={"d": name})
    with pytest.raises(InputError, match="which the target does not know"):
        export(_alternating(["v", "w"], "x", ["d", "d"]), registry.TARGETS["tensorflow"], options,
               tmp_path / "out.pb")  # fmt: skip


# --- strategies ----------------------------------------------------------------------------------


def _placed(found: str, operations: list[str], devices: list[str]) -> None:
    placed = json.loads(found)
    for operation in operations:  # replicas are called after their operation
        assert any(name.startswith(operation) for name in placed)
    assert all(re.fullmatch(r"/job:worker/task:0/device:GPU:[01]", d) for d in placed.values())


def _stages(found: str, operations: list[str], devices: list[str]) -> None:
    assert _split_spec(found) == operations[1:2]


def _ranks(found: str, operations: list[str], devices: list[str]) -> None:
    assert [rank["device"] for rank in json.loads(found)["ranks"]] == devices


def _dtensor(found: str, operations: list[str], devices: list[str]) -> None:
    kinds = [type(statement) for statement in ast.parse(found).body]
    assert kinds == [ast.ImportFrom, ast.ImportFrom, ast.Assign, ast.Assign]


STRATEGIES = {"devices": _placed, "torch-stages": _stages, "ranks": _ranks, "dtensor": _dtensor}


def _training(operations: list[str]) -> Any:
    graph = chains.chain(2)
    listed = [
        op_ if i >= len(operations) else type(op_)(operations[i], op_.role, op_.times, op_.outputs)
        for i, op_ in enumerate(graph.operations)
    ]
    return type(graph)(
        operations[0], graph.kinds, tuple(listed), graph.edges, graph.parameters, operations[1]
    )


@pytest.mark.parametrize("target", STRATEGIES)
@few
@given(operations=pairs, devices=pairs)
def test_strategies(target: str, operations: list[str], devices: list[str]) -> None:
    graph, cluster = _training(operations), chains.cluster(("a", "a"))
    cluster = type(cluster)(
        op.Cluster.of([op.Device(d, type="a") for d in devices]), cluster.kinds, cluster.servers,
        cluster.memory_bandwidth,
    )  # fmt: skip
    decisions = (
        [Decision.on(0, 2), Decision.on(1, 2)]
        if target in ("torch-stages", "devices")
        else [Decision((1, 1), "allreduce")] * 2
    )
    compiled = compile_strategy(graph, cluster, Strategy(4, graph.tied, tuple(decisions)))
    found = strategy.export(compiled, target).text
    assert not UNSEEN.search(found)
    STRATEGIES[target](found, operations, devices)


# --- formats -------------------------------------------------------------------------------------


def _native(one: list[str], two: list[str], folder: Path) -> list[Path]:
    instance = _instance(one, two, one[0], device_type=two[0])
    native.write(instance, folder / "x.json")
    assert native.read(folder / "x.json") == instance
    json.loads((folder / "x.json").read_text(encoding="utf-8"))
    return [folder / "x.json"]


def _results(one: list[str], two: list[str], folder: Path) -> list[Path]:
    result = _result(_instance(one, two, one[0]), two[1])
    result_format.write(result, folder / "r.json")
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert (found["instance"], found["method"]) == (one[0], two[1])
    assert found["schedule"]["placement"] == dict(zip(one, two, strict=True))
    back = result_format.read_schedule(folder / "r.json", result.instance)
    assert result_format.schedule_to_dict(result.instance, back) == found["schedule"]
    return [folder / "r.json"]


def _clusters(one: list[str], two: list[str], folder: Path) -> list[Path]:
    devices = [op.Device(name, 1, kind) for name, kind in zip(one, two, strict=True)]
    cluster = op.Cluster.of(devices, 2)
    cluster_toml.write(cluster, folder / "c.toml")
    assert cluster_toml.read(folder / "c.toml") == cluster
    listed = tomllib.loads((folder / "c.toml").read_text(encoding="utf-8"))["device"]
    assert [(each["name"], each["type"]) for each in listed] == [*zip(one, two, strict=True)]
    return [folder / "c.toml"]


def _calibrations(one: list[str], two: list[str], folder: Path) -> list[Path]:
    fit = Coefficients(Fraction(1), Fraction(2), Fraction(3))
    by_name = dict.fromkeys(two, fit)
    spec = FittedSpec(one[0], one[1], None, two[0], fit, by_name, by_name, two[1])
    calibration_toml.write(spec, folder / "s.toml")
    assert calibration_toml.read(folder / "s.toml") == spec
    assert [*tomllib.loads((folder / "s.toml").read_text(encoding="utf-8"))["kind"]] == two
    return [folder / "s.toml"]


def _thesis(one: list[str], two: list[str], folder: Path) -> list[Path]:
    instance = _instance(one, two, "g")
    thesis_csv.write(instance, folder / "g.csv", folder / "d.csv")
    back = thesis_csv.read(folder / "g.csv", folder / "d.csv")
    assert (back.graph.names, back.cluster.names) == (tuple(one), tuple(two))
    for file, column, given_names in (("g.csv", "name", one), ("d.csv", "id", two)):
        with (folder / file).open(newline="", encoding="utf-8") as stream:
            cells = [row[column] for row in csv.DictReader(stream, strict=True)]
        assert [from_csv(cell) for cell in cells] == given_names
    return []  # a CSV for programs keeps line feeds and controls as they are, in quotes


def _task_graphs(one: list[str], two: list[str], folder: Path) -> list[Path]:
    graph = op.GraphBuilder().vertex(one[0], 1).vertex(one[1], 2).edge(*one, size=3).build()
    cluster = op.Cluster.of([op.Device(name) for name in two], 2)
    saga.write(op.Instance(graph, cluster, name=one[0]), folder / "t.saga.json")
    back = saga.read(folder / "t.saga.json")
    assert (back.graph.names, back.cluster.names) == (tuple(one), tuple(two))
    return [folder / "t.saga.json"]


def _workflows(one: list[str], two: list[str], folder: Path) -> list[Path]:
    # The format has letters, digits and a few signs for tasks, and any text for machines.
    graph = op.GraphBuilder().vertex("a", outputs=[1]).vertex("b").edge("a", "b", 0).build()
    machines = tuple(wfformat.Machine(name) for name in two)
    measured = {two[0]: (Fraction(1), Fraction(2)), two[1]: (Fraction(1), Fraction(2))}
    workflow = wfformat.Workflow(
        Workload(graph, measured=measured, name=one[0]), machines, (None, None)
    )
    wfformat.write(folder / "w.json", workflow)
    back = wfformat.read_workflow(folder / "w.json")
    assert [machine.name for machine in back.machines] == two
    return [folder / "w.json"]


FORMATS = {
    "native": _native, "result": _results, "cluster_toml": _clusters,
    "calibration_toml": _calibrations, "thesis_csv": _thesis, "wfformat": _workflows,
    "saga": _task_graphs,
}  # fmt: skip


def test_every_format_that_is_written_has_a_reader() -> None:
    written = {
        module.name
        for module in pkgutil.iter_modules(optpart.interop.formats.__path__)
        if hasattr(importlib.import_module(f"optpart.interop.formats.{module.name}"), "write")
    }
    assert written == {*FORMATS}


@pytest.mark.parametrize("form", FORMATS)
@few
@given(one=pairs, two=pairs)
@example(one=["=HYPERLINK(1)", "'=HYPERLINK(1)"], two=["\x7f", "\u202e"])
@example(one=["a\nb", "a\\nb"], two=['"', '""'])
def test_formats(tmp_path: Path, form: str, one: list[str], two: list[str]) -> None:
    for path in FORMATS[form](one, two, tmp_path):
        assert not UNSEEN.search(path.read_text(encoding="utf-8"))


@few
@given(operations=pairs)
def test_training_graphs(operations: list[str]) -> None:
    graph = _training(operations)
    text = graph_file.dumps(graph)
    assert not UNSEEN.search(text)
    assert graph_file.dumps(graph_file.from_dict(json.loads(text))) == text
    assert [each["name"] for each in json.loads(text)["operations"]][:2] == operations


# --- what cannot be written ----------------------------------------------------------------------


def test_names_with_lone_surrogates_are_refused() -> None:
    for make in (
        lambda: op.GraphBuilder().vertex("a\ud800"),
        lambda: op.GraphBuilder().vertex("a", device_type="\udcff"),
        lambda: op.Cluster.of([op.Device("\udcff")]),
        lambda: op.Cluster.of([op.Device("d", type="\udcff")]),
    ):
        with pytest.raises(InputError, match=r"has a lone surrogate; give valid text"):
            make()


def test_an_instance_may_be_named_after_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    instance = _instance(["a", "b"], ["d"], Path("bad\udcff").stem)
    assert instance.name == r"bad\udcff"
    native.write(instance, tmp_path / "x.json")
    assert native.read(tmp_path / "x.json") == instance
