"""Complete differencing: PARTITION by a tree search that counts its nodes.

R. E. Korf, A complete anytime algorithm for number partitioning, Artificial Intelligence 106
(1998), after N. Karmarkar, R. M. Karp (1982): the two largest numbers go to different sides (their
difference stays) or to one side (their sum stays).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence


def nodes_to_answer(numbers: Sequence[int]) -> tuple[bool, int]:
    """Return whether two sides are equal, and the number of nodes until that is known."""
    stack = [(sorted(numbers), sum(numbers))]
    nodes = 0
    while stack:
        left, total = stack.pop()
        nodes += 1
        largest = left[-1]
        if 2 * largest >= total:  # all others go to the other side
            if 2 * largest == total:
                return True, nodes
            continue
        rest, second = left[:-2], left[-2]
        together, apart = rest.copy(), rest
        insort(together, largest + second)
        insort(apart, largest - second)
        stack.append((together, total))
        stack.append((apart, total - 2 * second))
    return False, nodes
