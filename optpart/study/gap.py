"""The distance of methods from the optimum, or from the best known values and bounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import stdev
from typing import TYPE_CHECKING, Literal

from optpart.base import clock
from optpart.base.arguments import checked
from optpart.base.errors import OptpartError
from optpart.base.escaping import brief
from optpart.base.limits import check_seed
from optpart.base.rounding import double
from optpart.base.showing import Shown, notebook
from optpart.lower_bounds.best import BOUNDS, SECONDS, Bound, best_bound
from optpart.methods import registry
from optpart.problem import feasibility
from optpart.problem.instance import Instance
from optpart.solution.audit import Finding, contradicted, contradiction, denied, findings
from optpart.solution.claim import LIBRARY as THE_LIBRARY
from optpart.solution.claim import Claim
from optpart.solution.goal import Measure
from optpart.solution.result import Budget, Progress, Result, Status, with_bound
from optpart.study import library
from optpart.study.engine import Engine, local
from optpart.study.run import Run, Watch, interrupted, is_final
from optpart.study.store import RowError, Store
from optpart.study.stored import strongest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_LOG = logging.getLogger(__name__)

#: The method that proves the reference.
EXACT = "cpsat"

#: Share of a time limit for bounds of the reference; its run has the rest.
_BOUNDING = 0.25

#: Bounds that take next to no time.
CHEAP = tuple(row for row in BOUNDS.values() if row.cost == "cheap")

#: The source of findings and references from the instance library.
LIBRARY = "library"


@dataclass(frozen=True)
class Reference:
    """The values that methods are measured against.

    Attributes
    ----------
    makespan : Fraction or None
        The optimum, or the best known makespan; ``None`` if no schedule is known.
    bound : Fraction or None
        The best proven lower bound.
    makespan_by, bound_by : str
        The method that found it, or ``library``; the method or bound of this run that proved it, or
        that there is no schedule.
    infeasible : str
        The reason why there is no schedule, if that is proven.
    note : str
        The reason why the optimum is not known, if it is not.
    certified : bool
        Whether the library has a certificate of this optimum.
    claim : Claim or None
        What the store or the library claims beyond the proven bound.
    """

    makespan: Fraction | None
    bound: Fraction | None
    makespan_by: str = ""
    bound_by: str = ""
    infeasible: str = ""
    note: str = ""
    certified: bool = False
    claim: Claim | None = None

    def __repr__(self) -> str:
        return f"<Reference: {self.kind}, from {brief(self.makespan_by)}, {brief(self.bound_by)}>"

    @property
    def kind(self) -> str:
        """``optimum`` if the makespan is proven optimal, else ``best known``.

        ``claimed optimum`` and ``claimed infeasible`` are what a file claims to be proven.
        """
        if self.infeasible:
            return "infeasible"
        if self.makespan is None:
            is_claimed = self.claim is not None and self.claim.infeasible
            return "claimed infeasible" if is_claimed else "unknown"
        if self.makespan == self.bound:
            return "optimum"
        is_claimed = self.claim is not None and self.claim.lower_bound == self.makespan
        return "claimed optimum" if is_claimed else "best known"

    @property
    def claimed_bound(self) -> Fraction | None:
        """The largest bound that is proven or claimed."""
        return self.bound if self.claim is None else self.claim.lower_bound or self.bound


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """The results of all methods on one instance, and their reference.

    Attributes
    ----------
    results : tuple of Result
        One per method and seed.
    interrupted : bool
        Whether the user stopped the sweep before all runs on this instance were done.
    findings : tuple of Finding
        False claims of methods, the store and the library. No reference uses them.
    """

    instance: Instance
    reference: Reference
    results: tuple[Result, ...]
    interrupted: bool = False
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        name = brief(self.instance.name)
        return f"<Comparison on {name}: {len(self.results)} results, {self.reference.kind}>"

    @checked
    def plot(
        self, kind: Literal["box", "profile", "mean"] = "mean", *, ax: Axes | None = None
    ) -> Axes:
        """Draw all methods; see :func:`optpart.plot_comparisons`."""
        axes: Axes = notebook().plot_comparisons([self], kind, ax=ax)
        return axes

    def to_dataframe(self) -> DataFrame:
        """Return a row per method and seed; exact numbers as strings.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        return notebook().frame_of_comparison(self)

    def over_reference(self, result: Result) -> float | None:
        """``makespan / reference − 1``."""
        return excess(result.makespan, self.reference.makespan)

    def over_bound(self, result: Result) -> float | None:
        """``makespan / bound − 1``."""
        return excess(result.makespan, self.reference.bound)

    def over_claimed_bound(self, result: Result) -> float | None:
        """``makespan / bound − 1`` of the largest bound that is proven or claimed."""
        return excess(result.makespan, self.reference.claimed_bound)

    def is_claimed_optimal(self, result: Result) -> bool:
        """Return whether a file claims that the makespan is optimal, and no method proves it."""
        claimed = self.reference.kind == "claimed optimum"
        return claimed and result.makespan == self.reference.makespan

    def is_optimal(self, result: Result) -> bool:
        """Return whether any method has proven the makespan optimal."""
        return result.makespan is not None and result.makespan == self.reference.bound

    def spreads(self) -> list[Spread]:
        """Return a summary of each method over its seeds."""
        by_method: dict[str, list[Result]] = {}
        for result in self.results:
            by_method.setdefault(result.method, []).append(result)
        return [Spread(self, name, tuple(results)) for name, results in by_method.items()]


