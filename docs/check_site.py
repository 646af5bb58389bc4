"""Check a built site: links lead somewhere, no page loads anything, options can be copied.

Call it with the folder of the site; it prints what is wrong and exits with 1 if anything is.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that a browser loads by itself; a link in ``a`` is only followed when clicked.
LOADED = {"src", "srcset", "poster", "data"}
#: Addresses that a style sheet or a script would load.
FOREIGN = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"]|import\(\s*['"])(?:https?:)?//[^\s'")]+""")
#: An option whose two hyphens became a dash, so that it cannot be copied.
DASHED = re.compile(r"(?<!\w)[–—][a-z][\w-]*")


class Page(HTMLParser):
    """What one page links to, what it loads, the anchors it has, and options with dashes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.dashed: list[str] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        """Note what looks like an option, but is none for a terminal."""
        self.dashed += DASHED.findall(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the links, loads and anchors of a tag."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in LOADED or (name == "href" and tag in {"link", "image", "use"}):
                self.loaded.append(value)
            elif name == "href":
                self.links.append(value)


def faults(site: Path) -> list[str]:
    """All that is wrong with a built site, one line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [
            f"{where}: loads {target}"
            for target in page.loaded
            if target.startswith("//") or urlsplit(target).scheme in {"http", "https"}
        ]
        found += [f"{where}: a dash in place of two hyphens: {each}" for each in page.dashed]
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("#!"):
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not file.exists():
                found.append(f"{where}: no such file: {target}")
            elif parts.fragment and file.suffix == ".html":
                other = next(page for each, page in pages.items() if each.resolve() == file)
                if unquote(parts.fragment) not in other.anchors:
                    found.append(f"{where}: no such place: {target}")
    for path in sorted([*site.rglob("*.css"), *site.rglob("*.js"), *pages]):
        text = path.read_text(encoding="utf-8")
        found += [f"{path.relative_to(site)}: loads {m[0]}" for m in FOREIGN.finditer(text)]
    return found


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]))
    print(
        "\n".join(lines) or "every internal link leads somewhere; nothing is loaded from elsewhere"
    )
    sys.exit(bool(lines))
