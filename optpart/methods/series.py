"""The method ``series``: heuristic starts, then a dynamic programme over the parts of the graph."""

from __future__ import annotations

from optpart.exact.series.solve import solve_series
from optpart.methods.starts import heuristic_schedules
from optpart.solution.job import Job, method
from optpart.solution.result import Result, Watch


@method
def series(job: Job, watch: Watch | None = None) -> Result:
    """Solve by dynamic programming over the parts of the graph, from the heuristic schedules.

    See :func:`optpart.exact.series.solve.solve_series` for supported goals and errors.
    """
    return solve_series(job, watch, starts=heuristic_schedules)
