"""Tables of measured times, a column per device."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from mutations import read_mutated

from optpart.base.errors import InputError
from optpart.interop.formats.times_csv import read

TABLE = "name,gpu (us),cpu (ms),plain\nconv,23.5,1.25,0.001\nconv,22,1.5,\nrelu,5,,1/3\n"


def table(folder: Path, text: str) -> Path:
    path = folder / "times.csv"
    path.write_text(text)
    return path


def test_units_stand_in_the_header_and_rows_of_a_name_are_several_measurements(tmp_path: Path):
    path = table(tmp_path, TABLE)
    assert read(path, "gpu").times == {"conv": (23500, 22000), "relu": (5000,)}
    assert read(path, "cpu").times == {"conv": (1250000, 1500000)}
    assert read(path, "plain").times == {
        "conv": (1000000,),
        "relu": (Fraction(10**9, 3),),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the first column is not 'name'; write name,DEVICE (ms)"),
        ("op,gpu\n", "line 1: the first column is not 'name'; write name,DEVICE (ms)"),
        ("name\n", "line 1: no column 'gpu'; name one of the devices, which are missing"),
        ("name,cpu\n", "line 1: no column 'gpu'; name one of cpu"),
        ("name,gpu (h)\n", "line 1: unknown unit 'h'; write one of ns, us, µs, μs, ms, s"),
        ("name,gpu,gpu (ms)\n", "line 1: two columns 'gpu'; give every device one column"),
        ("name,(ms)\n", "line 1: a column without a device; give every device one column"),
        ("name,gpu\na,1,2\n", "line 2: 3 fields; give 2: name,gpu"),
        ("name,gpu\n,1\n", "line 2, name: is empty; name the operation"),
        ("name,gpu\na,-1\n", "line 2, gpu: -1 is negative; give a number ≥ 0"),
        ("name,gpu,cpu\na,1,x\n", "line 2, cpu: 'x' is not a number; give an integer, a decimal"),
    ],
)
def test_a_faulty_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = table(tmp_path, text)
    with pytest.raises(InputError) as fault:
        read(path, "gpu")
    assert str(fault.value).startswith(f"{path}: {message}")


def test_any_mutation_is_read_or_refused(tmp_path: Path) -> None:
    content = TABLE.encode()
    for times in read_mutated(lambda path: read(path, "gpu").times, tmp_path / "mutated", content):
        assert all(found and min(found) >= 0 for found in times.values())
