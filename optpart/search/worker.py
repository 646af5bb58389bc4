"""The worker process of a searcher: it reports its layouts and receives those of others."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time

import numpy as np

from optpart.exact.messages import receive, send
from optpart.search.bounding import bounded
from optpart.search.messages import Bounded, Found, Job, Moves
from optpart.search.searcher import searcher, warm_up

#: Seconds between two counts of moves.
_COUNT = 1.0


def main() -> None:
    """Serve the one job that comes from standard input."""
    # Printed output must not mix with the messages.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    warm_up("search")
    job = receive(sys.stdin.buffer)
    if not isinstance(job, Job):
        return
    begin = time.perf_counter()
    heard: queue.SimpleQueue[Found] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(heard,), daemon=True).start()
    if job.bound_seconds > 0:
        value = bounded(job.instance, job.bound_seconds, job.makespan)
        send(channel, Bounded(value))
    rng = np.random.default_rng(job.seed)
    own = searcher(job.manner, job.instance, job.objective, job.start, rng, seconds=job.seconds)
    counted = time.perf_counter()
    while (share := (time.perf_counter() - begin) / job.seconds) < 1.0:
        while not heard.empty():
            found = heard.get()
            own.offer(found.layout, found.value)
        if own.step(share):
            send(channel, Found(own.best, own.value))
        if time.perf_counter() - counted > _COUNT:
            counted = time.perf_counter()
            send(channel, Moves(own.moves, own.paid))
    send(channel, Moves(own.moves, own.paid))


def _listen(heard: queue.SimpleQueue[Found]) -> None:
    while (message := receive(sys.stdin.buffer)) is not None:
        if isinstance(message, Found):
            heard.put(message)
    os._exit(0)  # the caller is gone
