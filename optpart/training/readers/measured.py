"""Updates, which no measured profile contains but Sailor's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from optpart.devices.spec import Spec
from optpart.training.backward import Forward, ForwardOperation, Weights
from optpart.training.graph import Line
from optpart.training.layers import update_lines, update_remark


def forward(
    name: str,
    kinds: Sequence[str],
    operations: Sequence[ForwardOperation],
    weights: Sequence[Weights],
    figures: Mapping[str, Spec] | None,
    slots: int,
    source: str,
    assumed: Sequence[str],
) -> Forward:
    """Build a forward pass whose updates were not measured.

    Parameters
    ----------
    figures : mapping from str to Spec, optional
        Of each kind, by which updates are timed. Without it they take no time.
    slots : int
        Tensors that the optimiser keeps of each trained one.
    """
    if figures is None:
        updates = [tuple(Line() for _ in kinds)] * len(weights)
        remark = "Updates were not measured and take no time."
    else:
        chosen = {kind: figures[kind] for kind in kinds}
        updates = update_lines([round(w.size) for w in weights], chosen, slots)
        remark = update_remark(slots)
    return Forward(
        name,
        tuple(kinds),
        tuple(operations),
        tuple(weights),
        tuple(updates),
        source,
        (*assumed, remark),
    )


def proportional(time: Fraction, samples: Fraction | int, slowness: Fraction) -> Line:
    """Return the line of a time that was measured for so many samples, on another device."""
    return Line(beta=time * slowness / samples)
