"""A table finds its rows by name, and those that other packages add by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from commandline import Run

from optpart.base import registry as module
from optpart.base.errors import ArgumentError, PluginError
from optpart.base.registry import Registry
from optpart.interop.generate.registry import GENERATORS, Generator

OF_ANOTHER_PACKAGE = """
from optpart.interop.generate.registry import Generator
from optpart.interop.generate.families import tree

row = Generator("of_another_package:tree", "Draw a tree elsewhere.")
faulty = 5
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[Generator]:
    (tmp_path / "of_another_package.py").write_text(OF_ANOTHER_PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint(name, f"of_another_package:{attribute}", "trees")
        for name, attribute in (("fir", "row"), ("fft", "row"), ("bad", "faulty"), ("no", "none"))
    ]
    found = {point.name: point for point in points}
    monkeypatch.setattr(module, "points", lambda group: found if group == "trees" else {})
    return Registry("NAME", {"fft": GENERATORS["fft"]}, Generator, group="trees")


def test_rows_of_the_package_come_first_and_keep_their_names(table: Registry[Generator]) -> None:
    assert list(table) == ["fft", "fir", "bad", "no"]
    assert len(table) == 4
    assert table["fft"] is GENERATORS["fft"]


def test_a_row_of_another_package_is_loaded_when_it_is_asked_for(
    table: Registry[Generator],
) -> None:
    assert table.find("fir").summary == "Draw a tree elsewhere."


@pytest.mark.parametrize("name", ["bad", "no"])
def test_one_that_is_no_row_is_named(table: Registry[Generator], name: str) -> None:
    with pytest.raises(PluginError) as caught:
        table.find(name)
    assert caught.value.place == name


def test_an_unknown_name_lists_the_known_ones(table: Registry[Generator]) -> None:
    with pytest.raises(ArgumentError) as caught:
        table.find("frr")
    assert caught.value.place == "NAME"
    assert "fir" in caught.value.remedy
    assert "frr" not in table
    assert table.get("frr") is None


def test_a_command_uses_it(
    table: Registry[Generator], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    del table  # makes the module of the entry point
    monkeypatch.setattr(GENERATORS, "group", "trees")
    said = run("generate", "fir", "-o", tmp_path / "fir.json")
    assert said.code == 0, said.err
    assert (tmp_path / "fir.json").exists()
