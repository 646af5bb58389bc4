"""What ``import optpart as op`` offers: each command as a function.

Whatever can take long has the same three parameters, as have the commands: ``seconds``, a limit by
the clock (60 where something is solved, 30 for :func:`bounds`, 20 for each run of :func:`compare`,
:func:`sweep` and each solve of :func:`divide`); ``workers``, the threads or processes that it may
use (2); and ``seed``, the seed of everything random (0). Instances may be given by name or path,
vertices and devices by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from optpart.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optpart.bounds.best import LowerBound
    from optpart.certify.certify import Refutation
    from optpart.export.llm import Text
    from optpart.methods.solve import Fix, Start
    from optpart.ordering.compare import Orders
    from optpart.problem.instance import Instance
    from optpart.report.simulation import Simulated
    from optpart.search.checkpoint import StateFile
    from optpart.solution.goal import Objective
    from optpart.solution.names import NamedOrder, NamedPlacement
    from optpart.solution.result import Progress, Result, Watch
    from optpart.solution.schedule import Schedule
    from optpart.solution.verifier import Violation
    from optpart.study.attribution import Division
    from optpart.study.gap import Comparison
    from optpart.study.run import Run


def load(name: str | Path) -> Instance:
    """Read an instance file or, where there is none of that name, an instance of the library.

    Raises
    ------
    InputError
        If there is neither, or it cannot be read.
    """
    from optpart.formats.detect import read_instance
    from optpart.study import library

    if Path(name).exists():
        return read_instance(name)
    if name in library.index() or name in library.unreadable():
        return library.load(str(name))
    raise InputError(
        "", "no such file", "name a file, or an instance of 'optpart gap --list'", str(name)
    )


def load_with_source(name: str) -> tuple[Instance, bytes | None]:
    """Read an instance, and its file's content where that is in the native format already."""
    from optpart.files import read_bytes
    from optpart.formats.detect import read_instance
    from optpart.problem.document import FORMAT
    from optpart.study import library

    path = Path(name)
    if not path.exists():
        known = library.index().get(name)
        if known is None:
            return load(name), None
        path = library.folder() / known.group / f"{name}.json"
        if not path.exists():
            return library.load(name), None
    instance = read_instance(path)
    content = read_bytes(path)
    native = path.suffix == ".json" and f'"{FORMAT}"'.encode() in content
    return instance, content if native else None


