"""Every optimum of the library is certified, but for a few of real models."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from optpart.certificates.check import check
from optpart.study import library

OPTIMAL = [row.name for row in library.index().values() if row.status == "OPTIMAL"]

#: ``auto`` proves these, and an attempt of some minutes found no certificate.
UNCERTIFIED = {
    "blast-40",
    "densenet-121-edge-tight",
    "densenet-121-server-tight",
    "densenet-121-workstation-tight",
    "epigenomics-20",
    "fork-join-30",
    "inception-v1-edge-tight",
    "inception-v1-server-free",
    "inception-v1-server-tight",
    "inception-v1-workstation-free",
    "inception-v2-server-free",
    "inception-v2-server-tight",
    "inception-v2-workstation-free",
    "llama-3-70b-decode-server-tight",
    "montage-12",
    "resnet-50-server-tight",
    "resnet-50-workstation-tight",
    "shufflenet-server-tight",
    "shufflenet-workstation-tight",
    "small-60-8-ccr0.1-t-g-loose-s43",
    "small-60-8-ccr1-tight-s44",
    "squeezenet-workstation-tight",
    "zfnet-512-workstation-tight",
}


def test_every_other_optimum_has_a_certificate() -> None:
    assert {name for name in OPTIMAL if library.certificate(name) is None} == UNCERTIFIED


def test_each_claims_the_makespan_of_the_index() -> None:
    """``make check-certificates`` judges them all."""
    for name in {*OPTIMAL} - UNCERTIFIED:
        folder = library.certificate(name)
        assert folder is not None
        claim = json.loads((folder / "certificate.json").read_text())
        assert Fraction(claim["makespan"]) == library.index()[name].makespan, name


@pytest.mark.parametrize("name", ["heft-10", "lpt-2", "kwok-ahmad-9-2"])
def test_the_judge_accepts_it(name: str) -> None:
    folder = library.certificate(name)
    assert folder is not None
    assert f"optimal makespan {library.index()[name].makespan} " in check(str(folder))


def test_a_certificate_of_another_content_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "CERTIFICATES", "best")
    assert library.certificate("heft-10") is None


def test_instances_outside_the_library_have_none() -> None:
    assert library.certificate("nothing") is None
