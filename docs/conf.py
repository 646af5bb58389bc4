"""The documentation site, built by ``make docs``; no page loads anything from elsewhere."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

from pygments.lexers.special import TextLexer  # noqa: E402

from optpart.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "optpart"
author = "The optpart authors"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "myst-nb"}
smartquotes = False  # it makes a dash of --, so that options could not be copied

myst_enable_extensions = ["colon_fence", "attrs_inline", "deflist"]
# The anchors that GitHub gives to headings: all pages can be read there, too.
myst_heading_anchors = 4

nb_execution_mode = "force"
nb_execution_timeout = 600  # the first cells in a new checkout compile optpart's loops
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_execution_show_tb = True

add_module_names = False
autodoc_typehints = "none"  # docstrings say the types, in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"optpart {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# What the gallery makes while it is built.
(HERE / "_build" / "extra").mkdir(parents=True, exist_ok=True)
html_extra_path = ["_build/extra"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

#: Pages that stand elsewhere in the repository, and the page of the site that shows them.
ELSEWHERE = {
    "start": ROOT / "README.md",
    "formulations": ROOT / "models" / "README.md",
    "contributing": ROOT / "CONTRIBUTING.md",
    "changelog": ROOT / "CHANGELOG.md",
}
_PAGES = {path: HERE / f"{name}.md" for name, path in ELSEWHERE.items()}
_PAGES[HERE / "use"] = HERE / "use" / "index.md"
_HEADING = re.compile(r"^# .+$", re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def show(app: Sphinx, name: str, source: list[str]) -> None:
    """Take the text of a page from where it stands, and let its links lead to pages of the site."""
    page = HERE / f"{name}.md"
    origin = ELSEWHERE.get(name, page)
    if origin != page:
        app.env.note_dependency(str(origin))
        source[0] = origin.read_text(encoding="utf-8")

    def lead(link: re.Match[str]) -> str:
        image, text, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return link[0]
        file = (origin.parent / path).resolve()
        file = _PAGES.get(file, file)
        if file.is_dir():  # there is no page to show
            return text
        if file.suffix == ".md" and not file.is_relative_to(HERE):  # not a page of the site
            return f"{{download}}`{text} <{os.path.relpath(file, page.parent)}>`"
        return f"{image}[{text}]({os.path.relpath(file, page.parent)}{hash_}{anchor})"

    source[0] = _LINK.sub(lead, source[0])
    if "\nkernelspec:" in source[0]:  # a page that runs; GitHub, where none does, shows no link
        notebook = f"{{nb-download}}`Download this page as a notebook <{page.stem}.ipynb>`"
        source[0] = _HEADING.sub(rf"\g<0>\n\n{notebook}", source[0], count=1)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", show)
    app.add_lexer("csv", TextLexer)  # Pygments has none
