"""The worker process of a member: it runs one method and reports every step."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from importlib import import_module

from optpart.base.children.caller import Caller
from optpart.base.errors import ContradictionError
from optpart.methods.portfolio.outcome import Outcome, run_member
from optpart.solution.result import Progress
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination

#: Seconds for a job that was there before this process was ready for it.
_WAITED = 0.02


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
