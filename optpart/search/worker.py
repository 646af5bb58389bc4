"""The worker process of a searcher: it reports its layouts and receives those of others."""

from __future__ import annotations

from collections import Counter

import numpy as np

from optpart.base import clock
from optpart.base.children.caller import Caller
from optpart.base.children.failures import Failures
from optpart.search.bounding import bounded
from optpart.search.messages import Bounded, Improvement, Moves, SearcherTask
from optpart.search.searcher import searcher

#: Seconds between two counts of moves.
_COUNT = 1.0


def main() -> None:
    """Run the only task of the caller, receiving layouts of other searchers meanwhile."""
    caller = Caller()
    failures = Failures()
    task: SearcherTask = caller.receive()
    begin = clock.now()
    caller.send(Moves(0, Counter()))  # it has begun
    if task.bound_seconds > 0:
        value = bounded(task.instance, task.bound_seconds, task.makespan)
        caller.send(Bounded(value))
    rng = np.random.default_rng(task.seed)
    own = searcher(
        task.manner,
        task.instance,
        task.objective,
        task.start,
        rng,
        seconds=task.seconds,
        memory=task.memory,
    )
    counted = clock.now()
    while (share := (clock.now() - begin) / task.seconds) < 1.0:
        for found in caller.received():
            own.offer(found.layout, found.value)
        if own.step(share):
            caller.send(Improvement(own.best, own.value))
        if clock.now() - counted > _COUNT:
            counted = clock.now()
            caller.send(Moves(own.moves, own.improvements, failures.described()))
    caller.send(Moves(own.moves, own.improvements, failures.described()))
    while True:  # until the caller ends it: a process that ends by itself has died
        caller.receive()
