"""States of the programme over prefixes; its values are compared with all splits where it is used:
in tests of contiguous splits, of PipeDream and of pipelines."""

from __future__ import annotations

from optpart.kernels.segments import Segment, States, in_any_order, in_order, no_segments, segments


def entries(states: States) -> list[list[int]]:
    start, entry = states.entry_start.tolist(), states.entry.tolist()
    return [entry[start[s] : start[s + 1]] for s in range(len(states.device))]


def test_in_order_every_device_follows_those_before_it_or_begins() -> None:
    states = in_order([5, 3, 4])
    assert states.device.tolist()[1:] == [5, 3, 4]
    assert entries(states) == [[], [0], [0, 1], [0, 1, 2]]


def test_in_order_few_devices_in_a_row_may_be_left_out() -> None:
    assert entries(in_order(range(4), skipped=1)) == [[], [0], [0, 1], [0, 1, 2], [0, 2, 3]]


def test_in_any_order_a_state_is_a_set_and_its_last_device() -> None:
    states = in_any_order([7, 9])
    assert states.device.tolist()[1:] == [7, 9, 7, 9]
    assert entries(states) == [[], [0], [0], [2], [1]]


def test_segments_are_followed_back_to_the_first() -> None:
    states, tables = in_order([7, 9]), no_segments(in_order([7, 9]), 3, whole=True)
    tables.begin[2, 3], tables.source[2, 2] = 2, 1
    assert segments(states, tables, 2) == [Segment(0, 2, 7), Segment(2, 3, 9)]
