"""Options that name a file to write: each is tried before the command does anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.files import check_target


def _tried(path: Path | None) -> Path | None:
    if path is not None:
        check_target(path)
    return path


def file_to_write(*names: str, help: str) -> typer.models.OptionInfo:
    """Return an option that names a file to write."""
    option: typer.models.OptionInfo = typer.Option(*names, help=help, callback=_tried)
    return option


Output = Annotated[Path | None, file_to_write("-o", "--output", help="Where to write.")]
Needed = Annotated[Path, file_to_write("-o", "--output", help="Where to write.")]
