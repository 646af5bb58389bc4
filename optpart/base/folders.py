"""Folders that are written whole; only what optpart wrote itself is ever replaced.

A manifest in each folder says what the folder holds, and has the SHA-256 of every file. A folder is
replaced if the manifest lists exactly what is there, unchanged. Anything else is left as it is.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optpart.base.children.scratch import Scratch
from optpart.base.errors import InputError
from optpart.base.files import ANY, try_beside, write_faults, write_text

MANIFEST = "manifest.json"
FORMAT = "optpart-manifest/1"

_REMEDY = "name another folder"


@contextmanager
def new_folder(target: str | Path, holds: str) -> Iterator[Path]:
    """Yield an empty folder beside the target, which takes its place when the block ends.

    If the block fails, nothing is changed. A process that is killed at any time leaves the old
    folder or the new one. The only exception are systems that cannot exchange two folders in one
    step (others than Linux, and some network file systems): killed between two renames there, it
    leaves the old folder as ``.NAME.before-…``, and none in its place.

    Parameters
    ----------
    holds : str
        What the folder holds, with an article: ``a certificate``.

    Raises
    ------
    InputError
        If the folder cannot be written or must not be replaced; see :func:`check_folder`.
    """
    place = check_folder(target, holds)
    with write_faults(target), Scratch(place.parent, f".{place.name[:50]}.optpart-") as scratch:
        draft = scratch.folder / "new"
        draft.mkdir()
        yield draft
        files = {name: _digest(draft / name) for name in sorted({*os.listdir(draft)} - {MANIFEST})}
        manifest = {"format": FORMAT, "holds": holds, "files": files}
        write_text(draft / MANIFEST, json.dumps(manifest, indent=1) + "\n", ANY)
        check_folder(target, holds)  # once more: this may have taken hours
        _put(draft, place)


def check_folder(target: str | Path, holds: str) -> Path:
    """Check before any work that a folder can be written; return where links lead to.

    Raises
    ------
    InputError
        If it cannot be written, or there is something that optpart did not write, or that was
        changed since. The message names the first such file.
    """
    place = Path(os.path.realpath(target))
    with write_faults(target):
        if not os.path.isdir(place.parent):
            raise InputError("", "its folder does not exist", "name a writable place", str(target))
        if os.path.realpath(".") == str(place):
            raise InputError("", "is the current folder", "name a folder in it", str(target))
        if os.path.lexists(place):
            if not os.path.isdir(place):
                raise InputError("", "is not a folder", "name a folder", str(target))
            for name, problem in _foreign(place, holds):
                raise InputError(name, problem, _REMEDY, str(target))
        try_beside(place)
    return place


def _foreign(place: Path, holds: str) -> Iterator[tuple[str, str]]:
    """Yield each file that forbids to replace a folder, and why."""
    names = sorted(os.listdir(place))
    if not names:
        return
    if MANIFEST not in names:
        yield names[0], f"is there, and no {MANIFEST} that says that optpart wrote it"
        return
    manifest = _manifest(place / MANIFEST)
    if manifest is None:
        yield MANIFEST, "is no manifest of optpart's"
        return
    if manifest["holds"] != holds:
        yield MANIFEST, f"says that the folder holds {manifest['holds']}, not {holds}"
    for name in sorted({*names, *manifest["files"]} - {MANIFEST}):
        if name not in manifest["files"]:
            yield name, f"was not written by optpart, as {MANIFEST} says"
        elif name not in names:
            yield name, f"is missing, and {MANIFEST} lists it"
        elif _digest(place / name) != manifest["files"][name]:
            yield name, "was changed since optpart wrote it"


def _manifest(path: Path) -> dict[str, Any] | None:
    """Read a manifest; ``None`` if it is something else."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return None
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"format", "holds", "files"}:
        return None
    return found if found["format"] == FORMAT and isinstance(found["files"], dict) else None


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; ``None`` for a folder, a link and the like."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return None
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _put(draft: Path, place: Path) -> None:
    """Put a folder in the place of another, whose content is known to be ours."""
    if not os.path.isdir(place):
        os.rename(draft, place)
        return
    draft.chmod(stat.S_IMODE(place.stat().st_mode))
    if _exchange(draft, place):
        return  # the old one is where the draft was, and goes with it
    before = place.with_name(f".{place.name[:50]}.before-{secrets.token_hex(8)}")
    os.rename(place, before)
    try:
        os.rename(draft, place)
    except BaseException:
        os.rename(before, place)
        raise
    shutil.rmtree(before)


def _exchange(one: Path, two: Path) -> bool:
    """Exchange two folders in one step, as Linux can (``renameat2``); return whether it did."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    here, exchange = ctypes.c_int(-100), ctypes.c_uint(2)  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(two), exchange) == 0)
