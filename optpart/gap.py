"""How far methods are from the optimum, or from the best that is known and proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from optpart import library, methods
from optpart.bounds.best import best_bound
from optpart.errors import UnsupportedError
from optpart.feasibility import contradiction
from optpart.instance import Instance
from optpart.result import Budget, Progress, Result, Status, conclude

#: What proves the reference.
EXACT = "cpsat"


@dataclass(frozen=True)
class Reference:
    """What methods are measured against.

    Attributes
    ----------
    makespan : Fraction or None
        The optimum, or the best that is known; ``None`` if no schedule is known.
    bound : Fraction or None
        The best proven lower bound.
    makespan_by, bound_by : str
        Who found or proved it: a method or bound of this run, or ``library``.
    infeasible : str
        Why there is no schedule, if that is proven.
    note : str
        Why the optimum is not known, if it is not.
    """

    makespan: Fraction | None
    bound: Fraction | None
    makespan_by: str = ""
    bound_by: str = ""
    infeasible: str = ""
    note: str = ""

    @property
    def kind(self) -> str:
        """``optimum`` if the makespan is proven to be that, else ``best known``."""
        if self.infeasible:
            return "infeasible"
        if self.makespan is None:
            return "unknown"
        return "optimum" if self.makespan == self.bound else "best known"


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of all methods on one instance, and their reference."""

    instance: Instance
    reference: Reference
    results: tuple[Result, ...]

    def over_reference(self, result: Result) -> float | None:
        """``makespan / reference − 1``."""
        return excess(result.makespan, self.reference.makespan)

    def over_bound(self, result: Result) -> float | None:
        """``makespan / bound − 1``."""
        return excess(result.makespan, self.reference.bound)

    def is_optimal(self, result: Result) -> bool:
        """Whether the makespan is proven optimal, by whomever."""
        return result.makespan is not None and result.makespan == self.reference.bound


def excess(value: Fraction | None, base: Fraction | None) -> float | None:
    """``value / base − 1``; ``None`` where it is not defined."""
    if value is None or base is None:
        return None
    if value == base:
        return 0.0
    return float(value / base - 1) if base else None


@dataclass(frozen=True)
class Summary:
    """One method over several instances.

    Attributes
    ----------
    solved, instances : int
        On how many it found a schedule, of how many.
    mean, worst : float or None
        Of makespan / reference − 1 where it found one.
    optimal, references : int
        How often it met a proven optimum, of how many instances with one.
    seconds : float
        In total.
    """

    method: str
    solved: int
    instances: int
    mean: float | None
    worst: float | None
    mean_over_bound: float | None
    optimal: int
    references: int
    seconds: float


def default_methods() -> list[str]:
    """All heuristics, and the exact method that makes the reference."""
    return [*methods.heuristics(), EXACT]


def compare(
    instance: Instance,
    names: Iterable[str],
    *,
    budget: Budget,
    seed: int = 0,
    watch: Callable[[str, Progress | None], None] | None = None,
) -> Comparison:
    """Run methods on an instance, and establish what they are measured against.

    Whether or not it is among ``names``, the exact method runs for the reference where it supports
    the instance. A method that fails costs its row, never the comparison.

    Parameters
    ----------
    watch : callable, optional
        Told the name of the method at work and, from methods that report it, their progress.
    """
    names = list(dict.fromkeys(names))
    results: list[Result] = []
    for name in [*names, *([] if EXACT in names else [EXACT])]:
        if watch is not None:
            watch(name, None)
        results.append(_run(instance, name, budget, seed, watch))
        if results[-1].reason == "interrupted":
            break
    reference = _reference(instance, results)
    return Comparison(
        instance, reference, tuple(result for result in results if result.method in names)
    )


def _run(
    instance: Instance,
    name: str,
    budget: Budget,
    seed: int,
    watch: Callable[[str, Progress | None], None] | None,
) -> Result:
    begin = time.perf_counter()
    reason = ""
    try:
        return methods.get(name)(
            instance,
            budget=budget,
            seed=seed,
            watch=None if watch is None else lambda step: watch(name, step),
        )
    except KeyboardInterrupt:
        reason = "interrupted"
    except UnsupportedError as error:
        reason = f"not supported: {error.problem}"
    except (AssertionError, MemoryError):
        raise
    except Exception as error:  # a method of the user's own may raise anything
        reason = f"failed: {type(error).__name__}: {error}"
    return conclude(instance, name, None, reason=reason, seconds=time.perf_counter() - begin)


def _reference(instance: Instance, results: list[Result]) -> Reference:
    infeasible = contradiction(instance)
    for result in results:
        if result.status is Status.INFEASIBLE:
            infeasible = infeasible or result.reason
    if infeasible:
        return Reference(None, None, infeasible=infeasible)
    makespans = [(r.makespan, r.method) for r in results if r.makespan is not None]
    bounds = [(r.lower_bound, r.method) for r in results if r.lower_bound is not None]
    least = min((makespan for makespan, _ in makespans), default=None)
    if least is None or least not in (bound for bound, _ in bounds):
        combinatorial = best_bound(instance, makespan=least)
        if combinatorial.value is None:
            return Reference(None, None, infeasible="some unit has no device left")
        bounds.append((combinatorial.value, combinatorial.name))
    known = library.known(instance)
    if known is not None:
        # The library counts only where this run found nothing as good.
        if known.bound is not None:
            bounds.append((known.bound, "library"))
        schedule = library.best_schedule(instance)
        checked = conclude(instance, "library", schedule)
        if checked.makespan is not None:
            makespans.append((checked.makespan, "library"))
    makespan, makespan_by = min(makespans, key=lambda pair: pair[0], default=(None, ""))
    bound, bound_by = max(bounds, key=lambda pair: pair[0])
    if makespan is not None and bound > makespan:
        raise AssertionError(
            f"bound {bound} ({bound_by}) above a verified schedule of {makespan} ({makespan_by}) "
            f"on {instance.name}; please report this as a bug"
        )
    note = next((r.reason for r in results if r.method == EXACT), "")
    return Reference(makespan, bound, makespan_by, bound_by, note=note)


def summarise(comparisons: list[Comparison]) -> list[Summary]:
    """Add up each method over the instances that are not infeasible."""
    comparisons = [c for c in comparisons if not c.reference.infeasible]
    names = list(dict.fromkeys(r.method for c in comparisons for r in c.results))
    return [_summary(name, comparisons) for name in names]


def _summary(name: str, comparisons: list[Comparison]) -> Summary:
    rows = list(_rows(name, comparisons))
    over = [x for c, r in rows if (x := c.over_reference(r)) is not None]
    over_bound = [x for c, r in rows if (x := c.over_bound(r)) is not None]
    return Summary(
        method=name,
        solved=sum(r.makespan is not None for _, r in rows),
        instances=len(rows),
        mean=sum(over) / len(over) if over else None,
        worst=max(over, default=None),
        mean_over_bound=sum(over_bound) / len(over_bound) if over_bound else None,
        optimal=sum(c.is_optimal(r) for c, r in rows),
        references=sum(c.reference.kind == "optimum" for c, _ in rows),
        seconds=sum(r.seconds for _, r in rows),
    )


def _rows(name: str, comparisons: list[Comparison]) -> Iterator[tuple[Comparison, Result]]:
    for comparison in comparisons:
        for result in comparison.results:
            if result.method == name:
                yield comparison, result
