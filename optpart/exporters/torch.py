"""Pipelines of PyTorch (``torch.distributed.pipelining``): where a module is split into stages.

A pipeline runs a module in the order of its program and is split in front of calls of modules, by
their paths (``SplitPoint.BEGINNING``). So every device computes one run of the program, which
begins where a module does that is called only once. Of a plan for a language model, whole blocks
are the modules. Of any other, the exported program tells them: the file that the instance was made
of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, begins
from optpart.base.languages import to_comment, to_python
from optpart.exporters.chain import chain_of
from optpart.exporters.llm import modules_of
from optpart.exporters.plan import NO_ORDER, Plan, Text
from optpart.interop.formats import pytorch

SPLIT = Kind(
    "a split_spec of PyTorch",
    begins(
        rb"from torch\.distributed\.pipelining import SplitPoint\n(?:\n|#.*\n)*"
        rb"split_spec = \{\n(?:    .*: SplitPoint\.BEGINNING,\n)*\}\n\Z"
    ),
)

_PIPELINING = "torch.distributed.pipelining"
_OTHER = "import the model with --granularity module, and solve with --contiguous"


def torch_split(
    plan: Plan,
    *,
    architecture: str | None = None,
    model: str | Path | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Text:
    """Return the ``split_spec`` of a pipeline of PyTorch, as Python.

    Parameters
    ----------
    architecture : str, optional
        One of :data:`~optpart.exporters.llm.ARCHITECTURES`, for a language model whose vertices are
        not called as modules are.
    model : path, optional
        The exported program (``.pt2``) that the instance was made of; without it, the plan must be
        for a language model.
    shapes : mapping from str to int, optional
        Sizes that were given when it was read.

    Raises
    ------
    InputError
        If the plan is no pipeline, or a stage begins where no module does.
    """
    if model is None:
        order, first = _of_chain(plan, architecture)
    else:
        if architecture is not None:
            problem = "the model tells what its modules are called"
            raise InputError("architecture", problem, "leave it out")
        with FaultsOf(model):
            found = stages_of(plan, pytorch.beginnings(model, shapes=shapes))
        order, first = [device for device, _ in found], [module for _, module in found[1:]]
    return Text(
        split_spec(order, first),
        [
            NO_ORDER.format("PyTorch"),
            f"Ranks 0 and after must be {', '.join(order)}, in this order.",
        ],
    )


def _of_chain(plan: Plan, architecture: str | None) -> tuple[list[str], list[str]]:
    """Return devices of a language model's stages, and first modules of all but the first."""
    try:
        chain = chain_of(plan)
    except InputError as error:
        remedy = "give a plan for a language model, or the .pt2 of another model with --model"
        raise InputError(error.place, error.problem, remedy) from None
    remedy = "use --to device-map, or solve again with fewer devices"
    stages = chain.contiguous(_PIPELINING, remedy)
    of_vertex: dict[str, str] = {}
    for module, link in modules_of(chain, plan, architecture):
        of_vertex.setdefault(link.vertex, module)
    first = [of_vertex[links[0].vertex] for _, links in stages[1:]]
    return [device for device, _ in stages], first


def stages_of(plan: Plan, beginnings: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the stages of an exported program: the device and the first module of each.

    Parameters
    ----------
    beginnings : mapping from str to sequence of str
        The modules that begin at each vertex, in the order of the program
        (:func:`optpart.interop.formats.pytorch.beginnings`). The first stage begins with the
        program, and its module is the empty text.

    Raises
    ------
    InputError
        If the plan has other vertices, a device computes more than one run of the program, or a
        run begins where no module does.
    """
    plan.check_names(list(beginnings), "vertex", "give the file that the instance was made of")
    stages: list[tuple[str, str]] = []
    for device, run in groupby(beginnings, key=plan.device.__getitem__):
        first = next(run)
        place = f"vertex {first!r}"
        if any(device == other for other, _ in stages):
            problem = f"is on {device!r} again, after other devices took over from it"
            why = f"{_PIPELINING} gives each device one run of the program"
            raise InputError(place, f"{problem}; {why}", _OTHER)
        if stages and not beginnings[first]:
            problem = f"is the first on {device!r}, and begins no module that is called once"
            why = f"{_PIPELINING} splits where one begins"
            raise InputError(place, f"{problem}; {why}", _OTHER)
        stages.append((device, beginnings[first][0] if stages else ""))
    return stages


def split_spec(devices: Sequence[str], first: Sequence[str]) -> str:
    """Return the ``split_spec`` of a pipeline of PyTorch, as Python.

    Parameters
    ----------
    devices : sequence of str
        One per stage.
    first : sequence of str
        The first module of every stage but the first.
    """
    single = len(devices) == 1
    which = "a single stage" if single else f"stages 0 to {len(devices) - 1}"
    lines = [
        "from torch.distributed.pipelining import SplitPoint",
        "",
        to_comment("#", f"{which}: {', '.join(devices)}"),
        "split_spec = {",
        *(f"    {to_python(module)}: SplitPoint.BEGINNING," for module in first),
        "}",
    ]
    return "\n".join(lines) + "\n"
