from fractions import Fraction
from pathlib import Path

import pytest

from optpart.applications.training.cluster_file import (
    figures,
    read,
    remarks,
    shipped,
    training_cluster,
    with_bandwidth,
)
from optpart.base.errors import InputError
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats.cluster_toml import loads_named
from optpart.problem.cluster import Cluster

TWO = """
default_link = "ethernet-10g"
[[device]]
of = "v100-16gb"
name = "v100-"
count = 2
server = "a"
[[device]]
of = "gtx-1080ti"
server = "b"
"""


def test_every_device_knows_its_kind_its_server_and_its_memory() -> None:
    cluster = training_cluster(loads_named(TWO))
    assert cluster.names == ("v100-0", "v100-1", "gtx-1080ti")
    assert cluster.kinds == ("v100-16gb", "v100-16gb", "gtx-1080ti")
    assert cluster.servers == (0, 0, 1)
    assert cluster.memory_bandwidth == (900, 900, 484)
    assert remarks(loads_named(TWO)) == ()


def test_a_missing_server_is_refused() -> None:
    with pytest.raises(InputError, match=r"device 'gtx-1080ti': names no server.*; give every"):
        training_cluster(loads_named(TWO.replace('server = "b"', "")))
    with pytest.raises(InputError, match="device 'v100-0': names no server"):
        training_cluster(loads_named(TWO.replace("server", "#")))


def test_one_device_needs_no_server() -> None:
    assert training_cluster(loads_named('[[device]]\nof = "v100-16gb"')).servers == (0,)


@pytest.mark.parametrize("server", ["3", '""', "true"])
def test_a_server_is_a_name(server: str) -> None:
    with pytest.raises(InputError, match=r"^device\[1\].server: cannot be .*; give one such as"):
        loads_named(TWO.replace('"b"', server))


def test_without_figures_the_type_is_the_kind_and_copying_takes_no_time() -> None:
    named = loads_named('[[device]]\nname = "x"\ntype = "fast"')
    cluster = training_cluster(named)
    assert (cluster.kinds, cluster.memory_bandwidth) == (("fast",), (None,))
    assert [remark.split(":")[0] for remark in remarks(named)] == ["Cluster", "x"]
    assert not figures(named)
    with pytest.raises(InputError, match="device 'd0': neither figures nor a type"):
        training_cluster(NamedCluster.unnamed(Cluster.uniform(1)))


def test_two_devices_of_a_kind_have_the_same_figures() -> None:
    other = '[[device]]\nof = "v100-16gb"\nname = "x"\nserver = "c"\noverhead = "1 us"'
    with pytest.raises(InputError, match="device 'x': other figures than 'v100-0'"):
        training_cluster(loads_named(TWO + other))
    # Memory is no matter of time.
    more = loads_named(TWO + other.replace('overhead = "1 us"', 'memory = "1 GB"'))
    assert list(figures(more)) == ["v100-16gb", "gtx-1080ti"]


def test_the_testbed_of_heterog() -> None:
    """Its artifact: 2 V100 | 2 1080 Ti | 2 1080 Ti | 2 P100; 10,000 and 747 bytes/us; 12 us."""
    cluster = training_cluster(read("heterog-8"))
    assert cluster.servers == (0, 0, 1, 1, 2, 2, 3, 3)
    assert [kind.split("-")[0] for kind in cluster.kinds] == ["v100"] * 2 + ["gtx"] * 4 + [
        "p100"
    ] * 2
    assert cluster.rate[0][1] == cluster.rate[7][6] == 10
    assert cluster.rate[0][2] == cluster.rate[4][3] == cluster.rate[7][0] == Fraction(747, 1000)
    assert {cluster.latency[d][e] for d in range(8) for e in range(8) if d != e} == {12_000}
    assert cluster.cluster.memory == (13 * 10**9,) * 2 + (10 * 10**9,) * 6


def test_all_testbeds_can_be_read() -> None:
    sizes = {name: len(training_cluster(read(name))) for name in shipped()}
    assert sizes == {"heterog-12": 12, "heterog-4": 4, "heterog-4-split": 4, "heterog-8": 8}
    assert set(training_cluster(read("heterog-4")).servers) == {0}
    assert training_cluster(read("heterog-4-split")).servers == (0, 0, 1, 1)


def test_a_file_counts_before_no_testbed(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(TWO)
    assert len(read(tmp_path / "c.toml").cluster) == 3
    with pytest.raises(InputError, match=r"nothing\.toml"):
        read(str(tmp_path / "nothing.toml"))


def test_bandwidths_inside_and_between_servers_can_be_changed() -> None:
    cluster = with_bandwidth(training_cluster(read("heterog-4-split")), between=Fraction(5, 4))
    assert (cluster.rate[0][1], cluster.rate[0][2]) == (10, Fraction(5, 4))
    faster = with_bandwidth(cluster, within=Fraction(20))
    assert (faster.rate[0][1], faster.rate[3][1]) == (20, Fraction(5, 4))
    assert faster.rate[0][0] is None
