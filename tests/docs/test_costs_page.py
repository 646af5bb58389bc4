"""What the page on costs shows runs as it stands, and its table is that of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from optpart.interop.costs.efficiency import defaults
from optpart.interop.costs.registry import SOURCES
from optpart.interop.formats import calibration_toml, cluster_toml

PAGE = (Path(__file__).parents[2] / "docs" / "costs.md").read_text(encoding="utf-8")
CLUSTER, TABLE, CODE, TIMES, MEASURED, SENSITIVITY = re.findall(
    r"^```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


def rows(heading: str) -> list[list[str]]:
    text = PAGE.partition(heading)[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line]


def test_the_cluster_is_read() -> None:
    named = cluster_toml.loads_named(CLUSTER)
    assert named.cluster.names == ("gpu0", "gpu1", "cpu")
    assert named.cluster.memory[2] == 64 * 10**9
    assert None not in named.specs


def test_every_source_is_listed() -> None:
    assert [row[0].strip("`") for row in rows("|---|---|---|\n")] == list(SOURCES)


def test_the_efficiencies_are_those_of_the_code() -> None:
    table = {row[0].strip("`"): row[1:3] for row in rows("|---|---|---|---|\n")}
    assert table.pop("free") == ["", ""]
    assert {name: [float(x) for x in parts] for name, parts in table.items()} == {
        name: [float(part.compute), float(part.bandwidth)]
        for name, part in defaults().classes.items()
    }


def test_the_calibration_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("measurements.csv").write_text(TABLE)
    exec(CODE, {})
    assert capsys.readouterr().out.startswith("median error ")
    assert set(calibration_toml.read("my-gpu.toml").classes) == {"contraction", "elementwise"}


def test_the_measured_times_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("times.csv").write_text(TIMES)
    Path("devices.toml").write_text(CLUSTER)
    names: dict[str, Any] = {}
    exec(MEASURED, names)
    assert "gpu: 2 of 2 operations measured; the median of" in capsys.readouterr().out
    instance = names["made"].instance
    assert [[instance.duration(v, d) for d in range(3)] for v in range(2)] == [
        [11875, 11875, 390_000],
        [230_000, 230_000, 9_100_000],
    ]


def test_the_sensitivity_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(SENSITIVITY, {})
    out = capsys.readouterr().out
    assert out.startswith("median ")
    assert out.endswith("never more than 50% above the optimum\n")
