"""From a module of PyTorch to a plan, and to the pipeline that runs it.

The module is exported (``torch.export``), its operations are costed by the roofline of the devices
or measured on the spot, and the plan gives every device one run of the program, which begins where
a module does: what ``torch.distributed.pipelining`` can run.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.api import costed, solve, workload
from optpart.base.errors import InputError
from optpart.exporters.plan import plan_of
from optpart.exporters.torch import stages_of
from optpart.interop.costs.detection import detect
from optpart.interop.formats import cluster_toml, pytorch

if TYPE_CHECKING:
    from optpart.interop.devices.named import NamedCluster
    from optpart.problem.cluster import Cluster
    from optpart.problem.model import Memory
    from optpart.problem.workload import Workload
    from optpart.solution.goal import Objective
    from optpart.solution.result import Result

_BRANCHES = (
    "replace branches and loops that depend on values by torch.where, or by code that depends on "
    "shapes only"
)
#: Runs of a program that is measured, after one that warms up.
_RUNS = 5


@dataclass(frozen=True)
class PlacedModule:
    """A plan for a module, which a pipeline can run.

    Attributes
    ----------
    result : Result
        The plan, with its bound.
    stages : tuple of (str, str)
        Device and first module of each stage, in order; the first stage begins with the program.
    example_inputs : tuple
        What the module was exported with.
    remarks : tuple of str
        What was measured, assumed or rounded.
    """

    result: Result
    stages: tuple[tuple[str, str], ...]
    example_inputs: tuple[Any, ...]
    remarks: tuple[str, ...]

    def apply(self, module: Any, rank: int | None = None) -> Any:
        """Split a module, and return the ``Pipe`` of ``torch.distributed.pipelining``.

        Rank ``i`` runs ``pipe.build_stage(i, device)`` under a schedule, such as ``ScheduleGPipe``;
        :attr:`stages` says which device that is. A microbatch is what the plan was made for.

        Parameters
        ----------
        module : torch.nn.Module
        rank : int, optional
            Keep this stage only: PyTorch's stages hold the whole pipe, and so the weights of all.

        Raises
        ------
        InputError
            If it is not split where the module that was placed is.
        """
        from torch.distributed.pipelining import SplitPoint, pipeline

        first = [name for _, name in self.stages[1:]]
        try:
            parts = [module.get_submodule(name) for name in first]
        except AttributeError as error:
            raise InputError("module", str(error), "give the module that was placed") from None
        own = [vars(part).get("forward") for part in parts]
        try:
            split = dict.fromkeys(first, SplitPoint.BEGINNING)
            pipe = pipeline(module, mb_args=self.example_inputs, split_spec=split)
        finally:
            # PyTorch leaves its split points in the module, where a second call would meet them.
            for part, forward in zip(parts, own, strict=True):
                vars(part).pop("_orig_forward", None)
                vars(part).pop("forward", None)
                if forward is not None:
                    part.forward = forward
        if pipe.num_stages != len(self.stages):
            problem = f"has {pipe.num_stages} stages, not the {len(self.stages)} of the plan"
            raise InputError("module", problem, "give the module that was placed")
        for number in range(pipe.num_stages):
            _without_gaps(pipe.get_stage_module(number))
        if rank is not None:
            kept = pipe.get_stage_module(rank)
            for name, stage in [*pipe.split_gm.named_children()]:
                if stage is not kept:
                    delattr(pipe.split_gm, name)
        return pipe


def place_module(
    module: Any,
    example_inputs: Sequence[Any],
    cluster: Cluster | NamedCluster | str | Path | None = None,
    *,
    dynamic_shapes: Any = None,
    shapes: Mapping[str, int] | None = None,
    measure: bool = False,
    objective: Objective = "makespan",
    seconds: float = 30.0,
) -> PlacedModule:
    """Place a module of PyTorch on devices, in one call.

    Parameters
    ----------
    module : torch.nn.Module
    example_inputs : sequence
        Positional arguments of one call: of a microbatch, for a pipeline.
    cluster : Cluster, NamedCluster or path, optional
        The devices; by default those of this machine, which are measured.
    dynamic_shapes : optional
        As ``torch.export.export`` takes them.
    shapes : mapping from str to int, optional
        Sizes of a microbatch by the names of dynamic dimensions, or as ``optpart.workload`` takes
        them; where not given, those of the example.
    measure : bool
        Whether to measure every operation on every device, which must be of this machine, instead
        of estimating it from the device's rates.
    objective : {"makespan", "bottleneck"}
        The time of one microbatch, or of the stage that takes longest: the time per microbatch of a
        pipeline that is full.
    seconds : float
        To search for the plan and prove it.

    Raises
    ------
    InputError
        If PyTorch is not installed, the module cannot be exported, a size is open, or there is no
        plan.
    """
    torch = _torch()
    name = type(module).__name__
    given = tuple(example_inputs)
    program = _exported(torch, module, given, dynamic_shapes, name)
    remarks: tuple[str, ...] = ()
    if cluster is None:
        found = detect()
        cluster, remarks = cluster_toml.loads_named(found.text), tuple(found.remarks)
    else:
        cluster = cluster_toml.opened(cluster)
    sizes, given, said = _sizes(torch, program, given, dynamic_shapes, shapes or {})
    with tempfile.TemporaryDirectory(prefix="optpart-") as folder:
        path = Path(folder) / f"{name}.pt2"
        _save(torch, program, path)
        read = workload(path, shapes=sizes, granularity="module")
        begins = pytorch.beginnings(path, shapes=sizes)
    if measure:
        read = replace(read, measured=_measured(torch, program, given, cluster, read))
    # Of a pipeline that works on several microbatches, memory must not depend on times.
    limited = objective == "bottleneck" and any(m is not None for m in cluster.cluster.memory)
    memory: Memory | None = "estimate" if limited else None
    made = costed(read, cluster, "file" if measure else "roofline", memory=memory)
    result = solve(made.instance, objective=objective, seconds=seconds, contiguous=True)
    if result.schedule is None:
        remedy = "give more time, or devices with more memory"
        raise InputError(name, f"no plan was found ({result.reason})", remedy)
    stages = stages_of(plan_of(result), begins)
    return PlacedModule(result, tuple(stages), given, (*remarks, *said, *made.remarks))


def _save(torch: Any, program: Any, path: Path) -> None:
    """Write a program without its weights, of which only the shapes count."""
    weights = dict(program.state_dict)
    try:
        for name, weight in weights.items():
            shape = weight.detach().to("meta")
            if isinstance(weight, torch.nn.Parameter):
                shape = torch.nn.Parameter(shape, requires_grad=weight.requires_grad)
            program.state_dict[name] = shape
        torch.export.save(program, path)
    finally:
        program.state_dict.update(weights)


def _sizes(
    torch: Any,
    program: Any,
    given: tuple[Any, ...],
    dynamic_shapes: Any,
    shapes: Mapping[str, int],
) -> tuple[dict[str, int], tuple[Any, ...], tuple[str, ...]]:
    """Return open sizes as the reader takes them, inputs of these sizes, and what was assumed."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    names = program.graph_signature.user_inputs
    #: The expression of each open size of an input, by input and axis.
    places = {
        f"{name}.{axis}": str(size)
        for name in names
        for axis, size in enumerate(getattr(values.get(name), "shape", ()))
        if isinstance(size, torch.SymInt)
    }
    called = _called(dynamic_shapes, names)
    sizes = {called.get(name, name): size for name, size in shapes.items()}
    of_expression = {places.get(name, name): size for name, size in sizes.items()}
    inputs, assumed = [], []
    for name, value in zip(names, given, strict=False):
        for axis, old in enumerate(getattr(value, "shape", ())):
            expression = places.get(f"{name}.{axis}")
            if expression is None:
                continue
            if expression not in of_expression:
                sizes[f"{name}.{axis}"] = of_expression[expression] = old
                assumed.append(f"{name}.{axis} is {old}")
            size = of_expression[expression]
            if size != old and old:
                rows = torch.arange(size, device=value.device) % old
                value = value.index_select(axis, rows)
        inputs.append(value)
    said = (f"Open sizes are those of the example: {', '.join(assumed)}.",) if assumed else ()
    return sizes, (*inputs, *given[len(inputs) :]), said


