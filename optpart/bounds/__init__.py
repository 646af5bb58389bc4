"""Lower bounds of the makespan, one per module; called, the package proves them all."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    # The package and the function ``optpart.bounds`` share a name, and importing any module of the
    # package puts the package in that name's place. So the package can be called, and stands for
    # both. What it calls lies layers above and is therefore looked up by name, when it is called.
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Prove lower bounds of the makespan; see :func:`optpart.api.bounds`."""
        return import_module("optpart.api").bounds(*arguments, **options)


sys.modules[__name__].__class__ = _Package
