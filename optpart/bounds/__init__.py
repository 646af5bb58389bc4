"""Lower bounds of the makespan, one per module; calling the package proves them all."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    # The package and the function ``optpart.bounds`` share a name, and importing any module of the
    # package binds that name to the package. So the package is callable and serves as both. The
    # function lies in a higher layer and is therefore looked up by name when it is called.
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Prove lower bounds of the makespan; see :func:`optpart.api.bounds`."""
        return import_module("optpart.api").bounds(*arguments, **options)


sys.modules[__name__].__class__ = _Package
