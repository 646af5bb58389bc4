"""All writing to standard output and standard error.

A *line* may contain names from files and is escaped as a whole; a *document* is JSON or CSV. A
failed write to standard output ends the program with an error of its own; a failed write to
standard error is ignored.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import TextIO

from optpart.base.errors import OptpartError
from optpart.base.escaping import shortened, visible, visible_lines

#: Maximal length of an error line.
_MOST = 300


#: Signs in texts of optpart, of one column where a table or a line must keep its width.
_IN_ASCII = {
    "–": "-", "—": "-", "−": "-", "…": "~", "·": "*", "×": "x", "÷": "/", "±": "+-", "→": "->",
    "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "≺": "<", "“": '"', "”": '"', "‘": "'", "’": "'",
    "§": "sec.", "µ": "u", "α": "alpha", "β": "beta", "•": "*",
}  # fmt: skip

_HANDLER = "optpart.base.terminal"


class OutputError(OptpartError):
    """Standard output is closed or cannot be written."""


class ReaderGoneError(OptpartError):
    """The reader of standard output has closed the pipe."""


def say(line: str) -> None:
    """Print one line, escaping the names in it; a terminal gets it broken between words."""
    shown = visible(line)
    if sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns, 20)
        if len(shown) > width:
            # Words are never broken: no figure is cut, and a path stays whole.
            shown = textwrap.fill(
                shown, width, subsequent_indent="    ", break_on_hyphens=False,
                break_long_words=False,
            )  # fmt: skip
    print(shown)  # noqa: T201


def note(line: str) -> None:
    """Print one line to standard error, escaping the names in it; a rewritten line goes."""
    erase()
    print(visible(line), file=sys.stderr)  # noqa: T201


class _Notes(logging.Handler):
    """Prints what the library logs on standard error, faults as such."""

    def emit(self, record: logging.LogRecord) -> None:
        tell = complain if record.levelno >= logging.ERROR else note
        tell(record.getMessage())


class _Rewritten:
    """The line of a terminal that is written again and again.

    Attributes
    ----------
    stream : TextIO or None
        Standard error as it was then, which pytest and others substitute.
    columns : int
        Its length; 0 if there is none.
    """

    stream: TextIO | None = None
    columns = 0


def rewrite(text: str, columns: int, room: int) -> None:
    """Show text in place of the line shown before, on standard error, which is a terminal.

    Parameters
    ----------
    columns : int
        How many the text takes.
    room : int
        The most that a line may take by now.
    """
    # The line before may have been longer, but the terminal may be narrower by now.
    sys.stderr.write("\r" + text + " " * (min(_rewritten(), room) - columns))
    sys.stderr.flush()
    _Rewritten.stream, _Rewritten.columns = sys.stderr, columns


def erase() -> None:
    """Remove the rewritten line, if there is one, to make room for another."""
    if before := _rewritten():
        sys.stderr.write("\r" + " " * min(before, columns_of_errors() - 1) + "\r")
        sys.stderr.flush()
    _Rewritten.columns = 0


def _rewritten() -> int:
    """Return the length of the rewritten line."""
    return _Rewritten.columns if _Rewritten.stream is sys.stderr else 0


def columns_of_errors() -> int:
    """Return the width of the terminal of standard error; standard output may be a file."""
    stated = os.environ.get("COLUMNS", "")
    found = [int(stated)] if stated.isdecimal() and len(stated) < 9 else []
    with suppress(OSError, ValueError):  # not a terminal, closed, or not a file at all
        found.append(os.get_terminal_size(sys.stderr.fileno()).columns)
    return min((width for width in found if width > 0), default=80)


def complain(fault: object) -> None:
    """Print a fault to standard error, on one line of bounded length."""
    note(shortened(visible(f"optpart: {fault}"), _MOST))


def put(document: str) -> None:
    """Write a text of :mod:`optpart.base.languages`, which has nothing left to escape."""
    sys.stdout.write(visible_lines(document))


def prepare() -> None:
    """Prepare the standard streams for printing.

    Raises
    ------
    OutputError
        If standard output is closed.
    """
    closed = sys.stdout is None
    logging.getLogger("optpart").handlers = [_Notes(logging.WARNING)]
    _occupy_standard_descriptors()
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Lenient(2, "w", closefd=False), line_buffering=True)
    if closed:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (as long as the process)
        raise OutputError("standard output: closed; redirect it to a file or to /dev/null")
    # pytest and others substitute streams of their own.
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Strict(1, "w", closefd=False), line_buffering=os.isatty(1))


def abandon() -> None:
    """Discard what is still buffered for standard output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _occupy_standard_descriptors() -> None:
    """Open closed standard descriptors, lest the next file opened receive printed output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor


def _text(raw: io.FileIO, *, line_buffering: bool) -> io.TextIOWrapper:
    codecs.register_error(_HANDLER, _replaced)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(sys.__stdout__ or sys.__stderr__, "encoding", "utf-8"),
        errors=_HANDLER,
        line_buffering=line_buffering,
    )


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace what a stream cannot encode: signs of ours by ASCII, letters of names by escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    if (sign := _IN_ASCII.get(error.object[error.start])) is not None:
        return sign, error.start + 1
    return codecs.backslashreplace_errors(_first(error))


def _first(error: UnicodeEncodeError) -> UnicodeEncodeError:
    """Return the error of the first character only; those after it may be signs of ours."""
    one = error.start + 1
    return UnicodeEncodeError(error.encoding, error.object, error.start, one, error.reason)


class _Strict(io.FileIO):
    """A stream whose failed writes raise errors that no library in between handles.

    Click, for one, would end the program at a broken pipe with an exit code of its own.
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
    """A stream that drops what cannot be written: no remark is worth losing a result for."""

    def write(self, content: object) -> int:
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError:
            return len(content)  # type: ignore[arg-type]
