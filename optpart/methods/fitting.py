"""Which methods and bounds fit into the memory that is allowed, known before any work begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from optpart.base.errors import MemoryLimitError
from optpart.lower_bounds.crossings import program_size
from optpart.problem import footprint
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget

#: What is named where something else does not fit, in order of preference.
_INSTEAD = ("auto", "hybrid", "search", "heft")


class _Asked(NamedTuple):
    instance: Instance
    goal: Goal
    budget: Budget


def _cpsat(asked: _Asked) -> int:
    from optpart.exact.solve import model_terms

    narrowed = asked.goal.narrowed(asked.instance)
    return footprint.of_cpsat(narrowed, model_terms(narrowed), asked.budget.workers)


def _milp(asked: _Asked) -> int:
    from optpart.exact.milp import program_rows

    narrowed = asked.goal.narrowed(asked.instance)
    return footprint.of_milp(narrowed, program_rows(narrowed, asked.goal))


def _search(asked: _Asked) -> int:
    return footprint.of_search(asked.instance, asked.budget.workers)


def _hybrid(asked: _Asked) -> int:
    return footprint.of_hybrid(asked.instance, asked.budget.workers)


def _process(asked: _Asked) -> int:
    return footprint.of_process(asked.instance)


#: What methods take; all others, and ``auto``, which leaves out members that do not fit, take at
#: least what this process does.
_NEEDS: dict[str, Callable[[_Asked], int]] = {
    "cpsat": _cpsat,
    "milp": _milp,
    "milp-cbc": _milp,
    "search": _search,
    "hybrid": _hybrid,
}


def require_memory(instance: Instance, method: str, goal: Goal, budget: Budget) -> None:
    """Raise :class:`MemoryLimitError` if a method would need more memory than a budget allows.

    To find that a goal contradicts itself or the instance takes none.
    """
    if goal.contradiction(instance):
        return
    asked = _Asked(instance, goal, budget)
    too_much = _excess(method, asked)
    if too_much:
        fitting = [name for name in _INSTEAD if name != method and not _excess(name, asked)]
        more = "free some" if budget.memory is None else "allow more"
        remedy = f"use {fitting[0]}, which fits, or {more}" if fitting else more
        raise MemoryLimitError("", f"{method} {too_much}", remedy)


def unfit_bounds(instance: Instance, budget: Budget) -> dict[str, str]:
    """Return the bounds that are not worth their time, and why, by name.

    They would need more memory than the budget allows, or a model that CP-SAT is not given. What
    is left out leaves its share of the time to the others.
    """
    from optpart.exact.solve import excess_of_terms

    asked = _Asked(instance, Goal(), budget)
    crossings = footprint.of_crossings(instance, program_size(instance))
    needs = {"crossings": crossings, "branching": crossings, "cpsat": _cpsat(asked)}
    found = {name: footprint.excess(needed, budget.memory) for name, needed in needs.items()}
    too_many = excess_of_terms(instance)
    if too_many:
        found["cpsat"] = f"has too large a model ({too_many})"
    return {name: why for name, why in found.items() if why}


def _excess(method: str, asked: _Asked) -> str:
    needed = _NEEDS.get(method, _process)(asked)
    return footprint.excess(needed, asked.budget.memory)
