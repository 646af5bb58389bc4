"""The search loop: initial schedules, bounds, and searchers in several processes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from optpart.base import clock
from optpart.base.children.worker import LOCAL, Pool
from optpart.base.clock import limited
from optpart.base.errors import UnsupportedError
from optpart.base.files import held
from optpart.exact.packing import pack
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.load import load_bound
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.search import checkpoint as checkpoints
from optpart.search.bounding import LONG, bounded
from optpart.search.checkpoint import StateFile
from optpart.search.evaluator import Evaluator, Value
from optpart.search.layout import layout_of, placed, repaired
from optpart.search.messages import Bounded, Improvement, SearcherTask
from optpart.search.plan import Layout
from optpart.search.searcher import Manner, Searcher, searcher
from optpart.search.searcher_process import SearcherProcess
from optpart.solution.claim import Claim
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.record import Record
from optpart.solution.result import Progress, Result, Status, Watch, with_claim
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination

#: Shares of the budget for initial schedules and for bounds, and maximum seconds for bounds.
_STARTING, _BOUNDING, _MOST_BOUNDING = 0.05, 0.1, 120.0

#: Share of another process's time for bounds, on large instances and on others: on small instances,
#: more bounds of different kinds pay.
_BOUNDING_BESIDE, _BOUNDING_BESIDE_SHORT = 0.2, 0.4

#: Heuristics that are tried even if the share for them is spent, unless half of the budget is: in a
#: new process, it may take longer to load their compiled code than to run them.
_TRIED = 4

#: Maximum share of the time for timing and verifying new incumbents exactly, and what is kept for
#: the last of them. While large graphs are searched, most improvements are small and soon outdated.
_VERIFYING, _FINISHING = 0.03, 0.2

#: How many times as long it takes to time a layout exactly and to verify it as to verify it alone.
_TIMING = 3

#: Seconds between two checkpoints.
_CHECKPOINT = 10.0

#: Up to this many vertices, heads, tails and load take at most two seconds, whatever the budget.
_QUICK = 6000

#: Up to this many vertices, an exact method looks for a first schedule if the search finds no
#: placement, or none that respects memory within this share of the budget.
_SMALL, _PATIENCE = 200, 0.3


class SearchStarts(Protocol):
    """The initial schedules of a search, fast heuristics first."""

    def __call__(
        self, instance: Instance, seed: int, *, fast_only: bool
    ) -> Iterator[Schedule | None]:
        """Yield the verified schedule of each heuristic, or ``None`` if it finds none."""
        ...


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the goal gives more than objective and placement."""
    goal.require_no_blocks("search")
    if goal.order or goal.makespan is not None or goal.traffic is not None:
        raise UnsupportedError(
            "goal", "an order or a limit is not supported", "give only a placement"
        )


def run_search(
    manner: Manner,
    job: Job,
    watch: Watch | None = None,
    *,
    starts: SearchStarts,
    checkpoint: StateFile | None = None,
    resume: bool = False,
    pool: Pool = LOCAL,
) -> Result:
    """Improve the best initial schedule until the budget ends.

    Parameters
    ----------
    manner : {"search", "hybrid"}
        The way in which layouts are modified.
    starts : callable
        Generates the initial schedules.
    pool : Pool
        Where all searchers but the first run.

    See :func:`optpart.methods.search.search` for the other parameters and for errors.
    """
    check_scope(job.instance, job.goal)
    run = _Search(manner, job, watch, starts, pool)
    if checkpoint is not None:
        run.checkpoint = checkpoint
        with held(checkpoint.path, "another search"):
            if resume:
                run.resumed = checkpoints.read(checkpoint.path, job.instance)
            else:
                checkpoints.check_new(checkpoint.path)
            return run.run()
    return run.run()


