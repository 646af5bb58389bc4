"""The first commands that somebody tries load only what they need.

Which libraries a command loads is the specification: those below take longer to load than these
commands take.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = {"networkx", "scipy", "pandas", "ortools", "numba", "highspy", "matplotlib"}

SCRIPT = """
import atexit, json, sys
asked = json.loads(sys.argv[1])
sys.argv = ["optpart", *asked]
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from optpart.cli import main
main()
"""


def loaded(*line: str) -> set[str]:
    """Return the modules that a command line loads."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, json.dumps(line)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {*done.stderr.splitlines()[-1].split()}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from optpart import load, save, solve

    path = tmp_path_factory.mktemp("start") / "result.json"
    save(solve(load("heft-10"), "heft"), path)
    return path


def test_the_package_loads_no_library() -> None:
    code = "import optpart, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert not {*done.stdout.split()} & (SLOW | {"numpy", "typer", "rich"})


def test_the_list_of_methods_loads_no_numbers() -> None:
    assert not loaded("methods") & (SLOW | {"numpy"})


def test_the_list_of_the_library_loads_neither_numbers_nor_tables() -> None:
    assert not loaded("gap", "--list") & (
        SLOW | {"numpy", "optpart.problem", "optpart.solution.result"}
    )


def test_verification_loads_no_solver(result: Path) -> None:
    found = loaded("verify", "heft-10", str(result))
    assert not found & SLOW
    assert not {name for name in found if name.startswith(("optpart.bounds", "optpart.exact"))}


def test_a_small_instance_is_solved_without_compiled_code() -> None:
    """The solver's libraries are loaded by its own process, while this one prepares the job."""
    assert not loaded("solve", "heft-10") & SLOW


def test_heuristics_on_a_small_instance_are_not_compiled() -> None:
    code = (
        "import sys; from optpart import load; from optpart.methods import registry;"
        "assert all(registry.get(name)(load('heft-10')).schedule for name in registry.starts());"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert not {*done.stdout.split()} & SLOW
