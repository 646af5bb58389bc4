"""README and usage page run: Python prints what they show, and so do commands, but for times."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from commandline import Run

from optpart.interop.formats.detect import FORMATS
from optpart.methods.parts import PARTITIONERS, SCHEDULERS
from optpart.study import library

ROOT = Path(__file__).parents[2]
#: What benches have printed; a source distribution leaves it out.
KEPT = ROOT / "bench" / "results"
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: Times differ from run to run, and so do the widths of columns that hold them.
TIME = re.compile(r"\d[\d.]* m?s\b")


def blocks(kind: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Every command that is shown with its output, and that output."""
    found = []
    for block in blocks("console"):
        for part in block.split("$ optpart ")[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def plain(output: str) -> list[list[str]]:
    """The words of an output without its times."""
    return [TIME.sub("", line).split() for line in output.splitlines()]


@pytest.mark.parametrize("page", ["README.md", "docs/usage.md"])
def test_python_prints_what_stands_below_it(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code, shown in zip(blocks("python", text), blocks("text", text), strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)  # the page is the project's own
        assert printed.getvalue() == shown


def test_commands_print_what_stands_below_them(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in blocks("toml"):
        Path(text.partition("\n")[0].removeprefix("# ")).write_text(text)
    for command, shown in commands():
        done = run(*shlex.split(command))
        assert done.code == 0
        if command.startswith("solve"):  # there are several optimal schedules
            optimal = shown.partition(", traffic")[0]
            assert done.out.startswith(optimal)
        elif command.startswith("place"):  # there are several optimal plans here, too
            assert done.out.startswith(shown.partition(", traffic")[0])
        elif command.startswith("gap"):
            # "time" heads a column of its own; methods of equal rank may change places
            assert sorted(plain(done.out)) == sorted(plain(shown))
        else:
            assert done.out == shown


def test_counts() -> None:
    usage = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
    partitioners, schedulers = len(PARTITIONERS.rows), len(SCHEDULERS.rows)
    assert f"\n{partitioners} heuristics with {schedulers} schedulers, " in README
    assert f"| {partitioners} partitioning × {schedulers} scheduling strategies" in usage
    assert len(FORMATS.rows) > 20
    rows = library.index()
    assert f"| {len(rows)} instances, " in usage
    optima = [name for name, row in rows.items() if row.status == "OPTIMAL"]
    without = sum(library.certificate(name) is None for name in optima)
    assert f"All but {without} optima" in README


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "models/README.md",
        *("docs/" + p.name for p in sorted((ROOT / "docs").glob("*.md"))),
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not KEPT.exists() and file.is_relative_to(KEPT):  # a source distribution
            continue
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
