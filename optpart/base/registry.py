"""The tables of parts: strategies, methods, formats, generators and all else that has a name.

A part of the package is a row of its table; that of another package is a row that an entry point
of the table's group leads to. Rows that are listed at the start of a command name the location of
what they stand for, so that listing loads nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, PluginError

Row = TypeVar("Row")


def load(location: str) -> Any:
    """Return the object at a location ``module:name``."""
    module, _, name = location.partition(":")
    return getattr(import_module(module), name)


def points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    return _points(group, tuple(sys.path)) if group else {}


@cache
def _points(group: str, _path: tuple[str, ...]) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


class Registry(MutableMapping[str, Row]):
    """The parts of one kind by name, in the order in which they are listed.

    What is added while the program runs comes after the rows of the package, and the rows of other
    packages come last; their names take none of those before.

    Parameters
    ----------
    place : str
        The parameter that names a part, for messages.
    rows : mapping from str
        Those of the package.
    of : type or tuple of types
        What a row of another package must be.
    group : str
        The group of entry points through which other packages add rows; empty for none. Bounds have
        none: what a proof rests on is part of this package.

    Attributes
    ----------
    rows, added : dict
        The rows of the package, and those that were added since.
    """

    def __init__(
        self,
        place: str,
        rows: Mapping[str, Row],
        of: type | tuple[type, ...],
        *,
        group: str = "",
    ) -> None:
        self.group = group
        self.place = place
        self.rows = dict(rows)
        self.added: dict[str, Row] = {}
        self._types = of

    def __getitem__(self, name: str) -> Row:
        for known in (self.rows, self.added):
            if name in known:
                return known[name]
        return self._plugged_in(points(self.group)[name])

    def __setitem__(self, name: str, row: Row) -> None:
        self.added[name] = row

    def __delitem__(self, name: str) -> None:
        del self.added[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.rows, *self.added, *points(self.group)]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.rows or name in self.added or name in points(self.group)

    def _plugged_in(self, point: EntryPoint) -> Row:
        try:
            found = point.load()
        except Exception as error:  # loading a plug-in may raise anything
            problem = f"cannot be loaded ({type(error).__name__}: {error})"
            raise PluginError(point.name, problem, f"fix or remove {point.value}") from error
        if not isinstance(found, self._types):
            types = self._types if isinstance(self._types, tuple) else (self._types,)
            names = " or ".join(each.__name__ for each in types)
            raise PluginError(point.name, f"is no {names}", f"let {point.value} be one")
        return cast(Row, found)

    def find(self, name: str) -> Row:
        """Return the part of a name.

        Raises
        ------
        ArgumentError
            If there is none; the message lists those that there are.
        """
        if name not in self:
            raise ArgumentError(self.place, f"unknown {name!r}", choice(name, self))
        return self[name]