@dataclass(frozen=True, eq=False)
class Spread:
    """One method on one instance over several seeds; the figures cover the runs with a schedule."""

    comparison: Comparison
    method: str
    results: tuple[Result, ...]

    def __repr__(self) -> str:
        name = brief(self.comparison.instance.name)
        return f"<Spread of {brief(self.method)} on {name}: {len(self.results)} results>"

    @property
    def found(self) -> list[Result]:
        """The results that have a schedule."""
        return [result for result in self.results if result.makespan is not None]

    @property
    def makespans(self) -> list[Fraction]:
        """Makespans, by seed."""
        return [result.makespan for result in self.results if result.makespan is not None]

    @property
    def best(self) -> Fraction | None:
        """The least makespan."""
        return min(self.makespans, default=None)

    @property
    def mean(self) -> Fraction | None:
        """The mean makespan, exactly."""
        return _mean(self.makespans)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation of the makespan; ``None`` with fewer than two."""
        try:
            return float(stdev(self.makespans)) if len(self.makespans) > 1 else None
        except OverflowError:  # makespans beyond doubles
            return None

    @property
    def traffic(self) -> Fraction | None:
        """The mean traffic."""
        return _mean([result.traffic for result in self.found if result.traffic is not None])

    @property
    def optimal(self) -> int:
        """The number of makespans that any method has proven optimal."""
        return sum(map(self.comparison.is_optimal, self.results))

    @property
    def claimed_optimal(self) -> int:
        """The number of makespans that a file claims to be optimal."""
        return sum(map(self.comparison.is_claimed_optimal, self.results))

    @property
    def seconds(self) -> float:
        """The mean time of a run, with or without a schedule."""
        return sum(result.seconds for result in self.results) / len(self.results)

    @property
    def reason(self) -> str:
        """The first remark of any run."""
        said = sorted(self.results, key=lambda result: not result.refused)
        return next((result.reason for result in said if result.reason), "")

    @property
    def refused(self) -> bool:
        """True if any of the runs failed or made a false claim."""
        return any(result.refused for result in self.results)


def _mean(values: list[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def excess(value: Fraction | None, base: Fraction | None) -> float | None:
    """Return ``value / base − 1``, rounded up; ``None`` if it is not defined."""
    if value is None or base is None:
        return None
    if value == base:
        return 0.0
    return double(value / base - 1, up=True) if base else None


@dataclass(frozen=True)
class Summary:
    """One method over several instances.

    Attributes
    ----------
    solved, instances : int
        Instances with a schedule, and all instances; each counts once per seed.
    mean, worst : float or None
        Mean and largest makespan / reference − 1 over the schedules found.
    mean_over_claimed_bound : float or None
        The same with the largest bound that is proven or claimed by a file.
    optimal, references : int
        How often it reached a proven optimum, and the number of instances with one.
    claimed_optimal, claimed_references : int
        The same for optima that a file claims.
    seconds : float
        Total time.
    """

    method: str
    solved: int
    instances: int
    mean: float | None
    worst: float | None
    mean_over_bound: float | None
    mean_over_claimed_bound: float | None
    optimal: int
    references: int
    claimed_optimal: int
    claimed_references: int
    seconds: float


def default_methods() -> list[str]:
    """Return all heuristics, registered methods, and the exact method for the reference."""
    heuristics = [*registry.heuristics(), *registry.own_heuristics()]
    return [*heuristics, *registry.own(), EXACT]


def chosen_methods(names: Sequence[str]) -> list[str]:
    """Return the methods that names stand for: ``all`` means every pair, no name the default.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    chosen = list(names) or default_methods()
    if "all" in chosen:
        chosen = [*registry.pairs(), *default_methods(), *chosen]
        chosen = [name for name in chosen if name != "all"]
    for name in chosen:
        registry.check(name)
    return chosen


