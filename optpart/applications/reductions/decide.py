"""The answer to a source through TF, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from optpart.applications.reductions.base import Question, Reduction, Solution, Source
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.problem.document import number
from optpart.solution.job import Job
from optpart.solution.result import Budget, Result, Status
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify

#: Seconds within which the shortest schedule to show is found.
SHORTEST = 20.0

#: The word for each verdict.
WORDS = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, eq=False)
class Answer(Generic[Source, Solution]):
    """The answer to a source, and its evidence.

    Attributes
    ----------
    verdict : bool or None
        ``None`` if the method ran out of time.
    solution : optional
        Mapped back from the schedule, if the verdict is yes.
    """

    reduction: Reduction[Source, Solution]
    source: Source
    question: Question
    result: Result
    verdict: bool | None
    solution: Solution | None

    @property
    def schedule_fault(self) -> str:
        """The first rule that the schedule breaks; empty if it is valid."""
        schedule = self.result.schedule
        return "" if schedule is None else fault(self.question, schedule)

    @property
    def solution_fault(self) -> str:
        """The first rule of the source that the solution breaks; empty if it is valid."""
        return "" if self.solution is None else self.reduction.check(self.source, self.solution)

    @property
    def forth_fault(self) -> str:
        """The first rule that the schedule built from the solution breaks; empty if it is valid."""
        if self.solution is None or self.solution_fault:
            return ""
        return fault(self.question, self.reduction.forth(self.source, self.solution))


def fault(question: Question, schedule: Schedule) -> str:
    """Return the first rule that a schedule breaks, the deadline included; empty if it is valid."""
    violations = verify(question.instance, schedule, most=1)
    if violations:
        return str(violations[0])
    makespan = schedule.makespan(question.instance)
    return f"makespan {makespan} > {question.deadline}" if makespan > question.deadline else ""


def decide(
    reduction: Reduction[Source, Solution],
    source: Source,
    method: str = "cpsat",
    *,
    budget: Budget | None = None,
    seed: int = 0,
) -> Answer[Source, Solution]:
    """Answer a source by an exact method for TF.

    The answer yes needs a schedule within the deadline; no needs a proof that there is none, by
    bounds or by search.

    Raises
    ------
    InputError
        If the method does not decide questions.
    """
    question = reduction.to_tf(source)
    registry.require(method, question.instance, question.goal)
    require_memory(question.instance, method, question.goal, budget or Budget())
    job = Job(question.instance, question.goal, budget or Budget(), seed)
    result = registry.run(method, job)
    if result.schedule is not None and not fault(question, result.schedule):
        return Answer(
            reduction, source, question, result, True, reduction.back(source, result.schedule)
        )
    beyond = result.lower_bound is not None and result.lower_bound > question.deadline
    refuted = result.status is Status.INFEASIBLE or beyond
    return Answer(reduction, source, question, result, False if refuted else None, None)


def shortest(question: Question, seconds: float = SHORTEST) -> Result:
    """Return the shortest schedule without a deadline, to show if the answer is not yes.

    If the seconds suffice, the same question gives the same schedule: the limit that counts is
    deterministic.
    """
    budget = Budget(seconds, 1, deterministic=5.0)
    return registry.run("cpsat", Job(question.instance, budget=budget))


def document(answer: Answer[Any, Any]) -> dict[str, Any]:
    """Return everything about an answer as JSON."""
    from optpart.interop.formats import result as result_format

    solved = answer.solution is not None
    return {
        "reduction": answer.reduction.name,
        "source": answer.reduction.document(answer.source),
        "instance": answer.question.instance.to_dict(),
        "deadline": number(answer.question.deadline),
        "answer": WORDS[answer.verdict],
        "result": result_format.to_dict(answer.result),
        "solution": answer.reduction.describe_solution(answer.source, answer.solution)
        if solved
        else None,
        "verified": {
            "schedule": not answer.schedule_fault,
            "solution": not answer.solution_fault,
            "forth": not answer.forth_fault,
        }
        if solved
        else None,
    }
