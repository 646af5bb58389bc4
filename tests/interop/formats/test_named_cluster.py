"""Cluster files may name devices and links of the library; their units are then fixed."""

from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.devices import library
from optpart.interop.devices.spec import DeviceSpec, FittedSpec
from optpart.interop.formats import calibration_toml, cluster_toml
from optpart.interop.formats.cluster_toml import loads, loads_named
from optpart.problem.cluster import Cluster

GIB = 2**30
EXAMPLE = """
default_link = "ethernet-1g"

[[device]]
of = "rtx-3090"
count = 2
name = "gpu"

[[device]]
of = "epyc-7763"
name = "cpu"
memory = "64 GB"

[[link]]
from = "gpu"
to = "cpu"
of = "pcie-4-x16"

[[link]]
from = "gpu"
to = "gpu"
of = "nvlink-3-bridge"
latency = "2 us"
"""
PAIR = '[[device]]\nof = "rtx-3090"\nname = "a"\n[[device]]\nof = "t4"\nname = "b"\n'
CALIBRATION = """
format = "optpart-calibration/1"
name = "mine"
type = "GPU"
memory = "4 GiB"
precision = "float32"
[overall]
constant = 5000
per_flop = 2e-5
per_byte = "1/900"
[class.contraction]
constant = 6000
per_flop = 4e-5
per_byte = 0
[kind.Conv]
constant = 7000
per_flop = 0
per_byte = 0
"""


def test_devices_are_those_of_the_library() -> None:
    named = loads_named(EXAMPLE)
    cluster = named.cluster
    assert named.fixed_units
    assert cluster.names == ("gpu0", "gpu1", "cpu")
    assert cluster.types == ("GPU", "GPU", "CPU")
    assert cluster.memory == (24 * GIB, 24 * GIB, 64 * 10**9)
    assert cluster.speed[0] == 35_600
    gpu, _, cpu = named.specs
    assert gpu == library.devices()["rtx-3090"]
    assert isinstance(cpu, DeviceSpec)
    assert cpu.memory == 64 * 10**9


def test_links_are_those_of_the_library_between_devices_and_groups() -> None:
    cluster = loads(EXAMPLE)
    pcie, bridge = library.links()["pcie-4-x16"], library.links()["nvlink-3-bridge"]
    for gpu in (0, 1):
        assert cluster.bandwidth[gpu, 2] == cluster.bandwidth[2, gpu] == pcie.bandwidth
        assert cluster.latency[gpu, 2] == pcie.latency == 10_000
    assert cluster.bandwidth[0, 1] == cluster.bandwidth[1, 0] == bridge.bandwidth
    assert cluster.latency[0, 1] == 2000


def test_the_default_link_holds_for_all_other_pairs() -> None:
    cluster = loads('default_link = "ethernet-1g"\n' + PAIR)
    assert cluster.bandwidth[0, 1] == library.links()["ethernet-1g"].bandwidth
    assert cluster.latency[1, 0] == 50_000


def test_a_device_is_called_as_in_the_library_if_it_has_no_name() -> None:
    assert loads('[[device]]\nof = "t4"').names == ("t4",)


def test_what_is_given_overrides_the_library() -> None:
    text = """
[[device]]
of = "rtx-3090"
type = "accelerator"
memory = "20 GiB"
memory_bandwidth = "800 GB/s"
overhead = "3 us"
speed = 7
peak = {float32 = "30 TFLOP/s", float8 = "99 TFLOP/s"}
"""
    named = loads_named(text)
    (spec,) = named.specs
    assert isinstance(spec, DeviceSpec)
    assert (spec.type, spec.memory) == ("accelerator", 20 * GIB)
    assert (spec.bandwidth, spec.overhead) == (800, 3000)
    assert (spec.peak["float32"], spec.peak["float8"]) == (30_000, 99_000)
    assert spec.peak["int8"] == 284_000
    assert named.cluster.speed[0] == 7
    assert named.cluster.memory[0] == 20 * GIB
    assert library.devices()["rtx-3090"].peak["float32"] == 35_600


def test_plain_numbers_are_nanoseconds_and_bytes() -> None:
    cluster = loads("bandwidth = 25\nlatency = 7\n" + PAIR)
    assert cluster.bandwidth[0, 1] == loads('bandwidth = "25 GB/s"\n' + PAIR).bandwidth[0, 1] == 25
    assert cluster.latency[0, 1] == loads('bandwidth = 1\nlatency = "7 ns"\n' + PAIR).latency[0, 1]


def test_a_device_of_ones_own_needs_no_library() -> None:
    text = '[[device]]\nname = "x"\npeak = {float32 = 500}\nmemory_bandwidth = 50\n'
    (spec,) = loads_named(text).specs
    assert spec == DeviceSpec(
        "x", None, {"float32": Fraction(500)}, Fraction(50), None, Fraction(0)
    )


def test_a_device_may_be_a_calibration_in_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CALIBRATION)
    path = tmp_path / "cluster.toml"
    path.write_text('[[device]]\nof = "mine.toml"\nmemory = "2 GiB"\n')
    named = cluster_toml.read_named(path)
    (spec,) = named.specs
    assert isinstance(spec, FittedSpec)
    assert (named.cluster.names, named.cluster.types) == (("mine",), ("GPU",))
    assert spec.memory == named.cluster.memory[0] == 2 * GIB
    assert named.cluster.speed[0] == 50_000
    assert cluster_toml.read(path).names == ("mine",)


