"""How the tests themselves are laid out: like the package, and none needs another."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "optpart"
FILES = sorted(TESTS.rglob("test_*.py"))

#: Folders that stand for no package: of tests about pages, benches, theorems that are known, and
#: runtimes that run our plans.
OF_THEIR_OWN = {"bench", "docs", "oracles", "runtimes"}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_no_test_is_imported() -> None:
    for file in TESTS.rglob("*.py"):
        parts = {part for name in imported(file) for part in name.split(".")}
        assert not [part for part in parts if part.startswith("test_")], file


def test_every_folder_is_that_of_a_package() -> None:
    folders = {file.parent.relative_to(TESTS) for file in FILES}
    assert folders >= {Path("search"), Path("strategies/partition")}
    for folder in folders - {Path(name) for name in OF_THEIR_OWN}:
        assert (PACKAGE / folder).is_dir(), folder


def test_no_two_test_files_have_the_same_name() -> None:
    """Pytest imports them by their names alone."""
    assert [name for name, n in Counter(file.name for file in FILES).items() if n > 1] == []


def test_every_python_is_started_without_the_current_folder() -> None:
    """What lies there must not come before what is installed: ``-P``, or ``-I``, comes first."""
    root = TESTS.parent
    scripts = [root / "Makefile", *(root / ".ci").glob("*")]
    folders = (root / name for name in ("optpart", "bench", "tests"))
    modules = [file for folder in folders for file in folder.rglob("*.py")]
    for file in (*scripts, *modules):
        ended = "*" if file in scripts else "+"  # words of a docstring are not quoted
        unsafe = rf"""(executable|python|found|PYTHON\))["'}},]{ended} ["']?-[cm]\b"""
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            assert not re.search(unsafe, line), f"{file.relative_to(root)}:{number}"
