"""Nothing that lies about is executed, and no settings that lie about count.

One folder is everything at once: where the program starts, where temporary files go, where the
instance and the plug-in are. In it lies a module of every name that could be imported, and each
leaves a mark when it is executed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from importlib.metadata import packages_distributions
from pathlib import Path
from shutil import which

import pytest

from optpart import load
from optpart.interop.formats import native

PLANTED = """
import os
with open(os.environ["MARK"], "a") as mark:
    mark.write(__name__ + "\\n")
raise RuntimeError(__name__)
"""

PLUGIN = """
import optpart
optpart.register("mine")(lambda instance, **_: optpart.solve(instance, "heft"))
"""

#: Like the script ``optpart``, which has its own folder on the path, but not the current one.
SCRIPT = ("-P", "-c", "from optpart.__main__ import main; main()")


#: Prints what ``python -m optpart`` imports before any of it can look after the path.
BEFORE = "import runpy, optpart, sys; print(*sys.modules)"


def plant(place: Path, *, but: Collection[str] = ()) -> Path:
    imported = {name.partition(".")[0] for name in sys.modules}
    by_itself = {"sitecustomize", "usercustomize", "optpart"}
    for name in {*sys.stdlib_module_names, *packages_distributions(), *imported, *by_itself}:
        if name.isidentifier() and name not in but:
            (place / f"{name}.py").write_text(PLANTED)
    distribution = place / "planted-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Name: planted\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text("[optpart.methods]\nplanted = planted:method\n")
    (place / ".numba_config.yaml").write_text("[this is no YAML")
    (place / "matplotlibrc").write_bytes(b"\xff is no text")
    (place / "globals.mzn").write_text("this is no MiniZinc")
    native.write(load("heft-10"), place / "i.json")
    native.write(load("laich-2.5"), place / "j.json")
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("planted"))


def run(folder: Path, line: str, start: tuple[str, ...] = SCRIPT) -> str:
    """Run ``optpart`` there, and return what it prints."""
    mark = folder / "mark"
    environment = {key: value for key, value in os.environ.items() if key[:6] != "PYTHON"}
    environment |= {"MARK": str(mark), "TMPDIR": str(folder)}
    command = [sys.executable, *start, *line.split()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_portfolio_proves_the_optimum_and_it_is_drawn(folder: Path) -> None:
    assert "OPTIMAL, makespan 73" in run(folder, "solve i.json --time-limit 100 -o r.json")
    run(folder, "plot r.json -o r.png")
    run(folder, "report r.json -o r.html")


def test_so_it_is_as_a_module_which_puts_the_folder_on_the_path(tmp_path: Path) -> None:
    before = subprocess.run([sys.executable, "-I", "-c", BEFORE], capture_output=True, text=True)
    plant(tmp_path, but=before.stdout.split())
    assert "OPTIMAL, makespan 73" in run(tmp_path, "solve i.json --time-limit 100",
                                         ("-m", "optpart"))  # fmt: skip


def test_every_solver_every_search_and_a_plugin(folder: Path) -> None:
    (folder / "plugin.py").write_text(PLUGIN)
    methods = ["cpsat", "search", "hybrid", "milp", "minizinc", "mine"]
    if which("minizinc") is None:
        methods.remove("minizinc")
    asked = " ".join(f"-m {name}" for name in methods)
    table = json.loads(
        run(folder, f"--plugin plugin.py gap i.json --time-limit 1 --workers 2 --json {asked}")
    )
    assert table["instances"][0]["reference"] == "73"
    assert [row["method"] for row in table["results"]] == methods
    assert not [row["reason"] for row in table["results"] if row["termination"] == "failed"]


def test_runs_of_dask(folder: Path) -> None:
    pytest.importorskip("distributed")
    table = json.loads(run(folder, "gap i.json -m heft --engine dask --workers 2 --json"))
    assert table["results"][0]["makespan"] == "80"


def test_bounds_certificates_and_programs(folder: Path) -> None:
    bounds = json.loads(run(folder, "bound i.json --time-limit 5 --json"))
    assert max(row["value"] for row in bounds["bounds"]) == "73"
    run(folder, "export i.json --to lp -o i.lp")
    pytest.importorskip("pysat")
    assert "is optimal" in run(folder, "certify j.json -o certificate")
