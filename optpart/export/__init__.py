"""Plans in the formats of runtimes, and instances in those of solvers; called, it exports."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    # The package and the function ``optpart.export`` share a name, and importing any module of the
    # package puts the package in that name's place. So the package can be called, and stands for
    # both. What it calls lies a layer above and is therefore looked up by name, when it is called.
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Hand a plan to a runtime; see :func:`optpart.api.export`."""
        return import_module("optpart.api").export(*arguments, **options)


sys.modules[__name__].__class__ = _Package
