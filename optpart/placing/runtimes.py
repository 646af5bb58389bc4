"""From the file of a model to what a runtime is told, in one call.

A runtime is a row: the formats of models that it takes, the targets of exports that tell it a plan,
what it calls devices, and the command that runs the model by the plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optpart.api import costed, export, solve, workload
from optpart.base import clock
from optpart.base.errors import InputError
from optpart.base.languages import to_comment, to_python, to_shell
from optpart.base.registry import Registry
from optpart.base.rounding import number, percent
from optpart.exporters.plan import plan_of
from optpart.exporters.registry import target
from optpart.interop.costs.detection import detect
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats import cluster_toml, hugging_face
from optpart.interop.formats.detect import Format, format_of
from optpart.interop.formats.graph_edits import colocate_cells
from optpart.interop.formats.llm import THIRDS
from optpart.methods import registry
from optpart.problem.cluster import Cluster
from optpart.solution.job import Job
from optpart.solution.result import conclude

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.problem.workload import Workload
    from optpart.solution.result import Result

#: A device whose name says which one of its kind it is.
_NUMBERED = re.compile(r"([a-z]+):?(\d+)", re.IGNORECASE)

_AGAIN = (
    "Solved again: the runtime has adjacent blocks on every device, the first on the processor, "
    "and keys and values with them."
)
#: Part of the time that the first of two solves may take.
_FIRST = 0.8
_MORE = "give more time, or devices with more memory"


@dataclass(frozen=True)
class Runtime:
    """What runs models by plans.

    Attributes
    ----------
    name, summary : str
    formats : tuple of str
        Of the models that it takes (:data:`optpart.interop.formats.detect.FORMATS`).
    targets : tuple of str
        Exports that tell it a plan; the first that can express it is used.
    called : callable
        What it calls a device, of the kind (``"cpu"``, ``"cuda"``) and the number.
    command : callable
        What runs a model, a command or Python, of the model, its workload, and the text and the
        file of the export.
    suffix : str
        Of the file that the command reads; empty if there is none.
    offloads : bool
        Whether a GPU computes with weights that are held by the processor.
    in_order : bool
        Whether the first target takes whole blocks only that are adjacent on every device, with
        processors first: another plan is solved again so.
    stages : bool
        Whether it splits a language model into stages of a pipeline: adjacent blocks on a GPU each,
        the ends with the first and the last block.
    apart : bool
        Whether it can place the experts of a block apart from the rest.
    rule : tuple of str
        The partitioning strategy by which it places language models itself, and how to call that;
        empty where there is none.
    """

    name: str
    summary: str
    formats: tuple[str, ...]
    targets: tuple[str, ...]
    called: Callable[[str, str], str]
    command: Callable[[str, Workload, str, str], str]
    suffix: str = ""
    offloads: bool = False
    in_order: bool = False
    stages: bool = False
    apart: bool = False
    rule: tuple[str, str] | tuple[()] = ()


_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_LANGUAGE = ("hugging-face", "safetensors", "llm")


def _llama_cpp(model: str, read: Workload, text: str, _: str) -> str:
    cache = ["--parallel", str(read.sequences), "--ctx-size", str(read.sequences * read.context)]
    return f"{to_shell(['llama-server', '--model', model, *cache])} {text.strip()}"


def _vllm(model: str, read: Workload, text: str, _: str) -> str:
    command = " ".join(text.split()).replace("# ", "").replace("MODEL", to_shell([model]))
    return f"{command} --max-model-len {read.context} --max-num-seqs {read.sequences}"


def _accelerate(model: str, _read: Workload, _text: str, file: str) -> str:
    folder = Path(model) if Path(model).is_dir() else Path(model).parent
    class_ = hugging_face.class_of(folder) or "AutoModelForCausalLM"
    return (
        "import json, transformers\n"
        f"model = transformers.{class_}.from_pretrained("
        f"{to_python(str(folder))}, device_map=json.load(open({to_python(file)})))"
    )


_ROWS = (
    Runtime(
        "llama.cpp",
        "llama.cpp: options for the split of a GGUF model",
        ("gguf", "llm"),
        ("llama.cpp", "llama.cpp-ot"),
        lambda kind, number: kind.upper() + number,
        _llama_cpp,
        in_order=True,
        apart=True,
        rule=("llama-fit", "llama.cpp --fit"),
    ),
    Runtime(
        "transformers",
        "transformers with accelerate: a device_map",
        ("hugging-face", "safetensors"),
        ("device-map",),
        lambda kind, number: kind + (number and f":{number}"),
        _accelerate,
        "-device-map.json",
        offloads=True,
        rule=("accelerate", "device_map=auto"),
    ),
    Runtime(
        "onnxruntime",
        "ONNX Runtime: a model per device and block, and a script",
        ("onnx",),
        ("onnx",),
        lambda kind, number: _PROVIDERS.get(kind, kind) + (number and f":{number}"),
        lambda _model, _read, _text, file: to_shell(["python", f"{file}/run.py"]),
        "-parts",
    ),
    Runtime(
        "tensorflow",
        "TensorFlow: the graph with the device of every node",
        ("tensorflow",),
        ("tensorflow",),
        lambda kind, number: "/CPU:0" if kind == "cpu" else f"/GPU:{number}",
        lambda _model, _read, _text, file: to_comment("#", f"load {file}"),
        "-placed.pb",
    ),
    Runtime(
        "vllm",
        "vLLM: layers per stage of a pipeline",
        _LANGUAGE,
        ("vllm",),
        lambda _kind, number: number,
        _vllm,
        stages=True,
        rule=("vllm", "vLLM by default"),
    ),
    Runtime(
        "megatron",
        "Megatron: the layout of pipeline stages",
        _LANGUAGE,
        ("megatron",),
        lambda kind, number: kind + number,
        lambda _model, _read, text, _file: text.strip(),
        stages=True,
    ),
)

#: By name; the first that takes a model's format is its default.
RUNTIMES = Registry("runtime", {row.name: row for row in _ROWS}, Runtime, group="optpart.runtimes")


@dataclass(frozen=True)
class Placed:
    """A plan, and what a runtime is told.

    Attributes
    ----------
    result : Result
        The plan, with its bound.
    runtime : str
    command : str
        What runs the model by the plan.
    file : str
        What was written for it; empty if the command says all.
    remarks : list of str
        What was measured, assumed, rounded, and what the runtime does not keep of the plan.
    rule : Result or None
        What the runtime's own rule finds for the same model and devices, where it has one.
    speed : str
        Of a language model, the tokens per second of the plan and of that rule, in the cost model.
    """

    result: Result
    runtime: str
    command: str
    file: str = ""
    remarks: list[str] = field(default_factory=list)
    rule: Result | None = None
    speed: str = ""


def place_model(
    model: str | Path,
    cluster: Cluster | NamedCluster | str | Path | None = None,
    runtime: str | None = None,
    output: str | Path | None = None,
    *,
    names: Mapping[str, str] | None = None,
    seconds: float = 30.0,
    say: Callable[[str], None] = lambda line: None,
    **reading: Any,
) -> Placed:
    """Place a model on devices, and say how a runtime runs it so.

    Parameters
    ----------
    model : path or str
        The file or folder of a model, or the name of a language model.
    cluster : Cluster, NamedCluster or path, optional
        The devices; by default those of this machine, which are measured.
    runtime : str, optional
        One of :data:`RUNTIMES`; by default the first that takes the model's format.
    output : path, optional
        Where to write what the command reads; by default in the current folder, called after the
        model.
    names : mapping from str to str, optional
        What the runtime calls devices, where it is not what their names say: ``cuda0``, ``CPU``.
    seconds : float
        To search for the plan and prove it, also if it is solved again.
    say : callable
        Told each line of the remarks as soon as it is known.
    **reading
        What the reader of the model takes, such as ``context`` and ``batch``.

    Raises
    ------
    InputError
        If the model or a device cannot be read, the runtime does not take the model, or cannot
        express the plan.
    """
    form = format_of(model)
    if form.gives != "workload":
        problem = "is an instance, of no model that a runtime could run"
        raise InputError("", problem, "solve it: optpart solve", str(model))
    row = _runtime(form, runtime)
    remarks = list[str]()

    def tell(lines: list[str]) -> None:
        remarks.extend(lines)
        for line in lines:
            say(line)

    devices = None if cluster is None else cluster_toml.opened(cluster)
    read = _read(model, row, reading)
    if row.stages and read.graph.colocation:  # both stages hold what embedding and head share
        read = workload(model, **{"tied": "copy", **reading})
    if devices is None:
        found = detect()
        tell(found.remarks)
        devices = cluster_toml.loads_named(found.text)
    if row.stages:
        read, devices = for_stages(read, devices)
    if row.offloads and not devices.computes_on:
        devices = offloading(devices)
    made = costed(read, devices, "roofline")
    tell(list(made.remarks))
    end = clock.now() + seconds
    rule, missing = _by_rule(row, read, made.instance)
    if missing:
        tell([missing])
    start = rule if rule is not None and rule.schedule is not None else None
    whole = not any(name.endswith(".attention") for name in read.graph.names)
    limit = seconds * _FIRST if row.in_order and whole else seconds
    result = solve(made.instance, seconds=limit, contiguous=row.stages, start=start)
    if result.schedule is None:
        raise InputError("", f"no plan was found ({result.reason})", _MORE, str(model))
    told = reading.get("shapes"), reading.get("mmproj")
    handing = _Handing(row, read, names or {}, str(model), output, *told)
    text = handing.told(result)
    if row.in_order and whole and text.target != row.targets[0]:
        again = _in_order(result, max(0.0, end - clock.now()))
        if start is not None and (again.makespan or math.inf) > (start.makespan or math.inf):
            bound = result.lower_bound
            again = conclude(made.instance, start.method, start.schedule, bound=bound)
        if again.schedule is not None:
            tell([_AGAIN])
            result, text = again, handing.told(again)
    tell(text.remarks)
    speed = _speed(row, read, reading, result, rule)
    return Placed(result, row.name, text.command, text.file, remarks, rule, speed)


def _read(model: str | Path, row: Runtime, reading: Mapping[str, Any]) -> Workload:
    """Read a model as finely as a runtime can place it, unless a granularity is given."""
    if row.apart and "granularity" not in reading:
        with suppress(InputError):  # of what has no experts, or is wrong otherwise, too
            return workload(model, granularity=THIRDS, **reading)
    return workload(model, **reading)


def _by_rule(row: Runtime, read: Workload, instance: Instance) -> tuple[Result | None, str]:
    """Place a language model by the runtime's own rule, or say why that does not apply."""
    if not row.rule or not read.sequences:
        return None, ""
    rule, called = row.rule
    if reason := registry.supports(rule, instance):
        return None, f"Not compared with {called}: the model {reason}."
    return registry.run(rule, Job(instance)), ""


