"""``optpart convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from optpart.commands.instances import open_instance
from optpart.commands.options import File, Needed, file_to_write
from optpart.errors import InputError


def convert(
    file: File,
    output: Needed,
    devices: Annotated[
        Path | None, file_to_write(help="For a thesis .csv: where to write the devices.")
    ] = None,
) -> None:
    """Write an instance in another format: .json, or thesis .csv with --devices."""
    from optpart.formats import native, thesis_csv

    instance = open_instance(file)
    suffix = output.suffix.lower()
    if suffix == ".json":
        native.write(instance, output)
    elif suffix == ".csv":
        if devices is None:
            raise InputError("--devices", "missing", "name the CSV to write the devices to")
        thesis_csv.write(instance, output, devices)
    else:
        raise InputError("", f"unknown suffix {suffix!r}", "use .json or .csv", str(output))
