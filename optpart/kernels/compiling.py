"""The process that compiles kernels: it prints the file of each one that is done."""

from __future__ import annotations

import os
import sys

from optpart.kernels import all as kernels
from optpart.kernels import store

#: Processes that compile behind a run leave the processors to it.
_NICE = 19


def main() -> None:
    """Compile the kernels of the modules that are named, or all, in one process after another."""
    if sys.argv[1:] == ["--all"]:
        os.nice(_NICE)
        with store.alone("compiling") as alone:
            if alone:
                kernels.make(workers=1)
        return
    for module in sys.argv[1:]:
        for kernel in kernels.of(module):
            kernel.dispatcher  # noqa: B018, which compiles it
            print(kernel.kept_as, flush=True)  # noqa: T201
