"""The problems: eight models on three clusters of [G], and variants for its single claims."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import optpart.applications.training.clusters
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.cluster_file import (
    figures,
    read,
    training_cluster,
    with_bandwidth,
)
from optpart.applications.training.compiled import Options
from optpart.applications.training.graph import TrainingGraph
from optpart.applications.training.groups import contiguous_groups
from optpart.applications.training.models import network
from optpart.applications.training.problem import StrategyProblem
from optpart.interop.devices.named import NamedCluster
from optpart.problem.cluster import Cluster, Device

#: Clusters by name, and what they are.
CLUSTERS = {
    "heterog-4": "2 V100 + 2 GTX 1080 Ti in one server",
    "heterog-8": "2 V100 | 2 GTX 1080 Ti | 2 GTX 1080 Ti | 2 P100, in four servers",
    "heterog-12": "12 GPUs of [G]",
}
#: Samples for four devices; more devices get more in proportion. Those of [G]'s program, but for
#: NASNet, of which 24 samples do not fit a device.
BATCHES = {
    "vgg19": 96,
    "resnet200": 96,
    "inception_v3": 96,
    "mobilenet_v2": 96,
    "nasnet": 48,
    "transformer": 576,
    "bert_large": 12,
    "xlnet_large": 12,
}
#: Groups that get one decision each.
GROUPS = 30
#: What is solved exactly: clusters, groups, and seconds at most.
EXACT = (("heterog-4", 8, 10.0), ("heterog-2", 19, 60.0))
#: Gigabits per second between servers.
GBITS = (1, 2.5, 5, 10, 25, 50, 100)
#: Models of the sensitivity to bandwidth, on the testbed of eight devices.
SWEPT = ("vgg19", "resnet200", "bert_large")


@cache
def problem(model: str, cluster: str, groups: int = GROUPS) -> StrategyProblem:
    """Return a model on a cluster of [G]."""
    known = devices(cluster)
    batch = batch_of(model, len(known))
    times = graph(model, cluster)
    return StrategyProblem(times, known, batch, contiguous_groups(times, batch, groups))


def swept(model: str, gbit: float) -> StrategyProblem:
    """Return a model on the testbed with another bandwidth between servers."""
    base = problem(model, "heterog-8")
    rate = Fraction(gbit) / 8  # bytes per nanosecond
    return replace(base, cluster=with_bandwidth(base.cluster, between=rate))


def straggling(model: str, straggler: bool) -> StrategyProblem:
    """Return a model on four V100 in one server, or three and a GTX 1080 Ti."""
    base = problem(model, "heterog-4")
    kinds = ("v100-16gb",) * 3 + ("gtx-1080ti" if straggler else "v100-16gb",)
    fast, slow = base.cluster.memory_bandwidth[0], base.cluster.memory_bandwidth[-1]
    cluster = replace(
        base.cluster, kinds=kinds, memory_bandwidth=(fast, fast, fast, slow if straggler else fast)
    )
    return replace(base, cluster=cluster, options=Options(memory="none"))


def free(model: str) -> StrategyProblem:
    """Return a model on two V100 and two GTX 1080 Ti that exchange tensors in no time."""
    base = problem(model, "heterog-4")
    names = base.cluster.names
    links = Cluster.of([Device(name) for name in names])
    cluster = TrainingCluster(links, base.cluster.kinds, (0,) * len(names), (None,) * len(names))
    return replace(base, cluster=cluster)


def batch_of(model: str, count: int) -> int:
    """Return the samples of an iteration on some devices."""
    return BATCHES[model] * count // 4


@cache
def devices(cluster: str) -> TrainingCluster:
    """Return a cluster of [G], or of a file beside this one."""
    return training_cluster(_named(cluster))


@cache
def graph(model: str, cluster: str) -> TrainingGraph:
    """Return the training graph of a model, with times for the devices of a cluster."""
    return network(model).training_graph(figures(_named(cluster)))


def _named(cluster: str) -> NamedCluster:
    return read(path(cluster))


def path(cluster: str) -> Path:
    """Return the file of a cluster: one of the package's, or beside this one."""
    shipped = Path(optpart.applications.training.clusters.__file__).parent
    return (shipped if cluster in CLUSTERS else Path(__file__).parent) / f"{cluster}.toml"
