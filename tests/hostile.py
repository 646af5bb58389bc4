"""Names that would be more than data wherever they are not quoted, for tests."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from optpart.base.languages import from_csv

#: What no terminal should see; line feeds are for texts of several lines.
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

#: Each is meant for a language: it ends a text or a comment there, or begins something.
NAMES = [
    "d0\nimport os; os.system('x')\n#", "\r__import__('os')", "'''", '"""', "\\", "a\\", "a\\nb",
    "a\nb", "\\x1b", "'", '"', "`id`", "$(id)", "${HOME}", "; id", "| id", "a b", "-dash",
    "--help", "#", "//", "/*", "*/", "-->", "<!--", "<b>", "&amp;", "]]>", "];<![CDATA[",
    "</script><img src=x onerror=\"document.title='ran'\">", "javascript:1", "%", "{}", "{b}",
    "{a|b}", "$x$", "\\end{tabular}", "\\input{/etc/passwd}%$_^~{}", "[3cm]", "*", "a & b",
    "^^41", '=HYPERLINK("http://x")', "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "\t=1", "\r=1",
    "'=1", "=1", "＝1", "a;=1", "-5", "1e3", "a,b", 'a"b', "a\r1,2,3", "\x1b[31mred",
    "\x1b]0;t\x07", "c1\x9b31m", "nul\0", "\u202eturned", "a\u2028b", "zero\u200bwidth\ufeff",
    "[red]:smile:[/red]", "头\U0001f600", "a\u0301", " ", ".*+?^${}()|[]", "_x", "__proto__",
    "constructor", "a_b", "a.b", "A_B", "L" * 3000,
]  # fmt: skip

#: Hostile names, and others from their pieces.
names = st.one_of(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from([*NAMES[:-1], "\n", "a"]), min_size=2, max_size=3).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)


def meant(cell: str) -> str:
    """Return the text that a cell of a table of records stands for."""
    escape = r"\\(\\|[tnr]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
    return re.sub(escape, lambda m: m[0].encode("ascii").decode("unicode_escape"), from_csv(cell))
