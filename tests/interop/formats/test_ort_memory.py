"""Memory statistics of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import read_mutated

from optpart.base.errors import InputError
from optpart.interop.formats.ort_memory import NodeMemory, read

HEADER = "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"
TABLE = HEADER + "conv_1_566706725609369534,3072,448,4096,128\nTanh_9611657886417150152,16,0,0,0\n"


def test_names_lose_their_hash(tmp_path: Path) -> None:
    path = tmp_path / "stats.csv"
    path.write_text(TABLE)
    assert read(path) == [
        NodeMemory("conv_1", 3072, 448, 4096, 128),
        NodeMemory("Tanh", 16, 0, 0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,a\n", "line 1: the header is 'name,a'; write #name,input_sizes"),
        (HEADER + "conv,1,2,3,4\n", "line 2: 'conv' has no hash; write NAME_HASH"),
        (HEADER + "c_1,1,2,3\n", "line 2: 4 fields; give 5: #name"),
        (HEADER + "c_1,1,2,3,4\n" * 2, "line 3: 'c_1' for the second time; give one row each"),
        (HEADER + "c_1,1,2,3,-4\n", "line 2, total_temp_allocations: '-4' is no size; give whole"),
        (HEADER + f"c_1,1,2,3,{2**63}\n", "line 2, total_temp_allocations: '922337203685477580"),
    ],
)
def test_a_faulty_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "stats.csv"
    path.write_text(text)
    with pytest.raises(InputError) as fault:
        read(path)
    assert str(fault.value).startswith(f"{path}: {message}")


def test_any_mutation_is_read_or_refused(tmp_path: Path) -> None:
    content = TABLE.encode()
    for rows in read_mutated(read, tmp_path / "mutated.csv", content):
        assert all(row.name and row.temporary >= 0 for row in rows)
