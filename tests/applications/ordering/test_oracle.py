"""Time oracles ([H] §3, §5)."""

from __future__ import annotations

import contextlib
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import Cluster, Device, GraphBuilder, InputError, Instance
from optpart.applications.ordering.efficiency import assigned, makespan_bounds
from optpart.applications.ordering.oracle import general, read_times, with_times


def instance() -> Instance:
    builder = GraphBuilder().vertex("recv", 6, devices=["channel"])
    builder.vertex("op", 10, devices=["worker"]).vertex("next", 2, devices=["worker"])
    builder.edge("recv", "op", None).edge("op", "next", None)
    return Instance(builder.build(), Cluster.of([Device("worker", 2), Device("channel")]))


def trace(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


class TestMeasured:
    def test_the_least_of_all_measurements_counts(self, tmp_path: Path) -> None:
        path = tmp_path / "times.csv"
        path.write_text("name,time\nop,7\nop,2.5\nrecv,1/3\nop,3\n")
        assert read_times(path) == {"op": Fraction(5, 2), "recv": Fraction(1, 3)}

    def test_a_trace_has_complete_events_and_pairs(self, tmp_path: Path) -> None:
        """The name among the arguments, as TensorFlow writes it, takes precedence."""
        path = trace(
            tmp_path / "trace.json",
            {
                "traceEvents": [
                    {"ph": "M", "name": "process_name", "pid": 1},
                    {"ph": "X", "name": "MatMul", "args": {"name": "op"}, "ts": 3, "dur": 7},
                    {"ph": "X", "name": "MatMul", "args": {"name": "op"}, "ts": 30, "dur": 6.5},
                    {"ph": "B", "name": "outer", "ts": 1, "pid": 1, "tid": 1},
                    {"ph": "B", "name": "inner", "ts": 2, "pid": 1, "tid": 1},
                    {"ph": "B", "name": "elsewhere", "ts": 2, "pid": 1, "tid": 2},
                    {"ph": "E", "ts": 4, "pid": 1, "tid": 1},
                    {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
                    {"ph": "E", "ts": 10, "pid": 1, "tid": 2},
                ]
            },
        )
        expected = {"op": Fraction(13, 2), "inner": 2, "outer": 8, "elsewhere": 8}
        assert read_times(path) == expected

    def test_a_trace_may_be_a_bare_list(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "t.json", [{"ph": "X", "name": "op", "dur": 1}])
        assert read_times(path) == {"op": 1}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('[{"ph": "X", "name": "a", "dur": 1e99999999999999999999}]', ".*too many digits"),
            ('[{"ph": "X", "name": "a", "dur": 1e99999}]', ".*too many digits"),
            ('[{"ph": "X", "name": "a", "dur": NaN}]', "NaN is not a finite number"),
            (
                '[{"ph": "X", "dur": 1, "name": "a", "dur": 2}]',
                "line 1, column 37: duplicate key 'dur'",
            ),
            ("[" * 100_000, "is nested too deeply"),
            ("[", "line 1, column 2: is not JSON"),
        ],
    )
    def test_a_trace_is_read_as_every_json(
        self, tmp_path: Path, content: str, message: str
    ) -> None:
        path = tmp_path / "trace.json"
        path.write_text(content)
        with pytest.raises(InputError, match=f"trace.json: {message}"):
            read_times(path)

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            ({}, "traceEvents: missing"),
            ([1], r"traceEvents\[0\]: not an object"),
            ([{"ph": "X", "name": "op"}], r"traceEvents\[0\].dur: None is not a number"),
            ([{"ph": "X", "name": "op", "dur": -1}], r"traceEvents\[0\].dur: -1 is negative"),
            ([{"ph": "X", "dur": 1}], r"traceEvents\[0\].name: None is not a name"),
            ([{"ph": "E", "ts": 1}], r"traceEvents\[0\]: an end without a begin"),
            (
                [{"ph": "B", "name": "a", "ts": 2}, {"ph": "E", "ts": 1}],
                r"traceEvents\[1\].ts: before the begin event",
            ),
        ],
    )
    def test_errors_in_a_trace(self, tmp_path: Path, document: object, message: str) -> None:
        path = trace(tmp_path / "trace.json", document)
        with pytest.raises(InputError, match=f"trace.json: {message}"):
            read_times(path)

    @given(st.binary())
    def test_any_bytes_are_read_or_refused(
        self, tmp_path_factory: pytest.TempPathFactory, content: bytes
    ) -> None:
        for suffix in (".json", ".csv"):
            path = tmp_path_factory.getbasetemp() / f"bytes{suffix}"
            path.write_bytes(content)
            with contextlib.suppress(InputError):
                assert read_times(path) == {}

    def test_errors_in_a_csv(self, tmp_path: Path) -> None:
        path = tmp_path / "times.csv"
        path.write_text("name,time\nop,-1\n")
        with pytest.raises(InputError, match=r"times\.csv: line 2, time: -1 is negative"):
            read_times(path)


class TestGeneral:
    def test_transfers_take_1_and_other_ops_take_0(self) -> None:
        """[H] eq. 6."""
        assert general(instance()) == {"recv": 1, "op": 0, "next": 0}
        bounds = makespan_bounds(with_times(instance(), general(instance())))
        assert (bounds.upper, bounds.lower) == (1, 1)


class TestWithTimes:
    def test_ops_take_the_times_on_their_device(self) -> None:
        changed = with_times(instance(), {"op": Fraction(7), "recv": Fraction(1, 3), "other": 9})  # type: ignore[dict-item]
        device = assigned(changed)
        times = [changed.duration(v, int(d)) for v, d in enumerate(device)]
        assert times == [Fraction(1, 3), 7, 1]

    def test_durations_are_replaced_too(self) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").build()
        given_ = Instance(graph, Cluster.uniform(2, 3), durations=[[4, None], [None, 5]])
        changed = with_times(given_, {"a": Fraction(1)})
        assert assigned(changed).tolist() == [0, 1]
        assert [changed.duration(0, 0), changed.duration(1, 1)] == [1, 5]

    def test_times_of_another_instance_are_refused(self) -> None:
        with pytest.raises(InputError, match="no op of the instance is measured"):
            with_times(instance(), {"x": Fraction(1)})
