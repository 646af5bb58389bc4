"""Files are read or refused in one line, and written whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optpart import InputError
from optpart.base import files
from optpart.base.files import (
    ANY,
    MOST_BYTES,
    check_target,
    held,
    read_bytes,
    read_text,
    write_bytes,
    write_text,
)

#: What writes a file, and what only checks that this is possible.
WRITERS: list[Callable[[Path, str], None]] = [
    lambda path, text: write_text(path, text, ANY),
    lambda path, _: check_target(path, ANY),
]


class TestReading:
    def test_text(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes("größer\r\n".encode())
        assert read_text(path) == "größer\r\n"
        assert read_bytes(str(path)) == "größer\r\n".encode()

    def test_a_byte_order_mark_is_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"\xef\xbb\xbfx")
        assert read_text(path) == "x"

    def test_a_missing_file(self, tmp_path: Path) -> None:
        path = tmp_path / "none"
        with pytest.raises(InputError) as caught:
            read_text(path)
        assert str(caught.value) == (
            f"{path}: cannot be read (No such file or directory); name a readable file"
        )

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be read"):
            read_bytes(tmp_path)

    def test_a_device(self) -> None:
        """It would have no end."""
        with pytest.raises(InputError, match=r"^/dev/zero: is a device; name a readable file"):
            read_bytes("/dev/zero")

    def test_a_pipe(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(b"x",)).start()
        assert read_text(path) == "x"

    def test_a_file_too_long_to_read(self, tmp_path: Path) -> None:
        path = tmp_path / "long"
        path.touch()
        os.truncate(path, MOST_BYTES + 1)  # takes no space
        with pytest.raises(InputError, match="long: is longer than 1 GiB"):
            read_bytes(path)

    def test_what_is_no_path(self) -> None:
        with pytest.raises(InputError, match="is not a valid file name"):
            read_bytes("a\0b")

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"ab\xff")
        with pytest.raises(InputError) as caught:
            read_text(path)
        assert str(caught.value) == f"{path}: byte 2: is not UTF-8 text; give a text file"


class TestWriting:
    def test_what_is_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_text(path, "größer\n", ANY)
        assert read_text(path) == "größer\n"
        write_bytes(str(path), b"\x00\xff", ANY)
        assert read_bytes(path) == b"\x00\xff"

    def test_leaves_nothing_else_behind(self, tmp_path: Path) -> None:
        write_text(tmp_path / "file", "new", ANY)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_gives_the_rights_of_any_new_file(self, tmp_path: Path) -> None:
        write_text(tmp_path / "ours", "", ANY)
        (tmp_path / "any").write_text("")
        assert (tmp_path / "ours").stat().st_mode == (tmp_path / "any").stat().st_mode

    def test_a_replaced_file_keeps_its_permissions(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        for unnamed in (files._UNNAMED, 0):
            monkeypatch.setattr(files, "_UNNAMED", unnamed)
            path.write_text("old")
            for mode in (0o600, 0o664, 0o755):
                path.chmod(mode)
                write_text(path, "new", ANY)
                assert path.stat().st_mode & 0o7777 == mode

    @pytest.mark.parametrize("exists", [True, False])
    def test_a_link_stays_and_what_it_leads_to_is_written(
        self, tmp_path: Path, exists: bool
    ) -> None:
        (tmp_path / "far").mkdir()
        target, near, link = tmp_path / "far" / "file", tmp_path / "near", tmp_path / "link"
        near.symlink_to("far/file")
        link.symlink_to("near")
        if exists:
            target.write_text("old")
            target.chmod(0o600)
        check_target(link, ANY)
        write_text(link, "new", ANY)
        assert (link.readlink(), near.readlink()) == (Path("near"), Path("far/file"))
        assert target.read_text() == "new"
        assert not target.is_symlink()
        assert not exists or target.stat().st_mode & 0o777 == 0o600
        assert os.listdir(tmp_path / "far") == ["file"]

    @pytest.mark.parametrize(
        ("leads", "why"),
        [
            ("link", "Too many levels of symbolic links"),
            ("none/file", "No such file or directory"),
            ("/dev/null", "is not a regular file"),
            (".", "is a folder"),
        ],
    )
    @pytest.mark.parametrize("write", WRITERS)
    def test_a_link_that_leads_to_no_file_is_one_line(
        self, tmp_path: Path, write: Callable[[Path, str], None], leads: str, why: str
    ) -> None:
        link = tmp_path / "link"
        link.symlink_to(leads)
        with pytest.raises(InputError) as caught:
            write(link, "new")
        assert str(caught.value).startswith(f"{link}: cannot be written ({why}); name a ")
        assert list(tmp_path.iterdir()) == [link]
        assert str(link.readlink()) == leads

    @pytest.mark.parametrize("place", ["replace", "fsync", "link"])
    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
    def test_an_interruption_leaves_the_old_file(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        place: str,
        interruption: type[BaseException],
    ) -> None:
        path = tmp_path / "file"
        write_text(path, "old", ANY)

        def interrupted(*_: Any, **__: Any) -> None:
            raise interruption

        if place == "link" and not hasattr(os, "O_TMPFILE"):
            pytest.skip("files have a name from the start")
        monkeypatch.setattr(os, place, interrupted)
        with pytest.raises(interruption):
            write_text(path, "new", ANY)
        monkeypatch.undo()
        assert read_text(path) == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_an_interruption_just_after_the_renaming_is_not_lost(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, replace = tmp_path / "file", os.replace

        def interrupted(*names: Any) -> None:
            replace(*names)
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_text(path, "new", ANY)
        monkeypatch.undo()
        assert read_text(path) == "new"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("place", ["replace", "fsync"])
    @pytest.mark.parametrize("names", ["last", "first"])
    def test_a_full_disk_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, names: str
    ) -> None:
        """Also where a file must have a name from the start."""
        path = tmp_path / "file"
        write_text(path, "old", ANY)

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        if names == "first":
            monkeypatch.setattr(files, "_UNNAMED", 0)
        monkeypatch.setattr(os, place, full)
        with pytest.raises(InputError) as caught:
            write_text(path, "new", ANY)
        monkeypatch.undo()
        assert str(caught.value) == (
            f"{path}: cannot be written (No space left on device); name a writable place"
        )
        assert read_text(path) == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_process_killed_while_it_writes_leaves_nothing(self, tmp_path: Path) -> None:
        if not hasattr(os, "O_TMPFILE"):
            pytest.skip("files have a name from the start")
        path = tmp_path / "file"
        write_text(path, "old", ANY)
        program = (
            "import os, signal, sys; from optpart.base.files import ANY, write_text;"
            "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL);"
            "write_text(sys.argv[1], 'new', ANY)"
        )
        killed = subprocess.run([sys.executable, "-P", "-c", program, str(path)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert read_text(path) == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_files_beside_it_stay_whatever_they_are_called(self, tmp_path: Path) -> None:
        (tmp_path / ".file.optpart-aaaaaaaa").write_text("the user's")
        os.utime(tmp_path / ".file.optpart-aaaaaaaa", (1, 1))
        write_text(tmp_path / "file", "new", ANY)
        assert (tmp_path / ".file.optpart-aaaaaaaa").read_text() == "the user's"

    def test_a_file_that_has_the_name_meant_for_the_new_one_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files.secrets, "token_hex", lambda _: "aaaaaaaa")
        (tmp_path / ".file.optpart-aaaaaaaa").write_text("the user's")
        with pytest.raises(InputError, match=r"cannot be written \(File exists\)"):
            write_text(tmp_path / "file", "new", ANY)
        assert [path.read_text() for path in tmp_path.iterdir()] == ["the user's"]

    def test_where_a_file_cannot_be_named_later_it_has_a_name_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: Any, **__: Any) -> None:
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refused)
        write_text(tmp_path / "file", "new", ANY)
        assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]

    @pytest.mark.parametrize("write", WRITERS)
    def test_what_is_no_regular_file_is_not_replaced(
        self, tmp_path: Path, write: Callable[[Path, str], None]
    ) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(InputError, match=r"cannot be written \(is not a regular file\)"):
            write(pipe, "new")
        assert pipe.is_fifo()
        assert list(tmp_path.iterdir()) == [pipe]

    def test_a_long_name(self, tmp_path: Path) -> None:
        path = tmp_path / ("n" * 255)
        write_text(path, "new", ANY)
        assert read_text(path) == "new"

    def test_a_place_that_does_not_exist(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be written"):
            write_text(tmp_path / "none" / "file", "new", ANY)

    def test_a_directory(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(InputError, match="cannot be written"):
            write_text(tmp_path / "folder", "new", ANY)
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]

    def test_text_that_is_no_unicode(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_text(path, "old", ANY)
        with pytest.raises((InputError, UnicodeEncodeError)):
            write_text(path, "\ud800", ANY)
        assert read_text(path) == "old"


class TestHolding:
    """Two searches never share a checkpoint."""

    def test_a_second_holder_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "state"
        with held(path, "another search"):
            with pytest.raises(InputError) as caught, held(path, "another search"):
                pass
            assert str(caught.value) == f"{path}: in use by another search; name another file"
            with held(tmp_path / "other", "another search"):
                pass
        with held(path, "another search"):
            pass
        assert list(tmp_path.iterdir()) == []

    def test_a_link_is_the_file_that_it_leads_to(self, tmp_path: Path) -> None:
        path, link = tmp_path / "state", tmp_path / "link"
        link.symlink_to("state")
        with (
            held(path, "another search"),
            pytest.raises(InputError, match="in use by another search"),
            held(link, "another search"),
        ):
            pass

    def test_a_killed_holder_does_not_block(self, tmp_path: Path) -> None:
        path = tmp_path / "state"
        program = (
            "import os, signal, sys; from optpart.base.files import held;"
            "held(sys.argv[1], 'another search').__enter__();"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        killed = subprocess.run([sys.executable, "-P", "-c", program, str(path)], check=False)
        assert killed.returncode == -signal.SIGKILL
        with held(path, "another search"):
            pass
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("content", ["", "the user's"])
    def test_a_file_of_the_name_of_the_lock_stays(self, tmp_path: Path, content: str) -> None:
        (tmp_path / ".state.lock").write_text(content)
        with (
            held(tmp_path / "state", "another search"),
            pytest.raises(InputError, match="in use by another search"),
            held(tmp_path / "state", "another search"),
        ):
            pass
        assert (tmp_path / ".state.lock").read_text() == content

    def test_a_folder_that_does_not_exist_holds_nothing(self, tmp_path: Path) -> None:
        with held(tmp_path / "none" / "state", "another search"):
            pass
