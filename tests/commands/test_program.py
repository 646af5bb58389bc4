"""The program itself: its table of commands, version, completion, and methods from a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Run

from optpart.commands import registry as commands
from optpart.methods import registry

PLUGIN = """
from optpart import conclude, register, retime

@register("all-on-first", "everything on device 0")
def all_on_first(instance, *, budget=None, seed=0, start=None, watch=None):
    order = instance.graph.topological_order.tolist()
    schedule = retime(instance, [0] * instance.vertices, order)
    return conclude(instance, "all-on-first", schedule, seed=seed)
"""


def test_every_module_of_a_command_is_in_the_table() -> None:
    folder = Path(commands.__file__).parent
    shared = {"__init__", "instances", "options", "registry", "results"}
    shared.add("strategy.__init__")
    rows = [*commands.COMMANDS.values(), *commands.GROUPS.values()]
    listed = {row.partition(":")[0] for row in rows}
    paths = (path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py"))
    assert listed == {".".join(path.parts) for path in paths} - shared


@pytest.mark.parametrize("name", list(commands.COMMANDS))
def test_every_command_has_a_help_text(name: str) -> None:
    assert commands.command(name).__doc__


def test_the_help_page_imports_no_solver() -> None:
    code = (
        "import optpart.cli, sys;"
        "print(sorted({'numpy', 'ortools', 'numba', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_version(run: Run) -> None:
    from optpart import __version__

    shown = run("--version")
    assert (shown.code, shown.out) == (0, f"optpart {__version__}\n")


def test_the_package_runs_as_the_program() -> None:
    command = [sys.executable, "-P", "-m", "optpart", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("optpart ")


def test_shells_complete_the_names_of_commands() -> None:
    asked = {
        "_OPTPART_COMPLETE": "complete_bash",
        "COMP_WORDS": "optpart so",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from optpart.cli import main; main()"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["solve"]


class TestPlugin:
    @pytest.fixture
    def plugin(self, tmp_path: Path) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(PLUGIN)
        return path

    def test_its_methods_are_listed(self, run: Run, plugin: Path) -> None:
        shown = run("--plugin", plugin, "methods")
        assert shown.code == 0
        assert shown.out.splitlines()[-1].split() == [
            "all-on-first", "own", "everything", "on", "device", "0",
        ]  # fmt: skip

    def test_they_solve(self, run: Run, plugin: Path) -> None:
        shown = run("--plugin", plugin, "solve", "heft-10", "-m", "all-on-first")
        assert shown.code == 0
        assert shown.out.startswith("heft-10: FEASIBLE, makespan 127, lower bound 73")

    def test_they_are_in_the_table_by_default(self, run: Run, plugin: Path) -> None:
        shown = run("--plugin", plugin, "gap", "graham-1969-4", "--csv")
        assert shown.code == 0
        assert ",all-on-first," in shown.out

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (None, "no such file; name a file that exists"),
            ("x = = 1", "line 1: cannot be loaded (SyntaxError: invalid syntax); fix the file"),
            ("\n1 / 0", "line 2: cannot be loaded (ZeroDivisionError: division by zero); "),
            ("import sys; sys.exit(0)", "line 1: cannot be loaded (SystemExit: 0); fix"),
            ("open('nowhere')", "line 1: cannot be loaded (FileNotFoundError: "),
            ("x = 1", "registers no method; call optpart.register in it"),
            (
                PLUGIN.replace("all-on-first", "cpsat"),
                "cpsat: already the name of a built-in method; choose another name",
            ),
            (
                PLUGIN.replace("all-on-first", "hash+fifo"),
                "hash+fifo: already the name of a built-in method; choose another name",
            ),
        ],
    )
    def test_an_invalid_file_is_reported_in_one_line(
        self, run: Run, tmp_path: Path, text: str | None, problem: str
    ) -> None:
        path = tmp_path / "mine.py"
        if text is not None:
            path.write_text(text)
        shown = run("--plugin", path, "methods")
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.count("\n") == 1
        assert shown.err.startswith("optpart: ")
        assert problem in shown.err.replace(str(path), "")
        assert not registry.own()

    def test_a_file_that_is_not_python_is_reported_in_one_line(
        self, run: Run, tmp_path: Path
    ) -> None:
        shown = run("--plugin", tmp_path, "methods")
        assert shown.code == 2
        assert "not a Python file; give a file FILE.py" in shown.err
