from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart.applications.training.graph import Line
from optpart.applications.training.readers.amp import GPT2, Sizes, read
from optpart.base.errors import InputError

DATA = Path(__file__).resolve().parents[4] / "../shared/data/amp"
TINY = Sizes("tiny", (80, 8), (100, 0), {"table": (60, (0, 1))})


def test_a_batch_takes_as_many_times_as_long(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.array([3e-9, 5e-9]))
    graph = read({"P3": tmp_path / "t.npy"}, TINY, tensor_parallel=2)
    time = {operation.name: operation.times[0] for operation in graph.operations}
    assert time["layer 1"] == Line(beta=Fraction(5))
    assert time["layer 1/backward"] == Line(beta=Fraction(10))
    assert {p.name: p.size for p in graph.parameters} == {"layer 0/weights": 50, "table": 30}
    assert "The backward pass takes twice as long as the forward pass, as AMP assumes." in (
        graph.assumed
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([1.0]), "holds no 2 times; give one for each layer"),
        (np.array([1, 2]), "holds no 2 times"),
        (np.array([1.0, -1.0]), "holds a time that is negative or infinite"),
        (np.array([1.0, np.inf]), "holds a time that is negative or infinite"),
        (np.array([1.0, 1.87579810458489e-309]), "t.npy: .* has too many digits"),
    ],
)
def test_faults(array: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(InputError, match=message):
        read({"P3": tmp_path / "t.npy"}, TINY)


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.npy").write_text("no array")
    with pytest.raises(InputError, match=r"t\.npy: is no array of NumPy"):
        read({"P3": tmp_path / "t.npy"}, TINY)
    np.save(tmp_path / "t.npy", np.array([3e-9, 5e-9]))
    content = (tmp_path / "t.npy").read_bytes()
    for header in (b"(2, ", b"2L, "):
        (tmp_path / "t.npy").write_bytes(content.replace(b"(2,)", header))
        with pytest.raises(InputError, match=r"t\.npy: is no array of NumPy"):
            read({"P3": tmp_path / "t.npy"}, TINY)
    with pytest.raises(InputError, match=r"none\.npy: cannot be read \(No such file"):
        read({"P3": tmp_path / "none.npy"}, TINY)


def test_gpt2_has_the_parameters_of_its_transformers_and_its_table() -> None:
    """12·h² for each of 24 layers, and the vocabulary of 52,256."""
    parameters = sum(GPT2.weights) + GPT2.shared["embedding"][0]
    assert parameters == 4 * (24 * 12 * 1024**2 + 52_256 * 1024)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/amp")
def test_the_costs_of_gpt2() -> None:
    graph = read({kind: DATA / f"gpt2_{kind}_1.npy" for kind in ("G4", "P3")}, GPT2)
    measured = np.load(DATA / "gpt2_P3_1.npy")
    assert float(graph.times(1)[:, 1].sum()) == pytest.approx(3e9 * measured.sum())
