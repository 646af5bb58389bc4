"""One iteration of pipeline-parallel training as an instance with a given placement and order.

A stage of a pipeline is a device. Every microbatch passes forward through the stages and backward
through them again, in the order 1F1B: a stage runs as many forward passes as stages follow it, and
then forward and backward passes by turns. At the end, the replicas of each stage sum their
gradients and update their weights. Only times count, so everything is a vertex:

- A transfer between stages either *overlaps* with computing: it runs on a device of its own, one
  for each pair of neighbours and direction. Or it *blocks*: it takes its time on the sender, right
  after the pass, and again on the receiver, right before the pass that waits for it.
- The all-reduce of a stage runs on a device of its own, and waits for the last backward pass of
  every replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify

_NANOSECONDS = 10**9


@dataclass(frozen=True)
class Replica:
    """What one stage of one pipeline takes, in seconds.

    Attributes
    ----------
    forward, backward : float
        Of one microbatch.
    update : float
        Of the weights, once an iteration.
    transfer : float
        Of a microbatch's activations to the next stage, and of their gradients back; 0 at the last.
    """

    forward: float
    backward: float
    update: float = 0.0
    transfer: float = 0.0


@dataclass(frozen=True)
class Iteration:
    """A plan with its times.

    Attributes
    ----------
    pipelines : tuple of tuple of Replica
        Its stages, of each pipeline; as many in all.
    microbatches : int
        Of each pipeline.
    allreduce : tuple of float
        Seconds by stage; 0 with a single pipeline.
    """

    pipelines: tuple[tuple[Replica, ...], ...]
    microbatches: int
    allreduce: tuple[float, ...]


def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """Return the passes of a stage in order, as ``("F", microbatch)`` and ``("B", microbatch)``."""
    ahead = min(stages - 1 - stage, microbatches)
    passes = [("F", m) for m in range(ahead)]
    for m in range(microbatches):
        if ahead + m < microbatches:
            passes.append(("F", ahead + m))
        passes.append(("B", m))
    return passes


def ring_allreduce(replicas: int, size: float, rate: float) -> float:
    """Return the seconds of a ring all-reduce without latency.

    Parameters
    ----------
    replicas : int
    size : float
        Bytes that every replica holds.
    rate : float
        Bytes per second of the slowest link.
    """
    return 2 * (replicas - 1) / replicas * size / rate


def seconds(iteration: Iteration, *, blocking: bool) -> float:
    """Return the time of an iteration.

    Parameters
    ----------
    blocking : bool
        Whether transfers keep sender and receiver from computing.
    """
    built, order = instance(iteration, blocking=blocking)
    placement = {name: device for device, names in order.items() for name in names}
    schedule = retime(built, placement, order)
    violations = verify(built, schedule)
    if violations:
        raise AssertionError(f"{violations[0]}")
    return float(schedule.makespan(built) / _NANOSECONDS)


def instance(iteration: Iteration, *, blocking: bool) -> tuple[Instance, dict[str, list[str]]]:
    """Return the instance of an iteration, in nanoseconds, and the order of each device."""
    drawn = _Drawing()
    for r, stages in enumerate(iteration.pipelines):
        _pipeline(drawn, stages, r, iteration.microbatches, blocking=blocking)
    last = iteration.microbatches - 1
    for s, time in enumerate(iteration.allreduce):
        reduce = f"all-reduce.{s}"
        drawn.add(
            reduce, time, reduce, [f"B{last}.{s}.{r}" for r in range(len(iteration.pipelines))]
        )
        for r, stages in enumerate(iteration.pipelines):
            drawn.add(f"update.{s}.{r}", stages[s].update, _device(s, r), [reduce])
    return drawn.built(), drawn.order


def _device(stage: int, replica: int) -> str:
    return f"stage {stage} of pipeline {replica}"


def _pipeline(
    drawn: _Drawing, stages: Sequence[Replica], r: int, microbatches: int, *, blocking: bool
) -> None:
    """Draw all passes and transfers of a pipeline; the order on a device is that of the calls."""
    last = len(stages) - 1
    for s, stage in enumerate(stages):
        here = _device(s, r)
        for way, m in one_forward_one_backward(s, len(stages), microbatches):
            before, after = (s - 1, s + 1) if way == "F" else (s + 1, s - 1)
            sources = [] if way == "F" else [f"F{m}.{s}.{r}"]
            if 0 <= before <= last:
                time = stages[min(s, before)].transfer
                arrived = f"{way}{m}.{before}-{s}.{r}"
                where = here if blocking else f"link {before}-{s} of pipeline {r}"
                drawn.add(arrived, time, where, [f"{way}{m}.{before}.{r}"])
                sources.append(arrived)
            run = f"{way}{m}.{s}.{r}"
            drawn.add(run, stage.forward if way == "F" else stage.backward, here, sources)
            if blocking and 0 <= after <= last:
                drawn.add(f"send {run}", stages[min(s, after)].transfer, here, [run])


class _Drawing:
    """Vertices, edges and orders, collected in any sequence."""

    def __init__(self) -> None:
        self._time: dict[str, int] = {}
        self._edges: list[tuple[str, str]] = []
        self.order: dict[str, list[str]] = {}

    def add(self, name: str, time: float, device: str, sources: Iterable[str]) -> None:
        """Add a vertex of so many seconds behind the others of its device."""
        self._time[name] = round(Fraction(time) * _NANOSECONDS)
        self._edges += [(source, name) for source in sources]
        self.order.setdefault(device, []).append(name)

    def built(self) -> Instance:
        """Return the instance; what follows on a device is an edge as well."""
        builder = GraphBuilder()
        for device, names in self.order.items():
            for name in names:
                builder.vertex(name, self._time[name], devices=[device])
        chained = (pair for names in self.order.values() for pair in pairwise(names))
        for source, target in dict.fromkeys((*self._edges, *chained)):
            builder.edge(source, target, None)
        return Instance(builder.build(), Cluster.of([Device(name) for name in self.order]))