def _called(dynamic_shapes: Any, names: Sequence[str]) -> dict[str, str]:
    """Return the input and axis of every dimension that has a name of its own."""
    if isinstance(dynamic_shapes, Mapping):
        by_input = dict(dynamic_shapes)
    elif isinstance(dynamic_shapes, Sequence):
        by_input = dict(zip(names, dynamic_shapes, strict=False))
    else:
        by_input = {}
    found: dict[str, str] = {}
    for name, axes in by_input.items():
        listed = axes.items() if isinstance(axes, Mapping) else enumerate(axes or ())
        for axis, dimension in listed:
            called = getattr(dimension, "__name__", None)
            if isinstance(called, str):
                found.setdefault(called, f"{name}.{axis}")
    return found


def _without_gaps(stage: Any) -> None:
    """Let a stage receive and hand on tensors without gaps, since gloo sends no others."""
    from torch.fx import map_arg

    def contiguous(node: Any) -> Any:
        made = stage.graph.call_method("contiguous", (node,))
        made.meta = {**node.meta, "val": node.meta["val"].contiguous()}
        return made

    for node in stage.graph.nodes:  # receivers have buffers of this form
        if node.op == "placeholder" and hasattr(node.meta.get("val"), "contiguous"):
            node.meta["val"] = node.meta["val"].contiguous()
    output = next(node for node in stage.graph.nodes if node.op == "output")
    with stage.graph.inserting_before(output):
        output.args = map_arg(output.args, contiguous)
    stage.recompile()


