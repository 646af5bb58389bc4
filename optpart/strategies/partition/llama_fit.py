"""llama.cpp with ``--fit``, as it runs by default: what the cards can hold."""

from __future__ import annotations

from dataclasses import dataclass

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
    plan = _filled(_Plan(layers, none, none), target)
    if layers.is_expert.any() and plan.count.any() and layers.dense[1:].sum() < target.sum():
        plan = _with_experts(plan, target)
    return plan.laid_out(cards)


@dataclass(frozen=True)
class _Plan:
    """How many of the last layers each card has, and how many of these, its last, no experts."""

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

    def changed(self, count: dict[int, int], partial: dict[int, int]) -> _Plan:
        """Add to the counts of some cards."""
        one, other = self.count.copy(), self.partial.copy()
        for values, changes in ((one, count), (other, partial)):
            for card, change in changes.items():
                values[card] += change
        return _Plan(self.layers, one, other)

    def laid_out(self, cards: list[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        home = np.full(len(self.layers.whole), self.layers.host)
        away = np.zeros(len(home), np.bool_)
        for card, device in enumerate(cards):
            begin, middle, end = self._bounds(card)
            home[begin:end], away[middle:end] = device, True
        return home, away


def _filled(plan: _Plan, target: NDArray[np.float64]) -> _Plan:
    """Give out layers from the last to the first, without experts, but for the output."""
    mixture = plan.layers.is_expert.any()
    for card in range(len(target) - 1, -1, -1):
        for first in (True, *[False] * plan.layers.blocks):
            output = first and card == len(target) - 1
            tried = plan.changed({card: 1}, {card: int(mixture and not output)})
            if tried.count.sum() > plan.layers.blocks + 1 or tried.used(card) > target[card]:
                break
            plan = tried
    return plan


def _with_experts(plan: _Plan, target: NDArray[np.float64]) -> _Plan:
    """Replace layers without experts, the first of the first card that has any, by whole ones."""
    start = int(np.flatnonzero(plan.count)[0])
    for card in range(len(target)):
        while card <= start and plan.partial[start:].any():
            giver = start + int(np.flatnonzero(plan.partial[start:])[0])
            moved = plan.changed({giver: -1}, {giver: -1}).changed({card: 1}, {})
            if moved.used(card) > target[card]:
                break
            plan, start = moved, giver if moved.partial[giver] else giver + 1
    return plan
