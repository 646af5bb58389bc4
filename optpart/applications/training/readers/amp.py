"""Training graphs from the layer costs of AMP (``MODEL_NODE_DEGREE.npy``).

A file holds the seconds of the forward pass of each layer for one sample, on one type of node and
with one tensor-parallel degree. As in AMP itself, a batch of ``b`` takes ``b`` times as long
(``α = 0``), and the backward pass twice as long as the forward pass. The files hold no sizes; those
of GPT-2, as AMP trains it, are in :data:`GPT2`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from optpart.applications.training.backward import ForwardOperation, Tensor, batched
from optpart.applications.training.graph import Line, Parameter, TrainingGraph
from optpart.applications.training.layers import measured
from optpart.applications.training.lines import scaled
from optpart.base.errors import FaultsOf, InputError
from optpart.interop.devices.spec import Spec
from optpart.interop.formats.nanoseconds import SECOND
from optpart.problem.rational import rational


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model's layers.

    Attributes
    ----------
    activations : tuple of int
        Bytes that each layer returns for one sample.
    weights : tuple of int
        Bytes of its own weights.
    shared : mapping from str to (int, tuple of int)
        Bytes of further weights, and the layers that share them.
    """

    name: str
    activations: tuple[int, ...]
    weights: tuple[int, ...]
    shared: Mapping[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)


def _gpt2() -> Sizes:
    width, length, vocabulary, layers, transformers = 1024, 1024, 52_256, 30, range(2, 26)
    # Embedding and logits share their matrix; all is in single precision. Layer 28 makes the
    # logits, and layer 29 the loss.
    hidden = 4 * length * width
    activations = [hidden] * (layers - 2) + [4 * length * vocabulary, 4]
    weights = [4 * 12 * width**2 if i in transformers else 0 for i in range(layers)]
    return Sizes(
        "gpt2",
        tuple(activations),
        tuple(weights),
        {"embedding": (4 * width * vocabulary, (0, layers - 2))},
    )


#: GPT-2 (24 layers, 1,024 wide, 1,024 tokens, vocabulary of 52,256), without position embeddings,
#: biases and normalisations.
GPT2 = _gpt2()

#: Models whose sizes are known, by the name in their files.
SIZES = {GPT2.name: GPT2}

_NAME = re.compile(r"(?P<model>.+)_(?P<gpu>[^_]+)_(?P<degree>[1-9][0-9]{0,5})\.npy")


def held(folder: str | Path) -> Mapping[tuple[str, str, int], Path]:
    """Return the files of a folder by model, type of GPU and tensor-parallel degree."""
    found = {}
    for path in sorted(Path(folder).glob("*.npy")):
        name = _NAME.fullmatch(path.name)
        if name is not None:
            found[name["model"], name["gpu"], int(name["degree"])] = path
    return found


def sniff(folder: str | Path) -> bool:
    """Return whether a folder holds ``MODEL_GPU_DEGREE.npy``."""
    return bool(held(folder))


def read(
    paths: Mapping[str, str | Path],
    sizes: Sizes,
    *,
    tensor_parallel: int = 1,
    figures: Mapping[str, Spec] | None = None,
    slots: int = 2,
) -> TrainingGraph:
    """Read the layer costs of a model.

    Parameters
    ----------
    paths : mapping from str to path
        Files by kind of device, all of one degree.
    sizes : Sizes
        Of the model; weights are divided by ``tensor_parallel``.
    figures : mapping from str to Spec, optional
        Of each kind, by which updates are timed; without it they take no time.
    slots : int
        Tensors that the optimiser keeps of each trained one.

    Raises
    ------
    InputError
        If a file is no array of as many times ≥ 0 as there are layers.
    """
    columns = [_times(path, len(sizes.activations)) for path in paths.values()]
    operations = []
    weights = []
    for i, size in enumerate(sizes.activations):
        times = tuple(Line(beta=column[i]) for column in columns)
        operations.append(
            ForwardOperation(
                f"layer {i}",
                times,
                scaled(times, 2),
                (Tensor(i - 1),) if i else (),
                (batched(0, size),),
            )
        )
        if sizes.weights[i]:
            own = Fraction(sizes.weights[i], tensor_parallel)
            weights.append(Parameter(f"layer {i}/weights", own, (i,)))
    for name, (size, users) in sizes.shared.items():
        weights.append(Parameter(name, Fraction(size, tensor_parallel), users))
    return measured(
        sizes.name,
        list(paths),
        operations,
        weights,
        figures,
        slots,
        f"layer costs by AMP, tensor-parallel degree {tensor_parallel}",
        (
            "Times are proportional to samples, one of which was measured.",
            "The backward pass takes twice as long as the forward pass, as AMP assumes.",
            "A device is a tensor-parallel group; weights are those of one of its GPUs.",
        ),
    )


def _times(path: str | Path, layers: int) -> Sequence[Fraction]:
    """Return the exact nanoseconds of each layer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of headers that only Python 2 would have written
            found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(
            "", f"cannot be read ({error.strerror or error})", "name a file", str(path)
        ) from None
    except Exception:  # NumPy evaluates the header, in which anything may be wrong
        raise InputError(
            "", "is no array of NumPy", "give a file as numpy.save writes it", str(path)
        ) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f" or found.shape != (layers,):
        raise InputError("", f"holds no {layers} times", "give one for each layer", str(path))
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError(
            "", "holds a time that is negative or infinite", "give times ≥ 0", str(path)
        )
    with FaultsOf(path):
        return [rational(float(time)) * SECOND for time in found]
