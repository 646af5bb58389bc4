"""Models and clusters by name or by file.

A model is the name of one that the package builds
(:data:`~optpart.applications.training.models.MODELS`); a file, which is a training graph in JSON
(:mod:`~optpart.applications.training.graph_file`) or what :data:`READERS` lists; or a folder of
profiles (:data:`FOLDERS`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from optpart.applications.training import cluster_file, from_model, graph_file, profile
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import TrainingGraph
from optpart.applications.training.models import MODELS, network
from optpart.applications.training.readers import amp, pipedream, sailor
from optpart.applications.training.strategy_file import Reading
from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, FaultsOf, InputError
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import Spec
from optpart.interop.formats import sailor as sailor_format
from optpart.problem.rational import shown


@dataclass(frozen=True, eq=False)
class Opened:
    """A model on a cluster.

    Attributes
    ----------
    remarks : tuple of str
        Assumptions about either, one sentence each.
    """

    graph: TrainingGraph
    cluster: TrainingCluster
    remarks: tuple[str, ...]


class Given(NamedTuple):
    """The cluster as a reader knows it: kinds and figures of its devices, and the optimiser."""

    kinds: tuple[str, ...]
    figures: Mapping[str, Spec]
    slots: int

    def figures_if_known(self, kinds: Iterable[str]) -> Mapping[str, Spec] | None:
        """Return the figures if those of all these kinds are known."""
        return self.figures if all(kind in self.figures for kind in kinds) else None


#: Reads a file or folder.
Read = Callable[[Path, Given, Reading], TrainingGraph]


class Folder(NamedTuple):
    """A format of folders of profiles, one profile for each type of GPU."""

    name: str
    sniff: Callable[[str | Path], bool]  # whether a folder is of this format
    read: Read


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
        if not os.path.exists(cluster) and str(cluster) not in cluster_file.shipped():
            remedy = choice(cluster, cluster_file.shipped(), lead="name a file, or one of")
            raise InputError("", "no such file", remedy, str(cluster))
        named = cluster_file.read(str(cluster))
        with FaultsOf(cluster):
            train, said = cluster_file.training_cluster(named), cluster_file.remarks(named)
    if isinstance(model, TrainingGraph):
        _refuse(reading, set(), "a training graph")
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
    with FaultsOf("cluster" if named is None else cluster):
        train.kind_indices(graph.kinds)
    return Opened(graph, train, (*said, *graph.assumed))


def _graph(
    model: str, cluster: TrainingCluster, named: NamedCluster | None, reading: Reading, slots: int
) -> TrainingGraph:
    figures = {} if named is None else cluster_file.figures(named)
    given = Given(cluster.kinds, figures, slots)
    if not os.path.exists(model):
        if Path(model).suffix:
            raise InputError("", "no such file", "name a file, or a model of the package", model)
        _refuse(reading, set(), f"the model {model}")
        built = network(model)
        return built.training_graph(_figures(given), slots=slots)
    if os.path.isdir(model):
        for folder in FOLDERS:
            if folder.sniff(model):
                _refuse(reading, _OF_FOLDERS, f"a folder of {folder.name}")
                return folder.read(Path(model), given, reading)
        raise InputError(
            "",
            "no folder of profiles",
            "give one by Sailor (llm_info.json and profiles/) or AMP (MODEL_GPU_DEGREE.npy)",
            model,
        )
    suffix = Path(model).suffix.lower()
    if suffix not in READERS:
        listed = f"{', '.join(READERS)}, a folder of profiles, or one of {', '.join(MODELS)}"
        raise InputError("", f"no model in a {suffix or 'nameless'} file", f"give {listed}", model)
    read, takes = READERS[suffix]
    _refuse(reading, takes, f"a {suffix} file")
    return read(Path(model), given, reading)


def _refuse(reading: Reading, takes: set[str], what: str) -> None:
    for each in fields(Reading):
        if each.name != "costs" and getattr(reading, each.name) and each.name not in takes:
            raise ArgumentError(each.name, f"means nothing to {what}", "leave it out")


def _json(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    return graph_file.read(path)


def _number(reading: Reading) -> int:
    if not isinstance(reading.samples, int):
        said = "is missing" if reading.samples is None else f"is {shown(reading.samples)}"
        raise ArgumentError("samples", said, "give how many samples its figures are for")
    return reading.samples


def _pipedream(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    kinds = _kinds(given, reading.slowness, "slowness")
    for kind in kinds:
        if kind not in reading.slowness:
            raise ArgumentError(
                "slowness",
                f"of {shown(kind)} is missing: the profile is of one kind of device only",
                "give how many times as long it takes as that one, 1 for the same",
            )
    return pipedream.read(
        path,
        minibatch=_number(reading),
        slowness={kind: reading.slowness[kind] for kind in kinds},
        figures=given.figures_if_known(kinds),
        slots=given.slots,
    )


def _sailor(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    network = _network(sailor_format.networks(path), reading)
    gpus = _gpus(given, reading)
    measured = sailor_format.gpus(path, network)
    for kind, gpu in gpus.items():
        if gpu not in measured:
            raise ArgumentError(
                "gpus",
                f"{network} was not measured on {shown(gpu)}, the type of {shown(kind)}",
                f"name another for this kind: {', '.join(measured)}",
            )
    return sailor.read(
        path, network, list(gpus.values()), tensor_parallel=_degree(reading), kinds=list(gpus)
    )


def _amp(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    held = amp.held(path)
    network = _network(tuple(dict.fromkeys(name for name, _, _ in held)), reading)
    if network not in amp.SIZES:
        known = ", ".join(amp.SIZES)
        raise InputError(
            "network",
            f"the files hold times of {shown(network)}, but no sizes of its layers",
            f"choose {known}, whose sizes are known, or give a training graph in JSON",
            str(path),
        )
    degree, gpus = _degree(reading), _gpus(given, reading)
    for kind, gpu in gpus.items():
        if (network, gpu, degree) not in held:
            listed = ", ".join(f"{g} {d}" for n, g, d in held if n == network)
            raise ArgumentError(
                "gpus",
                f"no times of {network} on {shown(gpu)}, the type of {shown(kind)}, "
                f"with degree {degree}",
                f"those of {listed} are there",
            )
    figures = given.figures_if_known(gpus)
    files = {kind: held[network, gpu, degree] for kind, gpu in gpus.items()}
    return amp.read(
        files, amp.SIZES[network], tensor_parallel=degree, figures=figures, slots=given.slots
    )


def _network(held: Sequence[str], reading: Reading) -> str:
    """Return the network to read: the only one of a folder, or that which was chosen."""
    if not reading.network and len(held) == 1:
        return held[0]
    if reading.network not in held:
        said = f"no network {shown(reading.network)}" if reading.network else "is missing"
        raise ArgumentError("network", said, choice(reading.network, held))
    return reading.network


def _degree(reading: Reading) -> int:
    if reading.tensor_parallel is None:
        raise ArgumentError(
            "tensor_parallel", "is missing", "give how many GPUs compute a layer together, or 1"
        )
    return reading.tensor_parallel


def _gpus(given: Given, reading: Reading) -> dict[str, str]:
    """Return the type of GPU of every kind of the cluster."""
    kinds = _kinds(given, reading.gpus, "gpus")
    return {kind: reading.gpus.get(kind, kind) for kind in kinds}


def _kinds(given: Given, named: Iterable[str], argument: str) -> dict[str, None]:
    """Return the kinds of the cluster, after a check that those which are named are among them."""
    kinds = dict.fromkeys(given.kinds)
    for kind in named:
        if kind not in kinds:
            said = f"no kind {shown(kind)} in the cluster"
            raise ArgumentError(argument, said, f"it has {', '.join(kinds)}")
    return kinds


def _onnx(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    if reading.samples is None:
        raise ArgumentError(
            "samples", "is missing", "give the model's symbol for the number of samples, or it"
        )
    return from_model.from_onnx(
        path, _figures(given), samples=reading.samples, shapes=reading.shapes, slots=given.slots
    )


def _graphdef(path: Path, given: Given, reading: Reading) -> TrainingGraph:
    if not reading.costs:
        raise ArgumentError(
            "costs", "is missing: a GraphDef tells no work", "give times that were measured"
        )
    kinds = tuple(dict.fromkeys(given.kinds))
    return from_model.from_graphdef(path, kinds, samples=_number(reading), slots=given.slots)


def _figures(given: Given) -> Mapping[str, Spec]:
    for kind in given.kinds:
        if kind not in given.figures:
            raise InputError(
                "cluster",
                f"gives no figures of {shown(kind)}, by which the model could be timed",
                'give its devices of = "NAME", as optpart devices lists them',
            )
    return given.figures


#: Readers of files by suffix, and the fields of
#: :class:`~optpart.applications.training.strategy_file.Reading` that mean something to each.
READERS: dict[str, tuple[Read, set[str]]] = {
    ".json": (_json, set()),
    ".txt": (_pipedream, {"samples", "slowness"}),
    ".onnx": (_onnx, {"samples", "shapes"}),
    ".pb": (_graphdef, {"samples"}),
}

#: Tried in this order; ``_OF_FOLDERS`` are the fields that mean something to them.
FOLDERS = (Folder("Sailor", sailor_format.sniff, _sailor), Folder("AMP", amp.sniff, _amp))
_OF_FOLDERS = {"network", "tensor_parallel", "gpus"}