def _speed(
    row: Runtime, read: Workload, reading: Mapping[str, Any], result: Result, rule: Result | None
) -> str:
    """Say in one line how fast the plan of a language model is, and that of the rule."""
    if not read.sequences or result.makespan is None:
        return ""
    each = reading.get("tokens") or (read.context if reading.get("mode") == "prefill" else 1)
    tokens = read.sequences * each * 10**9  # times are nanoseconds
    own = tokens / result.makespan
    said = f"{number(own, up=False, digits=4)} tokens/s in the cost model"
    if rule is None or not row.rule:
        return said
    if rule.makespan is None:
        return f"{said}; {row.rule[1]} exceeds the memory"
    theirs = tokens / rule.makespan
    than = "as fast"
    if theirs != own:
        share = percent(abs(theirs - own) / own, up=False)
        than = f"{share} {'less' if theirs < own else 'more'}"
    return f"{said}; {row.rule[1]}: {number(theirs, up=False, digits=4)}, {than}"


def _in_order(result: Result, seconds: float) -> Result:
    """Solve again with adjacent blocks on every device, processors first, others as they began."""
    cluster = result.instance.cluster
    kinds = dict(zip(cluster.names, cluster.types, strict=True))
    devices = [name for name, kind in kinds.items() if kind == "CPU"]
    devices += [name for name in plan_of(result).devices if kinds[name] != "CPU"]
    return solve(result.instance, seconds=seconds, device_order=devices)


