"""Expert placement: by rules on vertex names, or one layer per device ([B] §5.2.2).

Rules are a CSV file::

    pattern,device
    encoder/layer_0/*,gpu0
    */layer_1/*,gpu1
    "loss[0-9],*",cpu

A pattern must match the whole name of a vertex: ``*`` stands for anything, ``?`` for one character,
``[0-9]`` for one of a range; case matters. The first pattern that matches decides. With ``*`` as
the last pattern, every vertex has a rule.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.tables import read_rows
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.ranks import devices_by_speed
from optpart.strategies.partition.unit_graph import by_first_vertex, place_preferred, unit_graph

_COLUMNS = ("pattern", "device")
_LAYER = re.compile(r"(?:^|/)layer_([0-9]{1,9})(?:/|$)")
_NO_RULE = -1


def expert(
    instance: Instance, rng: np.random.Generator, *, rules: str | Path | None = None
) -> Partition:
    """Place by the rules of a file, or by layers if there is none.

    Units are placed in topological order of their first vertex. A unit without a rule goes to the
    device that already holds most of its inputs, or to the first device if none holds any. A unit
    that cannot run on its device goes to the next feasible one. Devices are ordered as in the
    instance or, without a file, by falling speed.

    Parameters
    ----------
    rules : str or Path, optional
        A CSV file, see :mod:`optpart.strategies.partition.expert`. Members of a colocation group
        follow the first rule of the file that matches any of them. Without a file, layer ``N``
        (every vertex with a part ``layer_N`` in its name, such as
        ``encoder/layer_1/step_3/MatMul``) goes to device ``N mod k``: one layer per device, as [B]
        ch. 2 describes experts' placements. A group follows its lowest layer.

    Raises
    ------
    InputError
        If the file cannot be read or names a device that does not exist.
    """
    if rules is None:
        rule, devices = layers(instance), devices_by_speed(instance)
    else:
        rule, devices = _read(instance, rules), np.arange(instance.devices, dtype=np.int32)
    units = by_first_vertex(instance)
    state = place_preferred(instance, unit_graph(instance), units, rule, devices)
    return partition_of(instance, state)


def layers(instance: Instance) -> NDArray[np.int64]:
    """Return, per unit, its layer modulo the number of devices; −1 if it has none."""
    found = (_LAYER.search(name) for name in instance.graph.names)
    layer = [_NO_RULE if match is None else int(match[1]) for match in found]
    lowest = _lowest(instance, layer)
    return np.where(lowest < 0, _NO_RULE, lowest % instance.devices)


def _read(instance: Instance, path: str | Path) -> NDArray[np.int64]:
    """Return, per unit, the device of its rule; −1 if none matches."""
    index = instance.cluster.index
    patterns, devices = [], []
    with FaultsOf(path):
        for place, row in read_rows(path, _COLUMNS):
            if row["device"] not in index:
                raise InputError(
                    f"{place}, device",
                    f"no device {row['device']!r}",
                    f"name a device of the instance, such as {instance.cluster.names[0]}",
                )
            patterns.append(re.compile(fnmatch.translate(row["pattern"])))
            devices.append(index[row["device"]])
    first = [
        next((i for i, pattern in enumerate(patterns) if pattern.match(name)), _NO_RULE)
        for name in instance.graph.names
    ]
    # The last entry is that of _NO_RULE.
    return np.array([*devices, _NO_RULE], dtype=np.int64)[_lowest(instance, first)]


def _lowest(instance: Instance, value: list[int]) -> NDArray[np.int64]:
    """Return the least value among the members of each unit that have one; −1 if none has."""
    none = np.iinfo(np.int64).max
    values = np.array(value, dtype=np.int64)
    lowest = np.full(len(instance.units), none)
    np.minimum.at(lowest, instance.unit_of, np.where(values < 0, none, values))
    return np.where(lowest == none, _NO_RULE, lowest)
