"""Random numbers for compiled code: SplitMix64, with its whole state in one array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


def source(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return the state of a new stream, drawn from a generator."""
    return rng.integers(0, 2**64, size=1, dtype=np.uint64)


@inner
def uniform(state: Any) -> Any:
    """Draw a number from ``[0, 1)``."""
    state[0] += _STEP
    z = state[0]
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return np.float64((z ^ (z >> _31)) >> _11) * (1.0 / 9007199254740992.0)


@inner
def below(state: Any, bound: int) -> Any:
    """Draw a whole number from ``0 … bound − 1``."""
    return np.int64(uniform(state) * bound)