def for_stages(read: Workload, devices: NamedCluster) -> tuple[Workload, NamedCluster]:
    """Keep GPUs only, and the ends of the model with its first and last block."""
    kept = [d for d, kind in enumerate(devices.cluster.types) if kind != "CPU"]
    if not kept:
        raise InputError("--for", "needs GPUs, of which the cluster has none", "use another")
    graph = read.graph
    blocks = [name.split(".")[1] for name in graph.names if name.startswith("block.")]
    # An empty group captures the same of all that matches, which makes it one cell.
    for cell in (rf"vision|embedding|block\.{blocks[0]}", rf"block\.{blocks[-1]}|norm|head"):
        graph = colocate_cells(graph, rf"(?:{cell})(?![^.])()")
    return replace(read, graph=graph), devices.only(kept)


def offloading(devices: NamedCluster) -> NamedCluster:
    """Let the first GPU compute for the processors."""
    kinds = devices.cluster.types
    first = next((d for d, kind in enumerate(kinds) if kind != "CPU"), None)
    if first is None:
        return devices
    return replace(devices, computes_on=tuple(first if kind == "CPU" else None for kind in kinds))


def _runtime(form: Format, asked: str | None) -> Runtime:
    takes = [row for row in RUNTIMES.values() if form.name in row.formats]
    if asked is None and takes:
        return takes[0]
    if asked is not None and RUNTIMES.find(asked) in takes:
        return RUNTIMES[asked]
    who = f"{asked} takes no" if asked else "no runtime takes a"
    problem = f"{who} model of the format {form.name}"
    listed = ", ".join(row.name for row in takes)
    remedy = f"use --for {listed}" if takes else "use optpart import, solve and export"
    raise InputError("--for", problem, remedy)


