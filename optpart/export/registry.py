"""The table of targets: what ``optpart export --to`` takes.

A new target is a module of its own in this folder and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from optpart.errors import InputError
from optpart.export import linear_program, llm, onnx_layers, onnx_parts, tensorflow
from optpart.export.llm import Text
from optpart.export.plan import Plan
from optpart.export.trace import KIND as TRACE
from optpart.export.trace import Scheduled, trace
from optpart.files import Kind, check_target, write_text
from optpart.problem.instance import Instance
from optpart.registry import Registry


@dataclass(frozen=True)
class Options:
    """The options of targets; ``None`` and empty are not given.

    Attributes
    ----------
    model : str or Path, optional
        The file that the instance was made of.
    names : mapping from str to str
        What the target calls the devices.
    shapes : mapping from str to int
        Sizes that were given when the model was read.
    architecture : str, optional
        How modules are called (:data:`optpart.export.llm.ARCHITECTURES`).
    unit : str, optional
        The unit of the instance's times (:data:`optpart.export.trace.UNITS`).
    """

    model: str | Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, int] = field(default_factory=dict)
    architecture: str | None = None
    unit: str | None = None


#: Returns a text, or writes what is no text to the path; in either case, remarks.
Write: TypeAlias = Callable[[Plan, Options, Path | None], Text]
WriteSchedule: TypeAlias = Callable[[Scheduled, Options, Path | None], Text]
WriteInstance: TypeAlias = Callable[[Instance, Options, Path | None], Text]


@dataclass(frozen=True)
class Target:
    """A target of exports.

    Attributes
    ----------
    name, summary : str
    needs : str
        What it needs of plan and options.
    takes : frozenset of str
        The options that mean something to it.
    write : callable
        Call it through :func:`export`, which checks the options, and writes texts.
    kind : Kind or None
        Of the file; ``None`` for folders.
    """

    name: str
    summary: str
    needs: str
    takes: frozenset[str]
    write: Write
    kind: Kind | None


@dataclass(frozen=True)
class ScheduleTarget:
    """A target that takes a schedule with its instance; otherwise as :class:`Target`."""

    name: str
    summary: str
    needs: str
    takes: frozenset[str]
    write: WriteSchedule
    kind: Kind | None


@dataclass(frozen=True)
class InstanceTarget:
    """A target that takes an instance, and no plan; otherwise as :class:`Target`."""

    name: str
    summary: str
    needs: str
    takes: frozenset[str]
    write: WriteInstance
    kind: Kind | None


AnyTarget: TypeAlias = Target | ScheduleTarget | InstanceTarget


def target(name: str) -> AnyTarget:
    """Return a target by its name."""
    return TARGETS.find(name)


def export(
    what: Plan | Scheduled | Instance, to: AnyTarget, options: Options, output: Path | None
) -> Text:
    """Hand a plan, a schedule or an instance to a target.

    Parameters
    ----------
    output : Path, optional
        Where to write; some targets need it.

    Returns
    -------
    Text
        The text that was written, empty for targets that write no text; and remarks.

    Raises
    ------
    InputError
        If an option means nothing to the target, it lacks something, or it cannot express the
        plan.
    """
    for each in fields(options):
        if getattr(options, each.name) not in (None, {}) and each.name not in to.takes:
            problem = f"means nothing to the target {to.name!r}"
            raise InputError(each.name, problem, "leave it out")
    if "model" in to.takes and options.model is None:
        raise InputError("model", "missing", "name the file that the instance was made of")
    if output is not None and to.kind is not None:
        check_target(output, to.kind)
    found = _handed(what, to, options, output)
    if output is not None and to.kind is not None and found.text:
        write_text(output, found.text, to.kind)
    return found


def _handed(
    what: Plan | Scheduled | Instance, to: AnyTarget, options: Options, output: Path | None
) -> Text:
    if isinstance(to, InstanceTarget):
        assert isinstance(what, Instance)
        return to.write(what, options, output)
    if isinstance(to, ScheduleTarget):
        assert isinstance(what, Scheduled)
        return to.write(what, options, output)
    assert isinstance(what, Plan)
    if not what.device:
        raise InputError("schedule", "has no vertices", "give a plan that has some")
    return to.write(what, options, output)


def _place(output: Path | None, what: str) -> Path:
    if output is None:
        raise InputError("output", "missing", f"name the {what} to write")
    return output


def _text(render: Callable[[Plan, Options], Text]) -> Write:
    return lambda plan, options, output: render(plan, options)


def _onnx(plan: Plan, options: Options, output: Path | None) -> Text:
    assert options.model is not None
    place = _place(output, "folder")
    found = onnx_parts.write(plan, options.model, place, names=options.names, shapes=options.shapes)
    return Text("", found)


def _onnx_layers(plan: Plan, options: Options, output: Path | None) -> Text:
    assert options.model is not None
    place = _place(output, "file")
    found = onnx_layers.write(
        plan, options.model, place, names=options.names, shapes=options.shapes
    )
    return Text("", found)


def _tensorflow(plan: Plan, options: Options, output: Path | None) -> Text:
    assert options.model is not None
    found = tensorflow.write(plan, options.model, _place(output, "file"), names=options.names)
    return Text("", found)


def _trace(scheduled: Scheduled, options: Options, output: Path | None) -> Text:
    return trace(scheduled, options.unit)


def _program(
    form: Literal["lp", "mps"], instance: Instance, options: Options, output: Path | None
) -> Text:
    return Text(*linear_program.program(instance, form))


_LLM = "a plan for a language model, of whole blocks"

#: By name, in the order in which they are listed.
TARGETS: Registry[AnyTarget] = Registry(
    "to",
    {
        each.name: each
        for each in (
            Target(
                "onnx",
                "one ONNX model per device and block of the plan, and a script that runs them",
                "the ONNX model; -o names a folder",
                frozenset({"model", "names", "shapes"}),
                _onnx,
                None,
            ),
            Target(
                "onnx-layers",
                "the ONNX model with the device of every node, for one session of ONNX Runtime",
                "the ONNX model; at most one device besides the processor",
                frozenset({"model", "names", "shapes"}),
                _onnx_layers,
                onnx_layers.KIND,
            ),
            Target(
                "tensorflow",
                "the TensorFlow graph with the device of every node",
                "the binary GraphDef",
                frozenset({"model", "names"}),
                _tensorflow,
                tensorflow.KIND,
            ),
            Target(
                "device-map",
                "device_map of transformers and accelerate, as JSON",
                _LLM,
                frozenset({"names", "architecture"}),
                _text(lambda p, o: llm.device_map(p, names=o.names, architecture=o.architecture)),
                llm.DEVICE_MAP,
            ),
            Target(
                "llama.cpp",
                "--tensor-split of llama.cpp",
                f"{_LLM}; adjacent on every device, those on the CPU first",
                frozenset({"names"}),
                _text(lambda p, o: llm.llama_cpp(p, names=o.names)),
                llm.LLAMA_CPP,
            ),
            Target(
                "llama.cpp-ot",
                "--override-tensor of llama.cpp, a pattern per device",
                "a plan for a language model",
                frozenset({"names"}),
                _text(lambda p, o: llm.llama_cpp_overrides(p, names=o.names)),
                llm.LLAMA_CPP,
            ),
            Target(
                "vllm",
                "VLLM_PP_LAYER_PARTITION of vLLM",
                f"{_LLM}; adjacent on every device",
                frozenset({"names"}),
                _text(lambda p, o: llm.vllm(p, names=o.names)),
                llm.VLLM,
            ),
            Target(
                "megatron",
                "--pipeline-model-parallel-layout of Megatron",
                f"{_LLM}; devices take turns in a fixed order",
                frozenset(),
                _text(lambda p, o: llm.megatron(p)),
                llm.MEGATRON,
            ),
            Target(
                "torch",
                "split_spec of torch.distributed.pipelining, as Python",
                f"{_LLM}; adjacent on every device",
                frozenset({"architecture"}),
                _text(lambda p, o: llm.torch_split(p, architecture=o.architecture)),
                llm.SPLIT,
            ),
            ScheduleTarget(
                "trace",
                "the schedule over time, for Perfetto and Chrome's trace viewer",
                "the instance: --instance, if it is not of the library",
                frozenset({"unit"}),
                _trace,
                TRACE,
            ),
            InstanceTarget(
                "lp",
                "the linear program of an instance, in the LP format",
                "an instance in place of a result",
                frozenset(),
                partial(_program, "lp"),
                linear_program.KINDS["lp"],
            ),
            InstanceTarget(
                "mps",
                "the linear program of an instance, in the MPS format",
                "an instance in place of a result",
                frozenset(),
                partial(_program, "mps"),
                linear_program.KINDS["mps"],
            ),
        )
    },
    (Target, ScheduleTarget, InstanceTarget),
    group="optpart.exports",
)
