"""Stored measurements count as long as what they depend on is the same, wherever it is kept."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench import store as stores
from bench.depends import MOVED, MOVED_PACKAGES, REGISTRY, Code, Needs, logical
from bench.status.restamp import restamp
from bench.status.results import KEPT, WHOLE
from bench.store import RESULTS, Bench, Row, Store

NEEDS = Needs(("optpart.partition.greedy",), packages=("numpy",))
RUN = {"case": "small", "seed": 1}

GREEDY = '''
"""Place where it ends first."""
from optpart import rational
from optpart.partition.base import place
from optpart.schedule import Schedule

LIMIT = 3

def greedy(instance):
    """Place every unit."""
    from optpart.ticks import floor  # only here
    return place(instance, rational.exact(LIMIT), floor)
'''
FILES = {
    "optpart/__init__.py": '_HOME = {"Schedule": "schedule"}',
    "optpart/partition/__init__.py": "",
    "optpart/partition/greedy.py": GREEDY,
    "optpart/partition/base.py": 'WORKER = "optpart.heap:run"\ndef place(*given): return given',
    "optpart/rational.py": "def exact(x): return x",
    "optpart/schedule.py": "class Schedule: ...",
    "optpart/ticks.py": "def floor(x): return x // 1",
    "optpart/heap.py": "def run(): return 1",
    "optpart/verify.py": "def verify(): ...",
}


def key(files: dict[str, str], needs: Needs = NEEDS, run: dict[str, Any] = RUN) -> str:
    return Store(Path("unused"), lambda _: needs, Code(files.get)).key(run)


def with_file(name: str, old: str, new: str) -> dict[str, str]:
    path = f"optpart/{name}.py"
    assert old in FILES[path]
    return FILES | {path: FILES[path].replace(old, new)}


# --- what does not change a key ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = (\n    3\n)"),
        ("# only here", "# not at the top"),
        ("Place every unit.", "Place all units, one after the other."),
        ('"""Place where it ends first."""', ""),
        (
            "from optpart import rational\nfrom optpart.partition.base import place",
            "from optpart.partition.base import place\nfrom optpart import rational",
        ),
        ("from optpart.partition.base import", "from .base import"),
        ("from optpart.schedule import Schedule", "from optpart import Schedule"),
    ],
    ids=["layout", "comment", "docstring", "no docstring", "order", "relative", "by the package"],
)
def test_how_code_is_written_does_not_matter(old: str, new: str) -> None:
    assert key(with_file("partition/greedy", old, new)) == key(FILES)


def test_modules_that_move_do_not_matter() -> None:
    """Neither their files, nor imports, nor what an imported module is called in the code."""
    moved = {
        path.replace(old, new): text
        for path, text in FILES.items()
        for old, new in [
            next(
                (
                    (old, MOVED[old])
                    for old in ("rational", "schedule", "ticks", "heap", "partition.base")
                    if path == f"optpart/{old.replace('.', '/')}.py"
                ),
                ("partition", "strategies.partition"),
            )
        ]
        for old, new in [(old.replace(".", "/"), new.replace(".", "/"))]
    }
    for path, text in moved.items():
        moved[path] = (
            text.replace("from optpart import rational", "from optpart.problem import rational")
            .replace("optpart.partition.base", "optpart.strategies.base")
            .replace("optpart.schedule", "optpart.solution.schedule")
            .replace("optpart.ticks", "optpart.kernels.ticks")
            .replace("optpart.heap", "optpart.kernels.heap")
        )
    assert "optpart/strategies/partition/greedy.py" in moved
    assert "optpart/kernels/heap.py" in moved
    roots = Needs(("optpart.strategies.partition.greedy",), packages=("numpy",))
    assert key(moved, roots) == key(FILES)


def test_a_renamed_module_that_code_names_does_not_matter() -> None:
    before = {
        "optpart/exact/a.py": "from optpart.exact import given\nx = given.f()",
        "optpart/exact/given.py": "def f(): ...",
    }
    after = {
        "optpart/exact/a.py": "from optpart.exact import given_order\nx = given_order.f()",
        "optpart/exact/given_order.py": "def f(): ...",
    }
    assert key(before, Needs(("optpart.exact.a",))) == key(after, Needs(("optpart.exact.a",)))


def test_what_is_not_imported_does_not_matter() -> None:
    assert key(with_file("verify", "...", "return 1")) == key(FILES)


# --- what changes a key --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("partition/greedy", "LIMIT = 3", "LIMIT = 4"),
        ("partition/base", "return given", "return given[::-1]"),
        ("ticks", "x // 1", "x // 2"),
        ("heap", "return 1", "return 2"),
        ("schedule", "...", "end = 1"),
        ("partition/base", "optpart.heap:run", "optpart.heap:walk"),
    ],
    ids=["constant", "import", "import in a function", "named by a string", "class", "entry"],
)
def test_changed_code_matters_however_it_is_reached(name: str, old: str, new: str) -> None:
    assert key(with_file(name, old, new)) != key(FILES)


def test_parameters_matter() -> None:
    assert key(FILES, run=RUN | {"seed": 2}) != key(FILES)


def test_versions_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(FILES)
    monkeypatch.setattr(stores, "package", lambda name: "0.0")
    assert key(FILES) != before


def test_data_files_matter(tmp_path: Path) -> None:
    data = tmp_path / "graph.json"
    found = set()
    for text in ("1", "2"):
        data.write_text(text)
        found.add(key(FILES, Needs(NEEDS.roots, files=(data,))))
    assert len(found) == 2


def test_a_local_name_is_not_taken_for_a_module() -> None:
    module = "from optpart import rational as r\ndef f({0}): return {0}.exact(1)"
    files = [FILES | {"optpart/schedule.py": module.format(name)} for name in ("r", "q")]
    assert key(files[0]) != key(files[1])


def test_of_the_registry_only_what_is_reached_matters() -> None:
    registry = 'T = {"a": ("optpart.heap:run", "what it does"), "b": ("optpart.ticks:floor", "")}'
    files = FILES | {"optpart/methods.py": registry}
    needs = Needs(("optpart.methods",), ("a",))
    before = key(files, needs)
    described = files | {"optpart/methods.py": registry.replace("what it does", "in other words")}
    assert key(described, needs) == before
    assert key(files | {"optpart/ticks.py": "floor = 1"}, needs) == before
    assert key(files | {"optpart/heap.py": "run = 1"}, needs) != before
    assert key(files | {"optpart/heap.py": "run = 1"}, Needs(("optpart.methods",), ("b",))) == key(
        files, Needs(("optpart.methods",), ("b",))
    )


def test_of_a_bench_only_the_measuring_part_matters() -> None:
    bench = "LIMIT = 1\ndef measured(): return LIMIT\ndef table(): return 2"
    needs = Needs(("bench.some:measured",))
    before = key({"bench/some.py": bench}, needs)
    assert key({"bench/some.py": bench.replace("return 2", "return 3")}, needs) == before
    assert key({"bench/some.py": bench.replace("LIMIT = 1", "LIMIT = 2")}, needs) != before


def test_a_root_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"optpart\.nothing"):
        key(FILES, Needs(("optpart.nothing",)))


def test_every_old_path_and_its_new_one_have_the_same_name() -> None:
    for old, new in {**MOVED, **MOVED_PACKAGES}.items():
        assert logical(f"optpart.{old}") == logical(f"optpart.{new}") == f"optpart.{new}"
    assert logical("optpart.partition.heft") == "optpart.strategies.partition.heft"
    assert logical("optpart.partition.base") == "optpart.strategies.base"
    assert logical("optpart.methods") == REGISTRY


# --- the file ------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.jsonl", lambda _: NEEDS, Code(FILES.get))


def test_a_run_is_made_once(store: Store) -> None:
    store.run(RUN, lambda: {"makespan": 5})
    assert store.run(RUN, lambda: pytest.fail("made again")).result == {"makespan": 5}


def test_rows_of_other_code_stay_and_do_not_count(store: Store) -> None:
    store.append(RUN, {"makespan": 5})
    store.code = Code(with_file("ticks", "x // 1", "x // 2").get)
    assert store.known(RUN) is None
    assert store.rows() == []
    store.append(RUN, {"makespan": 6})
    assert [row.result for row in store.rows()] == [{"makespan": 6}]
    assert len(store.all()) == 2


def test_rows_of_what_is_no_more_do_not_count(store: Store) -> None:
    store.append(RUN, {"makespan": 5})
    store.code = Code({}.get)
    assert store.rows() == []


def test_a_row_says_which_code_measured_it(store: Store) -> None:
    assert {"version", "date"} <= store.append(RUN, {}).measured.keys()


def _append(path: Path, process: int) -> None:
    store = Store(path, lambda _: NEEDS, Code(FILES.get))
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


def test_no_row_is_lost_while_the_file_is_written_anew(store: Store) -> None:
    store.append(RUN, {"makespan": 5})
    context = multiprocessing.get_context("fork")
    appending = context.Process(target=_append, args=(store.path, 0))
    appending.start()
    rewritten = 0
    while appending.is_alive() or not rewritten:
        with suppress(ValueError):  # there are more rows by now
            store.rewrite(store.all())
            rewritten += 1
    appending.join()
    assert len(store.rows()) == 101


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


def test_tables_are_of_the_rows_whatever_their_stamps(store: Store) -> None:
    store.append(RUN, {"makespan": 5})
    store.tables_written()
    mark = store.mark.read_text().strip()
    restamped = [Row("other", row.run, row.result, {}) for row in store.all()]
    assert mark == store.content(restamped)
    store.append(RUN | {"seed": 2}, {"makespan": 6})
    assert mark != store.content(store.rows())


# --- restamping ----------------------------------------------------------------------------------


class _Kept(Bench):
    kept: Store

    @property
    def store(self) -> Store:
        return self.kept


def _bench(store: Store, again: Callable[..., dict[str, Any]]) -> Bench:
    bench = _Kept(
        name="some",
        command="python bench/some",
        needs=store.needs,
        again=again,
        differs=lambda old, new: "" if old == new else f"{old}, now {new}",
        stratum=lambda row: str(row.run["seed"] % 2),
        cheap=lambda row: True,
    )
    object.__setattr__(bench, "kept", store)
    return bench


@pytest.fixture
def stale(store: Store) -> Store:
    """Ten rows of earlier code."""
    rows = [Row("", RUN | {"seed": n}, {"value": n}, {"commit": "abc"}) for n in range(10)]
    store.path.write_text("".join(json.dumps(vars(row)) + "\n" for row in rows))
    return store


def test_rows_count_again_once_a_sample_agrees(stale: Store) -> None:
    bench = _bench(stale, lambda run, _: {"value": run["seed"]})
    assert restamp(bench, 4, 0, Path()) == 0
    assert len(stale.rows()) == len(stale.all()) == 10
    assert all(row.measured["commit"] == "abc" for row in stale.all())
    assert stale.all()[0].measured["replayed"]["sample"] == 4


def test_nothing_is_written_if_every_kind_of_row_contradicts(stale: Store) -> None:
    before = stale.path.read_bytes()
    bench = _bench(stale, lambda run, _: {"value": -1})
    assert restamp(bench, 4, 0, Path()) == 1
    assert stale.path.read_bytes() == before


def test_rows_of_a_kind_that_contradicts_are_left_as_they_are(stale: Store) -> None:
    bench = _bench(stale, lambda run, _: {"value": run["seed"] if run["seed"] % 2 else -1})
    assert restamp(bench, 4, 0, Path()) == 1
    assert sorted(row.run["seed"] for row in stale.rows()) == [1, 3, 5, 7, 9]
    assert len(stale.all()) == 10


def test_rows_of_a_kind_that_the_sample_misses_are_left_as_they_are(stale: Store) -> None:
    bench = _bench(stale, lambda run, _: {"value": run["seed"]})
    assert restamp(bench, 1, 0, Path()) == 1
    assert len({row.run["seed"] % 2 for row in stale.rows()}) == 1


def test_of_a_run_measured_twice_the_newest_row_is_stamped(stale: Store) -> None:
    stale.append(RUN | {"seed": 3}, {"value": 3})
    rows = stale.all()
    rows[-1] = Row("", *list(vars(rows[-1]).values())[1:])
    stale.rewrite(rows)
    assert restamp(_bench(stale, lambda run, _: {"value": run["seed"]}), 4, 0, Path()) == 0
    assert [bool(row.key) for row in stale.all()] == [n != 3 for n in range(11)]


def test_no_row_is_lost(stale: Store) -> None:
    with pytest.raises(ValueError, match="10 rows"):
        stale.rewrite(stale.all()[1:])


# --- the status ----------------------------------------------------------------------------------


@pytest.mark.skipif(not RESULTS.exists(), reason="a source distribution leaves them out")
def test_every_committed_result_is_known() -> None:
    assert {path.stem for path in RESULTS.iterdir()} == {*KEPT, *WHOLE}


def test_what_makes_results_is_there() -> None:
    code = Code()
    for module in (*KEPT.values(), *(module for module, _ in WHOLE.values())):
        assert code.is_module(module)