class _Search:
    """One run, from the starts to the proof or the end of the budget."""

    def __init__(
        self,
        manner: Manner,
        job: Job,
        watch: Watch | None,
        starts: SearchStarts,
        pool: Pool,
    ) -> None:
        told = None if watch is None else lambda step: watch(self._detailed(step))
        self.record = Record(job, told, bound=Fraction(0))
        if job.goal.objective == "lexicographic":
            self.record.bounds["traffic"] = Fraction(0)
        self.manner: Manner = manner
        self.starts = starts
        self.job = job
        self.instance = job.instance
        self.budget = job.budget
        self.pool = pool
        # More searchers than processors would only take turns.
        self.workers = min(job.budget.workers, pool.workers)
        self.seed = job.seed
        self.goal = job.goal
        self.rng = np.random.default_rng(job.seed)
        self.checkpoint: StateFile | None = None
        self.resumed: checkpoints.Checkpoint | None = None
        self.infeasible = ""
        self.processes: list[SearcherProcess] = []
        self.engaged = False
        self.climb: Searcher | None = None
        self.taken: Layout | None = None
        self.verifying = 0.0
        self.finishing = 0.0
        self.asked = False
        self.written = self.record.begin

    def run(self) -> Result:
        """Run the search; return the verified result even if it is interrupted."""
        try:
            with self.record.until_interrupted():
                self._search()
        finally:
            for process in self.processes:
                process.stop()
        if self.climb is not None:
            with suppress(KeyboardInterrupt):  # a second interrupt
                self._take(self.climb, final=True)
                self._write(self.climb, final=True)
        self.record.remarks += self._remarks()
        if self.checkpoint is not None and self.checkpoint.fault is not None:
            self.record.remarks.append(f"state not saved: {self.checkpoint.fault.problem}")
        claim = self._claim()
        if self.resumed is not None and claim is None:
            said = f"a schedule is shorter than the bound {self.resumed.bound} of the checkpoint"
            self.record.remarks.append(f"{said}, which is false")
        return with_claim(self.record.result(self.manner, infeasible=self.infeasible), claim)

    def _claim(self) -> Claim | None:
        """Return what the checkpoint claims, unless a verified schedule contradicts it."""
        if self.resumed is None or self.checkpoint is None:
            return None
        bound, makespan = self.resumed.bound, self.record.makespan
        if makespan is not None and bound > makespan:
            return None
        return Claim(str(self.checkpoint.path), {"makespan": bound}, code=self.resumed.code)

    def _remarks(self) -> Iterator[str]:
        """Say when searchers elsewhere began."""
        begun = [process.begun - self.record.begin for process in self.processes if process.begun]
        if self.pool.remote and self.engaged:
            last = f", the last after {max(begun):.1f} s" if begun else ""
            yield f"{len(begun)} of {len(self.processes)} searchers elsewhere began{last}"

    def _search(self) -> None:
        start = self.job.start
        self.infeasible = self.goal.contradiction(self.instance)
        if self.infeasible:
            return
        self.instance = self.goal.narrowed(self.job.instance)
        self.infeasible = contradiction(self.instance)
        if self.infeasible:
            return
        if self.resumed is not None and self._resume(self.resumed):
            return
        if self.workers < self.budget.workers:
            self.record.remarks.append(
                f"used {self.workers} of {self.budget.workers} workers, one per processor"
            )
        if not self._spent():
            self.processes = [
                SearcherProcess(self.pool, number) for number in range(2, self.workers + 1)
            ]
        if self.resumed is None or start is not None:
            self._start(start)
        self._bound_cheaply()
        if self._spent() and self.record.incumbent is not None and self.checkpoint is None:
            if not self.infeasible and not self._proven():
                self.record.end(Termination.TIME_LIMIT, str(Termination.TIME_LIMIT))
            return
        layout = self._first_layout(start)
        if self.infeasible or self._proven():
            return
        if layout is None:
            self.record.reason = (
                "found no placement that satisfies memory and all other constraints"
            )
            return
        if self.workers == 1 and self.budget.deterministic is None:
            self._bound_here()
            if self.infeasible or self._proven():
                return
        self._climb(layout)

    def _resume(self, before: checkpoints.Checkpoint) -> bool:
        """Take what the earlier run has found; return whether no time is left to go on.

        Its bound is not used: it is claimed by a file, in which anybody can write.
        """
        left = max(0.0, self.budget.seconds - before.seconds)
        self.record.remarks.append(checkpoints.resumed(before.seconds, self.budget.seconds))
        if self.checkpoint is not None and before.code != self.checkpoint.code:
            code = before.code or "which it does not name"
            self.record.remarks.append(f"the bound in the checkpoint is by other code, {code}")
        at = Evaluator(self.instance, self.goal.objective)
        self.record.offer(at.schedule(before.layout))
        if left or self.budget.deterministic is not None:
            return False
        self._bound_cheaply()
        self.record.end(Termination.TIME_LIMIT, str(Termination.TIME_LIMIT))
        return True

    # --- starts ----------------------------------------------------------------------------

    def _start(self, start: Schedule | None) -> None:
        if start is not None and self.record.offer(start):
            self.record.remarks.append("the given start is not valid here and was repaired")
        # If the budget counts moves instead of seconds, try all fast heuristics and no others.
        counted = self.budget.deterministic is not None
        given = 0 if self.record.incumbent is None else 1
        found = self.starts(self.instance, self.seed, fast_only=counted)
        with limited(math.inf if counted else self._left()):
            for tried, schedule in enumerate(found, start=given + 1):
                if schedule is not None and self._spent():
                    self.record.offer_verified(schedule)
                elif schedule is not None:
                    begin = clock.now()
                    self.record.offer(schedule)  # again, to know how long it takes in the end
                    self.finishing = max(self.finishing, _TIMING * (clock.now() - begin))
                late = self.record.seconds > _STARTING * self.budget.seconds
                enough = tried >= _TRIED or 2 * self.record.seconds > self.budget.seconds
                if late and enough and not counted and self.record.incumbent is not None:
                    return
                if self._spent():
                    return

    def _first_layout(self, start: Schedule | None) -> Layout | None:
        """Return the initial layout: from the incumbent, or from a feasible placement."""
        if self.resumed is not None:
            return self.resumed.layout
        if self.record.incumbent is not None:
            return layout_of(self.instance, self.record.incumbent)
        with limited(math.inf if self.budget.deterministic is not None else self._left()):
            layout = repaired(self.instance, start, self.rng)
        if layout is None or self._excess(layout) > 0.0:
            layout = self._packed(layout)
        if layout is not None or self.infeasible:
            return layout
        self._ask_solver_once()
        found = self.record.incumbent
        return None if found is None else layout_of(self.instance, found)

    def _packed(self, otherwise: Layout | None) -> Layout | None:
        """Return a layout whose placement an exact method has found, if it exceeds less memory."""
        counted = self.budget.deterministic is not None
        seconds = self.budget.seconds if counted else self._left()
        found = pack(self.instance, replace(self.budget, seconds=seconds), self.seed)
        if found.contradiction:
            seen = critical_path_bound(self.job.instance) is None
            self.infeasible = (
                excluded(self.job.instance, "bounds", self.goal.given)
                if seen
                else found.contradiction
            )
        if found.device is None:
            return otherwise
        layout = placed(self.instance, found.device)
        better = otherwise is None or self._excess(layout) < self._excess(otherwise)
        return layout if better else otherwise

    def _excess(self, layout: Layout) -> float:
        at = Evaluator(self.instance, self.goal.objective)
        at.enter(layout)
        return at.value()[0]

    def _ask_solver_once(self) -> None:
        """Use an exact method to find a first schedule or to prove that none exists."""
        from optpart.exact.solve import solve

        if self.asked or self.record.incumbent is not None or self.instance.vertices > _SMALL:
            return
        self.asked = True
        left = 0.5 * self._left()
        if self.budget.deterministic is not None:
            left = max(1.0, left)
        budget = replace(self.budget, seconds=left)
        result = solve(self.instance, budget=budget, seed=self.seed)
        if result.lower_bound is not None:
            self.record.raise_bound(result.lower_bound)
        if result.status is Status.INFEASIBLE:
            self.infeasible = result.reason
        elif result.schedule is not None:
            self.record.offer(result.schedule)
        if result.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt

    # --- incumbent and bound ---------------------------------------------------------------

    def _bound_cheaply(self) -> None:
        seconds = math.inf
        if self.instance.vertices > _QUICK:
            seconds = min(self._left(), _BOUNDING * self.budget.seconds)
        self._bounded(load_bound(self.instance, seconds))  # includes the critical path

    def _bound_here(self) -> None:
        if self.record.closed("makespan"):
            return
        seconds = min(_BOUNDING * self.budget.seconds, _MOST_BOUNDING, self._left())
        counted = self.budget.deterministic is not None
        self._bounded(bounded(self.instance, seconds, self.record.makespan, brief=counted))

    def _bounded(self, bound: Fraction | None) -> None:
        if bound is None:
            self.infeasible = excluded(self.job.instance, "bounds", self.goal.given)
        else:
            self.record.raise_bound(bound)

    def _proven(self) -> bool:
        return self.record.gap == 0.0

    def _detailed(self, step: Progress) -> Progress:
        """Return the step with moves per second and the kind of move that improved most often."""
        moves = sum(process.moves for process in self.processes)
        improvements: Counter[str] = sum(
            (process.improvements for process in self.processes), Counter()
        )
        if self.climb is not None:
            moves += self.climb.moves
            improvements += self.climb.improvements
        often = f", best by {improvements.most_common(1)[0][0]}" if improvements else ""
        rate = moves / max(step.seconds, 1e-9)
        return replace(step, remark=f"{rate:,.0f} moves/s{often}" if rate else "")

    # --- search ----------------------------------------------------------------------------

    def _share(self, climb: Searcher) -> float:
        """Return the share of the budget that has been spent."""
        spent = self._share_of_seconds()
        if self.budget.deterministic is None:
            return spent
        moves = climb.effort + (0 if self.resumed is None else self.resumed.moves)
        counted = moves / max(1.0, 1000 * self.budget.deterministic)
        return 1.0 if spent >= 1.0 else counted

    def _share_of_seconds(self) -> float:
        """Return the share of the seconds that is spent, or needed to time and verify the end."""
        before = 0.0 if self.resumed is None else self.resumed.seconds
        if self.budget.deterministic is None:
            before += min(2 * self.finishing, _FINISHING * self.budget.seconds)
        return (self.record.seconds + before) / max(self.budget.seconds, 1e-9)

    def _spent(self) -> bool:
        """Return whether there is a limit of seconds, and it is spent."""
        return self.budget.deterministic is None and self._share_of_seconds() >= 1.0

    def _left(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self.budget.seconds - self.record.seconds)

    def _climb(self, layout: Layout) -> None:
        timed = self.budget.deterministic is None
        if not self._spent():
            self._engage(layout)
        climb = searcher(
            self._manner_of(0),
            self.instance,
            self.goal.objective,
            self._lazy_or_eager(layout),
            self.rng,
            seconds=self.budget.seconds if timed else None,
            memory=self._memory(),
        )
        self.climb = climb
        while (share := self._share(climb)) < 1.0:
            better = climb.step(share)
            self._receive(climb)
            self.record.pulse()
            if better:
                self._broadcast(Improvement(climb.best, climb.value), None)
            self._take(climb)
            self._write(climb)
            if climb.value[0] > 0.0 and share > _PATIENCE:
                self._ask_solver_once()
            if self._proven() or self.infeasible:
                return
        late = timed or self._share_of_seconds() >= 1.0
        limit = Termination.TIME_LIMIT if late else Termination.MOVE_LIMIT
        self.record.end(limit, str(limit))

    def _manner_of(self, number: int) -> Manner:
        """Return the manner of a worker; if there are several, every other one only anneals."""
        mixed = self.workers == 1 or number % 2 == 1
        return self.manner if mixed else "search"

    def _lazy_or_eager(self, layout: Layout) -> Layout:
        """Return the better layout: with eager transfers as given, or with none eager."""
        if not layout.eager.any():
            return layout
        at = Evaluator(self.instance, self.goal.objective)
        both = (layout, layout._replace(eager=np.zeros_like(layout.eager)))
        values = []
        for candidate in both:
            at.enter(candidate)
            values.append(at.value())
        return both[values.index(min(values))]

    def _engage(self, layout: Layout) -> None:
        """Give the other searchers their jobs."""
        self.engaged = bool(self.processes)
        for number, process in enumerate(self.processes, start=1):
            seconds = self.budget.seconds - self.record.seconds
            bounds = number == 1 and not self.record.closed("makespan")
            long = self.instance.vertices > LONG
            share = _BOUNDING_BESIDE if long else _BOUNDING_BESIDE_SHORT
            bounding = min(share * seconds, _MOST_BOUNDING) if bounds else 0.0
            task = SearcherTask(
                self._manner_of(number),
                self.instance,
                layout,
                self.goal.objective,
                (self.seed, number),
                max(seconds, 0.01),
                bounding,
                self.record.makespan,
                self._memory(),
            )
            process.assign(task)

    def _memory(self) -> int | None:
        """Return the memory of each searcher with its solver, of all that is allowed."""
        whole = self.budget.memory
        return None if whole is None else whole // (1 + len(self.processes))

    def _receive(self, climb: Searcher) -> None:
        for process in self.processes:
            for message in process.messages():
                if isinstance(message, Bounded):
                    self._bounded(message.value)
                elif message.value < climb.value:
                    climb.offer(message.layout, message.value)
                    self._broadcast(message, process)

    def _broadcast(self, found: Improvement, but: SearcherProcess | None) -> None:
        for process in self.processes:
            if process is not but:
                process.send(found)

    def _take(self, climb: Searcher, *, final: bool = False) -> None:
        """Time and verify the best layout if it is new and time permits."""
        value: Value = climb.value
        busy = self.verifying > _VERIFYING * self.record.seconds
        if climb.best is self.taken or value[0] > 0.0 or (busy and not final):
            return
        begin = clock.now()
        self.taken = climb.best
        self.record.offer(climb.evaluator.schedule(climb.best))
        spent = clock.now() - begin
        self.verifying += spent
        self.finishing = max(self.finishing, spent)

    def _write(self, climb: Searcher, *, final: bool = False) -> None:
        if self.checkpoint is None:
            return
        now = clock.now()
        if final or now - self.written >= _CHECKPOINT:
            self.written = now
            before = self.resumed or checkpoints.Checkpoint(climb.best, 0.0, 0)
            # What is proven for a given placement does not hold for others.
            proven = Fraction(0) if self.goal.given else self.record.bound or Fraction(0)
            claim = self._claim()
            claimed = Fraction(0) if claim is None else claim.lower_bound or Fraction(0)
            reached = checkpoints.Checkpoint(
                climb.best,
                before.seconds + self.record.seconds,
                before.moves + climb.effort,
                max(proven, claimed),
                before.code if claimed > proven else self.checkpoint.code,
            )
            self.checkpoint.keep(self.job.instance, reached)
