"""``optpart convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from optpart.base.errors import InputError
from optpart.base.files import Kind
from optpart.commands.instances import open_instance
from optpart.commands.options import File, file_to_write
from optpart.commands.options import output as written

#: The end of names of files in SAGA's JSON.
SAGA = ".saga.json"


def kind_of(path: Path) -> Kind:
    """Return the kind of the file to write, by its suffix."""
    from optpart.interop.formats import native, saga, thesis_csv

    if path.name.lower().endswith(SAGA):
        return saga.KIND
    suffix = path.suffix.lower()
    if suffix not in (".json", ".csv"):
        raise InputError("", f"unknown suffix {suffix!r}", f"use .json, {SAGA} or .csv", str(path))
    return native.KIND if suffix == ".json" else thesis_csv.KIND


def convert(
    file: File,
    output: Annotated[Path, written("optpart.commands.convert:kind_of")],
    devices: Annotated[
        Path | None,
        file_to_write(
            help="For a thesis .csv: where to write the devices.",
            kind="optpart.interop.formats.thesis_csv:DEVICES",
        ),
    ] = None,
) -> None:
    """Write an instance in another format: .json, .saga.json, or thesis .csv with --devices."""
    from optpart.interop.formats import native, saga, thesis_csv

    instance = open_instance(file)
    if output.name.lower().endswith(SAGA):
        saga.write(instance, output)
        return
    if output.suffix.lower() == ".json":
        native.write(instance, output)
        return
    if devices is None:
        raise InputError("--devices", "missing", "name the CSV to write the devices to")
    thesis_csv.write(instance, output, devices)
