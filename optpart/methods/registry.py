"""The registry of all methods by name; they share one signature (design §4).

Importing it loads neither a method nor the parts that methods consist of: ``optpart methods`` lists
them in a moment.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

from optpart.base import clock
from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, InputError, PluginError

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.solution.goal import Goal
    from optpart.solution.job import Job, Method
    from optpart.solution.result import Result, Watch
    from optpart.strategies.simulator import Scheduler


class Strategy(NamedTuple):
    """The location of a strategy, which is imported on first use, and a one-line summary.

    ``needs`` names an optional package, ``argument`` the parameter that receives the text after a
    colon in the name of a method. ``takes`` names the parameters beyond those of every method:
    ``goal``, ``without`` for pruning rules to disable, ``checkpoint`` for the file of its state.
    ``scope`` is the location of a function that raises :class:`InputError` for an instance and a
    goal that the strategy does not support; it is empty if all are supported. ``repairs`` states
    whether it can repair an invalid start.
    """

    path: str
    summary: str
    options: Mapping[str, object] = MappingProxyType({})
    needs: str = ""
    argument: str = ""
    takes: tuple[str, ...] = ()
    scope: str = ""
    repairs: bool = False

    @property
    def available(self) -> bool:
        """True if the optional package that it needs is installed."""
        return not self.needs or find_spec(self.needs) is not None

    def load(self) -> Callable[..., Any]:
        """Return the function with its options bound."""
        found = _load(self.path)
        return partial(found, **self.options) if self.options else found

    def fault(self, instance: Instance, goal: Goal) -> InputError | None:
        """Return why it does not support a goal on an instance; ``None`` if it does."""
        if not self.scope:
            return None
        try:
            _load(self.scope)(instance, goal)
        except InputError as error:
            return error
        return None


@dataclass(frozen=True)
class Own:
    """A strategy registered by a user or provided by another package."""

    name: str
    summary: str
    find: Callable[[], Callable[..., Any]]
    checked: Callable[[str, Callable[..., Any]], Callable[..., Any]]
    available: bool = True
    argument: str = ""

    def load(self) -> Callable[..., Any]:
        """Return the function, wrapped to check its results and to raise PluginError on failure."""
        return self.checked(self.name, self.find())


@dataclass(frozen=True)
class Foreign:
    """A method or strategy that is not built in.

    Attributes
    ----------
    function : callable or None
        As it was registered; ``None`` if it cannot be loaded.
    since : int
        A moment, in nanoseconds since the epoch: a file that is newer may not be what was loaded.
    distribution : str
        Of an entry point.
    """

    kind: str
    name: str
    function: Callable[..., Any] | None
    since: int
    distribution: str = ""


def _load(path: str) -> Callable[..., Any]:
    """Return the object that a path ``module:name`` refers to."""
    module, _, attribute = path.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found


_PAPER = MappingProxyType({"variant": "paper"})

PARTITIONERS = {
    "hash": Strategy(
        "optpart.strategies.partition.hashing:hashing", "units to devices round-robin [L] §4.2"
    ),
    "hash-random": Strategy(
        "optpart.strategies.partition.random_hashing:random_hashing",
        "at random, weighted by capacity [M] §3.1",
    ),
    "fastest": Strategy(
        "optpart.strategies.partition.fastest:fastest", "all on the fastest feasible device"
    ),
    "single": Strategy(
        "optpart.strategies.partition.single_device:single_device", "everything on one device [B]"
    ),
    "batch-split": Strategy(
        "optpart.strategies.partition.batch_split:batch_split",
        "by rank, an equal share per device [L] §4.4",
    ),
    "batch-split-paper": Strategy(
        "optpart.strategies.partition.batch_split:batch_split",
        "by rank to the fastest feasible device [M] §3.2.1",
        _PAPER,
    ),
    "critical-path": Strategy(
        "optpart.strategies.partition.critical_path:critical_path",
        "critical path on the fastest device, the rest by load [L] §4.6",
    ),
    "critical-path-paper": Strategy(
        "optpart.strategies.partition.critical_path:critical_path",
        "critical-path as in [M] §3.2.2",
        _PAPER,
    ),
    "iterated-critical-path": Strategy(
        "optpart.strategies.partition.iterated_critical_path:iterated_critical_path",
        "each next critical path to the least loaded device [L] §4.5",
    ),
    "mite": Strategy(
        "optpart.strategies.partition.mite:mite",
        "memory, importance, traffic, execution time [L] §4.7",
    ),
    "mite-paper": Strategy(
        "optpart.strategies.partition.mite:mite", "mite as in [M] §3.3.1", _PAPER
    ),
    "dfs": Strategy(
        "optpart.strategies.partition.dfs:depth_first",
        "depth first, by traffic and execution time [L] §4.8",
    ),
    "dfs-paper": Strategy(
        "optpart.strategies.partition.dfs:depth_first", "dfs as in [M] §3.3.2", _PAPER
    ),
    "heft": Strategy(
        "optpart.strategies.partition.heft:heft", "earliest finish time with insertion [L] §4.3"
    ),
    "heft-groups": Strategy(
        "optpart.strategies.partition.heft_groups:heft_groups",
        "colocation groups by load, then HEFT; each ranked as if it had a device of its own",
    ),
    "cpop": Strategy(
        "optpart.strategies.partition.cpop:cpop", "critical path on one processor (2002)"
    ),
    "peft": Strategy("optpart.strategies.partition.peft:peft", "optimistic cost table (2014)"),
    "etf": Strategy("optpart.strategies.partition.etf:etf", "earliest task first (1989)"),
    "min-min": Strategy(
        "optpart.strategies.partition.ready_list:min_min",
        "ready vertices, the earliest finish first (1977)",
    ),
    "max-min": Strategy(
        "optpart.strategies.partition.ready_list:max_min",
        "ready vertices, the latest earliest finish first (1977)",
    ),
    "sufferage": Strategy(
        "optpart.strategies.partition.ready_list:sufferage",
        "ready vertices, the largest loss without the best device first (1999)",
    ),
    "dls": Strategy("optpart.strategies.partition.dls:dls", "dynamic level scheduling (1993)"),
    "heft-lookahead": Strategy(
        "optpart.strategies.partition.heft_lookahead:heft_lookahead",
        "HEFT that looks ahead at the successors (2010)",
    ),
    "white-paper": Strategy(
        "optpart.strategies.partition.white_paper:white_paper",
        "greedy earliest finish of the TensorFlow white paper [L] ch. 8",
    ),
    "up-rank": Strategy(
        "optpart.strategies.partition.up_rank:up_rank", "by upward rank, devices in turn [B] §4.1"
    ),
    "task-parallel": Strategy(
        "optpart.strategies.partition.task_parallel:task_parallel",
        "ready vertices spread over all devices [B] §4.2",
    ),
    "scoring": Strategy(
        "optpart.strategies.partition.scoring:scoring", "load against communication [B] §4.3"
    ),
    "scoring-tuned": Strategy(
        "optpart.strategies.partition.scoring_tuned:scoring_tuned",
        "scoring with weights found by search [B] §5.4",
    ),
    "cluster-load": Strategy(
        "optpart.strategies.partition.cluster:cluster",
        "randomised contraction, even clusters [B] §4.4",
        MappingProxyType({"version": "load"}),
    ),
    "cluster-comm": Strategy(
        "optpart.strategies.partition.cluster:cluster",
        "randomised contraction, few edges cut [B] §4.4",
        MappingProxyType({"version": "comm"}),
    ),
    "cluster-cap": Strategy(
        "optpart.strategies.partition.cluster:cluster",
        "few edges cut, sizes capped [B] §4.4, §5.6",
        MappingProxyType({"version": "cap"}),
    ),
    "expert": Strategy(
        "optpart.strategies.partition.expert:expert",
        "one layer per device, by names; expert:FILE uses the rules in FILE [B]",
        argument="rules",
    ),
    "linear-greedy": Strategy(
        "optpart.strategies.partition.linear_greedy:linear_greedy",
        "streaming: weighs neighbours against load [B] §6.3.1",
    ),
    "min-cut": Strategy(
        "optpart.strategies.partition.min_cut:min_cut",
        "multilevel graph partitioning by METIS; needs optpart[metis] [B] §6.3.2",
        needs="pymetis",
    ),
    "sequential-fill": Strategy(
        "optpart.strategies.partition.sequential_fill:sequential_fill",
        "one device after the other, as device_map=sequential of accelerate",
    ),
    "balanced-fill": Strategy(
        "optpart.strategies.partition.sequential_fill:sequential_fill",
        "sequential-fill with equal shares of memory, as device_map=auto",
        MappingProxyType({"balanced": True}),
    ),
    "contiguous-split": Strategy(
        "optpart.strategies.partition.contiguous_split:contiguous_split",
        "a segment of a topological order per device, for the least latency",
    ),
    "pipedream": Strategy(
        "optpart.strategies.partition.pipedream:pipedream",
        "a segment per device, for the least bottleneck (2019)",
    ),
    "exo-memory": Strategy(
        "optpart.strategies.partition.exo:exo", "a segment per device, in proportion to its memory"
    ),
    "exo-bandwidth": Strategy(
        "optpart.strategies.partition.exo:exo",
        "a segment per device, in proportion to its memory bandwidth or speed",
        MappingProxyType({"by": "bandwidth"}),
    ),
}
SCHEDULERS = {
    "fifo": Strategy(
        "optpart.strategies.scheduling.priorities:fifo", "first executable, first served [L] §5.2"
    ),
    "pct": Strategy(
        "optpart.strategies.scheduling.priorities:pct", "longest remaining path first [L] §5.3"
    ),
    "msr": Strategy(
        "optpart.strategies.scheduling.priorities:msr",
        "maximal successor rank: what enables other devices first [L] §5.4",
    ),
    "as-placed": Strategy(
        "optpart.strategies.scheduling.priorities:as_placed",
        "the order in which vertices were placed",
    ),
}
#: Schedulers for one communication model or for comparison: valid after the plus, but not included
#: in every table. ``heterog`` is ``pct`` under another name; see its module.
SPECIAL_SCHEDULERS = {
    "heterog": Strategy(
        "optpart.strategies.scheduling.priorities:heterog",
        "computation and transfers ranked alike [G] §4.2",
    ),
    "tao": Strategy(
        "optpart.strategies.scheduling.tao:tao", "transfers by overlap, with times [H] §4.2"
    ),
    "tao-printed": Strategy(
        "optpart.strategies.scheduling.tao:tao",
        "tao with the comparator as printed [H] algorithm 2",
        MappingProxyType({"variant": "printed"}),
    ),
    "tio": Strategy(
        "optpart.strategies.scheduling.tio:tio", "transfers by dependencies alone [H] §4.3"
    ),
    "random-order": Strategy(
        "optpart.strategies.scheduling.priorities:random_order", "any executable task"
    ),
    "as-received": Strategy(
        "optpart.strategies.scheduling.priorities:as_received",
        "first come, first served, ties by vertex number",
    ),
}
_EVERY_SCHEDULER = SCHEDULERS | SPECIAL_SCHEDULERS
#: Strategies that also give an order, which their name alone selects.
ORDERED = (
    "heft",
    "heft-groups",
    "cpop",
    "peft",
    "etf",
    "min-min",
    "max-min",
    "sufferage",
    "dls",
    "heft-lookahead",
    "white-paper",
    "contiguous-split",
)
CORE = ("hash", "fastest", "critical-path", "heft")
CORE_ORDERED = ("heft",)
SOLVERS = {
    "auto": Strategy(
        "optpart.methods.portfolio.auto:auto",
        "what fits the instance: the methods below in turn and side by side; every model",
        takes=("goal", "without", "crew"),
        scope="optpart.methods.portfolio.members:check_scope",
    ),
    "cpsat": Strategy(
        "optpart.methods.cpsat:cpsat",
        "CP-SAT, proves optimality",
        takes=("goal", "without"),
    ),
    "series": Strategy(
        "optpart.methods.series:series",
        "dynamic programme over the parts of a graph of modules in series; exact for delay",
        takes=("goal",),
        scope="optpart.exact.series.solve:check_scope",
    ),
    "search": Strategy(
        "optpart.methods.search:search",
        "annealing of placement and order from the best heuristics; every model",
        takes=("goal", "checkpoint", "crew"),
        scope="optpart.search.search:check_scope",
        repairs=True,
    ),
    "hybrid": Strategy(
        "optpart.methods.search:hybrid",
        "search plus large neighbourhoods, repaired greedily and by CP-SAT; every model",
        takes=("goal", "checkpoint", "crew"),
        scope="optpart.search.search:check_scope",
        repairs=True,
    ),
    "milp": Strategy(
        "optpart.methods.milp:milp",
        "mixed-integer program by HiGHS; delay (and the bottleneck), memory none or estimate",
        takes=("goal", "without"),
        scope="optpart.exact.milp:check_scope",
    ),
    "milp-cbc": Strategy(
        "optpart.methods.milp:milp",
        "milp by CBC",
        MappingProxyType({"solver": "CBC"}),
        takes=("goal", "without"),
        scope="optpart.exact.milp:check_scope",
    ),
    "minizinc": Strategy(
        "optpart.exact.minizinc:minizinc",
        "the MiniZinc models with Gecode; small instances, every model; needs minizinc",
        takes=("goal",),
        scope="optpart.exact.minizinc:check_scope",
    ),
    "enumerate": Strategy(
        "optpart.exact.enumeration:enumerate_all",
        "branch and bound without a solver; up to 12 vertices, every model",
        takes=("goal",),
        scope="optpart.exact.enumeration:check_scope",
    ),
    "pipeline": Strategy(
        "optpart.methods.pipeline:pipeline",
        "contiguous blocks by dynamic programming: bottleneck, or makespan of chains",
        takes=("goal",),
        scope="optpart.methods.pipeline:check_scope",
    ),
}

#: Entry-point groups through which other packages add methods and strategies.
GROUP = "optpart.methods"
PARTITIONERS_GROUP = "optpart.partitioners"
SCHEDULERS_GROUP = "optpart.schedulers"

#: The kinds of functions that can be registered.
Kind = Literal["method", "partitioner", "scheduler"]

_own: dict[str, tuple[Method, str]] = {}
_own_partitioners: dict[str, tuple[Callable[..., Any], str]] = {}
_own_schedulers: dict[str, tuple[Callable[..., Any], str]] = {}

#: When the code of methods was loaded, in nanoseconds since the epoch: not before this, what was
#: registered before these times, and modules of plug-ins before those.
LOADED = time.time_ns()
_since: dict[tuple[Kind, str], int] = {}
_since_of_modules: dict[str, int] = {}

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
        rows = _registered()[kind]
        rows[name] = function, text
        _since[kind, name] = time.time_ns()
        for method in _own:
            if split(method) is not None:
                del rows[name]
                raise InputError(
                    name, f"would make {method!r} ambiguous", "register it under another name"
                )
        return function

    return add


def _registered() -> dict[Kind, dict[str, tuple[Callable[..., Any], str]]]:
    return {"method": _own, "partitioner": _own_partitioners, "scheduler": _own_schedulers}


def _check_name(name: str, kind: Kind, function: Callable[..., Any]) -> None:
    """Reject a name that is in use, or that could not be selected."""
    known = _registered()[kind].get(name)
    if known is not None:
        if _written_in(known[0]) != _written_in(function):
            raise InputError(
                name, f"already the name of a registered {kind}", "choose another name"
            )
        return
    other = "choose another name"
    if kind == "method":
        if name in SOLVERS or split(name) is not None:
            raise InputError(name, "already the name of a built-in method", other)
        return
    if not name or set(name) & set("+:"):
        raise InputError(name, "not a valid name of a strategy", "use no plus and no colon")
    if name in (PARTITIONERS if kind == "partitioner" else _EVERY_SCHEDULER):
        raise InputError(name, f"already the name of a built-in {kind}", other)


def _written_in(function: Callable[..., Any]) -> tuple[object, object]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", function)


def own() -> dict[str, Method]:
    """Return the registered methods by name."""
    return {name: method for name, (method, _) in _own.items()}


def registered() -> list[tuple[Kind, str, Callable[..., Any], str]]:
    """Return the kind, name, function and summary of everything registered."""
    return [
        (kind, name, function, summary)
        for kind, rows in _registered().items()
        for name, (function, summary) in rows.items()
    ]


def forget(name: str, kind: Kind = "method") -> None:
    """Remove a registered name."""
    del _registered()[kind][name]


def _own_row(kind: Kind, name: str) -> Own | None:
    """Return the registered or plug-in strategy of this name; ``None`` if there is none."""
    from optpart.methods.own import checked_partitioner, checked_scheduler

    checked = checked_partitioner if kind == "partitioner" else checked_scheduler
    found = _registered()[kind].get(name)
    if found is not None:
        return Own(name, found[1], lambda: found[0], checked)
    for point in entry_points(group=_group(kind)):
        if point.name == name:
            return Own(name, point.value, partial(_plug_in, point), checked)
    return None


def _group(kind: Kind) -> str:
    return PARTITIONERS_GROUP if kind == "partitioner" else SCHEDULERS_GROUP


def _added(kind: Kind) -> list[str]:
    """Name the strategies that are not built in."""
    built_in = PARTITIONERS if kind == "partitioner" else _EVERY_SCHEDULER
    plugged = [point.name for point in entry_points(group=_group(kind))]
    names = dict.fromkeys([*_registered()[kind], *plugged])
    return [name for name in names if name not in built_in]


def _every_partitioner() -> list[str]:
    return [*PARTITIONERS, *_added("partitioner")]


def _every_scheduler() -> list[str]:
    return [*_EVERY_SCHEDULER, *_added("scheduler")]


def heuristics() -> list[str]:
    """Return the names of the heuristics in every table.

    They are few and fast: all of them compile within seconds on a new machine.
    """
    return [*CORE_ORDERED, *(f"{p}+{s}" for p in CORE for s in ("fifo", "pct"))]


def starts() -> list[str]:
    """Return the names of the heuristics that solvers and searches start from, in this order.

    Second comes what leaves few devices idle before the end, as the search of large graphs needs.
    Beyond those in every table, there is the contiguous split: where the network is slow, list
    scheduling scatters what a single cut would separate. Both come early because a search that
    has little time does not try all.
    """
    split = ("contiguous-split", "contiguous-split+pct")
    return list(dict.fromkeys([*CORE_ORDERED, "heft+pct", *split, *heuristics()]))


def own_heuristics() -> list[str]:
    """Return the names of the pairs with registered strategies that appear in every table."""
    return [
        *(f"{p}+{s}" for p in _own_partitioners for s in ("fifo", "pct", *_own_schedulers)),
        *(f"{p}+{s}" for p in CORE for s in _own_schedulers),
    ]


def built_in_pairs() -> list[str]:
    """Return the names of built-in pairs, and of built-in strategies with their own order."""
    installed = [name for name, strategy in PARTITIONERS.items() if strategy.available]
    return [*ORDERED, *(f"{p}+{s}" for p in installed for s in SCHEDULERS)]


def pairs() -> list[str]:
    """Return the names of all pairs, and of the strategies with their own order."""
    installed = [name for name, strategy in PARTITIONERS.items() if strategy.available]
    partitioners, schedulers = _added("partitioner"), _added("scheduler")
    return [
        *built_in_pairs(),
        *(f"{p}+{s}" for p in installed for s in schedulers),
        *(f"{p}+{s}" for p in partitioners for s in (*SCHEDULERS, *schedulers)),
    ]


def entries() -> list[Entry]:
    """List all names that ``--method`` accepts."""
    rows = [
        Entry(f"{name}+SCHEDULER", "partitioning", s.summary) for name, s in PARTITIONERS.items()
    ]
    rows += [
        Entry(f"PARTITIONING+{name}", "scheduling", s.summary)
        for name, s in _EVERY_SCHEDULER.items()
    ]
    rows += [Entry(name, "heuristic", "with its own order") for name in ORDERED]
    rows += [Entry(name, "solver", s.summary) for name, s in SOLVERS.items()]
    rows += [Entry(f"{p}+SCHEDULER", "own", text) for p, (_, text) in _own_partitioners.items()]
    rows += [Entry(f"PARTITIONING+{s}", "own", text) for s, (_, text) in _own_schedulers.items()]
    rows += [Entry(name, "own", text) for name, (_, text) in _own.items()]
    for group, form in (
        (PARTITIONERS_GROUP, "{}+SCHEDULER"),
        (SCHEDULERS_GROUP, "PARTITIONING+{}"),
        (GROUP, "{}"),
    ):
        rows += [
            Entry(form.format(point.name), "plug-in", point.value)
            for point in entry_points(group=group)
        ]
    return rows


def get(name: str) -> Method:
    """Return a method by name; for an unknown name, raise :class:`InputError`."""
    if not isinstance(name, str):
        raise ArgumentError("method", f"{name!r} is not a name", "'optpart methods' lists them")
    if name in _own:
        return _own[name][0]
    if name in SOLVERS:
        method: Method = SOLVERS[name].load()
        return method
    if (parts := split(name)) is not None:
        return _pair(name, *parts)
    for point in entry_points(group=GROUP):
        if point.name == name:
            loaded: Method = _plug_in(point)
            return loaded
    plug_ins = [point.name for point in entry_points(group=GROUP)]
    known = [*ORDERED, *SOLVERS, *_own, *plug_ins]
    known += [f"{p}+{s}" for p in _every_partitioner() for s in _every_scheduler()]
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


def foreign(name: str) -> list[Foreign]:
    """Return the parts of a method that are not built in: itself, or strategies of a pair."""
    found: list[tuple[Kind, str]] = []
    parts = None if name in _own else split(name)
    if parts is not None:
        partition = parts[0].partition(":")[0]
        if partition not in PARTITIONERS:
            found.append(("partitioner", partition))
        if parts[1] and parts[1] not in _EVERY_SCHEDULER:
            found.append(("scheduler", parts[1]))
    elif is_own(name):
        found.append(("method", name))
    return [_foreign(kind, part) for kind, part in found]


def _foreign(kind: Kind, name: str) -> Foreign:
    known = _registered()[kind].get(name)
    if known is not None:
        return Foreign(kind, name, known[0], _since.get((kind, name), LOADED))
    for point in entry_points(group=GROUP if kind == "method" else _group(kind)):
        if point.name == name:
            source = getattr(point, "dist", None)
            distribution = "" if source is None else source.name
            try:
                function = _plug_in(point)
            except (Exception, SystemExit):  # loading a plug-in may raise anything
                return Foreign(kind, name, None, LOADED, distribution)
            since = _since_of_modules.get(getattr(point, "module", ""), LOADED)
            return Foreign(kind, name, function, since, distribution)
    return Foreign(kind, name, None, LOADED)


def _plug_in(point: EntryPoint) -> Any:
    """Load an entry point, and note when its module was loaded unless others have done that."""
    module = getattr(point, "module", "")
    is_new = module not in sys.modules
    found = point.load()
    if is_new:
        _since_of_modules[module] = time.time_ns()
    return found


def takes(name: str, parameter: str) -> bool:
    """Return whether a method has a parameter; raise :class:`InputError` for an unknown name.

    For registered methods and plug-ins, the signature of the function decides.
    """
    if name in SOLVERS and name not in _own:
        return parameter in SOLVERS[name].takes
    method = get(name)
    return split(name) is None and parameter in signature(method).parameters


def takes_goal(name: str) -> bool:
    """Return whether a method supports goals; see :func:`takes`."""
    return takes(name, "goal")


def taking(parameter: str) -> list[str]:
    """Return the names of the solvers and registered methods that have a parameter."""
    return [name for name in (*SOLVERS, *_own) if takes(name, parameter)]


def repairs(name: str) -> bool:
    """Return whether a method repairs invalid starts."""
    return name in SOLVERS and name not in _own and SOLVERS[name].repairs


def is_own(name: str) -> bool:
    """Return whether a method, or a part of it, is not built in, so that it may claim anything."""
    parts = split(name)
    if parts is None:
        return name in _own or name not in SOLVERS
    return parts[0].partition(":")[0] not in PARTITIONERS or (
        parts[1] != "" and parts[1] not in _EVERY_SCHEDULER
    )


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
    if name in SOLVERS and name not in _own:
        return SOLVERS[name].fault(instance, goal)
    check(name)
    return None


def supporting(instance: Instance, goal: Goal | None = None) -> list[str]:
    """Return the names of all methods that support a goal on an instance, solvers first.

    Plug-ins that cannot be loaded are omitted.
    """
    plug_ins = [point.name for point in entry_points(group=GROUP)]
    return _able(dict.fromkeys([*SOLVERS, *_own, *pairs(), *plug_ins]), instance, goal)


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
    plug_ins = [point.name for point in entry_points(group=GROUP)]
    able = listed(_able(dict.fromkeys([*SOLVERS, *_own, *plug_ins]), instance, goal))
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
    strategy = PARTITIONERS.get(first) or _own_row("partitioner", first)
    if strategy is None or (colon and not strategy.argument):
        return None
    known = scheduler in _EVERY_SCHEDULER or _own_row("scheduler", scheduler) is not None
    return (partition, scheduler) if known else None


def partitioner(name: str) -> Callable[..., Any]:
    """Return a partitioning strategy by name, with the argument after a colon bound."""
    strategy, colon, argument = name.partition(":")
    found = PARTITIONERS.get(strategy) or _own_row("partitioner", strategy)
    if found is None:
        raise InputError("method", f"no partitioner {name!r}", choice(name, _every_partitioner()))
    return partial(found.load(), **{found.argument: argument}) if colon else found.load()


def scheduler(name: str) -> Scheduler:
    """Return a scheduling strategy by name."""
    return _scheduler_of(name)


def _scheduler_of(name: str) -> Scheduler:
    row = _EVERY_SCHEDULER.get(name) or _own_row("scheduler", name)
    if row is None:
        raise InputError("method", f"no scheduler {name!r}", choice(name, _every_scheduler()))
    found: Scheduler = row.load()
    return found


@cache
def _pair(name: str, partition: str, scheduler: str) -> Method:
    """Combine a partitioning and a scheduling strategy into a method."""
    from optpart.solution.job import method

    @method
    def run(job: Job, watch: Watch | None = None) -> Result:
        import numpy as np

        from optpart.base.clock import OutOfTimeError, limited
        from optpart.solution.result import conclude
        from optpart.solution.schedule import retime
        from optpart.solution.termination import Termination
        from optpart.strategies.base import NoPlacementError
        from optpart.strategies.simulator import simulate

        instance, seed = job.instance, job.seed
        begin = clock.now()
        schedule, reason, ended = None, "", Termination.COMPLETED
        allowed = math.inf if job.budget.deterministic is not None else job.budget.seconds
        try:
            place, order = partitioner(partition), scheduler and _scheduler_of(scheduler)
            begin = clock.now()  # what is loaded once is not the method's time
            with limited(allowed) as limit:
                found = place(instance, np.random.default_rng(seed))
            if limit.reached:
                reason, ended = str(Termination.TIME_LIMIT), Termination.TIME_LIMIT
            if order:
                schedule = simulate(instance, found, order, seed)
            else:
                schedule = retime(instance, found.placement, found.order)
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
