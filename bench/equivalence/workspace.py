"""A folder with fixed inputs, the command line in this process, and masks for what varies."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.equivalence import inputs

#: Said once where machine code is not cached yet.
_COMPILING = "compiling the inner loops"

#: Fields that are times or versions, and thus masked.
_VARYING = {"seconds", "seconds_mean", "versions", "trace"}

_TIME = re.compile(r"(?<![\w.])[<≈~]?\d[\d.,]*(e-?\d+)? ?(ns|µs|us|ms|s|min|h)(?![\w])")

ROOT = Path(__file__).resolve().parents[2]

#: Set by :func:`workspace`.
_PLACES = {"root": ROOT, "samples": Path(), "here": Path()}


@dataclass(frozen=True)
class Outcome:
    """Exit code and what was printed."""

    code: object
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """First line on standard error, all of it for wrong usage; paths and times replaced."""
        lines = [line for line in self.err.splitlines() if not line.startswith(_COMPILING)]
        if not lines:
            return ""
        text = "\n".join(lines) if lines[0].lstrip().startswith("Usage") else lines[0]
        return " ".join(masked(text).split())


def prepare() -> None:
    """Take optpart from this checkout, also in processes that it starts, and fix the terminal."""
    others = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = str(ROOT) + (os.pathsep + others if others else "")
    os.environ.update(NO_COLOR="1", TERM="dumb", COLUMNS="200", LC_ALL="C.UTF-8", MPLBACKEND="Agg")
    sys.path.insert(0, str(ROOT))


def run(*arguments: object) -> Outcome:
    """Run ``optpart`` with arguments.

    In this process: a new one would load the solvers and the compiled code each time.
    """
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
        code = f"traceback: {type(error).__name__}"
    finally:
        sys.argv, sys.stdout, sys.stderr = kept
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Outcome(code, *texts)


@contextmanager
def workspace(samples: Path) -> Iterator[None]:
    """Work in a new folder that holds the fixed inputs."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        here = Path(name).resolve()
        _PLACES.update(samples=samples, here=here)
        os.chdir(here)
        try:
            inputs.write(here)
            yield
        finally:
            os.chdir(before)


def samples() -> Path:
    """Return the folder of files that were written when behaviour was recorded."""
    return _PLACES["samples"]


def masked(text: str) -> str:
    """Return text without paths, times and the width of columns."""
    for name in ("here", "root"):
        text = text.replace(str(_PLACES[name]), f"<{name}>")
    text = _TIME.sub("<time>", text)
    return "\n".join(re.sub(r"[ ─━│╭╮╰╯]+", " ", line).strip() for line in text.splitlines())


def masked_document(text: str) -> Any:
    """Return a JSON document without times and versions."""

    def mask(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: "*" if k in _VARYING else mask(v) for k, v in value.items()}
        if isinstance(value, list):
            return [mask(item) for item in value]
        return masked(value) if isinstance(value, str) else value

    return mask(json.loads(text))


def masked_table(text: str) -> list[list[str]]:
    """Return the rows of a CSV without times and versions."""
    rows = list(csv.reader(io.StringIO(text)))
    varying = {i for i, name in enumerate(rows[0]) if name in _VARYING} if rows else set()
    return [
        ["*" if i in varying and r else masked(cell) for i, cell in enumerate(row)]
        for r, row in enumerate(rows)
    ]


def digest(value: object) -> str:
    """Return a short hash of bytes, text or a JSON document."""
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(value).hexdigest()[:12]
