"""The native instance format: what is written is read again, and every fault is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart import Cluster, GraphBuilder, InputError, Instance
from optpart.interop.formats import native
from optpart.interop.formats.json import parse_json
from optpart.problem.document import FORMAT
from optpart.testing.strategies import instances

#: Every key of the format, once.
DOCUMENT: dict[str, Any] = {
    "format": "optpart-instance/1",
    "name": "tiny",
    "source": "where it comes from",
    "time_unit": "ms",
    "vertices": [
        {"name": "a", "ops": 30, "memory": 4, "outputs": [50, "1/3"]},
        {"name": "b", "ops": "20/3", "device_type": "GPU", "devices": ["d1"]},
        {"name": "c", "outputs": [{"size": 5, "delay": [[0, 3], [None, 0]]}, 7]},
        {"name": "e", "ops": 0.25},
    ],
    "edges": [["a", "b", 0], ["a", "c", 1], ["b", "e", None], ["c", "e", 0]],
    "colocation": [["a", "c"]],
    "separation": [["a", "b"]],
    "devices": [
        {"name": "d0", "type": "CPU", "speed": 10},
        {"name": "d1", "type": "GPU", "speed": "3/7", "memory": 900},
    ],
    "bandwidth": [[None, 25], [0, None]],
    "latency": [[0, 1], ["1/2", 0]],
    "durations": [[1, 2], [None, "3/2"], [1, 2], [3, None]],
    "model": {
        "communication": "port",
        "memory": "refcount",
        "send_ops": 1,
        "channels": 2,
        "release": "start",
    },
}


def document(**replaced: Any) -> dict[str, Any]:
    return {**copy.deepcopy(DOCUMENT), **replaced}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in DOCUMENT.items() if name != key}


def refuses(text: str) -> str:
    """Return the one line that the fault in a document leads to."""
    with pytest.raises(InputError) as caught:
        native.from_dict(parse_json(text))
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 3000
    return line


class TestReading:
    def test_every_key(self) -> None:
        instance = native.from_dict(document())
        graph, cluster = instance.graph, instance.cluster
        assert (instance.name, instance.source) == ("tiny", "where it comes from")
        assert graph.names == ("a", "b", "c", "e")
        assert graph.ops.fractions() == [30, Fraction(20, 3), 0, Fraction(1, 4)]
        assert graph.memory.fractions() == [4, 0, 0, 0]
        assert graph.device_types == (None, "GPU", None, None)
        assert dict(graph.allowed_devices) == {1: ("d1",)}
        assert graph.tensor_size.fractions() == [50, Fraction(1, 3), 5, 7, 0]
        assert graph.tensor_delay[2] == ((Fraction(0), Fraction(3)), (None, Fraction(0)))
        assert graph.edge_tensor.tolist() == [0, 1, 4, 2]
        assert graph.colocation == ((0, 2),)
        assert graph.separation == ((0, 1),)
        assert cluster.types == ("CPU", "GPU")
        assert cluster.speed[1] == Fraction(3, 7)
        assert cluster.memory == (None, Fraction(900))
        assert cluster.bandwidth[0, 1] == 25
        assert not cluster.linked[1, 0]
        assert cluster.latency[1, 0] == Fraction(1, 2)
        assert instance.duration(1, 1) == Fraction(3, 2)
        assert not instance.vertex_allowed[3, 1]
        assert instance.model.communication == "port"
        assert instance.model.channels == 2
        assert instance.time_unit == "ms"

    def test_decimals_are_exact(self) -> None:
        text = json.dumps(document()).replace("0.25", "0.1000000000000000000000000000001")
        instance = native.from_dict(parse_json(text))
        assert instance.graph.ops[3] == Fraction(10**30 + 1, 10**31)

    @pytest.mark.parametrize("key", sorted(DOCUMENT.keys() - {"format", "vertices", "devices"}))
    def test_most_keys_may_be_absent(self, key: str) -> None:
        native.from_dict(without(key))

    def test_a_single_vertex_is_enough(self) -> None:
        instance = native.from_dict(
            {
                "format": "optpart-instance/1",
                "vertices": [{"name": "a"}],
                "devices": [{"name": "d"}],
            }
        )
        assert instance.duration(0, 0) == 0

    def test_no_vertex_is_enough(self) -> None:
        instance = native.from_dict(
            {"format": "optpart-instance/1", "vertices": [], "devices": [{"name": "d"}]}
        )
        assert instance.vertices == 0
        assert native.from_dict(instance.to_dict()).sha256 == instance.sha256


class TestWriting:
    @given(instances(memory="refcount", communication="sendrecv"))
    def test_round_trip(self, instance: Instance) -> None:
        again = native.from_dict(parse_json(native.dumps(instance)))
        assert again.to_dict() == instance.to_dict()
        assert again.sha256 == instance.sha256
        assert again.graph.names == instance.graph.names
        assert again.graph.tensor_size.fractions() == instance.graph.tensor_size.fractions()
        assert again.allowed.tolist() == instance.allowed.tolist()

    def test_every_key(self) -> None:
        first = native.from_dict(document())
        again = native.from_dict(first.to_dict())
        assert again.to_dict() == first.to_dict()
        assert first.to_dict()["model"] == DOCUMENT["model"]
        assert first.to_dict().keys() == DOCUMENT.keys()

    def test_through_a_file(self, tmp_path: Path) -> None:
        instance = native.from_dict(document())
        native.write(instance, tmp_path / "instance.json")
        again = native.read(tmp_path / "instance.json")
        assert (again.name, again.sha256) == ("tiny", instance.sha256)

    @pytest.mark.parametrize(
        "number", ["0." + "1" * 250, "1e300", "1e-300", "9" * 1000, '"1/' + "9" * 390 + '"']
    )
    def test_any_number(self, number: str) -> None:
        text = json.dumps(vertex(ops="#")).replace('"#"', number)
        instance = native.from_dict(parse_json(text))
        again = native.from_dict(parse_json(native.dumps(instance)))
        assert again.graph.ops[4] == instance.graph.ops[4] > 0

    @pytest.mark.parametrize("name", ['"', "\\", "größer →", "a\nb", " ", "\u2028", "\0"])
    def test_any_name(self, name: str) -> None:
        graph = GraphBuilder().vertex(name, outputs=[1]).vertex("b").edge(name, "b").build()
        instance = Instance(graph, Cluster.uniform(1), name=name, source=name)
        again = native.from_dict(parse_json(native.dumps(instance)))
        assert (again.graph.names[0], again.name, again.source) == (name, name, name)

    def test_a_line_for_every_entry(self) -> None:
        text = native.dumps(native.from_dict(document()))
        assert '\n  {"name": "b"' in text
        assert '\n  ["a", "b", 0]' in text


class TestIdentity:
    def test_is_stable_under_whitespace_key_order_and_notation(self) -> None:
        first = native.from_dict(document())
        backwards = dict(reversed(list(document(name="other", source="").items())))
        backwards["vertices"] = [dict(reversed(list(v.items()))) for v in backwards["vertices"]]
        backwards["vertices"][3]["ops"] = "1/4"
        backwards["vertices"][0]["outputs"] = [50, "2/6"]
        text = json.dumps(backwards, indent=7)
        assert native.from_dict(parse_json(text)).sha256 == first.sha256

    def test_does_not_depend_on_what_is_left_out(self) -> None:
        plain = {
            "format": "optpart-instance/1",
            "vertices": [{"name": "a"}],
            "devices": [{"name": "d"}],
        }
        full = {
            **plain,
            "vertices": [{"name": "a", "ops": 0, "memory": 0, "outputs": [], "device_type": None}],
            "edges": [],
            "colocation": [],
            "separation": [],
            "devices": [{"name": "d", "speed": 1, "type": None, "memory": None}],
            "bandwidth": None,
            "latency": 0,
            "durations": None,
            "model": {"communication": "delay", "memory": "none", "send_ops": 0, "channels": 1},
        }
        assert native.from_dict(plain).sha256 == native.from_dict(full).sha256

    @pytest.mark.parametrize(
        "key", sorted(DOCUMENT.keys() - {"format", "name", "source", "time_unit"})
    )
    def test_every_key_counts_but_name_source_and_time_unit(self, key: str) -> None:
        if key in ("vertices", "devices"):
            other = document()
            other[key][0]["memory"] = 5
        else:
            other = without(key)
        assert native.from_dict(other).sha256 != native.from_dict(document()).sha256


VERTICES, DEVICES = DOCUMENT["vertices"], DOCUMENT["devices"]


def vertex(**entry: Any) -> dict[str, Any]:
    """The document with a fifth vertex ``f``."""
    return document(vertices=[*VERTICES, {"name": "f", **entry}], durations=None)


def edge(*entry: Any) -> dict[str, Any]:
    return document(edges=[*DOCUMENT["edges"], list(entry)])


def device(**entry: Any) -> dict[str, Any]:
    return document(devices=[DEVICES[0], {"name": "d1", "type": "GPU", **entry}])


def model(**entry: Any) -> dict[str, Any]:
    return document(model=entry)


NUMBER = 'is not a number; give an integer, a decimal or a string such as "1/3"'

#: What is wrong, and the beginning of the line that says so.
BAD: list[tuple[dict[str, Any], str]] = [
    (without("format"), 'format: is missing; this version reads "optpart-instance/1"'),
    (document(format="optpart-instance/2"), "format: is 'optpart-instance/2'; this version reads"),
    (document(format=None), "format: is None; this version reads"),
    (document(format=["x"]), "format: is ['x']; this version reads"),
    (document(extra=1), "unknown key 'extra'; known keys are $schema, bandwidth, colocation,"),
    (without("vertices"), "vertices: is missing; give a list of vertices"),
    (without("devices"), "devices: is missing; give a list of devices"),
    (document(name=7), "name: is a number; give a string"),
    (document(name=None), "name: is null; give a string"),
    (document(source=[]), "source: is a list; give a string"),
    (document(time_unit="h"), "time_unit: unknown 'h'; choose one of ns, us, ms, s"),
    (document(time_unit=None), "time_unit: is null; give a string"),
    # vertices
    (document(vertices={}), "vertices: is an object; give a list"),
    (document(vertices="abc"), "vertices: is a string; give a list"),
    (document(vertices=None), "vertices: is null; give a list"),
    (document(vertices=["a"]), "vertices[0]: is a string; give an object"),
    (vertex(colour=1), "vertices[4]: unknown key 'colour'; known keys are device_type, devices,"),
    (document(vertices=[{"ops": 1}]), "vertices[0].name: missing name"),
    (vertex(name=""), "vertices[4].name: missing name"),
    (vertex(name=7), "vertices[4].name: missing name"),
    (vertex(name=None), "vertices[4].name: missing name"),
    (vertex(name="a"), "vertices[4].name: 'a' is already vertices[0]"),
    (vertex(ops=-1), "vertices[4].ops: -1 is negative; give a number ≥ 0"),
    (vertex(ops="-1/2"), "vertices[4].ops: -1/2 is negative; give a number ≥ 0"),
    (vertex(ops=None), f"vertices[4].ops: None {NUMBER}"),
    (vertex(ops=True), f"vertices[4].ops: True {NUMBER}"),
    (vertex(ops=[1]), f"vertices[4].ops: [1] {NUMBER}"),
    (vertex(ops="1/0"), "vertices[4].ops: '1/0' is not a number;"),
    (vertex(ops="many"), "vertices[4].ops: 'many' is not a number;"),
    (vertex(ops="nan"), "vertices[4].ops: 'nan' is not a number; give an integer"),
    (vertex(memory=-1), "vertices[4].memory: -1 is negative; give a number ≥ 0"),
    (vertex(outputs=5), "vertices[4].outputs: is a number; give a list"),
    (vertex(outputs="55"), "vertices[4].outputs: is a string; give a list"),
    (vertex(outputs=None), "vertices[4].outputs: is null; give a list"),
    (vertex(outputs=[1, -5]), "vertices[4].outputs[1]: -5 is negative; give a number ≥ 0"),
    (vertex(outputs=[None]), f"vertices[4].outputs[0]: None {NUMBER}"),
    (vertex(outputs=[1, {"size": -5}]), "vertices[4].outputs[1]: -5 is negative"),
    (vertex(outputs=[{"weight": 5}]), "vertices[4].outputs[0]: unknown key 'weight'"),
    (vertex(outputs=[{"delay": 5}]), "vertices[4].outputs[0].delay: is a number; give a list"),
    (
        vertex(outputs=[{"delay": [1, 2]}]),
        "vertices[4].outputs[0].delay[0]: is a number; give a list",
    ),
    (
        vertex(outputs=[{"delay": [[0, -2], [0, 0]]}]),
        "vertices[4].outputs[0].delay[0][1]: -2 is negative; give a number ≥ 0",
    ),
    (
        vertex(outputs=[1, {"delay": [[0, 1]]}]),
        "vertices[4].outputs[1].delay: has the wrong size; give 2 rows of 2",
    ),
    (
        vertex(outputs=[{"delay": [[0, 1], [0]]}]),
        "vertices[4].outputs[0].delay: has the wrong size; give 2 rows of 2",
    ),
    (
        vertex(outputs=[{"delay": [[0, 1, 2]] * 2}]),
        "vertices[4].outputs[0].delay: has the wrong size",
    ),
    (vertex(device_type=7), "vertices[4].device_type: is a number; give a string"),
    (
        vertex(device_type="TPU"),
        "vertices[4].device_type: no device is of type 'TPU'; "
        "add such a device or use a type that exists (CPU, GPU)",
    ),
    (vertex(devices="d0"), "vertices[4].devices: is a string; give a list"),
    (vertex(devices=["d0", "d9"]), "vertices[4].devices[1]: no device 'd9';"),
    (vertex(devices=[0]), "vertices[4].devices[0]: no device 0;"),
    (vertex(devices=[["d0"]]), "vertices[4].devices[0]: no device ['d0'];"),
    # edges and groups
    (document(edges={}), "edges: is an object; give a list"),
    (
        document(edges=["ab0"]),
        "edges[0]: is not a triple; give [source, target, output index or null]",
    ),
    (edge("a", "b"), "edges[4]: is not a triple;"),
    (edge("a", "b", 0, 0), "edges[4]: is not a triple;"),
    (edge("a", "x", 0), "edges[4]: no vertex 'x'; name a vertex from the list of vertices"),
    (edge(7, "a", 0), "edges[4]: no vertex 7;"),
    (edge(["a"], "a", 0), "edges[4]: no vertex ['a'];"),
    (edge("a", "b", 2), "edges[4]: 'a' has no output 2 (it has 2);"),
    (edge("a", "b", -1), "edges[4]: 'a' has no output -1 (it has 2);"),
    (edge("b", "e", 0), "edges[4]: 'b' has no output 0 (it has none);"),
    (edge("a", "b", "0"), "edges[4]: no output '0'; give its index"),
    (edge("a", "b", 0.5), "edges[4]: no output "),
    (edge("a", "b", True), "edges[4]: no output True;"),
    (edge("b", "b", None), "edges: cycle b → b; remove one of its edges"),
    (edge("e", "a", None), "edges: cycle a → b → e → a; remove one of its edges"),
    (document(colocation="ab"), "colocation: is a string; give a list"),
    (document(colocation=["ab"]), "colocation[0]: is a string; give a list"),
    (document(colocation=[["a", "c"], ["a", "x"]]), "colocation[1]: no vertex 'x';"),
    (document(colocation=[["a", None]]), "colocation[0]: no vertex None;"),
    (
        document(colocation=[["a", "b"], ["b", "e"]], separation=[]),
        "colocation: group a, b, e has no device that all its members may use; relax",
    ),
    (document(separation={}), "separation: is an object; give a list"),
    (document(separation=["ab"]), "separation[0]: is a string; give a list"),
    (document(separation=[["a", "b"], ["a"]]), "separation[1]: 1 vertices; give a pair"),
    (document(separation=[["a", "b", "c"]]), "separation[0]: 3 vertices; give a pair"),
    (document(separation=[["a", "x"]]), "separation[0]: no vertex 'x';"),
    # devices
    (document(devices=[]), "devices: no devices; give at least one device"),
    (document(devices={}), "devices: is an object; give a list"),
    (document(devices=["d0"]), "devices[0]: is a string; give an object"),
    (device(cores=8), "devices[1]: unknown key 'cores'; known keys are memory, name, speed, type"),
    (document(devices=[{}]), "devices[0].name: missing name"),
    (device(name="d0"), "devices[1].name: 'd0' is already devices[0]"),
    (device(name=["d"]), "devices[1].name: missing name"),
    (device(speed=0), "devices[1].speed: 0 is not positive; give a speed > 0"),
    (device(speed="-1/3"), "devices[1].speed: -1/3 is not positive; give a speed > 0"),
    (device(speed=None), f"devices[1].speed: None {NUMBER}"),
    (device(type=7), "devices[1].type: is a number; give a string"),
    (device(memory=-1), "devices[1].memory: -1 is negative; give a number ≥ 0"),
    (device(memory="all"), "devices[1].memory: 'all' is not a number;"),
    # matrices
    (document(bandwidth=-1), "bandwidth: -1 is negative; give a number ≥ 0"),
    (document(bandwidth={}), f"bandwidth: {{}} {NUMBER}"),
    (document(bandwidth=[[None, 1]]), "bandwidth: 1 rows; give 2 rows of 2 entries"),
    (document(bandwidth=[[0, 1], [1, 0], [1, 1]]), "bandwidth: 3 rows; give 2 rows of 2 entries"),
    (document(bandwidth=[[0, 1], [1]]), "bandwidth[1]: 1 entries; give 2 entries, one per device"),
    (document(bandwidth=[[0, 1, 1], [1, 0]]), "bandwidth[0]: 3 entries; give 2 entries"),
    (document(bandwidth=[[0, 1], "10"]), "bandwidth[1]: "),
    (document(bandwidth=[[0, 1], None]), "bandwidth[1]: "),
    (document(bandwidth=[[0, -1], [1, 0]]), "bandwidth[0][1]: -1 is negative"),
    (document(bandwidth=[[0, "x"], [1, 0]]), "bandwidth[0][1]: 'x' is not a number;"),
    (document(latency=[[0, 1]]), "latency: 1 rows; give 2 rows of 2 entries"),
    (document(latency=[[0, 1], [1, 0, 0]]), "latency[1]: 3 entries; give 2 entries"),
    (document(latency=[[0, None], [1, 0]]), "latency[0][1]: must not be null; give a number ≥ 0"),
    (document(latency=None), "latency[0][1]: must not be null; give a number ≥ 0"),
    (document(latency=[[0, True], [1, 0]]), f"latency[0][1]: True {NUMBER}"),
    (document(durations={}), "durations: is an object; give a list"),
    (document(durations=7), "durations: is a number; give a list"),
    (document(durations=[[1, 2]]), "durations: 1 rows; give 4 rows, one per vertex"),
    (document(durations=[[1, 2]] * 3 + [[1]]), "durations[3]: 1 entries; give 2 entries"),
    (document(durations=[[1, 2]] * 3 + ["12"]), "durations[3]: "),
    (document(durations=[[1, 2]] * 3 + [[1, -2]]), "durations[3][1]: -2 is negative"),
    (document(durations=[[1, 2]] * 3 + [[1, {}]]), f"durations[3][1]: {{}} {NUMBER}"),
    # model
    (document(model=None), "model: is null; give an object"),
    (document(model="delay"), "model: is a string; give an object"),
    (model(speed=1), "model: unknown key 'speed'; known keys are channels, communication, memory,"),
    (
        model(communication="teleport"),
        "model.communication: unknown 'teleport'; choose one of delay, sendrecv, link, port",
    ),
    (
        model(memory=["none"]),
        "model.memory: unknown ['none']; choose one of none, estimate, edges, refcount",
    ),
    (model(release={}), "model.release: unknown {}; choose one of end, start"),
    (model(send_ops=-1), "model.send_ops: -1 is negative; give a number ≥ 0"),
    (model(send_ops=None), f"model.send_ops: None {NUMBER}"),
    (model(channels=0), "model.channels: cannot be 0; give a whole number ≥ 1"),
    (model(channels="2"), "model.channels: cannot be '2'; give a whole number ≥ 1"),
    (model(channels=1.5), "model.channels: "),
]


class TestBadInput:
    @pytest.mark.parametrize(
        ("bad", "beginning"), [pytest.param(*case, id=f"{case[1][:40]}") for case in BAD]
    )
    def test_names_the_place_and_the_remedy(self, bad: Any, beginning: str) -> None:
        assert refuses(json.dumps(bad)).startswith(beginning)

    @pytest.mark.parametrize(
        ("text", "beginning"),
        [
            ("", "line 1, column 1: is not JSON (Expecting value); give a JSON document"),
            ("{", "line 1, column 2: is not JSON"),
            ('{\n "a": 1,\n}', "line "),
            ("[1, 2", "line 1, column 6: is not JSON"),
            ("{} {}", "line 1, column 4: is not JSON (Extra data)"),
            ("\0", "line 1, column 1: is not JSON"),
            ("[" * 100_000, "is nested too deeply"),
            ('{"a":' * 100_000, "is nested too deeply"),
            ("null", 'is null; give an object with "format": "optpart-instance/1"'),
            ("[]", "is a list; give an object with"),
            ('"text"', "is a string; give an object with"),
            ("7", "is a number; give an object with"),
            ("1.5", "is a number; give an object with"),
            ("true", "is a boolean; give an object with"),
        ],
    )
    def test_not_a_document(self, text: str, beginning: str) -> None:
        assert refuses(text).startswith(beginning)

    @pytest.mark.parametrize(
        "number",
        [
            "NaN",
            "Infinity",
            "-Infinity",
            "1e999999",
            "1e-999999",
            "1e99999999999999999999",
            "-1e300",
            "1" * 5000,
            "-" + "1" * 5000 + ".5",
            "1." + "1" * 5000,
        ],
        ids=lambda number: number[:12],
    )
    @pytest.mark.parametrize("place", ["ops", "speed", "bandwidth", "send_ops"])
    def test_not_a_number(self, number: str, place: str) -> None:
        written = {
            "ops": vertex(ops="#"),
            "speed": device(speed="#"),
            "bandwidth": document(bandwidth="#"),
            "send_ops": model(send_ops="#"),
        }[place]
        refuses(json.dumps(written).replace('"#"', number))

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ('{"a": 1, "a": 1}', "line 1, column 10: duplicate key 'a'"),
            ('{"a": 1,\n "\\u0061": 2}', "line 2, column 2: duplicate key 'a'"),
            (
                '[{"a": 1}, {"b": {"a": 1}, "a": 2,\n\n  "b" : []}]',
                "line 3, column 3: duplicate key 'b'",
            ),
            (
                '{"x": "{\\"a\\": 1, ", "a": ["a", "a"], "b": {"a": 1}, "a": 2}',
                "line 1, column 54:",
            ),
            (
                '{"a": {"' + "k" * 99 + '": 1, "' + "k" * 99 + '": 1}}',
                "line 1, column 114: duplicate key 'k",
            ),
        ],
    )
    def test_a_duplicate_key(self, text: str, where: str) -> None:
        """JSON allows it; but one of the values would be ignored."""
        message = refuses(text)
        assert message.startswith(where)
        assert message.endswith("; give every key once")

    def test_a_key_may_stand_once_in_each_of_several_objects(self) -> None:
        text = '{"a": {"a": [{"a": 1}, {"a": 2}, "a"]}, "b": {"a": "\\"a\\": "}}'
        assert parse_json(text) == json.loads(text)

    @pytest.mark.parametrize("exponent", ["1" + "0" * 6, "9" * 20, "-" + "9" * 20, "9" * 5000])
    def test_a_huge_exponent_is_never_expanded(self, exponent: str) -> None:
        message = refuses(json.dumps(vertex(ops="#")).replace('"#"', f"1e{exponent}"))
        assert "has too many digits; give a number with fewer than 4000 digits" in message

    def test_a_number_of_many_digits_is_refused_or_written_again(self) -> None:
        text = json.dumps(vertex(ops="#")).replace('"#"', "1" * 5000 + ".5")
        try:
            instance = native.from_dict(parse_json(text))
        except InputError:
            return
        assert native.from_dict(instance.to_dict()).sha256 == instance.sha256

    @pytest.mark.parametrize("place", ["ops", "name", "edge", "format", "memory"])
    def test_nesting_of_any_depth(self, place: str) -> None:
        """Also where it is just shallow enough to be read and too deep to be shown."""
        written: dict[str, Any] = {
            "ops": vertex(ops="#"),
            "name": vertex(name="#"),
            "edge": edge("#", "a", 0),
            "format": document(format="#"),
            "memory": model(memory="#"),
        }[place]
        text = json.dumps(written)
        for depth in range(700, 1000):
            refuses(text.replace('"#"', "[" * depth + "]" * depth))

    def test_a_name_that_is_not_unicode(self) -> None:
        """JSON can spell half a surrogate pair, which no file can hold."""
        refuses(json.dumps(vertex(name="\ud800")))

    @pytest.mark.parametrize(
        "bad",
        [
            {"vertices": [{"name": "a\nb"}], "edges": [["a\nb", "a\nb", None]]},
            {
                "vertices": [{"name": "a\nb", "devices": []}, {"name": "c"}],
                "colocation": [["a\nb", "c"]],
            },
            {
                "vertices": [{"name": "a", "device_type": "x"}],
                "devices": [{"name": "d", "type": "C\nPU"}],
            },
        ],
        ids=["cycle", "group", "types"],
    )
    def test_a_name_with_a_line_break_stays_on_the_line(self, bad: dict[str, Any]) -> None:
        refuses(json.dumps({"format": FORMAT, "devices": [{"name": "d"}], **bad}))

    def test_the_file_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "instance.json"
        path.write_text(json.dumps(vertex(ops=-1)))
        with pytest.raises(InputError) as caught:
            native.read(path)
        assert str(caught.value) == (f"{path}: vertices[4].ops: -1 is negative; give a number ≥ 0")

    def test_even_if_graph_and_cluster_do_not_match(self, tmp_path: Path) -> None:
        path = tmp_path / "instance.json"
        path.write_text(json.dumps(vertex(device_type="TPU")))
        with pytest.raises(InputError) as caught:
            native.read(path)
        assert str(caught.value).startswith(f"{path}: vertices[4].device_type: ")

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\x00" * 100, b"\x80abc", b'{"a"\xff'])
    def test_bytes(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "instance.json"
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            native.read(path)
        assert str(caught.value).startswith(f"{path}: ")


# --- fuzzing --------------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(
        ["", "a", "b", "d0", "GPU", "1/3", "1/0", "-2", "nan", "1e400", "\n", "\ud800"]
    )
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "ops", "size", "delay", "devices", "type", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, from the outside in."""
    inner: list[tuple[Any, ...]] = []
    if isinstance(node, dict):
        inner = [place for key in node for place in places(node[key], (*path, key))]
    elif isinstance(node, list):
        inner = [place for i, entry in enumerate(node) for place in places(entry, (*path, i))]
    return [path, *inner]


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """The document with up to three places replaced, removed, doubled or added to."""
    node: Any = document()
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(node)))
        if not path:
            continue
        parent, key = at(node, path[:-1]), path[-1]
        action: Callable[[], Any] = draw(
            st.sampled_from(
                [
                    lambda parent=parent, key=key: parent.__setitem__(key, draw(values)),
                    lambda parent=parent, key=key: parent.__delitem__(key),
                    lambda parent=parent, key=key: (
                        parent.insert(key, copy.deepcopy(parent[key]))
                        if isinstance(parent, list)
                        else parent.__setitem__(draw(st.text(max_size=3)), parent[key])
                    ),
                ]
            )
        )
        action()
    return node


def survives(text: str) -> None:
    """Assert that a document is refused in one line, or usable in every respect."""
    try:
        instance = native.from_dict(parse_json(text))
    except InputError as error:
        refusal = str(error)
        instance = None
    if instance is None:
        assert "\n" not in refusal
        return
    assert instance.allowed.shape == (len(instance.units), instance.devices)
    assert native.from_dict(parse_json(native.dumps(instance))).sha256 == instance.sha256


@settings(max_examples=150)
@given(mutants())
def test_a_changed_document_is_read_or_refused(mutant: Any) -> None:
    survives(json.dumps(mutant))


@settings(max_examples=100)
@given(st.data())
def test_a_changed_text_is_read_or_refused(data: st.DataObject) -> None:
    text = json.dumps(DOCUMENT)
    cut = data.draw(st.integers(0, len(text)))
    removed = data.draw(st.integers(0, 5))
    survives(text[:cut] + data.draw(st.text(max_size=3)) + text[cut + removed :])
