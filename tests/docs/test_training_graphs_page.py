"""The page of training graphs runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commandline import Run

from optpart.applications.training import cluster_file, graph_file, profile
from optpart.interop.formats.json import parse_json

PAGE = (Path(__file__).parents[2] / "docs" / "training-graphs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def test_the_table_of_models_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (code,), (shown,) = blocks("python"), blocks("text")
    exec(compile(code, "training-graphs.md", "exec"), {})  # the page is our own
    assert capsys.readouterr().out == shown


def test_tables_are_fitted(run: Run, tmp_path: Path) -> None:
    times, links = tmp_path / "times.csv", tmp_path / "links.csv"
    for path, text in zip((times, links), blocks("csv"), strict=True):
        path.write_text(text)
    done = run("profile", "fit", times, links, "-o", tmp_path / "costs.json")
    assert done.code == 0, done.err
    costs = profile.read(tmp_path / "costs.json")
    assert set(costs.operations) == {("conv1_1", "v100-16gb")}
    assert set(costs.transfers) == {("v100-0", "v100-1")}


def test_files_are_read(tmp_path: Path) -> None:
    graph, costs = blocks("json")
    assert len(graph_file.from_dict(parse_json(graph))) == 3
    (tmp_path / "costs.json").write_text(costs)
    assert len(profile.read(tmp_path / "costs.json").operations) == 1


def test_every_key_is_described() -> None:
    section = PAGE.partition("## Training graph (JSON)")[2].partition("\n## ")[0]
    keys = graph_file._TOP | graph_file._OPERATION | graph_file._OUTPUT | graph_file._PARAMETER
    assert {key for key in keys if f"`{key}`" not in section and f"{{{key}" not in section} <= {
        "layout", "size",
    }  # fmt: skip
    assert all(f"`{key}`" in PAGE for key in (*profile._FIT, "determined"))


def test_all_clusters_are_listed() -> None:
    assert set(re.findall(r"^\| `(heterog-[^`]*)`", PAGE, re.MULTILINE)) == set(
        cluster_file.shipped()
    )
