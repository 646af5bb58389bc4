"""An ONNX model cut into one model per device and block, and a script that runs them.

A *part* is a maximal run of a device's vertices, in the order of the plan, that can be executed as
a whole: no part needs a value of another one that, in turn, waits for it. The folder holds

- ``part_0.onnx``, ``part_1.onnx``, … in an order in which they can be executed; parts of a device
  keep the order of the plan. Initializers and constant nodes are in every part that reads them.
  Weights that the model keeps in files of their own are in ``part_0.onnx.data``, ….
- ``plan.json``, with device, execution provider, inputs and outputs of every part.
- ``run.py``, which needs numpy and onnxruntime only.
"""

from __future__ import annotations

import heapq
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import ANY, write_bytes, write_text
from optpart.base.folders import check_folder, new_folder
from optpart.base.languages import to_shell
from optpart.exporters.plan import Plan, named
from optpart.interop.formats.json import pretty
from optpart.interop.formats.onnx import Nodes, read_nodes
from optpart.interop.formats.onnx_bodies import reads, stored_tensors

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

FORMAT = "optpart-parts/1"
#: What the manifest of a folder says.
HOLDS = "an ONNX model in parts"

_CPU = "CPUExecutionProvider"
_PROVIDER = re.compile(r"(\w+ExecutionProvider)(?::(\d+))?", re.ASCII)
_NAMES = "give the model that the instance was made of, with the same --shape"


@dataclass
class Part:
    """Nodes of one device that are executed as a whole.

    Attributes
    ----------
    device : str
    nodes : list of int
        Numbers of the nodes that are vertices, in the order of the plan.
    """

    device: str
    nodes: list[int] = field(default_factory=list)


def write(
    plan: Plan,
    model: str | Path,
    folder: str | Path,
    *,
    names: Mapping[str, str] | None = None,
    shapes: Mapping[str, int] | None = None,
) -> list[str]:
    """Cut a model by the placement of a plan, and write the parts.

    Parameters
    ----------
    model : path
        The ``.onnx`` file that the instance was made of.
    folder : path
        A new one, an empty one, or that of an earlier cut, which is replaced.
    names : mapping from str to str, optional
        Execution providers by device, such as ``"CUDAExecutionProvider:1"`` with a device number;
        by default all parts run on the processor.
    shapes : mapping from str to int, optional
        Sizes that were given when the model was read.

    Returns
    -------
    list of str
        What the parts do not keep of the plan, for the user to see.

    Raises
    ------
    InputError
        If the model is not that of the plan, or something cannot be read or written.
    """
    names = names or {}
    remarks = [
        "run.py runs the parts one after the other; devices of the plan work at the same time.",
        "ONNX Runtime orders the operations inside a part by itself.",
    ]
    known = named(
        plan,
        {device: names.get(device, _CPU) for device in {*plan.devices, *names}},
        valid=_PROVIDER.pattern,
        example="CUDAExecutionProvider:0",
        shared=True,
    )
    if not names:
        option = to_shell(["--name", f"{plan.devices[0]}=..."])
        remarks.append(f"All parts run with {_CPU}; {option} gives another.")
    check_folder(folder, HOLDS)
    nodes = read_nodes(model, shapes=shapes)
    with FaultsOf(model):
        cut = _Cut(nodes, plan)
        parts = cut.parts()
    if shapes:
        sizes = ", ".join(f"{symbol} = {size}" for symbol, size in shapes.items())
        remarks.append(f"The parts hold for these sizes only: {sizes}.")
    with new_folder(folder, HOLDS) as draft:
        listed = []
        for number, part in enumerate(parts):
            file = f"part_{number}.onnx"
            message = cut.model(part, f"{plan.instance}.{number}", first=number == 0)
            with FaultsOf(model):
                _save(message, Path(model).parent, draft / file)
            listed.append(
                {
                    "file": file,
                    "device": part.device,
                    "provider": _provider(known[part.device]),
                    "inputs": [each.name for each in message.graph.input if cut.is_fed(each.name)],
                    "outputs": [each.name for each in message.graph.output],
                }
            )
        document = {
            "format": FORMAT,
            "instance": plan.instance,
            "method": plan.method,
            "inputs": list(nodes.inputs),
            "outputs": [each.name for each in nodes.model.graph.output],
            "parts": listed,
        }
        write_text(draft / "plan.json", pretty(document), ANY)
        shutil.copyfile(Path(__file__).with_name("onnx_runner.py"), draft / "run.py")
    return [f"{len(parts)} parts on {len(plan.devices)} devices", *remarks]


