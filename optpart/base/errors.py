"""The one tree of errors that optpart raises on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable

from optpart.base.escaping import fitted, visible

#: Maximal length of an error message, leaving room for ``optpart: `` before it.
_MOST = 290

_PARAMETER = re.compile(r"`([a-z_]+)`")


class OptpartError(Exception):
    """Base class of every error that a user can cause or should know about."""


class InputError(OptpartError):
    """The input is wrong.

    Parameters
    ----------
    place : str
        Where in the input, for instance ``vertices[3].ops``; empty for the whole of it.
    problem : str
        What is wrong.
    remedy : str
        What would be right.
    file : str, optional
        The file; readers add it with :meth:`within`.
    """

    def __init__(self, place: str, problem: str, remedy: str, file: str | None = None) -> None:
        self.place = place
        self.problem = problem
        self.remedy = remedy
        self.file = file
        super().__init__(str(self))

    def within(self, file: str) -> InputError:
        """Return the same error with the file it was found in."""
        return type(self)(self.place, self.problem, self.remedy, self.file or file)

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, str | None]]:
        return type(self), (self.place, self.problem, self.remedy, self.file)

    def __str__(self) -> str:
        # Names come from files and may contain anything; the message must stay on one short line.
        where = [part for part in (self.file, self.place) if part]
        parts = [visible(" ".join(part.split())) for part in (*where, self.problem, self.remedy)]
        *before, remedy = fitted(parts, _MOST - 2 * len(parts))
        return f"{': '.join(before)}; {remedy}"


class FaultsOf:
    """Context manager that adds a file to every :class:`InputError` raised in its block.

    A class rather than a generator, so that type checkers know it swallows nothing.
    """

    def __init__(self, file: object) -> None:
        self.file = str(file)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, InputError):
            raise error.within(self.file) from None


class ArgumentError(InputError):
    """An argument of a function is wrong; ``place`` is the name of the parameter.

    Problem and remedy name other parameters in backquotes, so that the command line can name its
    options instead.
    """

    def spelled(self, option: Callable[[str], str]) -> InputError:
        """Return the same error with an option in place of each parameter."""

        def text(said: str) -> str:
            return _PARAMETER.sub(lambda match: option(match[1]), said)

        place = option(self.place) if self.place else ""
        return InputError(place, text(self.problem), text(self.remedy), self.file)


class PluginError(InputError):
    """Something that a user registered fails, or returns what it must not."""


class UnsupportedError(InputError):
    """A method was asked for something outside its scope."""


class MemoryLimitError(UnsupportedError):
    """A method would need more memory than is allowed or available."""


class FailureError(OptpartError):
    """A process failed, or the system refused a resource, without which there is no answer."""


class CertificateError(OptpartError):
    """A certificate does not prove what it claims."""


class ContradictionError(OptpartError):
    """Two computations that must agree do not: one of them is wrong, and neither may be trusted."""
