"""The exact Pareto front of makespan and traffic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from optpart.base import clock
from optpart.exact.cross_check import confirmed
from optpart.methods.cpsat import cpsat
from optpart.problem.instance import Instance
from optpart.solution.job import Job
from optpart.solution.result import Result, Status, Watch
from optpart.solution.termination import Termination


def pareto(job: Job, watch: Watch | None = None) -> list[Result]:
    """Return the Pareto front of makespan and traffic, by increasing makespan.

    This is the ε-constraint method. Each point is a shortest schedule among those with less
    traffic than the point before it and, among the shortest, one of least traffic; the front ends
    where there is no such schedule. The seconds of the budget are for the whole front, the
    deterministic time is for each solve; what the goal gives holds on the whole front, and its
    objective is ignored.

    Returns
    -------
    list of Result
        If all are ``OPTIMAL``, they are the whole front, one schedule per point. Otherwise the
        last result, which may have no schedule, lacks a proof: the points before it are on the
        front, and all further points have less traffic. A single ``INFEASIBLE`` result means
        that there is no schedule at all.

    Raises
    ------
    ContradictionError
        If enumeration contradicts a point of a small instance.
    """
    deadline = clock.now() + job.budget.seconds
    front: list[Result] = []
    goal = replace(job.goal, objective="lexicographic")
    while True:
        left = replace(job.budget, seconds=max(0.0, deadline - clock.now()))
        asked = replace(job, goal=goal, budget=left)
        result = confirmed(cpsat(asked, watch), goal)
        if result.status is Status.INFEASIBLE and front:
            return front
        front.append(result)
        if result.status is not Status.OPTIMAL or not result.traffic:
            return front
        if result.termination is Termination.INTERRUPTED:
            return front
        goal = replace(goal, traffic=result.traffic - _least_difference(job.instance))


def _least_difference(instance: Instance) -> Fraction:
    """Return a lower bound of the difference between two different amounts of traffic."""
    return Fraction(1, instance.graph.tensor_size.denominator)
