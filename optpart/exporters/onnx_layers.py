"""An ONNX model whose nodes say where they run, for one session of ONNX Runtime.

ONNX Runtime reads a node's metadata ``layer_ann``, and the session option
``session.layer_assignment_settings`` says which annotation goes to which device. One session holds
one instance of an execution provider, so one GPU and the processor, but not two GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, write_bytes
from optpart.exporters.plan import Plan, named
from optpart.interop.formats.onnx import read_nodes
from optpart.interop.formats.onnx_bodies import stored_tensors

KEY = "layer_ann"


#: Key and value of an annotation, as ONNX writes them.
_ANNOTATION = re.compile(rb"(?s)\n\x09layer_ann\x12.device_\d")


def _is_annotated(stream: BinaryIO) -> bool:
    with mmap(stream.fileno(), 0, access=ACCESS_READ) as content:
        return content[:1] == b"\x08" and _ANNOTATION.search(content) is not None


KIND = Kind("an ONNX model with devices of optpart's", _is_annotated)

_VALID = r"cpu|cuda|dml|npu|fpga|gpu(:(\d+|nvidia|amd|intel))?"


def write(
    plan: Plan,
    model: str | Path,
    output: str | Path,
    *,
    names: Mapping[str, str] | None = None,
    shapes: Mapping[str, int] | None = None,
) -> list[str]:
    """Write a model with the device of every vertex as its annotation.

    Parameters
    ----------
    model : path
        The ``.onnx`` file that the instance was made of.
    output : path
        In the folder of the model, if that keeps weights in files of their own.
    names : mapping from str to str
        What ONNX Runtime calls the devices: ``cpu``, ``cuda``, ``gpu:1``.
    shapes : mapping from str to int, optional
        Sizes that were given when the model was read.

    Returns
    -------
    list of str
        The session option, and what is not kept of the plan.

    Raises
    ------
    InputError
        If the model is not that of the plan, or the plan uses several accelerators.
    """
    from onnx.external_data_helper import uses_external_data

    known = named(plan, names or {}, valid=_VALID, example="cuda", processor="cpu")
    accelerators = [device for device in plan.devices if known[device] != "cpu"]
    if len(accelerators) > 1:
        problem = "are several accelerators, and a session of ONNX Runtime uses one"
        remedy = "use --to onnx, which makes a model per device"
        raise InputError(" and ".join(accelerators), problem, remedy)
    nodes = read_nodes(model, shapes=shapes)
    with FaultsOf(model):
        remedy = "give the model that the instance was made of, with the same --shape"
        plan.check_names([name for name in nodes.vertices if name is not None], "node", remedy)
        stored = any(uses_external_data(each) for each in stored_tensors(nodes.model.graph))
        if stored and Path(output).resolve().parent != Path(model).resolve().parent:
            problem = "keeps weights in files of their own"
            raise InputError("", problem, "write into its folder, so that they are found")
    annotation = {device: f"device_{d}" for d, device in enumerate(plan.devices)}
    for node, name in zip(nodes.model.graph.node, nodes.vertices, strict=True):
        if name is None:
            continue
        entry = next((each for each in node.metadata_props if each.key == KEY), None)
        entry = node.metadata_props.add() if entry is None else entry
        entry.key, entry.value = KEY, annotation[plan.device[name]]
    write_bytes(output, nodes.model.SerializeToString(), KIND)
    rules = "; ".join(f"{known[each]}(={annotation[each]})" for each in plan.devices)
    return [
        f'session.layer_assignment_settings = "{rules}"',
        "ONNX Runtime orders operations by itself, and moves one elsewhere that its execution "
        "provider lacks.",
    ]
