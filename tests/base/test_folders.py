"""A folder is replaced only if optpart wrote all that is in it, and as a whole or not at all."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import wait_for

from optpart import InputError
from optpart.base import folders
from optpart.base.folders import MANIFEST, check_folder, new_folder

HOLDS = "a certificate"


def write(place: Path, content: str = "old", holds: str = HOLDS) -> None:
    with new_folder(place, holds) as draft:
        (draft / "one").write_text(content)
        (draft / "two").write_text(content)


def held(place: Path) -> dict[str, object]:
    """All below a folder: the bytes of files, where links lead to, ``None`` for folders."""
    return {
        str(path.relative_to(place)): path.readlink()
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in place.rglob("*")
    }


def test_a_new_folder_has_a_manifest(tmp_path: Path) -> None:
    write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"one", "two", MANIFEST}
    assert os.listdir(tmp_path) == ["out"]
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert (manifest["format"], manifest["holds"]) == ("optpart-manifest/1", HOLDS)
    assert manifest["files"].keys() == {"one", "two"}


def test_an_empty_folder_and_our_own_are_replaced(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir(mode=0o750)
    for content in ("old", "new"):
        write(place, content)
        assert (place / "one").read_text() == content
        assert place.stat().st_mode & 0o777 == 0o750
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_stays_and_the_folder_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/out")
    for content in ("old", "new"):
        write(tmp_path / "link", content)
        assert (tmp_path / "link").readlink() == Path("far/out")
        assert (tmp_path / "far" / "out" / "one").read_text() == content


def changed(place: Path) -> None:
    (place / "one").write_text("changed")


def linked(place: Path) -> None:
    (place / "one").rename(place.parent / "one")
    (place / "one").symlink_to("../one")


def without_manifest(place: Path) -> None:
    (place / MANIFEST).unlink()


def with_another(place: Path) -> None:
    (place / MANIFEST).write_text('{"files": {}}')


def with_a_link_for_a_manifest(place: Path) -> None:
    (place / MANIFEST).rename(place.parent / "manifest")
    (place / MANIFEST).symlink_to("../manifest")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda place: (place / "notes.txt").touch(), "notes.txt: was not written by optpart"),
        (lambda place: (place / ".hidden").touch(), ".hidden: was not written by optpart"),
        (lambda place: (place / "sub").mkdir(), "sub: was not written by optpart"),
        (lambda place: (place / "to").symlink_to("."), "to: was not written by optpart"),
        (lambda place: (place / "two").unlink(), "two: is missing"),
        (changed, "one: was changed since optpart wrote it"),
        (linked, "one: was changed since optpart wrote it"),
        (without_manifest, "one: is there, and no manifest.json"),
        (with_another, "manifest.json: is no manifest of optpart's"),
        (with_a_link_for_a_manifest, "manifest.json: is no manifest of optpart's"),
    ],
)
def test_anything_else_in_it_is_named_and_nothing_touched(
    tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    place = tmp_path / "out"
    write(place)
    change(place)
    before = held(tmp_path)
    for attempt in (lambda: check_folder(place, HOLDS), lambda: write(place)):
        with pytest.raises(InputError) as caught:
            attempt()
        assert str(caught.value).startswith(f"{place}: {said}")
        assert str(caught.value).endswith("; name another folder")
        assert held(tmp_path) == before


def test_what_holds_something_else_is_not_replaced(tmp_path: Path) -> None:
    write(tmp_path / "out", holds="tables and figures")
    with pytest.raises(InputError, match="the folder holds tables and figures, not a certificate"):
        write(tmp_path / "out")


@pytest.mark.parametrize("leads", [False, True])
def test_a_file_is_not_replaced(tmp_path: Path, leads: bool) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(InputError, match="is not a folder; name a folder"):
        write(tmp_path / ("link" if leads else "file"))
    assert (tmp_path / "file").read_text() == "kept"


def test_the_current_folder_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is the current folder; name a folder in it"):
        check_folder(".", HOLDS)


def test_a_place_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its folder does not exist; name a writable place"):
        check_folder(tmp_path / "none" / "out", HOLDS)


def test_what_comes_while_the_folder_is_written_stays(tmp_path: Path) -> None:
    place = tmp_path / "out"
    write(place)

    def with_notes() -> None:
        with new_folder(place, HOLDS) as draft:
            (draft / "one").write_text("new")
            (place / "notes.txt").write_text("the user's")

    with pytest.raises(InputError, match=r"notes.txt: was not"):
        with_notes()
    assert (place / "notes.txt").read_text() == "the user's"
    assert (place / "one").read_text() == "old"


def test_a_failure_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "out")
    before = held(tmp_path)

    def failing() -> None:
        with new_folder(tmp_path / "out", HOLDS) as draft:
            (draft / "one").write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert held(tmp_path) == before


class TestWithoutExchange:
    """Where a system cannot exchange two folders, they are renamed one after the other."""

    @pytest.fixture(autouse=True)
    def unable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folders, "_exchange", lambda *_: False)

    def test_the_folder_is_replaced(self, tmp_path: Path) -> None:
        for content in ("old", "new"):
            write(tmp_path / "out", content)
            assert (tmp_path / "out" / "one").read_text() == content
        assert os.listdir(tmp_path) == ["out"]

    def test_a_failed_renaming_brings_the_old_one_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path / "out")
        before, rename = held(tmp_path), os.rename

        def refuse(source: Path, target: Path) -> None:
            if source.name == "new":
                raise OSError(28, "No space left on device")
            rename(source, target)

        monkeypatch.setattr(os, "rename", refuse)
        with pytest.raises(InputError, match="No space left on device"):
            write(tmp_path / "out", "new")
        assert held(tmp_path) == before


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_killed_process_leaves_the_old_folder_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanged: bool
) -> None:
    """Killed before and after each step; without an exchange, the old one may stand beside."""
    if not exchanged:
        monkeypatch.setattr(folders, "_exchange", lambda *_: False)
    for step in range(1, 8):
        place = tmp_path / str(step)
        write(place)
        killed = _killed_at(step, place)
        wait_for(lambda place=place: not [*tmp_path.glob(f".{place.name}.optpart-*")])
        left = [path for path in tmp_path.glob("*") if path.name.strip(".")[0] == str(step)]
        assert all(not [*folders._foreign(path, HOLDS)] for path in left)
        assert left if not exchanged else left == [place]
        if not killed:
            assert (place / "one").read_text() == "new"
            break
    assert step == (3 if exchanged else 7)


def _killed_at(step: int, place: Path) -> bool:
    """Replace a folder in a process that is killed at some renaming, or just after it."""
    process = os.fork()
    if process == 0:  # pragma: no cover
        left = step

        def dying(change: Callable[..., object]) -> Callable[..., object]:
            def changed(*arguments: object) -> object:
                nonlocal left
                for act in (lambda: None, lambda: change(*arguments)):
                    done = act()
                    left -= 1
                    if not left:
                        os.kill(os.getpid(), signal.SIGKILL)
                return done

            return changed

        folders._exchange = dying(folders._exchange)  # type: ignore[assignment]
        os.rename = dying(os.rename)  # type: ignore[assignment]
        write(place, "new")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
