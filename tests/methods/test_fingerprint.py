"""Two runs have the same fingerprint only if the same code made them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import optpart as op
from optpart.methods import fingerprint as fingerprints
from optpart.methods import registry
from optpart.methods.fingerprint import code_of, differing, fingerprint
from optpart.methods.parts import METHODS, PARTITIONERS
from optpart.methods.plugins import load_plugin

ROOT = Path(registry.__file__).parents[2]

PLUGIN = """
from optpart import register

TIMES = 0

@register("mine", kind="partitioner")
def mine(instance, rng):
    return [TIMES] * instance.vertices
"""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.startswith("of_a_test"):
            del sys.modules[name]


def of_file(path: Path, text: str = PLUGIN, method: str = "mine+pct") -> str:
    """Write a plug-in, load it as a new process would, and return the fingerprint of a method."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    for kind, name, *_ in registry.registered():
        registry.forget(name, kind)
    for name in [name for name in sys.modules if name.startswith("of_a_test")]:
        del sys.modules[name]
    load_plugin(path)
    return fingerprint(method)


class TestBuiltIn:
    def test_a_heuristic_counts_with_what_compiles_it(self) -> None:
        parts = dict(part.split(" ") for part in fingerprint("heft").split(", "))
        assert sorted(parts) == ["numba", "numpy", "optpart", "python"]
        assert fingerprint("heft") == fingerprint("hash+pct")

    def test_a_solver_counts_with_its_libraries(self) -> None:
        assert {"ortools", "highspy", "pulp"} < {
            part.split(" ")[0] for part in fingerprint("cpsat").split(", ")
        }

    def test_another_version_of_a_library_is_other_code(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = fingerprint("cpsat")
        version = fingerprints._version
        monkeypatch.setattr(
            fingerprints, "_version", lambda name: "0" if name == "ortools" else version(name)
        )
        assert differing(before, fingerprint("cpsat")) == "ortools 0"

    def test_rules_of_a_file_count(self, tmp_path: Path) -> None:
        rules = tmp_path / "rules.csv"
        rules.write_text("pattern,device\n*,0\n")
        before = fingerprint(f"expert:{rules}+pct")
        assert fingerprint(f"expert:{rules}+pct") == before
        rules.write_text("pattern,device\n*,1\n")
        assert fingerprint(f"expert:{rules}+pct") != before

    def test_what_lies_above_the_methods_does_not_count(self) -> None:
        """And nothing else is left out: layers are a contract."""
        with open(ROOT / "pyproject.toml", "rb") as file:
            layers = tomllib.load(file)["tool"]["importlinter"]["contracts"][0]["layers"]
        above = layers[: layers.index("optpart.methods")]
        names = {name.strip().removeprefix("optpart.") for row in above for name in row.split(":")}
        assert {name.removesuffix(".py") for name in fingerprints.ABOVE} == names | {"__main__"}
        files = {str(path.relative_to(ROOT)) for path in fingerprints.sources_of_methods()}
        assert {
            "optpart/lower_bounds/load.py",
            "optpart/base/files.py",
            "optpart/kernels/rng.py",
        } < files
        assert not {"optpart/api.py", "optpart/study/gap.py"} & files

    def test_no_library_is_loaded_for_it(self) -> None:
        code = (
            "import sys; from optpart.methods.fingerprint import fingerprint;"
            "fingerprint('cpsat'); print(*sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
        )
        assert not {*done.stdout.split()} & {"numpy", "numba", "ortools", "scipy", "networkx"}

    def test_only_runs_that_are_kept_have_one(self) -> None:
        code = "import sys, optpart.study.run; print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
        )
        assert "optpart.methods.fingerprint" not in done.stdout.split()