def run(folder: str | Path, inputs: Mapping[str, Any], options: Any = None) -> dict[str, Any]:
    """Run the parts in a folder with ONNX Runtime, one after the other.

    Parameters
    ----------
    inputs : mapping from str to ndarray
        All inputs of the model.
    options : onnxruntime.SessionOptions, optional
        For every part.

    Returns
    -------
    dict from str to ndarray
        The outputs of the model.

    Raises
    ------
    InputError
        If the inputs are not those of the model, this onnxruntime has not the execution provider
        of a part, or the library is not installed.
    """
    try:
        from optpart.exporters.onnx_runner import Parts
    except ImportError:
        remedy = "install onnxruntime"
        raise InputError("", "needs the library onnxruntime", remedy, str(folder)) from None
    try:
        return Parts(folder, options).run(inputs)
    except (OSError, KeyError, ValueError) as error:
        remedy = "give a folder of 'optpart export --to onnx', and the inputs of the model"
        raise InputError("", str(error), remedy, str(folder)) from None


def _provider(name: str) -> tuple[str, dict[str, str]]:
    found = _PROVIDER.fullmatch(name)
    assert found is not None
    return found[1], {"device_id": found[2]} if found[2] else {}


def _save(model: ModelProto, base: Path, path: Path) -> None:
    """Write a part; weights from files of their own get one of their own again."""
    import onnx
    from onnx.checker import ValidationError
    from onnx.external_data_helper import load_external_data_for_model, uses_external_data

    if not any(uses_external_data(tensor) for tensor in stored_tensors(model.graph)):
        write_bytes(path, model.SerializeToString(), ANY)
        return
    try:
        load_external_data_for_model(model, str(base))
    except (OSError, ValueError, ValidationError) as error:
        place, problem = "weights in files of their own", f"cannot be read ({error})"
        raise InputError(place, problem, "put the files beside the model") from None
    onnx.save_model(
        model,
        str(path),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=f"{path.name}.data",
        convert_attribute=True,
    )


