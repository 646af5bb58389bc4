"""All reductions by name."""

from __future__ import annotations

from typing import Any

from optpart.applications.reductions.base import Reduction
from optpart.applications.reductions.bin_packing import BIN_PACKING
from optpart.applications.reductions.clique import CLIQUE
from optpart.applications.reductions.communication import UNIT_DELAYS
from optpart.applications.reductions.job_shop import JOB_SHOP
from optpart.applications.reductions.partition import PARTITION
from optpart.applications.reductions.single_execution_time import SINGLE_EXECUTION_TIME
from optpart.applications.reductions.three_partition import THREE_PARTITION
from optpart.base.registry import Registry

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
