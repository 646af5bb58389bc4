"""Archives: what is certified is what the index says, and nothing a file says is believed."""

from __future__ import annotations

import json
import shutil
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from optpart.base.errors import InputError
from optpart.study import archive as module
from optpart.study.archive import HEADS, Archive, Listed, contradictions, judged, read_lists
from optpart.study.archive import summary as table

#: Two jobs on two machines: machine 0 is busy for 4 + 3, and 2 more pass after it. Optimum 9.
SHOP = "2 2\n0 4  1 2\n0 3  1 2\n"
#: One operation on either of two machines.
FLEXIBLE = "1 2\n1  2 1 5 2 4\n"


def entry(
    name: str, lower: object = None, upper: object = None, family: str = "f"
) -> dict[str, Any]:
    return {"instance": name, "family": family, "lower_bound": lower, "upper_bound": upper}


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A list with an instance of each way to be named, one absent, and a file of no name."""
    place = tmp_path / "shops"
    for name in ("shop.txt", "edata/la01.txt", "more/01a.txt", "new/new.txt"):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FLEXIBLE if name.startswith("edata") else SHOP)
    rows = [entry("shop", 9, 9), entry("la01_edata", 4, 5), entry("dpp01a", 8, 10, "dpp"),
            entry("absent", 1, 2)]  # fmt: skip
    (place / "bks.json").write_text(json.dumps(rows))
    return place / "bks.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of one job shop."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "in").mkdir()
    (folder / "in" / "shop.txt").write_text(SHOP)
    (folder / "in" / "bks.json").write_text(json.dumps([entry("shop", 9, 9)]))
    found = Archive(folder / "out")
    with found.held():
        found.add(read_lists([folder / "in" / "bks.json"])[0], 5.0)
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def test_files_are_found_by_the_name_of_the_instance(lists: Path) -> None:
    found = {each.name: each for each in read_lists([lists])}
    files = {name: [file.name for file in each.files] for name, each in found.items()}
    assert files == {
        "shop": ["shop.txt"], "la01_edata": ["la01.txt"], "dpp01a": ["01a.txt"], "absent": [],
        "new": ["new.txt"],
    }  # fmt: skip
    assert (found["dpp01a"].lower, found["dpp01a"].set) == (Fraction(8), "shops/dpp")
    assert (found["new"].lower, found["new"].set) == (None, "shops/new")


@pytest.mark.parametrize(
    "rows",
    [
        {},
        [1],
        [{}],
        [entry("a"), entry("a")],
        [entry("../a")],
        [entry("a", "x")],
        [entry("a", True)],
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, rows: object) -> None:
    (tmp_path / "bks.json").write_text(json.dumps(rows))
    with pytest.raises(InputError):
        read_lists([tmp_path / "bks.json"])


def test_the_entry_says_what_the_certificate_proves(made: Path) -> None:
    row = Archive(made / "out").rows["shop"]
    assert (row["lower_bound"], row["upper_bound"], row["status"]) == (9, 9, "closed")
    certificate = row["lb_data"][0]["certificate"]
    assert certificate["tier"] == "one-machine"
    assert certificate["size"] == (made / "out" / certificate["path"]).stat().st_size
    listed = read_lists([made / "in" / "bks.json"])
    (verdict,) = judged(Archive(made / "out"), listed)
    assert verdict.proven
    assert not verdict.contradictions


def test_a_certificate_says_nothing_about_another_instance(copied: Path) -> None:
    (copied / "in" / "shop.txt").write_text(SHOP.replace("3", "2"))
    (verdict,) = judged(Archive(copied / "out"), read_lists([copied / "in" / "bks.json"]))
    assert not verdict.proven
    assert "another instance" in verdict.said


@pytest.mark.parametrize("key", ["lower_bound", "upper_bound"])
def test_an_index_that_claims_more_than_is_proven_is_rejected(copied: Path, key: str) -> None:
    index = copied / "out" / "bks.json"
    rows = json.loads(index.read_text())
    rows[0][key] += 1
    index.write_text(json.dumps(rows))
    (verdict,) = judged(Archive(copied / "out"))
    assert not verdict.proven
    assert "the index" in verdict.said


@pytest.mark.parametrize(
    ("key", "value"),
    [("instance", "../x"), ("published", None), ("lb_data", [1]), ("set", 1), ("time_limit", "x"),
     ("lb_data", [{"certificate": {"tier": "path", "sha256": "", "size": "1/3"}}]),
     ("upper_bound", "1e999999999")],
)  # fmt: skip
def test_an_index_of_another_form_is_refused(copied: Path, key: str, value: object) -> None:
    index = copied / "out" / "bks.json"
    rows = json.loads(index.read_text())
    index.write_text(json.dumps([{**rows[0], key: value}]))
    with pytest.raises(InputError, match=r"bks\.json"):
        Archive(copied / "out")


def test_only_one_process_writes_and_a_killed_one_does_no_harm(tmp_path: Path) -> None:
    found = Archive(tmp_path / "out")
    with found.held(), pytest.raises(InputError, match="in use"), Archive(tmp_path / "out").held():
        pass
    assert not Archive(tmp_path / "out").rows  # a folder without an index, but nothing else
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(InputError, match="this is no archive"):
        Archive(tmp_path / "out")


def forged(index: Path, content: bytes) -> None:
    """Put other bytes in the place of the certificate, with their hash in the index."""
    rows = json.loads(index.read_text())
    rows[0]["lb_data"][0]["certificate"]["sha256"] = module._digest(content)
    index.write_text(json.dumps(rows))
    (index.parent / "certificates" / "shop.zip").write_bytes(content)


def packed_with(folder: Path, **files: bytes) -> bytes:
    with zipfile.ZipFile(folder / "some.zip", "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return (folder / "some.zip").read_bytes()


@pytest.mark.parametrize("files", [{}, {"../x": b""}, {"certificate.json": b"{}"}, {"x": b""}])
def test_forged_certificates_are_rejected_and_write_nothing(
    copied: Path, files: dict[str, bytes]
) -> None:
    forged(copied / "out" / "bks.json", packed_with(copied, **files))
    before = sorted(copied.parent.rglob("*"))
    (verdict,) = judged(Archive(copied / "out"))
    assert not verdict.proven
    assert sorted(copied.parent.rglob("*")) == before


def test_no_changed_byte_is_accepted_as_something_else(copied: Path) -> None:
    path = copied / "out" / "certificates" / "shop.zip"
    whole = path.read_bytes()
    for i in range(0, len(whole), 97):
        changed = whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :]
        forged(copied / "out" / "bks.json", changed)
        (verdict,) = judged(Archive(copied / "out"), read_lists([copied / "in" / "bks.json"]))
        assert not verdict.proven or "9" in verdict.said


@pytest.mark.parametrize(
    ("lower", "upper", "least", "most", "count"),
    [(9, 9, 9, 9, 0), (8, None, 9, 9, 0), (9, 10, 9, 8, 1), (7, 8, 9, 9, 1), (9, 9, None, None, 0),
     (None, None, 1, 2, 0), (9, 9, 10, 8, 2)],
)  # fmt: skip
def test_contradictions(
    lower: object, upper: object, least: object, most: object, count: int
) -> None:
    published = {"lower_bound": least, "upper_bound": most}
    row = {"lower_bound": lower, "upper_bound": upper, "published": published}
    assert len([*contradictions(row)]) == count


def test_a_worse_certificate_replaces_none(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Archive(copied / "out")
    listed = read_lists([copied / "in" / "bks.json"])[0]
    before = found.rows["shop"]
    worse = {**before, "lower_bound": 8, "status": "open"}
    monkeypatch.setattr(module, "_certified", lambda *_: (b"worse", worse))
    with found.held():
        after = found.add(listed, 7.0)
    assert after == {**before, "time_limit": 7.0}
    assert [verdict.proven for verdict in judged(found)] == [True]


def test_done_is_what_is_closed_or_had_the_time(copied: Path) -> None:
    found = Archive(copied / "out")
    assert found.is_done("shop", 100.0)  # its optimum is certified
    found.rows["shop"]["status"] = "open"
    assert found.is_done("shop", 5.0)
    assert not found.is_done("shop", 6.0)
    assert not found.is_done("other", 1.0)
    found.rows["shop"]["optpart"] = "0"
    assert not found.is_done("shop", 5.0)
    found.rows["shop"]["status"] = "closed"
    found.path("shop").unlink()  # killed between two files
    assert not found.is_done("shop", 5.0)


def test_the_summary_counts_by_set(made: Path) -> None:
    row = Archive(made / "out").rows["shop"]
    absent = {**row, "lb_data": [], "lower_bound": None, "upper_bound": None,
              "failed": str(_fault(Listed("absent", "in/f", (), {})))}  # fmt: skip
    missed = {**row, "published": {"lower_bound": 10, "upper_bound": 10}}
    *_, total = table([row, absent, missed])
    figures = dict(zip(HEADS, total, strict=True))
    assert {k: v for k, v in figures.items() if k != "kB"} == {
        "set": "all", "instances": "3", "certificates": "2", "optimal": "2", "published": "3",
        "certified": "1", "missed": "1", "no file": "1",
    }  # fmt: skip


def _fault(listed: Listed) -> InputError:
    with pytest.raises(InputError) as caught:
        listed.read()
    return caught.value


def test_command(run: Run, lists: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    first = run("archive", out, str(lists), "--time-limit", "2")
    assert first.code == 0, first.err
    assert "shops/dpp" in first.out
    rows = {row["instance"]: row for row in json.loads((tmp_path / "out/bks.json").read_text())}
    assert rows["la01_edata"]["lower_bound"] == 4
    assert "no file" in rows["absent"]["failed"]
    again = run("archive", out, str(lists), "--time-limit", "2")
    assert again.out == first.out
    assert "[1/" not in again.err
    checked = run("archive", out, str(lists), "--check")
    assert checked.code == 0, checked.out
    assert checked.out.endswith(
        "4 certificates: 4 accepted, 0 rejected; 0 contradict a published value\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no list of instances"),
        (("--check",), "holds no archive"),
        (("absent.json",), "absent.json"),
    ],
)
def test_wrong_arguments_are_one_line(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = run("archive", str(tmp_path / "out"), *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
