"""Moves draw fast devices more often, and never leave one out."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.problem.cluster import Device
from optpart.search.plan import drawn_by_speed, links


def test_a_faster_device_is_drawn_more_often() -> None:
    times = np.bincount(drawn_by_speed(np.array([10.0, 50.0, 100.0])))
    assert times[0] < times[1] < times[2]


def test_a_device_that_is_far_slower_is_still_drawn_a_fifth_as_often_as_on_average() -> None:
    times = np.bincount(drawn_by_speed(np.array([1e-9, 1.0, 1.0, 1.0])))
    assert times[0] / times.mean() == pytest.approx(0.2, rel=0.02)


def test_devices_that_are_equally_fast_stand_there_once_each() -> None:
    assert drawn_by_speed(np.full(4, 7.0)).tolist() == [0, 1, 2, 3]


def test_with_given_run_times_speeds_mean_nothing() -> None:
    graph = GraphBuilder().vertex("a", 1).build()
    cluster = Cluster.of([Device("slow", 1), Device("fast", 9)], 1, 0)
    assert links(Instance(graph, cluster, durations=[[1, 1]])).targets.tolist() == [0, 1]
