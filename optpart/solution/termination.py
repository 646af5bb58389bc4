"""The reasons for which a method ends."""

from __future__ import annotations

from enum import StrEnum


class Termination(StrEnum):
    """The reason for which a method ended; the status states what it has proven."""

    #: The status is proven: OPTIMAL or INFEASIBLE.
    PROVEN = "proven"
    #: The method ran to its end without a proof: a heuristic, a search that found no initial
    #: placement, or a decision problem answered by a schedule.
    COMPLETED = "completed"
    #: The seconds or the deterministic time of the budget are used up.
    TIME_LIMIT = "time limit"
    #: The moves of the budget are used up.
    MOVE_LIMIT = "move limit"
    #: What the method needs does not fit the memory that is allowed or available.
    MEMORY_LIMIT = "memory limit"
    #: The user interrupted the method. This takes precedence over a proof, to stop later steps.
    INTERRUPTED = "interrupted"
    #: The solver solved its own model, but rounding or tolerances leave a gap.
    ROUNDING = "rounding"
    #: The method does not support the instance, for example because its model would be too large.
    UNSUPPORTED = "unsupported"
    #: The method failed or made a false claim.
    FAILED = "failed"
    #: The verifier rejected the schedule that the method returned.
    REJECTED = "rejected"
