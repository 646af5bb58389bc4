"""All kernels are known, and are have types, so that they can be compiled ahead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import optpart
from optpart.kernels import all as kernels
from optpart.kernels import machine_code, store
from optpart.kernels.compiled import INNER
from optpart.kernels.struct import hints

ROOT = Path(optpart.__file__).parent

FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{module}.{each.py_func.__name__}": each.py_func
    for module in kernels.MODULES
    for each in kernels.of(module)
}


def decorated(decorators: str) -> set[str]:
    """Return the modules of the package with a function that has one of the decorators."""
    return {
        ".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts))
        for path in ROOT.rglob("*.py")
        if re.search(rf"^@({decorators})$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_every_module_with_kernels_is_known() -> None:
    assert decorated("kernel|short_kernel|long_kernel") == {*kernels.MODULES}
    assert len({*kernels.MODULES}) == len(kernels.MODULES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_kernel_has_types_and_is_of_readable_size(name: str) -> None:
    function = FUNCTIONS[name]
    assert {*hints(function)} == {*inspect.signature(function).parameters}
    for hint in hints(function).values():
        machine_code.kind(hint)
    assert len(hints(function)) <= 8
    lines = len(inspect.getsource(function).splitlines())
    assert lines <= 80 or "invariant" in (function.__doc__ or "").lower()


def test_no_function_that_kernels_call_has_many_parameters() -> None:
    for module in decorated("inner"):
        for name, each in vars(import_module(module)).items():
            if each in INNER:
                assert len(inspect.signature(each).parameters) <= 8, f"{module}.{name}"


def test_another_state_of_the_package_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(store.VARIABLE, str(tmp_path))
    assert not kernels.is_ready()
    store.save(kernels.stamp(), kernels.MODULES)
    assert kernels.is_ready()
    kernels.stamp.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(store, "versions", lambda: ("another", "version"))
        assert not kernels.is_ready()
    kernels.stamp.cache_clear()
    assert kernels.is_ready()


@pytest.mark.parametrize("writable", [True, False])
def test_what_is_compiled_behind_a_run_is_said_once_and_only_begun_if_it_can_be_kept(
    writable: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / ("folder" if writable else "file/folder")
    monkeypatch.setenv(store.VARIABLE, str(folder))
    monkeypatch.setenv("OPTPART_OTHERS_COMPILE", "")
    monkeypatch.delenv("OPTPART_OTHERS_COMPILE")
    begun: list[Any] = []
    monkeypatch.setattr(kernels.subprocess, "Popen", lambda *given, **_: begun.append(given))
    assert not kernels.expect()
    assert not kernels.expect()
    assert len(begun) == writable
    said = caplog.messages
    assert len(said) == 1
    assert ("behind this run" in said[0]) == writable
