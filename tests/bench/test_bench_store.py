"""Stored measurements are not made again, and none is lost."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from bench import store as stores
from bench.store import Store

RUN = {"case": "small", "seed": 1}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.jsonl")


def test_a_run_is_made_once(store: Store) -> None:
    store.run(RUN, lambda: {"makespan": 5})
    assert store.run(RUN, lambda: pytest.fail("made again")).result == {"makespan": 5}


def test_the_newest_row_of_a_run_counts(store: Store) -> None:
    store.append(RUN, {"makespan": 5})
    store.append(RUN, {"makespan": 6})
    assert store.known(RUN) == store.rows()[0]
    assert [row.result for row in store.rows()] == [{"makespan": 6}]
    assert store.known(RUN | {"seed": 2}) is None


def test_what_is_not_measured_again_is_said(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.append(RUN, {"makespan": 5})
    Store(store.path)
    assert capsys.readouterr().err.endswith("1 runs of 1 commits are kept and not measured again\n")


def test_a_row_says_which_code_measured_it(store: Store) -> None:
    assert {"version", "date"} <= store.append(RUN, {}).measured.keys()


def _append(path: Path, process: int) -> None:
    store = Store(path)
    for number in range(100):
        store.append({"process": process, "number": number}, {"text": "x" * 5000})


def test_rows_that_two_processes_append_are_all_there(store: Store) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_append, args=(store.path, n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = {(row.run["process"], row.run["number"]) for row in store.rows()}
    assert found == {(n, number) for n in range(2) for number in range(100)}


def test_a_row_cut_short_by_a_full_disk_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(RUN, {"makespan": 5})
    with monkeypatch.context() as patch:
        write = os.write
        patch.setattr(stores.os, "write", lambda file, content: write(file, content[:20]))
        with pytest.raises(OSError, match="No space left on device"):
            store.append(RUN | {"seed": 2}, {"makespan": 6})
    store.append(RUN | {"seed": 3}, {"makespan": 7})
    assert [row.result for row in store.rows()] == [{"makespan": 5}, {"makespan": 7}]


def test_a_half_written_line_is_skipped_and_said(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.append(RUN, {"makespan": 5})
    whole = store.path.read_text()
    store.path.write_text(whole + whole[:40])
    assert len(store.rows()) == 1
    assert f"{store.path}:2: no whole row, skipped" in capsys.readouterr().err
    store.append(RUN | {"seed": 2}, {"makespan": 6})
    assert [row.result for row in store.rows()] == [{"makespan": 5}, {"makespan": 6}]
