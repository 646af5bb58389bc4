"""The worker process of CP-SAT, whose crashes do not affect the caller.

It reads jobs from standard input and writes messages (:mod:`optpart.exact.messages`).
"""

from __future__ import annotations

from typing import Any

from optpart.exact import cp_sat
from optpart.exact.identical_model import IdenticalModel
from optpart.exact.messages import Limits, Send, serve
from optpart.exact.model import ScheduleModel
from optpart.exact.task import Task

#: Strategies for proving optimality with two workers: both run conflict-driven search, one of them
#: with frequent restarts. By default, one worker would only look for better schedules. If the
#: placement is fixed, linear programs contribute little.
_SEQUENCING = ("quick_restart_no_lp", "no_lp")
_PLACING = ("quick_restart", "no_lp")

#: Beyond this many vertices, little can be proven, so finding better schedules matters more.
_PROVABLE = 100


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _strategies(task: Task) -> tuple[str, ...]:
    """Return the strategies of the workers; empty for the solver's own choice."""
    if task.sequences_only:
        return _SEQUENCING
    if task.identical or task.instance.vertices > _PROVABLE:
        return ()
    return _PLACING


def _solve(task: Task, limits: Limits, send: Send) -> None:
    def tune(parameters: Any) -> None:
        if limits.workers == 2 and (strategies := _strategies(task)):
            parameters.subsolvers.extend(strategies)
            parameters.num_full_subsolvers = len(strategies)

    built = IdenticalModel if task.identical else ScheduleModel
    cp_sat.solve(lambda: built(task), limits, send, tune)