def compare(
    instance: Instance,
    names: Iterable[str],
    *,
    budget: Budget,
    seed: int = 0,
    watch: Callable[[str, Progress | None], None] | None = None,
) -> Comparison:
    """Run methods on an instance, and establish the reference that they are measured against.

    The exact method runs for the reference if it supports the instance, even if it is not among
    ``names``. A method that fails, or makes a false claim, loses its own row only; see
    :attr:`Comparison.findings`.

    Parameters
    ----------
    watch : callable, optional
        Called with the name of the running method and, if the method reports it, its progress.
    """

    def told(run: Run, step: Progress | None) -> None:
        if watch is not None:
            watch(run.method, step)

    return next(sweep([instance], names, budget=budget, seeds=[seed], watch=told))


def sweep(
    instances: Sequence[Instance],
    names: Iterable[str],
    *,
    budget: Budget,
    seeds: Sequence[int] = (0,),
    engine: Engine = local,
    store: Store | None = None,
    watch: Watch | None = None,
) -> Iterator[Comparison]:
    """Compare methods on instances, each with every seed, on any engine.

    If the exact method is not among ``names``, its run for the reference has the first seed, and
    shares one time limit with the bounds that follow it.

    Parameters
    ----------
    engine : Engine
        Executes the runs.
    store : Store, optional
        Keeps finished runs. A run that it already holds is not repeated, unless its row is invalid;
        what it proved is then claimed by the store.
    watch : callable, optional
        Called with the run in progress, or just finished, and with its progress if known.

    Yields
    ------
    Comparison
        In the order of the instances, each as soon as it is complete. After an interruption or a
        fault, incomplete ones that have any results follow.

    Raises
    ------
    OptpartError
        After all that was finished: if the store or the engine failed.
    """
    for seed in seeds:
        check_seed(seed)
    names = list(dict.fromkeys(names))
    plan = [_runs(instance, names, seeds, budget) for instance in instances]
    seconds = min(SECONDS, _BOUNDING * budget.seconds)
    late = clock.now() - clock.command_begin()  # until here, which the first bounds make up for
    damaged: dict[Run, Finding] = {}
    kept: set[Run] = set()
    every = [run for runs in plan for run in runs]
    arrivals = _arrivals(every, engine, store, watch, damaged, kept)
    results: dict[Run, Result] = {}
    fault: OptpartError | None = None
    for instance, runs in zip(instances, plan, strict=True):
        while any(run not in results for run in runs):
            try:
                arrival = next(arrivals, None)
            except KeyboardInterrupt:  # between two runs
                break
            except OptpartError as error:
                fault = error
                break
            if arrival is None:
                break
            results.update([arrival])
        done = [results[run] for run in runs if run in results]
        if done:
            # What is read again takes no time for bounds: its own are claimed.
            among = CHEAP if kept.issuperset(runs) else None
            reference, judged, found = _judge(instance, done, max(0.0, seconds - late), among)
            late = 0.0
            if store is not None and reference.bound is not None:
                _keep_bound(store, reference, {r: results[r] for r in runs if r in results}, kept)
            yield Comparison(
                instance,
                reference,
                tuple(result for result in judged if result.method in names),
                interrupted=len(done) < len(runs) or any(map(interrupted, done)),
                findings=(*(damaged[run] for run in runs if run in damaged), *found),
            )
    if fault is not None:
        raise fault


