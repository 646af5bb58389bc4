"""Memory statistics of ONNX Runtime (``session.collect_node_memory_stats_to_file``).

A CSV with a row per node, all sizes in bytes and the largest of all runs::

    #name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations
    conv1_6622131507974324316,3072,448,4096,0

``name`` is that of the node, or its kind if it has none, and a hash of the names of its inputs and
outputs. Inputs and initializers count at one of their readers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.tables import read_rows
from optpart.problem.rational import shown

COLUMNS = (
    "#name",
    "input_sizes",
    "initializers_sizes",
    "total_dynamic_sizes",
    "total_temp_allocations",
)
_MOST = 2**63 - 1


@dataclass(frozen=True)
class NodeMemory:
    """The memory of one node, in bytes.

    Attributes
    ----------
    name : str
        Of the node, or its kind if it has none.
    inputs, initializers, dynamic, temporary : int
        Sizes of inputs, of weights, of outputs allocated while it runs, and all that it allocates
        for itself while it runs, added up.
    """

    name: str
    inputs: int
    initializers: int
    dynamic: int
    temporary: int


def read(path: str | Path) -> list[NodeMemory]:
    """Read a table; every fault is an :class:`InputError` with file and line."""
    with FaultsOf(path):
        found = []
        seen = set()
        for place, row in read_rows(path, COLUMNS):
            label = row[COLUMNS[0]]
            name, _, hash_ = label.rpartition("_")
            if not name or not (hash_.isascii() and hash_.isdecimal()):
                raise InputError(place, f"{shown(label)} has no hash", "write NAME_HASH")
            if label in seen:
                raise InputError(place, f"{shown(label)} for the second time", "give one row each")
            seen.add(label)
            sizes = [_size(row[column], f"{place}, {column}") for column in COLUMNS[1:]]
            found.append(NodeMemory(name, *sizes))
        return found


def _size(field: str, place: str) -> int:
    if not (field.isascii() and field.isdecimal() and len(field) <= 19 and int(field) <= _MOST):
        raise InputError(place, f"{shown(field)} is no size", "give whole bytes")
    return int(field)
