"""Certificates of optimality and their checkers; the package is callable and writes one."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    # The package and the function ``optpart.certify`` share a name, and importing any module of the
    # package replaces the function by the package. So the package is callable and serves as both.
    # The function that it calls is in a higher layer; it is therefore looked up at call time.
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Write a certificate; see :func:`optpart.api.certify`."""
        return import_module("optpart.api").certify(*arguments, **options)


sys.modules[__name__].__class__ = _Package
