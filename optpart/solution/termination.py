"""Why a method ended."""

from __future__ import annotations

from enum import StrEnum


class Termination(StrEnum):
    """Why a method ended; its status says what it has proven by then."""

    #: The status is OPTIMAL or INFEASIBLE: nothing is left to find.
    PROVEN = "proven"
    #: It has done all that it does, without a proof: a heuristic that ran to its end, a search
    #: that finds nowhere to begin, or a schedule that answers a decision problem.
    COMPLETED = "completed"
    #: The budget's seconds, or the solver's deterministic time, are spent.
    TIME_LIMIT = "time limit"
    #: The budget's moves are spent.
    MOVE_LIMIT = "move limit"
    #: The user stopped it. This outranks a proof, since whatever was to follow is to stop as well.
    INTERRUPTED = "interrupted"
    #: The solver's own problem is solved, but rounding or its tolerances leave a gap.
    ROUNDING = "rounding"
    #: The instance is beyond the method, for example too large for its model.
    UNSUPPORTED = "unsupported"
    #: The method broke down, or claimed what does not hold.
    FAILED = "failed"
