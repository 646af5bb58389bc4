"""Every optimum of the library is certified."""

from __future__ import annotations

import pytest

from optpart.certify.check import check
from optpart.study import library

OPTIMAL = [row.name for row in library.index().values() if row.status == "OPTIMAL"]

#: The judge needs a moment for a larger proof; ``make check-certificates`` judges all.
_SMALL = 4000


def test_every_optimum_has_a_certificate() -> None:
    assert [name for name in OPTIMAL if library.certificate(name) is None] == []


@pytest.mark.parametrize("name", sorted(OPTIMAL))
def test_the_checker_accepts_it(name: str) -> None:
    folder = library.certificate(name)
    assert folder is not None
    proof = folder / "proof.lrat.xz"
    if proof.exists() and proof.stat().st_size > _SMALL:
        pytest.skip("judged by make check-certificates")
    row = library.index()[name]
    assert f"optimal makespan {row.makespan} " in check(str(folder))


def test_a_certificate_of_another_content_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "CERTIFICATES", "best")
    assert library.certificate("heft-10") is None


def test_instances_outside_the_library_have_none() -> None:
    assert library.certificate("nothing") is None
