"""Sets of instances: every one is that of its checksum, and a secret gives the same set again."""

from __future__ import annotations

import csv
import json
from itertools import count, repeat
from pathlib import Path

import pytest
from commandline import Run

import optpart as op
from optpart.interop.generate.sets import random_set, seeds_of, workflow_set
from optpart.study import dataset, library
from optpart.study.dataset import SIZES, find, rows_of, size_of, versions

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
SECRET = "0123456789abcdef" * 2
#: Printed by ``printf 0123456789abcdef0123456789abcdef | sha256sum``.
COMMITMENT = "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9"


@pytest.mark.parametrize("name", versions())
def test_every_set_is_that_of_its_version(name: str) -> None:
    """After a change, ``python bench/dataset.py`` writes the next version."""
    found = dataset.Dataset(name, "", rows_of(name))
    assert (str(len(found.rows)), found.sha256) == (
        versions()[name]["instances"],
        versions()[name]["sha256"],
    )


def test_sizes_divide_the_library_without_its_worst_cases() -> None:
    rows = [row for name in SIZES for row in rows_of(name)]
    assert sorted(row.name for row in rows) == sorted(
        row.name for row in library.index().values() if row.group != "worst"
    )
    assert [size_of(n) for n in (30, 31, 200, 201)] == ["small", "middle", "middle", "large"]
    assert {*library.small()} < {row.name for row in rows_of("small")}


def test_every_group_and_collection_is_a_set() -> None:
    rows = [*library.index().values(), *library.elsewhere().values()]
    assert {*versions()} == {*SIZES, *(row.group for row in rows)}
    assert len(library.elsewhere()) == 84 + 242 + 452


def test_what_the_index_knows_of_dagbench_is_what_was_measured() -> None:
    file = Path(__file__).parents[2] / "bench/results/dagbench.csv"
    with open(file, newline="", encoding="utf-8") as stream:
        measured = {row["graph"]: row for row in csv.DictReader(stream)}
    for row in rows_of("dagbench"):
        assert str(row.makespan) == measured[row.name]["makespan"]
        assert str(row.bound) == measured[row.name]["bound"]
    assert sum(row.makespan == row.bound for row in rows_of("dagbench")) == 71


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
@pytest.mark.parametrize(("name", "folder"), [("dagbench", "dagbench"), ("jobshop", "scheduleopt")])
def test_collections_are_read_from_a_folder(name: str, folder: str) -> None:
    found = find(name, DATA / folder)
    for row in found.rows[::20]:
        instance = found.load(row)
        assert (instance.name, instance.sha256) == (row.name, row.sha256)
        known = library.evidence(instance)
        assert (known.claimed, known.bound, known.certified) == (row.makespan, row.bound, False)


def test_a_changed_index_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "rows_of", lambda name: rows_of(name)[1:])
    with pytest.raises(op.InputError, match="set worst: the index of the library is not that of"):
        find("worst")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("wurst", "--set: no set 'wurst'; did you mean worst?"),
        ("dagbench", "--data: the files of dagbench are not part of optpart; give a copy of ANRG"),
        ("dagbench --data none", "none: no such folder; give a copy of ANRGUSC/dagbench"),
        ("dagbench --data .", "graph.json: no such file of the set dagbench; give the folder of a"),
        ("small --data .", "--data: small needs no other files; leave it out"),
        ("small heft-10", "--set: used with instances; leave one of them out"),
    ],
)
def test_what_is_wrong_is_one_line(
    run: Run, line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("gap", "--set", *line.split(), "-m", "heft")
    assert (shown.code, shown.out) == (2, "")
    assert said in shown.err.splitlines()[-1]


def test_data_without_a_set_is_refused(run: Run) -> None:
    assert run("gap", "heft-10", "--data", ".").err == (
        "optpart: --data: used without --set; name a set\n"
    )


def test_sets_are_listed(run: Run) -> None:
    listed = json.loads(run("gap", "--list", "--json").out)["sets"]
    assert listed == [*versions().values()]


# --- hidden seeds --------------------------------------------------------------------------------


def test_the_grid_with_the_seeds_of_the_library_is_its_group() -> None:
    for name, made in (("random", random_set(count(1))), ("workflows", workflow_set(repeat(3)))):
        assert {row.sha256 for row in rows_of(name)} == {instance.sha256 for instance in made}


def test_seeds_follow_from_the_secret_alone() -> None:
    """Half of the first 8 digits of ``printf '0123456789abcdef0123456789abcdef 0' | sha256sum``."""
    first, other = seeds_of(SECRET), seeds_of(SECRET[:-1])
    assert [next(first) for _ in range(3)] == [1394426690, 1341782229, 1397645196]
    assert next(other) != 1394426690


def drawn(run: Run, folder: Path, *more: str) -> str:
    (folder / "secret").write_text(f"{SECRET}\n")
    target = folder / "hidden"
    shown = run("generate", "set", "workflows", "--secret", folder / "secret", "-o", target, *more)
    return shown.out + shown.err


def test_a_secret_gives_the_same_set_to_everybody(run: Run, tmp_path: Path) -> None:
    said = drawn(run, tmp_path)
    assert f"commitment {COMMITMENT}" in said
    first = find(str(tmp_path / "hidden"))
    assert (first.name, first.version) == (f"workflows-{COMMITMENT[:12]}", "")
    assert len(first.rows) == 5
    assert not {row.sha256 for row in first.rows} & {row.sha256 for row in rows_of("workflows")}
    assert drawn(run, tmp_path, "--commitment", COMMITMENT) == said  # in the place of the first
    assert find(str(tmp_path / "hidden")) == first
    assert [each.sha256 for each in first.instances()] == [row.sha256 for row in first.rows]
    assert [each.name for each in op.load_set(str(tmp_path / "hidden"))] == [
        row.name for row in first.rows
    ]


def test_another_secret_than_that_of_the_commitment_is_refused(run: Run, tmp_path: Path) -> None:
    said = drawn(run, tmp_path, "--commitment", "0" * 64)
    assert said == (
        f"optpart: --commitment: is not of this secret, which has {COMMITMENT}; give the secret "
        "that was committed to\n"
    )
    assert "--commitment: is no SHA-256" in drawn(run, tmp_path, "--commitment", "mine")
    assert not (tmp_path / "hidden").exists()


def test_a_changed_file_of_a_folder_is_named(run: Run, tmp_path: Path) -> None:
    drawn(run, tmp_path)
    first = find(str(tmp_path / "hidden")).rows[0]
    op.save(op.load("heft-10"), tmp_path / "hidden" / first.file)
    shown = run("gap", "--set", tmp_path / "hidden", "-m", "heft")
    assert shown.code == 2
    assert f"{first.file}: is not {first.name} of the set workflows-" in shown.err
    (tmp_path / "hidden" / "set.csv").write_text("name,group\n")
    assert "set.csv: has no instances" in run("gap", "--set", tmp_path / "hidden").err


@pytest.mark.parametrize(
    ("like", "secret", "said"),
    [
        ("classic", SECRET, "LIKE: cannot draw 'classic'; choose one of random, workflows, thesis"),
        ("random", "short", "has 5 characters, which could be found by trying; give 32 or more"),
        ("random", None, "secret: no such file; make one, such as with: openssl rand -hex 32 > "),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    run: Run, tmp_path: Path, like: str, secret: str | None, said: str
) -> None:
    if secret is not None:
        (tmp_path / "secret").write_text(secret)
    shown = run("generate", "set", like, "--secret", tmp_path / "secret", "-o", tmp_path / "x")
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert said in shown.err
