"""Two processes on one store, stores of other code and other versions, and faults of files."""

from __future__ import annotations

import csv
import multiprocessing
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commandline import Run as Command

from optpart import Budget, InputError, Result
from optpart.methods import registry
from optpart.study import library, stored
from optpart.study import store as stores
from optpart.study.run import Run, execute
from optpart.study.store import Store, read_rows

INSTANCE = library.load("laich-2.5")
RUN = Run(INSTANCE, "heft", 0, Budget(5, workers=1))
RESULT = execute(RUN)

_COLUMNS = """
    instance_sha256 TEXT NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL,
    seconds REAL NOT NULL, workers INTEGER NOT NULL, deterministic REAL NOT NULL,
    optpart TEXT NOT NULL
"""
_KEY = "instance_sha256, method, seed, seconds, workers, deterministic, optpart"
_OLD = {
    1: [f"CREATE TABLE run ({_COLUMNS}, document TEXT NOT NULL, PRIMARY KEY ({_KEY}))"],
    2: [
        f"CREATE TABLE run ({_COLUMNS}, code TEXT NOT NULL, document TEXT NOT NULL, "
        f"PRIMARY KEY ({_KEY}, code))",
        "CREATE TABLE latest (method TEXT NOT NULL, optpart TEXT NOT NULL, code TEXT NOT NULL, "
        "PRIMARY KEY (method, optpart))",
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that holds one run."""
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.add(RUN, RESULT)
    return path


def older(path: Path, version: int) -> None:
    """Write the same store as an older version did."""
    (row,) = read_rows(path)
    for file in path.parent.iterdir():
        file.unlink()
    names = [*_KEY.split(", "), *(["code"] if version > 1 else [])]
    values = [*(getattr(row.key, name) for name in names), row.document.decode()]
    with closing(sqlite3.connect(path)) as database:
        for statement in _OLD[version]:
            database.execute(statement)
        places = ", ".join("?" for _ in values)
        database.execute(f"INSERT INTO run VALUES ({places})", values)
        database.execute(f"PRAGMA application_id = {stores.APPLICATION}")
        database.execute(f"PRAGMA user_version = {version}")
        database.commit()


PLUGIN = """
from optpart import register
from optpart.methods import registry

@register("mine")
def mine(instance, **_):
    return registry.get("{}")(instance)
"""


class TestOtherCode:
    def test_a_changed_plug_in_is_run_again_and_its_old_results_stay(
        self, run: Command, tmp_path: Path
    ) -> None:
        plugin, path = tmp_path / "mine.py", tmp_path / "runs.db"
        seen = []
        for method in ("heft", "fastest+pct", "heft"):
            plugin.write_text(PLUGIN.format(method))
            shown = run(
                "--plugin", plugin, "gap", "heft-10", "-m", "mine", "--seeds", 2, "--csv",
                "--store", path,
            )  # fmt: skip
            registry.forget("mine")
            assert shown.code == 0
            row = next(csv.DictReader(shown.out.splitlines()))
            seen.append((row["makespan_mean"], shown.err))
        told = "2 stored runs were made by other code and are run again\n"
        assert [err for _, err in seen] == ["", told, ""]
        assert seen[0] == seen[2]
        rows = [row for row in read_rows(path) if row.key.method == "mine"]
        assert [(row.key.seed, row.is_latest) for row in rows] == [
            (0, True), (1, True), (0, False), (1, False),
        ]  # fmt: skip

    def test_a_report_is_about_the_last_sweep_and_says_so(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from optpart.study.paper import Comparison
        from optpart.study.stored import read_runs

        monkeypatch.setattr("optpart.methods.fingerprint.fingerprint", lambda _: "another")
        again = Run(INSTANCE, "heft", 0, Budget(5, workers=1))
        with Store(path) as store:
            assert store.begin([again]) == 1
            store.add(again, RESULT)
        comparison = Comparison(read_runs(path))
        assert [run.code for run in comparison.runs] == ["another"]
        assert comparison.notes == [
            "Runs by other code than that of the last sweep with the method are left out, 1: heft."
        ]


def test_a_row_with_a_damaged_key_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = read_rows(path)
    damaged = row._replace(key=row.key._replace(seed=None))  # type: ignore[arg-type]
    monkeypatch.setattr(stored, "read_rows", lambda _: iter([row, damaged]))
    with pytest.raises(InputError, match=f"{path}: has a row with a damaged key"):
        stored.read_runs(path)


class TestOtherVersions:
    def test_a_store_of_the_first_one_is_kept_and_its_runs_are_of_unknown_code(
        self, path: Path
    ) -> None:
        older(path, 1)
        assert [row.key.code for row in read_rows(path)] == [""]
        with Store(path) as store:
            assert store.get(RUN) is None
            assert store.begin([RUN]) == 1
            store.add(RUN, RESULT)
            assert store.get(RUN) is not None
        assert [row.is_latest for row in read_rows(path)] == [False, True]

    def test_runs_of_one_that_did_not_know_limits_of_memory_had_none(self, path: Path) -> None:
        before = [*read_rows(path)]
        older(path, 2)
        assert [*read_rows(path)] == before
        with Store(path) as store:
            assert store.get(RUN) is not None
            assert store.get(Run(INSTANCE, "heft", 0, Budget(5, 1, memory=2**40))) is None
        assert [*read_rows(path)] == before

    def test_a_store_of_a_newer_one_is_refused_and_left_unchanged(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"PRAGMA user_version = {stores.VERSION + 1}")
        before = path.read_bytes()
        for use in (Store, lambda path: [*read_rows(path)]):
            with pytest.raises(InputError, match="is a store of a newer version of optpart"):
                use(path)
        assert path.read_bytes() == before


def _fill(path: Path, seeds: range) -> None:
    for seed in seeds:
        with Store(path) as store:
            run = Run(INSTANCE, "heft", seed, Budget(5, workers=1))
            store.begin([run])
            store.add(run, RESULT)


class TestSharing:
    def test_processes_that_begin_together_lose_and_repeat_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "runs.db"
        start = multiprocessing.get_context("fork").Process
        filling = [start(target=_fill, args=(path, range(n, n + 6))) for n in (0, 0, 3, 6)]
        for process in filling:
            process.start()
        for process in filling:
            process.join()
            assert process.exitcode == 0
        assert sorted(row.key.seed for row in read_rows(path)) == [*range(12)]

    def test_a_store_that_appears_while_its_header_is_read_is_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "runs.db"
        read = Store._pragma
        other = threading.Thread(target=lambda: Store(path).__exit__())

        def _read(store: Store, name: str) -> object:
            found = read(store, name)
            if threading.current_thread() is not other and other.ident is None:
                other.start()
                other.join(0.2)  # it can only be ready where nothing holds it up
            return found

        monkeypatch.setattr(Store, "_pragma", _read)
        with Store(path) as store:
            other.join()
            assert store.get(RUN) is None

    def test_the_result_that_came_first_stays(self, path: Path) -> None:
        other = execute(Run(INSTANCE, "heft", 0, Budget(5, workers=1)))
        with Store(path) as store:
            before = [*read_rows(path)]
            store.add(RUN, other)
        assert [*read_rows(path)] == before

    def test_one_that_is_invalid_does_not(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE run SET document = '{'")
            database.commit()
        with Store(path) as store:
            store.add(RUN, RESULT)
            assert store.get(RUN) is not None


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _spoilt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xa5" * 4096
    path.write_bytes(content)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


class TestFaults:
    @pytest.mark.parametrize(
        ("damage", "problem"),
        [
            (_truncated, "malformed"),
            (_spoilt, "is damaged"),
            (_folder, "is a folder"),
            (_pipe, "is not a regular file"),
        ],
    )
    def test_are_one_line_before_any_run(
        self, run: Command, path: Path, damage: Callable[[Path], None], problem: str
    ) -> None:
        damage(path)
        shown = run("gap", "heft-10", "-m", "heft", "--store", path)
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith(f"optpart: {path}: ")
        assert problem in shown.err
        assert shown.err.count("\n") == 1

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="its folder does not exist"):
            Store(tmp_path / "none" / "runs.db")

    def test_an_empty_file_becomes_a_store(self, tmp_path: Path) -> None:
        path = tmp_path / "runs.db"
        path.touch()
        with Store(path) as store:
            store.add(RUN, RESULT)
        assert len([*read_rows(path)]) == 1

    def test_a_full_disk_costs_no_finished_run(
        self, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, table = tmp_path / "runs.db", tmp_path / "table.json"
        add = Store.add

        def full(self: Store, run: Run, result: Result) -> None:
            if run.method == "cpop":
                self._database.execute(
                    "CREATE TEMP TRIGGER full BEFORE INSERT ON run "
                    "BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
                )
            add(self, run, result)

        monkeypatch.setattr(Store, "add", full)
        shown = run(
            "gap", "laich-2.5", "-m", "heft", "-m", "cpop", "-m", "etf", "--store", path,
            "-o", table,
        )  # fmt: skip
        assert shown.code == 2
        assert "stopped: the results so far follow\n" in shown.err
        assert shown.err.endswith(
            f"optpart: {path}: cannot be used as a store (database or disk is full); name a new "
            "file, or one that 'optpart gap --store' created\n"
        )
        assert [row.key.method for row in read_rows(path)] == ["heft"]
        assert '"method": "cpop"' in table.read_text()
        assert "cpop" in shown.out
