"""Plans as a ``device_map`` of transformers and accelerate.

The rules are accelerate's (``check_device_map``, ``dispatch_model``): the modules of a map cover
every tensor, tensors that modules share are on one device, and a block is never split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from optpart.base.errors import InputError
from optpart.base.files import Kind, of_document
from optpart.base.languages import to_json
from optpart.exporters.chain import chain_of
from optpart.exporters.llm import modules_of
from optpart.exporters.plan import Plan, Text, named
from optpart.interop.formats import hugging_face
from optpart.interop.formats.llm_parts import EMBEDDING, HEAD

_DEVICE = r"\d+|cpu|disk|mps|(cuda|xpu|npu|mps|hpu)(:\d+)?"


def _are_devices(document: dict[str, object]) -> bool:
    devices = (re.fullmatch(_DEVICE, str(device)) for device in document.values())
    return bool(document) and all(devices)


KIND = Kind("a device_map", of_document(_are_devices))

_OF_MODEL = "give the model that the plan's instance was made of"


def device_map(
    plan: Plan,
    *,
    names: Mapping[str, str] | None = None,
    architecture: str | None = None,
    model: str | Path | None = None,
) -> Text:
    """Return a ``device_map``, as JSON.

    Parameters
    ----------
    names : mapping from str to str
        What PyTorch calls the devices: ``0``, ``cuda:0``, ``cpu``.
    architecture : str, optional
        One of :data:`~optpart.exporters.llm.ARCHITECTURES`, for vertices that are not called as
        modules are, where ``model`` is not given.
    model : path, optional
        The folder of the model, which tells its modules.
    """
    known = named(plan, names or {}, valid=_DEVICE, example="cuda:0", processor="cpu")
    remarks = ["The order of execution is not part of a device_map."]
    if model is None:
        chain = chain_of(plan)
        chain.whole_blocks("accelerate", "import the model with whole blocks as vertices")
        placed = {module: link.device for module, link in modules_of(chain, plan, architecture)}
        first, last = chain.devices_of(EMBEDDING), chain.devices_of(HEAD)
        if first and last and first != last:
            remarks.append(
                "If embedding and head share their weights, accelerate needs both on one device."
            )
    else:
        if architecture is not None:
            raise InputError("architecture", "means nothing beside a model", "leave it out")
        modules = hugging_face.modules(model)
        placed = _placed(plan, modules)
        if not modules.confirmed:
            remarks.append(
                "Modules are called as in the model's files; transformers, which may call them "
                "otherwise, is not installed."
            )
    found = {module: known[device] for module, device in placed.items()}
    others = [name for name in known.values() if name not in ("cpu", "disk")]
    remarks += [
        f"accelerate keeps the weights of modules on {stored} there, but computes them on "
        f"{(others or ['cpu'])[0]}, to which it copies them in every call."
        for stored in ("cpu", "disk")
        if stored in known.values() and (others or stored == "disk")
    ]
    document = {
        module: int(name) if name.isdecimal() else name for module, name in found.items()
    }  # fmt: skip
    return Text(to_json(document, indent=2) + "\n", remarks)


def _placed(plan: Plan, modules: hugging_face.Modules) -> dict[str, str]:
    """Return the device of every module; a plan that accelerate would not run is refused."""
    halves: dict[str, dict[str, None]] = {}
    for name, device in plan.device.items():
        whole = re.fullmatch(r"(.*block\.\d+)\..+", name)
        halves.setdefault(whole[1] if whole else name, {})[device] = None
    wanted = dict.fromkeys(modules.vertices.values())
    for name, devices in halves.items():
        if name not in wanted:
            raise InputError(f"vertex {name!r}", "is no part of the model", _OF_MODEL)
        if len(devices) > 1:
            problem = f"is split between {' and '.join(devices)}, and accelerate keeps it whole"
            raise InputError(name, problem, "import the model with whole blocks as vertices")
    for name in wanted:
        if name not in halves:
            raise InputError(f"part {name!r} of the model", "is not in the plan", _OF_MODEL)
    placed = {module: next(iter(halves[name])) for module, name in modules.vertices.items()}
    for one, other in modules.shared:
        if one in placed and other in placed and placed[one] != placed[other]:
            problem = (
                f"is on {placed[one]} and {other!r} on {placed[other]}, but they share a tensor, "
                "which accelerate needs on one device"
            )
            raise InputError(f"module {one!r}", problem, "import the model with --tied share")
    return placed
