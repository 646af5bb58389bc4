"""Models and clusters by name or by file.

A model is the name of one that the package builds (:data:`~optpart.training.models.MODELS`), or a
file: a training graph in JSON (:mod:`~optpart.training.graph_file`), or what :data:`READERS` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from optpart.devices.named import NamedCluster
from optpart.devices.spec import Spec
from optpart.errors import FaultsOf, InputError
from optpart.training import cluster_file, graph_file, profile
from optpart.training.cluster import TrainingCluster
from optpart.training.graph import TrainingGraph
from optpart.training.models import MODELS, network
from optpart.training.readers import pipedream
from optpart.training.strategy_file import Reading


@dataclass(frozen=True, eq=False)
class Opened:
    """A model on a cluster.

    Attributes
    ----------
    graph : TrainingGraph
    cluster : TrainingCluster
    remarks : tuple of str
        What had to be assumed of either, one sentence each.
    """

    graph: TrainingGraph
    cluster: TrainingCluster
    remarks: tuple[str, ...]


class Given(NamedTuple):
    """What a reader knows of the cluster: kinds and figures of its devices, and the optimiser."""

    kinds: tuple[str, ...]
    figures: Mapping[str, Spec]
    slots: int


@dataclass(frozen=True)
class Reader:
    """A format of model files.

    Attributes
    ----------
    suffix : str
    takes : frozenset of str
        Fields of :class:`~optpart.training.strategy_file.Reading` that mean something to it.
    read : callable
    """

    suffix: str
    takes: frozenset[str]
    read: Callable[[Path, Given, Reading], TrainingGraph]


def open_model(
    model: TrainingGraph | str | Path,
    cluster: TrainingCluster | str | Path,
    reading: Reading | None = None,
    slots: int = 2,
) -> Opened:
    """Read a model and a cluster.

    Parameters
    ----------
    model : TrainingGraph, str or Path
        A graph, or what to read; see above.
    cluster : TrainingCluster, str or Path
        The name of a cluster that the package brings, or a cluster file.
    reading : Reading, optional
        What the file of the model does not say.
    slots : int
        Tensors that the optimiser keeps per parameter, which updates read and write.

    Raises
    ------
    InputError
        If there is no such model or cluster, a file is faulty, what is told of it means nothing to
        its format, or the model has no times for the kind of a device.
    """
    reading = reading or Reading()
    said: tuple[str, ...] = ()
    if isinstance(cluster, TrainingCluster):
        named, train = None, cluster
    else:
        named = cluster_file.read(str(cluster))
        with FaultsOf(cluster):
            train, said = cluster_file.training_cluster(named), cluster_file.remarks(named)
    if isinstance(model, TrainingGraph):
        _refuse(reading, frozenset(), "a training graph")
        graph = model
    else:
        graph = _graph(str(model), train, named, reading, slots)
    if reading.costs:
        costs = profile.read(reading.costs)
        with FaultsOf(reading.costs):
            graph = profile.timed(graph, costs, tuple(dict.fromkeys(train.kinds)), others=True)
            train = profile.linked(train, costs)
        if costs.transfers:
            said += (f"Links were fitted to {costs.source or 'measurements'}.",)
    with FaultsOf(_name(cluster)):
        train.kind_indices(graph.kinds)
    return Opened(graph, train, (*said, *graph.assumed))


def _name(cluster: TrainingCluster | str | Path) -> str:
    return "cluster" if isinstance(cluster, TrainingCluster) else str(cluster)


def _graph(
    model: str, cluster: TrainingCluster, named: NamedCluster | None, reading: Reading, slots: int
) -> TrainingGraph:
    figures = {} if named is None else cluster_file.figures(named)
    if not Path(model).exists():
        if Path(model).suffix:
            raise InputError("", "no such file", "name a file, or a model of the package", model)
        _refuse(reading, frozenset(), f"the model {model}")
        built = network(model)
        if not figures:
            raise InputError(
                "cluster",
                f"gives no figures of devices, by which {model} could be timed",
                'give its devices of = "NAME", as optpart devices lists them',
            )
        return built.training_graph(figures, slots=slots)
    suffix = Path(model).suffix.lower()
    if suffix not in READERS:
        raise InputError(
            "", f"no model in a {suffix or 'nameless'} file", f"give {_listed()}", model
        )
    reader = READERS[suffix]
    _refuse(reading, reader.takes, f"a {suffix} file")
    return reader.read(Path(model), Given(cluster.kinds, figures, slots), reading)


def _refuse(reading: Reading, takes: frozenset[str], what: str) -> None:
    for each in fields(Reading):
        if each.name != "costs" and getattr(reading, each.name) and each.name not in takes:
            raise InputError(each.name, f"means nothing to {what}", "leave it out")


def _listed() -> str:
    return f"{', '.join(READERS)}, or one of {', '.join(MODELS)}"


def _json(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    return graph_file.read(path)


def _pipedream(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    if reading.minibatch is None:
        raise InputError(
            "minibatch",
            "missing: the profile does not say for how many samples its times are",
            "give it",
        )
    kinds = dict.fromkeys(given.kinds)
    for kind in reading.slowness:
        if kind not in kinds:
            raise InputError(
                f"slowness {kind}", "no such kind in the cluster", f"it has {', '.join(kinds)}"
            )
    for kind in kinds:
        if kind not in reading.slowness:
            raise InputError(
                f"slowness {kind}",
                "missing: the profile does not say how fast this kind of device is",
                "give how many times as long it takes as the GPU of the profile, 1 for the same",
            )
    figures = given.figures if all(kind in given.figures for kind in kinds) else None
    return pipedream.read(
        path,
        minibatch=reading.minibatch,
        slowness={kind: reading.slowness[kind] for kind in kinds},
        figures=figures,
        slots=given.slots,
    )


#: By suffix.
READERS = {
    reader.suffix: reader
    for reader in (
        Reader(".json", frozenset(), _json),
        Reader(".txt", frozenset({"minibatch", "slowness"}), _pipedream),
    )
}
