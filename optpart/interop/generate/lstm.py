"""The two recurrent networks of [B] §5.1 as graphs of single operations.

``rnn``: two LSTM layers unrolled for 40 steps, after the PTB model of the TensorFlow tutorial.
``nmt``: neural machine translation, an encoder and a decoder of two LSTM layers each, for sentences
of 50 words; the decoder starts from the last states of the encoder. [B] mentions no attention.

[B] gives the cells, layers, steps, layer size and batch size, and says that steps are training
steps. Everything around the cells is kept as small as possible:

- ``inputs/step_3`` is the embedding of the words that a step reads (``source/…`` and ``target/…``
  for ``nmt``);
- ``layer_0/kernel`` and ``layer_0/bias`` are weights, ``layer_0/initial_state`` is the first state;
- ``layer_0/step_3/…`` is a cell: the operations of TensorFlow's ``BasicLSTMCell``; ``nmt`` prefixes
  ``encoder/`` or ``decoder/``;
- ``softmax/step_3/…`` maps a step's result to the vocabulary and compares it with the next word,
  ``loss`` sums over all steps.

Training mirrors this: ``gradients/X`` is the gradient of operation ``X``. It reads the inputs of
``X`` and the gradients of all consumers of ``X``, and has an output for every input of ``X``.
``update/W`` changes the weights ``W``, with which it is colocated.

Costs follow from the sizes: tensor sizes are in bytes (4 per element); a matrix product has 2
operations per multiplication, any other operation one per element of its result; a gradient repeats
its operation once for each input. [B] measures none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, TypeAlias

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, check_devices
from optpart.interop.costs.drawn import drawn, unit
from optpart.interop.formats.graph_edits import colocate_cells
from optpart.interop.generate import draw
from optpart.interop.generate.option import Option
from optpart.problem.cluster import Cluster
from optpart.problem.graph import Graph, GraphBuilder
from optpart.problem.instance import Instance

Network = Literal["rnn", "nmt"]
Costs = Literal["size", "unit", "drawn"]

#: A cell of any of the networks, or the gradients of one, for
#: :func:`~optpart.interop.formats.graph_edits.colocate_cells`.
CELL = r"(?:gradients/)?(?:encoder/|decoder/)?layer_[0-9]+/step_[0-9]+/"

#: Size of the vocabulary: that of the tutorial's corpus.
VOCABULARY = 10_000

#: Operations and bytes per microsecond. [B] §5.2.1 names the device, a GTX 1080: about 9 TFLOP/s,
#: and 15 GB/s over the bus.
SPEED, BANDWIDTH = 9_000_000, 15_000

_BYTES = 4

#: A vertex and the index of one of its outputs.
_Tensor: TypeAlias = tuple[str, int]


class _State(NamedTuple):
    """The state that a cell passes to the next step: its memory and its result."""

    memory: _Tensor
    result: _Tensor


@dataclass
class _Operation:
    """A vertex before its gradient is known; sizes are numbers of elements."""

    inputs: Sequence[_Tensor]
    outputs: Sequence[int]
    ops: int
    resident: int = 0


@dataclass
class _Network:
    """Operations in topological order, and the sizes that they share."""

    units: int
    batch: int
    operations: dict[str, _Operation] = field(default_factory=dict)

    def add(
        self,
        name: str,
        inputs: Sequence[_Tensor],
        size: int | Sequence[int],
        ops: int | None = None,
        resident: int = 0,
    ) -> _Tensor:
        """Add an operation, with one output per size; return the first output."""
        outputs = [size] if isinstance(size, int) else list(size)
        ops = sum(outputs) if ops is None else ops
        self.operations[name] = _Operation(inputs, outputs, ops, resident)
        return name, 0

    def weights(self, name: str, size: int) -> _Tensor:
        """Add a variable, which costs nothing to read."""
        return self.add(name, (), size, ops=0, resident=size)

    def layer(self, name: str, inputs: Sequence[_Tensor], state: _State | None) -> list[_State]:
        """Unroll an LSTM layer; return the state after each step."""
        units, state_size = self.units, self.batch * self.units
        kernel = self.weights(f"{name}/kernel", 2 * units * 4 * units)
        bias = self.weights(f"{name}/bias", 4 * units)
        if state is None:
            initial, _ = self.add(f"{name}/initial_state", (), [state_size, state_size])
            state = _State((initial, 0), (initial, 1))
        states = []
        for step, given in enumerate(inputs):
            state = self.cell(f"{name}/step_{step}", given, state, kernel, bias)
            states.append(state)
        return states

    def cell(
        self, name: str, given: _Tensor, state: _State, kernel: _Tensor, bias: _Tensor
    ) -> _State:
        """Add one step of a layer: ``BasicLSTMCell``, with its names."""
        size = self.batch * self.units

        def add(operation: str, *inputs: _Tensor, size: int | Sequence[int] = size) -> _Tensor:
            return self.add(f"{name}/{operation}", inputs, size)

        joined = add("concat", given, state.result, size=2 * size)
        gates = self.product(f"{name}/MatMul", joined, kernel, 2 * self.units, 4 * self.units)
        gates = add("BiasAdd", gates, bias, size=4 * size)
        split, _ = add("split", gates, size=[size] * 4)
        write = add("Sigmoid_1", (split, 0))
        new = add("Tanh", (split, 1))
        keep = add("Sigmoid", add("Add", (split, 2)))
        show = add("Sigmoid_2", (split, 3))
        memory = add("Add_1", add("mul", state.memory, keep), add("mul_1", write, new))
        return _State(memory, add("mul_2", add("Tanh_1", memory), show))

    def product(
        self, name: str, rows: _Tensor, weights: _Tensor, inner: int, columns: int
    ) -> _Tensor:
        """Multiply batch × inner by inner × columns."""
        size = self.batch * columns
        return self.add(name, (rows, weights), size, ops=2 * inner * size)

    def words(self, name: str, steps: int) -> list[_Tensor]:
        """Add the embeddings that the steps read."""
        return [self.add(f"{name}/step_{t}", (), self.batch * self.units) for t in range(steps)]

    def loss(self, results: Sequence[_Tensor], vocabulary: int) -> None:
        """Add the loss: map results to words, and compare these with the correct ones."""
        kernel = self.weights("softmax/kernel", self.units * vocabulary)
        bias = self.weights("softmax/bias", vocabulary)
        losses = []
        for t, result in enumerate(results):
            name = f"softmax/step_{t}"
            scores = self.product(f"{name}/MatMul", result, kernel, self.units, vocabulary)
            scores = self.add(f"{name}/BiasAdd", (scores, bias), self.batch * vocabulary)
            compare = f"{name}/CrossEntropy"
            losses.append(self.add(compare, (scores,), self.batch, ops=self.batch * vocabulary))
        self.add("loss", losses, 1, ops=self.batch * len(losses))

    def train(self) -> None:
        """Add the gradients of all operations, and the updates of the weights."""
        forward = dict(self.operations)
        gradient: dict[_Tensor, list[_Tensor]] = {}
        for name, operation in reversed(forward.items()):
            above = [
                part for i in range(len(operation.outputs)) for part in gradient.get((name, i), ())
            ]
            if operation.resident:
                size = operation.outputs[0]
                self.add(f"gradients/{name}", above, size, ops=size * len(above))
                updated = [(name, 0), (f"gradients/{name}", 0)]
                self.add(f"update/{name}", updated, (), ops=2 * size)
            elif operation.inputs:
                sizes = [forward[source].outputs[i] for source, i in operation.inputs]
                here = f"gradients/{name}"
                self.add(here, [*operation.inputs, *above], sizes, ops=operation.ops * len(sizes))
                for i, tensor in enumerate(operation.inputs):
                    gradient.setdefault(tensor, []).append((here, i))

    def graph(self) -> Graph:
        """Build the graph; costs in operations and bytes."""
        builder = GraphBuilder()
        for name, operation in self.operations.items():
            builder.vertex(
                name,
                operation.ops,
                memory=_BYTES * operation.resident,
                outputs=[_BYTES * size for size in operation.outputs],
            )
        for name, operation in self.operations.items():
            for source, output in operation.inputs:
                builder.edge(source, name, output)
            if f"update/{name}" in self.operations:
                builder.colocate(name, f"update/{name}")
        return builder.build()


def rnn(
    *,
    layers: int = 2,
    steps: int = 40,
    units: int = 1500,
    batch: int = 20,
    vocabulary: int = VOCABULARY,
    training: bool = True,
) -> Graph:
    """Build a recurrent network of LSTM layers ([B] §5.1.2).

    Parameters
    ----------
    layers, steps : int
        Numbers of LSTM layers, and of steps for which they are unrolled.
    units, batch : int
        Size of a layer, and sentences per batch.
    vocabulary : int
    training : bool
        Whether to include gradients and updates.

    Returns
    -------
    Graph
        With vertices named as the module describes; only weights and their updates are colocated.
    """
    network = _network(layers, steps, units, batch, vocabulary)
    given = network.words("inputs", steps)
    for i in range(layers):
        given = [state.result for state in network.layer(f"layer_{i}", given, None)]
    return _finished(network, given, vocabulary, training)


def nmt(
    *,
    layers: int = 2,
    steps: int = 50,
    units: int = 1024,
    batch: int = 64,
    vocabulary: int = VOCABULARY,
    training: bool = True,
) -> Graph:
    """Build an encoder and a decoder of LSTM layers ([B] §5.1.1).

    Parameters
    ----------
    layers : int
        Layers of the encoder, and of the decoder.
    steps : int
        Words of a sentence, in both languages.
    units, batch, vocabulary, training
        As in :func:`rnn`.
    """
    network = _network(layers, steps, units, batch, vocabulary)
    given, last = network.words("source", steps), []
    for i in range(layers):
        states = network.layer(f"encoder/layer_{i}", given, None)
        given = [state.result for state in states]
        last.append(states[-1])
    given = network.words("target", steps)
    for i in range(layers):
        states = network.layer(f"decoder/layer_{i}", given, last[i])
        given = [state.result for state in states]
    return _finished(network, given, vocabulary, training)


def _network(layers: int, steps: int, units: int, batch: int, vocabulary: int) -> _Network:
    for place, value in (
        ("layers", layers),
        ("steps", steps),
        ("units", units),
        ("batch", batch),
        ("vocabulary", vocabulary),
    ):
        draw.count(value, place, least=1)
    return _Network(units, batch)


def _finished(
    network: _Network, results: Sequence[_Tensor], vocabulary: int, training: bool
) -> Graph:
    network.loss(results, vocabulary)
    if training:
        network.train()
    return network.graph()


def instance(
    network: Annotated[Network, Option(help="rnn, or nmt for an encoder and a decoder.")],
    devices: Annotated[int, Option(1, MOST_DEVICES)] = 2,
    seed: int = 0,
    *,
    costs: Annotated[Costs, Option(help="size, unit or drawn.")] = "size",
    cells: Annotated[bool, Option(help="Colocate the operations of an LSTM cell.")] = True,
    training: Annotated[bool, Option(help="With gradients and updates.")] = True,
) -> Instance:
    """Build a network of [B] on equal devices ([B] §5.2: 1 to 8).

    Parameters
    ----------
    network : {"rnn", "nmt"}
    devices : int
        At least 1.
    seed : int
        For drawn costs only.
    costs : {"size", "unit", "drawn"}
        ``size``: operations and bytes, as the module describes, on devices of :data:`SPEED` with
        :data:`BANDWIDTH` between any two; times are then microseconds. ``unit``: 1 for every
        operation and tensor. ``drawn``: from 1 to 100, as in [M] §5.1. The last two use devices of
        speed and bandwidth 1.
    cells : bool
        Whether to colocate the operations of a cell, and those of its gradients ([B] §5.1.1).
    training : bool
        Whether to include gradients and updates.

    Raises
    ------
    InputError
        If the network or the costs are unknown, or there is no device.
    """
    check_devices(devices)
    if network not in ("rnn", "nmt"):
        raise InputError("network", f"no network {network!r}", "choose one of rnn, nmt")
    graph = rnn(training=training) if network == "rnn" else nmt(training=training)
    match costs:
        case "size":
            speed, bandwidth = SPEED, BANDWIDTH
        case "unit":
            graph, speed, bandwidth = unit(graph), 1, 1
        case "drawn":
            graph, speed, bandwidth = drawn(graph, draw.generator(seed)), 1, 1
        case _:
            raise InputError("costs", f"no costs {costs!r}", "choose one of size, unit, drawn")
    if cells:
        graph = colocate_cells(graph, CELL)
    marks = [
        mark
        for mark, on in (
            (costs, costs != "size"),
            (f"s{seed}", costs == "drawn"),
            ("free", not cells),
            ("inference", not training),
        )
        if on
    ]
    return Instance(
        graph,
        Cluster.uniform(devices, speed, bandwidth),
        name="-".join([network, f"{devices}", *marks]),
        source="structure of the network of Bahnmüller's §5.1, "
        + (f"costs drawn with seed {seed}" if costs == "drawn" else f"costs by {costs}"),
    )
