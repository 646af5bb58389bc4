"""Base models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from optpart.applications.ordering.models.alexnet import alexnet
from optpart.applications.ordering.models.inception_v2 import inception_v2
from optpart.applications.ordering.models.inception_v3 import inception_v3
from optpart.applications.ordering.models.operations import BaseModel, base_model_of
from optpart.applications.ordering.models.resnet import resnet50
from optpart.applications.ordering.models.toy import par_32, seq_32
from optpart.applications.training.models.vgg import vgg16
from optpart.base.choices import choice
from optpart.base.errors import InputError

MODELS: Mapping[str, Callable[[], BaseModel]] = MappingProxyType(
    {
        "alexnet": alexnet,
        "vgg16": lambda: base_model_of(vgg16()),
        "inception-v2": inception_v2,
        "inception-v3": inception_v3,
        "inception-v3-aux": partial(inception_v3, auxiliary=True),
        "resnet-50": resnet50,
        "par-32": par_32,
        "seq-32": seq_32,
    }
)


def base_model(name: str) -> BaseModel:
    """Return a base model by name; raise :class:`InputError` that lists all if there is none."""
    if name not in MODELS:
        raise InputError("model", f"no model {name!r}", choice(name, MODELS))
    return MODELS[name]()
