"""The Python interface, ``import optpart as op``: each command as a function.

All functions that can take long share four parameters with the commands: ``seconds``, a wall-clock
limit (by default 60 for solving, 30 for :func:`bounds`, 20 for each run of :func:`compare` and
:func:`sweep` and for each solve of :func:`divide`); ``workers``, the number of threads or processes
(2); ``seed``, the seed of all random choices (0); and ``memory``, what this process and its solvers
may take together, in bytes or such as ``"4 GiB"`` (what is available). Instances may be given by
name or path, vertices and devices by name.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.base.choices import choice, close
from optpart.base.errors import ArgumentError, CertificateError, ContradictionError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optpart.applications.ordering.compare import Orders
    from optpart.applications.recompute.recompute import Recomputation
    from optpart.applications.serving.apart.apart import Apart
    from optpart.applications.serving.problem import Serving
    from optpart.applications.serving.serve import Served
    from optpart.certificates.certify import CertifiedBound, Refutation
    from optpart.exact.pipeline.plan import PipelinePlan
    from optpart.exact.pipeline.problem import Pipeline
    from optpart.exporters.plan import Text
    from optpart.exporters.trace import Scheduled
    from optpart.interop.costs.costed import Costed
    from optpart.interop.devices.named import NamedCluster
    from optpart.lower_bounds.best import LowerBound
    from optpart.methods.solve import Fix, Start
    from optpart.problem.cluster import Cluster
    from optpart.problem.instance import Instance
    from optpart.problem.model import Communication, Memory
    from optpart.problem.rational import Number
    from optpart.problem.workload import Workload
    from optpart.search.checkpoint import StateFile
    from optpart.solution.goal import Objective
    from optpart.solution.names import NamedOrder, NamedPlacement
    from optpart.solution.result import Budget, Progress, Result, Watch
    from optpart.solution.schedule import Schedule
    from optpart.solution.verifier import Violation
    from optpart.study.attribution import Division
    from optpart.study.gap import Comparison
    from optpart.study.recommend import Recommendation
    from optpart.study.report.html.sources import Subject
    from optpart.study.report.simulation import Simulated
    from optpart.study.robust import Robust
    from optpart.study.run import Run
    from optpart.study.sensitivity import Sensitivity

_LOG = logging.getLogger(__name__)


def load(name: str | Path) -> Instance:
    """Read an instance file or, if no such file exists, an instance of the library.

    Raises
    ------
    InputError
        If neither exists, or it cannot be read.
    """
    from optpart.interop.formats.detect import read_instance
    from optpart.study import library

    if os.path.exists(name):
        return read_instance(name)
    if name in library.index() or name in library.unreadable():
        return library.load(str(name))
    near = close(name, library.index())
    known = "an instance of 'optpart gap --list'"
    remedy = f"did you mean {' or '.join(near)}?" if near else f"name a file, or {known}"
    raise InputError("", "no such file", remedy, str(name))


def load_with_source(name: str) -> tuple[Instance, bytes | None]:
    """Read an instance, and the content of its file if that is in the native format."""
    from optpart.base.files import read_bytes
    from optpart.interop.formats.detect import read_instance
    from optpart.problem.document import FORMAT
    from optpart.study import library

    path = Path(name)
    if not os.path.exists(path):
        known = library.index().get(name)
        if known is None:
            return load(name), None
        path = library.folder() / known.group / f"{name}.json"
        if not os.path.exists(path):
            return library.load(name), None
    instance = read_instance(path)
    content = read_bytes(path)
    native = path.suffix == ".json" and f'"{FORMAT}"'.encode() in content
    return instance, content if native else None


def workload(path: str | Path, *, format: str | None = None, **options: Any) -> Workload:
    """Read a model file, or name a language model: what is computed, but not how long it takes.

    Parameters
    ----------
    path : str or Path
        A file in a format that gives a workload (:data:`optpart.interop.formats.detect.FORMATS`)
        or, where there is no such file, the name of a language model, such as ``"llama-3-8b"``.
    format : str, optional
        The name of a format; by default, suffix or content decide.
    **options
        What the reader of the format takes: ``shapes`` of ONNX and PyTorch, ``model`` of PyTorch
        and Sailor, those of a :class:`~optpart.interop.formats.llm.Step` (``mode``, ``tokens``,
        ``context``, ``batch``, …) of language models, and so on.

    Returns
    -------
    Workload
        Its ``assumed`` says what the reader had to assume.

    Raises
    ------
    InputError
        If the file is faulty, of no known format or an instance, or an option means nothing to it.
    """
    from optpart.interop.formats.detect import read_workload

    return read_workload(path, format, **options)


def costed(
    workload: Workload,
    cluster: Cluster | NamedCluster | str | Path,
    costs: str,
    *,
    memory: Memory | None = None,
    communication: Communication | None = None,
    **options: Any,
) -> Costed:
    """Make an instance of a workload and a cluster.

    Parameters
    ----------
    cluster : Cluster, NamedCluster or path
        The devices. A path is that of a cluster file, which can name devices of the library.
    costs : str
        Where run times come from: ``roofline``, ``file``, ``measured``, ``table``, ``drawn`` or
        ``unit``; see the page on costs.
    memory : {"none", "estimate", "edges", "refcount"}, optional
        How memory counts; without it, limits of the devices count if there are any.
    communication : {"delay", "sendrecv", "link", "port"}, optional
        How transfers count; ``delay`` if not given.
    **options
        What the source of costs takes: the other fields of
        :class:`optpart.interop.costs.registry.Options`, such as ``measured``, ``fill``, ``file``,
        ``seed``.

    Returns
    -------
    Costed
        The ``instance``, and in ``remarks`` one sentence for everything that was drawn, estimated,
        assumed or rounded. The instance's ``source`` holds them as well.

    Raises
    ------
    InputError
        If there is no such source of costs, an option means nothing to it, or it lacks something.
    """
    from optpart.interop.costs.registry import Options, apply
    from optpart.interop.formats.cluster_toml import opened

    for option in options:
        if option not in Options.__dataclass_fields__:
            remedy = choice(option, Options.__dataclass_fields__)
            raise ArgumentError(option, "is no option of any source of costs", remedy)
    asked = Options(memory=memory, communication=communication, **options)
    return apply(costs, workload, opened(cluster), asked)


def save(what: Result | Instance, path: str | Path) -> None:
    """Write a result, or an instance in the native format, completely or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from optpart.interop.formats import native
    from optpart.interop.formats import result as result_format
    from optpart.problem.instance import Instance

    if isinstance(what, Instance):
        native.write(what, path)
    else:
        result_format.write(what, path)


