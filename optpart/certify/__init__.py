"""Certificates of optimality and their judges; called, the package writes a certificate."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    # The package and the function ``optpart.certify`` share a name, and importing any module of the
    # package puts the package in that name's place. So the package can be called, and stands for
    # both. What it calls lies layers above and is therefore looked up by name, when it is called.
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Write a certificate; see :func:`optpart.api.certify`."""
        return import_module("optpart.api").certify(*arguments, **options)


sys.modules[__name__].__class__ = _Package
