"""``optpart.place``: from a model, whatever it is, to a plan that its runtime takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.placing.runtimes import Placed, place_model
from optpart.placing.torch_modules import PlacedModule, place_module

if TYPE_CHECKING:
    from optpart.interop.devices.named import NamedCluster
    from optpart.problem.cluster import Cluster


def place(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    cluster: Cluster | NamedCluster | str | Path | None = None,
    **options: Any,
) -> Placed | PlacedModule:
    """Place a model on devices, for the runtime that is to run it.

    Parameters
    ----------
    model : torch.nn.Module, path or str
        A module of PyTorch; or the file or folder of a model, or the name of a language model.
    example_inputs : sequence, optional
        Of a module, and of nothing else: the positional arguments of one call.
    cluster : path, optional
        The devices, for a module also as an object; by default those of this machine, which are
        measured.
    **options
        For a module those of :func:`optpart.placing.torch_modules.place_module`:
        ``dynamic_shapes``, ``shapes``, ``measure``, ``objective``, ``seconds``. Otherwise those of
        :func:`optpart.placing.runtimes.place_model`: ``runtime``, ``output``, ``names``,
        ``seconds``, ``say``, and what the reader of the model takes.

    Returns
    -------
    Placed or PlacedModule
        The result, and what the runtime is told: a command, or for a module the pipeline.
    """
    if example_inputs is not None or not isinstance(model, str | Path):
        return place_module(model, example_inputs or (), cluster, **options)
    return place_model(model, cluster, **options)
