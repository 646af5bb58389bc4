"""Threads: results in order, within the caller's time limit, and its errors."""

from threading import Barrier

import pytest

from optpart.base import clock, threads


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_are_in_the_order_of_the_items(workers):
    assert threads.each(lambda x: x * x, range(9), workers) == [x * x for x in range(9)]


def test_several_run_at_a_time():
    barrier = Barrier(2)

    assert sorted(threads.each(lambda _: barrier.wait(60), range(2), 2)) == [0, 1]


def test_the_time_limit_of_the_caller_holds():
    with clock.limited(100) as limit:
        found = threads.each(lambda _: clock.current(), range(4), 2)

    assert all(each is limit for each in found)


def test_the_caller_learns_that_work_was_left_out():
    with clock.limited(-clock.GRACE - 1) as limit:
        assert all(threads.each(lambda _: clock.is_time_up(), range(3), 2))

    assert limit.reached


def test_an_error_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        threads.each(lambda x: 1 // x, [1, 0, 2], 2)
