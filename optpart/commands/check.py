"""``optpart check``: the judge of certificates."""

from __future__ import annotations

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
        typer.Option(help="The file that the certificate has to be about, byte for byte."),
    ] = None,
    json: Json = False,
) -> None:
    """Check certificates: is the schedule valid, and is none shorter?

    Ends with 0 where all are accepted and 1 where one is rejected. The same judge runs without
    optpart's other parts: python -m optpart.certify.check DIRECTORY.
    """
    from optpart.api import check as judge
    from optpart.certify.check import RejectedError
    from optpart.formats.json import pretty
    from optpart.terminal import put, say

    found = []
    for directory in directories:
        try:
            said = judge(directory, instance)
            found.append({"directory": str(directory), "accepted": True, "reason": said})
        except RejectedError as error:
            found.append({"directory": str(directory), "accepted": False, "reason": str(error)})
        if not json:
            where = f"{directory}: " if len(directories) > 1 else ""
            verdict = "ACCEPTED" if found[-1]["accepted"] else "REJECTED"
            say(f"{verdict}: {where}{found[-1]['reason']}")
    if json:
        put(pretty({"certificates": found}))
    if not all(each["accepted"] for each in found):
        raise typer.Exit(1)
