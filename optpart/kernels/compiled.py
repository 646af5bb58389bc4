"""Support for compiled code: the decorator, and an instance as flat arrays of doubles.

Compiled code chooses but never proves: its times are doubles, its schedules are timed again in
exact arithmetic, and its bounds are computed on integers (:mod:`optpart.kernels.ticks`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property, update_wrapper
from typing import Any, NamedTuple, TypeVar, cast
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time
from optpart.kernels import store
from optpart.kernels.struct import BoolMatrix, FloatCube, FloatMatrix, Struct
from optpart.kernels.ticks import quantum
from optpart.problem.graph import grouped
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray

Function = TypeVar("Function", bound=Callable[..., Any])

_LARGE = 10**300

#: Capacity of a device without a memory limit.
UNLIMITED = 2**62

#: A short kernel is interpreted while its arguments have at most this many entries in all.
_SMALL = 4000

#: Seconds of interpreting, by all kernels, after which machine code is loaded: what that takes.
_LOADING = 0.5

#: How many times as long as machine code an interpreted loop takes, about.
_SLOWDOWN = 256

#: Seconds between two looks whether another process has compiled a kernel.
_LOOK = 0.1


class _OfThread(threading.local):
    """A flag per thread: a kernel is being interpreted, and with it all that it calls."""

    interpreting = False


_of_thread = _OfThread()

#: Functions that the compiler, which is loaded when the first kernel needs it, does not know yet.
_waiting: list[Callable[..., Any]] = []

#: All functions that are for compiled code only.
INNER: list[Callable[..., Any]] = []

_knowing = threading.Lock()


class Kernel:
    """A function that runs as machine code where that is worth its price.

    To load the compiler takes half a second. A *short* kernel, whose steps are few where its
    arguments are small, is therefore interpreted at first. While another process compiles what is
    not on disk yet (:mod:`optpart.kernels.all`), all kernels are interpreted but *long* ones, which
    wait for that process until the time limit. The result is always the same. This class alone
    decides.

    Attributes
    ----------
    py_func : callable
        The function as written.
    """

    _interpreted = 0.0

    def __init__(
        self, function: Callable[..., Any], *, short: bool = False, long: bool = False
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._short, self._long = short, long

    def __call__(self, *arguments: Any) -> Any:
        """Run the function.

        Raises
        ------
        OutOfTimeError
            If the time limit is over before it is compiled.
        """
        if "dispatcher" not in self.__dict__:
            if _of_thread.interpreting:
                return self.py_func(*arguments)
            if self._short and self._prefers_python(arguments):
                return self._interpret(arguments)
            while self.awaited:
                if not self._long:
                    return self._interpret(arguments)
                check_time()
                time.sleep(_LOOK)
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """The machine code, loaded from disk, or compiled and kept there."""
        with _knowing:
            self._compiler.teach(Kernel, _waiting)
            _waiting.clear()
        return self._compiler.compiled(self.py_func)

    @property
    def awaited(self) -> bool:
        """True if another process still compiles it; it does not compile strategies of users."""
        ours = self.py_func.__module__.partition(".")[0] == __name__.partition(".")[0]
        missing = "dispatcher" not in self.__dict__ and store.others_compile()
        return ours and missing and self.kept_as is None

    @property
    def kept_as(self) -> str | None:
        """The name of the file with the machine code, if there is one."""
        found: str | None = self._compiler.kept_as(self.py_func)
        return found

    @property
    def _compiler(self) -> Any:
        from optpart.kernels import machine_code

        return machine_code

    def _prefers_python(self, arguments: tuple[Any, ...]) -> bool:
        return Kernel._interpreted <= _LOADING and _entries(arguments) <= _SMALL

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        _of_thread.interpreting, begin = True, time.perf_counter()
        try:
            # Compiled code neither warns of infinities nor of integers that wrap around.
            with np.errstate(all="ignore"):
                return _plain(self.py_func(*arguments))
        finally:
            _of_thread.interpreting = False
            Kernel._interpreted += time.perf_counter() - begin


def _entries(arguments: Iterable[Any]) -> int:
    """Return the number of entries of all arrays among the arguments, in tuples and structs too."""
    count = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            count += argument.size
        elif isinstance(argument, (tuple, Struct)):
            count += _entries(argument)
    return count


def _plain(result: Any) -> Any:
    """Return a result with Python's numbers in place of numpy's, as compiled code returns it."""
    if isinstance(result, np.generic):
        return result.item()
    if type(result) is tuple:
        return tuple(map(_plain, result))
    return result


def kernel(function: Function) -> Function:
    """Make a kernel: machine code that is kept on disk."""
    return cast(Function, Kernel(function))


def short_kernel(function: Function) -> Function:
    """Make a kernel that may be interpreted: its steps are few where its arguments are small."""
    return cast(Function, Kernel(function, short=True))


def long_kernel(function: Function) -> Function:
    """Make a kernel that would take forever if it were interpreted."""
    return cast(Function, Kernel(function, long=True))


def slowdown(function: Callable[..., Any]) -> int:
    """Return how many times as long as its machine code a kernel takes: 1, unless that is missing.

    Whoever calls one with as much work as there is time for divides the work by this.
    """
    return _SLOWDOWN if isinstance(function, Kernel) and function.awaited else 1


def inner(function: Function) -> Function:
    """Compile a function for calls from kernels only, which avoids a costly Python wrapper."""
    with _knowing:
        _waiting.append(function)
        INNER.append(function)
    return function


def inlined(function: Function) -> Function:
    """Make an inner function that is part of each caller: for the innermost loops only.

    A call takes a few nanoseconds, and a copy of the function a part of a second to compile.
    """
    vars(function)["inlined"] = True
    return inner(function)


class Arrays(Struct):
    """An instance as compiled code sees it.

    Times are in units of ``1/scale``. If the instance has an exact grid, that unit is its tick: all
    times are whole numbers, and arithmetic with them in doubles is exact.
    """

    scale: float
    order: NDArray[np.int32]  # topological
    ops: NDArray[np.float64]  # n, scaled so that ops / speed is a time
    speed: NDArray[np.float64]  # k
    durations: FloatMatrix  # n × k, or 0 × k if they follow from ops and speed
    tensor_vertex: NDArray[np.int32]
    size: NDArray[np.float64]  # t, scaled so that size / bandwidth is a time
    bandwidth: FloatMatrix  # k × k; inf where unlimited, 0 where there is no link
    latency: FloatMatrix  # k × k
    measured_row: NDArray[np.int32]  # t; −1, or the row of ``measured``
    measured: FloatCube  # m × k × k; −1 where the tensor cannot cross
    in_start: NDArray[np.int32]
    in_source: NDArray[np.int32]  # per in-edge
    in_tensor: NDArray[np.int32]
    out_start: NDArray[np.int32]
    out_target: NDArray[np.int32]  # per out-edge
    out_tensor: NDArray[np.int32]
    unit: NDArray[np.int32]  # n
    unit_start: NDArray[np.int32]
    unit_vertex: NDArray[np.int32]
    allowed: BoolMatrix  # units × k
    need: NDArray[np.int64]  # units: static memory
    capacity: NDArray[np.int64]  # k
    apart_start: NDArray[np.int32]
    apart: NDArray[np.int32]  # units that must not share a device
    may_block: bool  # whether some tensor cannot cross between some devices


#: By identity: to compare an instance with an equal one takes longer than to find its arrays.
_cache: dict[int, Arrays] = {}


def arrays(instance: Instance) -> Arrays:
    """Return the arrays of an instance, built once and cached."""
    key = id(instance)
    if key not in _cache:
        _cache[key] = _build(instance)
        finalize(instance, _cache.pop, key, None)
    return _cache[key]


def _floats(values: RationalArray, factor: Fraction = Fraction(1)) -> NDArray[np.float64]:
    """Return ``values · factor`` as the nearest doubles, exact if whole and below 2^53."""
    scale = factor / values.denominator
    numerators = values.numerators
    if scale.denominator == 1 and scale <= _LARGE and numerators.dtype != object:
        return np.asarray(numerators * float(scale.numerator), dtype=np.float64)
    if numerators.dtype == object or max(scale.numerator, scale.denominator) > _LARGE:
        # Beyond doubles, all is equally large: heuristics choose blindly; proofs never look here.
        exact = (Fraction(int(n)) * scale for n in numerators.ravel())
        flat = [float(min(value, Fraction(_LARGE))) for value in exact]
        return np.array(flat, dtype=np.float64).reshape(numerators.shape)
    return np.asarray(
        numerators * float(scale.numerator) / float(scale.denominator), dtype=np.float64
    )


def _build(instance: Instance) -> Arrays:
    graph, cluster = instance.graph, instance.cluster
    k, units = instance.devices, len(instance.units)
    step = quantum(instance)
    scale = 1 / step if step else Fraction(1)
    given = instance.given_durations
    durations = np.zeros((0, k)) if given is None else _floats(given.times, scale)
    bandwidth = cluster.bandwidth.numerators.astype(np.float64)
    bandwidth[cluster.infinite] = np.inf
    measured_row = np.full(graph.tensors, -1, dtype=np.int32)
    measured = np.full((len(graph.tensor_delay), k, k), -1.0)
    for row, (tensor, matrix) in enumerate(graph.tensor_delay.items()):
        measured_row[tensor] = row
        for d in range(k):
            for e in range(k):
                entry = matrix[d][e]
                if entry is not None:
                    measured[row, d, e] = float(entry * scale)
    in_start, out_start = graph.in_edges[0], graph.out_edges[0]
    # Edges between the same two vertices are adjacent, so that neighbours count once.
    in_edges = np.lexsort((graph.edge_source, graph.edge_target))
    out_edges = np.lexsort((graph.edge_target, graph.edge_source))
    unit_start, unit_vertex = grouped(instance.unit_of, units)
    need, capacity = whole_memory(instance, relax=False)
    pairs = np.array(instance.separated_units, dtype=np.int32).reshape(-1, 2)
    both = np.concatenate((pairs, pairs[:, ::-1]))
    apart_start, apart_order = grouped(both[:, 0].copy(), units)
    return Arrays(
        scale=float(scale),
        # Copies, because numba would compile for read-only arrays separately.
        order=graph.topological_order.copy(),
        ops=_floats(graph.ops, scale * cluster.speed.denominator),
        speed=cluster.speed.numerators.astype(np.float64),
        durations=durations,
        tensor_vertex=graph.tensor_vertex.copy(),
        size=_floats(graph.tensor_size, scale * cluster.bandwidth.denominator),
        bandwidth=bandwidth,
        latency=_floats(cluster.latency, scale),
        measured_row=measured_row,
        measured=measured,
        in_start=in_start,
        in_source=graph.edge_source[in_edges],
        in_tensor=graph.edge_tensor[in_edges],
        out_start=out_start,
        out_target=graph.edge_target[out_edges],
        out_tensor=graph.edge_tensor[out_edges],
        unit=instance.unit_of,
        unit_start=unit_start,
        unit_vertex=unit_vertex,
        allowed=instance.allowed,
        need=need,
        capacity=capacity,
        apart_start=apart_start,
        apart=both[apart_order, 1].copy(),
        may_block=not bool(cluster.linked.all()) or bool((measured < 0).any()),
    )


def whole_memory(instance: Instance, *, relax: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return static memory per unit and capacity per device as whole numbers.

    See :func:`whole_amounts` for ``relax``.
    """
    return whole_amounts(instance.static_memory, instance.cluster.memory, relax=relax)


