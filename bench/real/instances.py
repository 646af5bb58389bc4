"""The instances: nine networks on three clusters, and chains of transformer blocks on a fleet.

The networks are those of the instance library's group ``models``; times are whole nanoseconds,
sizes bytes. A chain has the embedding, the head and as many blocks as wanted of one language model,
and runs one step for one sequence: it decodes a token at the end of a full cache of 4,096
positions, or prefills these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import networkx as nx

from bench.library import CLUSTERS, ONNX
from bench.real.memory import MEMORY, limited
from optpart.interop.costs.roofline import roofline
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats import cluster_toml, llm_names
from optpart.interop.formats.llm import Step, Transformer, chain
from optpart.problem.instance import Instance
from optpart.problem.model import Communication
from optpart.problem.workload import Workload
from optpart.study import library

NETWORKS = tuple(ONNX.values())
COMMUNICATION: tuple[Communication, ...] = ("delay", "port")

BLOCKS = (8, 16, 32, 64, 128)
DEVICES = (2, 4, 8)
STEPS = ("decode", "prefill")
CHAIN_MEMORY = ("free", "tight")
#: Its blocks, embedding and head are those of the chains.
MODEL = "llama-3-8b"
TYPE = "float16"
#: Unlike devices, two to a server.
FLEET = (
    "a100-80gb", "l40s", "rtx-a6000", "rtx-4090", "v100-32gb", "a10", "rtx-3090", "t4",
)  # fmt: skip
WITHIN_SERVER, BETWEEN_SERVERS = "pcie-3-x16", "ethernet-100g"


@dataclass(frozen=True)
class Case:
    """One instance.

    Attributes
    ----------
    group : {"networks", "chains"}
    name : str
    base : str
        Names what is placed and where, whatever the memory and the communication.
    memory : {"free", "tight", "very-tight"}
    communication : {"delay", "port"}
    """

    group: str
    name: str
    base: str
    memory: str
    communication: Communication = "delay"

    def instance(self) -> Instance:
        """Return the instance."""
        found = limited(base(self.group, self.base), self.memory)
        model = replace(found.model, communication=self.communication)
        return replace(found, model=model, name=self.name)


def cases() -> Iterator[Case]:
    """Yield all cases."""
    yield from networks()
    yield from chains()


def networks() -> Iterator[Case]:
    """Yield ``NETWORK-CLUSTER-MEMORY``, under ``port`` with that suffix."""
    for network, cluster, memory, communication in product(
        NETWORKS, CLUSTERS, MEMORY, COMMUNICATION
    ):
        suffix = "" if communication == "delay" else f"-{communication}"
        where = f"{network}-{cluster}"
        yield Case("networks", f"{where}-{memory}{suffix}", where, memory, communication)


def chains() -> Iterator[Case]:
    """Yield ``llm-BLOCKS-DEVICES-STEP-MEMORY``."""
    for blocks, devices, step, memory in product(BLOCKS, DEVICES, STEPS, CHAIN_MEMORY):
        where = f"llm-{blocks}-{devices}-{step}"
        yield Case("chains", f"{where}-{memory}", where, memory)


@cache
def base(group: str, name: str) -> Instance:
    """Return an instance whose cluster has its real memory, which does not count."""
    if group == "networks":
        return _network(*name.rsplit("-", 1))
    _, blocks, devices, step = name.split("-")
    return _chain(int(blocks), int(devices), step)


def _network(network: str, cluster: str) -> Instance:
    """Take the instance of the library; only the real memory is not in it."""
    free = library.load(f"{network}-{cluster}-free")
    real = cluster_toml.read_named(library.folder() / "clusters" / f"{cluster}.toml").cluster
    assert real.names == free.cluster.names
    source = free.source.removesuffix("; memory does not count")
    return replace(free, cluster=replace(free.cluster, memory=real.memory), source=source)


def _chain(blocks: int, devices: int, step: str) -> Instance:
    workload, fleet = _workload(blocks, step), _fleet(devices)
    found = roofline(workload, fleet, memory="none").instance
    about = " ".join((workload.source, *workload.assumed))
    source = f"{about}; on {', '.join(fleet.cluster.names)}, run times by roofline"
    return replace(found, source=source)


@cache
def _workload(blocks: int, step: str) -> Workload:
    model = _of_blocks(llm_names.transformer(MODEL, weights=TYPE), blocks)
    return chain(model, Step(step, kv_dtype=TYPE, activations=TYPE))


def _of_blocks(model: Transformer, blocks: int) -> Transformer:
    """Return a model with another number of blocks, all like the first."""
    outside = tuple(weight for weight in model.weights if weight.layer is None)
    first = [weight for weight in model.weights if weight.layer == 0]
    return replace(
        model,
        layers=model.layers[:1] * blocks,
        weights=(*outside, *(w._replace(layer=i) for i in range(blocks) for w in first)),
        source=f"embedding, {blocks} blocks and head of the sizes of {model.name}, {TYPE}.",
    )


@cache
def _fleet(devices: int) -> NamedCluster:
    """Return the first devices of the fleet."""
    chosen = FLEET[:devices]
    text = f'default_link = "{BETWEEN_SERVERS}"\n'
    text += "".join(f'[[device]]\nof = "{name}"\n' for name in chosen)
    for one, other in zip(chosen[::2], chosen[1::2], strict=True):
        text += f'[[link]]\nfrom = "{one}"\nto = "{other}"\nof = "{WITHIN_SERVER}"\n'
    return cluster_toml.loads_named(text)


@cache
def articulations(group: str, name: str) -> int:
    """Count the articulations of a base.

    Every earlier vertex leads to an articulation, it leads to every later one, and no edge jumps
    over it.
    """
    graph = base(group, name).graph
    edges = list(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    network: nx.DiGraph[int] = nx.DiGraph(edges)
    network.add_nodes_from(range(len(graph)))
    found = 0
    for v in network:
        before, after = nx.ancestors(network, v), nx.descendants(network, v)
        if len(before) + 1 + len(after) == len(graph):
            found += not any(a in before and b in after for a, b in edges)
    return found
