"""What a generator says of a parameter, for the command line and for readers alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """Annotation of a parameter that ``optpart generate`` offers.

    Attributes
    ----------
    least, most : float, optional
        The range of a number, both ends included.
    help : str
        One line of help; empty where the name says it all.
    """

    least: float | None = None
    most: float | None = None
    help: str = ""
