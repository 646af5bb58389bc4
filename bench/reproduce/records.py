"""The records of measurements."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Run:
    """One run of a partitioning strategy, with the results under every scheduling strategy.

    Attributes
    ----------
    case, run, partitioner : str, int, str
    seconds : float
        Processor time of partitioning.
    failed : str
        Why there is no placement; the further fields are then empty.
    traffic : float
    used : int
        Devices that run something.
    busy, busiest : float
        Time that devices spend on vertices: sum over all, and the largest.
    makespan : dict of str to float
        By scheduling strategy; ``own`` is the order that the partitioning strategy gives.
    choices : dict of str to list of float
        Executable vertices at each decision: mean, and quantiles 0.05, 0.25, 0.5, 0.75, 0.95.
    exact : dict of str to float
        Makespans of those schedules that were timed exactly and accepted by the verifier.
    cost : float
        Processor time of all that.
    """

    case: str
    run: int
    partitioner: str
    seconds: float = 0.0
    failed: str = ""
    traffic: float = 0.0
    used: int = 0
    busy: float = 0.0
    busiest: float = 0.0
    makespan: dict[str, float] = field(default_factory=dict)
    choices: dict[str, list[float]] = field(default_factory=dict)
    exact: dict[str, float] = field(default_factory=dict)
    cost: float = 0.0


@dataclass(frozen=True)
class Bound:
    """A proven lower bound of the makespan, and the best makespan that the library knows."""

    case: str
    run: int
    value: float
    method: str
    seconds: float
    library: float | None


Record = Run | Bound
