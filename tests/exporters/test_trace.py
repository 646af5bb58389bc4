"""Traces keep to the rules of the Trace Event Format, and hold the schedule exactly."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from commandline import Run

import optpart as op
from optpart.base.errors import InputError
from optpart.exporters.trace import Scheduled, trace
from optpart.problem.model import Communication, Memory
from optpart.solution.memory_use import memory_use
from optpart.solution.metrics import peak_memory
from optpart.testing.draw import draw_instance
from optpart.testing.solutions import random_schedule

#: Keys that each phase must have, besides those of all.
REQUIRED = {
    "B": {"cat"}, "E": set(), "C": {"args"}, "M": {"args"}, "s": {"id", "cat"},
    "t": {"id", "cat"}, "f": {"id", "cat", "bp"},
}  # fmt: skip

MODELS = [(c, m) for c in get_args(Communication) for m in get_args(Memory)]


def schedules(communication: Communication, memory: Memory) -> list[Scheduled]:
    found = []
    for seed in range(12):
        instance = draw_instance(seed, communication, memory, far=False)
        schedule = random_schedule(np.random.default_rng(seed), instance)
        if schedule is not None:
            found.append(Scheduled(instance, schedule, "drawn"))
    assert found
    return found


def events_of(scheduled: Scheduled, unit: str | None = None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(trace(scheduled, unit).text)["traceEvents"]
    return events


@pytest.mark.parametrize(("communication", "memory"), MODELS)
def test_events_keep_to_the_format(communication: Communication, memory: Memory) -> None:
    for scheduled in schedules(communication, memory):
        events = events_of(scheduled)
        for event in events:
            needed = {"ph", "name", "pid", "tid", "ts"} | REQUIRED[event["ph"]]
            assert needed <= event.keys()
            assert event["ts"] >= 0
        times = [event["ts"] for event in events]
        assert times == sorted(times)
        named = {event["pid"] for event in events if event["name"] == "process_name"}
        assert {event["pid"] for event in events} == named


@pytest.mark.parametrize(("communication", "memory"), MODELS)
def test_slices_of_a_thread_never_overlap(communication: Communication, memory: Memory) -> None:
    for scheduled in schedules(communication, memory):
        threads = defaultdict(list)
        for event in events_of(scheduled):
            if event["ph"] in "BE":
                threads[event["pid"], event["tid"]].append(event)
        for listed in threads.values():
            assert [event["ph"] for event in listed] == ["B", "E"] * (len(listed) // 2)
            for begin, end in zip(listed[::2], listed[1::2], strict=True):
                assert begin["name"] == end["name"]


@pytest.mark.parametrize(("communication", "memory"), MODELS)
def test_slices_are_the_vertices_and_transfers(
    communication: Communication, memory: Memory
) -> None:
    for scheduled in schedules(communication, memory):
        instance, schedule = scheduled.instance, scheduled.schedule
        begun = [event for event in events_of(scheduled) if event["ph"] == "B"]
        shown = {e["name"]: e["args"] for e in begun if e["cat"] == "vertex"}
        assert shown.keys() == {*instance.graph.names}
        for v, name in enumerate(instance.graph.names):
            assert Fraction(shown[name]["start"]) == schedule.start[v]
            assert Fraction(shown[name]["end"]) == schedule.end(instance, v)
        arrivals = sorted(Fraction(e["args"]["end"]) for e in begun if e["cat"] == "transfer")
        assert arrivals == sorted(schedule.transfers.end.fractions())
        sends = sum(event["cat"] == "send" for event in begun)
        assert sends == (len(schedule.transfers) if communication == "sendrecv" else 0)


@pytest.mark.parametrize(("communication", "memory"), MODELS)
def test_flows_lead_from_the_producer_over_the_link_to_a_consumer(
    communication: Communication, memory: Memory
) -> None:
    for scheduled in schedules(communication, memory):
        open_on: dict[tuple[int, int], dict[str, Any]] = {}
        touched: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for event in events_of(scheduled):
            thread = event["pid"], event["tid"]
            if event["ph"] == "B":
                open_on[thread] = event
            elif event["ph"] == "E":
                del open_on[thread]
            elif event["ph"] in "stf":
                touched[event["id"]].append((event["ph"], open_on[thread]["cat"]))
        assert len(touched) == len(scheduled.schedule.transfers)
        for steps in touched.values():
            assert steps == [("s", "vertex"), ("t", "transfer"), ("f", "vertex")]


@pytest.mark.parametrize(("communication", "memory"), MODELS)
def test_counters_are_what_each_device_holds(communication: Communication, memory: Memory) -> None:
    for scheduled in schedules(communication, memory):
        instance, schedule = scheduled.instance, scheduled.schedule
        counted = defaultdict(list)
        for event in events_of(scheduled):
            if event["ph"] == "C":
                assert [*event["args"]] == ["held"]
                counted[event["pid"]].append(event["args"]["held"])
        use = memory_use(instance, schedule)
        peaks = [max(amount for _, amount in steps) for steps in use]
        if memory == "estimate":
            units = schedule.placement[[members[0] for members in instance.units]]
            for d, peak in enumerate(peaks):
                assert peak == instance.static_memory.sum(np.flatnonzero(units == d))
        else:
            kind = "edges" if memory == "edges" else "refcount"
            assert peaks == peak_memory(instance, schedule, kind, instance.model.release)
        for d, steps in enumerate(use):
            assert counted[d + 1] == [float(amount) for _, amount in steps]


def side_by_side() -> Scheduled:
    """Two tensors that are on the same link at the same time."""
    builder = op.GraphBuilder()
    builder.vertex("a", 1, outputs=[4, 4])
    builder.vertex("b", 1)
    builder.edge("a", "b", 0)
    builder.edge("a", "b", 1)
    instance = op.Instance(builder.build(), op.Cluster.uniform(2, bandwidth=2), name="pair")
    return Scheduled(instance, op.retime(instance, [0, 1], [0, 1]), "by hand")


def test_transfers_side_by_side_have_threads_of_their_own() -> None:
    begun = [e for e in events_of(side_by_side()) if e.get("cat") == "transfer" and e["ph"] == "B"]
    assert Counter((e["pid"], e["tid"]) for e in begun) == {(3, 1): 1, (3, 2): 1}
    assert [e["args"] for e in begun] == [
        {"start": "1", "end": "3", "length": "2", "size": "4"} for _ in range(2)
    ]


def test_a_unit_scales_timestamps_and_nothing_else() -> None:
    for unit, factor in ((None, 0.001), ("us", 1), ("s", 10**6)):
        (b,) = [e for e in events_of(side_by_side(), unit) if e["ph"] == "B" and e["name"] == "b"]
        assert b["ts"] == 3 * factor
        assert b["args"]["start"] == "3"
    assert any("taken for 1 ns" in remark for remark in trace(side_by_side()).remarks)
    assert not any("taken for" in remark for remark in trace(side_by_side(), "ms").remarks)
    with pytest.raises(InputError, match="unit: unknown 'h'; choose one of ns, us, ms, s"):
        trace(side_by_side(), "h")


def test_the_unit_is_the_one_that_the_instance_states() -> None:
    scheduled = side_by_side()
    stated = replace(scheduled, instance=replace(scheduled.instance, time_unit="ms"))
    assert trace(stated) == trace(scheduled, "ms")
    assert trace(stated, "us") == trace(scheduled, "us")


def test_schedules_that_timestamps_cannot_hold_are_refused() -> None:
    builder = op.GraphBuilder()
    builder.vertex("a", 10**10)
    instance = op.Instance(builder.build(), op.Cluster.uniform(1))
    with pytest.raises(InputError, match="too late for timestamps"):
        trace(Scheduled(instance, op.retime(instance, [0], [0]), ""), "ms")


def test_the_command_needs_the_instance_and_no_more(run: Run, tmp_path) -> None:
    library = run("solve", "heft-10", "-m", "heft", "-o", tmp_path / "result.json")
    assert library.code == 0
    ran = run("export", tmp_path / "result.json", "--to", "trace", "--unit", "us")
    assert ran.code == 0
    assert json.loads(ran.out)["otherData"]["makespan"] == "80"
    document = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps({**document, "instance": "mine"}))
    ran = run("export", tmp_path / "other.json", "--to", "trace")
    assert (ran.code, ran.out) == (2, "")
    ran = run("export", tmp_path / "other.json", "--to", "trace", "--instance", "heft-10",
              "-o", tmp_path / "trace.json")  # fmt: skip
    assert ran.code == 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_names_cannot_break_the_document() -> None:
    name = '"}],\u202e\x1b{'
    builder = op.GraphBuilder()
    builder.vertex(name, 1)
    instance = op.Instance(builder.build(), op.Cluster.uniform(1), name=name)
    text = trace(Scheduled(instance, op.retime(instance, [0], [0]), name)).text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert json.loads(text)["otherData"]["instance"] == name
