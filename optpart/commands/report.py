"""``optpart report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.base.errors import InputError
from optpart.base.files import check_target
from optpart.commands.options import DataFolder, SetName, file_to_write


def report(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Result files, stores of 'optpart gap --store', and the instance: a file, or the "
            "name of a library instance. Results of library instances need no instance.",
        ),
    ],
    output: Annotated[
        Path,
        file_to_write(
            "--output",
            "-o",
            help="A page, NAME.html; or a folder for tables about one store, whose "
            "schedules are verified if their instances are given or of the library.",
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACTOR",
            help="For tables: a factor that divides the instances into groups, such as n or ccr; "
            "repeat it.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="A certificate of the optimum; it is checked, and the report says so."),
    ] = None,
    set_name: SetName = None,
    data: DataFolder = None,
) -> None:
    """Write one HTML page that opens without a network, or tables and figures for a paper.

    With --set, the page is a leaderboard: the methods of all stores, ranked on that set.
    """
    from optpart.study.report.html.page import KIND, PAGES

    if output.suffix.lower() in PAGES:  # everything else is a folder
        from optpart.api import write_report

        if by:
            raise InputError("--by", "is for tables", "give a folder with --output", str(output))
        check_target(output, KIND)
        write_report(what, output, certificate=certificate, set_name=set_name, data=data)
        return
    if set_name is not None or data is not None:
        raise InputError("--set", "is for pages", f"name it {output}.html", str(output))
    from optpart.api import load
    from optpart.base.terminal import note, say
    from optpart.study.report.html.sources import kind
    from optpart.study.report.paper.folder import write_folder

    kinds = {one: kind(one) for one in what}
    stores = [one for one in what if kinds[one] == "store"] or what[:1]
    of_one = len(stores) == 1 and (len(what) == 1 or kinds[stores[0]] == "store")
    if not of_one or certificate is not None or "result" in kinds.values():
        raise InputError(
            "",
            "is not a page",
            f"name it {output}.html, or give a store and nothing but instances",
            str(output),
        )
    instances = [load(one) for one in what if one not in stores]
    for line in write_folder(stores[0], by or [], output, instances):
        note(line)
    say(f"tables and figures → {output}")
