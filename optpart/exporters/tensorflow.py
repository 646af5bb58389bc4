"""A TensorFlow graph whose nodes say where they run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, write_bytes
from optpart.exporters.plan import Plan, named
from optpart.interop.formats.tensorflow import is_placed, read_message

_VALID = r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?(/device:\w+:\d+|/(?i:cpu|gpu|tpu):\d+)"

KIND = Kind("a TensorFlow graph in which every node has a device", is_placed)


def write(
    plan: Plan, model: str | Path, output: str | Path, *, names: Mapping[str, str] | None = None
) -> list[str]:
    """Write a binary ``GraphDef`` with the device of every node.

    Parameters
    ----------
    model : path
        The ``.pb`` file that the instance was made of.
    names : mapping from str to str
        What TensorFlow calls the devices: ``/GPU:0``, ``/job:worker/task:1/device:GPU:0``.

    Returns
    -------
    list of str
        What the graph does not keep of the plan.

    Raises
    ------
    InputError
        If the file is text, or not the graph of the plan.
    """
    known = named(plan, names or {}, valid=_VALID, example="/GPU:0", processor="/CPU:0")
    if Path(model).suffix.lower() == ".pbtxt":
        remedy = "write it binary with tf.io.write_graph(..., as_text=False)"
        raise InputError("", "is text, of which only a part could be written", remedy, str(model))
    if Path(output).suffix.lower() != ".pb":
        raise InputError("", "does not end in .pb", "name a .pb file", str(output))
    graph = read_message(model)
    with FaultsOf(model):
        remedy = "give the graph that the instance was made of"
        plan.check_names([node.name for node in graph.node], "node", remedy)
    for node in graph.node:
        node.device = known[plan.device[node.name]]
    # Fields that the schema of the reader does not declare are written as they were read.
    write_bytes(output, graph.SerializeToString(deterministic=True), KIND)
    return [
        "TensorFlow executes whatever is ready: the order of the plan is not kept.",
        "Devices that nodes named before are overwritten.",
    ]
