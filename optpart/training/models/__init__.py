"""Layer-built models of [G], and the table of them; a new one is a module here and a row."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from optpart.devices import library
from optpart.errors import InputError
from optpart.training.layers import Network
from optpart.training.models.vgg19 import vgg19

#: Builders by name.
MODELS: MappingProxyType[str, Callable[[], Network]] = MappingProxyType(
    {
        "vgg19": vgg19,
    }
)


def network(name: str) -> Network:
    """Build a model by name.

    Raises
    ------
    InputError
        If there is no such model; the message lists those that there are.
    """
    if name not in MODELS:
        raise InputError("model", f"no model {name!r}", library.nearest(name, MODELS))
    return MODELS[name]()
