"""Every example on the page of file formats is read by the real reader."""

from __future__ import annotations

import json
import re
from pathlib import Path

from optpart.applications.ordering import oracle
from optpart.interop.costs.from_csv import from_csv
from optpart.interop.formats import (
    attributes,
    calibration_toml,
    cluster_toml,
    dot,
    llm_experts,
    native,
    result,
    times_csv,
)
from optpart.interop.formats.json import parse_json
from optpart.search import checkpoint
from optpart.study.report.verification import check_result

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
INSTANCE, RESULT, CLUSTER, COSTS, TIMES, USES, BY_DEVICE = (text for _, text in BLOCKS)


def test_the_page_shows_one_example_of_each_format() -> None:
    assert [kind for kind, _ in BLOCKS] == ["json", "json", "toml", *["csv"] * 4]


def test_the_instance_is_read() -> None:
    instance = native.from_dict(parse_json(INSTANCE))
    assert instance.vertices == 4
    assert instance.delay(0, 0, 1) == instance.delay(0, 1, 0) == 2.5
    assert instance.delay(2, 0, 1) == 3


def test_the_result_is_valid_for_the_instance(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(RESULT)
    instance = native.from_dict(parse_json(INSTANCE))
    assert check_result(instance, path).violations == ()


def test_the_least_result_that_verify_accepts(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    document = json.loads(RESULT)
    least = {key: document[key] for key in ("format", "status", "schedule")}
    path.write_text(json.dumps({**least, "status": "FEASIBLE"}))
    instance = native.from_dict(parse_json(INSTANCE))
    assert check_result(instance, path).violations == ()


def test_the_cluster_is_read() -> None:
    cluster = cluster_toml.loads(CLUSTER)
    assert cluster.names == ("cpu", "gpu0", "gpu1")
    assert cluster.infinite[1, 2]
    assert cluster.infinite[2, 1]
    assert cluster.bandwidth[0, 1] == 25


def test_the_costs_fit_the_instance(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(COSTS)
    graph = native.from_dict(parse_json(INSTANCE)).graph
    assert from_csv(graph, path).memory.fractions() == [4, 0, 0.5, 0]


def test_the_least_measured_time_counts(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(TIMES)
    assert oracle.read_times(path)["load"] == 3


def test_the_graph_in_dot_is_read(tmp_path: Path) -> None:
    path = tmp_path / "two.dot"
    path.write_text("digraph" + PAGE.partition("\n    digraph")[2].partition("\n    }")[0] + "\n}")
    graph = dot.read(path).graph
    assert graph.names == ("load", "join", "check")
    assert graph.tensor_size.fractions() == [50, 20, 10]


def listed(heading: str) -> set[str]:
    """The keys in the first column of the tables under a heading."""
    section = PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]*)`", row)}


def test_every_key_is_described() -> None:
    assert listed("Instance") == native._TOP | native._VERTEX | native._OUTPUT | (
        native._DEVICE | native._MODEL
    )
    assert listed("Result") == result._TOP | result._SCHEDULE | result._TRANSFER
    assert listed("Cluster") == cluster_toml._TOP | cluster_toml._DEVICE | cluster_toml._LINK
    assert listed("Calibration") == calibration_toml._TOP | set(calibration_toml._FIT)
    assert listed("Graphs") == {*attributes._NODE, *attributes._EDGE, *attributes._GRAPH}
    section = PAGE.partition("## Checkpoint")[2]
    assert all(f"`{key}`" in section for key in checkpoint._KEYS - {"format"})


def test_the_times_by_device_are_read(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(BY_DEVICE)
    assert times_csv.read(path, "gpu").times == {"load": (12500, 11250), "right": (230000,)}
    assert times_csv.read(path, "cpu").times == {"load": (400000, 380000)}


def test_uses_of_experts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "use.csv"
    path.write_text(USES)
    assert llm_experts.use_of(path, (4, 2), 2, 1).groups(1)[0].used == 2
