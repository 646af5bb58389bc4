"""Machine code is kept between runs under names that say what it is; no damage ends a run."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpart.kernels import machine_code, store
from optpart.kernels.compiled import kernel
from optpart.kernels.struct import Floats, Ints, Struct

FACTOR = 2
TABLE = np.array([1, 2])


class One(Struct):
    values: Ints


class Other(Struct):
    values: Floats


def helper(x: Any) -> Any:
    return x + 1


def twice(x: int) -> Any:
    return FACTOR * x


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kept"
    monkeypatch.setenv(store.VARIABLE, str(folder))
    monkeypatch.setattr(store, "_said", set())
    return folder


def loaded() -> bool:
    """Call the function as a new process would; say whether its machine code was there."""
    compiled: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        save = store.save
        patch.setattr(store, "save", lambda *kept: (compiled.append(kept[0]), save(*kept)))
        assert kernel(twice)(4) == 8
    return not compiled


def kept(folder: Path) -> Path:
    (path,) = folder.glob("*twice-*")
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


class TestFiles:
    def test_machine_code_is_loaded(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        assert [loaded(), loaded(), loaded()] == [False, True, True]
        assert "kept" not in caplog.text

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_a_damaged_file_is_reported_and_written_again(
        self, folder: Path, caplog: pytest.LogCaptureFixture, damage: str
    ) -> None:
        loaded()
        path = kept(folder)
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
        caplog.clear()
        assert not loaded()
        said = caplog.messages
        assert said[0] == f"{path}: machine code is damaged; compiling again"
        assert loaded()

    def test_code_that_names_a_module_that_has_moved_is_compiled_again(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loaded()

        def moved(sealed: bytes) -> object:
            raise ModuleNotFoundError("No module named 'optpart.former'")

        with monkeypatch.context() as patch:
            patch.setattr("optpart.kernels.store.pickle.loads", moved)
            assert not loaded()

    def test_a_full_disk_costs_no_more_than_the_next_compilation(
        self, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: object, content: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        assert [loaded(), loaded()] == [False, False]
        (said,) = (line for line in caplog.messages if "kept" in line)
        assert said == (
            "machine code cannot be kept, so the next run compiles again "
            f"({folder}: No space left on device)"
        )
        assert list(folder.iterdir()) == []

    def test_that_nothing_can_be_kept_is_said_once(
        self, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder.touch()  # a file where the folder would be
        assert [loaded(), loaded()] == [False, False]
        said = caplog.messages
        assert sum("so the next run compiles again" in line for line in said) == 1

    def test_machine_code_of_other_states_is_removed_from_the_package_only(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
        old, new = f"m.f-{20 * '0'}", f"m.f-{20 * '1'}"
        for place in (tmp_path / "shipped", folder):
            place.mkdir()
            for name in (old, new, "README"):
                (place / name).touch()
        store.prune([new])
        assert {path.name for path in (tmp_path / "shipped").iterdir()} == {new, "README"}
        assert len(list(folder.iterdir())) == 3


class TestNames:
    """Whatever the machine code depends on changes the name of its file, and nothing else does."""

    def test_the_types_of_arguments(self) -> None:
        assert store.name(twice, "int64") == store.name(twice, "int64")  # type: ignore[arg-type]
        assert store.name(twice, "int64") != store.name(twice, "double")  # type: ignore[arg-type]

    def test_the_steps_but_not_where_they_stand(self) -> None:
        source = "def f(x):\n    return {}\n"
        names = []
        for text in ("x + 1", "x + 2", "abs(x)"):
            for lines in (0, 5):
                place: dict[str, Any] = {"__name__": "m"}
                exec("\n" * lines + source.format(text), place)
                names.append(store.name(place["f"]))
        assert len(set(names)) == 3
        assert names[::2] == names[1::2]

    @pytest.mark.parametrize(
        ("name", "values"),
        {
            "number": (2, 3),
            "array": (np.array([1, 2]), np.array([1, 3])),
            "type of an array": (np.array([1, 2]), np.array([1.0, 2.0])),
            "struct": (One, Other),
            "function": (helper, twice),
            "boolean and number": (1, True),
        }.items(),
    )
    def test_what_it_refers_to(self, name: str, values: tuple[Any, Any]) -> None:
        place: dict[str, Any] = {"__name__": "m"}
        exec("def g(x):\n    return USED\ndef f(x):\n    return g(x)\n", place)
        names = []
        for value in (*values, values[0]):
            place["USED"] = value
            names.append(store.name(place["f"]))
        assert names[0] == names[2] != names[1]

    def test_the_version_of_the_compiler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = store.name(twice)  # type: ignore[arg-type]
        monkeypatch.setattr(store, "version", lambda name: "0.1.2")
        assert store.name(twice) != before  # type: ignore[arg-type]

    def test_any_module_of_optpart_is_refused_since_its_values_would_be_missed(self) -> None:
        place: dict[str, Any] = {"__name__": "m", "store": store}
        exec("def f(x):\n    return store.VARIABLE\n", place)
        with pytest.raises(TypeError, match="module"):
            store.name(place["f"])


def test_code_for_any_processor_comes_first(folder: Path) -> None:
    fresh: Any = kernel(twice)
    first, own = machine_code._names(twice)
    fresh(1)
    assert kept(folder).name == own
    kept(folder).rename(folder / first)
    assert loaded()