class TestPluginFile:
    def test_is_the_same_in_another_folder(self, tmp_path: Path) -> None:
        assert of_file(tmp_path / "a" / "mine.py") == of_file(tmp_path / "b" / "mine.py")

    def test_a_change_is_other_code(self, tmp_path: Path) -> None:
        before = of_file(tmp_path / "mine.py")
        assert of_file(tmp_path / "mine.py", PLUGIN.replace("* inst", "* 1 * inst")) != before

    def test_built_in_methods_are_not_concerned(self, tmp_path: Path) -> None:
        before = fingerprint("heft")
        assert of_file(tmp_path / "mine.py", method="heft") == before

    @pytest.mark.parametrize("line", ["import of_a_test", "from of_a_test import K"])
    def test_what_it_imports_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
    ) -> None:
        monkeypatch.syspath_prepend(tmp_path)
        package = tmp_path / "of_a_test"
        package.mkdir()
        (package / "__init__.py").write_text("from .sub.deep import K")
        (package / "sub").mkdir()
        (package / "sub" / "__init__.py").write_text("")
        (package / "sub" / "deep.py").write_text("K = 1")
        (package / "unused.py").write_text("")
        text = f"{line}\n{PLUGIN}"
        before = of_file(tmp_path / "mine.py", text)
        assert of_file(tmp_path / "mine.py", text) == before
        (package / "unused.py").write_text("U = 1")
        assert of_file(tmp_path / "mine.py", text) == before
        (package / "sub" / "deep.py").write_text("K = 2")
        assert of_file(tmp_path / "mine.py", text) != before

    def test_a_value_from_the_command_line_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = PLUGIN.replace("TIMES = 0", "import os; TIMES = int(os.environ['OF_A_TEST'])")
        found = set()
        for value in "0", "1", "0":
            monkeypatch.setenv("OF_A_TEST", value)
            found.add(of_file(tmp_path / "mine.py", text))
        assert len(found) == 2

    def test_a_file_changed_since_it_was_loaded_fits_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.py"
        before = of_file(path)
        path.write_text(PLUGIN + "# another\n")
        os.utime(path, ns=(PARTITIONERS["mine"].since + 10**9,) * 2)
        assert len({before, fingerprint("mine+pct"), fingerprint("mine+pct")}) == 3


class TestFunctions:
    @staticmethod
    def of(function: Callable[..., Any]) -> str:
        return code_of(function, 2**63)

    @staticmethod
    def typed(text: str) -> Callable[..., Any]:
        """Define a function as in a notebook: there is no file."""
        scope: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text, "<input>", "exec"), scope)
        function: Callable[..., Any] = scope["f"]
        return function

    def test_what_was_typed_fits_nothing(self) -> None:
        assert self.of(self.typed("def f(x): return 1")) != self.of(
            self.typed("def f(x): return 1")
        )

    def test_values_in_closures_and_arguments_count(self) -> None:
        def made(times: int) -> Callable[..., Any]:
            return lambda instance, rng: [times] * instance.vertices

        assert self.of(made(0)) == self.of(made(0))
        assert self.of(made(0)) != self.of(made(1))
        assert self.of(partial(made, 0)) != self.of(partial(made, 1))
        assert self.of(partial(made, times=0)) != self.of(partial(made, times=1))

    def test_the_state_of_an_object_counts(self) -> None:
        assert self.of(Constant(0)) == self.of(Constant(0))
        assert self.of(Constant(0)) != self.of(Constant(1))
        assert self.of(Constant(0).__call__) != self.of(Constant(1).__call__)

    def test_what_cannot_be_identified_fits_nothing(self) -> None:
        assert self.of(Constant(open(os.devnull))) != self.of(Constant(open(os.devnull)))  # noqa: SIM115


class Constant:
    """A strategy with a parameter."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __call__(self, instance: op.Instance, rng: object) -> list[int]:
        return [0] * instance.vertices


def offer(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let another package offer the method ``elsewhere``."""
    points = {METHODS.group: {"elsewhere": EntryPoint("elsewhere", place, METHODS.group)}}
    monkeypatch.setattr("optpart.base.registry.points", lambda group: points.get(group, {}))


class TestEntryPoint:
    @pytest.fixture
    def plugged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[str], ModuleType]:
        monkeypatch.syspath_prepend(tmp_path)
        offer(monkeypatch, "of_a_test:method")

        def write(text: str) -> ModuleType:
            sys.modules.pop("of_a_test", None)
            (tmp_path / "of_a_test.py").write_text(text)
            registry.get("elsewhere")
            return import_module("of_a_test")

        return write

    def test_its_module_counts(self, plugged: Callable[[str], ModuleType]) -> None:
        found = []
        for text in ("A = 1", "A = 2000", "A = 1"):
            plugged(f"{text}\ndef method(instance, **_): return A")
            found.append(fingerprint("elsewhere"))
        assert found[0] == found[2] != found[1]

    def test_one_that_cannot_be_loaded_has_one_as_well(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        offer(monkeypatch, "of_a_test_that_is_missing:method")
        assert "method elsewhere cannot be loaded" in fingerprint("elsewhere")