def _runs(
    instance: Instance, names: Sequence[str], seeds: Sequence[int], budget: Budget
) -> list[Run]:
    """Plan the runs on one instance, the one for the reference last."""
    runs = [Run(instance, name, seed, budget) for name in names for seed in seeds]
    if EXACT not in names:
        if budget.deterministic is None:
            budget = replace(budget, seconds=(1 - _BOUNDING) * budget.seconds)
        runs.append(Run(instance, EXACT, seeds[0], budget))
    return runs


def _arrivals(
    runs: list[Run],
    engine: Engine,
    store: Store | None,
    watch: Watch | None,
    damaged: dict[Run, Finding],
    kept: set[Run],
) -> Iterator[tuple[Run, Result]]:
    """Yield stored results, whose runs are added to ``kept``, then those of the engine.

    Those are stored. An invalid row of the store is reported, and its run repeated.
    """
    missing = []
    if store is not None:
        _say_other(store.begin(runs))
    for run in runs:
        try:
            known = None if store is None else store.get(run)
        except RowError as error:
            known = None
            row = f"{error.file}: {error.place.removeprefix(f'{run.instance.name}, ')}"
            damaged[run] = Finding(run.instance.name, row, f"{error.problem}; done again")
        if known is None:
            missing.append(run)
        else:
            kept.add(run)
            yield run, known
    for run, result in engine(missing, watch):
        fault: OptpartError | KeyboardInterrupt | None = None
        if store is not None and is_final(run, result):
            try:
                store.add(run, result)
            except (OptpartError, KeyboardInterrupt) as error:
                fault = error
        yield run, result  # whether or not it could be stored
        if fault is not None:
            raise fault


def _keep_bound(
    store: Store, reference: Reference, results: dict[Run, Result], kept: set[Run]
) -> None:
    """Store a bound of the reference that no run has, with the first run of the exact method.

    So that whoever reads the store has the same bound as this sweep.
    """
    best = strongest(result for result in results.values() if not result.given)
    known = None if best is None else best.lower_bound
    if reference.bound is None or reference.bound <= (known or 0):
        return
    for run, result in results.items():
        if run.method == EXACT and run not in kept and not result.refused:
            if is_final(run, result):
                store.replace(run, with_bound(result, reference.bound))
            return


def _say_other(count: int) -> None:
    if count:
        was, is_ = ("run was", "is") if count == 1 else ("runs were", "are")
        _LOG.warning("%d stored %s made by other code and %s run again", count, was, is_)


def _judge(
    instance: Instance, results: list[Result], seconds: float, among: Sequence[Bound] | None
) -> tuple[Reference, list[Result], list[Finding]]:
    """Establish the reference from verified schedules and claims that they do not contradict.

    Parameters
    ----------
    seconds : float
        Time limit of the combinatorial bounds, for which no method has stated one as good.
    among : sequence of Bound or None
        Those to compute; ``None`` means all.

    Returns
    -------
    Reference
    list of Result
        The same results, without contradicted claims.
    list of Finding
    """
    known = library.evidence(instance)
    others = [Finding(instance.name, LIBRARY, fault) for fault in known.faults]
    # The library counts only if this run found nothing as good.
    makespans = [(r.makespan, r.method) for r in results if r.makespan is not None]
    if known.makespan is not None:
        makespans.append((known.makespan, LIBRARY))
    least, by = min(makespans, key=lambda pair: pair[0], default=(None, ""))

    def holds(source: str, bound: Fraction | None) -> bool:
        """Return whether no schedule contradicts a bound or, without one, infeasibility."""
        if least is None or (bound is not None and bound <= least):
            return True
        claim = "INFEASIBLE" if bound is None else f"bound {bound}"
        others.append(Finding(instance.name, source, contradiction(claim, least, by)))
        return False

    if least is not None:
        # A claim under a given placement or order is not contradicted by other schedules.
        results = [
            denied(result, why)
            if not result.given and (why := contradicted(result, least, by))
            else result
            for result in results
        ]
    reference = _reference(instance, results, known, (least, by), holds, seconds, among)
    claimed, proven = known.claimed, reference.bound
    if claimed is not None and proven is not None and claimed < proven:
        bound = f"bound {proven} by {reference.bound_by}"
        below = f"best known {claimed} is below {bound}"
        others.append(Finding(instance.name, LIBRARY, below))
    return reference, results, [*findings(instance, results), *others]


