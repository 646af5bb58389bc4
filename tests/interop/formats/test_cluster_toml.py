from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from faults import one_line_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.formats import cluster_toml
from optpart.interop.formats.cluster_toml import dumps, loads
from optpart.problem.cluster import Cluster, Device

EXAMPLE = """
bandwidth = 25
latency = 0.1

[[device]]
name = "cpu"
type = "CPU"
speed = 10
memory = 64.5

[[device]]
name = "gpu"
type = "GPU"
speed = "40/3"
count = 2

[[link]]
from = "gpu0"
to = "gpu1"
bandwidth = "infinite"

[[link]]
from = "cpu"
to = "gpu0"
latency = 2
both = false
"""


def test_counted_devices_get_numbers():
    cluster = loads(EXAMPLE)
    assert cluster.names == ("cpu", "gpu0", "gpu1")
    assert cluster.types == ("CPU", "GPU", "GPU")


def test_numbers_are_exact():
    cluster = loads(EXAMPLE)
    assert cluster.speed.fractions() == [10, Fraction(40, 3), Fraction(40, 3)]
    assert cluster.memory == (Fraction(129, 2), None, None)
    assert cluster.latency[1, 0] == Fraction(1, 10)


def test_a_link_overrides_its_values_in_both_directions_by_default():
    cluster = loads(EXAMPLE)
    assert cluster.infinite[1, 2]
    assert cluster.infinite[2, 1]
    assert cluster.latency[1, 2] == Fraction(1, 10)
    assert cluster.latency[0, 1] == 2
    assert cluster.latency[1, 0] == Fraction(1, 10)
    assert cluster.bandwidth[0, 1] == cluster.bandwidth[1, 0] == 25


def test_without_bandwidth_and_latency_communication_is_free():
    cluster = loads('[[device]]\nname = "a"\n[[device]]\nname = "b"\n')
    assert cluster.infinite.all()
    assert cluster.latency[0, 1] == 0
    assert cluster.speed.fractions() == [1, 1]


def test_a_matrix_may_have_infinite_entries_and_missing_links():
    devices = '[[device]]\nname = "a"\n[[device]]\nname = "b"\n'
    cluster = loads(
        'bandwidth = [[0, "infinite"], [0, 0]]\nlatency = [[0, 1], ["1/3", 0]]\n' + devices
    )
    assert cluster.linked.tolist() == [[True, True], [False, True]]
    assert (cluster.latency[0, 1], cluster.latency[1, 0]) == (1, Fraction(1, 3))


DEVICE = '[[device]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "devices: no devices"),
        ("[[device", "not TOML"),
        ("a = " + "[" * 100_000, "is nested too deeply"),
        ("a = " + "9" * 5000, "cannot be read"),
        ("a = 1e999999999999999999999", "has too many digits"),
        ("cores = 4\n" + DEVICE, "unknown key 'cores'"),
        (DEVICE + "cores = 4", "device[0]: unknown key 'cores'"),
        ("device = 3", "device: is a number; give a list"),
        ("device = [3]", "device[0]: is a number; give an object"),
        ("[[device]]\nspeed = 1", "device[0].name: missing name"),
        ("[[device]]\nname = 3", "device[0].name: missing name"),
        (DEVICE + "type = 3", "device[0].type: must be a string, not 3"),
        (DEVICE + DEVICE, "'a' is already"),
        (DEVICE + "speed = 0", "device[0].speed: 0 is not positive"),
        (DEVICE + "speed = 1e99999999999999999999", "'1e99999999999999999999' has too many"),
        (DEVICE + "speed = nan", "device[0].speed: NaN is not finite"),
        (DEVICE + "speed = 2020-01-01", "device[0].speed"),
        (DEVICE + "memory = -1", "device[0].memory: -1 is negative"),
        (DEVICE + "count = 0", "device[0].count: cannot be 0"),
        (DEVICE + "count = true", "device[0].count: cannot be True"),
        (DEVICE + "count = 1000000000", "device[0].count: cannot be 1000000000"),
        (DEVICE + "count = 999\n" + DEVICE + "count = 999", "device: 1998 devices"),
        ('bandwidth = "big"\n' + DEVICE, "bandwidth: 'big' is not a number"),
        ("bandwidth = [[1, 2]]\n" + DEVICE, "bandwidth: has the wrong size; give 1 rows of 1"),
        ("bandwidth = [1]\n" + DEVICE, "bandwidth[0]: is a number; give a list"),
        ("bandwidth = [[true]]\n" + DEVICE, "bandwidth[0][0]: True is not a number"),
        ('latency = "infinite"\n' + DEVICE, "latency: 'infinite' is not a number"),
        (DEVICE + '[[link]]\nfrom = "a"', "link[0].to: no device None"),
        (DEVICE + '[[link]]\nfrom = "b"\nto = "a"', "link[0].from: no device 'b'"),
        (DEVICE + '[[link]]\nfrom = "a"\nto = "a"', "link[0]: links a device to itself"),
        (DEVICE + '[[link]]\nfrom = "a"\nspeed = 1', "link[0]: unknown key 'speed'"),
        (
            DEVICE + '[[device]]\nname = "b"\n[[link]]\nfrom = "a"\nto = "b"\nboth = 1',
            "link[0].both: cannot be 1",
        ),
        (
            DEVICE + '[[device]]\nname = "b"\n[[link]]\nfrom = "a"\nto = "b"\nbandwidth = -1',
            "link[0].bandwidth: -1 is negative",
        ),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, text, part):
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    with one_line_fault(path, part):
        cluster_toml.read(path)


