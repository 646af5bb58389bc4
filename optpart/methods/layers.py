"""The method ``layers``: heuristic starts, then wide layers between cut vertices."""

from __future__ import annotations

from optpart.exact.layers.solve import solve_layers
from optpart.methods.starts import heuristic_schedules
from optpart.solution.job import Job, method
from optpart.solution.result import Result, Watch


@method
def layers(job: Job, watch: Watch | None = None) -> Result:
    """Solve a graph of wide layers between cut vertices, from the heuristic schedules.

    See :func:`optpart.exact.layers.solve.solve_layers` for supported goals and errors.
    """
    return solve_layers(job, watch, starts=heuristic_schedules)
