"""Layer-built models of [G], and the table of them; a new one is a module here and a row.

NASNet has two variants: [G] does not say which it trains, and the large one hardly fits its testbed
with 96 images.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from optpart.applications.training.layers import Network
from optpart.applications.training.models.bert_large import bert_large
from optpart.applications.training.models.inception_v3 import inception_v3
from optpart.applications.training.models.mobilenet_v2 import mobilenet_v2
from optpart.applications.training.models.nasnet import nasnet, nasnet_mobile
from optpart.applications.training.models.resnet200 import resnet200
from optpart.applications.training.models.transformer import transformer
from optpart.applications.training.models.vgg import vgg19
from optpart.applications.training.models.xlnet_large import xlnet_large
from optpart.base.choices import choice
from optpart.base.errors import InputError

#: Builders by name.
MODELS: MappingProxyType[str, Callable[[], Network]] = MappingProxyType(
    {
        "vgg19": vgg19,
        "resnet200": resnet200,
        "inception_v3": inception_v3,
        "mobilenet_v2": mobilenet_v2,
        "nasnet": nasnet,
        "nasnet_mobile": nasnet_mobile,
        "transformer": transformer,
        "bert_large": bert_large,
        "xlnet_large": xlnet_large,
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
        raise InputError("model", f"no model {name!r}", choice(name, MODELS))
    return MODELS[name]()
