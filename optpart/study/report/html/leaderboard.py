"""The leaderboard as one HTML file that opens without a network, and without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from optpart.base.files import write_text
from optpart.base.languages import to_html
from optpart.base.rounding import fixed
from optpart.study.leaderboard import ALL, Leaderboard, Line, Section
from optpart.study.report.html.page import KIND, asset, filled, head
from optpart.version import __version__

_HEADS = (
    "rank", "method", "ratio", "solved", "run on", "optimal", "failed", "rejected", "limits",
    "runs of",
)  # fmt: skip
_TEXTS = {"method", "limits", "runs of"}


def write_leaderboard(board: Leaderboard, path: str | Path) -> None:
    """Write the page, completely or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    write_text(path, leaderboard_page(board), KIND)


def leaderboard_page(board: Leaderboard) -> str:
    """Return the page."""
    return filled(
        "leaderboard.html",
        {
            "head": head("report", asset("page.css"), scripts=""),
            "name": to_html(board.dataset.name),
            "facts": to_html(str(board.dataset)),
            "sections": "".join(map(_section, board.sections)),
            "notes": "".join(f'<p class="faint">{to_html(note)}</p>\n' for note in board.notes),
            "footer": f"optpart {to_html(__version__)}",
        },
    )


def _section(section: Section) -> str:
    heads = "".join(_cell("th", head, _class(head)) for head in _HEADS)
    rows = "".join(_rows(section))
    size = "All sizes" if section.size == ALL else section.size.capitalize()
    return (
        f"<section>\n<h2>{size}: {section.instances} instances, {section.optima} with a known "
        f'optimum</h2>\n<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )


def _rows(section: Section) -> Iterable[str]:
    before: Line | None = None
    for line in section.lines:
        is_apart = before is not None and line.rank is None and before.rank is not None
        before = line
        solved, run = (
            (f"{count} of {section.instances}", "part" if count < section.instances else "")
            for count in (line.solved, line.run)
        )
        cells = (
            ("–" if line.rank is None else str(line.rank), ""),
            (line.contestant.method, "text"),
            ("–" if line.ratio is None else fixed(line.ratio, 3, up=True), ""),
            solved,
            run,
            (f"{line.optimal} of {section.optima}", ""),
            (str(line.failed), "bad" if line.failed else ""),
            (str(line.rejected), "bad" if line.rejected else ""),
            (line.contestant.limits, "text"),
            (", ".join([*line.stores, f"optpart {line.contestant.optpart}"]), "text"),
        )
        row = "".join(_cell("td", text, kind) for text, kind in cells)
        yield f"<tr{' class=apart' if is_apart else ''}>{row}</tr>\n"


def _class(head: str) -> str:
    return "text" if head in _TEXTS else ""


def _cell(tag: str, text: str, kind: str) -> str:
    return f"<{tag}{f' class={kind}' if kind else ''}>{to_html(text)}</{tag}>"
