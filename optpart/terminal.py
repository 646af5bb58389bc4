"""The one way to standard output and standard error.

A *line* may hold names from files and is made visible as a whole; a *document* is JSON or CSV. A
standard output that takes no more ends the program, with its own error; standard error never does.
"""

from __future__ import annotations

import io
import os
import sys

from optpart.errors import OptpartError
from optpart.escaping import shortened, visible, visible_lines

#: Characters of an error line.
_MOST = 300


class OutputError(OptpartError):
    """Standard output is closed, or takes no more."""


class ReaderGoneError(OptpartError):
    """Whoever read standard output has seen enough."""


def say(line: str) -> None:
    """Print one line, whatever names it holds."""
    print(visible(line))  # noqa: T201


def note(line: str) -> None:
    """Print one line to standard error, whatever names it holds."""
    print(visible(line), file=sys.stderr)  # noqa: T201


def complain(fault: object) -> None:
    """Print a fault to standard error, on one line of bounded length."""
    note(shortened(visible(f"optpart: {fault}"), _MOST))


def put(document: str) -> None:
    """Write JSON or CSV: as it is to files and pipes, made visible on a terminal."""
    sys.stdout.write(visible_lines(document) if sys.stdout.isatty() else document)


def prepare() -> None:
    """Make the standard streams fit to print on.

    Raises
    ------
    OutputError
        If standard output is closed.
    """
    closed = sys.stdout is None
    _occupy_standard_descriptors()
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Lenient(2, "w", closefd=False), line_buffering=True)
    if closed:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (as long as the process)
        raise OutputError("standard output: closed; redirect it to a file or to /dev/null")
    # Pytest and others put streams of their own in their place.
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Strict(1, "w", closefd=False), line_buffering=os.isatty(1))


def abandon() -> None:
    """Let what is still buffered for standard output go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _occupy_standard_descriptors() -> None:
    """Open what is closed, or the next file to be opened would receive what is printed there."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free


def _text(raw: io.FileIO, *, line_buffering: bool) -> io.TextIOWrapper:
    # Names in files may be in any script; a stream that cannot show one gets an escape for it.
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(sys.__stdout__ or sys.__stderr__, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=line_buffering,
    )


class _Strict(io.FileIO):
    """Turns a failed write into an error that nothing between here and the top takes for its own.

    Click, for one, ends the program at a broken pipe, with an exit code of its choice.
    """

    def write(self, content: object) -> int:
        try:
            return super().write(content)  # type: ignore[arg-type]
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            raise OutputError(
                f"standard output: cannot be written ({error.strerror}); redirect it elsewhere"
            ) from None


class _Lenient(io.FileIO):
    """Drops what cannot be written: remarks are not worth a result."""

    def write(self, content: object) -> int:
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError:
            return len(content)  # type: ignore[arg-type]
