"""Layer chains of language models with measured times by GPU type, in the JSON of Sailor.

A folder holds ``llm_info.json`` and ``profiles/MODEL/GPU/profile.json``. A profile has, by
microbatch and tensor-parallel degree, the seconds of each layer's forward pass, backward pass and
update::

    {"1": {"2": {"0": [0.0004, 0.000003, 0.0029], "1": [0.0028, 0.0059, 0.0029]}}}

``llm_info.json`` has, by model and tensor-parallel degree, what each layer holds on one GPU::

    {"OPT-350": {"2": {"0": {"params_bytes": 100, "act_output_bytes": 80}, "1": {…}}}}

As a workload, in bytes and whole nanoseconds, for one model, microbatch and degree:

- layer ``i`` is the vertex ``layer i`` with its parameters resident, and hands its activations to
  layer ``i + 1``. Their size is given for a microbatch of 1 and grows with it;
- ``measured`` has the time of the chosen pass by GPU type. A vertex then is what all GPUs of a
  tensor-parallel group do together, and its memory is what each of them holds.

The update happens once an iteration, not once a microbatch, and its figure is the same for all
layers; it is no part of any time. Activations that are kept for the backward pass
(``act_mem_bytes``), gradients and optimizer states are not part of the memory. ``act_input_bytes``
and the counts of floats are not read.

:func:`bandwidths` reads fitted link rates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.json import read_json, sequence
from optpart.interop.formats.nanoseconds import SECOND, Times
from optpart.interop.formats.parsing import member
from optpart.problem.graph import GraphBuilder
from optpart.problem.rational import non_negative, rational, shown
from optpart.problem.workload import Workload

Pass = Literal["forward", "backward", "training"]

_PASSES = {"forward": (0,), "backward": (1,), "training": (0, 1)}
_INFO = "llm_info.json"


def sniff(path: str | Path) -> bool:
    """Return whether a path is a folder with sizes and profiles."""
    folder = Path(path)
    return os.path.isfile(folder / _INFO) and os.path.isdir(folder / "profiles")


def networks(folder: str | Path) -> tuple[str, ...]:
    """Return the names of the models in ``llm_info.json``."""
    path = Path(folder) / _INFO
    with FaultsOf(path):
        return tuple(sorted(_object(read_json(path), "")))


def read(
    folder: str | Path,
    model: str | None = None,
    *,
    microbatch: int = 1,
    tensor_parallel: int = 1,
    measured_pass: Pass = "training",
    gpus: Sequence[str] | None = None,
) -> Workload:
    """Read a model's layers.

    Parameters
    ----------
    folder : path
        The folder of ``llm_info.json`` and ``profiles``.
    model : str, optional
        Such as ``"OPT-350"``; needed if the folder holds several.
    microbatch, tensor_parallel : int
        As measured.
    measured_pass : {"forward", "backward", "training"}
        ``training`` is forward and backward pass together.
    gpus : sequence of str, optional
        GPU types; all that were measured so by default.

    Raises
    ------
    InputError
        If there is no such model, degree or measurement, or a profile has other layers than
        ``llm_info.json``.
    """
    if measured_pass not in _PASSES:
        remedy = choice(measured_pass, get_args(Pass))
        raise InputError("measured_pass", f"no pass {measured_pass!r}", remedy)
    path = Path(folder) / _INFO
    with FaultsOf(path):
        document = read_json(path)
        if model is None:
            model = _only(document)
        held = _held(document, model, tensor_parallel, ("params_bytes", "act_output_bytes"))
        builder = GraphBuilder()
        for i, layer in enumerate(held):
            size = layer["act_output_bytes"] * microbatch
            builder.vertex(f"layer {i}", memory=layer["params_bytes"], outputs=[size])
        for i in range(1, len(held)):
            builder.edge(f"layer {i - 1}", f"layer {i}")
        graph = builder.build()
    times = Times(SECOND)
    measured: dict[str, tuple[Fraction | None, ...]] = {}
    without = []
    for gpu, profile in _profiles(Path(folder) / "profiles" / model, gpus).items():
        with FaultsOf(profile):
            rows = _rows(_object(read_json(profile), ""), microbatch, tensor_parallel)
            if rows is None:
                without.append(gpu)
                continue
            if len(rows) != len(held):
                problem = f"{len(rows)} layers, but {_INFO} has {len(held)}"
                place, remedy = (
                    f"{microbatch}.{tensor_parallel}",
                    "choose other GPUs, or correct it",
                )
                raise InputError(place, problem, remedy)
            measured[gpu] = tuple(
                times.whole(row[j] for j in _PASSES[measured_pass]) for row in rows
            )
    how = f"microbatch {microbatch}, tensor-parallel degree {tensor_parallel}"
    if not measured or (gpus is not None and without):
        raise InputError(
            "profiles",
            f"{model} was not measured with {how} on {', '.join(without) or 'any GPU'}",
            "choose another microbatch, degree or GPU",
            str(folder),
        )
    remarks = [
        *times.remarks(),
        "The update of the weights is no part of the times.",
        "Memory is that of the parameters: what is kept for the backward pass, gradients and "
        "optimizer states are not counted.",
    ]
    if without:
        remarks.append(f"Not measured so on {', '.join(without)}.")
    if microbatch > 1:
        remarks.append(f"Activations are {microbatch} times those of a microbatch of 1.")
    return Workload(
        graph,
        measured=measured,
        name=f"{model}-mb{microbatch}-tp{tensor_parallel}",
        source=f"{measured_pass} times of {model} by Sailor, {how}",
        assumed=tuple(remarks),
    )


def gpus(folder: str | Path, model: str) -> tuple[str, ...]:
    """Return the types of GPU that a model was measured on."""
    return tuple(_profiles(Path(folder) / "profiles" / model, None))


def measurements(
    folder: str | Path, model: str, gpu: str, tensor_parallel: int = 1
) -> Mapping[int, Sequence[tuple[Fraction, Fraction, Fraction]]]:
    """Read all that was measured of a model on one type of GPU.

    Returns
    -------
    mapping
        By microbatch, smallest first: nanoseconds of forward pass, backward pass and update of each
        layer, exact.

    Raises
    ------
    InputError
        If there is no such profile, or nothing was measured with this degree.
    """
    path = _profiles(Path(folder) / "profiles" / model, [gpu])[gpu]
    with FaultsOf(path):
        document = _object(read_json(path), "")
        found = {}
        for microbatch in sorted(_whole(key, key) for key in document):
            rows = _rows(document, microbatch, tensor_parallel)
            if rows is not None:
                found[microbatch] = [
                    (row[0] * SECOND, row[1] * SECOND, row[2] * SECOND) for row in rows
                ]
        if not found:
            raise InputError(
                "", f"nothing with tensor-parallel degree {tensor_parallel}", "choose another"
            )
    return found


def layers(
    folder: str | Path, model: str, tensor_parallel: int = 1
) -> Sequence[Mapping[str, Fraction]]:
    """Read what each layer of a model holds on one GPU.

    Returns
    -------
    list of mapping from str to Fraction
        ``params_bytes``, and of one sample ``act_output_bytes`` and ``act_mem_bytes``, which is
        kept for the backward pass.
    """
    path = Path(folder) / _INFO
    with FaultsOf(path):
        wanted = ("params_bytes", "act_output_bytes", "act_mem_bytes")
        return _held(read_json(path), model, tensor_parallel, wanted)


def bandwidths(path: str | Path) -> Mapping[str, Mapping[tuple[str, int], Fraction]]:
    """Read the fitted link rates of ``network_coeffs_*.json``.

    Returns
    -------
    mapping
        Under ``"inter"`` (between nodes) and ``"intra"`` (within one), by GPU type and number of
        GPUs of a node, the rate in bytes per nanosecond that the link tends to. The file gives it
        in bytes per second, with a polynomial of the message's size before it, which is not read.
    """
    with FaultsOf(path):
        document = read_json(path)
        found: dict[str, dict[tuple[str, int], Fraction]] = {}
        for kind in ("inter", "intra"):
            rates = found.setdefault(kind, {})
            for gpu, counts in _object(member(document, kind), kind).items():
                for count, pair in _object(counts, f"{kind}.{gpu}").items():
                    place = f"{kind}.{gpu}.{count}"
                    entries = sequence(pair, place)
                    if len(entries) != 2:
                        raise InputError(place, f"{len(entries)} entries", "give two")
                    rates[gpu, _whole(count, place)] = non_negative(entries[1], place) / SECOND
        return found


def _held(
    document: Any, model: str, degree: int, wanted: Sequence[str]
) -> list[dict[str, Fraction]]:
    """Return some of the sizes of each layer, in bytes."""
    degrees = _chosen(_chosen(document, model, "model", ""), str(degree), "degree", model)
    place = f"{model}.{degree}"
    return [
        {
            key: non_negative(member(layer, key, f"{place}.{i}"), f"{place}.{i}.{key}")
            for key in wanted
        }
        for i, layer in enumerate(_numbered(degrees, place))
    ]


def _rows(document: Mapping[str, Any], microbatch: int, degree: int) -> list[list[Fraction]] | None:
    """Return the seconds of each layer, or ``None`` if it was not measured so."""
    degrees = _object(document.get(str(microbatch), {}), str(microbatch))
    if str(degree) not in degrees:
        return None
    place = f"{microbatch}.{degree}"
    found = []
    for i, entry in enumerate(_numbered(degrees[str(degree)], place)):
        row = sequence(entry, f"{place}.{i}")
        if len(row) != 3:
            raise InputError(
                f"{place}.{i}", f"{len(row)} times", "give those of forward, backward and update"
            )
        found.append([non_negative(time, f"{place}.{i}[{j}]") for j, time in enumerate(row)])
    return found


def _profiles(folder: Path, gpus: Sequence[str] | None) -> dict[str, Path]:
    found = {path.parent.name: path for path in sorted(folder.glob("*/profile.json"))}
    for gpu in gpus or ():
        if gpu not in found:
            raise InputError("gpus", f"no profile of {gpu!r}", choice(gpu, found), str(folder))
    if not found:
        raise InputError("", "holds no GPU/profile.json", "name a folder of profiles", str(folder))
    return found if gpus is None else {gpu: found[gpu] for gpu in gpus}


def _only(document: Any) -> str:
    """Return the name of the only model."""
    models = sorted(_object(document, ""))
    if len(models) != 1:
        raise InputError("model", "missing", choice("", models))
    return models[0]


def _chosen(document: Any, key: str, what: str, place: str) -> Any:
    choices = _object(document, place)
    if key not in choices:
        raise InputError(place, f"no {what} {key!r}", choice(key, sorted(choices)))
    return choices[key]


def _numbered(value: Any, place: str) -> list[Any]:
    """Return the layers, which must be numbered from 0, in order."""
    layers = _object(value, place)
    for i in range(len(layers)):
        if str(i) not in layers:
            raise InputError(place, f"no layer {i}", f"number the {len(layers)} layers from 0")
    if not layers:
        raise InputError(place, "no layers", "give at least one")
    return [layers[str(i)] for i in range(len(layers))]


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(place, f"{shown(value)} is not an object", "give an object")
    return value


def _whole(value: str, place: str) -> int:
    number = rational(value, place)
    if number.denominator > 1 or number < 1:
        raise InputError(place, f"{shown(value)} GPUs", "give a whole number from 1")
    return int(number)
