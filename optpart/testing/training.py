"""Random training graphs that compute, clusters for them, and strategies.

The graphs are small networks with a real backward pass and updates, in integers: sums in any order
are then equal, so that a distributed graph must compute exactly what the single-device graph does
(:mod:`optpart.testing.numeric`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import (
    CONTROL,
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Parameter,
    Role,
    TrainingGraph,
)
from optpart.applications.training.strategy import Decision, Strategy
from optpart.problem.cluster import Cluster, Device

Array: TypeAlias = NDArray[np.int64]

#: Computes the outputs of an operation from its inputs in the order of their edges, the weights on
#: its device (which an apply changes), and the numbers of its samples.
Function: TypeAlias = Callable[[Sequence[Array], dict[str, Array], range], list[Array]]

#: Numbers of replicas of a group; the batches of random strategies are multiples of all of them.
_TOTALS = (1, 2, 3, 4, 6)

#: Samples of a microbatch, or a multiple.
_SAMPLES = 12

_WIDTH = 3

_NOTHING = Line()


@dataclass(frozen=True)
class NumericGraph:
    """A training graph with what its operations compute.

    Attributes
    ----------
    functions : tuple of Function
        One per operation.
    weights : mapping from name to array
        The parameters before the iteration.
    """

    graph: TrainingGraph
    functions: tuple[Function, ...]
    weights: Mapping[str, Array]


@dataclass
class _Network:
    """Operations with their functions, while they are being drawn."""

    rng: np.random.Generator
    kinds: int
    unsplittable: float
    operations: list[Operation] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    users: dict[str, list[int]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        role: Role,
        inputs: Sequence[tuple[int, int]],
        outputs: Sequence[Layout],
        function: Function,
    ) -> int:
        rng, o = self.rng, len(self.operations)
        splittable = role is Role.APPLY or rng.random() >= self.unsplittable
        times = tuple(
            Line(
                Fraction(int(rng.integers(0, 40))),
                Fraction(0) if role is Role.APPLY else Fraction(int(rng.integers(0, 60)), 6),
            )
            for _ in range(self.kinds)
        )
        made = tuple(
            Output(
                layout,
                Line(Fraction(int(rng.integers(0, 9))), Fraction(int(rng.integers(0, 20)), 2))
                if layout is Layout.BATCHED
                else Line(Fraction(int(rng.integers(1, 60)))),
            )
            for layout in outputs
        )
        self.operations.append(Operation(f"{name}{o}", role, times, made, splittable))
        self.functions.append(function)
        for producer, output in inputs:
            self.edges.append(Edge(producer, output, o))
        return o


def random_numeric_graph(
    rng: np.random.Generator,
    layers: int = 4,
    kinds: Sequence[str] = ("fast", "slow"),
    unsplittable: float = 0.2,
    *,
    linear: bool = False,
) -> NumericGraph:
    """Draw a small network with its backward pass and updates.

    Parameters
    ----------
    layers : int
        Forward operations besides the input and the loss.
    unsplittable : float
        Probability that a forward or backward operation cannot split.
    linear : bool
        Leave out what may turn numbers into zeros, which would hide that others are missing.
    """
    net = _Network(rng, len(kinds), unsplittable)
    seed = int(rng.integers(1000))
    weights: dict[str, Array] = {}
    tensors = [(net.add("input", Role.FORWARD, (), [Layout.BATCHED], _reader(seed)), 0)]
    rate = (net.add("rate", Role.FORWARD, (), [Layout.WHOLE], _constant(3)), 0)
    # Per forward operation: what kind, the tensors read, and the tensor made.
    tape: list[tuple[str, list[tuple[int, int]], tuple[int, int]]] = []
    for layer in range(layers):
        kind = str(rng.choice(["affine", "affine", "scale" if linear else "relu", "add", "scale"]))
        wanted = 2 if kind == "add" and len(tensors) > 1 else 1
        # Mostly the latest, so that there are long paths; all are distinct.
        recent = tensors[-3:]
        places = rng.choice(len(recent), size=min(wanted, len(recent)), replace=False)
        read = [recent[int(i)] for i in places]
        if layer == layers - 1 and tensors[-1] not in read:
            read[0] = tensors[-1]
        if kind == "affine":
            name = f"w{layer}"
            weights[name] = rng.choice([-3, -2, -1, 1, 2, 3], size=(_WIDTH, _WIDTH))
            o = net.add(name, Role.FORWARD, read, [Layout.BATCHED], _affine(name))
            net.users[name] = [o]
            tape.append((name, read, (o, 0)))
        elif kind == "scale":
            o = net.add("scale", Role.FORWARD, [*read, rate], [Layout.BATCHED], _product)
            tape.append((kind, read, (o, 0)))
        else:
            function = _relu if kind == "relu" else _sum
            o = net.add(kind, Role.FORWARD, read, [Layout.BATCHED], function)
            tape.append((kind, read, (o, 0)))
        tensors.append((o, 0))
    target = net.add("target", Role.FORWARD, (), [Layout.BATCHED], _reader(seed + 1)), 0
    loss = net.add("loss", Role.BACKWARD, [tensors[-1], target], [Layout.BATCHED], _difference)
    gradients: dict[tuple[int, int], list[tuple[int, int]]] = {tensors[-1]: [(loss, 0)]}
    for name, read, made in reversed(tape):
        parts = gradients.get(made)
        if not parts:
            continue
        if len(parts) > 1:
            whole = net.add("gather", Role.BACKWARD, parts, [Layout.BATCHED], _sum), 0
        else:
            whole = parts[0]
        if name in weights:
            _affine_backward(net, name, read[0], whole, rate, gradients)
        elif name == "scale":
            back = net.add("scaled", Role.BACKWARD, [whole, rate], [Layout.BATCHED], _product)
            gradients.setdefault(read[0], []).append((back, 0))
        elif name == "relu":
            back = net.add("step", Role.BACKWARD, [read[0], whole], [Layout.BATCHED], _relu_back)
            gradients.setdefault(read[0], []).append((back, 0))
        else:
            for tensor in read:
                gradients.setdefault(tensor, []).append(whole)
    present = {(edge.producer, edge.consumer) for edge in net.edges}
    for _ in range(int(rng.integers(0, 3))):  # further control dependencies, along the order
        one, two = sorted(int(o) for o in rng.choice(len(net.operations), size=2, replace=False))
        if (one, two) not in present and net.operations[one].role is not Role.APPLY:
            net.edges.append(Edge(one, CONTROL, two))
            present.add((one, two))
    graph = TrainingGraph(
        "random",
        tuple(kinds),
        tuple(net.operations),
        tuple(dict.fromkeys(net.edges)),
        tuple(
            Parameter(name, Fraction(int(rng.integers(1, 50))), tuple(users))
            for name, users in net.users.items()
        ),
    )
    return NumericGraph(graph, tuple(net.functions), weights)


def _affine_backward(
    net: _Network,
    name: str,
    read: tuple[int, int],
    whole: tuple[int, int],
    rate: tuple[int, int],
    gradients: dict[tuple[int, int], list[tuple[int, int]]],
) -> None:
    """Add the backward pass of ``x · w``, as one operation or two, and the update of ``w``."""
    waits = []
    if net.rng.random() < 0.5:
        both = [Layout.SUMMED, Layout.BATCHED]
        back = net.add(f"d{name}", Role.BACKWARD, [read, whole], both, _affine_back(name))
        gradient, passed = (back, 0), (back, 1)
        net.users[name].append(back)
    else:
        product = net.add(f"d{name}", Role.BACKWARD, [read, whole], [Layout.SUMMED], _outer)
        back = net.add(f"dx{name}", Role.BACKWARD, [whole], [Layout.BATCHED], _transposed(name))
        gradient, passed = (product, 0), (back, 0)
        net.users[name].append(back)
        waits.append(back)  # it still needs the weights of before
    gradients.setdefault(read, []).append(passed)
    apply = net.add(f"a{name}", Role.APPLY, [gradient, rate], (), _update(name))
    net.users[name].append(apply)
    net.edges += [Edge(o, CONTROL, apply) for o in waits]


def random_training_graph(
    rng: np.random.Generator, layers: int = 4, kinds: Sequence[str] = ("fast", "slow")
) -> TrainingGraph:
    """Draw the graph of :func:`random_numeric_graph`."""
    return random_numeric_graph(rng, layers, kinds).graph


def layer_chain(
    forward: Sequence[Sequence[Line]],
    backward: Sequence[Sequence[Line]] | None = None,
    *,
    activation: Line = _NOTHING,
    gradient: Fraction | int = 0,
    kinds: Sequence[str] = ("fast",),
    applies: bool = True,
) -> TrainingGraph:
    """Build layers, one after the other, each with a forward, a backward and an apply operation.

    Parameters
    ----------
    forward, backward : sequence of layers, each a sequence of Line
        Times by kind of device; without ``backward``, there are only forward passes.
    activation : Line
        Size of what passes between layers, in either direction.
    gradient : number
        Bytes of the parameters of each layer, and of their gradients.
    applies : bool
        Whether there are updates, which take no time.
    """
    n, passed = len(forward), Output(Layout.BATCHED, activation)
    summed = Output(Layout.SUMMED, Line(Fraction(gradient)))
    operations = [
        Operation(f"f{i}", Role.FORWARD, tuple(times), (passed,)) for i, times in enumerate(forward)
    ]
    edges = [Edge(i, 0, i + 1) for i in range(n - 1)]
    users = [[i] for i in range(n)]
    latest = n - 1
    for i in reversed(range(n if backward is not None else 0)):
        assert backward is not None
        o = len(operations)
        operations.append(Operation(f"b{i}", Role.BACKWARD, tuple(backward[i]), (passed, summed)))
        edges += [Edge(u, 0, o) for u in sorted({latest, i})]
        users[i].append(o)
        if applies:
            operations.append(Operation(f"a{i}", Role.APPLY, (Line(),) * len(kinds)))
            edges.append(Edge(o, 1, o + 1))
            users[i].append(o + 1)
        latest = o
    parameters = [
        Parameter(f"w{i}", Fraction(gradient), tuple(using)) for i, using in enumerate(users)
    ]
    return TrainingGraph("chain", tuple(kinds), tuple(operations), tuple(edges), tuple(parameters))


def random_training_cluster(
    rng: np.random.Generator,
    devices: int = 3,
    kinds: Sequence[str] = ("fast", "slow"),
    *,
    memory: Fraction | int | None = None,
    missing: float = 0,
) -> TrainingCluster:
    """Draw devices in servers, with links inside and between them.

    Parameters
    ----------
    memory : number, optional
        Bytes of every device; unlimited by default.
    missing : float
        Probability that the link of an ordered pair is missing.
    """
    servers = np.sort(rng.integers(0, max(1, devices // 2) + 1, size=devices)).tolist()
    inside, between = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    latency = [int(rng.integers(0, 4)), int(rng.integers(0, 8))]
    pairs = [[servers[d] == servers[e] for e in range(devices)] for d in range(devices)]
    rates: list[list[int | None]] = [
        [None if rng.random() < 0.05 else inside if same else between for same in row]
        for row in pairs
    ]
    for row in rates:
        for e in range(devices):
            if rng.random() < missing:
                row[e] = 0
    return TrainingCluster(
        Cluster.of(
            [Device(f"gpu{d}", memory=memory) for d in range(devices)],
            rates,
            [[latency[0] if same else latency[1] for same in row] for row in pairs],
        ),
        tuple(str(kind) for kind in rng.choice(list(kinds), size=devices)),
        tuple(servers),
        tuple(None if rng.random() < 0.3 else Fraction(int(rng.integers(4, 30))) for _ in rates),
    )


def random_decision(rng: np.random.Generator, devices: int, total: int | None = None) -> Decision:
    """Draw a single device, or replicas with a way to synchronise them."""
    if total is None:
        total = int(rng.choice(_TOTALS))
    counts = np.bincount(rng.integers(0, devices, size=total), minlength=devices).tolist()
    used = [d for d, count in enumerate(counts) if count]
    if len(used) == 1:
        return Decision(tuple(counts))
    return Decision(tuple(counts), "allreduce" if rng.random() < 0.5 else int(rng.choice(used)))


def random_strategy(
    rng: np.random.Generator,
    graph: TrainingGraph,
    devices: int,
    *,
    groups: int = 4,
    microbatches: int = 1,
) -> Strategy:
    """Draw groups, decisions and a batch that all replicas divide into whole samples."""
    homes: list[list[int]] = [[] for _ in range(groups)]
    for together in graph.tied:
        homes[int(rng.integers(groups))].extend(together)
    used = [tuple(sorted(home)) for home in homes if home]
    return Strategy(
        _SAMPLES * microbatches * int(rng.integers(1, 3)),
        tuple(used),
        tuple(random_decision(rng, devices) for _ in used),
    )


# --- what operations compute -------------------------------------------------------------------


def _reader(seed: int) -> Function:
    def read(inputs: Sequence[Array], weights: dict[str, Array], samples: range) -> list[Array]:
        rows = [np.random.default_rng((seed, i)).integers(-5, 6, size=_WIDTH) for i in samples]
        return [np.array(rows, dtype=np.int64).reshape(len(samples), _WIDTH)]

    return read


def _constant(value: int) -> Function:
    return lambda inputs, weights, samples: [np.array(value, dtype=np.int64)]


def _affine(name: str) -> Function:
    return lambda inputs, weights, samples: [inputs[0] @ weights[name]]


def _affine_back(name: str) -> Function:
    return lambda inputs, weights, samples: [
        inputs[0].T @ inputs[1],
        inputs[1] @ weights[name].T,
    ]


def _transposed(name: str) -> Function:
    return lambda inputs, weights, samples: [inputs[0] @ weights[name].T]


def _update(name: str) -> Function:
    def update(inputs: Sequence[Array], weights: dict[str, Array], samples: range) -> list[Array]:
        gradient, rate = inputs
        weights[name] = weights[name] - rate * gradient
        return []

    return update


def _outer(inputs: Sequence[Array], weights: Any, samples: Any) -> list[Array]:
    return [inputs[0].T @ inputs[1]]


def _relu(inputs: Sequence[Array], weights: Any, samples: Any) -> list[Array]:
    return [np.maximum(inputs[0], 0)]


def _relu_back(inputs: Sequence[Array], weights: Any, samples: Any) -> list[Array]:
    return [np.where(inputs[0] > 0, inputs[1], 0)]


def _sum(inputs: Sequence[Array], weights: Any, samples: Any) -> list[Array]:
    return [sum(inputs[1:], start=inputs[0])]


def _product(inputs: Sequence[Array], weights: Any, samples: Any) -> list[Array]:
    return [inputs[0] * inputs[1]]


def _difference(inputs: Sequence[Array], weights: Any, samples: Any) -> list[Array]:
    return [inputs[0] - inputs[1]]
