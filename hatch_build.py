"""Put machine code into the wheel, if there is a setting that says so: see ``make wheel``.

Such a wheel is for one version of Python on one kind of processor. Others compile at first use.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "optpart/kernels/machine"


class MachineCode(BuildHookInterface[Any]):
    """Adds the files of ``optpart warm-up``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to a wheel that is not editable."""
        if version == "editable" or "OPTPART_WITH_MACHINE_CODE" not in os.environ:
            return
        if not any(Path(self.root, FOLDER).glob("complete-*")):
            raise SystemExit(f"{FOLDER} is not complete: run optpart warm-up")
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["artifacts"].append(f"/{FOLDER}/*")
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-manylinux_2_28_{platform.machine()}"
