"""Quality of a plan under errors of its costs.

Costs are estimates or measurements. If every run time and every transfer time may be off by up to
a share p, the plan (its placement, and its order on every device and link) is carried out all the
same, but with other times, and another plan may be the best.

**Draws.** Each draw multiplies every run time, of each vertex on each device, and every transfer
time, of each tensor between each pair of devices, by an independent factor. Factors are exact:
drawn uniformly from 201 equidistant values of 1 − p to 1 + p. The plan is timed again in its order,
and the best bound of the redrawn instance is computed, so that ``(makespan − bound) / bound`` is an
upper limit of what the plan then loses against the optimum.

**Guarantee, without draws.** Let M be the makespan of the plan in its order, and L a lower bound,
both at the given costs. For all costs within ±p, if p < 1:

- the plan takes at most (1 + p)·M. With a fixed order on every device and link, its makespan is the
  longest path of an acyclic graph with costs as weights: no cost below (1 + p) times the given one
  can make it longer than (1 + p)·M;
- no plan takes less than (1 − p)·L. A schedule of length C at the true costs is also one, after
  shortening its operations and transfers, at (1 − p) times the given costs; dividing all its times
  by 1 − p gives a schedule of length C / (1 − p) at the given costs, which is at least L.

So the plan takes at most (1 + p) / (1 − p) · M / L times the optimum. The second argument needs
that shortening what runs never costs memory, so there is no guarantee under models of memory that
changes with time; the first needs a fixed order on every channel, so there is none under ``port``
with several channels.

**Assumptions.** Memory is not redrawn, nor are the sends of ``sendrecv``; they lie within ±p, and
the guarantee holds for them. Under models of memory that changes with time, the order may need more
memory at other times; draws in which a limit is then exceeded are counted, and nothing else is said
of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optpart.base.errors import ArgumentError, ContradictionError, InputError
from optpart.base.limits import MOST_RUNS, check_seconds, check_seed
from optpart.lower_bounds.best import BOUNDS, best_bound
from optpart.problem.graph import DelayMatrix
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, rational, shown
from optpart.solution.goal import Task, occupied
from optpart.solution.result import Result
from optpart.solution.schedule import Schedule, retime
from optpart.solution.verifier import verify

#: Factors are 1 + p·j/STEPS for whole j: a large number would make times too fine for bounds.
_STEPS = 100

#: Times that one draw may have.
_MOST_TIMES = 1_000_000

_DYNAMIC = ("edges", "refcount")


@dataclass(frozen=True)
class Draw:
    """One draw of all costs.

    Attributes
    ----------
    makespan : Fraction
        Of the plan, timed again.
    bound : Fraction
        Proven lower bound of the redrawn instance.
    """

    makespan: Fraction
    bound: Fraction

    @property
    def excess(self) -> Fraction | None:
        """``(makespan − bound) / bound``; ``None`` if the bound is 0 and the makespan is not."""
        return _excess(self.makespan, self.bound)


@dataclass(frozen=True)
class Sensitivity:
    """The quality that a plan keeps if costs are off by up to a share.

    Attributes
    ----------
    error : Fraction
        The share p, at least 0 and below 1.
    seed : int
    nominal : Draw
        The plan in its order at the given costs, and the bound that its result proves.
    draws : tuple of Draw
        Those in which the plan keeps all limits.
    overfull : int
        Number of draws in which the plan exceeds a limit of memory that changes with time.
    guarantee : Fraction or None
        The most that the plan can lose, as a share of the optimum, for any costs within ±p.
    unproven : str
        Why there is no guarantee; empty if there is one.
    """

    error: Fraction
    seed: int
    nominal: Draw
    draws: tuple[Draw, ...]
    overfull: int
    guarantee: Fraction | None
    unproven: str = ""

    @property
    def median(self) -> Fraction | None:
        """Median of the excesses, the upper one of two; ``None`` if it is unknown."""
        ordered = self._ordered
        return ordered[len(ordered) // 2] if ordered else None

    @property
    def worst(self) -> Fraction | None:
        """Greatest of the excesses; ``None`` if it is unknown."""
        return self._ordered[-1] if self.draws else None

    def to_dict(self) -> dict[str, object]:
        """Return the figures for a JSON document; exact numbers are texts."""
        exact = {name: getattr(self, name) for name in ("median", "worst", "guarantee")}
        return {
            "error": str(self.error),
            "seed": self.seed,
            "draws": len(self.draws),
            "overfull": self.overfull,
            **{name: None if value is None else str(value) for name, value in exact.items()},
            "unproven": self.unproven,
        }

    @property
    def _ordered(self) -> list[Fraction | None]:
        found = [draw.excess for draw in self.draws]
        return sorted(found, key=lambda excess: (excess is None, excess or 0))


def share(value: str | float | Fraction, place: str = "sensitivity") -> Fraction:
    """Read a share, such as ``"20%"``, ``"0.2"`` or ``0.2``: at least 0, and below 1."""
    text = value.strip() if isinstance(value, str) else value
    percent = isinstance(text, str) and text.endswith("%")
    number = rational(text[:-1] if isinstance(text, str) and percent else text, place)
    found = number / 100 if percent else number
    if not 0 <= found < 1:
        remedy = "give 0% to below 100%, such as 20% or 0.2"
        raise ArgumentError(place, f"{shown(value)} is out of range", remedy)
    return found


def sensitivity(
    result: Result,
    error: str | float | Fraction,
    *,
    draws: int = 100,
    seed: int = 0,
    seconds: float = 30.0,
) -> Sensitivity:
    """Time a plan again, and bound it again, under drawn errors of its costs; see the module.

    Parameters
    ----------
    result : Result
        With a schedule of least makespan as its objective, and nothing given.
    error : str or number
        The share that every cost may be off by, such as ``"20%"`` or ``0.2``.
    draws : int
        Number of draws.
    seconds : float
        For the bounds of all draws together, though cheap ones take what they take. The same seed
        gives the same answer if they end by themselves before that.

    Raises
    ------
    InputError
        If there is no schedule, another objective, something was given, or a number is out of
        range.
    ContradictionError
        If a bound exceeds a valid plan, which is a defect.
    """
    p = share(error)
    check_seed(seed)
    check_seconds(seconds)
    if not 1 <= draws <= MOST_RUNS:
        raise InputError("draws", f"{draws} is out of range", f"give 1 to {MOST_RUNS}")
    schedule = result.schedule
    if schedule is None:
        raise InputError("sensitivity", "there is no schedule", "solve with more time")
    if result.objective != "makespan" or result.given:
        raise InputError(
            "sensitivity",
            "only for a least makespan with nothing given",
            "leave out objective, fix and limits",
        )
    instance = result.instance
    _check_size(instance)
    order = task_order(instance, schedule)
    bound = result.lower_bound or Fraction(0)
    nominal = Draw(retime(instance, schedule.placement, order).makespan(instance), bound)
    rng, errors = random.Random(seed), Errors(instance, p)
    found, overfull = [], 0
    for _ in range(draws):
        other, least = errors.drawn(rng)
        plan = retime(other, schedule.placement, order)
        if verify(other, plan, most=1):
            if instance.model.memory not in _DYNAMIC:
                raise ContradictionError("a plan timed again in its order is not valid")
            overfull += 1
            continue
        makespan = plan.makespan(other)
        proven = bound * least if _static(instance) or not p else Fraction(0)
        if proven < makespan:
            bounded = best_bound(other, seconds / draws, makespan, among=_DETERMINISTIC).value
            if bounded is None or max(bounded, proven) > makespan:
                raise ContradictionError("a lower bound exceeds a valid plan")
            proven = max(bounded, proven)
        found.append(Draw(makespan, proven))
    guarantee, unproven = _guarantee(instance, nominal, p)
    return Sensitivity(p, seed, nominal, tuple(found), overfull, guarantee, unproven)


#: Bounds that end by themselves, and then prove the same however much time they are given.
_DETERMINISTIC = [bound for bound in BOUNDS.values() if bound.cost != "anytime"]


def _excess(makespan: Fraction, bound: Fraction) -> Fraction | None:
    if makespan == bound:
        return Fraction(0)
    return (makespan - bound) / bound if bound else None


def _static(instance: Instance) -> bool:
    return instance.model.memory not in _DYNAMIC


def _guarantee(instance: Instance, nominal: Draw, p: Fraction) -> tuple[Fraction | None, str]:
    if not _static(instance):
        return None, "memory changes with time"
    if instance.model.communication == "port" and instance.model.channels > 1:
        return None, "ports have several channels"
    excess = nominal.excess
    if excess is None:
        return None, "the lower bound is 0"
    return (1 + p) / (1 - p) * (1 + excess) - 1, ""


def _check_size(instance: Instance) -> None:
    k = instance.devices
    times = instance.vertices * k + instance.graph.tensors * k * k
    if times > _MOST_TIMES:
        raise InputError(
            "sensitivity",
            f"{times:,} times in each draw",
            f"ask for instances of at most {_MOST_TIMES:,}",
        )


def task_order(instance: Instance, schedule: Schedule) -> list[Task]:
    """Sort vertices and queueing transfers by start, then end, then producers first."""
    graph = instance.graph
    position = np.empty(instance.vertices, dtype=np.int64)
    position[graph.topological_order] = 2 * np.arange(instance.vertices)
    keyed = []
    for task, what in occupied(instance, schedule):
        u = task if isinstance(task, int) else int(graph.tensor_vertex[task[0]])
        place = int(position[u]) + (not isinstance(task, int))
        keyed.append((what.start, what.end, place, task))
    keyed.sort(key=lambda key: key[:3])
    return [task for *_, task in keyed]


class Errors:
    """The times of an instance, to be drawn again and again.

    Parameters
    ----------
    p : Fraction
        The share that every time may be off by.
    """

    def __init__(self, instance: Instance, p: Fraction) -> None:
        graph, cluster, k = instance.graph, instance.cluster, instance.devices
        self.instance = instance
        self._factors = [1 + p * Fraction(j, _STEPS) for j in range(-_STEPS, _STEPS + 1)]
        allowed = instance.vertex_allowed
        self._durations = [
            [instance.duration(v, d) if allowed[v, d] else None for d in range(k)]
            for v in range(instance.vertices)
        ]
        # A tensor without a size takes the latency.
        self._delays = {
            tensor: [[instance.delay(tensor, d, e) for e in range(k)] for d in range(k)]
            for tensor in np.unique(graph.edge_tensor).tolist()
            if graph.tensor_size[tensor] or tensor in graph.tensor_delay
        }
        self._latency = cluster.latency.fractions()

    def drawn(self, rng: random.Random) -> tuple[Instance, Fraction]:
        """Return the instance at drawn times, and the least factor of any time, at most 1."""
        least = _STEPS

        def drawn(time: Fraction | None) -> Fraction | None:
            nonlocal least
            if not time:
                return time  # nothing to be wrong about, or impossible
            j = rng.randint(0, 2 * _STEPS)
            least = min(least, j)
            return time * self._factors[j]

        graph, cluster, k = self.instance.graph, self.instance.cluster, self.instance.devices
        durations = [[drawn(time) for time in row] for row in self._durations]
        delays: dict[int, DelayMatrix] = {
            tensor: tuple(tuple(drawn(time) for time in row) for row in rows)
            for tensor, rows in self._delays.items()
        }
        latency = RationalArray.from_fractions(
            drawn(time) or Fraction(0) for time in self._latency
        ).reshape(k, k)
        return (
            replace(
                self.instance,
                graph=replace(graph, tensor_delay={**graph.tensor_delay, **delays}),
                cluster=replace(cluster, latency=latency),
                durations=durations,
            ),
            self._factors[least],
        )
