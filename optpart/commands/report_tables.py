"""``optpart report STORE --by FACTOR -o FOLDER``: tables and figures for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def report_tables(store: Path, by: Sequence[str], output: Path) -> None:
    """Write tables and figures about the runs of a store into a folder.

    Parameters
    ----------
    store : Path
        A file of ``optpart gap --store``.
    by : sequence of str
        Factors that divide the instances into groups.
    output : Path
        The folder.
    """
    from optpart.report.paper.folder import write_folder
    from optpart.terminal import note, say

    for line in write_folder(store, by, output):
        note(line)
    say(f"tables and figures → {output}")