def save(what: Result | Instance, path: str | Path) -> None:
    """Write a result, or an instance in the native format, whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from optpart.formats import native
    from optpart.formats import result as result_format
    from optpart.problem.instance import Instance

    if isinstance(what, Instance):
        native.write(what, path)
    else:
        result_format.write(what, path)


def solve(
    instance: Instance | str | Path,
    method: str = "cpsat",
    *,
    objective: Objective = "makespan",
    within: str | int | Fraction | None = None,
    traffic_limit: str | int | Fraction | None = None,
    fix: Fix | None = None,
    start: Start | None = None,
    placement: NamedPlacement | None = None,
    order: NamedOrder | None = None,
    checkpoint: str | Path | StateFile | None = None,
    resume: bool = False,
    audit: bool = False,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    watch: Watch | None = None,
) -> Result:
    """Find a schedule, and prove as much about it as the method and the bounds can.

    Parameters
    ----------
    instance : Instance, str or Path
        An instance, its file, or the name of one of the library.
    method : str
        See ``optpart methods``.
    objective : {"makespan", "traffic", "lexicographic"}
        What to minimise; ``lexicographic`` is makespan, then traffic.
    within, traffic_limit : number or str, optional
        What makespan and traffic must not exceed.
    fix : {"placement", "order", "both"}, optional
        What of ``start`` is given and must be kept. A placement that the instance leaves no choice
        of needs no ``start``.
    start : Schedule, Result, path or str, optional
        Where to start from: a schedule, a result, its file, or a strategy such as ``"heft"``.
    placement : mapping from names of vertices to names of devices, optional
        Where these vertices must run; the others are free.
    order : sequence of names of vertices, or a mapping from names of devices to such, optional
        Of two in one list that share a device, the earlier must run first. Under a device only
        vertices stand that ``placement`` puts there.
    checkpoint : path, optional
        Where the methods ``search`` and ``hybrid`` keep their state.
    resume : bool
        Go on from the checkpoint.
    audit : bool
        Solve again without any rule that removes solutions, in as much time again, and compare.
    seconds : float
        Time limit.
    workers : int
        Threads or processes.
    seed : int
        Of everything random.
    watch : callable, optional
        Told of every step of the run.

    Returns
    -------
    Result
        With a lower bound, also where the method itself proves nothing. What it says of at most
        nine vertices has been compared with enumeration.

    Raises
    ------
    InputError
        If something handed over is wrong, or the method cannot do what is asked.
    ContradictionError
        If enumeration or the audit contradicts the result, which is a defect.
    """
    from optpart.methods.solve import ask

    question = ask(
        _instance(instance),
        method,
        objective=objective,
        within=within,
        traffic_limit=traffic_limit,
        fix=fix,
        start=start,
        placement=placement,
        order=order,
        checkpoint=checkpoint,
        resume=resume,
        seconds=seconds,
        workers=workers,
        seed=seed,
    )
    if audit:
        question.check_audit()
    result = question.answer(watch)
    if audit:
        question.audit(result)
    return result


def pareto(
    instance: Instance | str | Path,
    *,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    watch: Watch | None = None,
) -> list[Result]:
    """Return the Pareto front of makespan and traffic: see :func:`optpart.methods.pareto.pareto`.

    Parameters
    ----------
    seconds : float
        Time limit for the whole front.
    """
    from optpart.methods.solve import ask

    return ask(_instance(instance), seconds=seconds, workers=workers, seed=seed).front(watch)


def bounds(
    instance: Instance | str | Path, *, seconds: float = 30.0, workers: int = 2, seed: int = 0
) -> list[LowerBound]:
    """Prove lower bounds of the makespan, the solver's last.

    Parameters
    ----------
    seconds : float
        For all of them together.
    workers, seed : int
        For the solver.

    Returns
    -------
    list of LowerBound
        A value of ``None`` proves that there is no schedule. Where that shows without any bound,
        ``feasibility`` stands alone.
    """
    from optpart.bounds.best import LowerBound, all_bounds
    from optpart.methods.solver_bound import solver_row
    from optpart.problem.feasibility import contradiction

    instance = _instance(instance)
    if contradiction(instance):
        return [LowerBound("feasibility", None, 0.0)]
    return all_bounds(instance, seconds, besides=solver_row(workers, seed))


def verify(
    instance: Instance | str | Path, result: Result | Schedule | str | Path
) -> list[Violation]:
    """Check a schedule, or a result with every figure that it claims, in exact arithmetic.

    Parameters
    ----------
    result : Result, Schedule or path
        A path is that of a result file.

    Returns
    -------
    list of Violation
        Empty if and only if nothing is wrong.
    """
    from optpart.formats import result as result_format
    from optpart.report.verification import check_document, check_result
    from optpart.solution.schedule import Schedule
    from optpart.solution.verifier import verify as check

    instance = _instance(instance)
    if isinstance(result, Schedule):
        return check(instance, result)
    if isinstance(result, str | Path):
        return list(check_result(instance, result).violations)
    return list(check_document(instance, result_format.to_dict(result)).violations)


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
        ``PARTITIONING+SCHEDULER``; of one with a placement given, only the scheduler counts.
    start : Schedule, Result or path, optional
        A schedule, a result, or its file, to take the placement from.
    placement : mapping from names of vertices to names of devices, optional
        The placement itself.

    Returns
    -------
    Simulated
        Its result has a lower bound.
    """
    from optpart.formats.result import read_schedule
    from optpart.methods.solve import bounded
    from optpart.report.simulation import run
    from optpart.solution.names import placement_of
    from optpart.solution.schedule import Schedule

    instance = _instance(instance)
    if start is not None and placement is not None:
        raise ArgumentError("placement", "given together with `start`", "leave one of them out")
    where = None if placement is None else placement_of(instance, placement)
    if start is not None:
        if isinstance(start, str | Path):
            start = read_schedule(start, instance)
        schedule = start if isinstance(start, Schedule) else start.schedule
        if schedule is None:
            raise ArgumentError("start", "a result without a schedule", "give one that has one")
        schedule.check_fits(instance)
        where = schedule.placement
    done = run(instance, method, where, [seed])[0]
    return replace(done, result=bounded(done.result))


def compare(
    instance: Instance | str | Path,
    methods: Iterable[str] = (),
    *,
    seconds: float = 20.0,
    workers: int = 2,
    seed: int = 0,
    watch: Callable[[str, Progress | None], None] | None = None,
) -> Comparison:
    """Run methods on an instance, and establish the reference that they are measured against.

    See :func:`sweep`; ``watch`` is told the name of the method at work and its progress.
    """
    from optpart.solution.result import Budget
    from optpart.study.gap import chosen_methods
    from optpart.study.gap import compare as compared

    names = chosen_methods([methods] if isinstance(methods, str) else list(methods))
    found = compared(
        _instance(instance), names, budget=Budget(seconds, workers), seed=seed, watch=watch
    )
    return _bounded_rows(found)