class _Cut:
    """The cut of one model by one plan.

    Raises
    ------
    InputError
        If the vertices of the plan are not those of the model, or one starts before another whose
        output it reads.
    """

    def __init__(self, nodes: Nodes, plan: Plan) -> None:
        self._nodes, self._plan = nodes, plan
        self._graph: GraphProto = nodes.model.graph
        plan.check_names([name for name in nodes.vertices if name is not None], "node", _NAMES)
        self._node: list[NodeProto] = list(self._graph.node)
        self._weights = {each.name: each for each in self._graph.initializer}
        self._maker = {
            value: i for i, node in enumerate(self._node) for value in node.output if value
        }
        # Nodes are in topological order in the file, which decides where starts are the same.
        vertices = [i for i in range(len(self._node)) if nodes.vertices[i] is not None]
        self._order = sorted(vertices, key=lambda i: plan.start[self._name(i)])
        self._readers: dict[str, list[int]] = {}
        for i in self._order:
            for value in reads(self._node[i]):
                self._readers.setdefault(value, []).append(i)
        position = {i: p for p, i in enumerate(self._order)}
        for i in self._order:
            for u in self._sources(i):
                if position[u] > position[i]:
                    place = f"vertex {self._name(i)!r}"
                    problem = f"starts before {self._name(u)!r}, whose output it reads"
                    raise InputError(place, problem, _NAMES)
        self._part_of: dict[int, int] = {}

    def _name(self, i: int) -> str:
        name = self._nodes.vertices[i]
        assert name is not None
        return name

    def _sources(self, i: int) -> list[int]:
        """Return the vertices whose outputs a vertex reads."""
        makers = (self._maker.get(value, -1) for value in reads(self._node[i]))
        return [u for u in makers if u >= 0 and self._nodes.vertices[u] is not None]

    def is_fed(self, value: str) -> bool:
        """Return whether an input of a part gets its value from outside."""
        maker = self._maker.get(value)
        return value in self._nodes.inputs or (
            maker is not None and self._nodes.vertices[maker] is not None
        )

    def parts(self) -> list[Part]:
        """Cut the order of the plan, and put the parts in an order in which they can be executed.

        A vertex joins the last part of its device unless one of its sources is in a part that
        waits for that one. Then it begins a part, which so waits for the last one too.
        """
        parts: list[Part] = []
        last: dict[str, int] = {}
        before: list[int] = []  # per part, those that must precede it, as bits
        for i in self._order:
            device = self._plan.device[self._name(i)]
            sources = {self._part_of[u] for u in self._sources(i)}
            p = last.get(device, -1)
            if p < 0 or any(before[q] >> p & 1 for q in sources - {p}):
                p = last[device] = len(parts)
                parts.append(Part(device))
                before.append(0)
            parts[p].nodes.append(i)
            self._part_of[i] = p
            new = 0
            for q in sources - {p}:
                new |= before[q] | 1 << q
            if new & ~before[p]:
                before[p] |= new
                for q in range(len(parts)):
                    if before[q] >> p & 1:
                        before[q] |= before[p]
        return self._in_order(parts, before)

    def _in_order(self, parts: list[Part], before: list[int]) -> list[Part]:
        """Sort parts topologically, those that began earlier first; number them anew."""
        waiting = [mask.bit_count() for mask in before]
        ready = [p for p, count in enumerate(waiting) if not count]
        order: list[int] = []
        while ready:
            p = heapq.heappop(ready)
            order.append(p)
            for q, mask in enumerate(before):
                if mask >> p & 1:
                    waiting[q] -= 1
                    if not waiting[q]:
                        heapq.heappush(ready, q)
        assert len(order) == len(parts)
        number = {p: n for n, p in enumerate(order)}
        self._part_of = {i: number[p] for i, p in self._part_of.items()}
        return [parts[p] for p in order]

    def model(self, part: Part, name: str, *, first: bool) -> ModelProto:
        """Return the model of a part.

        Parameters
        ----------
        first : bool
            Whether it also hands out the outputs of the model that are constant.
        """
        import onnx

        made = {value for i in part.nodes for value in self._node[i].output if value}
        outputs = self._outputs(part)
        read = [value for i in part.nodes for value in reads(self._node[i])]
        if first:
            constant = [each.name for each in self._graph.output if not self.is_fed(each.name)]
            outputs += constant
            read += constant
        fed, weights, folded = self._needed(read, made)
        model = _head(self._nodes.model)
        graph = model.graph
        graph.name = name
        graph.node.extend(self._node[i] for i in (*folded, *part.nodes))
        graph.initializer.extend(weights)
        types = self._nodes.types
        graph.input.extend(onnx.helper.make_value_info(each, types[each]) for each in fed)
        graph.output.extend(onnx.helper.make_value_info(each, types[each]) for each in outputs)
        # Until version 3, every initializer is an input; later, those that a user may override.
        listed = {each.name for each in self._graph.input}
        graph.input.extend(
            onnx.helper.make_tensor_value_info(each.name, each.data_type, each.dims)
            for each in weights
            if each.name in listed or model.ir_version < 4
        )
        inside = made.union(fed, (each.name for each in weights))
        graph.quantization_annotation.extend(
            each for each in self._graph.quantization_annotation if each.tensor_name in inside
        )
        return model

    def _outputs(self, part: Part) -> list[str]:
        """Return what others read of a part: in all cases something, or it could not be run."""
        here = set(part.nodes)
        results = {each.name for each in self._graph.output}
        found = [
            value
            for i in part.nodes
            for value in self._node[i].output
            if value in results or not here.issuperset(self._readers.get(value, ()))
        ]
        return found or [next(filter(None, self._node[part.nodes[-1]].output))]

    def _needed(
        self, read: Iterable[str], made: set[str]
    ) -> tuple[list[str], list[TensorProto], list[int]]:
        """Return what comes from outside, the initializers, and the constant nodes."""
        fed: list[str] = []
        weights: list[TensorProto] = []
        folded: list[int] = []
        seen = set(made)
        waiting = list(dict.fromkeys(read))[::-1]
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self._nodes.sizes:
                weights.append(_renamed(self._nodes.sizes[value], value))
            elif value in self._weights:
                weights.append(self._weights[value])
            elif self.is_fed(value):
                fed.append(value)
            else:
                maker = self._maker[value]
                folded.append(maker)
                seen.update(self._node[maker].output)
                waiting += reads(self._node[maker])
        return fed, weights, sorted(folded)


def _renamed(tensor: TensorProto, name: str) -> TensorProto:
    import onnx

    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def _head(model: ModelProto) -> ModelProto:
    """Return a model without its graph: versions, operator sets, metadata."""
    import onnx

    head = onnx.ModelProto()
    for spec, value in model.ListFields():
        if spec.name in ("graph", "training_info"):
            continue
        if spec.is_repeated:
            getattr(head, spec.name).MergeFrom(value)
        else:
            setattr(head, spec.name, value)
    return head
