"""The worker process of a member: it runs one method and reports every step."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

from optpart.children.caller import Caller
from optpart.errors import ContradictionError
from optpart.methods.portfolio.messages import Job, Outcome, Step
from optpart.solution.result import Progress
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination


def main() -> None:
    """Run the only job of the caller."""
    caller = Caller()
    job: Job = caller.receive()
    known: tuple[Schedule | None, Fraction | None] = None, None

    def told(step: Progress) -> None:
        nonlocal known
        schedule, bound = step.schedule, step.bound
        if schedule is not known[0] or bound != known[1]:
            caller.send(Step(None if schedule is known[0] else schedule, bound, step.remark))
            known = schedule, bound

    try:
        # Starting a process must not take the member past the limit.
        outcome = job.run(told, late=time.monotonic() - caller.started)
    except (AssertionError, ContradictionError) as error:
        outcome = Outcome(Termination.FAILED, str(error), contradiction=str(error))
    if outcome.schedule is known[0]:  # the caller has it, and need not verify it again
        outcome = replace(outcome, schedule=None)
    caller.send(outcome)
