"""Every entry of the library is complete, plausible, and says where it comes from."""

import tomllib
from datetime import date
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise

import pytest

from optpart.base.errors import InputError
from optpart.interop.devices.library import FAMILIES, device, devices, link, links
from optpart.interop.devices.spec import PRECISIONS, DeviceSpec, LinkSpec

DEVICES = devices().values()
LINKS = links().values()
GIB = 2**30


def documents() -> list[dict]:
    folder = files("optpart.interop.devices")
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".toml"))
    assert names == sorted(f"{family}.toml" for family in (*FAMILIES, "links"))
    return [tomllib.loads((folder / name).read_text(encoding="utf-8")) for name in names]


def test_names_are_unique() -> None:
    names = [e["name"] for d in documents() for e in d.get("device", d.get("link", []))]
    assert len(names) == len(set(names)) == len(DEVICES) + len(LINKS)


def test_no_entry_has_a_key_that_nothing_reads() -> None:
    known = {"name", "summary", "type", "peak", "bandwidth", "memory", "overhead", "source", "date"}
    known_links = {"name", "summary", "nominal", "efficiency", "latency", "source", "date"}
    for document in documents():
        assert document.keys() <= known | {"device", "link"}
        assert all(entry.keys() <= known for entry in document.get("device", []))
        assert all(entry.keys() <= known_links for entry in document.get("link", []))


@pytest.mark.parametrize("spec", [*DEVICES, *LINKS], ids=lambda spec: spec.name)
def test_every_entry_names_its_source(spec: DeviceSpec | LinkSpec) -> None:
    assert spec.source.startswith("https://")
    assert date.fromisoformat(spec.date) >= date(2026, 1, 1)
    assert spec.summary
    assert spec.name == spec.name.lower()
    assert not spec.name.endswith(".toml")


@pytest.mark.parametrize("spec", DEVICES, ids=lambda spec: spec.name)
def test_every_device_is_plausible(spec: DeviceSpec) -> None:
    assert spec.type in ("CPU", "GPU", "TPU")
    assert spec.peak.keys() <= set(PRECISIONS)
    assert "float32" in spec.peak or spec.type == "TPU"
    assert all(10 <= rate <= 5_000_000 for rate in spec.peak.values())
    present = [
        spec.peak[name] for name in ("float64", "float32", "float16", "float8") if name in spec.peak
    ]
    assert all(wide <= narrow for wide, narrow in pairwise(present))
    for narrow, wide in (("tf32", "float32"), ("bfloat16", "float32"), ("int8", "bfloat16")):
        if narrow in spec.peak and wide in spec.peak:
            assert spec.peak[narrow] >= spec.peak[wide]
    assert 10 <= spec.bandwidth <= 10_000
    assert 500 <= spec.overhead <= 20_000
    if spec.memory is None:
        assert spec.type == "CPU"
    else:
        assert 2 * GIB <= spec.memory <= 256 * GIB
    # Operations per byte at which a device is balanced: none is far from the others.
    assert 2 <= max(spec.peak.values()) / spec.bandwidth <= 1000


@pytest.mark.parametrize("spec", LINKS, ids=lambda spec: spec.name)
def test_every_link_is_plausible(spec: LinkSpec) -> None:
    assert Fraction(1, 10) <= spec.nominal <= 1000
    assert Fraction(8, 10) <= spec.efficiency < 1
    assert spec.bandwidth < spec.nominal
    assert 1000 <= spec.latency <= 100_000


@pytest.mark.parametrize(
    ("name", "precision", "rate", "bandwidth", "memory"),
    [
        ("rtx-3090", "float32", 35_600, 936, 24 * GIB),
        ("rtx-4090", "float16", 165_200, 1008, 24 * GIB),
        ("a100-80gb", "bfloat16", 312_000, 2039, 80 * GIB),
        ("h100-sxm", "float8", 1_979_000, 3350, 80 * GIB),
        ("h200", "float32", 67_000, 4800, 141 * 10**9),
        ("v100-16gb", "float16", 125_000, 900, 16 * GIB),
        ("t4", "int8", 130_000, 320, 16 * GIB),
        ("mi300x", "float16", 1_307_400, 5300, 192 * GIB),
        ("raspberry-pi-4", "float32", 48, Fraction(128, 10), 8 * GIB),
        ("epyc-7763", "float32", 64 * Fraction(245, 100) * 32, Fraction(2048, 10), None),
    ],
)
def test_spot_values(
    name: str, precision: str, rate: Fraction, bandwidth: Fraction, memory: int | None
) -> None:
    spec = device(name, "of")
    assert (spec.peak[precision], spec.bandwidth, spec.memory) == (rate, bandwidth, memory)


def test_sparsity_is_not_counted() -> None:
    """With sparsity, the datasheet has 1,979 TFLOP/s in bfloat16."""
    assert device("h100-sxm", "of").peak["bfloat16"] == Fraction(1_979_000, 2)


def test_links_state_what_they_carry() -> None:
    assert link("pcie-4-x16", "of").nominal == Fraction(16 * 16 * 128, 130 * 8)
    assert link("ethernet-1g", "of").nominal == Fraction(1, 8)
    assert float(link("ethernet-1g", "of").bandwidth) == pytest.approx(0.1177, abs=1e-4)
    assert [link(f"nvlink-{g}", "of").nominal for g in (1, 2, 3, 4)] == [80, 150, 300, 450]


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"^of: no device 'RTX3090' in the library; .*rtx-3090"):
        device("RTX3090", "of")
    with pytest.raises(InputError, match=r"no link 'pcie-4x16'.*pcie-4-x16"):
        link("pcie-4x16", "of")
    with pytest.raises(InputError, match=r"no device 7777 in the library; 'optpart devices' lists"):
        device(7777, "of")


def test_the_speed_is_that_of_float32_or_else_of_a_wide_type() -> None:
    assert device("rtx-3090", "of").speed == 35_600
    assert device("tpu-v4", "of").speed == 275_000
