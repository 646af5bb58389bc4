"""The naive verifier finds every kind of violation, with numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from optpart.testing.naive_verifier import NaiveVerifier

#: a (3) sends a tensor of size 4 to b and c (2 each) over links of rate 2.
DOCUMENT: dict[str, Any] = {
    "vertices": [
        {"name": "a", "ops": 3, "memory": 1, "outputs": [4]},
        {"name": "b", "ops": 2},
        {"name": "c", "ops": 2},
    ],
    "edges": [["a", "b", 0], ["a", "c", 0]],
    "devices": [{"name": "x", "memory": 5}, {"name": "y", "memory": 4}],
    "bandwidth": [[None, 2], [2, None]],
}
A, CROSSING = 0, (0, 0)


def faults(where: list[int], start: list[int], moves: list[Any], **model: Any) -> list[str]:
    naive = NaiveVerifier({**DOCUMENT, "model": model})
    timed = [(tensor, e, Fraction(a), Fraction(b)) for tensor, e, a, b in moves]
    return naive.faults(where, [Fraction(t) for t in start], timed)


def test_a_tensor_crosses_once_for_both_consumers() -> None:
    assert faults([0, 1, 1], [0, 5, 7], [(CROSSING, 1, 3, 5)]) == []
    naive = NaiveVerifier(DOCUMENT)
    assert naive.makespan([0, 1, 1], [Fraction(0), Fraction(5), Fraction(7)]) == 9
    assert naive.traffic([0, 1, 1]) == 4


@pytest.mark.parametrize(
    ("where", "start", "moves", "model", "rule"),
    [
        ([0, 0, 0], [0, 3, 4], [], {}, "device"),
        ([0, 0, 0], [-1, 3, 5], [], {}, "start"),
        ([0, 0, 0], [0, 2, 5], [], {}, "device"),
        ([0, 1, 1], [0, 4, 7], [(CROSSING, 1, 3, 5)], {}, "inputs"),
        ([0, 1, 1], [0, 5, 7], [], {}, "transfers"),
        ([0, 1, 1], [0, 5, 7], [(CROSSING, 1, 3, 5)] * 2, {}, "transfers"),
        ([0, 1, 1], [0, 5, 7], [(CROSSING, 1, 3, 4)], {}, "transfers"),
        ([0, 1, 1], [0, 6, 8], [(CROSSING, 1, 4, 6)], {}, "transfers"),
        ([0, 1, 0], [0, 8, 3], [(CROSSING, 1, 3, 6)],
         {"communication": "sendrecv", "send_ops": 1}, "device"),
        ([0, 1, 1], [0, 5, 7], [(CROSSING, 1, 3, 5)], {"memory": "estimate"}, "memory"),
        ([0, 1, 0], [0, 5, 9], [(CROSSING, 1, 3, 5)],
         {"memory": "refcount"}, ""),
        ([0, 0, 0], [0, 4, 6], [], {"memory": "edges"}, "memory"),
    ],
)  # fmt: skip
def test_each_rule(where: Any, start: Any, moves: Any, model: Any, rule: str) -> None:
    found = faults(where, start, moves, **model)
    assert rule in found if rule else found == []


def test_a_device_that_is_not_allowed_and_a_missing_link() -> None:
    document = {**DOCUMENT, "bandwidth": [[None, 0], [2, None]], "separation": [["b", "c"]]}
    naive = NaiveVerifier(document)
    start = [Fraction(0), Fraction(5), Fraction(7)]
    assert naive.faults([0, 1, 1], start, []) == ["placement"]
    assert naive.faults([0, 1, 0], start, [(CROSSING, 1, Fraction(3), Fraction(5))]) == [
        "transfers"
    ]


@pytest.mark.parametrize(
    ("begin", "channels", "rule"),
    [(3, 1, []), (4, 1, ["link"]), (5, 1, []), (4, 2, [])],
    ids=["before", "during", "after", "on another channel"],
)
def test_a_signal_without_length_needs_a_free_channel(
    begin: int, channels: int, rule: list[str]
) -> None:
    edges = [*DOCUMENT["edges"], ["a", "b", None]]
    naive = NaiveVerifier(
        {**DOCUMENT, "edges": edges, "model": {"communication": "port", "channels": channels}}
    )
    sent = [(CROSSING, 1, Fraction(3), Fraction(5))]
    signal = ((0, None), 1, Fraction(begin), Fraction(begin))
    start = [Fraction(0), Fraction(5), Fraction(7)]
    assert naive.faults([0, 1, 1], start, [*sent, signal]) == rule
