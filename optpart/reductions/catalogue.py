"""All reductions by name."""

from __future__ import annotations

from typing import Any

from optpart.reductions.base import Reduction
from optpart.reductions.bin_packing import BIN_PACKING
from optpart.reductions.clique import CLIQUE
from optpart.reductions.communication import UNIT_DELAYS
from optpart.reductions.job_shop import JOB_SHOP
from optpart.reductions.partition import PARTITION
from optpart.reductions.single_execution_time import SINGLE_EXECUTION_TIME
from optpart.reductions.three_partition import THREE_PARTITION
from optpart.registry import Registry

REDUCTIONS: Registry[Reduction[Any, Any]] = Registry(
    "NAME",
    {
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
    },
    Reduction,
    group="optpart.reductions",
)