class _Told(NamedTuple):
    target: str
    command: str
    file: str
    remarks: list[str]


@dataclass(frozen=True)
class _Handing:
    """What is the same for every plan that a runtime is told."""

    row: Runtime
    read: Workload
    names: Mapping[str, str]
    model: str
    output: str | Path | None
    shapes: Mapping[str, int] | None
    mmproj: str | Path | None = None

    def told(self, result: Result) -> _Told:
        """Tell the runtime a plan by the first target that can express it."""
        *others, last = self.row.targets
        for to in others:
            with suppress(InputError):
                return self._exported(result, to)
        return self._exported(result, last)

    def _exported(self, result: Result, to: str) -> _Told:
        assert result.schedule is not None
        row, own = self.row, result.instance.cluster.names
        used = [own[d] for d in sorted({*result.schedule.placement.tolist()})]
        file = str(self.output or f"{result.instance.name}{row.suffix}") if row.suffix else ""
        options: dict[str, Any] = {
            "names": {each: _called(row, each) for each in used} | dict(self.names),
            "model": self.model,
            "shapes": self.shapes,
        }
        meant = {name: value for name, value in options.items() if name in target(to).takes}
        text, remarks = export(result, to, file or None, **meant)
        command = row.command(self.model, self.read, text, file)
        if self.mmproj is not None:
            command += f" {to_shell(['--mmproj', str(self.mmproj)])}"
        return _Told(to, command, file, remarks)


def _called(row: Runtime, device: str) -> str:
    """Return what a runtime calls a device, as far as its own name says which one it is."""
    if device.lower() == "cpu":
        return row.called("cpu", "")
    numbered = _NUMBERED.fullmatch(device)
    return row.called(numbered[1].lower(), numbered[2]) if numbered else device
