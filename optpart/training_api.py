"""Training strategies in Python: the functions behind ``optpart strategy``.

All of them are names of ``import optpart``. A strategy file may be given by its path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optpart.base.errors import InputError

if TYPE_CHECKING:
    from optpart.applications.training.cluster import TrainingCluster
    from optpart.applications.training.comparison import Bounded, Comparison
    from optpart.applications.training.compiled import Options
    from optpart.applications.training.graph import TrainingGraph
    from optpart.applications.training.question import Checked, Question, Solved
    from optpart.exporters.plan import Text
    from optpart.problem.rational import Number
    from optpart.solution.result import Budget


def strategy_question(
    model: TrainingGraph | str | Path,
    cluster: TrainingCluster | str | Path,
    batch: int,
    *,
    groups: int = 20,
    grouping: str = "contiguous",
    options: Options | None = None,
    samples: int | str | None = None,
    slowness: Mapping[str, Number] | None = None,
    shapes: Mapping[str, int] | None = None,
    costs: str | Path | None = None,
    network: str | None = None,
    tensor_parallel: int | None = None,
    gpus: Mapping[str, str] | None = None,
) -> Question:
    """Ask for strategies of a model on a cluster.

    Parameters
    ----------
    model : TrainingGraph, str or Path
        A graph, the name of a model of the package, such as ``"vgg19"``, a file, or a folder of
        profiles.
    cluster : TrainingCluster, str or Path
        A cluster, the name of one of the package, such as ``"heterog-8"``, or a file.
    batch : int
        Samples of one iteration.
    groups : int
        Groups of operations at most, each with a decision of its own.
    grouping : {"contiguous", "nearest"}
        Runs along the forward pass, or the operations nearest to those that take longest.
    options : Options, optional
        How strategies are compiled (:class:`optpart.applications.training.compiled.Options`).
    samples, slowness, shapes, costs, network, tensor_parallel, gpus
        What the file of a model does not say
        (:class:`optpart.applications.training.strategy_file.Reading`).

    Returns
    -------
    Question
        Its ``remarks`` say what had to be assumed.

    Raises
    ------
    InputError
        If model or cluster are faulty or unknown, or do not fit each other.
    """
    from optpart.applications.training.question import ask
    from optpart.applications.training.strategy_file import Reading
    from optpart.problem.rational import rational

    factors = {kind: rational(x, f"slowness.{kind}") for kind, x in (slowness or {}).items()}
    return ask(
        model,
        cluster,
        batch,
        groups=groups,
        grouping=grouping,
        options=options,
        reading=Reading(
            samples,
            factors,
            dict(shapes or {}),
            str(costs or ""),
            network or "",
            tensor_parallel,
            dict(gpus or {}),
        ),
    )


def compare_strategies(
    question: Question,
    methods: Sequence[str] = (),
    *,
    seconds: float = 20.0,
    seed: int = 0,
    memory: int | str | None = None,
) -> Comparison:
    """Run methods that make strategies, and bound all that they could have found.

    Parameters
    ----------
    methods : sequence of str
        All (:data:`optpart.applications.training.makers.MAKERS`) if empty.
    seconds : float
        Time limit of each method, and of the bound.
    memory : int or str, optional
        As for :func:`strategy_bound`.

    Returns
    -------
    Comparison
        A row per method; those that do not fit the memory have no makespan.
    """
    from optpart.applications.training.comparison import compare

    return compare(question.problem, methods, budget=_budget(seconds, memory), seed=seed)


def solve_strategy(
    question: Question,
    method: str = "search",
    *,
    order: str = "rank",
    seconds: float = 60.0,
    seed: int = 0,
    memory: int | str | None = None,
) -> Solved:
    """Find a strategy, and prove how far from optimal it can be.

    Parameters
    ----------
    method : str
        See ``optpart strategy compare``.
    order : str
        ``"rank"`` for that of HeteroG, or the name of a method of :func:`optpart.solve` that
        improves it.
    seconds : float
        Time limit of the method, of the order, and of the bound, each.
    memory : int or str, optional
        As for :func:`strategy_bound`; it holds for the order, too. The method ``"exact"`` is
        refused if its linear program is estimated to take more.

    Returns
    -------
    Solved
        ``save`` writes it.
    """
    from optpart.applications.training.question import solve

    budget = _budget(seconds, memory)
    return solve(question, method, order=order, budget=budget, seed=seed)


def strategy_bound(
    question: Question, *, seconds: float = 30.0, memory: int | str | None = None
) -> Bounded:
    """Prove a lower bound on the time of all strategies that give each group an action of [G].

    They are a single device, or even or proportional replicas with an AllReduce or a parameter
    server; see :mod:`optpart.applications.training.actions`.

    Parameters
    ----------
    memory : int or str, optional
        What this process may take, in bytes or as a text such as ``"4 GiB"``; by default, what is
        available. A linear program that is estimated to take more is left out, and ``reason`` of
        the result says so.
    """
    from optpart.applications.training.comparison import bounded, check_problem

    budget = _budget(seconds, memory)
    check_problem(question.problem)
    return bounded(question.problem, budget.seconds, memory=budget.memory)


def verify_strategy(
    strategy: str | Path,
    *,
    model: TrainingGraph | str | Path | None = None,
    cluster: TrainingCluster | str | Path | None = None,
) -> Checked:
    """Compile and execute the strategy of a file again, and compare that with what it claims.

    Parameters
    ----------
    model, cluster : optional
        Instead of those that the file names.

    Returns
    -------
    Checked
        Its ``faults`` are empty if and only if links and memory suffice and all claims hold.

    Raises
    ------
    InputError
        If the file is faulty, or is the strategy of another model.
    """
    from optpart.applications.training.question import check

    return check(strategy, model, cluster)


def draw_strategy(
    strategy: Solved | str | Path,
    path: str | Path,
    *,
    shares: bool = False,
    model: TrainingGraph | str | Path | None = None,
    cluster: TrainingCluster | str | Path | None = None,
) -> None:
    """Draw one iteration, devices and links over time, as PNG or SVG.

    Parameters
    ----------
    shares : bool
        Draw which device computes how much of each group instead.
    model, cluster : optional
        Instead of those that a file names.

    Raises
    ------
    InputError
        If the strategy is not valid, or the file cannot be written.
    """
    from optpart.applications.training.question import Solved
    from optpart.study.report.strategy import shares as share_map
    from optpart.study.report.strategy import timeline

    if isinstance(strategy, Solved):
        compiled, schedule = strategy.made.compiled, strategy.made.schedule
        if compiled is None or schedule is None or not strategy.made.feasible:
            raise InputError("strategy", strategy.made.reason, "give one that is feasible")
        where, bound, method = strategy.question.header, strategy.bound.value, strategy.method
    else:
        found = _valid(strategy, model, cluster)
        compiled, schedule = found.compiled, found.schedule
        where, bound, method = found.file.header, found.file.lower_bound, found.file.method
    title = compiled.graph.name + (f" on {where.cluster}" if where.cluster else "")
    title += f", batch {compiled.strategy.batch}" + (f", {method}" if method else "")
    if shares:
        share_map.draw(compiled.graph, compiled.cluster, compiled.strategy, path, title=title)
    else:
        claimed = not isinstance(strategy, Solved)
        timeline.draw(compiled, schedule, path, title=title, bound=bound, claimed=claimed)


def export_strategy(
    strategy: str | Path,
    *,
    to: str,
    output: str | Path | None = None,
    model: TrainingGraph | str | Path | None = None,
    cluster: TrainingCluster | str | Path | None = None,
) -> Text:
    """Hand a strategy to a runtime.

    Parameters
    ----------
    to : str
        One of :data:`optpart.exporters.strategy.TARGETS`.
    output : path, optional
        Where to write the text.

    Returns
    -------
    Text
        The text, and what it does not keep of the strategy.

    Raises
    ------
    InputError
        If the strategy is not valid, or the target cannot express it.
    """
    from optpart.base.files import check_target, write_text
    from optpart.exporters.strategy import export, target

    kind = target(to).kind
    if output is not None:
        check_target(output, kind)
    found = _valid(strategy, model, cluster)
    text = export(found.compiled, to)
    if output is not None:
        write_text(output, text.text, kind)
    return text


def _budget(seconds: float, memory: int | str | None) -> Budget:
    from optpart.problem.footprint import read_memory
    from optpart.solution.result import Budget

    return Budget(seconds, memory=None if memory is None else read_memory(memory))


def _valid(
    path: str | Path,
    model: TrainingGraph | str | Path | None,
    cluster: TrainingCluster | str | Path | None,
) -> Checked:
    found = verify_strategy(path, model=model, cluster=cluster)
    if found.faults:
        raise InputError("", found.faults[0], "give a strategy that is valid", str(path))
    return found
