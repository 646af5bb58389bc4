"""Too few files, too little memory, and names that are no text: one line each, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Run

SCRIPT = "from optpart.__main__ import main; main()"


def limited(limit: str, *line: str) -> subprocess.CompletedProcess[str]:
    """Run ``optpart`` under a limit of the shell."""
    command = [
        "bash",
        "-c",
        f'ulimit {limit}; exec "$@"',
        "bash",
        sys.executable,
        "-P",
        "-c",
        SCRIPT,
    ]
    return subprocess.run([*command, *line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("method", ["cpsat", "minizinc"])
def test_without_files_for_a_process_the_answer_says_so(method: str) -> None:
    done = limited("-n 6", "solve", "heft-10", "-m", method, "--time-limit", "5")
    if "not installed" in done.stderr:
        pytest.skip("the command minizinc is not installed")
    assert done.returncode == 5
    assert "could not be started (Too many open files)" in done.stdout
    assert done.stderr.splitlines()[-1].startswith(f"optpart: {method} failed: ")
    assert "Traceback" not in done.stderr


def test_without_memory_for_libraries_it_is_one_line() -> None:
    done = limited("-v 400000", "solve", "heft-10", "-m", "search", "--time-limit", "60")
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1].startswith("optpart: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", ["solve {}", "solve heft-10 -m {}", "--plugin {} methods", "{}"])
def test_arguments_that_are_no_text_are_escaped(run: Run, line: str) -> None:
    shown = run(*line.format(os.fsdecode(b"x\xff")).split())
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert "\\udcff" in shown.err


def test_a_file_whose_name_is_no_text_is_read_and_written(run: Run, tmp_path: Path) -> None:
    result = tmp_path / os.fsdecode(b"r\xff.json")
    assert run("solve", "heft-10", "-m", "heft", "-o", result).code == 0
    assert run("verify", "heft-10", result).code == 0
