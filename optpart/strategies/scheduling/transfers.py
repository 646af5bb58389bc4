"""The properties of ops in [H] §4.1: transfers, and the transfers that an op depends on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.base.errors import UnsupportedError
from optpart.kernels.compiled import inner, kernel
from optpart.kernels.struct import FloatMatrix, Floats, Ints, Struct, WordMatrix
from optpart.kernels.tasks import Tasks

#: Maximal bytes of the table of dependencies.
_LIMIT = 2**31

#: Sets unpacked at a time to one number per transfer.
_CHUNK = 512


class Transfers(NamedTuple):
    """The *recv* ops of a task graph, numbered by task.

    Attributes
    ----------
    task : ndarray of int64, length r
    channel : ndarray of int32, length r
        Numbered from 0.
    time : ndarray of float64, length r
    channels : int
    """

    task: NDArray[np.int64]
    channel: NDArray[np.int32]
    time: NDArray[np.float64]
    channels: int


class Dependencies(NamedTuple):
    """Communication dependencies (``op.dep``) of the computation ops, one row per distinct set.

    Transfers are leaves of a partition ([H] §2.4): dependencies of a send do not count for the
    partition that receives it.

    Attributes
    ----------
    sets : ndarray of uint64, rows × words
        Bit ``r % 64`` of word ``r // 64`` is set if transfer ``r`` is in the set. No set is empty.
    load : ndarray of float64, length rows
        Sum of the times of the ops with that set.
    """

    sets: NDArray[np.uint64]
    load: NDArray[np.float64]


def is_transfer(work: Tasks, vertices: int) -> NDArray[np.bool_]:
    """Return which tasks are transfers: they bring data over a channel, and others wait for it.

    Where transfers queue, they are tasks of their own (:mod:`optpart.kernels.tasks`). Otherwise
    they are the tasks on *channels*: a resource is a channel if none of its tasks has a successor
    on the same resource, and some have a successor on another. Hence the uploads of a worker
    without its servers do not count, since nothing waits for them: only *recv* ops have to be
    ordered ([H] §2.4).

    Parameters
    ----------
    vertices : int
        Number n of vertices; tasks from n on are transfers.
    """
    total = len(work.duration)
    if total > vertices:
        return np.arange(total) >= vertices
    source = np.repeat(np.arange(total), np.diff(work.out_start))
    here, there = work.resource[source], work.resource[work.out_target]
    channel = np.zeros(work.resources, dtype=np.bool_)
    channel[here] = True
    channel[here[here == there]] = False
    return channel[work.resource]


def transfers(work: Tasks, vertices: int) -> Transfers:
    """Number the transfers of a task graph; see :func:`is_transfer`."""
    task = np.flatnonzero(is_transfer(work, vertices))
    resources, channel = np.unique(work.resource[task], return_inverse=True)
    return Transfers(task, channel.astype(np.int32), work.duration[task], len(resources))


def dependencies(work: Tasks, found: Transfers) -> Dependencies:
    """Return the sets of transfers that computation ops depend on, directly or transitively.

    Raises
    ------
    UnsupportedError
        If there are too many transfers and ops for the table to fit into memory.
    """
    total, words = len(work.duration), max(1, -(-len(found.task) // 64))
    if total * words * 8 > _LIMIT:
        raise UnsupportedError(
            "method",
            f"{len(found.task)} transfers among {total} ops are too many to order by dependencies",
            "use another scheduling strategy",
        )
    number = np.full(total, -1, dtype=np.int32)
    number[found.task] = np.arange(len(found.task))
    sets = _reach(work, number, words)
    clock.check_time()
    chosen = (number < 0) & sets.any(axis=1)
    # One opaque entry per row: sorting these is far faster than sorting rows.
    rows = np.ascontiguousarray(sets[chosen]).view(np.dtype((np.void, 8 * words))).ravel()
    distinct, inverse = np.unique(rows, return_inverse=True)
    load = np.zeros(len(distinct))
    np.add.at(load, inverse, work.duration[chosen])
    # A copy, because compiled code does not take read-only arrays.
    return Dependencies(distinct.view(np.uint64).reshape(-1, words).copy(), load)


@kernel
def _reach(work: Tasks, number: Ints, words: int) -> Any:
    out_start, out_target = work.out_start, work.out_target
    sets = np.zeros((work.order.shape[0], words), np.uint64)
    for v in work.order:
        if number[v] >= 0:
            sets[v, number[v] >> 6] |= np.uint64(1) << np.uint64(number[v] & 63)
        for e in range(out_start[v], out_start[v + 1]):
            if number[out_target[e]] < 0:
                for w in range(words):
                    sets[out_target[e], w] |= sets[v, w]
    return sets


def partitions(found: Transfers, sets: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the partition of each transfer; those of a partition are ordered together.

    Channels belong together if some op depends on transfers of both, as is the case for a worker.
    """
    label: NDArray[np.int32] = _joined(sets, found.channel, found.channels)
    return label[found.channel]


