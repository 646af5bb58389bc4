"""The one tree of errors that optpart raises on purpose."""

from __future__ import annotations

_LONGEST = 400

#: The names of all methods fit.
_LONGEST_REMEDY = 2000


class OptpartError(Exception):
    """Base of every error that a user can cause or should hear of."""


class InputError(OptpartError):
    """Something handed to optpart is wrong.

    Parameters
    ----------
    place : str
        Where in the input, for instance ``vertices[3].ops``; empty for the whole of it.
    problem : str
        What is wrong.
    remedy : str
        What would be right.
    file : str, optional
        The file; readers add it with :meth:`within` once they know it.
    """

    def __init__(self, place: str, problem: str, remedy: str, file: str | None = None) -> None:
        self.place = place
        self.problem = problem
        self.remedy = remedy
        self.file = file
        super().__init__(str(self))

    def within(self, file: str) -> InputError:
        """Return the same error, naming the file it was found in."""
        return type(self)(self.place, self.problem, self.remedy, self.file or file)

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, str | None]]:
        return type(self), (self.place, self.problem, self.remedy, self.file)

    def __str__(self) -> str:
        where = [part for part in (self.file, _shortened(self.place)) if part]
        said = f"{_shortened(self.problem)}; {_shortened(self.remedy, _LONGEST_REMEDY)}"
        # Names come from files: whatever they contain, the message stays on one line.
        return " ".join(": ".join([*where, said]).split())


def _shortened(text: str, most: int = _LONGEST) -> str:
    """Leave out the middle of what nobody would read to its end."""
    return text if len(text) <= most else f"{text[: most - 60]} … {text[-40:]}"


class FaultsOf:
    """Names a file in every :class:`InputError` that its block raises.

    A class and not a generator: type checkers then know that nothing is swallowed.
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


class UnsupportedError(InputError):
    """A method was asked for something outside its scope."""
