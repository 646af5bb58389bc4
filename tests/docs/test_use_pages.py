"""The examples from start to end run as they stand, and print what the pages show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commandline import Run

FOLDER = Path(__file__).parents[2] / "docs" / "use"
PAGES = (
    "language-model.md",
    "llama-cpp.md",
    "onnx.md",
    "recompute.md",
    "serving.md",
    "training-pipeline.md",
    "training.md",
    "transformers.md",
    "vllm.md",
    "workflow.md",
)


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def assert_shown(printed: str, shown: str) -> None:
    """Compare until what a search found; ``…`` on the page stands for remarks."""
    until = next((end for end in ("\nsearch: ", " an iteration takes ") if end in shown), None)
    expected = shown.partition(until)[0] if until else shown
    if expected.startswith("…\n"):
        assert expected.removeprefix("…\n") in printed
    elif until:
        assert printed.startswith(expected)
    else:
        assert printed == expected


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs(name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "onnx.md":
        pytest.importorskip("onnx", reason="needs optpart[onnx]")
    monkeypatch.chdir(tmp_path)
    page = (FOLDER / name).read_text(encoding="utf-8")
    for text in blocks(page, "toml"):
        Path(text.partition("\n")[0].removeprefix("# ")).write_text(text)
    for code in blocks(page, "python"):
        exec(compile(code, name, "exec"), {})  # the page is our own
    for part in "".join(blocks(page, "console")).split("$ optpart ")[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith(("strategy compare", "place")):
            command += " --time-limit 600"  # all ends long before, on any machine
        done = run(*shlex.split(command))
        assert done.code == 0, done.err
        if command.startswith("strategy"):
            assert_shown(done.out, shown)
        if command.startswith("import"):
            assert done.out == shown
        elif command.startswith("solve"):  # there may be several optimal schedules, or bounds
            until = ", traffic" if "OPTIMAL" in shown else ", lower bound"
            assert done.out.startswith(shown.partition(until)[0])
        elif command.startswith("apart") and "--check" not in command:  # plans may differ
            for each, line in zip(done.out.splitlines()[:2], shown.splitlines(), strict=False):
                assert each.partition(", first token")[0] == line.partition(", first token")[0]
                assert each.partition("; two save")[2] == line.partition("; two save")[2]
        elif command.startswith("recompute") and "--check" not in command:  # plans may differ
            printed, expected = (each.partition("\n")[0] for each in (done.out, shown))
            assert printed.rpartition(", ")[0] == expected.rpartition(", ")[0]
        elif command.startswith("place"):  # there may be several optimal plans
            assert done.out.startswith(shown.partition(", traffic")[0])
            speed = re.findall(r"^.* in the cost model.*$", done.out, re.MULTILINE)
            assert all(line in shown and len(line) <= 80 for line in speed)
            assert bool(speed) is (" in the cost model" in shown)


def test_other_pages_lead_here() -> None:
    for other in ("README.md", "docs/usage.md"):
        text = (FOLDER.parents[1] / other).read_text(encoding="utf-8")
        assert all(f"use/{name}" in text for name in PAGES)
