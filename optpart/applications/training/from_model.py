"""Training graphs from model files: the forward pass of an ONNX model or a GraphDef.

Every vertex becomes an operation, whose backward pass
:mod:`~optpart.applications.training.backward` derives.

- How figures grow with the samples is read off two readings of an ONNX model, with one and with two
  samples; of a model with a fixed batch, all are taken to be proportional to the samples. An
  operation with an output that does not grow needs all samples: it cannot be split.
- Trained weights of an ONNX model are the constants of more than eight bytes that contractions,
  normalisations, element-wise operations and look-ups hold; of a GraphDef its variables, and what
  depends on no input is dropped: variables become weights of the operations that read them,
  directly or through other dropped ones. Other constants take no memory.
- A backward pass takes as long as two forward passes if the operation has weights or multiplies
  activations, else as long as one, and reads what the forward pass read, unless the operation is a
  sum, a mean or merely moves data.

A GraphDef tells no work: its times are 0 until measured ones are put in
(:func:`optpart.applications.training.profile.timed`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optpart.applications.training.backward import (
    Forward,
    ForwardOperation,
    Tensor,
    with_backward,
)
from optpart.applications.training.graph import Layout, Line, Output, Parameter, TrainingGraph
from optpart.applications.training.layers import BACKWARD_REMARKS, update_lines, update_remark
from optpart.applications.training.lines import Kernel, lines, scaled
from optpart.base.errors import FaultsOf, InputError
from optpart.base.rounding import number
from optpart.interop.costs.costed import counted
from optpart.interop.costs.efficiency import FREE, Efficiencies, defaults, plain
from optpart.interop.devices.spec import Spec
from optpart.interop.formats import onnx, tensorflow
from optpart.problem.graph import CONTROL
from optpart.problem.rational import shown
from optpart.problem.workload import Work, Workload

#: Operators whose gradient does not depend on what they read, besides those that move data.
_LINEAR = {
    plain(kind)
    for kind in (
        "Add", "AddN", "AddV2", "BiasAdd", "Sub", "Neg", "Sum", "Mean", "AveragePool", "AvgPool",
        "GlobalAveragePool", "ReduceMean", "ReduceSum", "Cast", "Dropout",
    )
}  # fmt: skip

#: Classes of operators whose constants are weights, and look-ups, unless they are as small as a
#: scalar.
_TRAINED = {"contraction", "normalisation", "elementwise"}
_LOOK_UPS = {plain(kind) for kind in ("Gather", "GatherV2", "embedding")}
_SCALAR = 8

#: Operators of a GraphDef whose outputs depend on samples although they read none.
_INPUTS = ("Placeholder", "Iterator", "Random", "TruncatedNormal", "Multinomial", "Queue", "Reader")

_VARIABLES = {"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"}


def from_onnx(
    path: str | Path,
    specs: Mapping[str, Spec],
    *,
    samples: str | int,
    shapes: Mapping[str, int] | None = None,
    slots: int = 2,
    efficiencies: Efficiencies | None = None,
) -> TrainingGraph:
    """Read the forward pass of an ONNX model.

    Parameters
    ----------
    specs : mapping from str to Spec
        By kind of device; times are lines of the roofline
        (:mod:`optpart.applications.training.lines`).
    samples : str or int
        The symbol that the model uses for the number of samples, or the number itself if it is
        fixed.
    shapes : mapping from str to int, optional
        Sizes for the model's other symbols.
    slots : int
        Tensors that the optimiser keeps of each trained one.
    """
    with FaultsOf(path):
        if isinstance(samples, int):
            one, number, two = onnx.read(path, shapes=shapes), samples, None
        else:
            one, two = (onnx.read(path, shapes={**(shapes or {}), samples: b}) for b in (1, 2))
            number = 1
        return training_graph(
            one, specs, samples=number, doubled=two, slots=slots, efficiencies=efficiencies
        )


def from_graphdef(
    path: str | Path, kinds: Sequence[str], *, samples: int, slots: int = 2
) -> TrainingGraph:
    """Read the forward pass of a GraphDef, built for so many samples; all times are 0.

    Raises
    ------
    InputError
        As :func:`optpart.interop.formats.tensorflow.read` does, if the graph has no input, or if it
        updates variables already.
    """
    workload = tensorflow.read(path)
    with FaultsOf(path):
        operators = {node.name: node.op for node in tensorflow.read_message(path).node}
        for name, operator in operators.items():
            if plain(operator).removeprefix("resource").startswith("apply"):
                raise InputError(
                    f"node {shown(name)}",
                    f"{operator} updates a variable: the graph has a backward pass already",
                    "give the graph of the forward pass",
                )
        inputs = [name for name, operator in operators.items() if operator.startswith(_INPUTS)]
        if not inputs:
            raise InputError("", "has no input", "give a graph that reads samples")
        return training_graph(
            workload,
            None,
            samples=samples,
            kinds=kinds,
            slots=slots,
            operators=[operators[name] for name in workload.graph.names],
            inputs=inputs,
            trained=[name for name, operator in operators.items() if operator in _VARIABLES],
        )


def training_graph(
    workload: Workload,
    specs: Mapping[str, Spec] | None,
    *,
    samples: int,
    doubled: Workload | None = None,
    kinds: Sequence[str] = (),
    slots: int = 2,
    efficiencies: Efficiencies | None = None,
    operators: Sequence[str] | None = None,
    inputs: Collection[str] | None = None,
    trained: Collection[str] | None = None,
) -> TrainingGraph:
    """Return the training graph of a forward pass.

    Parameters
    ----------
    workload : Workload
        The forward pass, for ``samples`` samples.
    specs : mapping from str to Spec, optional
        By kind of device. Without it, all times are 0, on ``kinds``.
    doubled : Workload, optional
        The same for twice as many samples; without it, figures are proportional to the samples.
    operators : sequence of str, optional
        Of all vertices, if the workload does not tell.
    inputs : collection of str, optional
        Vertices that hold samples; what depends on none is dropped. Without it, all vertices
        depend on samples.
    trained : collection of str, optional
        Vertices whose memory is weights; all by default.

    Raises
    ------
    InputError
        If a figure shrinks with the samples or grows faster than they do, ``doubled`` is another
        graph, or there are neither ``specs`` nor ``kinds``.
    """
    if samples < 1:
        raise InputError("samples", shown(samples), "give a whole number from 1")
    if specs is None and not kinds:
        raise InputError("kinds", "none", "name the kinds of devices")
    model = _Model(workload, samples, doubled, operators, inputs, trained)
    return with_backward(model.forward(specs, list(specs or kinds), slots, efficiencies))


class _Growth(NamedTuple):
    """A figure of ``samples`` samples: what does not grow, and what does."""

    fixed: int
    grown: int


class _Model:
    def __init__(
        self,
        workload: Workload,
        samples: int,
        doubled: Workload | None,
        operators: Sequence[str] | None,
        inputs: Collection[str] | None,
        trained: Collection[str] | None,
    ) -> None:
        self.workload, self.samples, self.doubled = workload, samples, doubled
        if doubled is not None:
            _check_same(workload, doubled)
        known = operators if workload.work is None else workload.work.kinds
        self.operators = known or ("",) * len(workload.graph)
        graph = workload.graph
        self.order = graph.topological_order.tolist()
        self.reads: list[list[tuple[int, int]]] = [[] for _ in graph.names]
        ends = graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist()
        for u, v, t in zip(*ends, strict=True):
            self.reads[v].append((u, int(graph.tensor_output[t])))
        self.tensors: list[list[int]] = [[] for _ in graph.names]
        for t, v in enumerate(graph.tensor_vertex.tolist()):
            if graph.tensor_output[t] != CONTROL:
                self.tensors[v].append(t)
        self.kept = self._kept(inputs)
        self.held = self._held(trained)

    def _kept(self, inputs: Collection[str] | None) -> list[bool]:
        """Return whether a vertex depends on samples."""
        graph = self.workload.graph
        if inputs is None:
            return [True] * len(graph)
        kept = [name in inputs for name in graph.names]
        for v in self.order:
            kept[v] |= any(kept[u] for u, output in self.reads[v] if output != CONTROL)
        return kept

    def _held(self, trained: Collection[str] | None) -> dict[int, list[int]]:
        """Return the vertices that read the weights of a vertex, by that vertex."""
        graph = self.workload.graph
        readers: list[list[int]] = [[] for _ in graph.names]
        for v, read in enumerate(self.reads):
            for u, output in read:
                if output != CONTROL and not self.kept[u]:
                    readers[u].append(v)
        place = {v: i for i, v in enumerate(self.order)}
        found: dict[int, list[int]] = {}
        for v in self.order:
            if not self._trains(v, trained):
                continue
            users, stack, seen = [], [v], {v}
            while stack:
                u = stack.pop()
                if self.kept[u]:
                    users.append(u)
                    continue
                fresh = [w for w in readers[u] if w not in seen]
                seen.update(fresh)
                stack += fresh
            if users:
                found[v] = sorted(users, key=place.__getitem__)
        return found

    def _trains(self, v: int, trained: Collection[str] | None) -> bool:
        memory = self.workload.graph.memory[v]
        if trained is not None:
            return bool(memory) and self.workload.graph.names[v] in trained
        operator = self.operators[v]
        takes = defaults().class_of(operator) in _TRAINED or plain(operator) in _LOOK_UPS
        return memory > _SCALAR and takes

    def forward(
        self,
        specs: Mapping[str, Spec] | None,
        kinds: list[str],
        slots: int,
        efficiencies: Efficiencies | None,
    ) -> Forward:
        graph = self.workload.graph
        chosen = [v for v in self.order if self.kept[v]]
        number = {v: i for i, v in enumerate(chosen)}
        times, remarks = self._times(chosen, specs, kinds, efficiencies)
        with_weights = {user for users in self.held.values() for user in users}
        operations = []
        for v in chosen:
            kept = [(u, k) for u, k in self.reads[v] if self.kept[u]]
            reads = tuple(Tensor(number[u], k) for u, k in kept if k != CONTROL)
            outputs = tuple(self._output(t) for t in self.tensors[v])
            class_ = defaults().class_of(self.operators[v])
            twice = v in with_weights or (class_ == "contraction" and len(reads) > 1)
            linear = class_ in ("movement", FREE) or plain(self.operators[v]) in _LINEAR
            operations.append(
                ForwardOperation(
                    graph.names[v],
                    times[number[v]],
                    scaled(times[number[v]], 2 if twice else 1),
                    reads,
                    outputs,
                    after=tuple(number[u] for u, k in kept if k == CONTROL),
                    needs_reads=not linear or v in with_weights,
                    first_backward_times=times[number[v]],
                    splittable=all(output.layout is Layout.BATCHED for output in outputs),
                )
            )
        weights = [
            Parameter(f"{graph.names[v]}/weights", graph.memory[v], tuple(number[u] for u in users))
            for v, users in self.held.items()
        ]
        if specs is None:
            updates = [tuple(Line() for _ in kinds)] * len(weights)
        else:
            sizes = [round(each.size) for each in weights]
            updates = update_lines(sizes, specs, slots, efficiencies)
            remarks = (*remarks, update_remark(slots))
        # A reader's remarks are made whole sentences, like those of training graphs.
        assumed = (f"{x[:1].upper()}{x[1:].removesuffix('.')}." for x in self.workload.assumed)
        return Forward(
            self.workload.name,
            tuple(kinds),
            tuple(operations),
            tuple(weights),
            tuple(updates),
            self.workload.source,
            (*assumed, *self._said(), *BACKWARD_REMARKS, *remarks),
        )

    def _times(
        self,
        chosen: list[int],
        specs: Mapping[str, Spec] | None,
        kinds: list[str],
        efficiencies: Efficiencies | None,
    ) -> tuple[list[tuple[Line, ...]], tuple[str, ...]]:
        if specs is None:
            return [tuple(Line() for _ in kinds)] * len(chosen), ("No times are known: all are 0.",)
        work = self.workload.work
        if work is None:
            raise InputError(
                self.workload.name,
                "says neither operations nor bytes of its vertices",
                "use measured times, or a file that has shapes",
            )
        kernels = []
        for v in chosen:
            flops, moved = self._worked(v, work)
            figures = flops.grown, moved.grown, moved.fixed, work.precisions[v], flops.fixed
            kernels.append(Kernel(work.kinds[v], *figures))
        return lines(kernels, specs, samples=self.samples, efficiencies=efficiencies)

    def _worked(self, v: int, work: Work) -> tuple[_Growth, _Growth]:
        """Return operations, and bytes that are moved."""
        flops, moved = int(work.flops[v]), int(work.read[v] + work.written[v])
        if self.doubled is not None and self.doubled.work is not None:
            two = self.doubled.work
            return (
                self._growth(v, "work", flops, int(two.flops[v])),
                self._growth(v, "bytes", moved, int(two.read[v] + two.written[v])),
            )
        # Rows that are looked up grow with the samples, other weights are read as a whole.
        looked_up = defaults().class_of(work.kinds[v]) == "movement"
        fixed = 0 if looked_up else min(int(work.read[v]), int(self.workload.graph.memory[v]))
        return _Growth(0, flops), _Growth(fixed, moved - fixed)

    def _growth(self, v: int, what: str, one: int, two: int) -> _Growth:
        if not one <= two <= 2 * one:
            raise InputError(
                f"vertex {shown(self.workload.graph.names[v])}",
                f"its {what} grow from {one} to {two} when samples double",
                "give a model whose figures grow along lines",
            )
        return _Growth(2 * one - two, two - one)

    def _output(self, tensor: int) -> Output:
        size = self.workload.graph.tensor_size[tensor]
        if self.doubled is None:
            return Output(Layout.BATCHED, Line(beta=size / self.samples))
        two = self.doubled.graph.tensor_size[tensor]
        if size == two:
            return Output(Layout.WHOLE, Line(size))
        v = int(self.workload.graph.tensor_vertex[tensor])
        fixed, grown = self._growth(v, "outputs", int(size), int(two))
        return Output(Layout.BATCHED, Line(Fraction(fixed), Fraction(grown, self.samples)))

    def _said(self) -> list[str]:
        graph = self.workload.graph
        found = []
        if self.doubled is None:
            found.append(
                f"Work and tensors are proportional to samples, {self.samples} of which the file "
                "is for."
            )
        dropped = self.kept.count(False)
        if dropped:
            found.append(
                f"Dropped, since they depend on no sample: {counted(dropped, 'operation')}; "
                "variables among them are weights of their readers."
            )
        sinks = [v for v in self.order if self.kept[v] and not np.isin(graph.edge_source, v).any()]
        listed = ", ".join(graph.names[v] for v in sinks[:3]) + " and more" * (len(sinks) > 3)
        found.append(f"The loss is computed, at no time, from what nothing reads: {listed}.")
        if self.held:
            size = sum((graph.memory[v] for v in self.held), Fraction(0))
            found.append(
                f"Trained weights: {number(size, up=True)} bytes of {len(self.held):,} operations, "
                "moving statistics of normalisations included; of a constant that several hold, "
                "each has a copy."
            )
        others = [v for v in self.order if graph.memory[v] and v not in self.held]
        if others:
            size = sum((graph.memory[v] for v in others), Fraction(0))
            found.append(
                f"Not trained, and without memory: constants of {number(size, up=True)} bytes, "
                f"held by {len(others):,} operations."
            )
        placed = sum(kind is not None for kind in graph.device_types) + len(graph.allowed_devices)
        if placed or graph.colocation:
            found.append(
                f"Not used: the devices of {placed:,} vertices and {len(graph.colocation):,} "
                "colocation groups of the file."
            )
        return found


def _check_same(one: Workload, two: Workload) -> None:
    """Check that two readings are of one graph."""
    a, b = one.graph, two.graph
    same = (
        a.names == b.names
        and np.array_equal(a.edge_source, b.edge_source)
        and np.array_equal(a.edge_target, b.edge_target)
        and np.array_equal(a.edge_tensor, b.edge_tensor)
        and a.memory == b.memory
        and (one.work is None) == (two.work is None)
    )
    if not same:
        raise InputError(
            one.name,
            "has other vertices, edges or weights with more samples",
            "give a model whose structure does not depend on the samples",
        )
