"""Reports of NVIDIA Nsight Systems, exported as SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mutations import read_mutated

from optpart.base.errors import InputError
from optpart.interop.formats import nsys, sqlite
from optpart.interop.formats.nsys import read
from optpart.interop.formats.sqlite import sniff

NAMES = ["conv1", "relu1", "view1"]
PROCESS = 3 << 24
SCHEMA = """
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT,
        globalTid INT, textId INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT,
        correlationId INT, nameId INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT,
        correlationId INT, globalPid INT, shortName INT);
"""
#: Two runs of conv1, named by a text, and of relu1, named by an entry of StringIds.
CONTENT = f"""
    INSERT INTO StringIds VALUES (1, 'relu1'), (2, 'gemm');
    INSERT INTO NVTX_EVENTS VALUES
        (0, 1000, 59, 'step', {PROCESS + 1}, NULL), (100, 200, 59, 'conv1', {PROCESS + 1}, NULL),
        (200, 250, 59, NULL, {PROCESS + 1}, 1), (260, 270, 59, 'view1', {PROCESS + 1}, NULL),
        (1000, 1100, 59, 'conv1', {PROCESS + 1}, NULL), (1200, 1250, 59, NULL, {PROCESS + 1}, 1),
        (120, 130, 34, 'conv1', {PROCESS + 1}, NULL), (140, NULL, 59, 'conv1', {PROCESS + 1}, NULL);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
        (110, 112, {PROCESS + 1}, 1, 2), (120, 122, {PROCESS + 1}, 2, 2),
        (210, 212, {PROCESS + 1}, 3, 2), (1010, 1012, {PROCESS + 1}, 4, 2),
        (1210, 1212, {PROCESS + 1}, 5, 2), (1210, 1212, {2 * PROCESS + 1}, 5, 2),
        (500, 501, {PROCESS + 1}, 6, 2);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (5000, 5030, 0, 1, {PROCESS}, 2), (5030, 5035, 0, 2, {PROCESS}, 2),
        (5040, 5047, 0, 3, {PROCESS}, 2), (6000, 6040, 0, 4, {PROCESS}, 2),
        (6050, 6058, 0, 5, {PROCESS}, 2), (6100, 6101, 0, 6, {PROCESS}, 2),
        (6200, 6201, 0, 77, {PROCESS}, 2);
"""


def report(folder: Path, *scripts: str) -> Path:
    path = folder / "report.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        for script in scripts:
            database.executescript(script)
    return path


def test_a_vertex_takes_what_was_launched_in_its_range(tmp_path: Path) -> None:
    found = read(report(tmp_path, SCHEMA, CONTENT), NAMES)
    assert found.times == {"conv1": (35, 40), "relu1": (7, 8), "view1": (0,)}
    assert found.unmatched == ("step",)
    assert found.remarks == (
        "times are sums of the kernels, copies and fills that were launched.",
        "1 of the vertices launched nothing and take no time.",
        "1 launches were in the range of no vertex.",
        "1 pieces of work on the device have no launch of their own.",
    )


def test_copies_count_where_they_are_traced(tmp_path: Path) -> None:
    copies = f"""CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT,
        correlationId INT, globalPid INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 3, 0, 3, {PROCESS})"""
    found = read(report(tmp_path, SCHEMA, CONTENT, copies), NAMES)
    assert found.times["relu1"] == (9, 8)


def test_the_file_is_not_changed(tmp_path: Path) -> None:
    path = report(tmp_path, SCHEMA, CONTENT)
    before = path.read_bytes()
    path.chmod(0o444)
    read(path, NAMES)
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir()] == [path.name]
    assert sniff(before[:16])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("DROP TABLE NVTX_EVENTS", "no table NVTX_EVENTS; export a report with CUDA and NVTX"),
        (
            "DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start, 1 AS globalTid",
            "no table NVTX_EVENTS;",
        ),
        (
            "ALTER TABLE NVTX_EVENTS DROP COLUMN globalTid",
            "NVTX_EVENTS: no column globalTid; export it with a recent nsys",
        ),
        (
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = 'x'",
            "CUPTI_ACTIVITY_KIND_KERNEL: globalPid is 'x'; export it again",
        ),
        ("UPDATE NVTX_EVENTS SET start = 'x'", "NVTX_EVENTS: start is 'x'; export it again"),
        (
            "UPDATE NVTX_EVENTS SET end = start - 1 WHERE text = 'conv1' AND start = 100",
            "NVTX_EVENTS: 'conv1' ends before it starts; export it again",
        ),
        (
            "UPDATE NVTX_EVENTS SET text = 'conv1' WHERE text = 'step'",
            "range 'conv1': lies within 'conv1', and both are vertices;",
        ),
        (
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1 WHERE correlationId = 2",
            "CUPTI_ACTIVITY_KIND_KERNEL: work on devices 0, 1; profile one device at a time",
        ),
        (
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 99",
            "no work was launched in the range of a vertex; trace CUDA and NVTX together",
        ),
    ],
)
def test_a_faulty_report_is_one_line(tmp_path: Path, script: str, message: str) -> None:
    path = report(tmp_path, SCHEMA, CONTENT, script)
    with pytest.raises(InputError) as fault:
        read(path, NAMES)
    assert str(fault.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("_MOST_ROWS", "StringIds: too long (2 rows); profile fewer runs"),
        ("_MOST_TEXTS", "StringIds: too long (1 rows); profile fewer runs"),
        ("_MOST_TEXT", "cannot be read (string or blob too big); export it with nsys again"),
        ("_CALLS", "cannot be read (interrupted); export it with nsys again"),
        ("_MOST_BYTES", "is longer than 16 GiB; profile fewer runs"),
    ],
)
def test_everything_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, message: str
) -> None:
    path = report(tmp_path, SCHEMA, CONTENT, f"UPDATE StringIds SET value = '{'x' * 500}'")
    monkeypatch.setattr(sqlite, "_INSTRUCTIONS", 1)
    monkeypatch.setattr(nsys, "_CALLS", 10**9)
    monkeypatch.setattr(nsys, limit, 400 if limit == "_MOST_TEXT" else 1)
    with pytest.raises(InputError) as fault:
        read(path, NAMES)
    assert str(fault.value).startswith(f"{path}: {message}")


def test_any_mutation_is_read_or_refused(tmp_path: Path) -> None:
    content = report(tmp_path, "PRAGMA page_size = 512", SCHEMA, CONTENT).read_bytes()
    for times in read_mutated(lambda path: read(path, NAMES).times, tmp_path / "mutated", content):
        assert all(found and min(found) >= 0 for found in times.values())
