"""The table of generators, in the order of ``optpart generate --help``.

A new generator is a function in a module of this folder and a row here. Its parameters annotated
with an :class:`~optpart.interop.generate.option.Option`, and ``seed``, become the arguments and
options of its command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optpart.base.registry import Registry, load
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance


@dataclass(frozen=True)
class Generator:
    """A row of the table.

    Attributes
    ----------
    function : str
        ``module:function``.
    summary : str
        One line of help.
    """

    function: str
    summary: str

    def load(self) -> Callable[..., Instance | Cluster]:
        """Return the function, which may have more parameters than its command."""
        found: Callable[..., Instance | Cluster] = load(self.function)
        return found


_G = "optpart.interop.generate"
_ROWS = {
    "thesis": ("thesis:instance", "Draw one of the six graphs of [L] table 7.1, with a cluster."),
    "small": ("small:small", "Draw a small instance with whole-number times."),
    "lstm": ("lstm:instance", "Build an unrolled LSTM network of [B] §5.1 on equal devices."),
    "layered": ("layered:instance", "Draw a layered graph and a cluster, as in [L] §6.2."),
    "workflow": (
        "workflow:instance", "Draw a scientific workflow of one of five shapes, with its machines."
    ),
    "fork-join": ("families:fork_join", "Draw a chain of fork–join stages."),
    "tree": ("families:tree", "Draw a complete in-tree or out-tree."),
    "fft": ("families:fft", "Draw a fast Fourier transform."),
    "gauss": ("families:gauss", "Draw a Gaussian elimination by columns."),
    "cholesky": ("families:cholesky", "Draw a tiled Cholesky factorisation."),
    "stencil": ("families:stencil", "Draw a stencil of three points, step by step."),
    "gnp": ("families:gnp", "Draw a random graph G(n, p) without cycles."),
    "stg-layers": (
        "families:stg_layers", "Draw a layered graph like those of the Standard Task Graph Set."
    ),
    "training-pipeline": (
        "training_pipeline:training_pipeline",
        "Build a training step on the stages of a pipeline, with split backward passes.",
    ),
    "cluster": ("cluster:drawn_cluster", "Draw a cluster, as in [L] §6.2, into a TOML file."),
    "heterog-worst": (
        "heterog_worst:heterog_worst",
        "Build an instance on which HeteroG's order takes M² times the best (loops: M + M²).",
    ),
}  # fmt: skip

#: All generators by name.
GENERATORS = Registry(
    "NAME",
    {name: Generator(f"{_G}.{place}", summary) for name, (place, summary) in _ROWS.items()},
    Generator,
    group="optpart.generators",
)