def sweep(
    instances: Iterable[Instance | str | Path],
    methods: Iterable[str] = (),
    *,
    seeds: int = 1,
    engine: str = "local",
    store: str | Path | None = None,
    seconds: float = 20.0,
    workers: int = 2,
    seed: int = 0,
    watch: Callable[[Run, Progress | None], None] | None = None,
) -> Iterator[Comparison]:
    """Compare methods on instances, as the command ``gap`` does.

    Whether or not it is among ``methods``, the exact method runs for the reference where it
    supports the instance. A method that fails, or claims what a verified schedule contradicts,
    costs its row, never the comparison: see ``Comparison.findings``.

    Parameters
    ----------
    methods : iterable of str
        ``all`` is every pair of strategies; by default the heuristics, what was registered, and
        the exact method.
    seeds : int
        Runs of each method, with this many seeds from ``seed`` on.
    engine : str
        ``local``, ``dask`` for processes of this machine, or ``dask://HOST:PORT`` of a scheduler.
    store : path, optional
        A file that keeps finished runs; what it holds already is not done again.
    seconds : float
        For each run.
    watch : callable, optional
        Told of the run at work, or just done, and of its progress where that is known.

    Returns
    -------
    iterator of Comparison
        In the order of the instances, each as soon as it is complete. Each of its results has a
        lower bound where anything is proven: that of its method, or of the reference.

    Raises
    ------
    InputError
        If something handed over is wrong, before any run.
    """
    from contextlib import nullcontext

    from optpart.limits import check_seed
    from optpart.solution.result import Budget
    from optpart.study.engine import choose
    from optpart.study.gap import chosen_methods
    from optpart.study.gap import sweep as swept
    from optpart.study.store import Store

    check_seed(seed, seeds)
    names = chosen_methods([methods] if isinstance(methods, str) else list(methods))
    budget, spread = Budget(seconds, workers), choose(engine, workers)
    chosen = [_instance(instance) for instance in instances]

    def compared() -> Iterator[Comparison]:
        with nullcontext() if store is None else Store(Path(store)) as kept:
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

    return compared()  # what is asked for is checked now, not when the first row is fetched


def _bounded_rows(comparison: Comparison) -> Comparison:
    """Give the bound of the reference to the results that have none of their own."""
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
    watch: Callable[[str, Progress | None], None] | None = None,
) -> Division:
    """Attribute the loss of pairs of strategies to placement and to order, as ``gap --axis`` does.

    Parameters
    ----------
    pairs : iterable of str
        Such as ``mite+pct``.
    seeds : int
        Runs of each pair, with this many seeds from ``seed`` on.
    seconds : float
        For each solve: one for every placement that differs from the others, and one without any.
    """
    from optpart.limits import check_seed
    from optpart.solution.result import Budget
    from optpart.study.attribution import divide as divided

    check_seed(seed, seeds)
    budget = Budget(seconds, workers)
    return divided(
        _instance(instance), pairs, budget=budget, seeds=range(seed, seed + seeds), watch=watch
    )


def compare_orders(
    instance: Instance | str | Path,
    *,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    watch: Watch | None = None,
) -> Orders:
    """Order an assigned graph in several ways, and solve for the optimal order.

    Parameters
    ----------
    instance : Instance, str or Path
        One that leaves no choice of devices.
    seconds : float
        For the optimal order.
    """
    from optpart.ordering.compare import compare_orders as compared
    from optpart.solution.result import Budget

    return compared(_instance(instance), Budget(seconds, workers), seed=seed, watch=watch)


def certify(
    instance: Instance | str | Path,
    directory: str | Path,
    *,
    result: Result | str | Path | None = None,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
) -> Refutation:
    """Write a schedule and a proof that none is shorter, for :func:`check` to judge.

    Parameters
    ----------
    directory : path
        The folder to write, new or a certificate.
    result : Result or path, optional
        An optimal schedule; without it, one is sought.
    seconds : float
        For the schedule, and again for the proof.

    Raises
    ------
    InputError
        If the model is not covered, the schedule not valid, or the place not writable.
    UncertifiedError
        If there is no schedule, or no proof was found; then nothing is written.
    """
    from optpart.certify.certify import UncertifiedError, check_place, check_supported
    from optpart.certify.certify import certify as write
    from optpart.formats.result import read_document, read_schedule
    from optpart.methods.cpsat import cpsat
    from optpart.solution.result import Budget

    check_place(Path(directory))
    source = None
    if isinstance(instance, str | Path):
        instance, source = load_with_source(str(instance))
    check_supported(instance)
    if isinstance(result, str | Path):
        schedule = read_schedule(result, instance)
        method = str(read_document(result).get("method", "given"))
    else:
        if result is None:
            result = cpsat(instance, budget=Budget(seconds, workers), seed=seed)
        if result.schedule is None:
            raise UncertifiedError(f"{instance.name}: no schedule: {result.reason}")
        schedule, method = result.schedule, result.method
    return write(instance, schedule, directory, source=source, method=method, seconds=seconds)


