"""All reductions by name."""

from __future__ import annotations

from typing import Any

from optpart.choices import choice
from optpart.errors import InputError
from optpart.reductions.base import Reduction
from optpart.reductions.bin_packing import BIN_PACKING
from optpart.reductions.clique import CLIQUE
from optpart.reductions.communication import UNIT_DELAYS
from optpart.reductions.job_shop import JOB_SHOP
from optpart.reductions.partition import PARTITION
from optpart.reductions.single_execution_time import SINGLE_EXECUTION_TIME
from optpart.reductions.three_partition import THREE_PARTITION

REDUCTIONS: dict[str, Reduction[Any, Any]] = {
    reduction.name: reduction
    for reduction in (
        SINGLE_EXECUTION_TIME,
        CLIQUE,
        THREE_PARTITION,
        JOB_SHOP,
        PARTITION,
        UNIT_DELAYS,
        BIN_PACKING,
    )
}


def reduction(name: str) -> Reduction[Any, Any]:
    """Return a reduction by name; raise :class:`InputError` that lists all if there is none."""
    if name not in REDUCTIONS:
        raise InputError("NAME", f"no reduction {name!r}", choice(name, REDUCTIONS))
    return REDUCTIONS[name]
