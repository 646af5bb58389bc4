"""The soak: its cases depend on their number alone, and what is finished is not repeated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.soak import files, plans, schedules
from bench.soak.__main__ import table
from bench.soak.runs import PARTS, Block, FailedError, Kept, blocks_of
from bench.soak.schedules import Judged
from optpart.testing.draw import draw_instance

PART = PARTS["files"]


def test_every_part_has_a_case() -> None:
    for part in PARTS.values():
        assert (Path(files.__file__).parent / f"{part.name}.py").is_file()
        assert part.minute <= part.count


def test_every_reader_reads_its_sample() -> None:
    for name, read in files.all_readers():
        if (files.SAMPLES / name).exists():
            read(files.SAMPLES / name)


@pytest.mark.parametrize("number", range(0, 400, 13))
def test_a_damaged_file_is_read_or_refused_alike_in_every_run(number: int, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert files.case(number, tmp_path / "one") == files.case(number, tmp_path / "two")


def test_random_schedules_of_both_kinds_are_judged_alike(tmp_path: Path) -> None:
    outcomes = Counter(schedules.case(number, tmp_path) for number in range(200))
    assert min(outcomes["accepted"], outcomes["refused"]) > 40


def test_a_verifier_that_sees_nothing_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(schedules, "verify", lambda *_: [])

    def run() -> None:
        for number in range(50):
            schedules.case(number, tmp_path)

    with pytest.raises(FailedError, match="naive"):
        run()


def test_a_verifier_of_plans_that_sees_nothing_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plans, "violations", lambda *_: [])

    def run() -> None:
        for number in range(50):
            plans.case(number, tmp_path)

    with pytest.raises(FailedError, match="the verifier says"):
        run()


def test_blocks_cover_all_numbers_once() -> None:
    blocks = list(blocks_of(PART, 7, 2 * PART.block + 5))
    assert [block.key for block in blocks] == [
        (7, PART.block),
        (7 + PART.block, PART.block),
        (7 + 2 * PART.block, 5),
    ]


def test_the_newest_row_of_a_block_counts_and_half_a_row_does_not(tmp_path: Path) -> None:
    kept = Kept(tmp_path, PART)
    kept.append(Block(0, 10, Counter(accepted=9, failed=1), [(3, "AssertionError: no")]))
    with kept.path.open("a") as out:
        out.write('{"first": 10, "cou')
    assert table(tmp_path)[1]
    assert "files 3: AssertionError: no" in table(tmp_path)[0]
    kept.append(Block(0, 10, Counter(accepted=8, refused=2), seconds=1.0))
    text, failed = table(tmp_path)
    assert not failed
    kept.append(Block(0, 4, Counter(accepted=4)))  # of a shorter run; not counted twice
    assert table(tmp_path)[0] == text
    assert text.splitlines()[-1].split() == ["mutated", "files", "10", "8", "2", "0", "1"]


def test_other_names_and_units_change_no_verdict() -> None:
    for seed in range(20):
        instance = draw_instance(seed, "link", "refcount")
        judged = Judged(schedules.renamed(instance, seed))
        other, time, size = schedules.scaled(instance, seed)
        again = Judged(other)
        assert judged.placements == again.placements
        for where in judged.placements[:3]:
            assert again.naive.traffic(where) == size * judged.naive.traffic(where)
            for v, d in enumerate(where):
                assert other.duration(v, d) == time * instance.duration(v, d)
