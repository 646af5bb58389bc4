"""Members of the portfolio in processes of their own, and the end of every member's work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module

from optpart.base.children.caller import Caller
from optpart.base.children.worker import Pool, WorkerDiedError
from optpart.base.errors import ContradictionError, MemoryLimitError, UnsupportedError
from optpart.base.registry import load
from optpart.exact.process import GRACE, prompt_grace
from optpart.solution.audit import described
from optpart.solution.goal import Measure
from optpart.solution.job import Job
from optpart.solution.result import Progress, Result, Status, Watch
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination

#: Seconds for a job that was there before this process was ready for it.
_WAITED = 0.02


@dataclass(frozen=True)
class Outcome:
    """The end of a member's work: what other members can use of its result.

    Attributes
    ----------
    infeasible : str
        Why there is no schedule, if that is proven.
    contradiction : str
        How the member contradicts itself, which must stop the program; empty if it does not.
    """

    termination: Termination | None
    reason: str
    schedule: Schedule | None = None
    bounds: Mapping[Measure, Fraction] = field(default_factory=dict)
    infeasible: str = ""
    contradiction: str = ""


def run_member(path: str, job: Job, watch: Watch, late: float = 0.0, **options: object) -> Outcome:
    """Run a member; what goes wrong in it becomes its outcome.

    Parameters
    ----------
    path : str
        The location of its function, ``module:name``.
    late : float
        Seconds of the budget that are spent already.
    **options
        Further arguments of the member.

    Raises
    ------
    AssertionError, ContradictionError
        If the member contradicts itself.
    """
    solve: Callable[..., Result] = load(path)
    budget = replace(job.budget, seconds=max(0.0, job.budget.seconds - late))
    try:
        result = solve(replace(job, budget=budget), watch, **options)
    except MemoryLimitError as error:
        return Outcome(Termination.MEMORY_LIMIT, error.problem)
    except UnsupportedError as error:
        return Outcome(Termination.UNSUPPORTED, error.problem)
    except (AssertionError, ContradictionError):
        raise
    except Exception as error:
        return Outcome(Termination.FAILED, described(error))
    infeasible = result.reason if result.status is Status.INFEASIBLE else ""
    return Outcome(result.termination, result.reason, result.schedule, result.bounds, infeasible)


class Child:
    """A member in a process; whatever becomes of the process, the last message is an outcome.

    The process starts, and loads what members need, before it has a job.
    """

    def __init__(self, name: str, workers: int, pool: Pool) -> None:
        self.name = name
        self.ended = False
        self._worker = pool.hire(__name__, workers)
        #: How many workers it has.
        self.workers = max(1, self._worker.threads)

    def begin(self, path: str, job: Job) -> None:
        """Give it its only job, for the function at a path."""
        self._end = time.monotonic() + job.budget.seconds
        self._prompt = prompt_grace(job.budget)
        self._worker.send((path, replace(job, budget=replace(job.budget, workers=self.workers))))

    def messages(
        self, seconds: float = 0.0, *, patient: bool = True
    ) -> Iterator[Progress | Outcome]:
        """Yield the messages since the last call; wait for the first of them up to so long.

        Parameters
        ----------
        patient : bool
            Whether the member may take seconds beyond its limit to end. If not, it is killed soon
            after its limit, which costs at most what it has not yet said.
        """
        while not self.ended:
            try:
                message = self._worker.receive(seconds)
            except TimeoutError:
                late = time.monotonic() - self._end
                if late < (GRACE if patient else self._prompt):
                    return
                end = Termination.FAILED if patient else Termination.TIME_LIMIT
                message = Outcome(end, "did not stop at its limit")
            except WorkerDiedError as error:
                message = Outcome(Termination.FAILED, f"its process {error}")
            assert isinstance(message, Progress | Outcome)
            seconds = 0.0
            if isinstance(message, Outcome):
                self.stop()
            yield message

    def stop(self) -> None:
        """End the process."""
        self.ended = True
        self._worker.stop()


def main() -> None:
    """Run the only job of the caller."""
    caller = Caller()
    import_module("optpart.methods.search")  # while there is no job: it takes longest to load
    ready = time.monotonic()
    path, job = caller.receive()
    received = time.monotonic()
    # Starting a process must not take the member past the limit, unless it had to wait for its job.
    begin = received if received - ready > _WAITED else caller.started
    known: tuple[Schedule | None, Fraction | None] = None, None

    def told(step: Progress) -> None:
        nonlocal known
        schedule, bound = step.schedule, step.bound
        if schedule is not known[0] or bound != known[1]:
            caller.send(step if schedule is not known[0] else replace(step, schedule=None))
            known = schedule, bound

    try:
        outcome = run_member(path, job, told, late=time.monotonic() - begin)
    except (AssertionError, ContradictionError) as error:
        outcome = Outcome(Termination.FAILED, str(error), contradiction=str(error))
    if outcome.schedule is known[0]:  # the caller has it, and need not verify it again
        outcome = replace(outcome, schedule=None)
    caller.send(outcome)
