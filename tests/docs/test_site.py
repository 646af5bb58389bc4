"""The site describes the whole interface; the check of a built site finds what is wrong."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import optpart

DOCS = Path(__file__).parents[2] / "docs"


def test_the_whole_interface_is_described() -> None:
    described = {
        name.rpartition(".")[2]
        for page in (DOCS / "api").glob("*.md")
        for name in re.findall(r"^\.\. auto\w+:: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert described == {*optpart.__all__} - {"__version__"}


def test_the_check_finds_dead_links_and_what_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    faults = runpy.run_path(str(DOCS / "check_site.py"))["faults"]
    page = tmp_path / "index.html"
    page.write_text('<p id="here"><a href="#here">fine</a> <a href="https://example.org">fine</a>')
    assert faults(tmp_path) == []
    page.write_text(
        '<a href="#gone">a</a><a href="gone.html">b</a><script src="https://example.org/a.js">'
    )
    (tmp_path / "style.css").write_text("p { background: url(//example.org/a.png) }")
    assert faults(tmp_path) == [
        "index.html: loads https://example.org/a.js",
        "index.html: no such place: #gone",
        "index.html: no such file: gone.html",
        "style.css: loads url(//example.org/a.png",
    ]


def test_the_check_finds_options_that_cannot_be_copied(tmp_path: Path) -> None:
    faults = runpy.run_path(str(DOCS / "check_site.py"))["faults"]
    page = tmp_path / "index.html"
    page.write_text("<p>10–20, 2–d, <code>--tensor-split</code>", encoding="utf-8")
    assert faults(tmp_path) == []
    page.write_text("<p>the option –tensor-split of llama.cpp", encoding="utf-8")
    assert faults(tmp_path) == ["index.html: a dash in place of two hyphens: –tensor-split"]


def test_pages_that_run_can_be_downloaded_as_notebooks() -> None:
    show = runpy.run_path(str(DOCS / "conf.py"))["show"]
    source = [(DOCS / "tutorials" / "heuristic.md").read_text("utf-8")]
    show(None, "tutorials/heuristic", source)
    link = "{nb-download}`Download this page as a notebook <heuristic.ipynb>`"
    assert f"# Measure a heuristic for a paper\n\n{link}\n" in source[0]
    plain = ["# Title\n\nText\n"]
    show(None, "usage", plain)
    assert plain == ["# Title\n\nText\n"]