def test_files_without_named_devices_know_nothing_of_their_devices() -> None:
    named = loads_named('[[device]]\nname = "a"\nmemory = 5\n')
    assert named.specs == (None,)
    assert not named.fixed_units
    with pytest.raises(InputError, match="'5 GB' has a unit, but without named devices"):
        loads('[[device]]\nname = "a"\nmemory = "5 GB"\n')


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    assert cluster_toml.__doc__ is not None
    block = cluster_toml.__doc__.split("::\n")[2].split("\nIn such a file")[0]
    (tmp_path / "measured-cpu.toml").write_text(CALIBRATION)
    named = loads_named("\n".join(line[4:] for line in block.splitlines()), tmp_path)
    assert named.cluster.names == ("gpu0", "gpu1", "mine", "prototype", "disk")
    assert None not in named.specs[:-1]
    assert calibration_toml.__doc__ is not None
    block = calibration_toml.__doc__.split("::\n")[1].split("\nA cluster file")[0]
    assert calibration_toml.loads("\n".join(line[4:] for line in block.splitlines())).kinds


def test_unnamed_clusters_have_no_specs() -> None:
    from optpart.interop.devices.named import NamedCluster

    assert NamedCluster.unnamed(Cluster.uniform(2)).specs == (None, None)
    with pytest.raises(InputError, match="specs: 1 entries; give 2"):
        NamedCluster(Cluster.uniform(2), (None,), False)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('[[device]]\nof = "rtx3090"', "device[0].of: no device 'rtx3090' in the library; did you"),
        ("[[device]]\nof = 3", "device[0].of: no device 3 in the library"),
        ('[[device]]\nof = "gone.toml"', "gone.toml: cannot be read"),
        ('default_link = "pcie"\n' + PAIR, "default_link: no link 'pcie' in the library; did you"),
        (PAIR, "link: none from 'a' to 'b'; give default_link"),
        (PAIR + '[[link]]\nfrom = "a"\nto = "b"\nlatency = 1', "link: none from 'a' to 'b'"),
        (
            PAIR + '[[link]]\nfrom = "a"\nto = "b"\nof = "pcie-4-x16"\nboth = false',
            "link: none from 'b' to 'a'",
        ),
        (PAIR + '[[link]]\nfrom = "a"\nto = "c"\nof = "pcie-4-x16"', "link[0].to: no device 'c'"),
        (PAIR + '[[link]]\nfrom = "a"\nto = "b"\nof = "pcie-9"', "link[0].of: no link 'pcie-9'"),
        ('[[device]]\nof = "t4"\nmemory = "4 Gb"', "device[0].memory: 'Gb' is no unit of size"),
        ('[[device]]\nof = "t4"\noverhead = "1 GB"', "device[0].overhead: 'GB' is no unit of time"),
        ('[[device]]\nof = "t4"\nmemory_bandwidth = 0', "device[0].memory_bandwidth: 0; give"),
        ('[[device]]\nof = "t4"\npeak = 3', "device[0].peak: 3 is no table"),
        ('[[device]]\nof = "t4"\npeak = {int8 = 0}', "device[0].peak: 0 or empty"),
        ('[[device]]\nof = "t4"\npeak = {flot16 = 9}', "device[0].peak: 'flot16' is no data type"),
        ('[[device]]\nof = "t4"\npeak = {fp16 = 9}', "device[0].peak: 'fp16' is no data type"),
        ('[[device]]\nname = "x"\noverhead = 1', "device[0].peak: missing"),
        ('[[device]]\nname = "x"\npeak = {float32 = 1}', "device[0].memory_bandwidth: missing"),
    ],
)
def test_a_fault_is_one_line(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        cluster_toml.read(path)
    assert part in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_calibrated_device_has_no_peak_to_override(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CALIBRATION)
    with pytest.raises(InputError, match=r"device\[0\].peak: not of a calibrated device"):
        loads_named('[[device]]\nof = "mine.toml"\npeak = {int8 = 3}', tmp_path)


def test_calibrations_are_written_and_read() -> None:
    spec = calibration_toml.loads(CALIBRATION)
    assert spec.overall.per_byte == Fraction(1, 900)
    assert calibration_toml.loads(calibration_toml.dumps(spec)) == spec


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("optpart-calibration/1", "optpart-calibration/9", "format: is 'optpart-calibration/9'"),
        ('name = "mine"\n', "", "name: missing"),
        ('"mine"', '""', "name: empty"),
        ('"mine"', "3", "name: is a number; give a string"),
        ("[overall]", "[over]", "unknown key 'over'"),
        ("constant = 5000\n", "", "overall.constant: missing"),
        ("5000", "-1", "overall.constant: -1 is negative"),
        ("[kind.Conv]", "[kind.Conv.x]", "kind.Conv: unknown key 'x'"),
        ('"4 GiB"', '"4 Gi"', "memory: 'Gi' is no unit of size"),
    ],
)
def test_a_faulty_calibration_is_one_line(tmp_path: Path, old: str, new: str, part: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(CALIBRATION.replace(old, new))
    with pytest.raises(InputError) as error:
        calibration_toml.read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert part in str(error.value)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data())
def test_any_mutation_is_read_or_refused(data: st.DataObject) -> None:
    for example, read in ((EXAMPLE, loads), (CALIBRATION, calibration_toml.loads)):
        text = list(example)
        for _ in range(data.draw(st.integers(1, 2))):
            at = data.draw(st.integers(0, len(text) - 1))
            text[at] = data.draw(st.characters(max_codepoint=127))
        with suppress(InputError):
            read("".join(text))
