"""Bounds that go on: what is proven is kept at once, and what ended is not computed again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from optpart import Cluster, GraphBuilder, Instance, bounds
from optpart.base import clock
from optpart.base.errors import InputError
from optpart.commands.bound import bound as bound_command
from optpart.interop.formats import native
from optpart.lower_bounds.best import BOUNDS, Bound, LowerBound, largest
from optpart.methods.bounds_in_rounds import BoundsFile, bounds_in_rounds

app = typer.Typer()
app.command()(bound_command)
runner = CliRunner()


def chain(ops: int = 3) -> Instance:
    builder = GraphBuilder().vertex("a", 2, outputs=[1]).vertex("b", ops).edge("a", "b")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="chain")


@dataclass
class Worked:
    """Bounds that take the seconds they are said to, on a clock of their own."""

    time: float = 0.0
    limits: list[tuple[str, float]] = field(default_factory=list)

    def quick(self, instance: Instance, /, *, seconds: float, makespan: object) -> Fraction:
        self.limits.append(("quick", seconds))
        self.time += 1
        return Fraction(3)

    def slow(self, instance: Instance, /, *, seconds: float, makespan: object) -> Fraction:
        self.limits.append(("slow", seconds))
        self.time += seconds
        return Fraction(int(seconds), 100)

    def run(self, state: BoundsFile, seconds: float) -> Iterator[LowerBound]:
        rows = (Bound("quick", "cheap", self.quick), Bound("slow", "anytime", self.slow))
        return bounds_in_rounds(chain(), seconds, state, besides=rows, without=set(BOUNDS))


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Worked:
    made = Worked()
    monkeypatch.setattr(clock, "now", lambda: made.time)
    return made


def opened(path: Path) -> BoundsFile:
    state = BoundsFile(path)
    state.open(chain(), resume=True)
    return state


def test_what_has_not_ended_gets_twice_the_time_and_what_has_is_left_alone(
    worked: Worked, tmp_path: Path
) -> None:
    state = BoundsFile(tmp_path / "kept")
    values = [str(bound.value) for bound in worked.run(state, 200)]
    assert worked.limits == [("quick", 30), ("slow", 29), ("slow", 58), ("slow", 112)]
    assert values == ["3", "29/100", "29/50", "28/25"]
    assert state.can_go_on == ["slow"]


def test_a_run_that_is_killed_loses_nothing_that_was_proven(worked: Worked, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    killed = worked.run(BoundsFile(path), 200)
    next(killed)
    next(killed)  # and nothing is asked of it any more
    state = opened(path)
    assert {name: kept.bound.value for name, kept in state.kept.items()} == {
        "quick": 3,
        "slow": Fraction(29, 100),
    }
    worked.limits.clear()
    assert [bound.value for bound in worked.run(state, 90)] == [3, Fraction(58, 100)]
    assert worked.limits == [("quick", 30), ("slow", 58)]
    assert opened(path).seconds == 1 + 29 + 1 + 58


def test_what_a_file_says_is_claimed_until_it_is_proven_again(
    worked: Worked, tmp_path: Path
) -> None:
    path = tmp_path / "kept"
    list(worked.run(BoundsFile(path), 30))
    forged = json.loads(path.read_text())
    forged["bounds"][1]["value"] = "57.67"
    path.write_text(json.dumps(forged))
    state = opened(path)
    list(worked.run(state, 90))
    assert largest(state.found).value == 3
    (claim,) = state.claims
    assert str(claim).startswith(f"claimed by {path} (slow, optpart ")
    assert claim.lower_bound == Fraction("57.67")
    assert opened(path).kept["slow"].bound.value == Fraction("57.67")
    assert not opened(path).found


def test_that_there_is_no_schedule_is_only_claimed(worked: Worked, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    BoundsFile(path).add(chain(), LowerBound("slow", None, 9.0, 10.0))
    state = opened(path)
    list(worked.run(state, 90))
    assert None not in [bound.value for bound in state.found]
    assert [claim.infeasible for claim in state.claims] == [True]


def test_a_proof_as_good_leaves_no_claim(worked: Worked, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    list(worked.run(BoundsFile(path), 30))
    state = opened(path)
    list(worked.run(state, 30))
    assert [bound.name for bound in state.found] == ["quick"]
    assert not state.claims


def test_without_more_time_than_before_nothing_is_computed_again(
    worked: Worked, tmp_path: Path
) -> None:
    state = BoundsFile(tmp_path / "kept")
    assert len(list(worked.run(state, 30))) == 2
    assert not list(worked.run(state, 30))
    assert state.resumed(30).endswith("with 0.0 s left: to go on, give a time limit above 30.0 s")
    assert not list(worked.run(state, 59))
    assert [bound.value for bound in worked.run(state, 60)] == [Fraction(30, 100)]


def test_a_smaller_value_replaces_no_greater_one(tmp_path: Path) -> None:
    state = BoundsFile(tmp_path / "kept")
    state.add(chain(), LowerBound("slow", Fraction(5), 9.0, 10.0))
    assert state.add(chain(), LowerBound("slow", Fraction(4), 19.0, 20.0)).value == 5
    assert opened(tmp_path / "kept").kept["slow"].bound == LowerBound("slow", Fraction(5), 28.0)


def test_what_proves_that_there_is_no_schedule_is_kept(tmp_path: Path) -> None:
    state = BoundsFile(tmp_path / "kept")
    state.add(chain(), LowerBound("slow", Fraction(5), 9.0, 10.0))
    state.add(chain(), LowerBound("slow", None, 9.0, 10.0))
    assert opened(tmp_path / "kept").kept["slow"].bound.value is None
    assert state.can_go_on == []


def test_a_file_that_exists_is_overwritten_only_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("precious")
    with pytest.raises(InputError, match="exists"):
        bounds(chain(), checkpoint=tmp_path / "kept")
    with pytest.raises(InputError):
        bounds(chain(), checkpoint=tmp_path / "kept", resume=True)
    assert (tmp_path / "kept").read_text() == "precious"
    with pytest.raises(InputError, match="no checkpoint to resume from"):
        bounds(chain(), resume=True)


_ROW = {"bound": "slow", "value": "5", "seconds": 9, "limit": 10, "ended": True}


@pytest.mark.parametrize(
    "change",
    [
        {"bounds": [_ROW | {"seconds": "nan"}]},
        {"bounds": [_ROW | {"limit": -1}]},
        {"bounds": [_ROW | {"bound": 5}]},
        {"bounds": {}},
        {"code": 5},
        {"instance_sha256": "0"},
    ],
)
def test_a_file_that_makes_no_sense_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "kept"
    BoundsFile(path).add(chain(), LowerBound("slow", Fraction(5), 9.0, 10.0))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match="kept"):
        opened(path)


def test_bounds_of_another_instance_are_refused(tmp_path: Path) -> None:
    BoundsFile(tmp_path / "kept").add(chain(), LowerBound("slow", Fraction(5), 9.0, 10.0))
    with pytest.raises(InputError, match="another instance"):
        BoundsFile(tmp_path / "kept").open(chain(ops=4), resume=True)


def test_bounds_of_other_code_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "optpart.methods.bounds_in_rounds.fingerprint"
    with monkeypatch.context() as earlier:
        earlier.setattr(code, lambda method: "optpart 1")
        BoundsFile(tmp_path / "kept").add(chain(), LowerBound("slow", Fraction(5), 9.0, 10.0))
    state = opened(tmp_path / "kept")
    assert state.resumed(30).endswith("; bounds in it are by other code, optpart 1")
    state.add(chain(), LowerBound("slow", Fraction(4), 9.0, 20.0))
    assert opened(tmp_path / "kept").kept["slow"].code == "optpart 1"
    state.add(chain(), LowerBound("slow", Fraction(6), 9.0, 20.0))
    assert opened(tmp_path / "kept").kept["slow"].code != "optpart 1"


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    document = {
        "format": "optpart-bounds/1",
        "instance_sha256": chain().sha256,
        "code": "optpart 1",
    }
    former = document | {"bounds": [_ROW], "sha256": "a digest that proves nothing"}
    (tmp_path / "kept").write_text(json.dumps(former))
    assert opened(tmp_path / "kept").kept["slow"].code == "optpart 1"


def test_a_file_that_cannot_be_written_stops_no_bound(worked: Worked, tmp_path: Path) -> None:
    warned: list[InputError] = []
    state = BoundsFile(tmp_path / "no" / "where", warned.append)
    assert len(list(worked.run(state, 200))) == 4
    assert len(warned) == 1
    assert state.fault is not None


def test_the_command_keeps_bounds_and_goes_on(tmp_path: Path) -> None:
    native.write(chain(), tmp_path / "chain.json")
    kept = ["--checkpoint", str(tmp_path / "kept")]
    command = [str(tmp_path / "chain.json"), "--time-limit", "20", *kept]
    ended = runner.invoke(app, command)
    assert ended.exit_code == 0, ended.output
    assert "best: 5" in ended.stdout
    assert "spent in all" in ended.stdout
    assert isinstance(runner.invoke(app, command).exception, InputError)
    ended = runner.invoke(app, [*command, "--resume", "--json"])
    document = json.loads(ended.stdout)
    assert "resumed after" in ended.stderr
    assert {row["value"] for row in document["bounds"]} == {"5"}
    assert document["claimed"] == []
    assert document["checkpoint"]["seconds"] > 0
    kept_by_file = json.loads((tmp_path / "kept").read_text())
    kept_by_file["bounds"][0]["value"] = "57.67"
    (tmp_path / "kept").write_text(json.dumps(kept_by_file))
    ended = runner.invoke(app, [*command, "--resume"])
    assert "best: 5, by" in ended.stdout
    assert f"lower bound 57.67 claimed by {tmp_path / 'kept'} (critical-path, " in ended.stdout
