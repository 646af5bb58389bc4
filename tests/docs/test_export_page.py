"""What the page on exports shows runs as it stands, and its table is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optpart.exporters.registry import TARGETS

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


def test_every_target_is_listed() -> None:
    table = PAGE.partition("|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert rows == [[f"`{each.name}`", each.summary, each.needs] for each in TARGETS.values()]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=["onnx", "llm"])
def test_an_example_prints_what_the_page_shows(
    code: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "onnx" in code:
        pytest.importorskip("onnx", reason="needs optpart[onnx]")
        pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out == printed


def test_the_command_of_the_page_writes_a_program(run, tmp_path: Path) -> None:
    (command,) = re.findall(r"`optpart (export heft-10 .*?)`", PAGE)
    *options, output = command.split()
    assert run(*options, tmp_path / output).code == 0
    assert "OBJ" in (tmp_path / output).read_text()
