"""The store: finished runs in a file."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optpart import Budget, InputError, Instance
from optpart.study import library
from optpart.study.run import Run, execute
from optpart.study.store import RowError, Store

INSTANCE = library.load("laich-2.5")
RUN = Run(INSTANCE, "heft", 0, Budget(5, workers=1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that holds one run."""
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.add(RUN, execute(RUN))
    return path


def test_a_stored_result_is_found_again_and_verified(path: Path) -> None:
    with Store(path) as store:
        result = store.get(RUN)
    assert result is not None
    assert result.method == "heft"
    assert result.makespan == 14


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, method="cpop"),
        replace(RUN, seed=1),
        replace(RUN, budget=Budget(6, workers=1)),
        replace(RUN, budget=Budget(5, workers=2)),
        replace(RUN, budget=Budget(5, workers=1, deterministic=1.0)),
        replace(RUN, budget=Budget(5, workers=1, memory=2**40)),
        replace(RUN, instance=library.load("heft-10")),
    ],
)
def test_a_run_that_differs_in_anything_is_not_found(path: Path, other: Run) -> None:
    with Store(path) as store:
        assert store.get(other) is None


def test_a_run_of_another_version_is_not_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optpart.study.run.__version__", "0.0.1")
    with Store(path) as store:
        assert store.get(replace(RUN)) is None


def test_the_name_of_an_instance_is_not_part_of_its_identity(path: Path) -> None:
    renamed = Instance(INSTANCE.graph, INSTANCE.cluster, INSTANCE.model, name="other")
    with Store(path) as store:
        result = store.get(replace(RUN, instance=renamed))
    assert result is not None
    assert result.instance.name == "other"


def test_two_sweeps_may_use_one_file(path: Path) -> None:
    other = replace(RUN, seed=1)
    with Store(path) as one, Store(path) as two:
        two.add(other, execute(other))
        assert one.get(other) is not None


def damaged(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


def test_another_file_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    damaged(foreign, "CREATE TABLE mine (a)")
    text = tmp_path / "notes.txt"
    text.write_text("no database, but long enough to be one " * 100)
    for path in (foreign, text):
        before = path.read_bytes()
        with pytest.raises(
            InputError, match=f"^{path}: exists and is not a store .*; name another file"
        ):
            Store(path)
        assert path.read_bytes() == before


@pytest.mark.parametrize("name", [".", "no-such-folder/runs.db"])
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be used as a store"):
        Store(tmp_path / name)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("'{}'", "heft, seed 0: format: is missing"),
        ("'{'", "not JSON"),
        ("x'00ff'", "not text"),
        ("CAST(x'22ff22' AS TEXT)", "not text"),
        ("json_set(document, '$.lower_bound', '15')", "bound 15 contradicts its own schedule"),
        ("json_set(document, '$.makespan', '13')", "makespan 13 is not that of its schedule"),
        ("json_set(document, '$.makespan', 'short')", "makespan: "),
        ("json_set(document, '$.seconds', -1)", "seconds: no duration"),
        ("json_set(document, '$.method', 'cpop')", "method: 'cpop' in a row of 'heft'"),
        ("json_set(document, '$.seed', 7)", "seed: 7 in a row of 0"),
        (
            "json_set(document, '$.instance_sha256', 'ab')",
            "instance_sha256: belongs to another instance",
        ),
    ],
)
def test_a_damaged_row_is_named(path: Path, document: str, problem: str) -> None:
    damaged(path, f"UPDATE run SET document = {document}")
    with Store(path) as store, pytest.raises(RowError) as fault:
        store.get(RUN)
    assert str(fault.value).startswith(f"{path}: {INSTANCE.name}, heft, seed 0: ")
    assert problem in str(fault.value)


def test_damaged_rows_of_other_runs_do_not_matter(path: Path) -> None:
    damaged(
        path, "INSERT INTO run SELECT 'ab', 'magic', -1, -5.0, 0, 0.0, 0, 'x', '', '{' FROM run"
    )
    with Store(path) as store:
        assert store.get(RUN) is not None


def test_a_seed_too_large_for_the_file_is_reported_in_one_line(path: Path) -> None:
    with Store(path) as store, pytest.raises(InputError, match="too large"):
        store.get(replace(RUN, seed=2**70))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_give_a_result_or_a_one_line_error(
    path: Path, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(path.read_bytes())
    start = data.draw(st.integers(0, len(content) - 1))
    content[start : start + 8] = data.draw(st.binary(max_size=8))
    spoilt = tmp_path / "spoilt.db"
    spoilt.write_bytes(content)
    with suppress(InputError), Store(spoilt) as store:
        store.get(RUN)
        store.add(RUN, execute(RUN))
    for file in tmp_path.glob("spoilt.db*"):
        file.unlink()
