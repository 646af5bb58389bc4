"""Training graphs from the profiles of Sailor (:mod:`optpart.interop.formats.sailor`).

Layers form a chain. Their times were measured for several microbatches on several types of GPU, so
lines are fitted (:func:`optpart.applications.training.profile.fit`); the update is the mean of its
times. A device is a tensor-parallel group of GPUs, and sizes are those of one of them. What a layer
keeps for its backward pass besides its output (``act_mem_bytes``) counts from its forward to its
backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from optpart.applications.training.backward import (
    Forward,
    ForwardOperation,
    Tensor,
    batched,
    with_backward,
)
from optpart.applications.training.graph import Line, Parameter, TrainingGraph
from optpart.applications.training.profile import fit
from optpart.base.errors import InputError
from optpart.base.rounding import percent
from optpart.interop.formats import sailor


def read(
    folder: str | Path,
    model: str,
    gpus: Sequence[str],
    *,
    tensor_parallel: int = 1,
    kinds: Sequence[str] | None = None,
) -> TrainingGraph:
    """Read a model.

    Parameters
    ----------
    folder : path
        The folder of ``llm_info.json`` and ``profiles``.
    gpus : sequence of str
        Types of GPU.
    kinds : sequence of str, optional
        Names for them as kinds of the graph; their own by default.

    Raises
    ------
    InputError
        If there is no such model or profile, nothing was measured with this degree, or a profile
        has other layers than ``llm_info.json``.
    """
    held = sailor.layers(folder, model, tensor_parallel)
    fitted: list[list[tuple[Line, Line, Line]]] = []
    worst, counts = 0.0, []
    for gpu in gpus:
        times = sailor.measurements(folder, model, gpu, tensor_parallel)
        if any(len(rows) != len(held) for rows in times.values()):
            raise InputError(
                gpu,
                f"{model} has other layers than llm_info.json, which has {len(held)}",
                "choose other GPUs",
                str(folder),
            )
        column = []
        for i in range(len(held)):
            lines = []
            for j in (0, 1):
                found = fit([(Fraction(m), rows[i][j]) for m, rows in times.items()])
                worst = max(worst, found.worst)
                lines.append(found.line)
            update = sum((rows[i][2] for rows in times.values()), Fraction(0)) / len(times)
            column.append((lines[0], lines[1], Line(update)))
        fitted.append(column)
        counts.append(f"{gpu} {', '.join(map(str, times))}")
    operations = []
    weights = []
    updates = []
    for i, layer in enumerate(held):
        kept = max(Fraction(0), layer["act_mem_bytes"] - layer["act_output_bytes"])
        operations.append(
            ForwardOperation(
                f"layer {i}",
                tuple(column[i][0] for column in fitted),
                tuple(column[i][1] for column in fitted),
                (Tensor(i - 1),) if i else (),
                (batched(0, layer["act_output_bytes"]),),
                saved=Line(beta=kept) if kept else None,
            )
        )
        if layer["params_bytes"]:
            weights.append(Parameter(f"layer {i}/weights", layer["params_bytes"], (i,)))
            updates.append(tuple(column[i][2] for column in fitted))
    return with_backward(
        Forward(
            model,
            tuple(kinds or gpus),
            tuple(operations),
            tuple(weights),
            tuple(updates),
            f"profile by Sailor, tensor-parallel degree {tensor_parallel}",
            (
                f"Times are lines fitted to those of the microbatches of {'; '.join(counts)}; the "
                f"largest relative error is {percent(worst)}.",
                "A device is a tensor-parallel group; sizes are those of one of its GPUs.",
                "Gradients of activations are as large as the activations.",
            ),
        )
    )
