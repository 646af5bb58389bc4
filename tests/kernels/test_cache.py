"""Compiled functions are kept between runs; no damage to what is kept ends a run."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import CacheImpl, IndexDataCacheFile

from optpart import clock
from optpart.kernels import cache as kernel_cache
from optpart.kernels.compiled import kernel


def twice(x: Any) -> Any:
    return 2 * x


def users_locator() -> Any:
    """Return the class that keeps machine code in a given folder; versions name it differently."""
    (only,) = (
        x for x in CacheImpl._locator_classes if x.__name__.endswith("UserProvidedCacheLocator")
    )
    return only


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kept"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    monkeypatch.setattr(kernel_cache, "_said", set())
    return folder


def loaded() -> bool:
    """Call the function as a new process would; say whether its machine code was there."""
    fresh: Any = kernel(twice)
    assert fresh(4) == 8
    return sum(fresh.dispatcher.stats.cache_hits.values()) == 1


def kept(folder: Path, suffix: str) -> Path:
    (path,) = folder.rglob(f"*.{suffix}")
    return path


def flipped(content: bytes) -> bytes:
    middle = 2 * len(content) // 3
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "one byte short": lambda content: content[:-1],
    "one bit flipped": flipped,
    "a bit of the digest flipped": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "longer": lambda content: content + b"\0",
    "other": lambda content: b"\x80\x04\x95 what numba itself writes",
}


def test_compiled_code_is_loaded_from_the_cache(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [loaded(), loaded(), loaded()] == [False, True, True]
    assert "kept" not in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_reported_and_compiled_again(
    folder: Path, capsys: pytest.CaptureFixture[str], suffix: str, damage: str
) -> None:
    loaded()
    path = kept(folder, suffix)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert not loaded()
    said = capsys.readouterr().err
    assert said == (
        f"optpart: {path}: cached machine code is damaged or from another version; "
        "compiling again\n"
    )
    assert loaded()


def test_code_that_names_a_module_that_has_moved_is_compiled_again(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded()

    def moved(sealed: bytes) -> object:
        raise ModuleNotFoundError("No module named 'optpart.former'")

    with monkeypatch.context() as patch:
        patch.setattr("optpart.kernels.cache.pickle.loads", moved)
        assert not loaded()
    assert "from another version; compiling again" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_missing_file_is_written_again(folder: Path, suffix: str) -> None:
    loaded()
    kept(folder, suffix).unlink()
    assert [loaded(), loaded()] == [False, True]


def test_a_folder_in_place_of_a_file_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded()
    path = kept(folder, "nbc")
    path.unlink()
    path.mkdir()
    assert not loaded()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"optpart: {path}: cannot be read (Is a directory); compiling again"
    assert said[1].startswith(
        "optpart: machine code cannot be kept, so the next run compiles again ("
    )


def test_data_of_another_signature_is_not_used(folder: Path) -> None:
    """As where two processes write at once, and the index of one names the data of the other."""
    loaded()
    path = kept(folder, "nbc")
    of_whole = path.read_bytes()
    index = kept(folder, "nbi").read_bytes()
    path.unlink()
    kept(folder, "nbi").unlink()
    fresh: Any = kernel(twice)
    assert fresh(0.5) == 1.0
    of_float = kept(folder, "nbc").read_bytes()
    assert of_float != of_whole
    kept(folder, "nbi").write_bytes(index)  # names whole numbers, and stands beside floats
    assert not loaded()


def test_a_full_disk_costs_no_more_than_the_next_compilation(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert [loaded(), loaded()] == [False, False]
    (said,) = (line for line in capsys.readouterr().err.splitlines() if "kept" in line)
    assert said.startswith("optpart: machine code cannot be kept, so the next run compiles again (")
    assert said.endswith(": No space left on device)")


def test_that_nothing_can_be_kept_is_said_once_for_all_functions(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.touch()
    monkeypatch.setattr(CacheImpl, "_locator_classes", [users_locator()])
    for function in (lambda x: x + 1, lambda x: x + 2):
        function.__name__ = function.__qualname__ = f"adds_{function(0)}"
        assert kernel(function)(1) == function(1)
    said = capsys.readouterr().err.splitlines()
    assert sum("so the next run compiles again" in line for line in said) == 1


def test_compilation_takes_no_time_on_the_clock_of_limits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0.0

    def later() -> float:
        nonlocal looks
        looks += 100.0 if clock._clock.stops else 1.0
        return looks

    monkeypatch.setattr("optpart.clock.time.perf_counter", later)
    begin = clock.now()
    assert kernel(twice)(2) == 4
    # Looks at the true clock: when it stops and goes on, for the compiler and for the function.
    assert clock.now() - begin < 10


def test_without_a_writable_folder_nothing_is_cached(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.touch()  # a file where the folder would be
    monkeypatch.setattr(CacheImpl, "_locator_classes", [users_locator()])
    assert [loaded(), loaded()] == [False, False]
    said = capsys.readouterr().err
    assert said.startswith("optpart: machine code cannot be kept, so the next run compiles again (")
    assert said.count("\n") == 1
