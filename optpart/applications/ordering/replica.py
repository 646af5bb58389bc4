"""Model replicas with parameter servers ([H] §2.3, §2.4): partitions whose channels are devices.

Every op has exactly one allowed device. The devices are

- ``worker_0``, …: the computational resource of a worker;
- ``server_0``, …: that of a parameter server;
- ``server_0/worker_1/0``, …: a channel that carries one transfer at a time from a sender to a
  receiver, here from the server to the worker; channels between the same two are numbered. Each
  direction has its own channels, as under gRPC ([H] §5.1).

A transfer is one op on its channel: the end that takes the time. The other end, which only has to
be activated, is an op of length 0 on its own device.

=============================  =============  ==================================================
op                             device         time
=============================  =============  ==================================================
``server_0/read/P``            server         0
``server_0/send/P/worker_1``   server         0 (activation)
``worker_1/recv/P``            channel        size of P / bandwidth
``worker_1/X``                 worker         operations of X per sample × batch / speed
``worker_1/gradients/X``       worker         the same: gradient by the inputs of X
``worker_1/gradients/X/own``   worker         the same: gradient by the parameters of X
``worker_1/send/P``            channel        size of P / bandwidth
``server_0/recv/P/worker_1``   server         0 (activation)
``server_0/aggregate/P``       server         (workers − 1) operations per element
``server_0/update/P``          server         two operations per element
=============================  =============  ==================================================

The last six rows are only for training. The partition of the reference worker ([H] §4) is the part
of the worker with its channels: all ``recv`` ops are leaves, all ``send`` ops are roots.

Parameters go to servers in turn, as TensorFlow places them, and within a server to its channels in
turn. Times are whole microseconds, rounded to the nearest, as a tracer would measure them. All
edges are control dependencies, since all transfers are ops.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from optpart.applications.ordering.models.operations import BaseModel, Op
from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, check_size
from optpart.interop.generate import draw
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import Number, rational, shown

#: Operations per microsecond of a worker: half a TFLOP/s, a server with 32 cores ([H] §6).
SPEED = 500_000

#: Bytes per microsecond of a channel: Ethernet of 1 Gbit/s ([H] §6).
BANDWIDTH = 125

#: Bytes per element.
ELEMENT = 4

#: Device type of all channels.
CHANNEL = "channel"


class Platform(NamedTuple):
    """The speeds of workers, servers and channels."""

    batch: int  # samples per worker and iteration
    speed: Fraction  # operations per microsecond of a worker
    server_speed: Fraction
    bandwidth: Fraction  # bytes per microsecond of a channel

    def compute(self, operations: int) -> int:
        """Return the time of a worker's op."""
        return round(operations * self.batch / self.speed)

    def serve(self, operations: int) -> int:
        """Return the time of a server's op."""
        return round(operations / self.server_speed)

    def transfer(self, elements: int) -> int:
        """Return the time of a transfer."""
        return round(elements * ELEMENT / self.bandwidth)


def platform(
    batch: int = 32,
    speed: Number = SPEED,
    bandwidth: Number = BANDWIDTH,
    server_speed: Number | None = None,
) -> Platform:
    """Return a checked platform; a server is as fast as a worker unless its speed is given."""
    worker = _positive(speed, "speed")
    return Platform(
        draw.count(batch, "batch", least=1),
        worker,
        worker if server_speed is None else _positive(server_speed, "server speed"),
        _positive(bandwidth, "bandwidth"),
    )


def replica(
    model: BaseModel,
    *,
    workers: int = 1,
    servers: int = 1,
    channels: int = 1,
    training: bool = False,
    on: Platform | None = None,
) -> Instance:
    """Build the whole partitioned graph of a model replica: all workers and all servers.

    It has no memory limits and infinite bandwidth: only vertices take time.

    Parameters
    ----------
    channels : int
        Channels from one sender to one receiver.
    training : bool
        Whether gradients are computed, sent, aggregated and applied; otherwise there is only the
        forward pass.
    """
    _check(model, workers, servers, channels, training)
    layout = _Layout(model, servers, channels, training, on or platform())
    for s in range(servers):
        layout.device(f"server_{s}", "server")
    for w in range(workers):
        layout.worker(w)
    layout.server_ops(workers)
    for w in range(workers):
        layout.worker_ops(w)
    layout.updates(workers)
    return layout.instance(f"{workers}w-{servers}s" + (f"-{channels}c" if channels > 1 else ""))


def worker_partition(
    model: BaseModel,
    *,
    servers: int = 1,
    channels: int = 1,
    training: bool = False,
    on: Platform | None = None,
) -> Instance:
    """Build the partition of the reference worker with its channels ([H] §2.4, §4).

    The parameters are those of :func:`replica`.
    """
    _check(model, 1, servers, channels, training)
    layout = _Layout(model, servers, channels, training, on or platform())
    layout.worker(0)
    layout.worker_ops(0)
    several = (f"-{n}{unit}" for n, unit in ((servers, "s"), (channels, "c")) if n > 1)
    return layout.instance("worker" + "".join(several))


def _check(model: BaseModel, workers: int, servers: int, channels: int, training: bool) -> None:
    for value, place in ((workers, "workers"), (servers, "servers"), (channels, "channels")):
        draw.count(value, place, least=1)
    ways = 2 if training else 1
    devices = servers + workers * (1 + ways * servers * channels)
    if devices > MOST_DEVICES:
        raise InputError(
            "workers, servers and channels",
            f"{devices} devices, channels included",
            f"use at most {MOST_DEVICES}",
        )
    # Each worker has every op, in training also its gradients; besides, the ops of transfers.
    ops = workers * ways * (len(model.ops) + 3 * len(model.parameters))
    check_size(ops, devices=devices, place="workers and servers")


