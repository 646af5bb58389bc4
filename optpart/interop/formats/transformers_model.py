"""The tensors of a model that transformers makes of its ``config.json``, without their numbers.

Names and shapes are those of the modules in memory, which a ``device_map`` names; files of older
releases may have others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from optpart.base.errors import InputError
from optpart.interop.formats.llm import Weight

#: In the order in which they are tried for a configuration that names no class.
_AUTOMATIC = (
    "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq",
    "AutoModelForMaskedLM", "AutoModelForImageClassification", "AutoModel",
)  # fmt: skip

_INSTALL = "pip install transformers torch, or put the model's safetensors into the folder"


def is_there() -> bool:
    """Return whether transformers and PyTorch are installed."""
    return find_spec("transformers") is not None and find_spec("torch") is not None


def tensors(folder: Path) -> dict[str, Weight]:
    """Return the tensors; one that two modules share is there once.

    Raises
    ------
    InputError
        If transformers is not installed, or knows no such model.
    """
    model = _model(folder)
    shared = dict(getattr(model, "all_tied_weights_keys", None) or {})
    kept = model.state_dict()
    return {
        name: Weight("", None, tuple(each.shape) or (1,), str(each.dtype).removeprefix("torch."))
        for name, each in kept.items()
        if name not in shared and math.prod(each.shape) and each.dtype.is_floating_point
    }


def names(folder: Path) -> Mapping[str, str]:
    """Return all tensors of all modules, with the one that each shares, or else itself."""
    model = _model(folder)
    shared = dict(getattr(model, "all_tied_weights_keys", None) or {})
    return {name: shared.get(name, name) for name in model.state_dict()}


def _model(folder: Path) -> Any:
    if not is_there():
        problem = "holds config.json alone, and transformers, which knows the rest, is missing"
        raise InputError("", problem, _INSTALL)
    return _made(folder, (folder / "config.json").read_bytes())


@lru_cache(maxsize=1)  # whoever reads a model and exports its plan needs it twice
def _made(folder: Path, _: bytes) -> Any:
    """Make the model of a folder, whose configuration has this content."""
    import torch
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        classes = [*(config.architectures or ()), *_AUTOMATIC]
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(config, "dtype", None) or before)
        try:
            with torch.device("meta"):
                for name in classes:
                    found = getattr(transformers, name, None)
                    if found is None:
                        continue
                    if not name.startswith("Auto"):
                        return found(config)
                    if type(config) in found._model_mapping:
                        return found.from_config(config)
        finally:
            torch.set_default_dtype(before)
    except Exception as error:  # what transformers makes of a faulty configuration is anything
        problem = f"transformers cannot make this model ({str(error).splitlines()[0]})"
        raise InputError("config.json", problem, "give the config.json of a model") from None
    raise InputError("config.json", "no model that transformers knows", _INSTALL)
