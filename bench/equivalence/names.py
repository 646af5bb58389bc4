"""The modules of the few names that ``optpart`` does not export, old module first."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Logical name: the attribute, and the modules that may have it.
PLACES = {"method": ("get", ["optpart.methods", "optpart.methods.registry"])}


def find(name: str) -> Any:
    """Return the object of a logical name, wherever it is now."""
    attribute, modules = PLACES[name]
    for module in modules:
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
    raise LookupError(f"{name}: none of {', '.join(modules)} has {attribute!r}; add its new place")
