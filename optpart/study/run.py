"""One run of a sweep: a method on an instance with a seed and a budget."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from optpart.base import clock
from optpart.base.errors import (
    ContradictionError,
    MemoryLimitError,
    OptpartError,
    PluginError,
    UnsupportedError,
)
from optpart.exact.cross_check import confirmed
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.methods.parts import METHODS
from optpart.problem.instance import Instance
from optpart.solution.audit import audited, described, one_line, refusal
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget, Progress, Result, conclude
from optpart.solution.termination import Termination
from optpart.version import __version__


class Key(NamedTuple):
    """The identity of a run: a run with an equal key would be a repetition.

    ``deterministic`` is 0 if the budget has no such limit, and so is ``memory``, in bytes. ``code``
    is the :func:`~optpart.methods.fingerprint.fingerprint` of the method.
    """

    instance_sha256: str
    method: str
    seed: int
    seconds: float
    workers: int
    deterministic: float
    memory: int
    optpart: str
    code: str


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a sweep, not yet executed."""

    instance: Instance
    method: str
    seed: int
    budget: Budget

    @cached_property
    def key(self) -> Key:
        """The identity of this run."""
        from optpart.methods.fingerprint import fingerprint  # only for runs that are kept

        return Key(
            self.instance.sha256,
            self.method,
            self.seed,
            float(self.budget.seconds),
            self.budget.workers,
            self.budget.deterministic or 0.0,
            self.budget.memory or 0,
            __version__,
            fingerprint(self.method),
        )


Watch = Callable[[Run, Progress | None], None]


def execute(run: Run, watch: Watch | None = None) -> Result:
    """Execute a run; a method that fails, or makes a false claim, loses its own result only.

    The output of the method goes to standard error, so that it cannot end up in a table.

    Parameters
    ----------
    watch : callable, optional
        Called when the run begins and, if the method reports it, with its progress.
    """
    if watch is not None:
        watch(run, None)
    begin = clock.now()
    try:
        require_memory(run.instance, run.method, Goal(), run.budget)
        with redirect_stdout(sys.stderr):
            told = None if watch is None else lambda step: watch(run, step)
            job = Job(run.instance, budget=run.budget, seed=run.seed)
            claimed: object = registry.run(run.method, job, told)
        seconds = clock.now() - begin
        # A user's method may leave out its name and seed.
        result = audited(claimed, run.instance, run.method, run.seed)
        # A pair of strategies is timed around the strategies, without what is loaded once.
        if result.refused or registry.split(run.method) is None:
            result = replace(result, seconds=seconds)
        if result.refused:
            return result
        return confirmed(result) if run.method in METHODS.rows else result
    except KeyboardInterrupt:
        ended, reason = Termination.INTERRUPTED, "interrupted"
    except MemoryLimitError as error:
        ended, reason = Termination.MEMORY_LIMIT, error.problem
    except UnsupportedError as error:
        ended, reason = Termination.UNSUPPORTED, f"not supported: {error.problem}"
    except ContradictionError as error:
        return failed(run, str(error), clock.now() - begin)
    except PluginError as error:
        return failed(run, one_line(f"{error.place}: {error.problem}"), clock.now() - begin)
    except OptpartError as error:
        ended, reason = Termination.FAILED, f"failed: {described(error)}"
    except MemoryError:
        return failed(run, "out of memory", clock.now() - begin)
    except BaseException as error:  # a user's method may raise anything
        return failed(run, described(error), clock.now() - begin)
    return without_schedule(run, ended, reason, clock.now() - begin)


def failed(run: Run, what: str, seconds: float = 0.0) -> Result:
    """Return the result of a run that failed because of its method or its machine."""
    return refusal(run.instance, run.method, run.seed, f"failed: {what}", seconds)


def without_schedule(
    run: Run, termination: Termination, reason: str, seconds: float = 0.0
) -> Result:
    """Return the result of a run that found nothing."""
    return conclude(
        run.instance,
        run.method,
        None,
        termination=termination,
        reason=reason,
        seconds=seconds,
        seed=run.seed,
    )


def interrupted(result: Result) -> bool:
    """Return whether the user cut a run short, so that its result is not final."""
    return result.termination is Termination.INTERRUPTED


def is_final(run: Run, result: Result) -> bool:
    """Return whether the result of a run may stand for all runs of its key.

    It may not if the user cut it short, if a process failed in it, or if it did not fit the memory
    that was available, of which the key says nothing: another time there may be more.
    """
    broken = result.termination is Termination.FAILED and not result.refused
    refused = result.termination is Termination.MEMORY_LIMIT and run.budget.memory is None
    return not interrupted(result) and not broken and not refused
