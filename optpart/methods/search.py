"""The methods ``search`` and ``hybrid``: search from the schedules of heuristics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from optpart.base.children.worker import LOCAL, Pool
from optpart.methods import registry
from optpart.methods.starts import UNTIMED, fills, pass_orders
from optpart.problem.instance import Instance
from optpart.search.checkpoint import StateFile
from optpart.search.search import run_search
from optpart.search.searcher import Manner
from optpart.solution.job import Job, method
from optpart.solution.result import Result, Watch
from optpart.solution.schedule import Schedule

#: Starts in addition to those of every solver.
_STARTS = ("etf", "peft", "critical-path-paper+pct", "batch-split+pct", "mite+pct", "min-cut+pct")

#: Instances of at most this many vertices try every pair of strategies as a start.
_ALL_PAIRS = 2000


@method
def search(
    job: Job,
    watch: Watch | None = None,
    *,
    checkpoint: str | Path | StateFile | None = None,
    resume: bool = False,
    pool: Pool = LOCAL,
) -> Result:
    """Improve the best heuristic schedule until the budget ends.

    Supports every communication model, memory model and objective, and goals with a given
    placement. Each worker beyond the first is a process; they share what they find, and the first
    of them begins with a bound. ``budget.deterministic`` counts thousands of moves; with one worker
    the schedule is then the same in every run. A start that is not valid is repaired.

    Parameters
    ----------
    checkpoint : path or StateFile, optional
        Where to write the state, at most every ten seconds and at the end. If that fails, the
        search continues, and the reason of its result says that the state was not kept.
    resume : bool
        Continue from the checkpoint; the time spent before counts. Its schedule is verified again;
        its bound is only claimed, and decides nothing.
    pool : Pool
        Where the processes run; on a cluster, the time they take to begin counts, and the reason
        of the result states it.

    Raises
    ------
    InputError
        If the goal is not supported, or the checkpoint belongs to another instance.
    """
    return _search("search", job, watch, checkpoint, resume, pool)


@method
def hybrid(
    job: Job,
    watch: Watch | None = None,
    *,
    checkpoint: str | Path | StateFile | None = None,
    resume: bool = False,
    pool: Pool = LOCAL,
) -> Result:
    """Search as :func:`search` does, and in large neighbourhoods repaired greedily and by CP-SAT.

    See :func:`search` for parameters and errors.
    """
    return _search("hybrid", job, watch, checkpoint, resume, pool)


def _search(
    manner: Manner,
    job: Job,
    watch: Watch | None,
    checkpoint: str | Path | StateFile | None,
    resume: bool,
    pool: Pool,
) -> Result:
    from optpart.methods.fingerprint import fingerprint  # reads all sources

    state = None
    if checkpoint is not None:
        state = checkpoint if isinstance(checkpoint, StateFile) else StateFile(checkpoint)
        state.code = fingerprint(manner)
    return run_search(
        manner, job, watch, starts=heuristic_starts, checkpoint=state, resume=resume, pool=pool
    )


def heuristic_starts(
    instance: Instance, seed: int, *, fast_only: bool
) -> Iterator[Schedule | None]:
    """Yield the schedule of each heuristic: as every solver, the fast ones first, then others."""
    names = registry.starts(groups=len(instance.units) < instance.vertices)
    if instance.vertices <= _ALL_PAIRS and not fast_only:
        installed = registry.built_in_pairs()
        names += [name for name in (*_STARTS, *installed) if name in installed]
    yield from fills(instance)
    yield from pass_orders(instance)
    for name in dict.fromkeys(names):
        yield registry.run(name, Job(instance, budget=UNTIMED, seed=seed)).schedule
