"""The native result format: schedules are read again as written, and every fault is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from optpart import Cluster, GraphBuilder, InputError, Instance, Model, Schedule, retime
from optpart.interop.formats import result as results
from optpart.interop.formats.json import parse_json
from optpart.solution.result import Progress, Result, Status, conclude
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.testing.solutions import Step
from optpart.testing.strategies import solutions


def instance() -> Instance:
    """A tensor, then a control signal, cross from d0 to d1; all ends at 29/3."""
    builder = GraphBuilder().vertex("a", 10, outputs=[5]).vertex("b", 10).vertex("c", 4)
    builder.edge("a", "b").edge("a", "c", None)
    return Instance(builder.build(), Cluster.uniform(2, speed=3, bandwidth="5/3"), name="tiny")


def solved(**options: Any) -> Result:
    tiny = instance()
    return conclude(tiny, "by hand", retime(tiny, [0, 1, 1], [0, 1, 2]), **options)


def same(first: Schedule, second: Schedule) -> bool:
    return (
        first.placement.tolist() == second.placement.tolist()
        and first.start.fractions() == second.start.fractions()
        and first.transfers.tensor.tolist() == second.transfers.tensor.tolist()
        and first.transfers.target.tolist() == second.transfers.target.tolist()
        and first.transfers.start.fractions() == second.transfers.start.fractions()
        and first.transfers.end.fractions() == second.transfers.end.fractions()
    )


class TestWriting:
    def test_every_key(self) -> None:
        trace = (
            Progress(0.0100000001, None, Fraction(4)),
            Progress(0.12, Fraction(11), Fraction(9)),
        )
        result = solved(bound=Fraction(9), seconds=0.5, seed=7, workers=2, trace=trace)
        document = json.loads(results.dumps(result))
        versions = document.pop("versions")
        assert document == {
            "format": "optpart-result/1",
            "instance": "tiny",
            "instance_sha256": instance().sha256,
            "method": "by hand",
            "status": "FEASIBLE",
            "makespan": "11",
            "lower_bound": "9",
            "gap": 2 / 11,
            "traffic": "5",
            "seconds": 0.5,
            "seed": 7,
            "workers": 2,
            "termination": "completed",
            "reason": "",
            "schedule": {
                "placement": {"a": "d0", "b": "d1", "c": "d1"},
                "start": {"a": "0", "b": "19/3", "c": "29/3"},
                "transfers": [
                    {"tensor": ["a", 0], "to": "d1", "start": "10/3", "end": "19/3"},
                    {"tensor": ["a", None], "to": "d1", "start": "10/3", "end": "10/3"},
                ],
            },
            "trace": [[0.01, None, "4"], [0.12, "11", "9"]],
        }
        assert versions["optpart"]
        assert versions["python"]

    def test_optimal_is_what_is_proven(self) -> None:
        document = results.to_dict(solved(bound=Fraction(11)))
        assert (document["status"], document["gap"]) == ("OPTIMAL", 0.0)

    def test_a_result_without_a_schedule(self, tmp_path: Path) -> None:
        result = conclude(instance(), "by hand", None, infeasible="b has no device")
        results.write(result, tmp_path / "result.json")
        document = results.read_document(tmp_path / "result.json")
        assert document["status"] == "INFEASIBLE"
        assert document["reason"] == "b has no device"
        assert document["schedule"] is document["makespan"] is document["gap"] is None
        with pytest.raises(InputError, match="schedule: missing; give a result with a schedule"):
            results.read_schedule(tmp_path / "result.json", instance())

    def test_a_schedule_that_is_refused_is_not_written(self) -> None:
        tiny = instance()
        broken = retime(tiny, [0, 1, 1], [0, 1, 2])
        broken = Schedule(np.array([0, 0, 1], dtype=np.int32), broken.start, broken.transfers)
        result = conclude(tiny, "by hand", broken)
        assert result.status is Status.UNKNOWN
        assert result.reason.startswith("its schedule is not valid: transfers: ")
        assert results.to_dict(result)["schedule"] is None


class TestReading:
    @given(solutions(communication="sendrecv"))
    def test_what_was_written(
        self, solution: tuple[Instance, NDArray[np.int32], list[Step]]
    ) -> None:
        drawn, placement, order = solution
        result = conclude(drawn, "by hand", retime(drawn, placement, order))
        assert result.schedule is not None
        document = parse_json(results.dumps(result))
        assert same(results.schedule_from_dict(document["schedule"], drawn), result.schedule)

    def test_through_a_file(self, tmp_path: Path) -> None:
        result = solved()
        results.write(result, tmp_path / "result.json")
        schedule = results.read_schedule(tmp_path / "result.json", instance())
        assert verify(instance(), schedule) == []
        assert schedule.makespan(instance()) == result.makespan == 11

    def test_times_of_many_digits(self) -> None:
        """Sums over unlike denominators grow longer than any number of the instance."""
        builder = GraphBuilder().vertex("a").vertex("b").vertex("c")
        long = Instance(
            builder.edge("a", "b", None).edge("b", "c", None).build(),
            Cluster.uniform(1),
            durations=[[Fraction(1, 10**199 + 153)], [Fraction(1, 10**198 + 7)], [1]],
        )
        result = conclude(long, "by hand", retime(long, [0, 0, 0], [0, 1, 2]))
        assert result.schedule is not None
        document = parse_json(results.dumps(result))
        assert same(results.schedule_from_dict(document["schedule"], long), result.schedule)

    def test_times_may_be_numbers(self) -> None:
        document = schedule()
        document["start"] = {"a": 0, "b": "6.5", "c": 10.5}
        start = results.schedule_from_dict(document, instance()).start
        assert start.fractions() == [0, Fraction(13, 2), Fraction(21, 2)]

    def test_what_is_read_is_not_yet_verified(self) -> None:
        document = schedule()
        document["start"]["b"] = "-1"
        document["transfers"] = []
        read = results.schedule_from_dict(document, instance())
        assert {violation.rule for violation in verify(instance(), read)} == {"start", "transfers"}

    def test_a_schedule_of_nothing(self) -> None:
        nothing = Instance(GraphBuilder().build(), Cluster.uniform(1), Model("link"))
        result = conclude(nothing, "by hand", retime(nothing, [], []), bound=Fraction(0))
        assert result.status is Status.OPTIMAL
        document = parse_json(results.dumps(result))
        assert same(
            results.schedule_from_dict(document["schedule"], nothing), retime(nothing, [], [])
        )


def schedule() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(results.dumps(solved()))["schedule"]
    return copy.deepcopy(document)


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """An edit that puts the last argument at the place that the others name."""

    def edit(document: Any) -> None:
        *outer, key, value = path
        for step in outer:
            document = document[step]
        document[key] = value

    return edit


def drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: Any) -> None:
        *outer, key = path
        for step in outer:
            document = document[step]
        del document[key]

    return edit


NUMBER = 'is not a number; give an integer, a decimal or a string such as "1/3"'

#: What is wrong with the ``schedule`` object, and the beginning of the line that says so.
BAD: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (put("speed", 1), "schedule: unknown key 'speed'; known keys are placement, start, transfers"),
    (drop("placement"), "schedule.placement: is null; give an object"),
    (drop("start"), "schedule.start: is null; give an object"),
    (put("placement", ["d0"]), "schedule.placement: is a list; give an object"),
    (drop("placement", "b"), "schedule.placement: no entry for 'b'; give one entry per vertex"),
    (put("placement", "x", "d0"), "schedule.placement: unknown key 'x'; known keys are a, b, c"),
    (put("placement", "b", "d9"), "schedule.placement.b: no device 'd9';"),
    (put("placement", "b", 1), "schedule.placement.b: no device 1;"),
    (put("placement", "b", None), "schedule.placement.b: no device None;"),
    (put("placement", "b", ["d0"]), "schedule.placement.b: no device ['d0'];"),
    (drop("start", "c"), "schedule.start: no entry for 'c'; give one entry per vertex"),
    (put("start", "x", "0"), "schedule.start: unknown key 'x';"),
    (put("start", "c", "soon"), "schedule.start.c: 'soon' is not a number;"),
    (put("start", "c", None), f"schedule.start.c: None {NUMBER}"),
    (put("start", "c", True), f"schedule.start.c: True {NUMBER}"),
    (put("start", "c", "inf"), "schedule.start.c: 'inf' is not a number;"),
    (put("transfers", None), "schedule.transfers: is null; give a list"),
    (put("transfers", {}), "schedule.transfers: is an object; give a list"),
    (put("transfers", 0, "a"), "schedule.transfers[0]: is a string; give an object"),
    (put("transfers", 1, "size", 5), "schedule.transfers[1]: unknown key 'size';"),
    (drop("transfers", 0, "tensor"), "schedule.transfers[0].tensor: is null; give a list"),
    (put("transfers", 0, "tensor", "a0"), "schedule.transfers[0].tensor: is a string; give a list"),
    (
        put("transfers", 0, "tensor", ["a"]),
        "schedule.transfers[0].tensor: not a pair; give [vertex,",
    ),
    (put("transfers", 0, "tensor", ["x", 0]), "schedule.transfers[0].tensor: no vertex 'x';"),
    (put("transfers", 0, "tensor", [{}, 0]), "schedule.transfers[0].tensor: no vertex {};"),
    (put("transfers", 0, "tensor", ["a", 1]), "schedule.transfers[0].tensor: no such output;"),
    (put("transfers", 0, "tensor", ["a", "0"]), "schedule.transfers[0].tensor: no such output;"),
    (put("transfers", 0, "tensor", ["a", [0]]), "schedule.transfers[0].tensor: no such output;"),
    (put("transfers", 0, "tensor", ["b", None]), "schedule.transfers[0].tensor: no such output;"),
    (put("transfers", 0, "tensor", ["a", False]), "schedule.transfers[0].tensor: no such output;"),
    (put("transfers", 0, "tensor", ["a", -1]), "schedule.transfers[0].tensor: no such output;"),
    (drop("transfers", 0, "to"), "schedule.transfers[0].to: no device None;"),
    (put("transfers", 0, "to", "d9"), "schedule.transfers[0].to: no device 'd9';"),
    (drop("transfers", 0, "start"), f"schedule.transfers[0].start: None {NUMBER}"),
    (put("transfers", 0, "end", "1/0"), "schedule.transfers[0].end: '1/0' is not a number;"),
]


class TestTermination:
    def read(self, path: Path, **changes: object) -> Termination | None:
        document = {**results.to_dict(solved()), **changes}
        path.write_text(json.dumps({k: v for k, v in document.items() if v is not ...}))
        return results.termination(results.read_document(path))

    def test_round_trip(self, tmp_path: Path) -> None:
        for ended in Termination:
            assert self.read(tmp_path / "result.json", termination=str(ended)) is ended

    def test_older_files_lack_it(self, tmp_path: Path) -> None:
        path = tmp_path / "result.json"
        assert self.read(path, termination=...) is None
        for status in ("OPTIMAL", "INFEASIBLE"):
            assert self.read(path, termination=..., status=status) is Termination.PROVEN

    def test_an_unknown_one_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path / "result.json", termination="bored")
        assert ": termination: unknown 'bored'; choose one of proven, " in str(caught.value)
        assert "\n" not in str(caught.value)


class TestBadInput:
    @pytest.mark.parametrize(
        ("edit", "beginning"), [pytest.param(*case, id=case[1].partition(";")[0]) for case in BAD]
    )
    def test_names_the_place_and_the_remedy(
        self, edit: Callable[[dict[str, Any]], None], beginning: str
    ) -> None:
        document = schedule()
        edit(document)
        with pytest.raises(InputError) as caught:
            results.schedule_from_dict(document, instance())
        assert str(caught.value).startswith(beginning)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", "line 1, column 1: is not JSON"),
            ("[]", 'is a list; give an object with "format": "optpart-result/1"'),
            ("{}", 'format: is missing; this version reads "optpart-result/1"'),
            (
                '{"format": "optpart-instance/1"}',
                "format: is 'optpart-instance/1'; this version reads",
            ),
            ('{"format": "optpart-result/1"}', "schedule: missing; give a result with a schedule"),
            (
                '{"format": "optpart-result/1", "schedule": []}',
                "schedule: is a list; give an object",
            ),
        ],
    )
    def test_a_file_that_is_not_a_result(self, content: str, problem: str, tmp_path: Path) -> None:
        path = tmp_path / "result.json"
        path.write_text(content)
        with pytest.raises(InputError) as caught:
            results.read_schedule(path, instance())
        assert str(caught.value).startswith(f"{path}: {problem}")

    def test_a_result_of_another_instance(self, tmp_path: Path) -> None:
        results.write(solved(), tmp_path / "result.json")
        other = Instance(GraphBuilder().vertex("z").build(), Cluster.uniform(2))
        with pytest.raises(InputError, match=r"schedule\.placement: unknown key 'a'"):
            results.read_schedule(tmp_path / "result.json", other)
