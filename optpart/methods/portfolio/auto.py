"""The method ``auto``: the methods that fit the instance, until they have a proof together.

These members are rows of a table (:mod:`optpart.methods.portfolio.members`). What one of them finds
counts for all: later members start from the best schedule, the best bound may prove any schedule
optimal, and a proof stops everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from optpart.base.children.failures import Failures, record_failure
from optpart.base.children.worker import LOCAL, Pool
from optpart.base.limits import available_processors
from optpart.exact.series.bound import SERIES
from optpart.kernels.all import is_ready
from optpart.lower_bounds.best import each_bound
from optpart.methods import registry
from optpart.methods.portfolio.child import Child, Outcome, run_member
from optpart.methods.portfolio.members import SHORTEST, Case, Member, plan
from optpart.problem.feasibility import excluded
from optpart.search.bounding import BOUNDED
from optpart.solution.goal import MINIMISED, Measure, bound_of, exceeded
from optpart.solution.job import Job, method
from optpart.solution.record import Record
from optpart.solution.result import Budget, Progress, Result, Watch
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination

#: Seconds to wait for a message of one member before those of the others are received.
_LISTENING = 0.02

#: Share of the time for bounds beside a member, and most seconds.
_BOUNDING, _MOST_BOUNDING = 0.25, 10.0

#: Gaps up to this one, which rounding leaves, count as closed.
_CLOSED = 1e-6

#: Of the reasons for which members have ended, the first of these is that of the whole.
_ENDS = (
    Termination.TIME_LIMIT,
    Termination.MOVE_LIMIT,
    Termination.ROUNDING,
    Termination.COMPLETED,
    Termination.MEMORY_LIMIT,
    Termination.UNSUPPORTED,
)

#: Ends of members that a result without a proof mentions; any mentions failures.
_REMARKED = (
    Termination.ROUNDING,
    Termination.COMPLETED,
    Termination.MEMORY_LIMIT,
    Termination.UNSUPPORTED,
)

#: What found the schedule if no member has improved it.
_START = "start"


@method
def auto(job: Job, watch: Watch | None = None, *, pool: Pool = LOCAL) -> Result:
    """Run the methods that fit the instance, in turn and side by side.

    Supports every goal that one of its members supports. With one worker and a deterministic limit,
    every run gives the same result: the members then share ``budget.deterministic``, each in its
    own unit. If pruning rules are left out, only members that have such rules take part.

    Parameters
    ----------
    pool : Pool
        Where the members run that do not run in this process, and the searchers of a search.

    Returns
    -------
    Result
        Its ``schedule_by`` and ``bound_by`` name the members.

    Raises
    ------
    InputError
        If no member supports the goal, or the start contradicts the placement or order that the
        goal gives.
    AssertionError
        If a member claims a bound above a schedule that another one has found.
    """
    return _Run(Case(job, pool.remote, is_ready()), watch, pool).run()


class _Run:
    """One run, from the start to a proof or the end of the budget."""

    def __init__(self, case: Case, watch: Watch | None, pool: Pool) -> None:
        shown = None if watch is None else self._shown(watch)
        self.record = Record(case.job, shown, bound=Fraction(0))
        self.case = case
        self.pool = pool
        self.plan = plan(case)
        self.children: list[Child] = []
        #: Processes that have started, but whose members have not begun.
        self.hired: dict[Member, Child] = {}
        self.ends: list[tuple[str, Outcome]] = []
        self.schedule_by = self.bound_by = self.infeasible = self.remark = ""
        #: Whether this run has stopped the member at work or computed bounds, and what the user's
        #: watch has raised.
        self.enough = False
        self.bounded = False
        self.raised: BaseException | None = None

    def run(self) -> Result:
        """Let the members work; return the verified result even if that is interrupted."""
        try:
            with self.record.until_interrupted():
                self._start()
                self._work()
                self._end()
            with suppress(KeyboardInterrupt):  # a second interrupt
                self._receive_last()
        finally:
            for child in (*self.children, *self.hired.values()):
                child.stop()
        result = self.record.result("auto", infeasible=self.infeasible)
        return replace(result, schedule_by=self.schedule_by, bound_by=self.bound_by)

    def _receive_last(self) -> None:
        """Take what members have found and nobody has received, after an interruption."""
        if self.record.termination is Termination.INTERRUPTED:
            for child in self.children:
                self._listen(child)

    def _start(self) -> None:
        job = self.case.job
        if job.start is not None and not job.goal.contradiction(job.instance):
            job.require_kept_start()
            self.record.offer_start(job.start)
            self.schedule_by = "" if self.record.incumbent is None else _START

    def _work(self) -> None:
        """Let the members of the plan work until there is a proof."""
        sequence, beside = self.plan
        if self.case.budget.deterministic is None and not self.case.budget.seconds:
            beside = ()  # a process would not even start
        hired: list[Child] = []
        begin, rounded = 0.0, False
        self._hire(sequence, beside)
        for number, member in enumerate(sequence):
            if number == min(1, len(sequence) - 1):
                hired = [self._send(m, self._budget(n, 1.0, 0.0)) for m, n in beside]
            taken = sum(child.workers for child in hired if not child.ended)
            workers = max(1, self.case.budget.workers - taken)
            budget = self._budget(workers, member.until, begin)
            begin = member.until
            left = budget.seconds / max(self.case.budget.seconds, 1e-9)
            if number and (not left or not self.case.worth_starting(member, left)):
                continue
            if rounded and not member.gridless:
                continue
            final = number == len(sequence) - 1
            if member.place == "here" or not self._worth_a_process(number, budget):
                kept = self._bounding if final else 0.0
                self._here(member, replace(budget, seconds=max(0.0, budget.seconds - kept)))
                if final and not self.settled:
                    self._bound()
            else:
                child = self._send(member, budget)
                if number or final:  # most first members end with a proof
                    self._bound()  # while the member works
                self._await([child])
            if self.settled:
                return
            rounded = rounded or self._rounded(member)
        if rounded:
            return
        self._await(self.children)

    @property
    def _bounding(self) -> float:
        """The seconds for bounds: none after they are computed, or where they are of no use.

        CP-SAT proves more of small instances, and of large ones, these bounds are slow.
        """
        case, goal = self.case, self.case.goal
        measured = MINIMISED[goal.objective][0] == "makespan" and not goal.decides
        timed = case.budget.deterministic is None and not case.job.without
        of_use = not case.small and case.instance.vertices <= BOUNDED
        if self.bounded or not (measured and timed and of_use and case.compiled):
            return 0.0
        return min(_MOST_BOUNDING, _BOUNDING * case.budget.seconds)

    def _bound(self) -> None:
        """Prove, in a share of the time, what the command ``bound`` would prove in it."""
        goal, instance = self.case.goal, self.case.instance
        seconds = min(self._bounding, self.case.budget.seconds - self.record.seconds)
        if seconds <= 0.0 or goal.contradiction(instance):
            return
        self.bounded = True
        narrowed, known = goal.narrowed(instance), self.record.makespan
        for found in each_bound(narrowed, seconds, makespan=known, besides=(SERIES,)):
            if found.value is None:
                self.infeasible = excluded(instance, "bounds", goal.given)
                self.bound_by = found.name
                self._check()
                return
            self._raise(found.name, found.value, "makespan")
            for child in self.children:
                self._listen(child)
            self._check()
            self.record.pulse()
            if self.settled:
                return

    def _worth_a_process(self, number: int, budget: Budget) -> bool:
        """Return whether a member has time for a process; the first turn finds a start anyway."""
        timed = budget.deterministic is None
        return bool(number) or not timed or budget.seconds >= SHORTEST

    def _budget(self, workers: int, until: float, begin: float) -> Budget:
        """Return the budget of a member; deterministic limits leave the clock aside."""
        whole = self.case.budget
        if whole.deterministic is not None:
            left = max(0.0, whole.seconds - self.record.seconds)
            return Budget(left, workers, (until - begin) * whole.deterministic, whole.memory)
        left = max(0.0, until * whole.seconds - self.record.seconds)
        return Budget(left, workers, memory=whole.memory)

    def _job(self, budget: Budget) -> Job:
        return replace(self.case.job, budget=budget, start=self.record.incumbent)

    # --- members ---------------------------------------------------------------------------

    def _here(self, member: Member, budget: Budget) -> None:
        """Let a member work in this process, and receive from the others whenever it reports."""

        def watch(step: Progress) -> None:
            self._receive(member.name, step, verified=True)
            for child in self.children:
                self._listen(child)
            self.record.pulse()
            alone = step.objective is not None and step.objective == step.bound
            if self.settled and not alone:  # alone, it ends without losing its solver process
                self.enough = True
                raise KeyboardInterrupt

        spread = self.case.cluster and registry.takes(member.name, "pool")
        if self.case.cluster and not spread:
            budget = replace(budget, workers=min(budget.workers, available_processors()))
        options: dict[str, Any] = {"pool": self.pool} if spread else {}
        failures = Failures()
        outcome = run_member(member.path, self._job(budget), watch, **options)
        self._receive(member.name, outcome, verified=True, told=len(failures) > 0)
        if self.raised is not None:
            raise self.raised
        if outcome.termination is Termination.INTERRUPTED and not self.enough:
            raise KeyboardInterrupt

    def _send(self, member: Member, budget: Budget) -> Child:
        """Let a member work in a process of its own."""
        child = self.hired.pop(member, None) or Child(member.name, budget.workers, self.pool)
        child.begin(member.path, self._job(budget))
        self.children.append(child)
        return child

    def _hire(self, sequence: Sequence[Member], beside: Sequence[tuple[Member, int]]) -> None:
        """Start the processes of what follows the first member, if that is likely to be needed."""
        timed = self.case.budget.deterministic is None
        if self.case.small or not timed or self.case.budget.seconds < 2 * SHORTEST:
            return
        for member, workers in beside:
            self.hired[member] = Child(member.name, workers, self.pool)
        following = next((member for member in sequence[1:] if member.place == "process"), None)
        if following is not None:
            taken = sum(child.workers for child in self.hired.values())
            left = max(1, self.case.budget.workers - taken)
            self.hired[following] = Child(following.name, left, self.pool)

    def _await(self, awaited: list[Child]) -> None:
        """Receive from all members until these have ended or there is a proof."""
        while not self.settled and (working := [child for child in awaited if not child.ended]):
            self._listen(working[0], _LISTENING)
            for child in self.children:
                self._listen(child)
            self.record.pulse()

    def _listen(self, child: Child, seconds: float = 0.0) -> None:
        found = self.record.incumbent is not None
        for message in child.messages(seconds, patient=not found):
            self._receive(child.name, message, verified=False)

    # --- what they say ---------------------------------------------------------------------

    def _receive(
        self, name: str, message: Progress | Outcome, *, verified: bool, told: bool = False
    ) -> None:
        """Take what is new in a message of a member; ``told`` if its failure is recorded."""
        if isinstance(message, Progress):
            self.remark = message.remark or self.remark
            if message.bound is not None:
                self._raise(name, message.bound, MINIMISED[self.case.goal.objective][0])
        else:
            if message.contradiction:
                raise AssertionError(message.contradiction)
            self.ends.append((name, message))
            if message.termination is Termination.FAILED and not told:
                record_failure(name, message.reason)
            for measure, bound in message.bounds.items():
                self._raise(name, bound, measure)
            if message.infeasible:
                self.infeasible, self.bound_by = message.infeasible, name
        self._take(name, message.schedule, verified=verified)
        self._check()

    def _take(self, name: str, schedule: Schedule | None, *, verified: bool) -> None:
        if schedule is None or schedule is self.record.incumbent:
            return
        if verified:
            self.record.take(schedule)
        elif broken := self.record.offer(schedule):
            self.ends.append((name, Outcome(Termination.FAILED, "")))
            record_failure(name, f"its schedule: {broken}")
        if schedule is self.record.incumbent:
            self.schedule_by = name

    def _raise(self, name: str, bound: Fraction, measure: Measure) -> None:
        """Record a bound; the last one of the objective that is not trivial names the member."""
        minimised = MINIMISED[self.case.goal.objective]
        if measure in self.record.bounds and bound <= self.record.bounds[measure]:
            return
        if measure == minimised[0] or (len(minimised) > 1 and bound > 0):
            self.bound_by = name
        self.record.raise_bound(bound, measure)

    def _check(self) -> None:
        """Stop the program if what one member claims excludes what another one has found."""
        record, claim = self.record, ""
        if record.incumbent is None:
            return
        measure = exceeded(self.case.goal.objective, record.bounds, record.values)
        if self.infeasible:
            claim = "that there is no schedule"
        elif measure is not None:
            claim = f"a {bound_of(measure)} of {record.bounds[measure]}"
        if claim:
            raise AssertionError(
                f"auto: {self.bound_by} claims {claim} on {self.case.instance.name}, but "
                f"{self.schedule_by} has a verified schedule of makespan {record.makespan}, "
                f"traffic {record.values['traffic']}; please report this as a bug"
            )

    # --- the end ---------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """True if the question is answered."""
        record, goal = self.record, self.case.goal
        if self.infeasible or record.incumbent is None or goal.decides:
            return bool(self.infeasible) or record.incumbent is not None
        return record.gap == 0.0

    def _rounded(self, member: Member) -> bool:
        """Return whether a member has left only what rounding leaves."""
        gap = self.record.gap
        last = [outcome.termination for name, outcome in self.ends if name == member.name][-1:]
        return gap is not None and gap <= _CLOSED and last == [Termination.ROUNDING]

    def _end(self) -> None:
        """Say why the run ends; what failed in it is recorded as it arrives."""
        if self.settled:
            return
        reasons = [outcome.termination for _, outcome in self.ends]
        end = next((end for end in _ENDS if end in reasons), Termination.TIME_LIMIT)
        if end not in reasons and Termination.FAILED in reasons:
            return
        self.record.remarks += dict.fromkeys(
            f"{name}: {outcome.reason}"
            for name, outcome in self.ends
            if outcome.reason
            and outcome.termination in _REMARKED
            and outcome.termination is not end
        )
        limit = end in (Termination.TIME_LIMIT, Termination.MOVE_LIMIT)
        first = (outcome.reason for _, outcome in self.ends if outcome.termination is end)
        self.record.end(end, str(end) if limit else next(first))

    def _shown(self, watch: Watch) -> Watch:
        """Return the watch with remarks of members, and note what it raises."""

        def told(step: Progress) -> None:
            try:
                watch(replace(step, remark=self.remark))
            except BaseException as error:
                self.raised = error
                raise

        return told
