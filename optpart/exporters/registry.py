"""The table of targets: what ``optpart export --to`` takes.

A new target is a module of its own in this folder and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from optpart.base.errors import InputError
from optpart.base.files import Kind, check_target, write_text
from optpart.base.registry import Registry
from optpart.exporters import (
    device_map,
    linear_program,
    llama_cpp,
    llm,
    onnx_layers,
    onnx_parts,
    tensorflow,
    torch,
    torch_schedule,
)
from optpart.exporters.plan import Plan, Text, unused
from optpart.exporters.trace import KIND as TRACE
from optpart.exporters.trace import Scheduled, trace
from optpart.problem.instance import Instance


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
        How modules are called (:data:`optpart.exporters.llm.ARCHITECTURES`).
    unit : str, optional
        The unit of the instance's times (:data:`optpart.problem.units.TIME_UNITS`).
    """

    model: str | Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, int] = field(default_factory=dict)
    architecture: str | None = None
    unit: str | None = None


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
        Of a plan, a schedule or an instance, options and the output: returns a text, or writes what
        is no text; in either case, remarks. Call it through :func:`export`, which checks the
        options, and writes texts.
    kind : Kind, optional
        Of the file; ``None`` for folders.
    of : {"plan", "schedule", "instance"}
        What it takes; a schedule comes with its instance.
    output : str
        What must be named as the output, such as ``"file"``; empty if a text may go anywhere.
    """

    name: str
    summary: str
    needs: str
    takes: frozenset[str]
    write: Callable[..., Text]
    kind: Kind | None = None
    of: Literal["plan", "schedule", "instance"] = "plan"
    output: str = ""


def target(name: str) -> Target:
    """Return a target by its name."""
    return TARGETS.find(name)


def export(
    what: Plan | Scheduled | Instance, to: Target, options: Options, output: Path | None
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
    if "model" in to.takes and to.output and options.model is None:
        raise InputError("model", "missing", "name the file that the instance was made of")
    if output is not None and to.kind is not None:
        check_target(output, to.kind)
    if isinstance(what, Plan) and not what.device:
        raise InputError("schedule", "has no vertices", "give a plan that has some")
    if to.output and output is None:
        raise InputError("output", "missing", f"name the {to.output} to write")
    remarks = unused(what, options.names) if isinstance(what, Plan) else []
    found = to.write(what, options, output)
    found = found._replace(remarks=[*found.remarks, *remarks])
    if output is not None and to.kind is not None and found.text:
        write_text(output, found.text, to.kind)
    return found


def _writer(write: Callable[..., list[str]]) -> Callable[..., Text]:
    """Return the target of a function that writes a model again."""

    def called(plan: Plan, options: Options, output: Path) -> Text:
        shapes = {"shapes": options.shapes} if write is not tensorflow.write else {}
        return Text("", write(plan, options.model, output, names=options.names, **shapes))

    return called


_LLM = "a plan for a language model, of whole blocks"
_OF_ONNX = frozenset({"model", "names", "shapes"})

_ROWS = (
    Target(
        "onnx",
        "one ONNX model per device and block of the plan, and a script that runs them",
        "the ONNX model; -o names a folder",
        _OF_ONNX,
        _writer(onnx_parts.write),
        output="folder",
    ),
    Target(
        "onnx-layers",
        "the ONNX model with the device of every node, for one session of ONNX Runtime",
        "the ONNX model; at most one device besides the processor",
        _OF_ONNX,
        _writer(onnx_layers.write),
        onnx_layers.KIND,
        output="file",
    ),
    Target(
        "tensorflow",
        "the TensorFlow graph with the device of every node",
        "the binary GraphDef",
        frozenset({"model", "names"}),
        _writer(tensorflow.write),
        tensorflow.KIND,
        output="file",
    ),
    Target(
        "device-map",
        "device_map of transformers and accelerate, as JSON",
        _LLM,
        frozenset({"names", "architecture", "model"}),
        lambda plan, o, _: device_map.device_map(
            plan, names=o.names, architecture=o.architecture, model=o.model
        ),
        device_map.KIND,
    ),
    Target(
        "llama.cpp",
        "--tensor-split of llama.cpp",
        f"{_LLM}; adjacent on every device, those on the CPU first",
        frozenset({"names"}),
        lambda plan, o, _: llama_cpp.layers(plan, names=o.names),
        llama_cpp.KIND,
    ),
    Target(
        "llama.cpp-ot",
        "--tensor-split of llama.cpp, and --override-tensor for what is elsewhere",
        "a plan for a language model",
        frozenset({"names"}),
        lambda plan, o, _: llama_cpp.overrides(plan, names=o.names),
        llama_cpp.KIND,
    ),
    Target(
        "vllm",
        "VLLM_PP_LAYER_PARTITION of vLLM",
        f"{_LLM}; adjacent on every device",
        frozenset({"names"}),
        lambda plan, o, _: llm.vllm(plan, names=o.names),
        llm.VLLM,
    ),
    Target(
        "megatron",
        "--pipeline-model-parallel-layout of Megatron",
        f"{_LLM}; devices take turns in a fixed order",
        frozenset(),
        lambda plan, o, _: llm.megatron(plan),
        llm.MEGATRON,
    ),
    Target(
        "torch",
        "split_spec of torch.distributed.pipelining, as Python",
        f"{_LLM}; or the .pt2 of the model; adjacent on every device",
        frozenset({"architecture", "model", "shapes"}),
        lambda plan, o, _: torch.torch_split(
            plan, architecture=o.architecture, model=o.model, shapes=o.shapes
        ),
        torch.SPLIT,
    ),
    Target(
        "torch-schedule",
        "the order of a training pipeline, as torch.distributed.pipelining reads it, as CSV",
        "a schedule of 'optpart generate training-pipeline'",
        frozenset(),
        lambda plan, o, _: torch_schedule.torch_schedule(plan),
        torch_schedule.KIND,
    ),
    Target(
        "trace",
        "the schedule over time, for Perfetto and Chrome's trace viewer",
        "the instance: --instance, if it is not of the library",
        frozenset({"unit"}),
        lambda scheduled, o, _: trace(scheduled, o.unit),
        TRACE,
        "schedule",
    ),
    *(
        Target(
            form,
            f"the linear program of an instance, in the {form.upper()} format",
            "an instance in place of a result",
            frozenset(),
            lambda instance, _, __, form=form: Text(*linear_program.program(instance, form)),
            linear_program.KINDS[form],
            "instance",
        )
        for form in linear_program.KINDS
    ),
)

#: By name, in the order in which they are listed.
TARGETS = Registry("to", {row.name: row for row in _ROWS}, Target, group="optpart.exports")
