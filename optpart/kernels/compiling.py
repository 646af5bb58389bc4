"""The process that compiles kernels: it prints the name of each one that is done."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from optpart.kernels import all as kernels
from optpart.kernels import store
from optpart.kernels.compiled import Kernel

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
    for name in sys.argv[1:]:
        for value in vars(import_module(name)).values():
            if isinstance(value, Kernel) and value.__module__ == name:
                value.dispatcher  # noqa: B018, which compiles it
                print(f"{name}.{value.py_func.__name__}", flush=True)  # noqa: T201