def solve(
    instance: Instance | str | Path,
    method: str = "auto",
    *,
    objective: Objective = "makespan",
    within: str | int | Fraction | None = None,
    within_percent: str | int | Fraction | None = None,
    traffic_limit: str | int | Fraction | None = None,
    fix: Fix | None = None,
    start: Start | None = None,
    placement: NamedPlacement | None = None,
    order: NamedOrder | None = None,
    contiguous: bool = False,
    device_order: Sequence[str] | None = None,
    checkpoint: str | Path | StateFile | None = None,
    resume: bool = False,
    audit: bool = False,
    engine: str = "local",
    seconds: float = 60.0,
    workers: int | None = None,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Watch | None = None,
) -> Result:
    """Find a schedule, and prove as much about it as the method and the bounds can.

    Parameters
    ----------
    instance : Instance, str or Path
        An instance, the path of its file, or the name of a library instance.
    method : str
        See ``optpart methods``.
    objective : {"makespan", "traffic", "lexicographic", "bottleneck"}
        The objective to minimise; ``lexicographic`` is makespan, then traffic, ``bottleneck`` the
        largest load of a device, link or port: the time per item of a pipeline.
    within, traffic_limit : number or str, optional
        Upper limits of makespan and traffic.
    within_percent : number or str, optional
        Only with the objective ``traffic``: by how many percent a schedule may be longer than the
        shortest that is found, in seven tenths of the time, before the traffic is minimised.
    fix : {"placement", "order", "both"}, optional
        The part of ``start`` to keep. If the instance allows only one placement, fixing it needs
        no ``start``.
    start : Schedule, Result, path or str, optional
        The initial schedule: a schedule, a result, its file, or a strategy such as ``"heft"``.
    placement : mapping from vertex names to device names, optional
        Devices on which these vertices must run; the others are free.
    order : sequence of vertex names, or mapping from device names to such sequences, optional
        If two vertices of a sequence share a device, the earlier one must run first. The sequence
        of a device may only contain vertices that ``placement`` assigns to it.
    contiguous : bool
        Whether no path may leave a device and come back to it.
    device_order : sequence of device names, optional
        Use only these devices, such that no edge goes from a later one back to an earlier one; any
        of them may stay empty.
    checkpoint : path, optional
        File in which the methods ``search`` and ``hybrid`` save their state. One that exists is
        refused, unless they ``resume`` from it.
    resume : bool
        Whether to continue from the checkpoint.
    audit : bool
        Whether to solve again without rules that remove solutions, for up to the same time, and
        compare.
    engine : str
        ``local``; ``dask`` for a Dask cluster of processes on this machine; or the address of the
        scheduler of another, such as ``tls://HOST:PORT``. There, the methods ``auto``, ``search``
        and ``hybrid`` use this process and every thread of its workers.
    seconds : float
        Time limit.
    workers : int, optional
        Number of threads or processes; by default 2 or, on a cluster, all.
    seed : int
        Seed of all random choices.
    memory : int or str, optional
        Memory that this process and its solvers may take together, in bytes or such as
        ``"4 GiB"``; by default, what is available.
    watch : callable, optional
        Called with every step of the run.

    Returns
    -------
    Result
        With a lower bound, even if the method itself proves none. Proofs about at most nine
        vertices have been checked by enumeration.

    Raises
    ------
    InputError
        If an argument is invalid, or the method does not support the request.
    ContradictionError
        If enumeration or the audit contradicts the result, which would be a bug.
    """
    from optpart.methods.solve import ask

    question = ask(
        _instance(instance),
        method,
        objective=objective,
        within=within,
        within_percent=within_percent,
        traffic_limit=traffic_limit,
        fix=fix,
        start=start,
        placement=placement,
        order=order,
        contiguous=contiguous,
        device_order=device_order,
        checkpoint=checkpoint,
        resume=resume,
        engine=engine,
        seconds=seconds,
        workers=workers,
        seed=seed,
        memory=memory,
    )
    if audit:
        question.check_audit()
    result = question.answer(watch)
    if audit:
        question.audit(result)
    return result


def sensitivity(
    result: Result,
    error: str | float | Fraction,
    *,
    draws: int = 100,
    seed: int = 0,
    seconds: float = 30.0,
) -> Sensitivity:
    """Tell how far from optimal a schedule can be if its costs are off.

    See :mod:`optpart.study.sensitivity` for what is drawn, what is proven, and what is assumed.

    Parameters
    ----------
    result : Result
        With a schedule, as :func:`solve` returns it for a least makespan.
    error : str or number
        The share that every run time and transfer time may be off by: ``"20%"`` or ``0.2``.
    draws : int
        Number of draws.
    seconds : float
        For the bounds of all draws together.

    Raises
    ------
    InputError
        If there is no schedule, another objective, something was given, or a number is out of
        range.
    """
    from optpart.study.sensitivity import sensitivity as study

    return study(result, error, draws=draws, seed=seed, seconds=seconds)


