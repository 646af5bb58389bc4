"""The program ``optpart``: its command line and exit codes (design §6)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from optpart.base import clock
from optpart.base.children.failures import Failures
from optpart.base.errors import ArgumentError, FailureError, OptpartError
from optpart.base.terminal import OutputError, ReaderGoneError, abandon, complain, prepare, say
from optpart.commands.options import forcible, option_of
from optpart.commands.registry import COMMANDS, GROUPS, command, group
from optpart.commands.results import INCOMPLETE
from optpart.version import __version__

app = typer.Typer(
    help="True optima, proven bounds and heuristics for placing dataflow graphs on unlike devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its panels cut words on narrow terminals
)
_groups: dict[str, typer.Typer] = {}
for _name in GROUPS:
    _class = group(_name)
    _groups[_name] = typer.Typer(cls=_class, help=_class.__doc__, no_args_is_help=True)
    app.add_typer(_groups[_name], name=_name, short_help=_class.__doc__)
for _name in COMMANDS:
    _place, _, _last = _name.rpartition(" ")
    _function = command(_name)
    _summary = " ".join((_function.__doc__ or "").partition("\n\n")[0].split())
    # Lists of commands cut what is no short help.
    (_groups[_place] if _place else app).command(_last, short_help=_summary)(forcible(_function))

#: The base of Typer's usage errors, which Typer itself does not export.
_UsageError: Any = typer.BadParameter.__bases__[0]

_NOTHING = 4
_INTERRUPTED = 130


def _version(asked: bool) -> None:
    if asked:
        say(f"optpart {__version__}")
        raise typer.Exit


@app.callback()
def options(
    plugin: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.py", help="A file that registers your methods; repeat it."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Load the methods of plug-in files, for all commands."""
    for path in plugin or []:
        from optpart.methods.plugins import load_plugin

        load_plugin(path)


@cache
def _program() -> Any:
    """Return all commands; to call ``app`` would read every signature again each time."""
    return typer.main.get_command(app)


def main(begin: float | None = None) -> None:
    """Run the command line; report a user's error in one line, with exit code 2.

    Exits with 0 if the reader of standard output has closed it, as ``head`` does.

    Parameters
    ----------
    begin : float, optional
        When its time limit began, on the clock of :mod:`optpart.base.clock`; now by default.
    """
    if code := _code_of(prepare):
        sys.exit(code)
    failures = Failures()
    with clock.command(begin):
        code = _code_of(lambda: _program()(prog_name="optpart", standalone_mode=False))
    for failure in failures.described():
        complain(failure)
    if failures and code in (None, _NOTHING):  # 0 is stated where the answer is complete anyway
        code = INCOMPLETE
    # Flushing the buffer may fail, too.
    sys.exit(_code_of(sys.stdout.flush) or code)


def _code_of(step: Callable[[], object]) -> str | int | None:
    """Run one step of the program; return its exit code, if it states one."""
    try:
        result = step()
    except SystemExit as end:
        return end.code
    except ReaderGoneError:
        abandon()
        return 0
    except _UsageError as error:
        _explain(error)
        return 2
    except FailureError as error:
        complain(error)
        return INCOMPLETE
    except OptpartError as error:
        if isinstance(error, OutputError):
            abandon()
        complain(error.spelled(option_of) if isinstance(error, ArgumentError) else error)
        return 2
    except (MemoryError, OSError, ImportError) as error:
        complain(_refused(error))
        return INCOMPLETE
    except (KeyboardInterrupt, typer.Abort):
        result = _INTERRUPTED
    if result == _INTERRUPTED:  # Typer returns it, and says nothing
        complain("interrupted")
    return result if isinstance(result, int) else None


def _refused(error: MemoryError | OSError | ImportError) -> str:
    """Describe what the system has refused to the program, or an installation to load."""
    if isinstance(error, MemoryError):
        return "out of memory"
    file = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return f"{file}{getattr(error, 'strerror', None) or error}"


def _explain(error: typer.BadParameter) -> None:
    """Say what is wrong with a command line; without any arguments, show the help."""
    message = error.format_message()  # empty if the help has been printed
    if error.ctx is not None and message == error.ctx.get_help():
        for line in message.splitlines():
            say(line)
    elif message:
        complain(_usage(error))


def _usage(error: typer.BadParameter) -> str:
    """Describe a usage error, and point to the help."""
    command = "optpart" if error.ctx is None else error.ctx.command_path
    problem = " ".join(error.format_message().split()).rstrip(".")
    problem = problem.replace(": Value error, ", ": ")  # how pydantic, not optpart, begins
    return (
        f"{problem} See '{command} --help'"
        if problem.endswith("?")
        else (f"{problem}; see '{command} --help'")
    )
