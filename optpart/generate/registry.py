"""The table of generators, in the order of ``optpart generate --help``.

A new generator is a function in a module of this folder and a row here. Its parameters annotated
with an :class:`~optpart.generate.option.Option`, and ``seed``, become the arguments and options of
its command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance
from optpart.registry import Registry, load


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


#: All generators by name.
GENERATORS = Registry(
    "NAME",
    {
        "thesis": Generator(
            "optpart.generate.thesis:instance",
            "Draw one of the six graphs of [L] table 7.1, with a cluster.",
        ),
        "small": Generator(
            "optpart.generate.small:small", "Draw a small instance with whole-number times."
        ),
        "lstm": Generator(
            "optpart.generate.lstm:instance",
            "Build an unrolled LSTM network of [B] §5.1 on equal devices.",
        ),
        "layered": Generator(
            "optpart.generate.layered:instance",
            "Draw a layered graph and a cluster, as in [L] §6.2.",
        ),
        "workflow": Generator(
            "optpart.generate.workflow:instance",
            "Draw a scientific workflow of one of five shapes, with its machines.",
        ),
        "fork-join": Generator(
            "optpart.generate.fork_join:fork_join", "Draw a chain of fork–join stages."
        ),
        "tree": Generator("optpart.generate.tree:tree", "Draw a complete in-tree or out-tree."),
        "fft": Generator("optpart.generate.fft:fft", "Draw a fast Fourier transform."),
        "gauss": Generator(
            "optpart.generate.gauss:gauss", "Draw a Gaussian elimination by columns."
        ),
        "cholesky": Generator(
            "optpart.generate.cholesky:cholesky", "Draw a tiled Cholesky factorisation."
        ),
        "stencil": Generator(
            "optpart.generate.stencil:stencil", "Draw a stencil of three points, step by step."
        ),
        "gnp": Generator("optpart.generate.gnp:gnp", "Draw a random graph G(n, p) without cycles."),
        "stg-layers": Generator(
            "optpart.generate.stg_layers:stg_layers",
            "Draw a layered graph like those of the Standard Task Graph Set.",
        ),
        "cluster": Generator(
            "optpart.generate.cluster:drawn_cluster",
            "Draw a cluster, as in [L] §6.2, into a TOML file.",
        ),
        "heterog-worst": Generator(
            "optpart.generate.heterog_worst:heterog_worst",
            "Build an instance on which HeteroG's order takes M² times the best (loops: M + M²).",
        ),
    },
    Generator,
    group="optpart.generators",
)
