"""The rules by which transfers and memory count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from optpart.base.arguments import checked_names
from optpart.base.choices import Communication as Communication
from optpart.base.choices import Memory as Memory
from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.problem.rational import non_negative

Release = Literal["end", "start"]

#: What carries out one task at a time, or as many transfers as a port has channels: its kind, and
#: the devices at its ends.
Resource = tuple[str, int, int]


@checked_names
@dataclass(frozen=True)
class Model:
    """The rules by which transfers and memory count (design §2).

    Attributes
    ----------
    communication : {"delay", "sendrecv", "link", "port"}
    memory : {"none", "estimate", "edges", "refcount"}
    send_ops : Fraction
        Operations of a send vertex under ``sendrecv``.
    channels : int
        Transfers that one port carries at a time under ``port``.
    release : {"end", "start"}
        Under ``refcount``: a tensor is freed when its last consumer ends, or starts
        ([L] §3.1.6).
    """

    communication: Communication = "delay"
    memory: Memory = "none"
    send_ops: Fraction = Fraction(0)
    channels: int = 1
    release: Release = "end"

    def __post_init__(self) -> None:
        for key, kind in (
            ("communication", Communication),
            ("memory", Memory),
            ("release", Release),
        ):
            value = getattr(self, key)
            if value not in get_args(kind):
                raise InputError(
                    f"model.{key}",
                    f"unknown {value!r}",
                    choice(value, get_args(kind)),
                )
        object.__setattr__(self, "send_ops", non_negative(self.send_ops, "model.send_ops"))
        if (
            isinstance(self.channels, bool)
            or not isinstance(self.channels, int)
            or (self.channels < 1)
        ):
            raise InputError(
                "model.channels", f"cannot be {self.channels!r}", "give a whole number ≥ 1"
            )

    @property
    def timed_memory(self) -> bool:
        """True if what a device holds changes with time."""
        match self.memory:
            case "none" | "estimate":
                return False
            case "edges" | "refcount":
                return True

    @property
    def queues(self) -> bool:
        """True if crossings occupy something, and so may have to wait."""
        return self.communication != "delay"

    @property
    def sends(self) -> bool:
        """True if each crossing first runs a send on the device of its producer."""
        return self.communication == "sendrecv"

    @property
    def parallel(self) -> int:
        """How many crossings a resource other than a device carries at a time."""
        return self.channels if self.communication == "port" else 1

    def occupied(self, sender: int, target: int) -> tuple[Resource, ...]:
        """Return what a crossing occupies: under ``sendrecv`` while it is sent, else all the time.

        The verifier and the independent formulations state this for themselves.
        """
        match self.communication:
            case "delay":
                return ()
            case "sendrecv":
                return (("device", sender, sender),)
            case "link":
                return (("link", sender, target),)
            case "port":
                return ("send", sender, sender), ("receive", target, target)
