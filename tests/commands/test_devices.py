"""``optpart devices`` shows the library, as text and as JSON."""

from __future__ import annotations

import json

import pytest
from commandline import Run

from optpart.interop.devices import library


def test_lists_every_device_and_link_in_80_columns(run: Run) -> None:
    shown = run("devices")
    assert shown.code == 0
    lines = shown.out.splitlines()
    first = {line.split()[0] for line in lines if line}
    assert first >= library.devices().keys() | library.links().keys()
    assert max(map(len, lines)) <= 80


def test_a_row_holds_the_figures(run: Run) -> None:
    rows = {line.split()[0]: line.split() for line in run("devices").out.splitlines() if line}
    assert rows["rtx-3090"][1:] == ["GPU", "35.6", "71", "71", "284", "936", "24", "GiB"]
    assert rows["epyc-7763"][1:] == ["CPU", "5.018", "-", "-", "-", "204.8", "-"]
    assert rows["h200"][-2:] == ["141", "GB"]
    assert rows["pcie-4-x16"][1:] == ["31.51", "28.81", "10", "us"]


@pytest.mark.parametrize("name", ["rtx-3090", "xeon-8380", "ethernet-1g"])
def test_one_entry_comes_with_its_source(run: Run, name: str) -> None:
    shown = run("devices", name)
    assert shown.out.startswith(f"{name}: ")
    known = {**library.devices(), **library.links()}
    assert known[name].source in shown.out
    assert "(assumed)" in shown.out


def test_json_is_in_nanoseconds_and_bytes(run: Run) -> None:
    document = json.loads(run("devices", "--json").out)
    assert [entry["name"] for entry in document["devices"]] == list(library.devices())
    assert [entry["name"] for entry in document["links"]] == list(library.links())
    one = json.loads(run("devices", "t4", "--json").out)
    assert (one["peak"]["float32"], one["memory"], one["overhead"]) == (8100, 2**34, 5000)
    assert json.loads(run("devices", "pcie-4-x16", "--json").out)["nominal"] == "2048/65"


def test_an_unknown_name_suggests_the_nearest(run: Run) -> None:
    shown = run("devices", "rtx3090")
    assert shown.code == 2
    assert shown.err.startswith("optpart: NAME: no device or link 'rtx3090' in the library; did")
    assert "rtx-3090" in shown.err