def _torch() -> Any:
    if find_spec("torch") is None:
        raise InputError("torch", "PyTorch is not installed", "pip install torch")
    import torch

    return torch


def _exported(
    torch: Any, module: Any, given: tuple[Any, ...], dynamic_shapes: Any, name: str
) -> Any:
    if not isinstance(module, torch.nn.Module):
        problem = f"is of type {name}"
        raise InputError("module", problem, "give a torch.nn.Module, or the path of a model")
    try:
        with torch.no_grad():
            return torch.export.export(module, given, dynamic_shapes=dynamic_shapes)
    except Exception as error:  # what tracing a program of the user's raises is anything
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        problem = f"torch.export cannot trace it ({type(error).__name__}: {said[:200]})"
        raise InputError(name, problem, _BRANCHES) from None


def _measured(
    torch: Any, program: Any, given: tuple[Any, ...], cluster: NamedCluster, read: Workload
) -> dict[str, tuple[Fraction | None, ...]]:
    """Return the median nanoseconds of every vertex on every device."""
    found: dict[str, tuple[Fraction | None, ...]] = {}
    by_place: dict[str, dict[str, Fraction]] = {}
    for name in cluster.cluster.names:
        place = name.lower().rstrip("0123456789")
        number = name[len(place) :]
        place = f"{place}:{number}" if number and place != "cpu" else place
        if place not in by_place:
            by_place[place] = _times(torch, program, given, place, name)
        found[name] = tuple(by_place[place].get(vertex) for vertex in read.graph.names)
    return found


def _times(
    torch: Any, program: Any, given: tuple[Any, ...], place: str, name: str
) -> dict[str, Fraction]:
    """Run a program on a device, operation after operation, and time each."""

    class Timer(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            wait()
            begin = time.perf_counter_ns()
            out = super().run_node(node)
            wait()
            times.setdefault(node.name, []).append(time.perf_counter_ns() - begin)
            return out

    times: dict[str, list[int]] = {}
    try:
        device = torch.device(place)
        module = program.module().to(device)
        inputs = [each.to(device) if hasattr(each, "to") else each for each in given]
    except (RuntimeError, AssertionError):
        problem = "is no device of PyTorch on this machine"
        raise InputError(
            f"device {name!r}", problem, "call it cpu or cuda0, or do not measure"
        ) from None
    wait = torch.accelerator.synchronize if device.type != "cpu" else lambda: None
    with torch.no_grad():
        for _ in range(1 + _RUNS):
            Timer(module).run(*inputs)
    return {name: Fraction(statistics.median_low(taken[1:])) for name, taken in times.items()}
