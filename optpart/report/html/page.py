"""The report as one HTML file that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from optpart.files import Kind, begins, write_text
from optpart.languages import to_json_in_html
from optpart.report.html.data import pages_data
from optpart.report.html.sources import Subject

#: Ends of the names of pages.
PAGES = (".html", ".htm")
KIND = Kind("a report", begins(rb"(?s)<!DOCTYPE html>.{0,999}<title>optpart report</title>"))


def write_report(
    subjects: Sequence[Subject], path: str | Path, *, certificate: str | None = None
) -> None:
    """Write the report, completely or not at all.

    Parameters
    ----------
    subjects : sequence of Subject
        One for each instance.
    certificate : str, optional
        What a certificate proves, as its checker says.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    write_text(path, page(pages_data(subjects, certificate)), KIND)


def page(data: dict[str, Any]) -> str:
    """Return the page that shows the data."""
    parts = {
        "style": _asset("page.css"),
        "data": to_json_in_html(data),
        "library": _asset("vendor/echarts.min.js"),
        "script": _asset("page.js"),
    }
    whole, *rest = _asset("page.html").split("{{")
    for piece in rest:
        name, _, after = piece.partition("}}")
        whole += parts[name] + after
    return whole


def _asset(name: str) -> str:
    return resources.files("optpart.report.html").joinpath(name).read_text(encoding="utf-8")
