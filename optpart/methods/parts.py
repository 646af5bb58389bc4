"""The tables of methods and of the strategies that pairs consist of.

Importing it loads none of them: ``optpart methods`` lists them in a moment.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from optpart.base.errors import InputError
from optpart.base.registry import Registry, load

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.solution.goal import Goal

#: The kinds of functions that can be registered.
Kind = Literal["method", "partitioner", "scheduler"]


@dataclass(frozen=True)
class Part:
    """A method, a partitioning or a scheduling strategy, and what it can do.

    Attributes
    ----------
    location : str
        The place of its function, ``module:name``.
    summary : str
        One line.
    options : mapping
        Arguments of the function that are always the same.
    needs : str
        An optional package that it needs.
    argument : str
        The parameter that receives the text after a colon in the name of a method.
    takes : tuple of str
        The parameters of a method beyond those of every method: ``goal``, ``without`` for pruning
        rules to disable, ``checkpoint`` for the file of its state, ``pool`` for its workers.
    scope : str
        The place of a function that raises :class:`InputError` for an instance and a goal that a
        method or partitioning strategy does not support; empty if it supports all.
    repairs : bool
        Whether a method can repair an invalid start.
    ordered : bool
        Whether a partitioning strategy also gives an order, which its name alone selects.
    special : bool
        Whether a scheduling strategy is for one communication model or for comparison, or a
        partitioning strategy for one kind of model: valid by name, but not in every table.
    origin : {"", "own", "plug-in"}
        Empty for those of this package; what a user registered; and what an entry point leads to.
    find : callable or None
        Returns the function of those that are not of this package.
    since : int
        When its code was loaded, in nanoseconds since the epoch; 0 for that of this package.
    distribution : str
        That of an entry point.
    """

    location: str
    summary: str
    options: Mapping[str, object] = field(default_factory=dict)
    needs: str = ""
    argument: str = ""
    takes: tuple[str, ...] = ()
    scope: str = ""
    repairs: bool = False
    ordered: bool = False
    special: bool = False
    origin: Literal["", "own", "plug-in"] = ""
    find: Callable[[], Callable[..., Any]] | None = None
    since: int = 0
    distribution: str = ""

    @property
    def available(self) -> bool:
        """True if the optional package that it needs is installed."""
        return not self.needs or find_spec(self.needs) is not None

    def load(self) -> Callable[..., Any]:
        """Return the function with its options bound."""
        found: Callable[..., Any] = load(self.location) if self.find is None else self.find()
        return partial(found, **self.options) if self.options else found

    def fault(self, instance: Instance, goal: Goal) -> InputError | None:
        """Return why it does not support a goal on an instance; ``None`` if it does."""
        if not self.scope:
            return None
        try:
            load(self.scope)(instance, goal)
        except InputError as error:
            return error
        return None


class Parts(Registry[Part]):
    """A table to which users and other packages add functions."""

    def __init__(self, rows: Mapping[str, Part], group: str) -> None:
        super().__init__("method", rows, Part, group=group)
        self._loaded: dict[str, int] = {}

    def _plugged_in(self, point: EntryPoint) -> Part:
        """Return the row of an entry point, which is loaded when it is used."""
        module = point.value.partition(":")[0].strip()

        def find() -> Any:
            is_new = module not in sys.modules
            found = point.load()
            if is_new:
                self._loaded[module] = time.time_ns()
            return found

        return Part(
            point.value,
            point.value,
            origin="plug-in",
            find=find,
            since=self._loaded.get(module, 0),
            distribution="" if (source := getattr(point, "dist", None)) is None else source.name,
        )


def _partitioning(place: str, summary: str, **more: Any) -> Part:
    return Part(f"optpart.strategies.partition.{place}", summary, **more)


def _scheduling(place: str, summary: str, **more: Any) -> Part:
    return Part(f"optpart.strategies.scheduling.{place}", summary, **more)


#: The scope of the orders of training pipelines.
PASSES = "optpart.strategies.partition.passes:check_scope"


def _rule(place: str, summary: str, scope: str = "layers", **more: Any) -> Part:
    """Return a rule for one kind of model, by default that of a runtime for language models."""
    scope = f"optpart.strategies.partition.{scope}:check_scope"
    return _partitioning(place, summary, scope=scope, ordered=True, special=True, **more)


_PAPER = {"variant": "paper"}

PARTITIONERS = Parts(
    {
        "hash": _partitioning("hashing:hashing", "units to devices round-robin [L] §4.2"),
        "hash-random": _partitioning(
            "random_hashing:random_hashing", "at random, weighted by capacity [M] §3.1"
        ),
        "fastest": _partitioning("fastest:fastest", "all on the fastest feasible device"),
        "single": _partitioning("single_device:single_device", "everything on one device [B]"),
        "batch-split": _partitioning(
            "batch_split:batch_split", "by rank, an equal share per device [L] §4.4"
        ),
        "batch-split-paper": _partitioning(
            "batch_split:batch_split",
            "by rank to the fastest feasible device [M] §3.2.1",
            options=_PAPER,
        ),
        "critical-path": _partitioning(
            "critical_path:critical_path",
            "critical path on the fastest device, the rest by load [L] §4.6",
        ),
        "critical-path-paper": _partitioning(
            "critical_path:critical_path", "critical-path as in [M] §3.2.2", options=_PAPER
        ),
        "iterated-critical-path": _partitioning(
            "iterated_critical_path:iterated_critical_path",
            "each next critical path to the least loaded device [L] §4.5",
        ),
        "mite": _partitioning("mite:mite", "memory, importance, traffic, execution time [L] §4.7"),
        "mite-paper": _partitioning("mite:mite", "mite as in [M] §3.3.1", options=_PAPER),
        "dfs": _partitioning(
            "dfs:depth_first", "depth first, by traffic and execution time [L] §4.8"
        ),
        "dfs-paper": _partitioning("dfs:depth_first", "dfs as in [M] §3.3.2", options=_PAPER),
        "heft": _partitioning(
            "heft:heft", "earliest finish time with insertion [L] §4.3", ordered=True
        ),
        "heft-groups": _partitioning(
            "heft_groups:heft_groups",
            "colocation groups by load, then HEFT; each ranked as if it had a device of its own",
            ordered=True,
        ),
        "cpop": _partitioning("cpop:cpop", "critical path on one processor (2002)", ordered=True),
        "peft": _partitioning("peft:peft", "optimistic cost table (2014)", ordered=True),
        "etf": _partitioning("etf:etf", "earliest task first (1989)", ordered=True),
        "min-min": _partitioning(
            "min_min:min_min", "ready vertices, the earliest finish first (1977)", ordered=True
        ),
        "max-min": _partitioning(
            "max_min:max_min",
            "ready vertices, the latest earliest finish first (1977)",
            ordered=True,
        ),
        "sufferage": _partitioning(
            "sufferage:sufferage",
            "ready vertices, the largest loss without the best device first (1999)",
            ordered=True,
        ),
        "dls": _partitioning("dls:dls", "dynamic level scheduling (1993)", ordered=True),
        "heft-lookahead": _partitioning(
            "heft_lookahead:heft_lookahead",
            "HEFT that looks ahead at the successors (2010)",
            ordered=True,
        ),
        "white-paper": _partitioning(
            "white_paper:white_paper",
            "greedy earliest finish of the TensorFlow white paper [L] ch. 8",
            ordered=True,
        ),
        "up-rank": _partitioning("up_rank:up_rank", "by upward rank, devices in turn [B] §4.1"),
        "task-parallel": _partitioning(
            "task_parallel:task_parallel", "ready vertices spread over all devices [B] §4.2"
        ),
        "scoring": _partitioning("scoring:scoring", "load against communication [B] §4.3"),
        "scoring-tuned": _partitioning(
            "scoring_tuned:scoring_tuned", "scoring with weights found by search [B] §5.4"
        ),
        "cluster-load": _partitioning(
            "cluster:cluster",
            "randomised contraction, even clusters [B] §4.4",
            options={"version": "load"},
        ),
        "cluster-comm": _partitioning(
            "cluster:cluster",
            "randomised contraction, few edges cut [B] §4.4",
            options={"version": "comm"},
        ),
        "cluster-cap": _partitioning(
            "cluster:cluster",
            "few edges cut, sizes capped [B] §4.4, §5.6",
            options={"version": "cap"},
        ),
        "expert": _partitioning(
            "expert:expert",
            "one layer per device, by names; expert:FILE uses the rules in FILE [B]",
            argument="rules",
        ),
        "linear-greedy": _partitioning(
            "linear_greedy:linear_greedy", "streaming: weighs neighbours against load [B] §6.3.1"
        ),
        "min-cut": _partitioning(
            "min_cut:min_cut",
            "multilevel graph partitioning by METIS; needs optpart[metis] [B] §6.3.2",
            needs="pymetis",
        ),
        "sequential-fill": _partitioning(
            "sequential_fill:sequential_fill",
            "one device after the other, as device_map=sequential of accelerate",
        ),
        "balanced-fill": _partitioning(
            "sequential_fill:sequential_fill",
            "sequential-fill with equal shares of memory, as device_map=auto",
            options={"balanced": True},
        ),
        "contiguous-split": _partitioning(
            "contiguous_split:contiguous_split",
            "a segment of a topological order per device, for the least latency",
            ordered=True,
        ),
        "pipedream": _partitioning(
            "pipedream:pipedream", "a segment per device, for the least bottleneck (2019)"
        ),
        "exo-memory": _partitioning("exo:exo", "a segment per device, in proportion to its memory"),
        "exo-bandwidth": _partitioning(
            "exo:exo",
            "a segment per device, in proportion to its memory bandwidth or speed",
            options={"by": "bandwidth"},
        ),
        "llama-fit": _rule("llama_fit:llama_fit", "llama.cpp --fit: what the cards can hold"),
        "llama-tensor-split": _rule(
            "llama_tensor_split:llama_tensor_split", "llama.cpp --fit off: by memory of the cards"
        ),
        "llama-cpu-moe": _rule(
            "llama_cpu_moe:llama_cpu_moe", "llama.cpp --n-cpu-moe, the least", "llama_cpu_moe"
        ),
        "ollama": _rule("ollama:ollama", "one card if it holds the model, else llama-fit"),
        "exo-ring": _rule(
            "exo_ring:exo_ring", "exo 1.0: by memory of the fewest computers", "exo_ring"
        ),
        "exo-ring-bandwidth": _rule(
            "exo_ring:exo_ring", "exo-ring by speed", "exo_ring", options={"by": "bandwidth"}
        ),
        "accelerate": _rule("accelerate:accelerate", "device_map=auto of accelerate"),
        "halda": _rule("halda:halda", "prima.cpp: the fastest devices first, all in memory"),
        "vllm": _rule("vllm:vllm", "vLLM's stages: as many blocks for every card"),
        "gpipe": _rule("gpipe:gpipe", "all forward passes, then all backward", "passes"),
        "1f1b": _rule("one_f_one_b:one_f_one_b", "forward and backward passes in turns", "passes"),
        "1f1b-offload": _rule(
            "one_f_one_b_offload:one_f_one_b_offload",
            "1f1b, what does not fit is on the host until it is needed",
            "passes",
        ),
        "interleaved-1f1b": _rule(
            "interleaved:interleaved", "1f1b with several stages per device", "passes"
        ),
        "zb-h1": _rule("zb_h1:zb_h1", "1f1b, gradients of weights later, as much memory", "passes"),
        "zb-h2": _rule("zb_h2:zb_h2", "no bubbles between passes, twice the memory", "passes"),
        "zb-v": _rule("zb_v:zb_v", "two stages per device, there and back", "passes"),
        "dualpipe-v": _rule(
            "dualpipe_v:dualpipe_v", "DualPipe cut in half, on two stages per device", "passes"
        ),
    },
    "optpart.partitioners",
)

SCHEDULERS = Parts(
    {
        "fifo": _scheduling("fifo:fifo", "first executable, first served [L] §5.2"),
        "pct": _scheduling("pct:pct", "longest remaining path first [L] §5.3"),
        "msr": _scheduling(
            "msr:msr", "maximal successor rank: what enables other devices first [L] §5.4"
        ),
        "as-placed": _scheduling("as_placed:as_placed", "the order in which vertices were placed"),
        "heterog": _scheduling(
            "heterog:heterog", "computation and transfers ranked alike [G] §4.2", special=True
        ),
        "tao": _scheduling("tao:tao", "transfers by overlap, with times [H] §4.2", special=True),
        "tao-printed": _scheduling(
            "tao:tao",
            "tao with the comparator as printed [H] algorithm 2",
            options={"variant": "printed"},
            special=True,
        ),
        "tio": _scheduling("tio:tio", "transfers by dependencies alone [H] §4.3", special=True),
        "random-order": _scheduling(
            "random_order:random_order", "any executable task", special=True
        ),
        "as-received": _scheduling(
            "as_received:as_received",
            "first come, first served, ties by vertex number",
            special=True,
        ),
    },
    "optpart.schedulers",
)

METHODS = Parts(
    {
        "auto": Part(
            "optpart.methods.portfolio.auto:auto",
            "what fits the instance: the methods below in turn and side by side; every model",
            takes=("goal", "without", "pool"),
            scope="optpart.methods.portfolio.members:check_scope",
        ),
        "cpsat": Part(
            "optpart.methods.cpsat:cpsat", "CP-SAT, proves optimality", takes=("goal", "without")
        ),
        "series": Part(
            "optpart.methods.series:series",
            "dynamic programme over the parts of a graph of modules in series; exact for delay",
            takes=("goal",),
            scope="optpart.exact.series.solve:check_scope",
        ),
        "layers": Part(
            "optpart.methods.layers:layers",
            "subset sums for wide layers, as in workflows; exact for delay, proportional speeds",
            takes=("goal",),
            scope="optpart.exact.layers.solve:check_scope",
        ),
        "search": Part(
            "optpart.methods.search:search",
            "annealing of placement and order from the best heuristics; every model",
            takes=("goal", "checkpoint", "pool"),
            scope="optpart.search.search:check_scope",
            repairs=True,
        ),
        "hybrid": Part(
            "optpart.methods.search:hybrid",
            "search plus large neighbourhoods, repaired greedily and by CP-SAT; every model",
            takes=("goal", "checkpoint", "pool"),
            scope="optpart.search.search:check_scope",
            repairs=True,
        ),
        "milp": Part(
            "optpart.methods.milp:milp",
            "mixed-integer program by HiGHS; delay (and the bottleneck), memory none or estimate",
            takes=("goal", "without"),
            scope="optpart.exact.milp:check_scope",
        ),
        "milp-cbc": Part(
            "optpart.methods.milp:milp",
            "milp by CBC",
            options={"solver": "CBC"},
            takes=("goal", "without"),
            scope="optpart.exact.milp:check_scope",
        ),
        "minizinc": Part(
            "optpart.exact.minizinc:minizinc",
            "the MiniZinc models with Gecode; small instances, every model; needs minizinc",
            takes=("goal",),
            scope="optpart.exact.minizinc:check_scope",
        ),
        "enumerate": Part(
            "optpart.exact.enumeration:enumerate_all",
            "branch and bound without a solver; up to 12 vertices, every model",
            takes=("goal",),
            scope="optpart.exact.enumeration:check_scope",
        ),
        "pipeline": Part(
            "optpart.methods.pipeline:pipeline",
            "contiguous blocks by dynamic programming: bottleneck, or makespan of chains",
            takes=("goal",),
            scope="optpart.methods.pipeline:check_scope",
        ),
    },
    "optpart.methods",
)

TABLES: dict[Kind, Parts] = {
    "method": METHODS, "partitioner": PARTITIONERS, "scheduler": SCHEDULERS,
}  # fmt: skip

#: Partitioning strategies that also give an order, which their name alone selects.
ORDERED = tuple(name for name, part in PARTITIONERS.rows.items() if part.ordered)

#: Scheduling strategies in every table.
USUAL_SCHEDULERS = tuple(name for name, part in SCHEDULERS.rows.items() if not part.special)
