"""Results from elsewhere, rebuilt and verified again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import Budget, InputError, Status
from optpart.interop.formats import native
from optpart.interop.formats import result as result_format
from optpart.interop.formats.json import parse_json
from optpart.methods import registry
from optpart.solution.termination import Termination
from optpart.study import library
from optpart.study.arrival import rebuild

INSTANCE = library.load("laich-2.5")


def document(by: str = "heft", /, **changes: Any) -> Any:
    result = registry.get(by)(INSTANCE, budget=Budget(5, workers=1), seed=3)
    content = {**result_format.to_dict(result), **changes}
    return parse_json(json.dumps(content))


@pytest.mark.parametrize("method", ["heft", "hash+pct", "cpsat", "enumerate"])
def test_a_rebuilt_result_has_the_same_document(method: str) -> None:
    given = document(method)
    again = result_format.dumps(rebuild(given, INSTANCE))
    assert parse_json(again) == given


def test_an_infeasible_instance_stays_infeasible_with_its_reason() -> None:
    told = document(status="INFEASIBLE", schedule=None, makespan=None, reason="too little memory")
    result = rebuild(told, INSTANCE)
    assert (result.status, result.reason) == (Status.INFEASIBLE, "too little memory")


class TestTermination:
    def test_is_that_of_the_document(self) -> None:
        for ended in Termination:
            if ended is not Termination.PROVEN:
                assert rebuild(document(termination=str(ended)), INSTANCE).termination is ended

    def test_a_document_from_before_there_was_one_says_only_what_follows(self) -> None:
        """Its status may; whether a heuristic ended by itself is not known."""
        old = document()
        del old["termination"]
        assert rebuild(old, INSTANCE).termination is None
        proven = {**old, "lower_bound": old["makespan"], "status": "OPTIMAL"}
        assert rebuild(proven, INSTANCE).termination is Termination.PROVEN
        infeasible = {**old, "status": "INFEASIBLE", "schedule": None, "makespan": None}
        infeasible["traffic"] = None
        assert rebuild(infeasible, INSTANCE).termination is Termination.PROVEN
        assert rebuild({**old, "refused": True}, INSTANCE).termination is Termination.FAILED

    def test_what_is_not_known_stays_so(self) -> None:
        result = rebuild(document(termination=None), INSTANCE)
        assert result_format.to_dict(result)["termination"] is None

    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            ("bored", "termination: unknown 'bored'; choose one of proven, completed, time limit"),
            ([], "termination: unknown []; choose one of proven"),
            ("proven", "termination: proven, but the status is FEASIBLE"),
        ],
    )
    def test_one_that_is_none_or_does_not_hold_is_refused(self, said: Any, problem: str) -> None:
        with pytest.raises(InputError) as caught:
            rebuild(document(termination=said), INSTANCE)
        assert str(caught.value).startswith(problem)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"makespan": "1"}, "makespan 1 is not that of its schedule, which is 14"),
        ({"traffic": "-1"}, "traffic -1 is not that of its schedule"),
        ({"status": "OPTIMAL"}, "OPTIMAL without a bound that proves it"),
        ({"status": "INFEASIBLE"}, "INFEASIBLE contradicts its own schedule of 14"),
        ({"lower_bound": "15"}, "bound 15 contradicts its own schedule of 14"),
        ({"schedule": None}, "a makespan of 14 without a schedule"),
        ({"schedule": None, "makespan": None}, "FEASIBLE without a schedule"),
    ],
)
def test_a_document_that_contradicts_its_schedule_is_refused(
    changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        rebuild(document(**changes), INSTANCE)


def test_a_schedule_that_is_not_valid_is_refused() -> None:
    told = document()
    told["schedule"]["start"] = dict.fromkeys(told["schedule"]["start"], "0")
    with pytest.raises(InputError, match="its schedule is not valid: precedence"):
        rebuild(told, INSTANCE)


def test_a_run_that_was_refused_stays_refused_and_claims_nothing() -> None:
    result = rebuild(document(refused=True, reason="it lied", lower_bound="14"), INSTANCE)
    assert (result.refused, result.reason, result.lower_bound) == (True, "it lied", None)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"format": "optpart-result/0"}, "format"),
        ({"instance_sha256": "0" * 64}, "instance_sha256"),
        ({"status": "BEST"}, "status"),
        ({"seconds": -1}, "seconds"),
        ({"makespan": "NaN"}, "makespan"),
        ({"lower_bound": "x"}, "lower_bound"),
        ({"method": None}, "method"),
        ({"seconds": "1e400"}, "seconds"),
        ({"seed": "0"}, "seed"),
        ({"objective": "beauty"}, "objective"),
        ({"objective": []}, "objective"),
        ({"trace": [[1]]}, "trace[0]"),
        ({"versions": {"optpart": 1}}, "versions"),
        ({"schedule": []}, "schedule"),
    ],
)
def test_an_error_names_its_place(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as fault:
        rebuild(document(**changes), INSTANCE)
    assert fault.value.place == place


@given(st.data())
def test_every_document_gives_a_result_or_a_one_line_error(data: st.DataObject) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("1e999")
    value = data.draw(scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(), scalars))
    told = document()
    told[data.draw(st.sampled_from(sorted(told)))] = value
    with suppress(InputError):
        assert rebuild(told, INSTANCE).makespan in (14, None)


def test_an_instance_that_travels_as_text_is_the_same_instance() -> None:
    there = native.from_dict(parse_json(native.dumps(INSTANCE)))
    assert there.sha256 == INSTANCE.sha256
