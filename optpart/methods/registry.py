"""Methods by name; they share one signature (design §4).

The names are those of the tables in :mod:`optpart.methods.parts`, of what users have registered and
of what other packages offer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from optpart.base import clock
from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, InputError, PluginError
from optpart.methods.parts import (
    METHODS,
    ORDERED,
    PARTITIONERS,
    SCHEDULERS,
    TABLES,
    USUAL_SCHEDULERS,
    Kind,
    Part,
)

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.solution.goal import Goal
    from optpart.solution.job import Job, Method
    from optpart.solution.result import Result, Watch
    from optpart.strategies.simulator import Scheduler

#: When the code of methods was loaded, in nanoseconds since the epoch: not before this.
LOADED = time.time_ns()

#: Partitioning strategies in every table, and those of them that are there with their own order.
CORE = ("hash", "fastest", "critical-path", "heft")
CORE_ORDERED = ("heft",)

#: A function that a user registers.
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """One row of the list of methods."""

    name: str
    kind: str
    summary: str


def register(
    name: str, summary: str = "", *, kind: Kind = "method"
) -> Callable[[Function], Function]:
    """Register your own method, partitioning strategy or scheduling strategy under a name.

    Parameters
    ----------
    name : str
        Registering the same function again, as in a notebook, replaces it.
    summary : str
        Shown in the list of methods; by default, the first line of the docstring.
    kind : {"method", "partitioner", "scheduler"}
        ``method``: called as ``f(instance, budget=, seed=, start=, watch=)``, returns a
        :class:`~optpart.solution.result.Result`. ``partitioner``: called as ``f(instance, rng)``,
        returns a :class:`~optpart.strategies.base.Partition`, a device number for each vertex, or
        a mapping from vertex names to device names. ``scheduler``: called as
        ``f(tasks, partition, rng)``, returns a
        :class:`~optpart.strategies.simulator.Priority`, or a number for each task; a device runs
        the executable task with the largest number. Strategies combine with all others, as in
        ``NAME+pct`` and ``hash+NAME``.

    Raises
    ------
    InputError
        If the name is in use.

    Examples
    --------
    >>> @register("all-on-first", "everything on device 0")
    ... def all_on_first(instance, *, budget=None, seed=0, start=None, watch=None):
    ...     schedule = retime(
    ...         instance, [0] * instance.vertices, instance.graph.topological_order.tolist()
    ...     )
    ...     return conclude(instance, "all-on-first", schedule, seed=seed)

    >>> @register("first", kind="partitioner")
    ... def first(instance, rng):
    ...     return [0] * instance.vertices
    """
    if kind not in get_args(Kind):
        raise ArgumentError("kind", f"no kind {kind!r}", choice(kind, get_args(Kind)))

    def add(function: Function) -> Function:
        text = summary or (function.__doc__ or "").partition("\n")[0]
        _check_name(name, kind, function)
        table = TABLES[kind]
        table[name] = Part("", text, origin="own", find=lambda: function, since=time.time_ns())
        for method in METHODS.added:
            if split(method) is not None:
                del table[name]
                raise InputError(
                    name, f"would make {method!r} ambiguous", "register it under another name"
                )
        return function

    return add


def _check_name(name: str, kind: Kind, function: Callable[..., Any]) -> None:
    """Reject a name that is in use, or that could not be selected."""
    known, other = TABLES[kind].added.get(name), "choose another name"
    if known is not None:
        if _written_in(known.load()) != _written_in(function):
            raise InputError(name, f"already the name of a registered {kind}", other)
        return
    if kind == "method":
        if name in METHODS.rows or split(name) is not None:
            raise InputError(name, "already the name of a built-in method", other)
        return
    if not name or set(name) & set("+:"):
        raise InputError(name, "not a valid name of a strategy", "use no plus and no colon")
    if name in TABLES[kind].rows:
        raise InputError(name, f"already the name of a built-in {kind}", other)


def _written_in(function: Callable[..., Any]) -> tuple[object, object]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", function)


def own() -> list[str]:
    """Return the names of the registered methods."""
    return [*METHODS.added]


def registered() -> list[tuple[Kind, str, Callable[..., Any], str]]:
    """Return the kind, name, function and summary of everything registered."""
    return [
        (kind, name, part.load(), part.summary)
        for kind, table in TABLES.items()
        for name, part in table.added.items()
    ]


def forget(name: str, kind: Kind = "method") -> None:
    """Remove a registered name."""
    del TABLES[kind][name]


def heuristics() -> list[str]:
    """Return the names of the heuristics in every table.

    They are few and fast: all of them compile within seconds on a new machine.
    """
    return [*CORE_ORDERED, *(f"{p}+{s}" for p in CORE for s in ("fifo", "pct"))]


def starts(*, groups: bool = False) -> list[str]:
    """Return the names of the heuristics that solvers and searches start from, in this order.

    Second comes what leaves few devices idle before the end, as the search of large graphs needs.
    Beyond those in every table, there is the contiguous split: where the network is slow, list
    scheduling scatters what a single cut would separate. Both come early because a search that
    has little time does not try all.

    Parameters
    ----------
    groups : bool
        Whether vertices are colocated, so that the variant of HEFT for groups counts, too.
    """
    early = ["heft+pct", *(["heft-groups"] if groups else [])]
    split = ("contiguous-split", "contiguous-split+pct")
    return list(dict.fromkeys([*CORE_ORDERED, *early, *split, *heuristics()]))


def own_heuristics() -> list[str]:
    """Return the names of the pairs with registered strategies that appear in every table."""
    schedulers = [*SCHEDULERS.added]
    return [
        *(f"{p}+{s}" for p in PARTITIONERS.added for s in ("fifo", "pct", *schedulers)),
        *(f"{p}+{s}" for p in CORE for s in schedulers),
    ]


def built_in_pairs() -> list[str]:
    """Return the names of built-in pairs, and of built-in strategies with their own order."""
    own_order = [name for name in _installed() if name in ORDERED]
    return [*own_order, *(f"{p}+{s}" for p in _installed() for s in USUAL_SCHEDULERS)]


def pairs() -> list[str]:
    """Return the names of all pairs, and of the strategies with their own order."""
    partitioners = [name for name in PARTITIONERS if name not in PARTITIONERS.rows]
    schedulers = [name for name in SCHEDULERS if name not in SCHEDULERS.rows]
    return [
        *built_in_pairs(),
        *(f"{p}+{s}" for p in _installed() for s in schedulers),
        *(f"{p}+{s}" for p in partitioners for s in (*USUAL_SCHEDULERS, *schedulers)),
    ]


def _installed() -> list[str]:
    """Return the partitioning strategies of every table."""
    rows = PARTITIONERS.rows.items()
    return [name for name, part in rows if part.available and not part.special]


def entries() -> list[Entry]:
    """List all names that ``--method`` accepts."""
    tables = (
        (PARTITIONERS, "partitioning", "{}+SCHEDULER"),
        (SCHEDULERS, "scheduling", "PARTITIONING+{}"),
        (METHODS, "solver", "{}"),
    )
    rows = [
        Entry(form.format(name), part.origin or kind, part.summary)
        for origin in ("", "own", "plug-in")
        for table, kind, form in tables
        for name, part in table.items()
        if part.origin == origin
    ]
    ordered = [Entry(name, "heuristic", "with its own order") for name in ORDERED]
    place = next(i for i, row in enumerate(rows) if row.kind == "solver")
    return [*rows[:place], *ordered, *rows[place:]]


def get(name: str) -> Method:
    """Return a method by name; for an unknown name, raise :class:`InputError`."""
    if not isinstance(name, str):
        raise ArgumentError("method", f"{name!r} is not a name", "'optpart methods' lists them")
    if (parts := split(name)) is not None:
        return _pair(name, *parts)
    if name in METHODS:
        method: Method = METHODS[name].load()
        return method
    known = [*ORDERED, *METHODS, *(f"{p}+{s}" for p in PARTITIONERS for s in SCHEDULERS)]
    from optpart.problem.rational import shown  # loads numpy

    remedy = choice(name, known, "optpart methods")
    raise ArgumentError("method", f"no method {shown(name)}", remedy)


def run(name: str, job: Job, watch: Watch | None = None, **options: Any) -> Result:
    """Run a method on a job; ``options`` are arguments of its own.

    A registered method is called with the instance and the rest of the job by keyword, the goal
    only where it is not the least makespan.
    """
    from optpart.solution.goal import Goal

    solve: Callable[..., Result] = get(name)
    if not is_own(name) or split(name) is not None:
        return solve(job, watch, **options)
    if job.goal != Goal():
        options["goal"] = job.goal
    if job.without:
        options["without"] = job.without
    return solve(
        job.instance, budget=job.budget, seed=job.seed, start=job.start, watch=watch, **options
    )


def check(name: str) -> None:
    """Raise the :class:`InputError` of :func:`get` if the name is unknown.

    A plug-in that exists but cannot be loaded is accepted here; it fails when used.
    """
    try:
        get(name)
    except InputError:
        raise
    except (Exception, SystemExit):  # loading a plug-in may raise anything
        pass


def foreign(name: str) -> list[tuple[Kind, str]]:
    """Return the parts of a method that are not built in: itself, or strategies of a pair."""
    parts = split(name)
    if parts is None:
        return [] if name in METHODS.rows else [("method", name)]
    partition, scheduler = parts[0].partition(":")[0], parts[1]
    found: list[tuple[Kind, str]] = []
    if partition not in PARTITIONERS.rows:
        found.append(("partitioner", partition))
    if scheduler and scheduler not in SCHEDULERS.rows:
        found.append(("scheduler", scheduler))
    return found


def is_own(name: str) -> bool:
    """Return whether a method, or a part of it, is not built in, so that it may claim anything."""
    return bool(foreign(name))


def takes(name: str, parameter: str) -> bool:
    """Return whether a method has a parameter; raise :class:`InputError` for an unknown name.

    For registered methods and plug-ins, the signature of the function decides.
    """
    if name in METHODS.rows:
        return parameter in METHODS[name].takes
    method = get(name)
    return split(name) is None and parameter in signature(method).parameters


def takes_goal(name: str) -> bool:
    """Return whether a method supports goals; see :func:`takes`."""
    return takes(name, "goal")


def taking(parameter: str) -> list[str]:
    """Return the names of the solvers and registered methods that have a parameter."""
    return [name for name in (*METHODS.rows, *METHODS.added) if takes(name, parameter)]


def repairs(name: str) -> bool:
    """Return whether a method repairs invalid starts."""
    return name in METHODS.rows and METHODS[name].repairs


def supports(name: str, instance: Instance, goal: Goal | None = None) -> str:
    """Return why a method does not support a goal on an instance; empty if it does.

    Some limits, such as the size of a model, are detected only when the method runs.

    Parameters
    ----------
    goal : Goal, optional
        By default, minimising the makespan, which every method supports.

    Raises
    ------
    InputError
        If the name is unknown, or the goal refers to something that the instance lacks.
    """
    fault = _fault(name, instance, goal)
    return "" if fault is None else fault.problem


def _fault(name: str, instance: Instance, goal: Goal | None) -> InputError | None:
    from optpart.solution.goal import Goal

    goal = goal or Goal()
    goal.check(instance)
    if goal != Goal() and not takes_goal(name):
        unable = (
            "does not support contiguous blocks"
            if goal.blocks
            else "can only minimise the makespan"
        )
        return ArgumentError("method", unable, "")
    if name in METHODS.rows:
        return METHODS[name].fault(instance, goal)
    check(name)
    pair = split(name)
    return _row_of(pair[0]).fault(instance, goal) if pair else None


def _row_of(partition: str) -> Part:
    """Return the row of a partitioning strategy, which may have an argument."""
    return PARTITIONERS[partition.partition(":")[0]]


def supporting(instance: Instance, goal: Goal | None = None) -> list[str]:
    """Return the names of all methods that support a goal on an instance, solvers first.

    Plug-ins that cannot be loaded are omitted.
    """
    plug_ins = [name for name, part in METHODS.items() if part.origin == "plug-in"]
    special = [name for name, part in PARTITIONERS.rows.items() if part.special]
    names = [*METHODS.rows, *METHODS.added, *pairs(), *special, *plug_ins]
    return _able(names, instance, goal)


def _able(names: Iterable[str], instance: Instance, goal: Goal | None) -> list[str]:
    found = []
    for name in names:
        try:
            get(name)
        except (Exception, SystemExit):  # loading a plug-in may raise anything
            continue
        if not supports(name, instance, goal):
            found.append(name)
    return found


def require(name: str, instance: Instance, goal: Goal | None = None) -> None:
    """Raise an error if a method does not support a goal on an instance.

    Raises
    ------
    InputError
        With the reason, and the names of the solvers and registered methods that support it.
    """
    fault = _fault(name, instance, goal)
    if fault is None:
        return
    able = listed(_able(METHODS, instance, goal))
    if isinstance(fault, ArgumentError):
        remedy = f"use {able}" if able else "no other method can"
        raise ArgumentError(fault.place, f"{name} {fault.problem}", remedy)
    remedy = f"{fault.remedy}, or use {able}" if able else fault.remedy
    raise type(fault)(fault.place, fault.problem, remedy)


def listed(names: Sequence[str]) -> str:
    """Join names as in ``a, b or c``."""
    *most, last = names or [""]
    return f"{', '.join(most)} or {last}" if most else last


def split(name: str) -> tuple[str, str] | None:
    """Return the partitioning and the scheduling part of a pair; ``None`` for any other method.

    The scheduling part is empty if the name selects the strategy's own order.
    """
    partition, plus, scheduler = name.rpartition("+")
    if not plus:
        return (name, "") if name in ORDERED else None
    first, colon, _ = partition.partition(":")
    strategy = PARTITIONERS.get(first)
    if strategy is None or (colon and not strategy.argument):
        return None
    return (partition, scheduler) if scheduler in SCHEDULERS else None


def partitioner(name: str) -> Callable[..., Any]:
    """Return a partitioning strategy by name, with the argument after a colon bound.

    What one that is not built in returns is checked.
    """
    strategy, colon, argument = name.partition(":")
    part = PARTITIONERS.get(strategy)
    if part is None:
        raise InputError("method", f"no partitioner {name!r}", choice(name, PARTITIONERS))
    if part.origin:
        from optpart.methods.own import checked_partitioner

        return checked_partitioner(strategy, part.load())
    return partial(part.load(), **{part.argument: argument}) if colon else part.load()


def scheduler(name: str) -> Scheduler:
    """Return a scheduling strategy by name; what one that is not built in returns is checked."""
    part = SCHEDULERS.get(name)
    if part is None:
        raise InputError("method", f"no scheduler {name!r}", choice(name, SCHEDULERS))
    if part.origin:
        from optpart.methods.own import checked_scheduler

        return checked_scheduler(name, part.load())
    found: Scheduler = part.load()
    return found


@cache
def _pair(name: str, partition: str, order: str) -> Method:
    """Combine a partitioning and a scheduling strategy into a method."""
    from optpart.solution.job import method

    @method
    def run(job: Job, watch: Watch | None = None) -> Result:
        import numpy as np

        from optpart.base.clock import OutOfTimeError, limited
        from optpart.solution.goal import Goal
        from optpart.solution.result import conclude
        from optpart.solution.termination import Termination
        from optpart.strategies.base import NoPlacementError
        from optpart.strategies.simulator import simulate

        instance, seed = job.instance, job.seed
        if fault := _row_of(partition).fault(instance, Goal()):
            raise fault
        begin = clock.now()
        schedule, reason, ended = None, "", Termination.COMPLETED
        allowed = math.inf if job.budget.deterministic is not None else job.budget.seconds
        try:
            place, rule = partitioner(partition), scheduler(order) if order else None
            begin = clock.now()  # what is loaded once is not the method's time
            with limited(allowed) as limit:
                found = place(instance, np.random.default_rng(seed))
            if limit.reached:
                reason, ended = str(Termination.TIME_LIMIT), Termination.TIME_LIMIT
            if rule is not None:
                schedule = simulate(instance, found, rule, seed)
            else:
                schedule = found.schedule(instance)
        except OutOfTimeError:
            reason, ended = str(Termination.TIME_LIMIT), Termination.TIME_LIMIT
        except NoPlacementError as error:
            reason = str(error)
        except PluginError:
            raise
        except InputError as error:  # placements of built-in strategies have schedules
            if not is_own(name):
                raise
            reason = f"its placement has no schedule: {error.problem}"
        seconds = clock.now() - begin
        return conclude(
            instance,
            name,
            schedule,
            termination=ended,
            reason=reason,
            seconds=seconds,
            seed=seed,
        )

    return run
