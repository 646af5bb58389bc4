"""Enforcing an order of transfers by counters at their sender ([H] §5.1).

Priorities become ranks from 0: the number of transfers that are submitted before. The sender counts
the transfers that it has submitted to a channel. A transfer waits until the counter has reached its
rank, even if it is ready and the channel is free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.errors import InputError
from optpart.kernels.tasks import Tasks
from optpart.problem.graph import grouped
from optpart.strategies.scheduling.transfers import transfers
from optpart.strategies.simulator import Priority


def counters(work: Tasks, priority: Priority) -> list[NDArray[np.int64]]:
    """Return the transfers of every channel, by rank.

    Parameters
    ----------
    work : Tasks
        Its tasks are its vertices.
    priority : Priority
        Equal priorities are ordered by their ties.
    """
    if priority.value is None:
        raise InputError("priority", "none to enforce", "use a strategy that gives priorities")
    found = transfers(work, len(work.duration))
    first = np.lexsort((priority.tie[found.task], -priority.value[found.task]))
    ordered, channel = found.task[first], found.channel[first]
    return [ordered[channel == c] for c in range(found.channels)]


def enforced(work: Tasks, order: list[NDArray[np.int64]]) -> Tasks:
    """Return tasks in which every transfer waits for the one before it in :func:`counters`.

    If all transfers can be sent from the beginning, such as those to a worker, priorities alone
    have the same effect.

    Raises
    ------
    InputError
        If a transfer would wait for one that depends on it: counters would wait forever.
    """
    total = len(work.duration)
    source = np.repeat(np.arange(total), np.diff(work.out_start))
    before = np.concatenate([source, *(one[:-1] for one in order)]).astype(np.int32)
    after = np.concatenate([work.out_target, *(one[1:] for one in order)]).astype(np.int32)
    delay = np.concatenate((work.out_delay, np.zeros(len(after) - len(work.out_target))))
    by_target = np.lexsort((after, before))
    before, after, delay = before[by_target], after[by_target], delay[by_target]
    out_start, _ = grouped(before, total)
    missing = np.bincount(after, minlength=total).astype(np.int32)
    return work.replaced(
        out_start=out_start,
        out_target=after,
        out_delay=delay,
        missing=missing,
        order=_sorted(out_start, after, missing),
    )


def _sorted(
    out_start: NDArray[np.int32], out_target: NDArray[np.int32], missing: NDArray[np.int32]
) -> NDArray[np.int32]:
    begin, heads, waiting = out_start.tolist(), out_target.tolist(), missing.tolist()
    order = [v for v, count in enumerate(waiting) if not count]
    for v in order:
        for w in heads[begin[v] : begin[v + 1]]:
            waiting[w] -= 1
            if not waiting[w]:
                order.append(w)
    if len(order) < len(waiting):
        raise InputError(
            "order", "a transfer waits for one that depends on it", "enforce another order"
        )
    return np.array(order, dtype=np.int32)


def overtaken(
    work: Tasks, priority: Priority, probability: float, rng: np.random.Generator
) -> Priority:
    """Return priorities under which some transfers are overtaken by the next on their channel.

    This happens after transfers were submitted to gRPC: to 0.4% and 0.5% of the transfers of
    Inception ([H] §5.1).

    Parameters
    ----------
    probability : float
        Probability that a transfer is sent after the one submitted after it.
    """
    value = np.zeros(len(work.duration)) if priority.value is None else priority.value.copy()
    for handed_over in counters(work, priority):
        sent = handed_over.copy()
        for i in np.flatnonzero(rng.random(max(0, len(sent) - 1)) < probability):
            sent[i], sent[i + 1] = sent[i + 1], sent[i]
        value[sent] = -1.0 - np.arange(len(sent))
    return priority._replace(value=value)