def whole_amounts(
    amounts: RationalArray, limits: Sequence[Fraction | None], *, relax: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return amounts of memory, and the limits of their sums, as whole numbers.

    Parameters
    ----------
    limits : sequence of Fraction or None
        ``None`` becomes ``UNLIMITED``.
    relax : bool
        How to round where sums of the exact numbers could reach 2^62. ``False`` rounds needs up, so
        that whatever fits here really fits; ``True`` rounds them down, so that whatever really fits
        also fits here, as proofs require.
    """
    common = math.lcm(amounts.denominator, *(m.denominator for m in limits if m is not None))
    needs = [int(value) * (common // amounts.denominator) for value in amounts.numerators.tolist()]
    caps = [None if m is None else int(m * common) for m in limits]
    divide = max(1, -(-(sum(needs) + 1) // 2**61))
    # Whole numbers add up to at most ⌊capacity⌋ if and only if they do to at most the capacity.
    need = [value // divide if relax else -(-value // divide) for value in needs]
    capacity = [UNLIMITED if c is None else min(UNLIMITED, c // divide) for c in caps]
    return np.array(need, dtype=np.int64), np.array(capacity, dtype=np.int64)


@inner
def run_time(a: Arrays, v: int, d: int) -> Any:
    """Return ``p[v,d]``."""
    if a.durations.shape[0]:
        return a.durations[v, d]
    return a.ops[v] / a.speed[d]


@inner
def crossing_time(a: Arrays, tensor: int, d: int, e: int) -> Any:
    """Return ``δ(τ,d,e)``; −1 where the tensor cannot cross."""
    if d == e:
        return 0.0
    rate = a.bandwidth[d, e]
    if rate == 0.0:
        return -1.0
    row = a.measured_row[tensor]
    if row >= 0:
        return a.measured[row, d, e]
    return a.latency[d, e] + a.size[tensor] / rate


class State(NamedTuple):
    """Units placed so far.

    Attributes
    ----------
    device : ndarray of int32, one per unit
        −1 where not placed.
    used : ndarray of int64, one per device
        Static memory taken.
    placed : ndarray of int64, one per unit and one
        Number of units placed before it; the last entry counts all.
    """

    device: NDArray[np.int32]
    used: NDArray[np.int64]
    placed: NDArray[np.int64]


@inner
def nothing_placed(a: Arrays) -> Any:
    """Return the state in which no unit is placed."""
    units = a.need.shape[0]
    return State(
        np.full(units, -1, np.int32), np.zeros(a.speed.shape[0], np.int64),
        np.zeros(units + 1, np.int64),
    )  # fmt: skip


@inner
def fits(a: Arrays, unit: int, d: int, state: State) -> Any:
    """Return whether a unit may go to ``d``, given where the others are."""
    device, used = state.device, state.used
    if not a.allowed[unit, d] or used[d] + a.need[unit] > a.capacity[d]:
        return False
    for i in range(a.apart_start[unit], a.apart_start[unit + 1]):
        if device[a.apart[i]] == d or a.apart[i] == unit:
            return False
    if not a.may_block:
        return True
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            other = device[a.unit[a.in_source[e]]]
            if other >= 0 and crossing_time(a, a.in_tensor[e], other, d) < 0.0:
                return False
        for e in range(a.out_start[v], a.out_start[v + 1]):
            other = device[a.unit[a.out_target[e]]]
            if other >= 0 and crossing_time(a, a.out_tensor[e], d, other) < 0.0:
                return False
    return True


@inner
def assign(a: Arrays, unit: int, d: int, state: State) -> None:
    """Place a unit."""
    state.device[unit] = d
    state.used[d] += a.need[unit]
    state.placed[unit] = state.placed[-1]
    state.placed[-1] += 1
