"""The state of a search in a file, from which a killed search resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optpart.base.errors import ArgumentError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import keys, parse_json, text, version
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.problem.rational import non_negative
from optpart.search.plan import Layout

FORMAT = "optpart-search/1"
KIND = Kind("a checkpoint of a search", of_format(FORMAT))

_KEYS = {
    "format", "instance_sha256", "seconds", "moves", "device", "order", "eager", "bound", "code",
}  # fmt: skip
#: A digest that earlier versions wrote; it proves nothing, since anybody can compute it.
_FORMER = {"bound_sha256"}


@dataclass(frozen=True)
class Checkpoint:
    """A snapshot of a search.

    Attributes
    ----------
    layout : Layout
    seconds : float
        Spent so far.
    moves : int
    bound : Fraction
        Lower bound of the makespan of every schedule, whatever decisions are given. Of a file that
        was read, it is a claim.
    code : str
        The fingerprint of the code that proved the bound; empty if the file does not say.
    """

    layout: Layout
    seconds: float
    moves: int
    bound: Fraction = Fraction(0)
    code: str = ""


def resumed(spent: float, seconds: float) -> str:
    """Say how much of a time limit earlier runs have spent, and how much is left."""
    left = max(0.0, seconds - spent)
    said = f"resumed after {spent:.1f} s, with {left:.1f} s left"
    return said if left else f"{said}: to go on, give a time limit above {spent:.1f} s"


def check_new(path: str | Path) -> None:
    """Refuse a file with content: a search that does not go on from it would overwrite it.

    Raises
    ------
    ArgumentError
    """
    with suppress(OSError):  # whoever writes it says what is wrong with it
        if os.stat(path).st_size > 0:
            raise ArgumentError(
                "checkpoint",
                f"{path} exists",
                "go on from it with `resume`, or name another file",
            )


def write(path: str | Path, instance: Instance, reached: Checkpoint) -> None:
    """Write a checkpoint, completely or not at all."""
    layout = reached.layout
    document = {
        "format": FORMAT,
        "instance_sha256": instance.sha256,
        "seconds": round(reached.seconds, 3),
        "moves": reached.moves,
        "device": layout.device.tolist(),
        "order": layout.order.tolist(),
        "eager": layout.eager.astype(int).tolist(),
        "bound": str(reached.bound),
        "code": reached.code,
    }
    write_text(path, json.dumps(document) + "\n", KIND)


class StateFile:
    """The checkpoint file of a search. A failure to write it never ends the search.

    Parameters
    ----------
    warn : callable, optional
        Called with the first of several consecutive faults.

    Attributes
    ----------
    code : str
        The fingerprint of the running code, which the search enters.
    fault : InputError or None
        Reason why the file does not contain the latest state, if it does not.
    """

    def __init__(self, path: str | Path, warn: Callable[[InputError], None] | None = None) -> None:
        self.path = Path(path)
        self.code = ""
        self.fault: InputError | None = None
        self._warn = warn

    def keep(self, instance: Instance, reached: Checkpoint) -> None:
        """Write a checkpoint, or record why it could not be written."""
        before, self.fault = self.fault, None
        try:
            write(self.path, instance, reached)
        except InputError as error:
            self.fault = error
            if before is None and self._warn is not None:
                self._warn(error)


def read(path: str | Path, instance: Instance) -> Checkpoint:
    """Read the checkpoint of an instance.

    Raises
    ------
    InputError
        If the file is not a checkpoint, or belongs to another instance.
    """
    with FaultsOf(path):
        return _checkpoint(parse_json(read_text(path)), instance)


def _checkpoint(document: Any, instance: Instance) -> Checkpoint:
    version(document, FORMAT)
    fields = keys(document, _KEYS | _FORMER, "")
    if fields.get("instance_sha256") != instance.sha256:
        raise InputError(
            "instance_sha256", "belongs to another instance", "use the instance it was written for"
        )
    n, k, t = instance.vertices, instance.devices, instance.graph.tensors
    device = _whole(fields.get("device"), "device", n, k)
    order = _whole(fields.get("order"), "order", n, n)
    eager = _whole(fields.get("eager"), "eager", t, 2)
    position = inverse(order)
    graph = instance.graph
    before = position[graph.edge_source] < position[graph.edge_target]
    if len(np.unique(order)) < n or not before.all():
        raise InputError("order", "is not an order of the graph", "use the file as it was written")
    seconds = non_negative(fields.get("seconds"), "seconds")
    moves = non_negative(fields.get("moves"), "moves")
    layout = Layout(device, order, eager.astype(np.bool_))
    bound = non_negative(fields.get("bound", 0), "bound")  # the first files had none
    code = text(fields.get("code", ""), "code")
    return Checkpoint(layout, float(seconds), int(moves), bound, code)


def _whole(value: Any, place: str, length: int, bound: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Read a list of integers below a bound."""
    if (
        not isinstance(value, list)
        or len(value) != length
        or not all(type(x) is int and 0 <= x < bound for x in value)
    ):
        raise InputError(
            place, f"must be {length} numbers below {bound}", "use the file as it was written"
        )
    return np.array(value, dtype=np.int32)