def _positive(value: Number, place: str) -> Fraction:
    number = rational(value, place)
    if number <= 0:
        raise InputError(place, f"{shown(value)} is not positive", "give a number > 0")
    return number


class _Layout:
    """A builder that collects vertices, edges and devices."""

    def __init__(
        self, model: BaseModel, servers: int, channels: int, training: bool, on: Platform
    ) -> None:
        self.model, self.training, self.on = model, training, on
        self.servers, self.channels = servers, channels
        parameters = model.parameters
        # In turn to the servers, and to the channels of each.
        self.home = {p.name: i % servers for i, p in enumerate(parameters)}
        self.lane = {p.name: i // servers % channels for i, p in enumerate(parameters)}
        self.builder = GraphBuilder()
        self.devices: list[Device] = []
        self.present: set[str] = set()

    def instance(self, suffix: str) -> Instance:
        mode = "training" if self.training else "forward"
        return Instance(
            self.builder.build(),
            Cluster.of(self.devices),
            name=f"{self.model.name}-{mode}-{suffix}-b{self.on.batch}",
            source=f"model replica of {self.model.name} with parameter servers, times in µs",
            time_unit="us",
        )

    def device(self, name: str, kind: str) -> None:
        self.devices.append(Device(name, 1, kind))

    def vertex(self, name: str, device: str, time: int = 0, after: tuple[str, ...] = ()) -> str:
        self.builder.vertex(name, time, devices=[device])
        self.present.add(name)
        for source in after:
            self.builder.edge(source, name, None)
        return name

    # --- workers ---------------------------------------------------------------------------------

    def worker(self, w: int) -> None:
        """Add the devices of a worker: the worker itself and its channels."""
        self.device(f"worker_{w}", "worker")
        ways = [(f"server_{s}", f"worker_{w}") for s in range(self.servers)]
        ways += [(there, here) for here, there in ways if self.training]
        for sender, receiver in ways:
            for lane in range(self.channels):
                self.device(f"{sender}/{receiver}/{lane}", CHANNEL)

    def worker_ops(self, w: int) -> None:
        """Add a worker's copy of the base model, which receives parameters and sends updates."""
        worker = f"worker_{w}"
        for parameter in self.model.parameters:
            name = parameter.name
            server = f"server_{self.home[name]}"
            activated = f"{server}/send/{name}/{worker}"
            self.vertex(
                f"{worker}/recv/{name}",
                f"{server}/{worker}/{self.lane[name]}",
                self.on.transfer(parameter.size),
                (activated,) if activated in self.present else (),
            )
        for op in self.model.ops:
            needs = [f"{worker}/{name}" for name in op.inputs]
            needs += [f"{worker}/recv/{parameter.name}" for parameter in op.parameters]
            self.vertex(f"{worker}/{op.name}", worker, self.on.compute(op.operations), tuple(needs))
        if self.training:
            self._gradients(worker)

    def _gradients(self, worker: str) -> None:
        """Add the backward pass: for each op, the gradients by its inputs and by its parameters.

        An op whose inputs depend on no parameter needs no gradient by its inputs.
        """
        learnt = _depend_on_parameters(self.model)
        readers: dict[str, list[Op]] = {op.name: [] for op in self.model.ops}
        for op in self.model.ops:
            for name in op.inputs:
                readers[name].append(op)
        for op in reversed(self.model.ops):
            above = tuple(f"{worker}/gradients/{reader.name}" for reader in readers[op.name])
            # Nothing reads the loss: its gradient needs only the loss.
            needs = above or (f"{worker}/{op.name}",)
            time = self.on.compute(op.operations)
            if any(name in learnt for name in op.inputs):
                self.vertex(f"{worker}/gradients/{op.name}", worker, time, needs)
            if op.parameters:
                own = self.vertex(f"{worker}/gradients/{op.name}/own", worker, time, needs)
                for parameter in op.parameters:
                    name = parameter.name
                    way = f"{worker}/server_{self.home[name]}/{self.lane[name]}"
                    length = self.on.transfer(parameter.size)
                    self.vertex(f"{worker}/send/{name}", way, length, (own,))

    # --- servers ---------------------------------------------------------------------------------

    def server_ops(self, workers: int) -> None:
        """Add the servers' first ops: read every parameter, and activate its sends."""
        for parameter in self.model.parameters:
            name = parameter.name
            server = f"server_{self.home[name]}"
            read = self.vertex(f"{server}/read/{name}", server)
            for w in range(workers):
                self.vertex(f"{server}/send/{name}/worker_{w}", server, 0, (read,))

    def updates(self, workers: int) -> None:
        """Add the servers' last ops: receive, aggregate and apply every gradient."""
        if not self.training:
            return
        for name, size in self.model.parameters:
            server = f"server_{self.home[name]}"
            received = tuple(
                self.vertex(
                    f"{server}/recv/{name}/worker_{w}", server, 0, (f"worker_{w}/send/{name}",)
                )
                for w in range(workers)
            )
            sums = self.on.serve(size * (workers - 1))
            total = self.vertex(f"{server}/aggregate/{name}", server, sums, received)
            self.vertex(f"{server}/update/{name}", server, self.on.serve(2 * size), (total,))


def _depend_on_parameters(model: BaseModel) -> set[str]:
    """Return the names of the ops whose results depend on some parameter."""
    found: set[str] = set()
    for op in model.ops:
        if op.parameters or not found.isdisjoint(op.inputs):
            found.add(op.name)
    return found