@kernel
def _joined(sets: WordMatrix, channel: Ints, channels: int) -> Any:
    parent = np.empty(channels, np.int32)
    for c in range(channels):
        parent[c] = c
    for g in range(sets.shape[0]):
        first = -1
        for r in range(channel.shape[0]):
            if has(sets, g, r):
                c = channel[r]
                while parent[c] != c:
                    c = parent[c]
                if first >= 0:
                    # The smaller number stays, so that a parent's number is never larger.
                    parent[max(first, c)] = first = min(first, c)
                else:
                    first = c
    for c in range(channels):
        parent[c] = parent[parent[c]]
    return parent


@inner
def has(sets: Any, g: int, r: int) -> Any:
    """Return whether transfer ``r`` is in set ``g``."""
    return (sets[g, r >> 6] >> np.uint64(r & 63)) & np.uint64(1) != np.uint64(0)


@inner
def longest(part: Any, g: int) -> Any:
    """Return the largest entry of a row."""
    best = 0.0
    for c in range(part.shape[1]):
        best = max(best, part[g, c])
    return best


def set_of(some: NDArray[np.int32], words: int) -> NDArray[np.uint64]:
    """Return a table whose only set is that of the given transfers."""
    table = np.zeros((1, words), dtype=np.uint64)
    np.bitwise_or.at(table[0], some // 64, np.uint64(1) << (some % 64).astype(np.uint64))
    return table


class Outstanding(Struct):
    """The state of algorithm 1: at its start, all transfers are outstanding.

    Attributes
    ----------
    sets : ndarray of uint64, rows × words
        See :class:`Dependencies`.
    part : ndarray of float64, rows × channels
        Time of the transfers of a set, per channel.
    total : ndarray of float64, length rows
        ``op.M``: of several channels, the one that takes longest counts ([H] §4.1).
    left : ndarray of int32, length rows
        Size of a set.
    order : ndarray of int32, length rows
        Sets by rising ``op.M``.
    """

    sets: WordMatrix
    part: FloatMatrix
    total: Floats
    left: Ints
    order: Ints


def outstanding(
    sets: NDArray[np.uint64], found: Transfers, time: NDArray[np.float64]
) -> Outstanding:
    """Return the properties of sets under a time oracle.

    Parameters
    ----------
    time : ndarray of float64, length r
        Durations of the transfers.
    """
    weights = np.zeros((64 * sets.shape[1], found.channels))
    weights[np.arange(len(time)), found.channel] = time
    part, left = np.zeros((len(sets), found.channels)), np.zeros(len(sets), dtype=np.int32)
    for begin in range(0, len(sets), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        octets = sets[rows].astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, bitorder="little")
        part[rows] = bits.astype(np.float64) @ weights
        left[rows] = bits.sum(axis=1)
    total = part.max(axis=1, initial=0.0)
    order = np.argsort(total, kind="stable").astype(np.int32)
    return Outstanding(sets, part, total, left, order)


@inner
def impending(state: Outstanding, rows: int, missing: Any, load: Any) -> None:
    """Fill in ``recvOp.M⁺``: the least ``op.M`` of ops that wait for it and others as well.

    The first set by rising ``op.M`` that contains a transfer decides, so that most sets need not
    be examined; only the first ``rows`` of ``state.order`` count. ``missing`` is the set of the
    outstanding transfers and is consumed.
    """
    order, sets, left, total = state.order, state.sets, state.left, state.total
    words = missing.shape[1]
    for r in range(load.shape[0]):
        load[r] = np.inf
    for i in range(rows):
        g = order[i]
        if left[g] < 2:
            continue
        more = np.uint64(0)
        for w in range(words):
            both = sets[g, w] & missing[0, w]
            missing[0, w] ^= both
            more |= missing[0, w]
            b = 64 * w
            while both != np.uint64(0):
                if both & np.uint64(1) != np.uint64(0):
                    load[b] = total[g]
                both >>= np.uint64(1)
                b += 1
        if more == np.uint64(0):
            return