def robust(instance: Instance | str | Path, **options: Any) -> Robust:
    """Find the placement and order that are best in the worst case or on average.

    The options are those of :func:`optpart.study.robust.search.robust`.
    """
    from optpart.study.robust import robust as study

    return study(_instance(instance), **options)


def recommend(instance: Instance | str | Path) -> Recommendation:
    """Recommend a heuristic for an instance, with the ratio to the optimum that is expected of it.

    See :mod:`optpart.study.recommend`. A tree decides that was grown on small instances with proven
    optima; for others, its ``beyond`` names the figures that lie outside of what it has seen.
    """
    from optpart.study.recommend import recommend as study

    return study(_instance(instance))


def pareto(
    instance: Instance | str | Path,
    *,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Watch | None = None,
) -> list[Result]:
    """Return the Pareto front of makespan and traffic; see :func:`optpart.methods.pareto.pareto`.

    Parameters
    ----------
    seconds : float
        Time limit for the whole front.
    """
    from optpart.methods.solve import ask

    question = ask(_instance(instance), seconds=seconds, workers=workers, seed=seed, memory=memory)
    return question.front(watch)


def bounds(
    instance: Instance | str | Path,
    *,
    seconds: float = 30.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> list[LowerBound]:
    """Compute lower bounds on the makespan; the solver's bound comes last.

    Parameters
    ----------
    seconds : float
        Time limit for all bounds together, and for all runs that resumed one another.
    workers, seed : int
        Passed to the solver.
    memory : int or str, optional
        As in :func:`solve`; bounds that would need more are left out.
    checkpoint : path, optional
        A new file in which every bound is kept as soon as it is proven; bounds that more time may
        raise go on as long as there is time.
    resume : bool
        Whether to continue from the checkpoint.

    Returns
    -------
    list of LowerBound
        A value of ``None`` proves that no schedule exists. If that is evident without a bound, the
        only entry is ``feasibility``. What a checkpoint claims beyond them goes to standard error.
    """
    from optpart.lower_bounds.best import LowerBound
    from optpart.methods.bounds_in_rounds import every_bound, opened
    from optpart.problem.feasibility import contradiction
    from optpart.study.report.text import claimed

    instance = _instance(instance)
    if contradiction(instance):
        return [LowerBound("feasibility", None, 0.0)]
    state = opened(checkpoint, instance, resume=resume)
    found: dict[str, LowerBound] = {}
    for bound in every_bound(
        instance, seconds, _budget(seconds, workers, memory), state, seed=seed
    ):
        found[bound.name] = bound.after(found.get(bound.name))
    if state is None:
        return list(found.values())
    for claim in state.claims:
        _LOG.warning(claimed(claim))
    if state.fault is not None:
        raise state.fault
    return state.found


def verify(
    instance: Instance | str | Path,
    result: Result | Schedule | str | Path,
    *,
    contiguous: bool = False,
    device_order: Sequence[str] | None = None,
) -> list[Violation]:
    """Check a schedule, or a result and all its claims, in exact arithmetic.

    Parameters
    ----------
    result : Result, Schedule or path
        A path must be that of a result file.
    contiguous, device_order : bool, sequence of device names
        Constraints on blocks as for :func:`solve`, in addition to those that a result states.

    Returns
    -------
    list of Violation
        Empty if and only if everything is valid.
    """
    from optpart.interop.formats import result as result_format
    from optpart.solution.contiguity import first_violation
    from optpart.solution.names import given_device_order
    from optpart.solution.schedule import Schedule
    from optpart.solution.verifier import Violation
    from optpart.solution.verifier import verify as check
    from optpart.study.report.verification import check_document, check_result

    instance = _instance(instance)
    along = given_device_order(instance, device_order)
    if isinstance(result, Schedule):
        violations = check(instance, result)
        if (contiguous or along) and not any(found.rule == "complete" for found in violations):
            broken = first_violation(instance, result.placement, along)
            violations += [Violation("contiguity", broken)] if broken else []
        return violations
    if isinstance(result, str | Path):
        checked = check_result(instance, result, contiguous=contiguous, device_order=along)
    else:
        document = result_format.to_dict(result)
        checked = check_document(instance, document, contiguous=contiguous, device_order=along)
    return list(checked.violations)


def result_from_pyjobshop(instance: Instance, result: Any) -> Result:
    """Judge what PyJobShop's ``solve`` returns, by the verifier and by bounds of our own.

    Parameters
    ----------
    instance : Instance
        The argument of ``to_pyjobshop``, or what ``from_pyjobshop`` returned.

    Returns
    -------
    Result
        With PyJobShop's schedule, if the verifier accepts it, and its bound as a claim.

    Raises
    ------
    InputError
        If the result is of another problem.
    """
    from optpart.interop.formats.pyjobshop import claim_of, schedule_of
    from optpart.methods.solve import bounded
    from optpart.solution.result import conclude, with_claim
    from optpart.solution.termination import Termination

    schedule = schedule_of(instance, result)
    ended = Termination.TIME_LIMIT if result.status.name == "TIME_LIMIT" else Termination.COMPLETED
    known = conclude(instance, "pyjobshop", schedule, seconds=result.runtime, termination=ended)
    if schedule is not None and known.schedule is None:
        known = replace(known, termination=Termination.REJECTED)
    return with_claim(bounded(known), claim_of(instance, result))


def simulate(
    instance: Instance | str | Path,
    method: str = "heft+pct",
    *,
    start: Schedule | Result | str | Path | None = None,
    placement: NamedPlacement | None = None,
    seed: int = 0,
) -> Simulated:
    """Execute the graph under a placement and a scheduling strategy.

    Parameters
    ----------
    method : str
        ``PARTITIONING+SCHEDULER``; if a placement is given, only the scheduler is used.
    start : Schedule, Result or path, optional
        A schedule, a result, or its file, from which to take the placement.
    placement : mapping from vertex names to device names, optional
        The placement.

    Returns
    -------
    Simulated
        The outcome, whose result has a lower bound.
    """
    from optpart.interop.formats.result import read_schedule
    from optpart.methods.solve import bounded
    from optpart.solution.names import placement_of
    from optpart.solution.schedule import Schedule
    from optpart.study.report.simulation import run

    instance = _instance(instance)
    if start is not None and placement is not None:
        raise ArgumentError("placement", "cannot be combined with `start`", "leave one of them out")
    where = None if placement is None else placement_of(instance, placement)
    if start is not None:
        if isinstance(start, str | Path):
            start = read_schedule(start, instance)
        schedule = start if isinstance(start, Schedule) else start.schedule
        if schedule is None:
            raise ArgumentError(
                "start", "the result has no schedule", "give one that has a schedule"
            )
        schedule.check_fits(instance)
        where = schedule.placement
    done = run(instance, method, where, [seed])[0]
    return replace(done, result=bounded(done.result))


def compare(
    instance: Instance | str | Path,
    methods: Iterable[str] | str = (),
    *,
    seconds: float = 20.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Callable[[str, Progress | None], None] | None = None,
) -> Comparison:
    """Run methods on an instance and compare them with a reference.

    See :func:`sweep`; ``watch`` is called with the name of the running method and its progress.
    """
    from optpart.kernels.all import expect
    from optpart.study.gap import chosen_methods
    from optpart.study.gap import compare as compared

    names = chosen_methods([methods] if isinstance(methods, str) else list(methods))
    instance = _instance(instance)
    budget = _budget(seconds, workers, memory)
    expect()
    return _bounded_rows(compared(instance, names, budget=budget, seed=seed, watch=watch))


def sweep(
    instances: Iterable[Instance | str | Path],
    methods: Iterable[str] | str = (),
    *,
    seeds: int = 1,
    engine: str = "local",
    store: str | Path | None = None,
    seconds: float = 20.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Callable[[Run, Progress | None], None] | None = None,
) -> Iterator[Comparison]:
    """Compare methods on instances, as the command ``gap`` does.

    The exact method always runs to establish the reference if it supports the instance, whether or
    not it is among ``methods``. If a method fails, or a verified schedule contradicts its claims,
    only its own row is lost; see ``Comparison.findings``.

    Parameters
    ----------
    methods : iterable of str
        Names of methods; ``all`` means every pair of strategies. By default, the heuristics, all
        registered methods and strategies, and the exact method.
    seeds : int
        Number of runs of each method, with consecutive seeds from ``seed``.
    engine : str
        ``local``; ``dask`` for processes on this machine; or the address of the scheduler of a
        Dask cluster, ``dask://HOST:PORT``, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
    store : path, optional
        A file that stores finished runs, which are not repeated.
    seconds : float
        Time limit for each run.
    memory : int or str, optional
        As in :func:`solve`, for each run; one that would need more has no schedule, and says so.
    watch : callable, optional
        Called with a running or finished run, and with its progress if known.

    Returns
    -------
    iterator of Comparison
        In the order of the instances, each as soon as it is complete. Each result has the lower
        bound of its method or of the reference, if either proves one.

    Raises
    ------
    InputError
        If an argument is invalid, before any run.
    """
    from contextlib import nullcontext

    from optpart.base.limits import check_seed
    from optpart.kernels.all import expect
    from optpart.study.engine import choose
    from optpart.study.gap import chosen_methods
    from optpart.study.gap import sweep as swept
    from optpart.study.store import Store

    check_seed(seed, seeds)
    names = chosen_methods([methods] if isinstance(methods, str) else list(methods))
    budget, spread = _budget(seconds, workers, memory), choose(engine, workers)
    chosen = [_instance(instance) for instance in instances]

    def compared() -> Iterator[Comparison]:
        with nullcontext() if store is None else Store(Path(store)) as kept:
            expect()
            for comparison in swept(
                chosen,
                names,
                budget=budget,
                seeds=range(seed, seed + seeds),
                engine=spread,
                store=kept,
                watch=watch,
            ):
                yield _bounded_rows(comparison)

    return compared()  # arguments are checked at the call, not when the first row is fetched


def _bounded_rows(comparison: Comparison) -> Comparison:
    """Give the bound of the reference to results without a bound."""
    from optpart.solution.result import Status, with_bound

    bound = comparison.reference.bound
    if bound is None:
        return comparison
    results = tuple(
        with_bound(result, bound)
        if result.lower_bound is None and result.status is not Status.INFEASIBLE
        else result
        for result in comparison.results
    )
    return replace(comparison, results=results)


def divide(
    instance: Instance | str | Path,
    pairs: Iterable[str],
    *,
    seeds: int = 1,
    seconds: float = 20.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Callable[[str, Progress | None], None] | None = None,
) -> Division:
    """Attribute the loss of pairs of strategies to placement and order, as ``gap --axis`` does.

    Parameters
    ----------
    pairs : iterable of str
        Pairs such as ``mite+pct``.
    seeds : int
        Number of runs of each pair, with consecutive seeds from ``seed``.
    seconds : float
        Time limit for each solve: one for every distinct placement, and one with free placement.
    """
    from optpart.base.limits import check_seed
    from optpart.study.attribution import divide as divided

    check_seed(seed, seeds)
    budget = _budget(seconds, workers, memory)
    return divided(
        _instance(instance), pairs, budget=budget, seeds=range(seed, seed + seeds), watch=watch
    )


def compare_orders(
    instance: Instance | str | Path,
    *,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Watch | None = None,
) -> Orders:
    """Order a placed graph in several ways, and find the optimal order.

    Parameters
    ----------
    instance : Instance, str or Path
        An instance that allows only one placement.
    seconds : float
        Time limit for all orders, of which those are left out that have no time.
    """
    from optpart.applications.ordering.compare import compare_orders as compared

    budget = _budget(seconds, workers, memory)
    return compared(_instance(instance), budget, seed=seed, watch=watch)


def certify(
    instance: Instance | str | Path,
    directory: str | Path,
    *,
    result: Result | str | Path | None = None,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
) -> Refutation:
    """Write a certificate: a schedule and a proof that none is shorter; see :func:`check`.

    Parameters
    ----------
    directory : path
        The folder to write; it must be new or hold a certificate.
    result : Result or path, optional
        An optimal schedule; by default, one is searched for.
    seconds : float
        Time limit for finding the schedule, and again for the proof.
    memory : int or str, optional
        As in :func:`solve`, for finding the schedule.

    Raises
    ------
    InputError
        If the model is not supported, the schedule is not valid, or the folder is not writable.
    UncertifiedError
        If no schedule or no proof was found; then nothing is written.
    """
    from optpart.certificates.certify import certify as write
    from optpart.kernels.all import expect
    from optpart.methods.cpsat import cpsat
    from optpart.methods.fitting import require_memory
    from optpart.solution.goal import Goal

    budget = _budget(seconds, workers, memory)
    instance, source = _certifiable(instance, directory)
    if result is None:
        expect()
        require_memory(instance, "cpsat", Goal(), budget)
        result = cpsat(instance, budget=budget, seed=seed)
    schedule, method = _found(result, instance)
    return write(instance, schedule, directory, source=source, method=method, seconds=seconds)


def certify_bound(
    instance: Instance | str | Path,
    directory: str | Path,
    *,
    result: Result | str | Path | None = None,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
) -> CertifiedBound:
    """Write a certificate of a lower bound: a proof that no schedule is shorter; see :func:`check`.

    Computes all bounds and certifies the greatest for which a proof is found.

    Parameters
    ----------
    directory : path
        The folder to write; it must be new or hold a certificate.
    result : Result or path, optional
        A result with a schedule; then the certificate proves the gap between the two.
    seconds : float
        Time limit of the bounds, and again of the proof.
    memory : int or str, optional
        As in :func:`bounds`.

    Raises
    ------
    InputError
        If the model is not supported, the schedule is not valid, or the folder is not writable.
    UncertifiedError
        If there is no schedule, or no proof of any bound was found; then nothing is written.
    """
    from optpart.certificates.certify import UncertifiedError
    from optpart.certificates.certify import certify_bound as write

    instance, source = _certifiable(instance, directory)
    schedule, method = (None, "given") if result is None else _found(result, instance)
    found = bounds(instance, seconds=seconds, workers=workers, seed=seed, memory=memory)
    values = [bound.value for bound in found if bound.value is not None]
    if len(values) < len(found):
        raise UncertifiedError(f"{instance.name}: there is no schedule, so any bound holds")
    return write(
        instance,
        values,
        directory,
        schedule=schedule,
        source=source,
        method=method,
        seconds=seconds,
    )


def _found(result: Result | str | Path, instance: Instance) -> tuple[Schedule, str]:
    """Return the schedule of a result or its file, and what found it."""
    from optpart.certificates.certify import UncertifiedError
    from optpart.interop.formats.result import read_found

    if isinstance(result, str | Path):
        return read_found(result, instance)
    if result.schedule is None:
        raise UncertifiedError(f"{instance.name}: no schedule: {result.reason}")
    return result.schedule, result.method


def _certifiable(
    instance: Instance | str | Path, directory: str | Path
) -> tuple[Instance, bytes | None]:
    """Return an instance and its file, if it can be certified in a folder."""
    from optpart.base.folders import check_folder
    from optpart.certificates.certify import HOLDS, problem_of

    check_folder(directory, HOLDS)
    source = None
    if isinstance(instance, str | Path):
        instance, source = load_with_source(str(instance))
    problem_of(instance, source)  # refuses what certificates do not cover before any work
    return instance, source


def check(directory: str | Path, instance: str | Path | None = None) -> str:
    """Check a certificate.

    Parameters
    ----------
    instance : path, optional
        The instance file that the certificate must match, byte for byte.

    Returns
    -------
    str
        The proven statement, in words.

    Raises
    ------
    CertificateError
        If the certificate does not prove its claim, with the reason.
    """
    from optpart.certificates.check import RejectedError
    from optpart.certificates.check_strategies import check as judge

    try:
        said = judge(str(directory), None if instance is None else str(instance))
    except RejectedError as error:
        # The checker stands alone, so its error is none of optpart's.
        raise CertificateError(str(error)) from None
    if os.path.exists(Path(directory) / "precedence.json"):
        said += "; precedence.json, a second refutation of an earlier version, is not judged"
    return said


def draw(
    result: Result | Schedule | str | Path,
    path: str | Path,
    *,
    instance: Instance | str | Path | None = None,
) -> None:
    """Draw a schedule as a Gantt chart, in PNG or SVG format.

    Parameters
    ----------
    result : Result, Schedule or path
        A result, its file, or a schedule, such as :func:`optpart.retime` builds from names.
    path : path
        The file to write.
    instance : Instance, str or Path, optional
        The instance of a schedule or of a result file; not needed for results of library
        instances.

    Raises
    ------
    InputError
        If there is no valid schedule, or the file cannot be written.
    """
    from optpart.solution.result import conclude
    from optpart.solution.schedule import Schedule
    from optpart.study.report import gantt

    if isinstance(result, str | Path):
        _draw_file(result, path, instance)
        return
    if isinstance(result, Schedule):
        if instance is None:
            raise ArgumentError("instance", "missing", "give the instance of the schedule")
        result = conclude(_instance(instance), "given", result)
    if result.schedule is None:
        problem = result.reason or "missing"
        raise InputError("schedule", problem, "give a result with a valid schedule")
    gantt.draw(
        result.instance,
        result.schedule,
        path,
        title=f"{result.instance.name}, {result.method}",
        bound=result.lower_bound,
    )


def _draw_file(
    result: str | Path, path: str | Path, instance: Instance | str | Path | None
) -> None:
    from optpart.problem.rational import rational
    from optpart.study.report import gantt

    found, schedule, document = _checked(result, instance)
    bound = document.get("lower_bound")
    gantt.draw(
        found,
        schedule,
        path,
        title=f"{found.name}, {document.get('method', '')}",
        bound=None if bound is None else rational(bound, "lower_bound"),
        claimed=True,
    )


def _checked(
    result: str | Path, instance: Instance | str | Path | None
) -> tuple[Instance, Schedule, Mapping[str, Any]]:
    """Read a result file; return its instance, its schedule, which is valid, and the document."""
    from optpart.interop.formats.result import read_document, read_schedule
    from optpart.study import library
    from optpart.study.report.verification import check_result

    document = read_document(result)
    if instance is None:
        instance = document.get("instance")
        if not isinstance(instance, str):
            raise ArgumentError("", "names no instance", "name it with `instance`", str(result))
        if not os.path.exists(instance) and instance not in library.index():
            raise ArgumentError(
                "",
                f"is of {instance!r}, which is not in the library",
                "give the instance's file with `instance`",
                str(result),
            )
    found = _instance(instance)
    report = check_result(found, result)
    if report.violations:
        raise ArgumentError(
            "",
            f"its schedule is not valid for {found.name} ({report.violations[0]})",
            "name its instance with `instance`",
            str(result),
        )
    return found, read_schedule(result, found), document


def write_report(
    what: Iterable[Result | str | Path] | Result | Instance | str | Path,
    path: str | Path,
    *,
    certificate: str | Path | None = None,
    set_name: str | None = None,
    data: str | Path | None = None,
) -> None:
    """Write a report as one HTML file that opens without a network.

    Parameters
    ----------
    what : result, instance or path, or several results and paths
        Results of one instance, files of results, stores and instances, or names of library
        instances. Results of library instances need no instance. Of stores, the page has a table
        of all instances, or of those given, and a report on each.
    path : path
        The file to write, ``.html`` or ``.htm``.
    certificate : path, optional
        The folder of a certificate of the optimum, which is checked first.
    set_name, data : optional
        A set of instances, as of :func:`~optpart.load_set`: the page is a leaderboard on it of the
        methods in stores.

    Raises
    ------
    InputError
        If something cannot be read or written, result files belong to several instances, or the
        certificate is rejected or of another instance.
    """
    from optpart.interop.formats import native
    from optpart.problem.instance import Instance
    from optpart.solution.result import Result
    from optpart.study.report.html.page import write_report as write
    from optpart.study.report.html.sources import Subject, read_subjects

    _check_page(path)
    if set_name is not None:
        _write_leaderboard(what, path, certificate, set_name, data)
        return
    if data is not None:
        raise ArgumentError("data", "used without a set", "name a set")
    if isinstance(what, Instance):
        subjects = [Subject(what, ())]
    else:
        several = [what] if isinstance(what, (Result, str, Path)) else list(what)
        subjects = read_subjects(several, load)
    said = None
    if certificate is not None:
        if len(subjects) > 1:
            remedy = f"report on one instance, such as {subjects[0].instance.name}"
            raise InputError("", "is of one instance, but the report of several", remedy,
                             str(certificate))  # fmt: skip
        try:
            said = check(certificate)
        except CertificateError as error:
            remedy = "give a certificate that 'optpart check' accepts"
            raise InputError("", f"is rejected ({error})", remedy, str(certificate)) from None
        if native.read(Path(certificate) / "instance.json").sha256 != subjects[0].instance.sha256:
            remedy = f"give one of {subjects[0].instance.name}"
            raise InputError("", "certifies another instance", remedy, str(certificate))
        subjects = [_proven_by(Path(certificate), subjects[0])]
    write(subjects, path, certificate=said)


def _write_leaderboard(
    what: Any, path: str | Path, certificate: object, set_name: str, data: str | Path | None
) -> None:
    """Write a leaderboard of all methods in stores."""
    from optpart.study.dataset import find
    from optpart.study.leaderboard import Leaderboard, read_stores
    from optpart.study.report.html.leaderboard import write_leaderboard
    from optpart.study.report.html.sources import kind

    stores = list(what) if isinstance(what, Iterable) and not isinstance(what, str) else [what]
    for one in stores:
        if not isinstance(one, (str, Path)) or kind(str(one)) != "store":
            remedy = "give stores of 'optpart gap --set NAME --store FILE'"
            raise InputError("", "is no store, of which leaderboards are", remedy, str(one))
    if certificate is not None:
        raise ArgumentError("certificate", "used with a set", "leave one of them out")
    dataset = find(set_name, data)
    write_leaderboard(Leaderboard(dataset, read_stores(dataset, stores)), path)


def write_lesson(
    instance: Instance | str | Path, path: str | Path, *, seconds: float = 60.0
) -> Result:
    """Write one HTML page on which to place a small graph by hand; it needs no network.

    The page shows the schedule of each placement under the scheduler ``pct``, what makes it long,
    the rules that it violates, and its distance from the optimum, which is proven first.

    Parameters
    ----------
    instance : Instance, str or Path
        An instance, the path of its file, or the name of a library instance: at most 40 vertices on
        6 devices, under ``delay``, with memory ``none`` or ``estimate``.
    path : path
        The file to write, ``.html`` or ``.htm``.
    seconds : float
        Limit for the proof.

    Returns
    -------
    Result
        The optimum.

    Raises
    ------
    InputError
        If the instance is of another kind, its times have no common tick, its optimum is not proven
        within the limit, or the file cannot be written.
    """
    from optpart.study.report.html.lesson import tick
    from optpart.study.report.html.lesson import write_lesson as write

    _check_page(path)
    found = _instance(instance)
    tick(found)  # refused before any work
    best = solve(found, seconds=seconds)
    write(best, path)
    return best


def _check_page(path: str | Path) -> None:
    from optpart.study.report.html.page import PAGES

    if Path(path).suffix.lower() not in PAGES:
        remedy = f"name it {Path(path).with_suffix('.html')}"
        raise InputError("", "is not the name of a page", remedy, str(path))


def _proven_by(certificate: Path, subject: Subject) -> Subject:
    """Give the results of a report the bound of a certificate that was accepted."""
    from optpart.base.files import read_text
    from optpart.interop.formats.json import parse_json
    from optpart.problem.rational import rational
    from optpart.solution.result import Status, with_bound

    document = parse_json(read_text(certificate / "certificate.json"))
    bound = rational(document.get("bound", document["makespan"]), "bound")
    entries = []
    for entry in subject.entries:
        result = entry.result
        if result.status is not Status.INFEASIBLE and bound > (result.lower_bound or -1):
            if result.makespan is not None and result.makespan < bound:
                raise ContradictionError(
                    f"{certificate}: an accepted certificate bounds {result.instance.name} by "
                    f"{bound}, but a verified schedule takes {result.makespan}"
                )
            result = replace(with_bound(result, bound), bound_by="certificate")
        entries.append(replace(entry, result=result))
    return replace(subject, entries=tuple(entries))


def pipeline_problem(source: Instance | str | Path, *, sync_rate: Number | None = None) -> Pipeline:
    """Return the problem of splitting a graph into the stages of a pipeline.

    Parameters
    ----------
    source : Instance, str or Path
        Also a throughput file of dnn-partitioning, which is read as its authors mean it; see
        :mod:`optpart.exact.pipeline.throughput`.
    sync_rate : number, or "links", optional
        Size per time at which replicas exchange the memory of their vertices after each item;
        ``"links"`` takes the links of the instance. By default they exchange nothing.

    Raises
    ------
    InputError
        If the source cannot be read or is not in scope, or the rate is not a number above 0.
    """
    return _pipeline_problem(source, sync_rate)


def _pipeline_problem(
    source: Instance | str | Path, sync_rate: Number | None, *, planned: bool = False
) -> Pipeline:
    """Return the problem; if it is to be solved, refuse what is too large before work begins."""
    from optpart.exact.pipeline.downsets import require_few_items
    from optpart.exact.pipeline.problem import pipeline_of
    from optpart.exact.pipeline.throughput import is_throughput, read_throughput
    from optpart.problem.rational import rational

    links = sync_rate == "links"
    rate = None if sync_rate is None or links else rational(sync_rate, "sync_rate")
    if rate is not None and rate <= 0:
        raise ArgumentError("sync_rate", f"{rate} is not above 0", "give a size per time")
    if isinstance(source, (str, Path)) and is_throughput(source):
        if links:
            raise ArgumentError(
                "sync_rate", "the file describes no links between accelerators", "give a number"
            )
        return read_throughput(source, rate)
    instance = _instance(source)
    if planned:
        require_few_items(instance)
    return pipeline_of(instance, synchronise=links, rate=rate)


def plan(
    source: Instance | Pipeline | str | Path,
    *,
    replicas: int = 1,
    device_order: Sequence[str] | None = None,
    sync_rate: Number | None = None,
) -> PipelinePlan:
    """Split a graph into the stages of a pipeline with the least bottleneck.

    Parameters
    ----------
    source : Instance, Pipeline, str or Path
        See :func:`pipeline_problem`, also for ``sync_rate``.
    replicas : int
        Most devices, all alike, that share the items of a stage.
    device_order : sequence of device names, optional
        The only devices to use: every device of a stage comes before those of later stages, and
        any may stay empty (design §2).

    Raises
    ------
    InputError
        If the source is not in scope, or a name is unknown.
    """
    from optpart.exact.pipeline.plan import plan_pipeline
    from optpart.exact.pipeline.problem import Pipeline, device_numbers

    if not isinstance(source, Pipeline):
        source = _pipeline_problem(source, sync_rate, planned=True)
    elif sync_rate is not None:
        raise ArgumentError("sync_rate", "given with a problem", "set it in pipeline_problem")
    if replicas < 1:
        raise ArgumentError("replicas", f"{replicas} is below 1", "give a number ≥ 1")
    order = device_numbers(source, device_order)
    return plan_pipeline(source, order=order, replicas=replicas)


def serve(
    cluster: Serving | str | Path,
    *,
    model: str | Path | None = None,
    seconds: float = 60.0,
    seed: int = 0,
) -> Served:
    """Place the layers of a model on machines, so that most tokens pass per second.

    Parameters
    ----------
    cluster : Serving or path
        A TOML file (:mod:`optpart.applications.serving.problem`), or a cluster of Helix (``.ini``).
    model : path, optional
        For a cluster of Helix, a folder of profiles (:mod:`optpart.applications.serving.helix`).
    """
    from optpart.applications.serving.serve import opened
    from optpart.applications.serving.serve import serve as found
    from optpart.base.limits import check_seconds, check_seed

    return found(opened(cluster, model), check_seconds(seconds), check_seed(seed))


def apart(
    model: str | Path,
    cluster: Cluster | NamedCluster | str | Path,
    *,
    prompt: int,
    context: int,
    first: Number,
    batch: int | None = None,
    weights: str | None = None,
    kv_dtype: str | None = None,
    reserve: int | str | None = None,
    seconds: float = 60.0,
) -> Apart:
    """Place a language model twice, for prefilling and for decoding, with least time per token.

    Parameters
    ----------
    model, cluster
        As :func:`optpart.place` takes them.
    prompt, context : int
        Positions of the prompt, and at the end of which a token is decoded.
    first : number or str
        Limit of the time to first token, such as ``"400ms"``, or in nanoseconds
        (:mod:`optpart.applications.serving.apart.request` defines all times).
    batch, weights, kv_dtype, reserve
        As :func:`workload` takes them.
    """
    from optpart.applications.serving.apart.apart import find
    from optpart.applications.serving.apart.request import read
    from optpart.base.limits import check_seconds

    options = {"batch": batch, "weights": weights, "kv_dtype": kv_dtype, "reserve": reserve}
    request = read(model, cluster, prompt=prompt, context=context, first=first, **options)
    return find(request, check_seconds(seconds))


def recompute(
    instance: Instance, *, offload_to: str | None = None, seconds: float = 60.0
) -> Recomputation:
    """Decide the placement together with what to keep, recompute or offload, for least makespan.

    Parameters
    ----------
    instance : Instance
        With communication ``delay`` and memory ``refcount``.
    offload_to : str, optional
        The device that keeps what is offloaded.

    Returns
    -------
    Recomputation
        The shortest plan as ``best``, the shortest that keeps everything as ``keep``, each with
        ``plan``, ``makespan``, ``bound`` and ``status``; the plans of published ``rules``.
    """
    from optpart.applications.recompute.plan import Problem
    from optpart.applications.recompute.recompute import find
    from optpart.base.limits import check_seconds

    return find(Problem.of(instance, offload_to), check_seconds(seconds))


def export(
    what: Result | Instance | str | Path,
    to: str,
    output: str | Path | None = None,
    *,
    model: str | Path | None = None,
    instance: Instance | str | Path | None = None,
    names: Mapping[str, str] | None = None,
    shapes: Mapping[str, int] | None = None,
    architecture: str | None = None,
    unit: str | None = None,
) -> Text:
    """Hand a plan to a runtime or a viewer, or the linear program of an instance to a solver.

    Parameters
    ----------
    what : Result, Instance, str or Path
        A result or its file; for ``"lp"`` and ``"mps"``, an instance, its file or its name.
    to : str
        One of :data:`optpart.exporters.registry.TARGETS`.
    output : path, optional
        Where to write, for ``"onnx"`` a folder; targets that are a text need none.
    model : path, optional
        What the instance was made of: the file, for targets that write it again; for ``"torch"``
        the exported program and for ``"device-map"`` the folder of the model, which tell its
        modules.
    instance : Instance, str or Path, optional
        That of a result file, which is then verified first. ``"trace"`` needs it, unless it is of
        the library.
    names : mapping from str to str, optional
        What the target calls the devices.
    shapes : mapping from str to int, optional
        Sizes that were given when an ONNX or PyTorch model was read.
    architecture : str, optional
        How the modules of a language model are called
        (:data:`optpart.exporters.llm.ARCHITECTURES`).
    unit : {"ns", "us", "ms", "s"}, optional
        The unit of the instance's times, for ``"trace"``; by default, the one that it states, else
        nanoseconds.

    Returns
    -------
    Text
        The text, and remarks: what the target does not keep of the plan.

    Raises
    ------
    InputError
        If the target cannot express the plan, an option means nothing to it or is missing, or
        something cannot be read or written.
    """
    from optpart.exporters.plan import plan_of, read_plan
    from optpart.exporters.registry import Options, target
    from optpart.exporters.registry import export as hand_out
    from optpart.problem.instance import Instance

    row = target(to)
    place = None if output is None else Path(output)
    options = Options(model, names or {}, shapes or {}, architecture, unit)
    if row.of == "instance":
        if instance is not None:
            remedy = "give the instance in place of the result"
            raise InputError("instance", f"means nothing to the target {to!r}", remedy)
        if not isinstance(what, Instance | str | Path):
            raise InputError("what", "is a result", f"give an instance for the target {to!r}")
        return hand_out(_instance(what), row, options, place)
    if isinstance(what, Instance):
        raise InputError("what", "is an instance", f"give a result for the target {to!r}")
    if row.of == "schedule":
        return hand_out(_scheduled(what, instance), row, options, place)
    if isinstance(what, str | Path):
        found = read_plan(what, None if instance is None else _instance(instance))
    elif instance is not None:
        raise InputError("instance", "given, but the result has its own", "leave it out")
    else:
        found = plan_of(what)
    return hand_out(found, row, options, place)


def _scheduled(what: Result | str | Path, instance: Instance | str | Path | None) -> Scheduled:
    """Return a valid schedule with its instance."""
    from optpart.exporters.trace import Scheduled

    if isinstance(what, str | Path):
        found, schedule, document = _checked(what, instance)
        return Scheduled(found, schedule, str(document.get("method", "")))
    if instance is not None:
        raise InputError("instance", "given, but the result has its own", "leave it out")
    if what.schedule is None:
        raise InputError("schedule", "missing", "give a result that holds a schedule")
    return Scheduled(what.instance, what.schedule, what.method)


def _budget(seconds: float, workers: int, memory: int | str | None) -> Budget:
    from optpart.problem.footprint import read_memory
    from optpart.solution.result import Budget

    return Budget(seconds, workers, memory=None if memory is None else read_memory(memory))


def _instance(instance: Instance | str | Path) -> Instance:
    from optpart.problem.instance import Instance

    if isinstance(instance, str | Path):
        return load(instance)
    if not isinstance(instance, Instance):
        remedy = "give an Instance, a file, or the name of a library instance"
        raise ArgumentError("instance", f"is of type {type(instance).__name__}", remedy)
    return instance
