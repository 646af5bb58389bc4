"""Show the fields of CITATION.cff, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from IPython.display import Markdown, display

CITATION = yaml.safe_load((Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8"))


def _name(person: dict[str, str]) -> str:
    if "name" in person:
        return person["name"]
    return f"{person['given-names']} {person['family-names']}"


def _told(work: dict[str, Any]) -> str:
    """The fields of a work in one line."""
    authors = ", ".join(map(_name, work["authors"])).replace(", others", " and others")
    parts = [authors, f"*{work['title']}*"]
    if "journal" in work:
        parts.append(f"{work['journal']} {work['volume']}({work['issue']})")
    if "collection-title" in work:
        parts.append(work["collection-title"])
    if "institution" in work:
        parts.append(work["institution"]["name"])
    if "version" in work:
        parts.append(f"version {work['version']}")
    if "year" in work:
        parts.append(str(work["year"]))
    return ". ".join(parts) + "." + (f" ({work['notes']})" if "notes" in work else "")


def listed() -> None:
    """Show optpart itself, and the works that it builds on."""
    works = "\n".join(f"- {_told(work)}" for work in CITATION["references"])
    display(Markdown(f"> {_told(CITATION)}\n\nThe works that it builds on:\n\n{works}"))


def bibtex() -> None:
    """Show an entry for optpart itself."""
    author = " and ".join(f"{{{_name(each)}}}" for each in CITATION["authors"])
    lines = (
        "@software{optpart,",
        f"  author  = {{{author}}},",
        f"  title   = {{{CITATION['title']}}},",
        f"  version = {{{CITATION['version']}}},",
        f"  license = {{{CITATION['license']}}},",
        "}",
    )
    display(Markdown("```text\n" + "\n".join(lines) + "\n```"))
