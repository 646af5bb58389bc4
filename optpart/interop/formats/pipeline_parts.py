"""What the vertices of a training pipeline are called: ``1F3``, as PyTorch calls its actions.

The number of the stage comes first, then ``F`` for a forward pass, ``I`` for the gradient of its
input and ``W`` for that of its weights, or ``B`` for both in one, then the number of the
microbatch. Where activations may be offloaded, ``S`` stores what a forward pass leaves: on the
device of the stage, or on its host. It takes no time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.problem.instance import Instance

FORWARD, INPUT, WEIGHT, BOTH, STORE = "F", "I", "W", "B", "S"

_NAME = re.compile(r"(\d{1,6})([FIWBS])(\d{1,6})", re.ASCII)
#: What to do about a name that is no pass.
REMEDY = "'optpart generate training-pipeline' makes such instances"


class Pass(NamedTuple):
    """A pass of a microbatch through a stage, or the storing of what its forward pass leaves."""

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


@dataclass(frozen=True)
class Passes:
    """The passes of a training pipeline, and where its stages are.

    Attributes
    ----------
    vertex : mapping from Pass to int
    device : tuple of int
        Of each stage.
    devices : tuple of int
        Those that have stages, in the order of their first ones: the ranks.
    microbatches : int
    backward : tuple of str
        Kinds of the tasks of a backward pass: ``I`` and ``W``, or ``B``.
    """

    vertex: Mapping[Pass, int]
    device: tuple[int, ...]
    devices: tuple[int, ...]
    microbatches: int
    backward: tuple[str, ...]

    @property
    def stages_of_rank(self) -> tuple[tuple[int, ...], ...]:
        """The stages of each rank, in their order."""
        return tuple(
            tuple(s for s, d in enumerate(self.device) if d == device) for device in self.devices
        )


def pass_of(name: str) -> Pass | None:
    """Return the pass that a vertex is by its name, or ``None``."""
    matched = _NAME.fullmatch(name)
    return None if matched is None else Pass(int(matched[1]), matched[2], int(matched[3]))


def passes_of(instance: Instance) -> Passes:
    """Find the passes; raise :class:`UnsupportedError` if it is no training pipeline."""
    found: dict[Pass, int] = {}
    for v, name in enumerate(instance.graph.names):
        if (each := pass_of(name)) is None:
            problem = f"is no training pipeline: no pass is called {name!r}"
            raise UnsupportedError(instance.name, problem, REMEDY)
        found[each] = v
    stages = 1 + max((each.stage for each in found), default=0)
    microbatches = 1 + max((each.microbatch for each in found), default=0)
    backward = (INPUT, WEIGHT) if any(each.kind == WEIGHT for each in found) else (BOTH,)
    kinds = {FORWARD, *backward}
    if any(each.kind == STORE for each in found):
        kinds.add(STORE)
    expected = stages * microbatches * len(kinds)
    if len(found) != expected or {each.kind for each in found} != kinds:
        problem = f"is no training pipeline of {stages} stages and {microbatches} microbatches"
        raise UnsupportedError(instance.name, f"{problem}: passes are missing", REMEDY)
    device = []
    for s in range(stages):
        of_stage = [v for each, v in found.items() if each.stage == s and each.kind != STORE]
        allowed = np.flatnonzero(instance.allowed[instance.unit_of[of_stage]].any(axis=0))
        if len(allowed) != 1:
            raise UnsupportedError(f"stage {s}", "may be on several devices", REMEDY)
        device.append(int(allowed[0]))
    return Passes(found, tuple(device), tuple(dict.fromkeys(device)), microbatches, backward)
