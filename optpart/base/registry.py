"""The tables of parts: strategies, methods, formats, generators and all else that has a name.

A part of the package is a row of its table; that of another package is a row that an entry point
of the table's group leads to. Rows that are listed at the start of a command name the location of
what they stand for, so that listing loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cached_property
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


class Registry(MutableMapping[str, Row]):
    """The parts of one kind by name, in the order in which they are listed.

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
        self._types = of

    def __getitem__(self, name: str) -> Row:
        if name in self.rows:
            return self.rows[name]
        return self._plugged_in(self._points[name])

    def __setitem__(self, name: str, row: Row) -> None:
        self.rows[name] = row

    def __delitem__(self, name: str) -> None:
        del self.rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.rows, *self._points])

    def __len__(self) -> int:
        return len(self.rows) + len(self._points)

    def __contains__(self, name: object) -> bool:
        return name in self.rows or name in self._points

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """The entry points of other packages; no name of this package is taken by one."""
        points = entry_points(group=self.group) if self.group else ()
        return {point.name: point for point in points if point.name not in self.rows}

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
