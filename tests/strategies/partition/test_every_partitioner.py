"""What holds for every partitioning strategy: nothing to place, and nowhere to place it."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.methods.parts import PARTITIONERS
from optpart.methods.registry import partitioner
from optpart.strategies.base import NoPlacementError

#: All but those for one kind of model, and the one that needs a file of rules.
NAMES = [
    name
    for name, part in PARTITIONERS.rows.items()
    if part.available and not part.special and name != "expert"
]

every_partitioner = pytest.mark.parametrize("name", NAMES)


@every_partitioner
def test_an_empty_graph(name: str) -> None:
    instance = Instance(GraphBuilder().build(), Cluster.uniform(2))
    partition = partitioner(name)(instance, np.random.default_rng(0))
    assert partition.placement.tolist() == []


@every_partitioner
def test_no_device_left_is_an_error_that_names_a_unit(name: str) -> None:
    graph = GraphBuilder().vertex("a", 6, memory=2).vertex("b", 7, memory=2).build()
    instance = Instance(graph, Cluster.uniform(1, memory=3), Model(memory="estimate"))
    with pytest.raises(NoPlacementError, match=r"no device was left for [ab]"):
        partitioner(name)(instance, np.random.default_rng(0))
