"""llama.cpp with ``--fit``, as it runs by default: what the cards can hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.layers import Layers, layers_of
from optpart.strategies.partition.llama_tensor_split import by_memory


def llama_fit(instance: Instance, rng: np.random.Generator, *, margin: float = 0.0) -> Partition:
    """Fill the cards with layers until each has no more than a margin of memory left.

    If the split by memory fits, it stays. Otherwise layers are given out from the last card to the
    first, and from the output to the first block; what fits nowhere is on the processor, with the
    embedding. If experts of blocks are vertices, they are left on the processor at first. If all
    else fits the cards, blocks with experts then replace blocks without, from the first card to
    the last, and from the first block on.

    Parameters
    ----------
    margin : float
        Memory that every card keeps free (``--fit-target``, 1 GiB by default); 0 since what reads
        models keeps as much free already.

    Raises
    ------
    NoPlacementError
        If the processor cannot hold the rest.

    Notes
    -----
    ``common/fit.cpp`` of llama.cpp (<https://github.com/ggml-org/llama.cpp>, commit 08033df0), with
    a context that the user gives. Its last step, which moves single matrices of one more block per
    card, is left out: they are no vertices. Without vertices for experts, a mixture is treated like
    any other model.
    """
    layers = layers_of(instance)
    return layers.placed(*fit(layers, layers.cards, margin))


def fit(
    layers: Layers, cards: list[int], margin: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the device of each layer, and whose experts are on the processor."""
    home, target = by_memory(layers, cards), layers.room[cards] - margin
    used = np.bincount(home, layers.whole, len(layers.room))[cards]
    if (used <= target).all():
        return home, np.zeros(len(home), np.bool_)
    none = np.zeros(len(cards), np.int64)
    plan = _filled(_Counts(layers, none, none), target)
    dense_fits = layers.dense[1:].sum() < target.sum()
    if layers.is_expert.any() and dense_fits and plan.count.any():
        plan = _with_experts(plan, target)
    return plan.laid_out(cards)


@dataclass(frozen=True)
class _Counts:
    """How many of the last layers each card has, and how many of these are without experts.

    The last layers of a card are those without.
    """

    layers: Layers
    count: NDArray[np.int64]
    partial: NDArray[np.int64]

    def _bounds(self, card: int) -> tuple[int, int, int]:
        """Return the first layer of a card, its first without experts, and the end."""
        begin = len(self.layers.whole) - int(self.count[card:].sum())
        end = begin + int(self.count[card])
        return begin, end - int(self.partial[card]), end

    def used(self, card: int) -> float:
        begin, middle, end = self._bounds(card)
        layers = self.layers
        return float(layers.whole[begin:middle].sum() + layers.dense[middle:end].sum())

    def laid_out(self, cards: list[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        home = np.full(len(self.layers.whole), self.layers.host)
        away = np.zeros(len(home), np.bool_)
        for card, device in enumerate(cards):
            begin, middle, end = self._bounds(card)
            home[begin:end], away[middle:end] = device, True
        return home, away


def _filled(plan: _Counts, target: NDArray[np.float64]) -> _Counts:
    """Give out layers from the last to the first, without experts, but for the output."""
    last = len(target) - 1
    for card in range(last, -1, -1):
        best = plan
        for count in range(1, len(plan.layers.whole) - int(plan.count.sum())):
            without = count - (card == last) if plan.layers.is_expert.any() else 0
            tried = replace(
                plan,
                count=_with(plan.count, card, count),
                partial=_with(plan.partial, card, without),
            )
            if tried.used(card) > target[card]:
                break
            best = tried
        plan = best
    return plan


def _with_experts(plan: _Counts, target: NDArray[np.float64]) -> _Counts:
    """Replace layers without experts, the first of the first card that has any, by whole ones."""
    start = int(np.flatnonzero(plan.count)[0])
    for card in range(len(target)):
        if card > start:
            break
        for _ in range(int(plan.partial.sum())):
            if not plan.partial[start:].any():
                break
            giver = start + int(np.flatnonzero(plan.partial[start:])[0])
            count, partial = plan.count.copy(), plan.partial.copy()
            count[giver] -= 1
            partial[giver] -= 1
            count[card] += 1
            tried = replace(plan, count=count, partial=partial)
            if tried.used(card) > target[card]:
                break
            plan = tried
            start = giver if partial[giver] else giver + 1
    return plan


def _with(values: NDArray[np.int64], at: int, value: int) -> NDArray[np.int64]:
    found = values.copy()
    found[at] = value
    return found
