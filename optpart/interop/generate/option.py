"""Annotations of the parameters of generators, for the command line and for readers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """Annotation of a parameter that ``optpart generate`` exposes.

    Attributes
    ----------
    least, most : float, optional
        The range of a number, including both ends.
    help : str
        One line of help; empty if the name is self-explanatory.
    """

    least: float | None = None
    most: float | None = None
    help: str = ""
