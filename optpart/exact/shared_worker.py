"""The process that solves models with one plan for several instances."""

from __future__ import annotations

from optpart.exact import cp_sat
from optpart.exact.messages import Limits, Send, serve
from optpart.exact.shared_plan import SharedPlan, SharedTask


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _solve(task: SharedTask, limits: Limits, send: Send) -> None:
    cp_sat.solve(lambda: SharedPlan(task), limits, send, steps=False)
