"""The command line in this process: a new one would load solvers and compiled code each time."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple


class Ran(NamedTuple):
    """How a command ended: its exit code, or its traceback, and what it printed."""

    code: object
    out: str
    err: str


def run(*arguments: object) -> Ran:
    """Run ``optpart`` with arguments in the current folder."""
    from optpart.cli import main

    kept = sys.argv, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["optpart", *map(str, arguments)], out, err
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:  # what a user would see as a traceback
        code = f"traceback: {type(error).__name__}: {error}"
    finally:
        sys.argv, sys.stdout, sys.stderr = kept
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Ran(code, *texts)