def _reference(
    instance: Instance,
    results: list[Result],
    known: library.Evidence,
    best: tuple[Fraction | None, str],
    holds: Callable[[str, Fraction | None], bool],
    seconds: float,
    among: Sequence[Bound] | None,
) -> Reference:
    """Return the reference that uncontradicted results prove."""
    makespan, makespan_by = best
    reason = feasibility.contradiction(instance)
    if reason and holds("feasibility", None):
        return Reference(None, None, infeasible=reason)
    for result in results:
        if result.status is Status.INFEASIBLE and not result.given:
            return Reference(None, None, infeasible=result.reason, bound_by=result.method)
    best_bounded = strongest(result for result in results if not result.given)
    bound, bound_by = None, ""
    if best_bounded is not None:
        bound, bound_by = best_bounded.lower_bound, best_bounded.method
    claims = [r.claim for r in results if r.claim is not None and not r.given]
    if known.bound is not None and holds(LIBRARY, known.bound):
        claims.append(Claim(THE_LIBRARY, {"makespan": known.bound}))
    if makespan is None or makespan != bound:
        # What is claimed to be closed is proven again if that is cheap.
        closed = makespan is not None and makespan in (claim.lower_bound for claim in claims)
        combinatorial = best_bound(instance, seconds, makespan, among=CHEAP if closed else among)
        if holds(combinatorial.name, combinatorial.value):
            if combinatorial.value is None:
                return Reference(None, None, infeasible=feasibility.excluded(instance, "bounds"))
            if bound is None or combinatorial.value > bound:
                bound, bound_by = combinatorial.value, combinatorial.name
    proven: dict[Measure, Fraction] = {} if bound is None else {"makespan": bound}
    beyond = [left for claim in claims if (left := claim.beyond(proven)) is not None]
    claim = max(beyond, key=lambda claim: (claim.infeasible, claim.lower_bound or 0), default=None)
    note = next((r.reason for r in results if r.method == EXACT and not r.refused), "")
    reference = Reference(makespan, bound, makespan_by, bound_by, note=note, claim=claim)
    certified = known.certified and makespan == reference.claimed_bound == known.makespan
    return replace(reference, certified=certified)


def summarise(comparisons: list[Comparison]) -> list[Summary]:
    """Summarise each method over the instances that are not infeasible."""
    comparisons = [c for c in comparisons if not c.reference.infeasible]
    names = list(dict.fromkeys(r.method for c in comparisons for r in c.results))
    return [_summary(name, comparisons) for name in names]


def _summary(name: str, comparisons: list[Comparison]) -> Summary:
    rows = list(_rows(name, comparisons))
    over = [x for c, r in rows if (x := c.over_reference(r)) is not None]
    over_bound = [x for c, r in rows if (x := c.over_bound(r)) is not None]
    over_claimed = [x for c, r in rows if (x := c.over_claimed_bound(r)) is not None]
    return Summary(
        method=name,
        solved=sum(r.makespan is not None for _, r in rows),
        instances=len(rows),
        mean=sum(over) / len(over) if over else None,
        worst=max(over, default=None),
        mean_over_bound=sum(over_bound) / len(over_bound) if over_bound else None,
        mean_over_claimed_bound=sum(over_claimed) / len(over_claimed) if over_claimed else None,
        optimal=sum(c.is_optimal(r) for c, r in rows),
        references=sum(c.reference.kind == "optimum" for c, _ in rows),
        claimed_optimal=sum(c.is_claimed_optimal(r) for c, r in rows),
        claimed_references=sum(c.reference.kind == "claimed optimum" for c, _ in rows),
        seconds=sum(r.seconds for _, r in rows),
    )


def _rows(name: str, comparisons: list[Comparison]) -> Iterator[tuple[Comparison, Result]]:
    for comparison in comparisons:
        for result in comparison.results:
            if result.method == name:
                yield comparison, result