def same(first: Cluster, second: Cluster) -> bool:
    return (
        (first.names, first.types, first.memory) == (second.names, second.types, second.memory)
        and first.speed.fractions() == second.speed.fractions()
        and first.bandwidth.fractions() == second.bandwidth.fractions()
        and first.latency.fractions() == second.latency.fractions()
        and np.array_equal(first.infinite, second.infinite)
    )


NUMBERS = st.fractions(min_value=0, max_value=50, max_denominator=12)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    k = len(names)
    devices = [
        Device(
            name,
            draw(NUMBERS) + Fraction(1, 7),
            draw(st.none() | TEXTS),
            draw(st.none() | NUMBERS),
        )
        for name in names
    ]

    def square(entries: st.SearchStrategy) -> st.SearchStrategy:
        return st.lists(st.lists(entries, min_size=k, max_size=k), min_size=k, max_size=k)

    return Cluster.of(
        devices,
        draw(st.none() | NUMBERS | square(st.none() | NUMBERS)),
        draw(NUMBERS | square(NUMBERS)),
    )


@settings(derandomize=True, deadline=None, max_examples=50)
@given(cluster=clusters())
def test_any_cluster_survives_the_round_trip(cluster):
    assert same(loads(dumps(cluster)), cluster)


def test_files_are_written_and_read(tmp_path):
    path = tmp_path / "cluster.toml"
    cluster_toml.write(loads(EXAMPLE), path)
    assert same(cluster_toml.read(path), loads(EXAMPLE))


def test_a_value_for_all_pairs_stays_one_value():
    assert dumps(Cluster.uniform(1)).startswith('bandwidth = "infinite"\nlatency = 0\n')
    assert dumps(Cluster.uniform(2, bandwidth=5)).startswith("bandwidth = 5\nlatency = 0\n")


@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data())
def test_any_mutation_is_read_or_refused(tmp_path_factory, data):
    raw = bytearray(EXAMPLE.encode())
    for _ in range(data.draw(st.integers(1, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(raw), len(raw) // 2, 30]))
    path = tmp_path_factory.getbasetemp() / "mutated.toml"
    path.write_bytes(raw[:cut])
    with suppress(InputError):
        cluster_toml.read(path)


def test_the_example_of_the_documentation_is_valid():
    assert cluster_toml.__doc__ is not None
    block = cluster_toml.__doc__.split("::\n")[1].split("\nRows of")[0]
    cluster = loads("\n".join(line[4:] for line in block.splitlines()))
    assert cluster.names == ("cpu", "gpu0", "gpu1")


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        cluster_toml.read(Path(tmp_path / "gone.toml"))
