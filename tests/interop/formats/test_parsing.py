import json
import random
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.formats.detect import read_instance
from optpart.interop.formats.parsing import Line, identifier, lines
from optpart.problem.instance import Instance

#: One small file of every format that is read with this module.
DOCUMENTS = {
    "stg": "2\n0 0 0\n1 9 1 0\n2 4 2 0 1\n3 0 1 2\n# notes\n",
    "jsplib": "# notes\n2 2\n0 4 1 2\n1 3 0 5\n",
    "fjs": "2 3 1.5\n2 1 1 4 2 2 6 3 5\n1 2 1 3 3 2\n",
    "birgin": "3 2 2\n0 2\n1 2\n1 0 4\n2 0 6 1 5\n1 1 3\n",
    "santiago": "#critical\n0.0\n#tasks\n0: 4, 7\n1: 6., 2.5\n#edges\n0: 0, 1, 3\n#end\n",
    "saga": json.dumps(
        {
            "task_graph": {
                "tasks": [{"name": "a", "cost": 2}, {"name": "b", "cost": 1.5}],
                "dependencies": [{"source": "a", "target": "b", "size": 3}],
            },
            "network": {
                "nodes": [{"name": "x", "speed": 1}, {"name": "y", "speed": 4}],
                "edges": [{"source": "x", "target": "y", "speed": 0.5}],
            },
        }
    ),
    "moirai": json.dumps(
        {
            "devices": 2,
            "capacity": [5, 6.5],
            "nodes": [{"id": 1, "p": [2, 3], "mem": 1}, {"id": 2, "p": [4, 5], "mem": 0}],
            "edges": [{"src": 1, "dst": 2, "comm": [[0, 1], [2, 0]]}],
        }
    ),
    "dnn-partitioning": json.dumps(
        {
            "maxFPGAs": 1,
            "maxCPUs": 1,
            "maxSizePerFPGA": 9,
            "nodes": [
                {"id": 1, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "size": 1},
                {"id": 2, "supportedOnFpga": 0, "cpuLatency": 2, "size": 1, "colorClass": 3},
            ],
            "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}],
        }
    ),
}


def read_as(path: Path, document: str) -> Instance:
    name = "fjs" if document == "birgin" else document
    return read_instance(path, name, 2 if name == "stg" else None)


def read(path: Path, document: str) -> None:
    """Read a file of the format of a document; a fault must be one line that names the file."""
    fault = None
    try:
        read_as(path, document)
    except InputError as error:
        fault = error
    assert fault is None or fault.file == str(path)
    assert "\n" not in str(fault)


def test_blank_lines_and_comments_hold_no_fields_but_count():
    first, second = lines("# 1\n\n  2 3 # 4\n\t\r\n5")
    assert (first.place, first.fields) == ("line 3", ["2", "3"])
    assert (second.place, second.fields) == ("line 5", ["5"])


def test_fields_are_taken_one_after_the_other():
    line = Line(7, ["3", "1/2", "x"])
    assert line.whole("count") == 3
    assert line.number("time") == Fraction(1, 2)
    assert line.field("name") == "x"
    line.end()
    with pytest.raises(InputError, match="line 7: ends before the rest"):
        line.field("rest")


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e3", "x", "²", "٣", "1_0", "9" * 50])
def test_whole_numbers_are_digits_only(text):
    with pytest.raises(InputError, match=r"line 1: the count is .*; give a whole number"):
        Line(1, [text]).whole("count")


def test_left_over_fields_are_an_error():
    line = Line(1, ["1", "2"])
    line.whole("count")
    with pytest.raises(InputError, match="line 1: has 2 fields, 1 too many"):
        line.end()


@pytest.mark.parametrize(("value", "name"), [(0, "0"), (-3, "-3"), ("conv/1", "conv/1")])
def test_whole_numbers_and_texts_are_identifiers(value, name):
    assert identifier(value, "id") == name


@pytest.mark.parametrize(
    "value", ["", None, True, 1.5, [], {}, 10**5000], ids=lambda value: type(value).__name__
)
def test_nothing_else_is_an_identifier(value):
    with pytest.raises(InputError, match=r"^id: "):
        identifier(value, "id")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_documents_above_are_well_formed(tmp_path, document):
    path = tmp_path / "document"
    path.write_text(DOCUMENTS[document])
    assert read_as(path, document).vertices > 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_any_beginning_of_a_file_is_read_or_refused(tmp_path, document):
    raw = DOCUMENTS[document].encode()
    for length in range(len(raw)):
        path = tmp_path / "cut"
        path.write_bytes(raw[:length])
        read(path, document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_any_number_replaced_is_read_or_refused(tmp_path, document):
    raw = DOCUMENTS[document]
    digits = [i for i, character in enumerate(raw) if character.isdigit()]
    for i in digits:
        for value in ("-1", "x", "1.5", "null", "[]", "9" * 5000, "1e400", "1/0", "\x00", "∞"):
            path = tmp_path / "replaced"
            path.write_text(raw[:i] + value + raw[i + 1 :], encoding="utf-8")
            read(path, document)


@pytest.mark.parametrize("document", DOCUMENTS)
@settings(max_examples=100)
@given(data=st.data())
def test_any_mutation_is_read_or_refused(tmp_path_factory, document, data):
    raw = bytearray(DOCUMENTS[document].encode())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    suffix = ".json" if raw.startswith(b"{") else ""
    path = tmp_path_factory.getbasetemp() / f"mutated-{document}{suffix}"
    path.write_bytes(raw)
    read(path, document)
    with suppress(InputError):
        read_instance(path)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_binary_and_empty_files_are_refused(tmp_path, document):
    path = tmp_path / "binary"
    path.write_bytes(random.Random(1).randbytes(1000))
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_as(path, document)
    path.write_bytes(b"")
    with pytest.raises(InputError):
        read_as(path, document)
