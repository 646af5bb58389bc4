"""``optpart check``: verify certificates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from optpart.commands.options import Json


def check(
    directories: Annotated[
        list[Path], typer.Argument(help="Folders that 'optpart certify' wrote.")
    ],
    instance: Annotated[
        Path | None,
        typer.Option(help="The instance file that the certificate must contain, byte for byte."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="A folder for the proof in the formats of other checkers."),
    ] = None,
    json: Json = False,
) -> None:
    """Verify certificates: is the schedule valid, and is none shorter?

    Exits with 0 if all are accepted and with 1 if any is rejected. The same checker runs without
    the rest of optpart: python -m optpart.certificates.check DIRECTORY.
    """
    from optpart.api import check as verified
    from optpart.base.errors import CertificateError, InputError
    from optpart.base.folders import check_folder
    from optpart.base.terminal import put, say
    from optpart.certificates.check import RejectedError
    from optpart.certificates.proof_files import HOLDS, write
    from optpart.interop.formats.json import pretty

    for directory in directories:
        if not os.path.exists(directory):
            remedy = "name one that 'optpart certify' wrote"
            raise InputError("", "no such folder", remedy, str(directory))
    if export is not None:
        if len(directories) > 1:
            raise InputError("--export", "is for one certificate", "name one folder")
        check_folder(export, HOLDS)
    found = []
    for directory in directories:
        try:
            reason = verified(directory, instance)
            found.append({"directory": str(directory), "accepted": True, "reason": reason})
        except CertificateError as error:
            found.append({"directory": str(directory), "accepted": False, "reason": str(error)})
        if not json:
            where = f"{directory}: " if len(directories) > 1 else ""
            verdict = "ACCEPTED" if found[-1]["accepted"] else "REJECTED"
            say(f"{verdict}: {where}{found[-1]['reason']}")
    if json:
        put(pretty({"certificates": found}))
    if not all(each["accepted"] for each in found):
        raise typer.Exit(1)
    if export is not None:
        try:
            files = write(directories[0], export)
        except RejectedError:  # accepted above, so it is a bound of training strategies
            problem = "its proof is about training strategies, which other checkers do not read"
            remedy = "export a certificate of a makespan or a bound"
            raise InputError("", problem, remedy, str(directories[0])) from None
        if not json:
            say(f"{' and '.join(files)}, in {export}")
