"""``optpart archive``: certified bounds of the instances of an archive of best known values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.commands.options import Json, MemoryLimit, time_limit

if TYPE_CHECKING:
    from optpart.study.archive import Archive, Listed, Row


def archive(
    folder: Annotated[
        Path, typer.Argument(help="The archive: a new folder, or one to continue or check.")
    ],
    lists: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="BKS",
            help="Lists of best known values (bks.json); instance files are below their folders.",
        ),
    ] = None,
    time_limit: Annotated[
        float, time_limit("Seconds per instance, for schedule, bounds and proof together.")
    ] = 10.0,
    memory_limit: MemoryLimit = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Judge every certificate, and compare with the published values; with lists, also "
            "that it is about their instance.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Certify a schedule and the best lower bound of every instance of lists of known values.

    Instances whose optimum is certified, or that this version has given that much time, are left
    out; small files come first.
    With --check, exits with 1 if a certificate is rejected or contradicts a published value.
    """
    from optpart.base.errors import InputError
    from optpart.base.terminal import put
    from optpart.interop.formats.json import pretty
    from optpart.study.archive import HEADS, Archive, read_lists, summary
    from optpart.study.report.console import plain_console

    listed = read_lists(lists or [])
    found = Archive(folder)
    if check:
        if not found.rows:
            raise InputError("", "holds no archive", "name a folder that holds one", str(folder))
        _judge(found, listed, json)
        return
    if not listed:
        raise InputError("BKS", "no list of instances", "name a bks.json, or give --check")
    _fill(found, listed, time_limit, memory_limit)
    rows = summary(found.rows.values())
    if json:
        put(pretty({"sets": [dict(zip(HEADS, row, strict=True)) for row in rows]}))
    else:
        plain_console().show_rows(HEADS, rows, left=("set",))


def _fill(archive: Archive, listed: list[Listed], seconds: float, memory: int | None) -> None:
    """Add what is not done yet, and say what came of it."""
    from optpart.base.terminal import note
    from optpart.kernels.all import expect

    expect()
    with archive.held():
        todo = [each for each in listed if not archive.is_done(each.name, seconds)]
        todo.sort(key=lambda each: min((file.stat().st_size for file in each.files), default=0))
        for number, each in enumerate(todo, 1):
            row = archive.add(each, seconds, memory)
            where = f"[{number}/{len(todo)}] {each.name}"
            if row["failed"]:
                note(f"{where}: {row['failed']}")
            else:
                tier = row["lb_data"][0]["certificate"]["tier"]
                note(f"{where}: {row['lower_bound']} to {row['upper_bound']}, by tier {tier}")


def _judge(archive: Archive, listed: list[Listed], json: bool) -> None:
    from optpart.base.terminal import put, say
    from optpart.interop.formats.json import pretty
    from optpart.study.archive import HEADS, judged, summary
    from optpart.study.report.console import plain_console

    verdicts = []
    for each in judged(archive, listed):
        verdicts.append(each)
        if json:
            continue
        if not each.proven:
            say(f"REJECTED: {each.name}: {each.said}")
        for text in each.contradictions:
            say(f"CONTRADICTED: {each.name}: {text}")
    rejected = sum(not each.proven for each in verdicts)
    contradicted = sum(bool(each.contradictions) for each in verdicts)
    if json:
        put(
            pretty(
                {
                    "certificates": [
                        {
                            "instance": each.name,
                            "accepted": each.proven,
                            "reason": each.said,
                            "contradictions": list(each.contradictions),
                        }
                        for each in verdicts
                    ]
                }
            )
        )
    else:
        accepted = {each.name for each in verdicts if each.proven}
        nothing: Row = {"lower_bound": None, "upper_bound": None, "lb_data": []}
        rows = summary(
            row if name in accepted else {**row, **nothing} for name, row in archive.rows.items()
        )
        plain_console().show_rows(HEADS, rows, left=("set",))
        say(
            f"{len(verdicts)} certificates: {len(verdicts) - rejected} accepted, {rejected} "
            f"rejected; {contradicted} contradict a published value"
        )
    if rejected or contradicted:
        raise typer.Exit(1)
