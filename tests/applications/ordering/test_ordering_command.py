"""``optpart ordering``."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from optpart import Cluster, Device, GraphBuilder, InputError, Instance
from optpart.applications.ordering.compare import Orders, compare_orders
from optpart.applications.ordering.efficiency import attainable
from optpart.commands.ordering import ordering, print_orders
from optpart.interop.formats import native
from optpart.solution.result import Budget, conclude
from optpart.study.report.console import plain_console

APP = typer.Typer()
APP.command()(ordering)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """[H] figure 2, with the worse transfer listed first."""
    builder = GraphBuilder()
    for name, time, device in (
        ("r2", 3, "channel"), ("r1", 3, "channel"), ("o1", 4, "worker"), ("o2", 2, "worker"),
    ):  # fmt: skip
        builder.vertex(name, time, devices=[device])
    builder.edge("r1", "o1", None).edge("o1", "o2", None).edge("r2", "o2", None)
    cluster = Cluster.of([Device("worker"), Device("channel")])
    path = tmp_path / "figure2.json"
    native.write(Instance(builder.build(), cluster, name="figure 2"), path)
    return path


def test_it_reports_the_attainable_efficiency(file: Path) -> None:
    answer = CliRunner().invoke(APP, [str(file), "--time-limit", "10", "--workers", "1"])
    assert answer.exit_code == 0
    lines = answer.stdout.splitlines()
    assert lines[0] == "figure 2: makespan from 6 (eq. 2) to 12 (eq. 1), S = 1.000"
    assert lines[1] == "optimal order proven: E* = 0.5000; it lies 50.00% above eq. 2"
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert rows["order"] == ["makespan", "E", "E/E*"]
    assert rows["tao"] == ["9", "0.5000", "1.0000"]
    assert rows["as-received"] == ["12", "0.0000", "0.0000"]


def test_an_order_without_a_schedule_is_no_gap_in_the_table(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instance = native.read(file)
    found = compare_orders(instance, Budget(10, 1))
    without = conclude(instance, "tio", None, reason="deadlock")
    found = replace(found, results={**found.results, "tio": without})
    print_orders(plain_console(), "x", found)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("tio")]
    assert row.split() == ["tio", "–", "–", "–", "no", "schedule:", "deadlock"]
    (listed,) = [row for row in found.rows() if row["order"] == "tio"]
    assert listed["makespan"] is listed["efficiency"] is listed["share_of_attainable"] is None
    assert listed["reason"] == "deadlock"


def test_where_no_order_is_found_nothing_is_infinite(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instance = native.read(file)
    without = conclude(instance, "cpsat", None, bound=Fraction(8), reason="time limit")
    print_orders(plain_console(), "x", Orders(attainable(without), {"cpsat": without}))
    assert "no order found: E* at most" in (out := capsys.readouterr().out)
    assert "inf" not in out


def test_measured_times_replace_those_of_the_instance(file: Path) -> None:
    times = file.with_name("times.csv")
    times.write_text("name,time\no1,1\nr1,1\n")
    options = [str(file), "--time-limit", "10", "--workers", "1", "--times", str(times), "--json"]
    answer = CliRunner().invoke(APP, options)
    document = json.loads(answer.stdout)
    assert (document["upper"], document["lower"]) == ("7", "4")
    assert document["optimal"]


def test_a_choice_of_devices_is_refused() -> None:
    answer = CliRunner().invoke(APP, ["heft-10"])
    assert isinstance(answer.exception, InputError)
    assert "may run on 3 devices" in str(answer.exception)