def check(directory: str | Path, instance: str | Path | None = None) -> str:
    """Check a certificate, by both judges where it holds two refutations.

    Parameters
    ----------
    instance : path, optional
        The file that the certificate has to be about, byte for byte.

    Returns
    -------
    str
        What is proven, in words.

    Raises
    ------
    optpart.certify.check.RejectedError
        With the reason, if it does not prove what it claims.
    """
    from optpart.certify.check import check as judge
    from optpart.certify.precedence import check as second_judge

    file = None if instance is None else str(instance)
    said = judge(str(directory), file)
    if (Path(directory) / "precedence.json").exists():
        said += f"; and again: {second_judge(str(directory), file)}"
    return said


def draw(
    result: Result | Schedule | str | Path,
    path: str | Path,
    *,
    instance: Instance | str | Path | None = None,
) -> None:
    """Draw a schedule by device over time, as PNG or SVG.

    Parameters
    ----------
    result : Result, Schedule or path
        A result, its file, or a schedule, as :func:`optpart.retime` makes it from names.
    path : path
        Where to write.
    instance : Instance, str or Path, optional
        That of a schedule, or of a result file; not needed for a file of the library.

    Raises
    ------
    InputError
        If there is no valid schedule to draw, or the file cannot be written.
    """
    from optpart.report import gantt
    from optpart.solution.result import conclude
    from optpart.solution.schedule import Schedule

    if isinstance(result, str | Path):
        _draw_file(result, path, instance)
        return
    if isinstance(result, Schedule):
        if instance is None:
            raise ArgumentError("instance", "missing", "give that of the schedule")
        result = conclude(_instance(instance), "given", result)
    if result.schedule is None:
        problem = result.reason or "missing"
        raise InputError("schedule", problem, "give a result that holds a valid schedule")
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
    from optpart.formats.result import read_document, read_schedule
    from optpart.problem.rational import rational
    from optpart.report import gantt
    from optpart.report.verification import check_result

    document = read_document(result)
    if instance is None:
        instance = document.get("instance")
        if not isinstance(instance, str):
            raise ArgumentError("", "names no instance", "name it with `instance`", str(result))
    found = _instance(instance)
    report = check_result(found, result)
    if report.violations:
        raise ArgumentError(
            "",
            f"its schedule is not valid for {found.name} ({report.violations[0]})",
            "name its instance with `instance`",
            str(result),
        )
    bound = document.get("lower_bound")
    gantt.draw(
        found,
        read_schedule(result, found),
        path,
        title=f"{found.name}, {document.get('method', '')}",
        bound=None if bound is None else rational(bound, "lower_bound"),
    )


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
) -> Text:
    """Hand a plan to a runtime, or the linear program of an instance to a solver.

    Parameters
    ----------
    what : Result, Instance, str or Path
        A result or its file; for ``"lp"`` and ``"mps"``, an instance, its file or its name.
    to : str
        One of :data:`optpart.export.registry.TARGETS`.
    output : path, optional
        Where to write, for ``"onnx"`` a folder; targets that are a text need none.
    model : path, optional
        The file that the instance was made of, for targets that write it again.
    instance : Instance, str or Path, optional
        That of a result file, which is then verified first.
    names : mapping from str to str, optional
        What the target calls the devices.
    shapes : mapping from str to int, optional
        Sizes that were given when an ONNX model was read.
    architecture : str, optional
        How the modules of a language model are called: ``"llama"``, ``"gpt2"`` or ``"gpt-neox"``.

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
    from optpart.export.plan import plan_of, read_plan
    from optpart.export.registry import InstanceTarget, Options, target
    from optpart.export.registry import export as hand_out
    from optpart.problem.instance import Instance

    row = target(to)
    place = None if output is None else Path(output)
    options = Options(model, names or {}, shapes or {}, architecture)
    if isinstance(row, InstanceTarget):
        if instance is not None:
            remedy = "give the instance in place of the result"
            raise InputError("instance", f"means nothing to the target {to!r}", remedy)
        if not isinstance(what, Instance | str | Path):
            raise InputError("what", "is a result", f"give an instance for the target {to!r}")
        return hand_out(_instance(what), row, options, place)
    if isinstance(what, Instance):
        raise InputError("what", "is an instance", f"give a result for the target {to!r}")
    if isinstance(what, str | Path):
        found = read_plan(what, None if instance is None else _instance(instance))
    elif instance is not None:
        raise InputError("instance", "given, but the result has its own", "leave it out")
    else:
        found = plan_of(what)
    return hand_out(found, row, options, place)


def _instance(instance: Instance | str | Path) -> Instance:
    return load(instance) if isinstance(instance, str | Path) else instance
